"""What may be asked of PageRank, and what is meant by it: numbers in their ranges, a column of weights, a personalization of sum 1.

In: arguments as the user gave them. Out: what the iterations take, or one error that says what is wrong and what would be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.memory import SLACK_BYTES
from oocgraph.products.ranking import Precision, RankState
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.scipy import weight_column


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """What the ranks depend on, and what may be used for them; see `oocgraph.pagerank`.

    Attributes
    ----------
    column
        Edge column of the weights; None: every edge counts 1.
    """

    store: CSRStore
    damping: float
    column: str | None
    personalization: Any
    precision: Precision
    threads: int | None
    memory_budget: str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The last state of a run, and how it was reached; see `oocgraph.PageRankResult`."""

    state: RankState
    edge_bytes: int
    kept_bytes: int
    load_seconds: float
    memory_budget: int


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


def result_bytes(store: CSRStore, given: Any) -> int:
    """Return what is held when the ranks are written: ranks, the personalization by input id, and what the writer takes."""
    wanted = 0 if given is None else 8 * store.attributes.num_input_vertices
    return 8 * store.num_vertices + wanted + SLACK_BYTES + writing_bytes(store)
