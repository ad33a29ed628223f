"""Threads where their memory is: groups of cores that share a cache, threads bound to cores, arrays first touched by who uses them.

In: a number of threads and the machine's groups. Out: the group and core of each thread, and new arrays. Where there is one group, nothing
is bound and arrays are filled as they are elsewhere. Yasui, Fujisawa, Goto, "NUMA-optimized parallel breadth-first search on multicore
single-node system", IEEE Big Data 2013.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oocgraph.config import settings
from oocgraph.pool import Pool
from oocgraph.sparse.placement import NumaNode, cache_groups
from oocgraph.types import Array


class Thread(NamedTuple):
    """Where a thread works.

    Attributes
    ----------
    package : int
        Its group of cores, 0 and up.
    core : int or None
        The core it is bound to; None: it is not bound.
    """

    package: int
    core: int | None

    def bind(self) -> None:
        """Bind the thread that calls this; where the machine forbids it, it stays where it is."""
        if self.core is not None:
            try:
                os.sched_setaffinity(0, {self.core})
            except OSError:
                return


def place_threads(num_threads: int, groups: Sequence[NumaNode] | None = None) -> list[Thread]:
    """Distribute threads over groups of cores by their cores; where there is one group, or it is not wanted, none is bound.

    Examples
    --------
    >>> from oocgraph.sparse.placement import topology
    >>> [tuple(thread) for thread in place_threads(3, topology({0: [0, 1], 1: [2, 3]}))]
    [(0, 0), (0, 1), (1, 2)]
    """
    if groups is None:
        groups = cache_groups()
    if len(groups) < 2 or settings().pin_threads == "never" or not hasattr(os, "sched_setaffinity"):
        return [Thread(0, None)] * num_threads
    cores = [(package, core) for package, group in enumerate(groups) for core in group.workers]
    chosen = [cores[i * len(cores) // num_threads if num_threads < len(cores) else i % len(cores)] for i in range(num_threads)]
    names = sorted({package for package, _ in chosen})
    return [Thread(names.index(package), core) for package, core in sorted(chosen)]


def filled(length: int, number: Any, dtype: np.dtype[Any], threads: Sequence[Thread]) -> Array:
    """Return an array full of a number, (length,) `dtype`; each part of it is first touched by one of the threads, which are bound."""
    if len({thread.package for thread in threads}) < 2:
        return np.full(length, number, dtype)
    array = np.empty(length, dtype)
    cuts = np.linspace(0, length, len(threads) + 1).astype(np.int64).tolist()

    def fill(i: int) -> None:
        threads[i].bind()
        array[cuts[i] : cuts[i + 1]] = number

    with Pool(len(threads), "oocgraph-touch") as pool:
        for future in [pool.submit(fill, i) for i in range(len(threads))]:
            future.result()
    return array
