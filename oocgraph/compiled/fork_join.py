"""Nested fork-join over the deques of a team: each thread makes one call for a whole computation, and nothing of it is Python.

In: frames. A frame is one ``recursive_for(start, end, grain)``: ``while end - start > grain: mid = start + (end - start) // 2;
spawn(mid, end); end = mid``, then the frame's own piece. (Lecture notes print ``mid = (end - start) / 2``, which is right only for a
``start`` of 0.) A spawned half becomes a frame when a thread takes it, so all threads spawn. Out: events, which a compiled loop handles:

====== ==================================================================================================================
PIECE  run what ``frames[at + KIND]`` says on ``frames[at + FROM] .. frames[at + TO] - 1``; to do so it may `call` a frame
JOINED all of a frame that was called is done: `again` begins its next step, `leave` ends it
OVER   the computation has ended
====== ==================================================================================================================

Cilk runs the child and leaves the rest of the parent to thieves, which needs a compiler. Here the parent goes on and its children can be
stolen. An entry of a deque is one word: a frame, and which of its halves. The range follows from both.

**Sync.** The owner counts the halves that it has put on its deque and not taken back. Thieves take the oldest first, so once a half of the
frame on top is stolen nothing older is left; when the owner finds nothing to take, all that it still counts was stolen. A thief adds one to
the frame's `FINISHED` when it is done, and the frame is joined when that is the number stolen. A frame of which nothing was stolen needs
no atomic. A thread that waits steals other work, on top of its own frames. No threads wait in a circle: each frame waits for frames that
began later.

Each thread has its frames on a stack in memory, in place of recursive calls: numba 0.68 crashes when it loads a recursive function
from its cache.

Frigo, Leiserson, Randall, "The Implementation of the Cilk-5 Multithreaded Language", PLDI 1998. Differs in: children are stolen, not
continuations.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.deques import DONE, end, has_room, nap, put, rob, take
from oocgraph.compiled.deques import STOP as ENDED
from oocgraph.compiled.intrinsics import atomic_add, load_acquire

FIRST, STOP, GRAIN, KIND, CALLED = range(5)
"""Words of a frame: its range, most indices of a piece, what to do with them, and the frame that was called (itself, or that of a half)."""

FROM, TO, LIMIT, PUT, PARENT, STATE = range(5, 11)
"""The piece; end of what is not spawned; halves on the deque; the frame that a stolen half reports to, or -1; see `_NEW`."""

LOCALS, FINISHED, FRAME = 16, 24, 32
"""Words that belong to the loop (8); stolen halves that are done, in a cache line of its own; words of a frame."""

MOST_FRAMES, MOST_BELOW_STOLEN = 256, 128
"""Frames of a thread, and up to how many it has when it steals."""

PIECE, JOINED, OVER = 0, 1, -1
"""Events."""

HEIGHT, DRAWN = 0, 1
"""Words of a thread's stack: the number of its frames, and the state of its random choice of victims."""

_NEW, _PIECES, _SYNC = range(3)
"""States of a frame: nothing is spawned; the own piece is given out; halves are to be taken back or waited for."""

_HALVES = 64
"""Halves of a frame: fewer than this."""


def new_frames(num_threads: int) -> tuple[Any, Any]:
    """Return the frames of threads, flat, and their stacks: (num_threads, 8) int64, a cache line for each."""
    stacks = np.zeros((num_threads, 8), np.int64)
    stacks[:, DRAWN] = np.arange(1, num_threads + 1) * 0x9E3779B97F4A7C
    return np.zeros(num_threads * MOST_FRAMES * FRAME, np.int64), stacks


@nb.njit(nogil=True, cache=True)
def call(frames: Any, stacks: Any, t: Any, kind: Any, first: Any, stop: Any, grain: Any) -> Any:
    """Put a frame on top of those of thread t, who calls this and goes on with it; returns where it is, or -1: there is no room."""
    if stacks[t, HEIGHT] >= MOST_FRAMES:
        return np.int64(-1)
    at = _push(stacks, t)
    frames[at + CALLED], frames[at + PARENT] = at, -1
    again(frames, at, kind, first, stop, grain)
    return at


@nb.njit(nogil=True, cache=True)
def again(frames: Any, at: Any, kind: Any, first: Any, stop: Any, grain: Any) -> None:
    """Begin the next step of a frame that was joined."""
    frames[at + FIRST], frames[at + STOP], frames[at + GRAIN], frames[at + KIND] = first, stop, grain, kind
    frames[at + FROM] = frames[at + TO] = first
    frames[at + PUT], frames[at + FINISHED], frames[at + STATE] = 0, 0, _NEW


@nb.njit(nogil=True, cache=True)
def leave(words: Any, stacks: Any, t: Any) -> None:
    """End the frame on top, which was called; with the first of all ends the computation."""
    stacks[t, HEIGHT] -= 1
    if stacks[t, HEIGHT] == 0:
        end(words)


@nb.njit(nogil=True, cache=True)
def _push(stacks: Any, t: Any) -> Any:
    at = (t * MOST_FRAMES + stacks[t, HEIGHT]) * FRAME
    stacks[t, HEIGHT] += 1
    return at


@nb.njit(nogil=True, cache=True)
def _push_half(frames: Any, stacks: Any, t: Any, task: Any, stolen: Any) -> None:
    """Make a frame of a half; if it was stolen it reports to its parent."""
    parent = task // _HALVES
    first, stop = frames[parent + FIRST], frames[parent + STOP]
    for _ in range(task % _HALVES):
        stop = first + (stop - first) // 2
    at = _push(stacks, t)
    frames[at + CALLED], frames[at + PARENT] = frames[parent + CALLED], parent if stolen else -1
    again(frames, at, frames[parent + KIND], first + (stop - first) // 2, stop, frames[parent + GRAIN])


@nb.njit(nogil=True, cache=True)
def _spawn(words: Any, frames: Any, stacks: Any, t: Any, at: Any) -> None:
    """Put the second half of what is left on the deque until that is a piece; what has no room there the owner does itself."""
    first, stop, number = frames[at + FIRST], frames[at + STOP], np.int64(0)
    while stop - first > frames[at + GRAIN] and stacks[t, HEIGHT] < MOST_FRAMES and has_room(words, t):
        put(words, t, at * _HALVES + number)
        number += 1
        stop = first + (stop - first) // 2
    frames[at + PUT], frames[at + LIMIT], frames[at + STATE] = number, stop, _PIECES


@nb.njit(nogil=True, cache=True)
def _next_piece(frames: Any, at: Any) -> Any:
    """Set the next piece of a frame; returns whether there is one."""
    frames[at + FROM] = frames[at + TO]
    frames[at + TO] = min(frames[at + FROM] + frames[at + GRAIN], frames[at + LIMIT])
    return frames[at + FROM] < frames[at + TO]


@nb.njit(nogil=True, cache=True)
def _join(words: Any, frames: Any, stacks: Any, t: Any, at: Any) -> Any:
    """Take a half back, if one is left; returns whether the frame is joined, and whether there is nothing to do but wait."""
    if frames[at + PUT] == 0:
        return True, False
    task = take(words, t)
    if task < 0:
        joined = load_acquire(frames, at + FINISHED) == frames[at + PUT]
        return joined, not joined
    frames[at + PUT] -= 1
    _push_half(frames, stacks, t, task, False)
    return False, False


@nb.njit(nogil=True, cache=True)
def _end_half(frames: Any, stacks: Any, t: Any, at: Any) -> None:
    """Forget a half that is done."""
    stacks[t, HEIGHT] -= 1
    if frames[at + PARENT] >= 0:
        atomic_add(frames, frames[at + PARENT] + FINISHED, 1)


@nb.njit(nogil=True, cache=True)
def next_event(words: Any, frames: Any, stacks: Any, t: Any, groups: Any, counts: Any) -> Any:
    """Return what thread t has to do next, and the frame.

    Parameters
    ----------
    words
        Deques, from `new_deques`.
    frames, stacks
        From `new_frames`.
    groups, counts
        As for `oocgraph.compiled.deques.next_piece`.
    """
    vain = 0
    while not load_acquire(words, ENDED):
        waits, at = True, np.int64(-1)
        if stacks[t, HEIGHT]:
            at = (t * MOST_FRAMES + stacks[t, HEIGHT] - 1) * FRAME
            if frames[at + STATE] == _NEW:
                _spawn(words, frames, stacks, t, at)
            if frames[at + STATE] == _PIECES:
                if _next_piece(frames, at):
                    counts[DONE] += 1
                    return PIECE, at
                frames[at + STATE] = _SYNC
            joined, waits = _join(words, frames, stacks, t, at)
            if joined:
                if frames[at + CALLED] == at:
                    return JOINED, at
                _end_half(frames, stacks, t, at)
        if waits:
            if stacks[t, HEIGHT] < MOST_BELOW_STOLEN:
                task, state = rob(words, t, groups, np.uint64(stacks[t, DRAWN]), counts)
                stacks[t, DRAWN] = np.int64(state)
                if task >= 0:
                    _push_half(frames, stacks, t, task, True)
                    vain = 0
                    continue
            vain += 1
            nap(vain, counts)
    return OVER, np.int64(-1)
