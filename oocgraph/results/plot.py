"""Pictures of results: of a search time and bytes of each level, by worker; of others how many vertices have which value.

The only module that imports matplotlib. In: the iterations of a search, with parts (on a cluster) or without (in process: one series);
or values. Out: a matplotlib figure with one panel for each measure. Workers run at the same time, so their seconds stand side by side;
bytes add up, so they are stacked. Up to `MAX_BARS` levels each have bars of their own; more are drawn as steps over at most `MAX_BINS` bins
of consecutive levels, each bin the sum of its levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from oocgraph.results.search import Iteration, PartMetrics, by_worker
from oocgraph.types import Array

MAX_BARS = 40
"""Levels that are drawn as bars."""

MAX_BINS = 200
"""Bins that more levels are summed into: a step is then at least three pixels wide."""

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


class Picture(Figure):
    """A figure that notebooks show although pyplot does not know it (pyplot's would be shown twice)."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png")
        return out.getvalue()


def plot_levels(iterations: Sequence[Iteration], *, title: str, figure: Figure | None = None) -> Figure:
    """Draw time and bytes of each level, by worker; see `oocgraph.results.bfs.BFSResult.plot`."""
    series = collect(iterations)
    on_cluster = series.workers != (IN_PROCESS,)
    measures = [
        ("seconds", "Busy time of each worker" if on_cluster else "Time", "s", series.busy_seconds),
        ("bytes", "Bytes read from the store", "B", series.bytes_read),
        ("bytes", "Bytes sent to other workers", "B", series.sent_bytes),
    ][: 3 if on_cluster else 2]
    picture = Picture(figsize=(10, 2.8 * len(measures)), layout="constrained") if figure is None else figure
    picture.suptitle(title, fontsize="medium")
    panels = picture.subplots(len(measures), 1, sharex=True)
    for panel, (unit, name, ticks, heights) in zip(panels, measures, strict=True):
        draw = _draw_side_by_side if on_cluster and ticks == "s" else _draw_stacked
        draw(panel, series, heights, _colours(len(series.workers)))
        if draw is _draw_side_by_side:
            panel.stairs(series.wall_seconds, series.edges, color="black", linewidth=1, label="wall time")
        _shade_pulls(panel, series)
        _label(panel, f"{unit}{_per_bin(series)}", name, EngFormatter(ticks))
        if not heights.any():
            panel.set_ylim(0, 1)
            panel.set_yticks([0])
            panel.text(0.5, 0.5, "none", transform=panel.transAxes, ha="center", color="0.4")
    panels[-1].set_xlabel("level")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=12 if series.edges[-1] > 100 else 20))
    panels[-1].set_xlim(series.edges[0], series.edges[-1])
    _add_legend(picture, panels[0])
    return picture


def plot_counts(values: Array, *, name: str, title: str, figure: Figure | None = None) -> Figure:
    """Draw how many vertices have which value; see `oocgraph.results.base.VertexResult.plot`."""
    picture = Picture(figsize=(10, 2.8), layout="constrained") if figure is None else figure
    picture.suptitle(title, fontsize="medium")
    panel = picture.subplots()
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    is_whole = values.dtype.kind in "iu"
    step = max(1, -(-int(high - low + 1) // MAX_BINS)) if is_whole else 0
    edges = np.arange(low - 0.5, high + step + 0.5, step) if is_whole else np.linspace(low, high or 1.0, MAX_BINS + 1)
    panel.stairs(np.histogram(values, edges)[0], edges, fill=True, color=_DISTINCT[0])
    panel.set_xlabel(name)
    panel.set_ylabel("vertices")
    panel.set_xlim(edges[0], edges[-1])
    panel.yaxis.set_major_formatter(EngFormatter())
    return picture


def collect(iterations: Sequence[Iteration]) -> Series:
    """Sum what is drawn into bins: one for each level, or for several consecutive ones."""
    workers = tuple(by_worker(iterations)) or (IN_PROCESS,)
    row = {worker: number for number, worker in enumerate(workers)}
    width = 1 if len(iterations) <= MAX_BARS else -(-len(iterations) // MAX_BINS)
    num_bins = max(1, -(-len(iterations) // width))
    first = iterations[0].level if iterations else 1
    edges = np.minimum(first + width * np.arange(num_bins + 1.0), first + max(1, len(iterations))) - 0.5
    wall, pulls = np.zeros((2, num_bins))
    busy, read, sent = np.zeros((3, len(workers), num_bins))
    for number, iteration in enumerate(iterations):
        at = number // width
        wall[at] += iteration.seconds
        pulls[at] += iteration.direction == "pull"
        for part in (_whole(iteration),) if workers == (IN_PROCESS,) else iteration.parts:
            at_worker = row[part.worker], at
            busy[at_worker] += part.seconds
            read[at_worker] += part.bytes_read
            sent[at_worker] += part.sent_bytes
    return Series(workers, edges, wall, busy, read, sent, pulls > np.diff(edges) / 2)


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


def _per_bin(series: Series) -> str:
    width = round(series.edges[1] - series.edges[0])
    return "" if width == 1 else f" per {width} levels"


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
