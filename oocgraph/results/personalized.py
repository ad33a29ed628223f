"""What personalized PageRank returns: of each seed the ranks of all vertices, under the user's ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.lazy import cached_property
from oocgraph.results.values import ValuesResult
from oocgraph.store.columns import Ids, as_numpy, taken
from oocgraph.types import Array


class PersonalizedPageRankResult(ValuesResult):
    """Ranks as each of `seeds` sees them: ``rank_0``, ``rank_1``, ... in their order; `rank` has all of them, a column each.

    `num_iterations`; `seeds`, ids.
    """

    algorithm = "personalized-pagerank"

    @property
    def columns(self) -> Mapping[str, str]:  # type: ignore[override]
        """Columns beside ``vertices``: one for each seed."""
        return dict.fromkeys(self.__dict__.get("stored", ()), "float64")

    @cached_property
    def rank(self) -> Array:
        """Ranks of each of `vertices`, a column for each of `seeds`: (num_ids, num_seeds) float64; each column's sum is 1."""
        return self._matrix()

    def of(self, ids: Any, column: str | None = None, *, seed: Any = None) -> Any:
        """Return the ranks of one vertex, or of several, a row each: as all seeds see them, or one of them, by its id or its column.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        ArgumentError
            `seed` is no seed.
        """
        if column is not None or seed is not None:
            return super().of(ids, column or self._column_of(seed))
        return np.stack([np.asarray(super(PersonalizedPageRankResult, self).of(ids, name)) for name in self.columns], axis=-1)

    def top(self, count: int = 10, column: str | None = None, *, seed: Any = None) -> list[tuple[Any, float]]:
        """Ids and ranks of the vertices that rank highest as a seed sees them, given by its id or its column, by default the first.

        Raises
        ------
        ArgumentError
            `count` is no whole number, or negative; `seed` is no seed.
        """
        return super().top(count, column or (None if seed is None else self._column_of(seed)))

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`; a seed without edges keeps all that it has."""
        found = super().values_of(columns, vertices, numbers, start)
        alone = np.flatnonzero(numbers < 0)
        if alone.size:
            names = as_numpy(taken(vertices, alone))
            for name in columns:
                values = found[name]
                assert isinstance(values, np.ndarray)
                values[alone] = names == self.seeds[int(name.rpartition("_")[2])]
        return found

    def _column_of(self, seed: Any) -> str:
        parsed = self.ids.parse(seed).tolist()
        if len(parsed) != 1 or parsed[0] not in self.seeds:
            raise ArgumentError(f"{seed!r} is no seed of this result; its seeds are {', '.join(map(repr, self.seeds))}")
        return f"rank_{self.seeds.index(parsed[0])}"
