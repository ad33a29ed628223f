"""Sort keys by their bits, all threads of a team together: a nested fork-join that first divides all keys and then sorts parts in cache.

In: int64 or uint64 keys as bits, and room for as many. Out: the same keys ascending, in their place. A range is sorted in steps, each of
which is a ``recursive_for`` (`oocgraph.compiled.fork_join`) over shares of the range, the last over buckets:

1. SPREAD: which bits differ at all. Packed keys of a bin agree in their upper ones.
2. COUNT: keys of each share and bucket. The bucket of a key is its uppermost bits that differ: up to eight, as many as divide the range
   into buckets of about half of `CUT_OFF`.
3. MOVE: keys to the other array, bucket by bucket.
4. BUCKETS: one thread sorts a bucket of up to `CUT_OFF` keys by digits, the least significant first; a larger one is a range again, a
   frame of its own.

Where all keys are equal COPY takes the place of 2 to 4. Differs from a quicksort with a cut-off in that no thread partitions all keys
alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.fork_join import CALLED, FROM, KIND, LOCALS, OVER, PIECE, again, call, leave, next_event

CUT_OFF = 1 << 16
"""Keys that one thread sorts alone: with room for as many a MiB, a core's second cache. 10^7 took 0.18 s of its time, with 2^15 0.21 s."""

FEW = 32
"""Keys that are sorted by insertion."""

DIGIT, VALUES = 8, 256
"""Bits of a digit, and its values."""

SHARE, MOST_SHARES = 1 << 15, 64
"""Keys of a share at the least, and shares of a range at the most."""

MOST_RANGES = 10
"""Ranges inside each other that a thread may have open: each has counts of 128 KiB. One thread sorts what would be a further one."""

SPREAD, COUNT, MOVE, BUCKETS, COPY = range(5)
"""Steps of a range."""

BEGIN, END, IS_MOVED, SHARES, SHIFT, BUCKET_COUNT, PLACE = range(LOCALS, LOCALS + 7)
"""Words of a range: its keys, whether they are in the other array, its shares, the lowest bit of its digit, its buckets, its counts."""

OPENED = 2
"""Word of a thread's stack: ranges that are open."""


class SortArrays(NamedTuple):
    """What threads that sort share.

    Attributes
    ----------
    keys, other : (n,) uint64
        Keys, and room for as many.
    flip : uint64
        Bits to invert before keys are compared: the sign of int64.
    counts : (num_threads * MOST_RANGES, MOST_SHARES, VALUES) int64
        Of each share of a range: keys in each bucket, then where the next one goes.
    digits : (num_threads, VALUES) int64
        The same of a thread that sorts alone.
    """

    keys: Any
    other: Any
    flip: Any
    counts: Any
    digits: Any


@nb.njit(nogil=True, cache=True)
def _insert(source: Any, keys: Any, begin: Any, end: Any, flip: Any) -> None:
    """Sort few keys into their place."""
    for i in range(begin, end):
        key, j = source[i], i
        while j > begin and (keys[j - 1] ^ flip) > (key ^ flip):
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@nb.njit(nogil=True, cache=True)
def _sort_by_digit(source: Any, target: Any, begin: Any, end: Any, shift: Any, flip: Any, at: Any) -> None:
    """Move a range to the other array, ordered by one digit; `at` is (VALUES,) int64 scratch."""
    at[:] = 0
    for i in range(begin, end):
        at[((source[i] ^ flip) >> shift) & np.uint64(VALUES - 1)] += 1
    place = begin
    for value in range(VALUES):
        size = at[value]
        at[value] = place
        place += size
    for i in range(begin, end):
        key = source[i]
        value = ((key ^ flip) >> shift) & np.uint64(VALUES - 1)
        target[np.uint64(at[value])] = key
        at[value] += 1


@nb.njit(nogil=True, cache=True)
def _width_of(number: Any) -> Any:
    """Return the bits of a number."""
    width = 0
    while width < 64 and number >> np.uint64(width):
        width += 1
    return width


@nb.njit(nogil=True, cache=True)
def spread_of(source: Any, begin: Any, end: Any, first: Any) -> Any:
    """Return the bits in which some key of a range differs from `first`."""
    differ = np.uint64(0)
    for i in range(begin, end):
        differ |= source[i] ^ first
    return differ


@nb.njit(nogil=True, cache=True)
def sort_alone(keys: Any, other: Any, begin: Any, end: Any, is_moved: Any, flip: Any, at: Any) -> None:
    """Sort a range in one thread: by each digit in which keys differ, the least significant first.

    Parameters
    ----------
    keys, other, flip
        As in `SortArrays`. The result is in `keys`.
    is_moved
        Whether the range is in `other`.
    at : (VALUES,) int64
        Scratch.
    """
    if end - begin <= FEW:
        _insert(other if is_moved else keys, keys, begin, end, flip)
        return
    first = other[begin] if is_moved else keys[begin]
    differ = spread_of(other if is_moved else keys, begin, end, first)
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if (differ >> shift) & np.uint64(VALUES - 1):
            if is_moved:
                _sort_by_digit(other, keys, begin, end, shift, flip, at)
            else:
                _sort_by_digit(keys, other, begin, end, shift, flip, at)
            is_moved = not is_moved
    if is_moved:
        for i in range(begin, end):  # of a slice numba compiles the message for other lengths, too: 2 s
            keys[i] = other[i]


@nb.njit(nogil=True, cache=True)
def open_range(frames: Any, stacks: Any, t: Any, begin: Any, end: Any, is_moved: Any) -> Any:
    """Call a frame that sorts a range; returns whether there was room for it."""
    if stacks[t, OPENED] >= MOST_RANGES:
        return False
    shares = min(MOST_SHARES, max(1, (end - begin) // SHARE))
    at = call(frames, stacks, t, SPREAD, 0, shares, 1)
    if at < 0:
        return False
    frames[at + BEGIN], frames[at + END], frames[at + IS_MOVED], frames[at + SHARES] = begin, end, is_moved, shares
    frames[at + PLACE] = t * MOST_RANGES + stacks[t, OPENED]
    stacks[t, OPENED] += 1
    return True


@nb.njit(nogil=True, cache=True)
def _do_share(a: Any, frames: Any, at: Any, step: Any, share: Any) -> None:
    """Take a step of a range with one of its shares."""
    begin, size, shares = frames[at + BEGIN], frames[at + END] - frames[at + BEGIN], frames[at + SHARES]
    source, target = (a.other, a.keys) if frames[at + IS_MOVED] else (a.keys, a.other)
    counts, shift = a.counts[frames[at + PLACE], share], np.uint64(frames[at + SHIFT])
    first, stop = begin + size * share // shares, begin + size * (share + 1) // shares
    mask = np.uint64(frames[at + BUCKET_COUNT] - 1)
    if step == SPREAD:
        counts[0] = np.int64(spread_of(source, first, stop, source[begin]))
    elif step == COUNT:
        counts[:] = 0
        for i in range(first, stop):
            counts[((source[i] ^ a.flip) >> shift) & mask] += 1
    elif step == MOVE:
        for i in range(first, stop):
            key = source[i]
            value = ((key ^ a.flip) >> shift) & mask
            target[np.uint64(counts[value])] = key
            counts[value] += 1
    else:
        for i in range(first, stop):
            target[i] = source[i]


@nb.njit(nogil=True, cache=True)
def _do_bucket(a: Any, frames: Any, stacks: Any, t: Any, at: Any, value: Any) -> None:
    """Sort a bucket, or call a frame that does."""
    ends = a.counts[frames[at + PLACE], frames[at + SHARES] - 1]
    begin, end = ends[value - 1] if value else frames[at + BEGIN], ends[value]
    is_moved = 1 - frames[at + IS_MOVED]
    if end > begin and (end - begin <= CUT_OFF or not open_range(frames, stacks, t, begin, end, is_moved)):
        sort_alone(a.keys, a.other, begin, end, is_moved, a.flip, a.digits[t])


@nb.njit(nogil=True, cache=True)
def _next_step(a: Any, words: Any, frames: Any, stacks: Any, t: Any, at: Any) -> None:
    """Go on with a range all of whose shares have taken a step."""
    step, shares, counts = frames[at + KIND], frames[at + SHARES], a.counts[frames[at + PLACE]]
    if step == SPREAD:
        differ = np.uint64(0)
        for share in range(shares):
            differ |= np.uint64(counts[share, 0])
        bits, width = _width_of(differ), _width_of(np.uint64(frames[at + END] - frames[at + BEGIN]) // np.uint64(CUT_OFF // 2))
        frames[at + SHIFT] = max(0, bits - min(DIGIT, width))
        frames[at + BUCKET_COUNT] = 1 << min(bits, DIGIT, width)
        if bits or frames[at + IS_MOVED]:
            again(frames, at, COUNT if bits else COPY, 0, shares, 1)
            return
    elif step == COUNT:
        place = frames[at + BEGIN]
        for value in range(frames[at + BUCKET_COUNT]):
            for share in range(shares):
                size = counts[share, value]
                counts[share, value] = place
                place += size
        again(frames, at, MOVE, 0, shares, 1)
        return
    elif step == MOVE:
        again(frames, at, BUCKETS, 0, frames[at + BUCKET_COUNT], 1)
        return
    stacks[t, OPENED] -= 1
    leave(words, stacks, t)


@nb.njit(nogil=True, cache=True)
def sort_together(words: Any, frames: Any, stacks: Any, t: Any, groups: Any, counts: Any, a: Any) -> Any:
    """Take part in a sort as thread t, until it has ended; returns the pieces that this thread has done.

    Thread 0 opens the range of all keys (`open_range`) before anyone takes part. Other arguments are as for `next_event`.
    """
    pieces = 0
    while True:
        event, at = next_event(words, frames, stacks, t, groups, counts)
        if event == OVER:
            return pieces
        if event == PIECE:
            step, called, number = frames[at + KIND], frames[at + CALLED], frames[at + FROM]
            if step == BUCKETS:
                _do_bucket(a, frames, stacks, t, called, number)
            else:
                _do_share(a, frames, called, step, number)
            pieces += 1
        else:
            _next_step(a, words, frames, stacks, t, at)
