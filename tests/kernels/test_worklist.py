"""Work lists: each item is popped once, whatever comes in between; threads keep to their package and to the earliest bucket."""

from __future__ import annotations

import heapq
from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np
import pytest

from oocgraph.compiled import worklist
from oocgraph.compiled.intrinsics import atomic_add, load_acquire, sched_yield, set_word, usleep, word_at
from oocgraph.compiled.worklist import (
    BUCKET,
    FROM_OTHERS,
    FROM_OWN,
    POPPED,
    THREAD_WORDS,
    THREADS,
    bucket_of,
    is_over,
    make_operations,
    new_list,
    pop,
    push,
)

STATE = 15
"""A word of each thread that a list does not use: of the numbers that decide where it is interrupted."""


@nb.njit(nogil=True)
def interrupted(w, t):
    """Have other threads run, at every fourth place, and for longer now and then."""
    at = THREADS + t * THREAD_WORDS + STATE
    x = word_at(w, at) + 0x9E3779B9
    x ^= (x << 13) & 0xFFFFFFFF
    x ^= x >> 17
    set_word(w, at, x & 0xFFFFFFFF)
    if not x & 3:
        sched_yield()
    if not x & 0xFF0:
        usleep(np.uint32(20))


slow = make_operations(interrupted, nb.njit(nogil=True))
slow_push, slow_pop, slow_is_over = slow


def make_run(push, pop, is_over):
    """Return what a thread does: item i makes items 2i and 2i + 1 known; their buckets are up and down."""

    @nb.njit(nogil=True)
    def run(w, t, num_items, num_buckets, popped, refused):
        while True:
            found, item = pop(w, t)
            if not found:
                if is_over(w):
                    return
                sched_yield()
                continue
            atomic_add(popped, item, np.int32(1))
            for child in range(2 * item, min(2 * item + 2, num_items)):
                if not push(w, t, child * 7919 % num_buckets, child):
                    refused[t] += 1

    return run


run = make_run(push, pop, is_over)


@pytest.mark.parametrize("chunk_items", [8, 64])
@pytest.mark.parametrize("packages", [[0], [0, 1], [0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 2]])
def test_every_item_is_popped_once(chunk_items, packages):
    """A million of them, which all come from one that one thread has."""
    n = 1_000_000
    words = new_list(n, chunk_items, packages, num_bags=64)
    popped, refused = np.zeros(n, np.int32), np.zeros(len(packages), np.int64)
    push(words.ctypes.data, 0, 0, 1)
    with ThreadPoolExecutor(len(packages)) as pool:
        list(pool.map(lambda t: run(words.ctypes.data, t, n, 40, popped, refused), range(len(packages))))
    assert popped[0] == 0
    assert (popped[1:] == 1).all()
    assert not refused.any()


@nb.njit(nogil=True)
def schedules(words, fresh, t, num_threads, num_schedules, num_items, popped, wrong, meeting):
    """Run several lists in turn: the first thread makes each list while the other threads wait."""
    w = words.ctypes.data
    for k in range(num_schedules):
        if t == 0:
            words[:] = fresh
            popped[:] = 0
            for i in range(num_threads):
                words[THREADS + i * THREAD_WORDS + STATE] = k * 31 + i
            slow_push(w, 0, 3, 1)
        for _ in range(2):
            number = atomic_add(meeting, 0, 1) // num_threads
            while load_acquire(meeting, 0) < (number + 1) * num_threads:
                sched_yield()
            if _ == 0:
                while True:
                    found, item = slow_pop(w, t)
                    if not found:
                        if slow_is_over(w):
                            break
                        continue
                    atomic_add(popped, item, np.int32(1))
                    for child in range(2 * item, min(2 * item + 2, num_items)):
                        slow_push(w, t, child * 7 % 5, child)
        if t == 0:
            for item in range(1, num_items):
                if popped[item] != 1:
                    wrong[0] += 1


def test_threads_may_be_interrupted_anywhere(rounds):
    """Ten thousand schedules of three threads, with chunks of two items, fewer bags than buckets, and a list of chunks for each package."""
    packages, num_items, num_schedules = [0, 0, 1], 24, rounds(10_000)
    fresh = new_list(400, 2, packages, num_bags=3)
    words, popped = fresh.copy(), np.zeros(num_items, np.int32)
    wrong, meeting = np.zeros(1, np.int64), np.zeros(1, np.int64)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(schedules, words, fresh, t, 3, num_schedules, num_items, popped, wrong, meeting) for t in range(3)]
        for future in futures:
            future.result()
    assert meeting[0] == num_schedules * 2 * 3
    assert wrong[0] == 0


def test_a_thread_alone_has_the_order_of_a_heap():
    """The buckets of what it pops are those of a plain priority queue, whatever it pushes meanwhile."""
    rng = np.random.default_rng(1)
    words = new_list(10_000, 8, [0], num_bags=200)
    w, plain, mine, items = words.ctypes.data, [], [], set()
    for i in range(8000):
        if rng.random() < 0.55 or not plain:
            bucket = int(rng.integers(-50, 100))
            assert push(w, 0, bucket, i)
            heapq.heappush(plain, bucket)
            items.add(i)
        else:
            found, item = pop(w, 0)
            assert found
            items.remove(item)
            mine.append(bucket_of(w, 0))
            assert mine[-1] == heapq.heappop(plain)
    while plain:
        found, item = pop(w, 0)
        items.remove(item)
        assert bucket_of(w, 0) == heapq.heappop(plain)
    assert pop(w, 0) == (False, 0)
    assert not items
    assert is_over(w)


def test_chunks_come_from_the_own_package_first():
    """Of eight threads of four packages that have as much to do as each other, and take turns."""
    packages = [0, 0, 1, 1, 2, 2, 3, 3]
    words = new_list(1 << 18, 64, packages, num_bags=16)
    w = words.ctypes.data
    for i in range(1 << 17):
        assert push(w, i % 8, i >> 14, i)
    for i in range(1 << 17):
        assert pop(w, i % 8)[0]
    at = words[THREADS : THREADS + 8 * THREAD_WORDS].reshape(8, THREAD_WORDS)
    assert at[:, FROM_OWN].sum() >= 0.95 * at[:, [FROM_OWN, FROM_OTHERS]].sum() > 0
    assert at[:, POPPED].sum() == 1 << 17


def test_who_has_nothing_to_do_takes_what_others_have():
    """All work is given to one of eight threads that take turns: the others find nothing in at most a tenth of their turns."""
    packages = [0, 0, 1, 1, 2, 2, 3, 3]
    words = new_list(1 << 18, 64, packages, num_bags=16)
    w = words.ctypes.data
    for i in range(1 << 16):
        assert push(w, 0, 1, i)
    idle = np.zeros(8, np.int64)
    turns = 0
    while not is_over(w):
        turns += 1
        for t in range(8):
            idle[t] += not pop(w, t)[0]
    assert (idle <= 0.1 * turns).all()
    at = words[THREADS : THREADS + 8 * THREAD_WORDS].reshape(8, THREAD_WORDS)
    assert (at[2:, FROM_OTHERS] > 0).all()


def test_threads_go_to_the_earliest_bucket():
    """One that pushes it is there at once; the others when their bag is empty, or after as many items as a period has."""
    for period, most in ((0, 64), (4, 4)):
        words = new_list(10_000, 8, [0, 0], num_bags=16, period=period)
        w = words.ctypes.data
        for i in range(64):
            push(w, 1, 9, i)
        assert pop(w, 1)[0]
        for i in range(64):
            push(w, 0, 2, 100 + i)
        assert pop(w, 0) == (True, 100)
        assert bucket_of(w, 0) == 2
        late = 0
        while bucket_of(w, 1) == 9:
            late += 1
            assert pop(w, 1)[0]
        assert late <= most
        assert words[THREADS + THREAD_WORDS + BUCKET] == 2


def test_what_finds_no_chunk_is_refused():
    words = new_list(16, 8, [0], num_bags=4)
    w = words.ctypes.data
    pushed = [i for i in range(100) if push(w, 0, 0, i)]
    assert 16 <= len(pushed) < 100
    assert [pop(w, 0)[1] for _ in pushed] == pushed
    assert not pop(w, 0)[0]
    assert push(w, 0, 0, 5)
    assert pop(w, 0) == (True, 5)


def test_room_that_is_given_is_used():
    words = np.full(worklist.words_needed(100, 8, 2, 2, 8), -1, np.int64)
    assert new_list(100, 8, [0, 1], num_bags=8, room=words) is words
    push(words.ctypes.data, 1, 5, 7)
    assert pop(words.ctypes.data, 1) == (True, 7)


@pytest.mark.parametrize("period", [0, 1, 2])
@pytest.mark.parametrize("bucket", [1, 5, -5])
def test_what_is_pushed_after_nothing_was_found_is_found(period, bucket):
    words = new_list(1000, 8, [0, 0], num_bags=8, period=period)
    w = words.ctypes.data
    assert push(w, 0, 1, 11)
    assert pop(w, 0) == (True, 11)
    assert [pop(w, t)[0] for t in (0, 1, 0)] == [False] * 3
    assert is_over(w)
    assert push(w, 0, bucket, 22)
    assert not is_over(w)
    assert pop(w, 0) == (True, 22)
    assert not pop(w, 0)[0]
    assert is_over(w)
