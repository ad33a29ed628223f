"""The arguments of PageRank, validated: numbers in their ranges, a column of weights, a personalization of sum 1.

In: arguments as the user gave them. Out: what the iterations take, or one error that says what is wrong and what would be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.arguments import check_number, check_whole, is_number
from oocgraph.errors import ArgumentError
from oocgraph.memory import SLACK_BYTES
from oocgraph.products.ranking import RankState
from oocgraph.results.writer import writing_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.scipy import weight_column
from oocgraph.types import Precision

SCHEDULES = ("auto", "in-place")
"""Iterations, each from all ranks of the one before; or sweeps, in which ranks are used as soon as they are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The last state of a run, and how it was reached; see `oocgraph.PageRankResult`."""

    state: RankState
    edge_bytes: int
    kept_bytes: int
    load_seconds: float
    memory_budget: int


def check_arguments(damping: float, tol: float, max_iter: int, weight: str | bool | None) -> None:
    """Validate the arguments before any I/O.

    Raises
    ------
    ArgumentError
        One is invalid.
    """
    if not (is_number(damping) and 0 <= damping < 1):
        raise ArgumentError(f"damping is {damping!r}; it must be a number, at least 0 and less than 1")
    check_number("tol", tol, low=0)
    check_whole("max_iter", max_iter, least=1)
    if weight is not None and not isinstance(weight, str | bool):
        raise ArgumentError(f"weight is {weight!r}; it must be the name of an edge column, True, False or None")


def is_in_place(schedule: str, precision: Precision, *, is_on_cluster: bool) -> bool:
    """Whether a schedule is ``in-place``.

    Raises
    ------
    ArgumentError
        There is no such schedule, or it cannot be had here.
    """
    if schedule not in SCHEDULES:
        raise ArgumentError(f"schedule is {schedule!r}; it must be one of {', '.join(SCHEDULES)}")
    if schedule == "auto":
        return False
    if is_on_cluster:
        raise ArgumentError(
            "schedule is 'in-place'; a cluster has auto alone, as its workers exchange ranks once an iteration: leave it out, or run in "
            "this process"
        )
    if precision == "single":
        raise ArgumentError("schedule is 'in-place', which gathers float64; set oocgraph.precision to auto or double")
    return True


def chosen_column(store: CSRStore, weight: str | bool | None) -> str | None:
    """Return the edge column of the weights; None: every edge counts 1.

    Raises
    ------
    ArgumentError
        There is no such column, or it holds no numbers.
    """
    if weight is False:
        return None
    if weight is True and not store.attributes.weighted:
        raise ArgumentError(f"weight is True, but {store.url} has no weight; name an edge column, or leave weight out")
    column = weight_column(store, weight if isinstance(weight, str) else None)
    if column is not None:
        dtype = store.array(f"out/{column}").dtype
        if dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype == np.float16:
            named = store.attributes.input_column(column)
            raise ArgumentError(f"{named} of {store.url} is of dtype {dtype}; weights must be bools, integers, float32 or float64")
    return column


def result_bytes(store: CSRStore, given: Any) -> int:
    """Return what is held when the ranks are written: ranks, the personalization by input id, and what the writer takes."""
    personalization = 0 if given is None else 8 * store.attributes.num_input_vertices
    return 8 * store.num_rows + personalization + SLACK_BYTES + writing_bytes(store)
