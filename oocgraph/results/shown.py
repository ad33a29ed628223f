"""A result as people see it: in one line, in a notebook, as a histogram, as a picture, and by its largest values.

In: what a subclass says of itself (`Shown.answers`, `_answer`, `_run`, `_histogram`). Out: text, HTML, a `Histogram`, a figure. What a user
asks for comes first, what the run took last.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oocgraph.arguments import check_whole
from oocgraph.errors import ArgumentError, MissingDependencyError
from oocgraph.listing import html_listing, is_single
from oocgraph.results.histogram import Histogram, finite, group_sizes, make_histogram
from oocgraph.results.mapping import VertexMapping
from oocgraph.store.columns import Ids, as_numpy, taken
from oocgraph.store.vertices import VertexIds
from oocgraph.text import counted, format_number
from oocgraph.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from oocgraph.results.search import Iteration

TOP_VERTICES = 1 << 16
"""Vertices looked at once for those whose values are largest."""


class Shown(VertexMapping):
    """What all results have in common that people see; the base of `oocgraph.results.base.VertexResult`.

    Attributes
    ----------
    answers : tuple of str
        Attributes that notebooks show first.
    """

    answers: ClassVar[tuple[str, ...]] = ()

    ids: VertexIds
    load_seconds: float

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return metrics."""

    @abstractmethod
    def blocks(self, block_size: int | None = None, *, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Iterate over the result in blocks."""

    @abstractmethod
    def _chosen(self, column: str | None) -> str:
        """Return a column, by default the first."""

    def histogram(self, max_bins: int = 20) -> Histogram:
        """Count how many vertices have which value in the first column, or how large groups are, in at most `max_bins` bins.

        Raises
        ------
        ArgumentError
            `max_bins` is no whole number of at least 2.
        """
        return self._histogram(check_whole("max_bins", max_bins, least=2))

    def plot(self, ax: Axes | None = None, *, figure: Figure | None = None) -> Figure | Axes:
        """Draw how many vertices have which value; of a search also the time and the bytes of each level, by worker.

        Parameters
        ----------
        ax
            Draw only how many vertices have which value, here.
        figure
            Draw on this one, such as a ``pyplot.figure()`` that has a window; by default a new one, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure, or `ax`

        Raises
        ------
        ArgumentError
            `ax` and `figure` are both given.
        MissingDependencyError
            matplotlib is not installed.
        """
        if ax is not None and figure is not None:
            raise ArgumentError("ax and figure exclude each other: axes are on a figure already; give one of them")
        try:
            from oocgraph.results.plot import plot_histogram
        except ImportError as error:
            raise MissingDependencyError(
                "plot needs matplotlib, which is not installed: `pip install oocgraph[plot]`; result.histogram() has the counts"
            ) from error
        title = f"{self._kind().removesuffix('Result')}{self._answer()}"
        return plot_histogram(self._histogram, self._iterations(), title=title, ax=ax, figure=figure)

    def _histogram(self, max_bins: int) -> Histogram:
        def parts() -> Iterator[Array]:
            for _, values in self._parts():
                yield finite(as_numpy(values))

        return make_histogram(parts, name=self._chosen(None).replace("_", " "), things="vertices", max_bins=max_bins)

    def _iterations(self) -> Sequence[Iteration]:
        """Return what a plot shows of the run: metrics of levels, if there are any."""
        return ()

    def _kind(self) -> str:
        """Return the name of the class, which is the same wherever the result was computed."""
        return type(self).__name__.removeprefix("Dask")

    def _answer(self) -> str:
        """Return what the result says, as it follows the name of the class."""
        return f" of {counted(self.ids.num_ids, 'vertices')}"

    def _run(self) -> str:
        """Return what the run took."""
        return f"{format_number(getattr(self, 'seconds', self.load_seconds))} s"

    def __repr__(self) -> str:
        return f"<{self._kind()}{self._answer()}; {self._run()}>"

    def _repr_html_(self) -> str:
        first = {name: value for name in self.answers if (value := getattr(self, name)) != ""}
        rest = {name: value for name, value in self.summary().items() if is_single(value) and name not in first}
        return html_listing(self._kind(), {"num_vertices": self.ids.num_ids, **first}, rest)

    def _top(self, column: str, count: int) -> list[tuple[Any, float]]:
        """Ids and values of the vertices whose values are largest, in descending order; of equals, the smaller id first.

        Raises
        ------
        ArgumentError
            `count` is no whole number, or negative.
        """
        return _best(((block.vertices, getattr(block, column)) for block in self.blocks(TOP_VERTICES, columns=(column,))), count)

    def _top_groups(self, member_of: Array, count: int) -> list[tuple[Any, int]]:
        """Ids and sizes of the largest groups, as `_top`, by the store number of the vertex that the group of each vertex is named after.

        Raises
        ------
        ArgumentError
            `count` is no whole number, or negative.
        """

        def parts() -> Iterator[tuple[Ids, Array]]:
            sizes = group_sizes(member_of)
            for vertices, numbers in self.ids.stored_blocks(TOP_VERTICES):
                named = np.ones(numbers.size, np.int64)  # isolated vertices are groups of their own
                named[numbers >= 0] = sizes[numbers[numbers >= 0]]
                yield vertices, named

        return _best(parts(), count, above=0)


def _best(parts: Iterator[tuple[Ids, Array]], count: int, *, above: float = -np.inf) -> list[tuple[Any, Any]]:
    """Return ids and values of those with the largest values, in descending order; of equals, the one that comes first."""
    count = check_whole("count", count, least=0)
    best: list[tuple[Any, Any]] = []
    for vertices, values in parts if count else ():
        (places,) = np.nonzero(values > (best[-1][1] if len(best) == count else above))
        chosen = values[places]
        places = places[np.argsort(~chosen if chosen.dtype.kind == "b" else -chosen, kind="stable")[:count]]
        found = zip(as_numpy(taken(vertices, places)).tolist(), values[places].tolist(), strict=True)
        best = sorted([*best, *found], key=lambda pair: -pair[1])[:count]
    return best
