"""Words in memory that processes share: waiting for one of several, setting one, locking one.

Addresses are of int64 words; who calls holds the memory. See `oocgraph.exchange.windows`.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import acquire_word, nanoseconds, release_word, sched_yield, swap_word, usleep

LATE = -1
"""Returned at the deadline."""

ABORTED = -2
"""Returned when the word that aborts is set."""

SPINS = 2_000
"""Looks before a thread lets others run."""

YIELD_NANOSECONDS = 1_000_000
"""Time after which it sleeps between two looks."""

MOST_SLEEP = 1_000
"""Microseconds of such a sleep at most: a tenth of the time in which a wait must end once it is aborted."""


@nb.njit(nogil=True, cache=True)
def await_word(addresses: Any, values: Any, abort: Any, deadline: Any, began: Any) -> Any:
    """Wait until one of some words has its value; the first of those that have it counts.

    Parameters
    ----------
    addresses, values : (n,) int64
        The words, and what each is waited for to be.
    abort
        Address of a word that ends the wait once it is not 0.
    deadline
        Monotonic clock in nanoseconds (``time.monotonic_ns``).
    began
        When who calls has begun to wait, for this is not the first of its calls; 0: now.

    Returns
    -------
    int
        Which word it is; `LATE`; `ABORTED`.
    """
    clock = np.zeros(2, np.int64)
    looks = 0
    while True:
        for i in range(addresses.size):
            if acquire_word(addresses[i], 0) == values[i]:
                return i
        if acquire_word(abort, 0) != 0:
            return ABORTED
        looks += 1
        if looks >= SPINS:
            now = nanoseconds(clock)
            if now >= deadline:
                return LATE
            began = now if began == 0 else began
            if now - began < YIELD_NANOSECONDS:
                sched_yield()
            else:
                usleep(np.uint32(min(MOST_SLEEP, (now - began) // 16_000)))


@nb.njit(nogil=True, cache=True)
def claim_word(address: Any, expected: Any, value: Any) -> Any:
    """Set a word, if it is what is expected, in one step; returns what it was."""
    return swap_word(address, 0, expected, value)


@nb.njit(nogil=True, cache=True)
def publish_word(address: Any, value: Any) -> Any:
    """Set a word behind all that was written before."""
    release_word(address, 0, value)


@nb.njit(nogil=True, cache=True)
def read_word(address: Any) -> Any:
    """Return a word, and all that was written before it was published."""
    return acquire_word(address, 0)
