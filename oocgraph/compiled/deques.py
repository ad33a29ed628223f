"""Deques of ranges, one for each thread: its owner takes the newest, who has nothing left steals the oldest, and nobody waits for a lock.

In: ranges of piece numbers, one for each thread. Out: one piece after the other, each once. A range of more than one piece is halved
by whoever takes it: the second half goes on the deque, where others can steal it. So the oldest range of a deque is its largest, and
splitting is itself done by all threads.

A deque is a row of int64 words: ``top`` (who steals moves it, by one compare-and-swap), ``bottom`` (its owner moves it), and ranges, each
as one word. Deques are as long as a number of pieces has bits: what is on one is at most half as long as what was put before it.

Chase, Lev, "Dynamic Circular Work-Stealing Deque", SPAA 2005. Differs in: a deque has a fixed length, and a range is a word.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add, compare_and_swap, exchange, load_acquire, sched_yield, store_release, usleep
from oocgraph.compiled.load import Call

TOP, BOTTOM, FIRST, ROW = 0, 8, 16, 64
"""Words of a deque, each of the two in a cache line of its own, then the ranges."""

LEFT, STOP, SHARED = 0, 8, 16
"""Words in front of all deques: pieces that nobody has begun; whether all are to end."""

OVER = -1
"""No piece is left."""

STOLEN, STOLEN_FAR, MISSED, SLEPT, DONE = range(5)
"""Counts of a thread: ranges stolen from threads of its own group of cores, and of others; attempts in vain; microseconds slept; pieces."""

NAP = 20
"""Microseconds that a thread sleeps which has found nothing a few times: somebody is about to put a half on a deque."""


class Member(NamedTuple):
    """A thread of a team (`oocgraph.team`), as compiled loops take it.

    Attributes
    ----------
    words
        The deques of all.
    number : int
        Which one it is.
    groups : (num_threads,) int64
        Group of cores of each.
    steals : bool
        Whether it takes from others.
    counts : (8,) int64
        What it has done.
    """

    words: Any
    number: int
    groups: Any
    steals: bool
    counts: Any


@nb.njit(nogil=True, cache=True, inline="always")
def _slot(t: Any, place: Any) -> Any:
    return SHARED + t * ROW + FIRST + place % (ROW - FIRST)


@nb.njit(nogil=True, cache=True)
def put(words: Any, t: Any, task: Any) -> None:
    """Put a range at the bottom of the deque of thread t, who calls this."""
    at = SHARED + t * ROW + BOTTOM
    bottom = words[at]
    store_release(words, _slot(t, bottom), task)
    store_release(words, at, bottom + 1)


@nb.njit(nogil=True, cache=True)
def has_room(words: Any, t: Any) -> Any:
    """Whether thread t, who calls this, can put another range on its deque."""
    at = SHARED + t * ROW
    return words[at + BOTTOM] - load_acquire(words, at + TOP) < ROW - FIRST


@nb.njit(nogil=True, cache=True)
def take(words: Any, t: Any) -> Any:
    """Take the newest range of the own deque; -1: there is none."""
    row = SHARED + t * ROW
    bottom = words[row + BOTTOM] - 1
    exchange(words, row + BOTTOM, bottom)  # before top is looked at
    top = load_acquire(words, row + TOP)
    if top > bottom:
        store_release(words, row + BOTTOM, bottom + 1)
        return np.int64(-1)
    task = load_acquire(words, _slot(t, bottom))
    if top == bottom:  # the last one: whoever moves top has it
        if compare_and_swap(words, row + TOP, top, top + 1) != top:
            task = np.int64(-1)
        store_release(words, row + BOTTOM, bottom + 1)
    return task


@nb.njit(nogil=True, cache=True)
def steal(words: Any, victim: Any) -> Any:
    """Take the oldest range of another deque; -1: there is none, or somebody else was quicker."""
    row = SHARED + victim * ROW
    top = atomic_add(words, row + TOP, 0)  # before bottom is looked at
    if top >= load_acquire(words, row + BOTTOM):
        return np.int64(-1)
    task = load_acquire(words, _slot(victim, top))
    return task if compare_and_swap(words, row + TOP, top, top + 1) == top else np.int64(-1)


@nb.njit(nogil=True, cache=True)
def rob(words: Any, t: Any, groups: Any, state: Any, counts: Any) -> Any:
    """Try to steal from some other threads, at random: the first two of the own group, if it has others."""
    n = groups.size
    for attempt in range(2 * n):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        victim = np.int64(state % np.uint64(n))
        if attempt < 2:
            for _ in range(n):
                if victim != t and groups[victim] == groups[t]:
                    break
                victim = (victim + 1) % n
        if victim == t:
            continue
        task = steal(words, victim)
        if task >= 0:
            counts[STOLEN if groups[victim] == groups[t] else STOLEN_FAR] += 1
            return task, state
        counts[MISSED] += 1
    return np.int64(-1), state


@nb.njit(nogil=True, cache=True)
def nap(vain: Any, counts: Any) -> None:
    """Wait a little, having found nothing so many times."""
    if vain < 4:
        sched_yield()
    else:
        usleep(np.uint32(NAP))
        counts[SLEPT] += NAP


@nb.njit(nogil=True, cache=True)
def next_piece(words: Any, t: Any, groups: Any, steals: Any, counts: Any) -> Any:
    """Return the number of the next piece for thread t, or `OVER`.

    Parameters
    ----------
    words
        From `new_deques`.
    groups : (num_threads,) int64
        Group of cores of each thread.
    steals : bool
        Whether it may take from others.
    counts : (8,) int64
        Of this thread, from `new_counts`; added to.
    """
    state, vain = np.uint64(t + 1) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(words[LEFT]), 0
    while not load_acquire(words, STOP):
        task = take(words, t)
        if task < 0:
            if not steals or load_acquire(words, LEFT) <= 0:
                return OVER
            task, state = rob(words, t, groups, state, counts)
        if task >= 0:
            first, stop = task >> 32, task & 0xFFFFFFFF
            while stop - first > 1:
                middle = first + (stop - first) // 2
                put(words, t, middle << 32 | stop)
                stop = middle
            atomic_add(words, LEFT, -1)
            counts[DONE] += 1
            return first
        vain += 1
        nap(vain, counts)
    return OVER


@nb.njit(nogil=True, cache=True)
def end(words: Any) -> None:
    """Have all threads find nothing any more."""
    store_release(words, STOP, 1)


def new_deques(num_threads: int) -> Any:
    """Return deques on which nothing is: int64 words."""
    return np.zeros(SHARED + num_threads * ROW, np.int64)


def new_counts(num_threads: int) -> Any:
    """Return counts of each thread: (num_threads, 8) int64, a cache line for each; see `STOLEN`."""
    return np.zeros((num_threads, 8), np.int64)


def fill(words: Any, cuts: Any) -> None:
    """Put a range on each deque, while nobody works: thread t has pieces ``cuts[t] .. cuts[t + 1] - 1``."""
    words[:] = 0
    words[LEFT] = cuts[-1]
    for t, (first, stop) in enumerate(itertools.pairwise(cuts)):
        if stop > first:
            put(words, t, first << 32 | stop)


def team_calls() -> list[Call]:
    """Return what threads that share work call, with arguments of the types that they have."""
    words = new_deques(1)
    return [(next_piece, (words, 0, words, True, new_counts(1)[0])), (put, (words, 0, 0)), (end, (words,))]
