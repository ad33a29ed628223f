"""PageRank on the GPUs of this machine: the in-edges on them as far as they fit, the vectors always.

In: options and a run of `oocgraph.algorithms.pagerank`, devices. Out: a `DeviceRanking` that has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from oocgraph.algorithms.spmv_on_device import OpenedForGraph, device_rooms, stored_on
from oocgraph.arrays import Device
from oocgraph.kernels.semirings import semiring_of
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.products.device_ranking import DeviceRanking, RankVectors
from oocgraph.products.personalization import Personalization, charge_personalization
from oocgraph.products.rank_run import RankOptions
from oocgraph.products.ranking import Jumps, strength_of, vector_bytes


@contextmanager
def ranking_on(
    devices: Sequence[Device], options: RankOptions, opened: OpenedForGraph, budget: Budget, requested: str | int | None,
    begin: Callable[[], Personalization],
) -> Iterator[DeviceRanking]:  # fmt: skip
    """Yield iterations on devices; those of a graph that is open leave its edges there.

    Parameters
    ----------
    budget
        Of the host, charged before anything is read.
    requested
        Device memory that may be held, of each device.
    begin
        Called when the budget is charged; returns the personalization.

    Raises
    ------
    BudgetError
        Vectors and pieces of edges do not fit.
    ArgumentError
        A weight is negative, NaN or infinite.
    """
    store, column, ring = options.store, options.column, semiring_of("plus_times")
    with budget.all_or_none():
        budget.reserve("threads and compiled code", SLACK_BYTES)
        charge_personalization(store, options.personalization, budget)
        budget.reserve("ranks", vector_bytes(store, column, num_floats=1))
    personalization = begin()
    strength = strength_of(store, budget, column, options.resources.num_threads)

    def vectors() -> RankVectors:
        held = [opened.held_on_device(number) for number in range(len(devices))]
        return RankVectors(devices, store.num_rows, device_rooms(devices, opened, requested), held)

    with (
        opened.on_devices("ranks", vectors),
        stored_on(
            devices, store, opened, budget, transpose=True, column=column, dtype=np.dtype(np.float64), semiring=ring, requested=requested,
            whole_rows=True, repeats=True,
        ) as matrix,
    ):  # fmt: skip
        matrix.set_width(1)
        jumps = Jumps(store.num_rows, options.damping, personalization, "double")
        yield DeviceRanking(store, matrix, jumps=jumps, strength=strength)
