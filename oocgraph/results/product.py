"""A vector over the vertices of a graph, such as a product that `oocgraph.spmv` has returned, as a result that can be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.results.base import VertexResult
from oocgraph.store.columns import Ids
from oocgraph.types import Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VectorResult(VertexResult):
    """A vector under the user's vertex ids.

    Parameters
    ----------
    by_id : (num_ids,) bools or numbers
        By input id, ascending, isolated ones included.
    **others
        As of `oocgraph.results.base.VertexResult`.
    """

    algorithm = "spmv"
    columns = {"value": "float64"}

    by_id: Array

    @property
    def value(self) -> Array:
        """The vector: (num_ids,) float64."""
        return self.by_id.astype(np.float64, copy=False)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        return {"value": self.by_id[start : start + numbers.size].astype(np.float64, copy=False)}

    def _values_at(self, columns: Sequence[str], given: Any) -> dict[str, Array]:
        return {"value": self.value[self.ids.positions_of(given)]}
