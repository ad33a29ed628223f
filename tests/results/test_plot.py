"""The picture of a search shows the figures of its iterations."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.container import BarContainer
from matplotlib.patches import StepPatch

from oocgraph.errors import MissingDependencyError
from oocgraph.results import plot
from oocgraph.results.plot import plot_levels
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
    time, read, sent = plot_levels(levels, title="a search").axes
    for number, worker in enumerate("ab"):
        parts = [one.parts[number] for one in levels]
        below = [one.parts[0] for one in levels] if number else None
        assert bars(time)[worker] == [(part.seconds, 0) for part in parts]
        assert bars(read)[worker] == [(part.bytes_read, below[i].bytes_read if below else 0) for i, part in enumerate(parts)]
        assert bars(sent)[worker] == [(part.sent_bytes, below[i].sent_bytes if below else 0) for i, part in enumerate(parts)]
    assert steps(time)["wall time"].values.tolist() == [one.seconds for one in levels]
    lefts = [[bar.get_x() for bar in one] for one in time.containers]
    np.testing.assert_allclose(np.diff(lefts, axis=0), 0.4)  # beside each other
    assert [bar.get_x() + bar.get_width() for bar in time.containers[1]] == pytest.approx([i + 1.4 for i in range(5)])


@pytest.mark.parametrize("num_levels", [41, 200, 201, 2000, 2001])
def test_many_levels_are_binned_and_none_is_lost(num_levels):
    """At most 200 steps; each is the sum of its levels; the last may hold fewer."""
    levels = iterations(num_levels, first=3)
    time, read, sent = plot_levels(levels, title="a search").axes
    width = -(-num_levels // plot.MAX_BINS)
    starts = np.arange(0, num_levels, width)
    values = np.array([[[p.seconds, p.bytes_read, p.sent_bytes] for p in one.parts] for one in levels])
    sums = np.add.reduceat(values, starts)
    assert not bars(time)
    for number, worker in enumerate("ab"):
        np.testing.assert_allclose(steps(time)[worker].values, sums[:, number, 0])
        np.testing.assert_allclose(steps(read)[worker].values, sums[:, : number + 1, 1].sum(axis=1))
        np.testing.assert_allclose(steps(sent)[worker].values - steps(sent)[worker].baseline, sums[:, number, 2])
    assert steps(time)["wall time"].values.sum() == pytest.approx(sum(one.seconds for one in levels))
    np.testing.assert_allclose(steps(time)["a"].edges, [*(starts + 2.5), num_levels + 2.5])
    assert len(steps(time)["a"].values) <= plot.MAX_BINS
    assert ("per" in time.get_ylabel()) == (width > 1)


def test_in_process_there_is_one_series():
    """Without parts: wall time and bytes of the iterations, nothing sent."""
    levels = iterations(4, workers=())
    time, read = plot_levels(levels, title="a search").axes
    assert bars(time) == {plot.IN_PROCESS: [(one.seconds, 0) for one in levels]}
    assert bars(read) == {plot.IN_PROCESS: [(one.bytes_read, 0) for one in levels]}


def test_everything_drawn_is_inside_and_named():
    """Nothing is cut off; panels say unit and meaning; the legend names workers, wall time and pulls, once each."""
    picture = plot_levels(iterations(6), title="a search from 3")
    time, read, sent = picture.axes
    assert time.get_ylim() == (0, pytest.approx(12 * 1.05))
    assert read.get_ylim()[1] > 1201
    assert [panel.get_ylabel() for panel in picture.axes] == ["seconds", "bytes", "bytes"]
    assert [panel.get_title(loc="left") for panel in (read, sent)] == ["Bytes read from the store", "Bytes sent to other workers"]
    assert sent.get_xlabel() == "level"
    assert picture.get_suptitle() == "a search from 3"
    (legend,) = picture.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "wall time", "pull"]


def test_pulls_are_shaded():
    """Grey from half a level before to half a level after each pulled one."""
    (panel, _) = plot_levels(iterations(4, workers=()), title="").axes
    assert [(one.get_x(), one.get_width()) for one in panel.patches if one.get_label() == "pull"] == [(0.5, 1), (2.5, 1)]


def test_tiny_levels_without_parts_do_not_become_a_worker():
    """On a cluster some iterations have no parts: their wall time is shown, and nobody is busier for it."""
    levels = [*iterations(2), Iteration(3, "push", "", 1, 0, 9.0, 5)]
    time, read, _ = plot_levels(levels, title="").axes
    assert bars(time)["a"] == [(1, 0), (2, 0), (0, 0)]
    assert bars(read)["a"][2] == (0, 0)
    assert steps(time)["wall time"].values.tolist() == [2, 4, 9]


def test_many_workers_are_counted_not_all_named():
    """The legend stays readable; every worker is drawn."""
    picture = plot_levels(iterations(3, workers=[f"w{i}" for i in range(30)]), title="")
    assert len(bars(picture.axes[0])) == 30
    (legend,) = picture.legends
    assert legend.get_title().get_text() == "30 workers, 12 of them named"
    assert len(legend.get_texts()) == plot.MAX_NAMED + 2


def test_a_result_plots_itself(tmp_path):
    """Also onto a given figure; notebooks get a PNG; a search without iterations is an empty picture."""
    reference_build([1, 2], [2, 3], tmp_path / "g.zarr", implied=(0, 5))
    result = result_of(open_graph(tmp_path / "g.zarr"), 1)
    picture = result.plot()
    assert picture._repr_png_()[:4] == b"\x89PNG"
    assert "BFSResult from 1: 3 of 5 vertices reached" in picture.get_suptitle()
    given = mpl.figure.Figure()
    assert result.plot(given) is given
    assert len(given.axes) == 2
    assert [text.get_text() for text in plot_levels([], title="").axes[0].texts] == ["none"]


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    """The figures stay available."""
    reference_build([1], [2], tmp_path / "g.zarr")
    result = result_of(open_graph(tmp_path / "g.zarr"), 1)
    monkeypatch.delitem(sys.modules, "oocgraph.results.plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install oocgraph\[notebooks\]"):
        result.plot()
