"""Fork-join: every index once, whatever is stolen and however frames are nested; a frame ends after all that it has spawned."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np
import pytest

from oocgraph.compiled import deques
from oocgraph.compiled.fork_join import (
    CALLED,
    FINISHED,
    FRAME,
    FROM,
    GRAIN,
    HEIGHT,
    KIND,
    LOCALS,
    MOST_FRAMES,
    OVER,
    PIECE,
    TO,
    again,
    call,
    leave,
    new_frames,
    next_event,
)  # fmt: skip
from oocgraph.compiled.intrinsics import atomic_add, load_acquire, sched_yield, usleep
from oocgraph.team import Team

OUTER, INNER, AFTER = range(3)
"""Kinds of pieces: each index of an outer one calls a frame; when an inner frame has ended all that it has done is looked at again."""

WIDTH = LOCALS
"""Word of a frame that was called: where its own indices begin."""


@nb.njit(nogil=True)
def _interrupt(state):
    """Have other threads run, now and then."""
    state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
    draw = (state[0] >> 33) & 63
    if draw < 8:
        sched_yield()
    elif draw == 8:
        usleep(np.uint32(20))


@nb.njit(nogil=True)
def _mark(words, frames, stacks, t, groups, counts, done, wrong, state):
    """Count each index of a range; pieces larger than the grain are wrong."""
    while True:
        event, at = next_event(words, frames, stacks, t, groups, counts)
        if event == OVER:
            return
        if event == PIECE:
            atomic_add(wrong, 0, np.int64(frames[at + TO] - frames[at + FROM] > frames[at + GRAIN]))
            for i in range(frames[at + FROM], frames[at + TO]):
                atomic_add(done, i, 1)
            _interrupt(state)
        else:
            leave(words, stacks, t)


@nb.njit(nogil=True)
def _nest(words, frames, stacks, t, groups, counts, done, wrong, state, width):
    """Each outer index calls an inner frame over its own `width` indices, and when that is joined all of these are done once."""
    while True:
        event, at = next_event(words, frames, stacks, t, groups, counts)
        if event == OVER:
            return
        kind, root = frames[at + KIND], frames[at + CALLED]
        _interrupt(state)
        if event == PIECE and kind == OUTER:
            inner = call(frames, stacks, t, INNER, 0, width, 1)
            frames[inner + WIDTH] = frames[at + FROM] * width
        elif event == PIECE:
            for i in range(frames[at + FROM], frames[at + TO]):
                old = atomic_add(done, frames[root + WIDTH] + i, 1)
                atomic_add(wrong, 0, np.int64(old != (0 if kind == INNER else 1)))
        elif kind == INNER:
            for i in range(width):  # a frame that is joined has done all
                atomic_add(wrong, 0, np.int64(load_acquire(done, frames[at + WIDTH] + i) != 1))
            again(frames, at, AFTER, 0, width, 3)
        else:
            leave(words, stacks, t)


def run(kernel, threads, kind, size, grain, done, *arguments, seed=1):
    """Run a computation in threads; return how many things were wrong, and counts of threads."""
    words, (frames, stacks), counts, wrong = (
        deques.new_deques(threads),
        new_frames(threads),
        deques.new_counts(threads),
        np.zeros(1, np.int64),
    )
    groups = np.arange(threads) // 2
    call(frames, stacks, 0, kind, 0, size, grain)
    with ThreadPoolExecutor(threads) as pool:
        states = np.arange(seed, seed + threads).reshape(threads, 1) * 7919
        calls = [
            pool.submit(kernel, words, frames, stacks, t, groups, counts[t], done, wrong, states[t], *arguments) for t in range(threads)
        ]
        for one in calls:
            one.result()
    assert not stacks[:, HEIGHT].any()
    return int(wrong[0]), counts


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("grain", [1, 2, 3, 64, 5000])
def test_every_index_once(threads, grain):
    """Whatever the number of threads and the grain; pieces are never larger than that."""
    for size in (0, 1, 2, 3, 100, 4097):
        done = np.zeros(size + 1, np.int64)
        wrong, counts = run(_mark, threads, INNER, size, grain, done)
        assert not wrong
        assert (done[:size] == 1).all()
        assert not done[size]
        assert counts[:, deques.DONE].sum() >= size / grain


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8])
def test_frames_in_frames(threads):
    """On 40 schedules each: an inner frame is joined when all of it is done, and its second step comes after its first."""
    stolen = 0
    for seed in range(1, 41):
        outer, width = 1 + 37 * seed % 60, 1 + 13 * seed % 50
        done = np.zeros(outer * width, np.int64)
        wrong, counts = run(_nest, threads, OUTER, outer, 1, done, width, seed=seed)
        assert not wrong
        assert (done == 2).all()
        stolen += int(counts[:, : deques.MISSED].sum())
    assert (stolen > 0) == (threads > 1)


def test_a_frame_of_which_nothing_was_stolen_needs_no_atomic():
    """One thread takes back all that it spawns, so the count of finished work stays 0."""
    words, (frames, stacks), counts = deques.new_deques(1), new_frames(1), deques.new_counts(1)
    call(frames, stacks, 0, INNER, 0, 1000, 1)
    done, wrong, state = np.zeros(1000, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)
    _mark(words, frames, stacks, 0, np.zeros(1, np.int64), counts[0], done, wrong, state)
    assert (done == 1).all()
    assert not frames.reshape(-1, FRAME)[:, FINISHED].any()


def test_spawned_halves_are_those_of_recursive_for():
    """The first half of what is left stays, the second can be stolen, the largest first; midpoints count from the start of a range."""
    words, (frames, stacks), counts, groups = deques.new_deques(2), new_frames(2), deques.new_counts(2), np.zeros(2, np.int64)
    call(frames, stacks, 0, INNER, 1000, 1064, 8)
    event, at = next_event(words, frames, stacks, 0, groups, counts[0])
    assert (event, frames[at + FROM], frames[at + TO]) == (PIECE, 1000, 1008)
    event, half = next_event(words, frames, stacks, 1, groups, counts[1])
    assert (event, frames[half + FROM], frames[half + TO]) == (PIECE, 1032, 1040)
    assert frames[half + CALLED] == at
    assert counts[1, deques.STOLEN] == 1


def test_no_room_for_another_frame():
    """A thread whose stack is full gets no place for a frame, and does that work itself."""
    frames, stacks = new_frames(1)
    places = [call(frames, stacks, 0, INNER, 0, 1, 1) for _ in range(MOST_FRAMES + 1)]
    assert places[:-1] == [FRAME * i for i in range(MOST_FRAMES)]
    assert places[-1] == -1


def test_a_deque_without_room():
    """Frames inside each other spawn until the deque is full, and do the rest themselves, in pieces of the grain."""
    words, (frames, stacks), counts = deques.new_deques(1), new_frames(1), deques.new_counts(1)
    size = 1 << 40
    pieces = []
    for _ in range(3):
        call(frames, stacks, 0, INNER, 0, size, 1)
        event, at = next_event(words, frames, stacks, 0, np.zeros(1, np.int64), counts[0])
        assert event == PIECE
        pieces.append(int(frames[at + TO] - frames[at + FROM]))
    assert pieces == [1, 1, 1]
    assert not deques.has_room(words, 0)


def test_an_end_from_outside():
    """Threads that wait for others return when another thread ends the computation."""
    words, (frames, stacks), counts, groups = deques.new_deques(2), new_frames(2), deques.new_counts(2), np.zeros(2, np.int64)
    call(frames, stacks, 0, INNER, 0, 100, 1)
    with Team(2) as team:
        waits = team._helpers.submit(next_event, words, frames, stacks, 0, groups, counts[0])
        assert waits.result()[0] == PIECE
        deques.end(words)
        assert next_event(words, frames, stacks, 1, groups, counts[1])[0] == OVER
