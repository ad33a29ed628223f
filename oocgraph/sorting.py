"""Sort keys that are in memory, in one thread or in several, by NumPy or by digits: whichever is quicker on this machine.

NumPy's sort needs no room. With the vector instructions of some processors it is the quickest there is, 5 ns a key; where it does not use
them (an EPYC of Zen 4, NumPy 2.4) each of a million keys takes 52 ns, by digits 8 in one thread (`oocgraph.kernels.bucket_sort`) and 13
in a team (`oocgraph.kernels.sort`). So both are measured once there is enough to sort. The result is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from oocgraph.compiled import deques
from oocgraph.compiled.deques import Member
from oocgraph.compiled.fork_join import new_frames
from oocgraph.compiled.load import Call, has_room, load_if_kept, load_kernels
from oocgraph.kernels.bucket_sort import WIDEST, bucket_bits, range_of, sort_in_buckets
from oocgraph.kernels.sort import MOST_RANGES, MOST_SHARES, VALUES, SortArrays, open_range, sort_together
from oocgraph.team import Team, team_of
from oocgraph.types import Array

LARGE = 1 << 14
"""Keys from which on a sort by digits may pay: of 1,000 keys NumPy sorts one in 12 ns, digits in 20; of 30,000 in 32 and 18."""

TRIAL_AFTER = 1 << 22
"""Keys that a process sorts by NumPy before it compiles the kernels to find out: the 5 s are lost in builds that take 0.2 s."""

TRIAL_KEYS, TRIALS = 1 << 16, 3
"""Keys that are sorted to find out, and how often: 15 ms in all."""

KEY_SECONDS = 2e-8
"""About what a key takes to sort, to tell little work."""


Room = Callable[[int, Any], Array]
"""Returns memory for so many elements of a dtype, such as ``np.empty``."""


def sort_keys(keys: Array, room: Room = np.empty, *, threads: int = 1) -> None:
    """Sort int64 or uint64 keys in their place, with room for as many if they are sorted by digits.

    Keys of a long range, such as hashes, are sorted as by a team in one thread, too.
    """
    if keys.size < LARGE or not _is_worth_a_trial(keys.size) or not digits_pay():
        keys.sort()
        return
    if threads == 1 and keys.dtype == np.uint64 and _sort_narrow(keys, room):
        return
    with team_of(threads) as team:
        sort_by_digits(keys, room(keys.size, keys.dtype), team)


def _sort_narrow(keys: Array, room: Room) -> bool:
    """Sort keys of a short range in this thread; returns whether the range is short enough."""
    low, high = (int(end) for end in range_of(keys))
    width = (high - low).bit_length()
    if width > WIDEST:
        return False
    bits = bucket_bits(keys.size, width)
    rest = room(2 * keys.size, np.uint32)
    ends, at = np.empty((1 << bits) + 1, np.int64), np.empty(4 * VALUES, np.uint32)
    sort_in_buckets(keys, np.uint64(low), np.uint64(width - bits), ends, rest[: keys.size], rest[keys.size :], at)
    return True


def _is_worth_a_trial(num_keys: int) -> bool:
    """Whether this process has sorted enough, and there is room to compile the kernels; or they are in memory anyway."""
    _num_sorted[0] += num_keys
    return bool(sort_together.overloads) or (_num_sorted[0] >= TRIAL_AFTER and has_room())


_num_sorted = [0]
"""Keys that may have been sorted by digits so far; it does not matter if threads that add to it at once lose some."""


def load_sorts() -> None:
    """Bring the kernels of a sort by digits into memory, if they are cached; a small build has no use for what compiling them takes."""
    load_if_kept(sort_calls())


def sort_calls() -> list[Call]:
    """Return what a sort by digits calls."""
    keys, (frames, stacks) = np.empty(0, np.uint64), new_frames(1)
    values = np.empty(0, np.uint32)
    alone: list[Call] = [
        (range_of, (np.zeros(1, np.uint64),)),
        (sort_in_buckets, (keys, np.uint64(0), np.uint64(1), np.zeros(2, np.int64), values, values, np.zeros(4 * VALUES, np.uint32))),
    ]
    return [*alone, *_kernel_calls(_arrays(keys, keys, 1), frames, stacks)]


def sort_by_digits(keys: Array, other: Array, team: Team) -> None:
    """Sort int64 or uint64 keys in their place, all threads of a team together (`oocgraph.kernels.sort`); `other` has room for as many."""
    if not keys.size:
        return
    frames, stacks = new_frames(team.threads)
    arrays = _arrays(keys, other, team.threads)
    load_kernels(_kernel_calls(arrays, frames, stacks))
    open_range(frames, stacks, 0, 0, keys.size, 0)

    def sort(member: Member) -> None:
        sort_together(member.words, frames, stacks, member.number, member.groups, member.counts, arrays)

    team.fork_join(sort, KEY_SECONDS * keys.size)


def _arrays(keys: Array, other: Array, threads: int) -> SortArrays:
    sign = np.uint64(1 << 63 if keys.dtype.kind == "i" else 0)
    counts, digits = np.empty((threads * MOST_RANGES, MOST_SHARES, VALUES), np.int64), np.empty((threads, VALUES), np.int64)
    return SortArrays(keys.view(np.uint64), other.view(np.uint64), sign, counts, digits)


def _kernel_calls(arrays: SortArrays, frames: Array, stacks: Array) -> list[Call]:
    counts = deques.new_counts(1)[0]
    return [
        (open_range, (frames, stacks, 0, 0, 0, 0)),
        (sort_together, (frames, frames, stacks, 0, frames, counts, arrays)),
    ]


@cache
def digits_pay() -> bool:
    """Whether a sort by digits takes less than NumPy's, by the processor time of one thread."""
    drawn = np.random.default_rng(1).integers(0, 1 << 40, TRIAL_KEYS, dtype=np.uint64)
    load_kernels(sort_calls())
    ours = min(_seconds(lambda keys: _sort_narrow(keys, np.empty), drawn) for _ in range(TRIALS))
    theirs = min(_seconds(np.ndarray.sort, drawn) for _ in range(TRIALS))
    return ours < theirs


def _seconds(sort: Callable[[Array], object], drawn: Array) -> float:
    keys = drawn.copy()
    began = time.thread_time()
    sort(keys)
    return time.thread_time() - began
