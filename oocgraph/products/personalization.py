"""The personalization of PageRank: a teleport probability for every vertex, by input id and in store order.

In: a dictionary from ids to numbers, or a number for each input id. Out: `Personalization`, or one error that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.memory import Budget
from oocgraph.products.product_checks import is_labelled
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import BLOCK_BYTES, to_store_order
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

CHECKED_ELEMENTS = 1 << 16
"""Elements looked at together, so that nothing of O(vertices) is made beside them."""


@dataclass(frozen=True, slots=True)
class Personalization:
    """Teleport probabilities, which sum to 1.

    Attributes
    ----------
    num_ids, num_isolated : int
        Vertices, and those without edges.
    by_id : (num_ids,) float64, or None
        By input id; None: 1 / N each.
    by_vertex : (num_vertices,) float64, or None
        The same in store order.
    """

    num_ids: int
    num_isolated: int
    by_id: Array | None = None
    by_vertex: Array | None = None

    def of_isolated(self) -> float:
        """Sum over the isolated vertices."""
        if self.by_id is None or self.by_vertex is None:
            return self.num_isolated / max(1, self.num_ids)
        return max(0.0, float(self.by_id.sum()) - float(self.by_vertex.sum())) if self.num_isolated else 0.0

    def first_change(self, scale: float) -> float:
        """Change of isolated vertices from 1 / N each to `scale` times what they want."""
        if self.by_id is None or self.by_vertex is None:
            return abs(scale - 1) * self.of_isolated()
        sums = [
            sum(
                float(np.abs(scale * values[a : a + CHECKED_ELEMENTS] - 1 / self.num_ids).sum())
                for a in range(0, values.size, CHECKED_ELEMENTS)
            )
            for values in (self.by_id, self.by_vertex)
        ]
        return max(0.0, sums[0] - sums[1]) if self.num_isolated else 0.0


def charge_personalization(store: CSRStore, given: Any, budget: Budget) -> None:
    """Reserve what `personalization_of` makes."""
    budget.reserve("vertex ids", BLOCK_BYTES)
    if given is not None:
        budget.reserve("personalization", 8 * (store.attributes.num_input_vertices + store.num_rows))


def personalization_of(store: CSRStore, given: Any) -> Personalization:
    """Return the personalization, of sum 1, by input id and in store order.

    Raises
    ------
    ArgumentError
        It has the wrong length, is no vector of numbers, has a negative one, or sums up to 0.
    VertexNotFoundError
        An id does not occur in the graph's input.
    """
    num_ids, num_isolated = store.attributes.num_input_vertices, store.attributes.num_isolated
    if given is None:
        return Personalization(num_ids, num_isolated)
    if isinstance(given, Mapping) or is_labelled(given):
        ids, numbers = list(given.keys()), _numbers([value for _, value in given.items()])
        bad = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
        if bad.size:
            raise ArgumentError(f"personalization of {ids[bad[0]]!r} is {numbers[bad[0]]}; it must be finite and not negative")
        by_id = np.zeros(num_ids)
        by_id[VertexIds(store).positions_of(ids)] = numbers
    else:
        by_id = _numbers(given)
        if by_id.size != num_ids:
            raise ArgumentError(
                f"personalization has {by_id.size:,} numbers but {store.url} has {num_ids:,} vertices, isolated ones included; give one "
                "for each, or a dictionary from ids to numbers"
            )
    _check_personalization(by_id)
    by_id /= by_id.sum()
    by_vertex = np.empty(store.num_rows)
    to_store_order(store, by_id, by_vertex)
    return Personalization(num_ids, num_isolated, by_id, by_vertex)


def _numbers(given: Any) -> Array:
    """Return a new vector of float64."""
    try:
        numbers = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"personalization must be numbers, one for each vertex, or a dictionary from ids to numbers ({error})"
        ) from error
    if numbers.ndim != 1:
        raise ArgumentError(f"personalization has {numbers.ndim} dimensions; it must be one vector, or a dictionary from ids to numbers")
    return numbers


def _check_personalization(by_id: Array) -> None:
    if by_id.size and not 0 <= by_id.min() <= by_id.max() < np.inf:
        bad = int(np.flatnonzero(~((by_id >= 0) & (by_id < np.inf)))[0])
        raise ArgumentError(f"personalization of the vertex at position {bad} is {by_id[bad]}; it must be finite and not negative")
    if by_id.size and not 0 < by_id.sum() < np.inf:
        raise ArgumentError(f"personalization sums up to {by_id.sum()}; at least one vertex must have more than 0, and the sum be finite")
