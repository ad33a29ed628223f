"""What may be asked of PageRank, and what is meant by it: numbers in their ranges, a column of weights, a personalization of sum 1.

In: arguments as the user gave them. Out: what the iterations take, or one error that says what is wrong and what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.products.ranking import Precision, Wanted
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import BLOCK_BYTES, positions_of, to_store_order
from oocgraph.store.scipy import weight_column
from oocgraph.types import Array


def check_arguments(
    damping: float, tol: float, max_iter: int, weights: str | bool | None, precision: str, threads: int | None, checkpoint_every: int
) -> None:
    """Refuse what cannot be meant.

    Raises
    ------
    OocGraphError
        It names the argument, what was given and what may be.
    """
    for name, value, low, why in (
        ("damping", damping, 0, "at least 0 and less than 1"),
        ("tol", tol, 0, "0 or more"),
    ):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not low <= value < (1 if name == "damping" else np.inf):
            raise OocGraphError(f"{name} is {value!r}; it must be a number, {why}")
    for name, count in (("max_iter", max_iter), ("threads", 1 if threads is None else threads), ("checkpoint_every", checkpoint_every)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise OocGraphError(f"{name} is {count!r}; it must be a whole number, 1 or more")
    if weights is not None and not isinstance(weights, str | bool):
        raise OocGraphError(f"weights is {weights!r}; it must be the name of an edge column, True, False or None")
    if precision not in get_args(Precision):
        raise OocGraphError(f"precision is {precision!r}; it must be one of {', '.join(get_args(Precision))}")


def chosen_column(store: CSRStore, weights: str | bool | None) -> str | None:
    """Return the edge column that is meant; None: every edge counts 1.

    Raises
    ------
    OocGraphError
        There is no such column, or it holds no numbers.
    """
    if weights is False:
        return None
    if weights is True and not store.attributes.weighted:
        raise OocGraphError(f"weights=True asks for the weight of {store.url}, which has none; name an edge column, or leave weights out")
    column = weight_column(store, weights if isinstance(weights, str) else None)
    if column is not None:
        dtype = store.array(f"out/{column}").dtype
        if dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype == np.float16:
            raise OocGraphError(f"{column} of {store.url} is of dtype {dtype}; weights must be bools, integers, float32 or float64")
    return column


def charge_wanted(store: CSRStore, given: Any, budget: Budget) -> None:
    """Reserve what `wanted_of` makes."""
    budget.reserve("vertex ids", BLOCK_BYTES)
    if given is not None:
        budget.reserve("personalization", 8 * (store.attributes.num_input_vertices + store.num_vertices))


def result_bytes(store: CSRStore, given: Any) -> int:
    """Return what is held when the ranks are written: ranks, the personalization by input id, and what the writer takes."""
    wanted = 0 if given is None else 8 * store.attributes.num_input_vertices
    return 8 * store.num_vertices + wanted + SLACK_BYTES + writing_bytes(store)


def wanted_of(store: CSRStore, given: Any) -> Wanted:
    """Return the personalization, of sum 1, by input id and in store order.

    Raises
    ------
    OocGraphError
        It has the wrong length, is no vector of numbers, has a negative one, or sums up to 0.
    VertexNotFoundError
        An id does not occur in the graph's input.
    """
    num_ids, num_isolated = store.attributes.num_input_vertices, store.attributes.num_isolated
    if given is None:
        return Wanted(num_ids, num_isolated)
    if isinstance(given, Mapping):
        by_id = np.zeros(num_ids)
        by_id[positions_of(store, list(given))] = _numbers(list(given.values()))
    else:
        by_id = _numbers(given)
        if by_id.size != num_ids:
            raise OocGraphError(
                f"personalization has {by_id.size:,} numbers but {store.url} has {num_ids:,} vertices, isolated ones included; give one "
                "for each, or a dictionary from ids to numbers"
            )
    _check_wanted(by_id)
    by_id /= by_id.sum()
    by_vertex = np.empty(store.num_vertices)
    to_store_order(store, by_id, by_vertex)
    return Wanted(num_ids, num_isolated, by_id, by_vertex)


def _numbers(given: Any) -> Array:
    """Return a new vector of float64."""
    try:
        numbers = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise OocGraphError(f"personalization must be numbers ({error})") from error
    if numbers.ndim != 1:
        raise OocGraphError(f"personalization has {numbers.ndim} dimensions; it must be one vector, or a dictionary from ids to numbers")
    return numbers


def _check_wanted(by_id: Array) -> None:
    if by_id.size and not 0 <= by_id.min() <= by_id.max() < np.inf:
        bad = int(np.flatnonzero(~((by_id >= 0) & (by_id < np.inf)))[0])
        raise OocGraphError(f"personalization of the vertex at position {bad} is {by_id[bad]}; it must be finite and not negative")
    if by_id.size and not 0 < by_id.sum() < np.inf:
        raise OocGraphError(f"personalization sums up to {by_id.sum()}; at least one vertex must have more than 0, and the sum be finite")
