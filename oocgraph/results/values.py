"""What algorithms return that give each vertex a number, or the vertex that its group is named after.

In: arrays in store order, by column. Out: `ValuesResult`, whose columns are attributes, aligned with every input id
(`oocgraph.results.base`). An algorithm has a subclass of a few lines that names the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.listing import human, is_single, label
from oocgraph.results.base import VertexResult
from oocgraph.results.histogram import Histogram, finite, make_histogram, sizes_of_groups, with_others
from oocgraph.results.join import values_at
from oocgraph.results.writer import ID
from oocgraph.store.columns import Ids
from oocgraph.text import counted
from oocgraph.types import Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ValuesResult(VertexResult):
    """Values of all vertices under the user's vertex ids: every column is an attribute, (num_ids,), aligned with `vertices`.

    Parameters
    ----------
    stored
        Of each column (num_vertices,) in store order; of a column of ids store numbers.
    isolated
        Of each column of numbers the value of vertices without edges; in a column of ids they have their own.
    details
        What else there is to say; `summary` has it too.
    seconds, bytes_requested, bytes_read
        Time of the algorithm, loading apart; bytes asked of the store's files; the larger of these and the device bytes of the process.
    **others
        As of `oocgraph.results.base.VertexResult`.
    """

    groups: ClassVar[str] = ""
    """What a first column of ids makes of vertices; empty: none."""

    metrics = ("seconds", "bytes_read", "bytes_requested", "edge_bytes", "peak_host_bytes", "memory_budget", "load_seconds")

    stored: Mapping[str, Array]
    isolated: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    bytes_requested: int = 0
    bytes_read: int = 0

    def _answer(self) -> str:
        said = [_said(name, value) for name, value in self.details.items() if is_single(value)]
        return f" of {counted(self.ids.num_ids, 'vertices')}{': ' + ', '.join(said) if said else ''}"

    @property
    def answers(self) -> tuple[str, ...]:  # type: ignore[override]
        """Details that are single values."""
        return tuple(name for name, value in self.details.items() if is_single(value))

    def __getattr__(self, name: str) -> Any:
        """Return a column, which is kept, or a detail."""
        if name in self.columns:
            value = self.__dict__[name] = self._joined(name)
            return value
        details = self.__dict__.get("details", {})  # a copy that is being made has none yet
        if name in details:
            return details[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; it has vertices, {', '.join((*self.columns, *details))}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.columns, *self.details})

    def top(self, count: int = 10, column: str | None = None) -> list[tuple[Any, Any]]:
        """Ids and values of the vertices whose values are largest in a column, by default the first; of equals, the smaller id first.

        Of components and communities, the largest ones: their names and numbers of vertices. Holds 4 bytes a vertex.

        Raises
        ------
        ArgumentError
            `count` is no whole number, or negative; it has no such column, or the column has ids that are not groups.
        """
        chosen = self._chosen(column)
        if self.groups and chosen == next(iter(self.columns)):
            return self._top_groups(self.stored[chosen], count)
        if self.columns[chosen] == ID:
            numbers = [name for name, kind in self.columns.items() if kind != ID]
            remedy = f"; name another column: {', '.join(numbers)}" if numbers else ""
            raise ArgumentError(f"{chosen} has ids, of which none is the largest{remedy}")
        return self._top(chosen, count)

    def _matrix(self) -> Array:
        """Return all columns, which are alike: (num_ids, number of columns), aligned with `vertices`."""
        out, start = np.empty((self.ids.num_ids, len(self.columns)), next(iter(self.columns.values()))), 0
        for block in self.blocks():
            stop = start + len(block.vertices)
            for i, name in enumerate(self.columns):
                out[start:stop, i] = getattr(block, name)
            start = stop
        return out

    def summary(self) -> dict[str, Any]:
        """See `VertexResult.summary`."""
        plain = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in self.details.items()}
        return {**plain, **super().summary()}

    def _histogram(self, max_bins: int) -> Histogram:
        name, kind = next(iter(self.table_columns.items()))
        stored, num_ids = self.stored[name], self.ids.num_ids
        if kind == ID:
            return make_histogram(sizes_of_groups(stored, num_ids - stored.size), name="size", things=self.groups, max_bins=max_bins)
        every = with_others(stored, self.isolated[name], num_ids)
        return make_histogram(lambda: map(self._known, every()), name=name.replace("_", " "), things="vertices", max_bins=max_bins)

    def _known(self, values: Array) -> Array:
        """Return those of some values that are values."""
        return finite(values)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        found = dict[str, Ids]()
        for name in columns:
            if self.columns[name] == ID:
                found[name] = self._named(self.stored[name], vertices, numbers)
            else:
                found[name] = values_at(self.stored[name], numbers, self.isolated[name], self.columns[name])
        return found


def _said(name: str, value: Any) -> str:
    """Return a detail as a part of a sentence: ``7 communities``, ``modularity 0.43``."""
    if name.startswith("num_"):
        return counted(value, label(name))
    return f"{label(name)} {human(name, value)}"
