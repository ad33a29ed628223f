"""The picture of a result shows how many vertices have which value; that of a search also the figures of its iterations."""

from __future__ import annotations

import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.container import BarContainer
from matplotlib.patches import StepPatch

from oocgraph.errors import ArgumentError, MissingDependencyError
from oocgraph.results import plot
from oocgraph.results.histogram import make_histogram
from oocgraph.results.plot import plot_histogram
from oocgraph.results.search import Iteration, PartMetrics
from oocgraph.store.graph import open_graph
from tests.reference_build import reference_build
from tests.results.test_bfs import result_of

mpl.use("Agg")


def iterations(num_levels, workers=("a", "b"), *, first=1):
    """Levels whose every figure differs; odd levels are pulled, from the second partition's worker more than from the first's."""
    out = []
    for level in range(first, first + num_levels):
        parts = tuple(
            PartMetrics(number, worker, "push", level + 0.1 * number, 100 * level + number, 10 * level + number, 1)
            for number, worker in enumerate(workers)
        )
        direction = "pull" if level % 2 else "push"
        out.append(Iteration(level, direction, "", 1, 0, 2.0 * level, sum(part.bytes_read for part in parts) or 7 * level, parts=parts))
    return out


def drawn(levels, *, num_levels=None, title=""):
    """Panels of a search whose level ``l`` has ``l + 1`` vertices; its last level is that of the last iteration."""
    sizes = 1 + np.arange(levels[-1].level + 1 if num_levels is None else num_levels)

    def histogram(max_bins):
        found = np.repeat(np.arange(sizes.size), sizes)
        return make_histogram(lambda: iter([found]), name="level", things="vertices", max_bins=max_bins, may_grow=False)

    return plot_histogram(histogram, levels, title=title)


def bars(panel):
    """Heights and bottoms of the bars of each worker."""
    groups = [one for one in panel.containers if isinstance(one, BarContainer)]
    return {one.get_label(): [(bar.get_height(), bar.get_y()) for bar in one] for one in groups}


def steps(panel):
    """Values, edges and baseline of each step line."""
    return {one.get_label(): one.get_data() for one in panel.patches if isinstance(one, StepPatch)}


def test_bars_are_the_figures_of_each_worker():
    """Seconds stand side by side from zero, with the wall time; bytes are stacked; heights are the parts' own."""
    levels = iterations(5)
    counts, time, read, sent = drawn(levels).axes
    assert [bar.get_height() for bar in counts.patches] == [1, 2, 3, 4, 5, 6]
    for number, worker in enumerate("ab"):
        parts = [one.parts[number] for one in levels]
        below = [one.parts[0] for one in levels] if number else None
        assert bars(time)[worker] == [(0, 0), *((part.seconds, 0) for part in parts)]
        assert bars(read)[worker] == [(0, 0), *((part.bytes_read, below[i].bytes_read if below else 0) for i, part in enumerate(parts))]
        assert bars(sent)[worker] == [(0, 0), *((part.sent_bytes, below[i].sent_bytes if below else 0) for i, part in enumerate(parts))]
    assert steps(time)["wall time"].values.tolist() == [0, *(one.seconds for one in levels)]
    lefts = [[bar.get_x() for bar in one] for one in time.containers]
    np.testing.assert_allclose(np.diff(lefts, axis=0), 0.4)  # beside each other
    assert [bar.get_x() + bar.get_width() for bar in time.containers[1]] == pytest.approx([i + 0.4 for i in range(6)])


@pytest.mark.parametrize("num_levels", [41, 200, 201, 2000, 2001])
def test_many_levels_are_binned_and_none_is_lost(num_levels):
    """At most 200 steps, of the same levels in all panels; each is the sum of its levels; the last may hold fewer."""
    levels = iterations(num_levels - 1)
    counts, time, read, sent = drawn(levels).axes
    (vertices,) = steps(counts).values()
    assert len(vertices.values) <= plot.MAX_BINS
    edges = vertices.edges + 0.5
    width = int(edges[1])
    assert np.all(np.diff(edges)[:-1] == width)
    starts = np.arange(0, num_levels, width)
    np.testing.assert_array_equal(vertices.values, np.add.reduceat(1 + np.arange(num_levels), starts))
    values = np.zeros((num_levels, 2, 3))
    values[1:] = [[[p.seconds, p.bytes_read, p.sent_bytes] for p in one.parts] for one in levels]
    sums = np.add.reduceat(values, starts)
    assert not bars(time)
    for number, worker in enumerate("ab"):
        np.testing.assert_allclose(steps(time)[worker].values, sums[:, number, 0])
        np.testing.assert_allclose(steps(read)[worker].values, sums[:, : number + 1, 1].sum(axis=1))
        np.testing.assert_allclose(steps(sent)[worker].values - steps(sent)[worker].baseline, sums[:, number, 2])
    assert steps(time)["wall time"].values.sum() == pytest.approx(sum(one.seconds for one in levels))
    np.testing.assert_allclose(steps(time)["a"].edges, vertices.edges)
    per_bin = "" if width == 1 else f" per {width} levels"
    assert [panel.get_ylabel() for panel in (counts, time, read)] == [f"{name}{per_bin}" for name in ("vertices", "seconds", "bytes")]


@pytest.mark.parametrize("num_levels", [4, 100])
def test_an_iteration_that_finds_nothing_is_no_level(num_levels):
    """What it took is drawn with the last level, so that nothing is missing."""
    levels = iterations(num_levels, workers=())
    counts, time, _ = drawn(levels, num_levels=num_levels).axes
    assert counts.get_xlim() == time.get_xlim() == (-0.5, num_levels - 0.5)
    heights = bars(time).get(plot.IN_PROCESS) or steps(time)[plot.IN_PROCESS].values.tolist()
    seconds = [0, *(one.seconds for one in levels[:-2]), levels[-2].seconds + levels[-1].seconds]
    assert heights == (seconds if num_levels > plot.MAX_BARS else [(one, 0) for one in seconds])


def test_a_measure_that_is_zero_everywhere_has_no_panel():
    """All edges in memory: nothing was read."""
    levels = [replace(one, bytes_read=0) for one in iterations(3, workers=())]
    assert [panel.get_ylabel() for panel in drawn(levels).axes] == ["vertices", "seconds"]
    assert len(drawn([replace(one, seconds=0.0) for one in levels]).axes) == 1


def test_levels_of_few_vertices_are_seen():
    """One vertex beside a million is three pixels high at least; counts that are alike begin at zero."""

    def panel(*counts):
        values = np.repeat(np.arange(len(counts)), counts)
        made = lambda bins: make_histogram(lambda: iter([values]), name="level", things="vertices", max_bins=bins)  # noqa: E731
        return plot_histogram(made, (), title="").axes[0]

    assert panel(1, 60, 1).get_yscale() == "log"
    assert panel(1, 60, 1).get_ylim()[0] < 1
    assert (panel(2, 60, 3).get_yscale(), panel(2, 60, 3).get_ylim()[0]) == ("linear", 0)


def test_heavy_tails_have_two_logarithmic_axes():
    """Zero is beside them; nothing is lost."""
    values = np.concatenate([np.zeros(500, np.int64), np.arange(1, 400), [100_000] * 3])
    made = lambda bins: make_histogram(lambda: iter([values]), name="degree", things="vertices", max_bins=bins)  # noqa: E731
    (panel,) = plot_histogram(made, (), title="").axes
    (data,) = steps(panel).values()
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert panel.get_xlim() == (data.edges[0], data.edges[-1])
    assert (data.values[0], data.values.sum()) == (500, values.size)


def test_axes_of_the_caller_get_the_main_panel(tmp_path):
    """And nothing else: they are returned, and the figure stays the caller's."""
    reference_build([1, 2], [2, 3], tmp_path / "g.zarr", implied=(0, 5))
    result = result_of(open_graph(tmp_path / "g.zarr"), 1)
    figure = mpl.figure.Figure()
    left, right = figure.subplots(1, 2)
    assert result.plot(right) is right
    assert result.plot(ax=left) is left
    assert len(figure.axes) == 2
    assert [bar.get_height() for bar in right.patches] == [1, 1, 1]
    assert right.get_title(loc="left") == "BFS from 1: 3 of 5 vertices reached, depth 2"
    assert not figure.get_suptitle()
    with pytest.raises(ArgumentError, match="ax and figure exclude each other"):
        result.plot(left, figure=figure)


def test_in_process_there_is_one_series():
    """Without parts: wall time and bytes of the iterations, nothing sent."""
    levels = iterations(4, workers=())
    _, time, read = drawn(levels).axes
    assert bars(time) == {plot.IN_PROCESS: [(0, 0), *((one.seconds, 0) for one in levels)]}
    assert bars(read) == {plot.IN_PROCESS: [(0, 0), *((one.bytes_read, 0) for one in levels)]}


def test_everything_drawn_is_inside_and_named():
    """Nothing is cut off; panels say unit and meaning; the legend names workers, wall time and pulls, once each."""
    picture = drawn(iterations(6), title="a search from 3")
    _, time, read, sent = picture.axes
    assert time.get_ylim() == (0, pytest.approx(12 * 1.05))
    assert read.get_ylim()[1] > 1201
    assert [panel.get_ylabel() for panel in picture.axes] == ["vertices", "seconds", "bytes", "bytes"]
    assert [panel.get_title(loc="left") for panel in (read, sent)] == ["Bytes read from the store", "Bytes sent to other workers"]
    assert sent.get_xlabel() == "level"
    assert picture.get_suptitle() == "a search from 3"
    (legend,) = picture.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "wall time", "pull"]


def test_pulls_are_shaded():
    """Grey from half a level before to half a level after each pulled one."""
    (_, panel, _) = drawn(iterations(4, workers=())).axes
    assert [(one.get_x(), one.get_width()) for one in panel.patches if one.get_label() == "pull"] == [(0.5, 1), (2.5, 1)]


def test_tiny_levels_without_parts_do_not_become_a_worker():
    """On a cluster some iterations have no parts: their wall time is shown, and nobody is busier for it."""
    levels = [*iterations(2), Iteration(3, "push", "", 1, 0, 9.0, 5)]
    _, time, read, _ = drawn(levels).axes
    assert bars(time)["a"] == [(0, 0), (1, 0), (2, 0), (0, 0)]
    assert bars(read)["a"][3] == (0, 0)
    assert steps(time)["wall time"].values.tolist() == [0, 2, 4, 9]


def test_many_workers_are_counted_not_all_named():
    """The legend stays readable; every worker is drawn."""
    picture = drawn(iterations(3, workers=[f"w{i}" for i in range(30)]))
    assert len(bars(picture.axes[1])) == 30
    (legend,) = picture.legends
    assert legend.get_title().get_text() == "30 workers, 12 of them named"
    assert len(legend.get_texts()) == plot.MAX_NAMED + 2


def test_a_result_plots_itself(tmp_path):
    """Also onto a given figure; notebooks get a PNG; a search without iterations is an empty picture."""
    reference_build([1, 2], [2, 3], tmp_path / "g.zarr", implied=(0, 5))
    result = result_of(open_graph(tmp_path / "g.zarr"), 1)
    picture = result.plot()
    assert picture._repr_png_()[:4] == b"\x89PNG"
    assert picture.get_suptitle() == "BFS from 1: 3 of 5 vertices reached, depth 2"
    given = mpl.figure.Figure()
    assert result.plot(figure=given) is given
    assert len(given.axes) == 3
    empty = plot_histogram(lambda bins: make_histogram(lambda: iter(()), name="x", things="vertices", max_bins=bins), (), title="")
    assert [text.get_text() for text in empty.axes[0].texts] == ["no vertices"]


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    """The figures stay available."""
    reference_build([1], [2], tmp_path / "g.zarr")
    result = result_of(open_graph(tmp_path / "g.zarr"), 1)
    monkeypatch.delitem(sys.modules, "oocgraph.results.plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install oocgraph\[plot\]`; result.histogram"):
        result.plot()
