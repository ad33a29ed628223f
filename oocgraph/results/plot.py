"""Pictures of results: how many vertices have which value; of a search also time and bytes of each level, by worker.

The only module that imports matplotlib. In: a `oocgraph.results.histogram.Histogram`, and the iterations of a search, with parts (on a
cluster) or without (in process: one series). Out: a matplotlib figure with the histogram as its first panel and one for each measure that
is not zero everywhere; or the histogram alone, on axes of the caller. An axis is logarithmic where values are heavy-tailed, or where counts
differ so much that the least could not be seen. Workers run at the same time, so their seconds stand side by side; bytes add up, so they
are stacked. Up to `MAX_BARS` bins are bars; more are steps, each the sum of consecutive levels. An iteration that finds nothing ends a
search, and is none of its levels: what it took is drawn with the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from oocgraph.results.histogram import Histogram
from oocgraph.results.search import Iteration, PartMetrics, by_worker
from oocgraph.types import Array

MAX_BARS = 40
"""Bins that are drawn as bars."""

MAX_BINS = 200
"""Bins at most: a step is then at least three pixels wide."""

LOG_RATIO = 50
"""Largest and least of some counts for which their axis is logarithmic: a fiftieth of a panel is three pixels high."""

MAX_NAMED = 12
"""Workers that the legend names; more are counted there."""

IN_PROCESS = "this process"
"""Name of the one series where there are no workers."""


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn.

    Attributes
    ----------
    workers
        Names, in the order of drawing.
    edges : (num_bins + 1,) float64
        Left edge of each bin on the axis of levels, and the right edge of the last; a level is centred on its number.
    wall_seconds : (num_bins,) float64
        Wall time.
    busy_seconds, bytes_read, sent_bytes : (num_workers, num_bins) float64
        What each worker did.
    pulled : (num_bins,) bool
        Whether most of a bin's levels were pulled.
    """

    workers: tuple[str, ...]
    edges: Array
    wall_seconds: Array
    busy_seconds: Array
    bytes_read: Array
    sent_bytes: Array
    pulled: Array


class Measure(NamedTuple):
    """A panel: unit, name, unit of the ticks, and heights by worker and bin."""

    unit: str
    name: str
    ticks: str
    heights: Array


class Picture(Figure):
    """A figure that notebooks show although pyplot does not know it (pyplot's would be shown twice)."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png")
        return out.getvalue()


def plot_histogram(
    histogram: Callable[[int], Histogram],
    iterations: Sequence[Iteration],
    *,
    title: str,
    ax: Axes | None = None,
    figure: Figure | None = None,
) -> Figure | Axes:
    """Draw a histogram, made with as many bins as are drawn, and what iterations took; see `oocgraph.results.base.VertexResult.plot`."""
    counts = histogram(MAX_BINS)
    if ax is not None:
        _draw_counts(ax, counts)
        ax.set_title(title, loc="left", fontsize="medium", wrap=True)
        return ax
    series = collect(iterations, counts.edges) if iterations and counts.counts.size else None
    measures = _measures(series) if series is not None else []
    picture = Picture(figsize=(10, 1 + 2.4 * (1 + len(measures))), layout="constrained") if figure is None else figure
    picture.suptitle(title, fontsize="medium")
    panels = picture.subplots(1 + len(measures), 1, sharex=True, squeeze=False)[:, 0]
    _draw_counts(panels[0], counts)
    if series is not None and measures:
        _draw_measures(panels[1:], series, measures, per_bin=_per_bin(counts))
        panels[0].set_xlabel("")
        panels[-1].set_xlabel(counts.name)
        _add_legend(picture, panels[1])
    return picture


def _draw_counts(panel: Axes, histogram: Histogram) -> None:
    """Draw a histogram: bars of single values, or steps."""
    shift = 0.5 if histogram.is_whole and not histogram.is_log else 0.0
    edges, counts = histogram.edges - shift, histogram.counts
    if not counts.size:
        panel.text(0.5, 0.5, f"no {histogram.things}", transform=panel.transAxes, ha="center", color="0.4")
        panel.set(xticks=[], yticks=[])
        return
    if counts.size <= MAX_BARS and not histogram.is_log:
        panel.bar(edges[:-1] + np.diff(edges) / 2, counts, 0.8 * np.diff(edges), color=_DISTINCT[0])
    else:
        edges = np.maximum(edges, 0.5) if histogram.is_log and histogram.is_whole else edges
        panel.stairs(counts, edges, fill=True, color=_DISTINCT[0])
    _label(panel, f"{histogram.things}{_per_bin(histogram)}", "Vertices of each level" if histogram.name == "level" else "", EngFormatter())
    panel.set_xlabel(histogram.name)
    if histogram.is_log:
        panel.set_xscale("log")
    elif histogram.is_whole:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=12 if edges[-1] > 100 else 20))
    panel.set_xlim(edges[0] or edges[1] / 2, edges[-1])
    seen = counts[counts > 0]
    panel.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if seen.size and seen.max() > LOG_RATIO * seen.min():
        panel.set_yscale("log")
        panel.set_ylim(0.7 * seen.min(), 1.5 * seen.max())
        panel.yaxis.set_major_formatter(EngFormatter())


def _measures(series: Series) -> list[Measure]:
    """Return what is drawn of iterations: what is not zero everywhere."""
    on_cluster = series.workers != (IN_PROCESS,)
    measures = [
        Measure("seconds", "Busy time of each worker" if on_cluster else "Time", "s", series.busy_seconds),
        Measure("bytes", "Bytes read from the store", "B", series.bytes_read),
        Measure("bytes", "Bytes sent to other workers", "B", series.sent_bytes),
    ]
    return [one for one in measures if one.heights.any()]


def _draw_measures(panels: Iterable[Axes], series: Series, measures: Sequence[Measure], *, per_bin: str) -> None:
    for panel, measure in zip(panels, measures, strict=True):
        side_by_side = series.workers != (IN_PROCESS,) and measure.ticks == "s"
        draw = _draw_side_by_side if side_by_side else _draw_stacked
        draw(panel, series, measure.heights, _colours(len(series.workers)))
        if side_by_side:
            panel.stairs(series.wall_seconds, series.edges, color="black", linewidth=1, label="wall time")
        _shade_pulls(panel, series)
        _label(panel, f"{measure.unit}{per_bin}", measure.name, EngFormatter(measure.ticks))


def collect(iterations: Sequence[Iteration], edges: Array) -> Series:
    """Sum what is drawn into bins of levels, given by the edges of these.

    An iteration beyond the last level, which finds nothing, counts there.
    """
    workers = tuple(by_worker(iterations)) or (IN_PROCESS,)
    row = {worker: number for number, worker in enumerate(workers)}
    num_bins = edges.size - 1
    wall, pulls, levels = np.zeros((3, num_bins))
    busy, read, sent = np.zeros((3, len(workers), num_bins))
    places = np.searchsorted(edges, [one.level for one in iterations], side="right") - 1
    for iteration, at in zip(iterations, np.minimum(places, num_bins - 1).tolist(), strict=True):
        wall[at] += iteration.seconds
        pulls[at] += iteration.direction == "pull"
        levels[at] += 1
        for part in (_whole(iteration),) if workers == (IN_PROCESS,) else iteration.parts:
            at_worker = row[part.worker], at
            busy[at_worker] += part.seconds
            read[at_worker] += part.bytes_read
            sent[at_worker] += part.sent_bytes
    return Series(workers, edges - 0.5, wall, busy, read, sent, pulls > levels / 2)


def _whole(iteration: Iteration) -> PartMetrics:
    """Return an iteration of this process as its one part."""
    return PartMetrics(0, IN_PROCESS, iteration.direction, iteration.seconds, iteration.bytes_read, 0, 0)


def _colours(count: int) -> list[Any]:
    """Distinct colours that do not rely on telling red from green; a scale where there are more than a dozen."""
    if count <= len(_DISTINCT):
        return list(_DISTINCT[:count])
    return [colormaps["viridis"](place) for place in np.linspace(0, 0.95, count)]


_DISTINCT = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#332288")
"""Okabe and Ito, "Color Universal Design", 2008 (first six), and two of Tol's muted ones."""


def _draw_side_by_side(panel: Any, series: Series, heights: Array, colours: Sequence[Any]) -> None:
    """One bar for each worker in each bin; lines where there are many bins."""
    if heights.shape[1] > MAX_BARS:
        for worker, values, colour in zip(series.workers, heights, colours, strict=True):
            panel.stairs(values, series.edges, color=colour, linewidth=1, label=worker)
        return
    width = 0.8 / len(heights)
    for number, (worker, values, colour) in enumerate(zip(series.workers, heights, colours, strict=True)):
        left = series.edges[:-1] + 0.1 + number * width
        panel.bar(left, values, width, align="edge", color=colour, label=worker)


def _draw_stacked(panel: Any, series: Series, heights: Array, colours: Sequence[Any]) -> None:
    """Bars, or filled steps, one worker on top of the other."""
    bottoms = np.cumsum(heights, axis=0) - heights
    for worker, values, bottom, colour in zip(series.workers, heights, bottoms, colours, strict=True):
        if heights.shape[1] > MAX_BARS:
            panel.stairs(bottom + values, series.edges, baseline=bottom, fill=True, color=colour, label=worker)
        else:
            panel.bar(series.edges[:-1] + 0.5, values, 0.8, bottom=bottom, color=colour, label=worker)


def _shade_pulls(panel: Any, series: Series) -> None:
    """Grey behind the levels that were pulled."""
    changes = np.flatnonzero(np.diff(series.pulled, prepend=False, append=False))
    for start, stop in changes.reshape(-1, 2):
        panel.axvspan(series.edges[start], series.edges[stop], color="0.92", zorder=0, label="pull")


def _per_bin(histogram: Histogram) -> str:
    width = histogram.edges[1] - histogram.edges[0]
    if histogram.is_log or not histogram.is_whole:
        return " per bin"
    return "" if width == 1 else f" per {width} {histogram.name}s"


def _label(panel: Any, unit: str, title: str, ticks: Callable[[float, int], str]) -> None:
    panel.set_title(title, loc="left", fontsize="medium")
    panel.set_ylabel(unit)
    panel.yaxis.set_major_formatter(ticks)
    panel.set_ylim(bottom=0)
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _add_legend(picture: Figure, panel: Any) -> None:
    """Below the panels: workers, wall time, pulls."""
    handles, names = panel.get_legend_handles_labels()
    entries = dict(zip(names, handles, strict=True))  # one entry for all pulls
    entries.pop(IN_PROCESS, None)
    others = {name: entries.pop(name) for name in ("wall time", "pull") if name in entries}
    shown = dict(list(entries.items())[:MAX_NAMED])
    title = f"{len(entries):,} workers, {MAX_NAMED} of them named" if len(entries) > MAX_NAMED else None
    shown |= others
    picture.legend(list(shown.values()), list(shown), title=title, loc="outside lower center", ncols=4, frameon=False)
