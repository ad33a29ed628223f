"""Work lists beside a queue of Python: time of a push and a pop, where chunks come from, and how often an earlier item was waiting.

In: a number of threads. Out: metrics. Each item that is popped makes two known, at up to `AHEAD` buckets later, until `NUM_ITEMS` are.
"""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add, load_acquire, sched_yield
from oocgraph.compiled.worklist import FROM_OTHERS, FROM_OWN, THREAD_WORDS, THREADS, bucket_of, is_over, new_list, pop, push
from oocgraph.config import settings
from oocgraph.types import Array

NUM_ITEMS = 1 << 20
NUM_BUCKETS, AHEAD = 1 << 10, 8
NUM_ROUNDS = 5


@nb.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _push_and_pop(w: Any, num_items: Any) -> Any:
    total = np.int64(0)
    for i in range(num_items):
        push(w, 0, 0, i)
    for _ in range(num_items):
        total += pop(w, 0)[1]
    return total


@nb.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _work(w: Any, t: Any, waiting: Any, many: Any, counts: Any) -> None:
    """Pop until all is done; `counts` gets items, those at whose time more than `many` were waiting at earlier buckets, and waits."""
    while True:
        found, item = pop(w, t)
        if not found:
            if is_over(w):
                return
            counts[2] += 1
            sched_yield()
            continue
        bucket = bucket_of(w, t)
        earlier = np.int64(0)
        for b in range(max(0, bucket - 2 * AHEAD), bucket):
            earlier += load_acquire(waiting, b)
        atomic_add(waiting, bucket, -1)
        counts[0] += 1
        counts[1] += earlier > many
        for child in range(2 * item, min(2 * item + 2, NUM_ITEMS)):
            later = min(bucket + (child * 7919) % AHEAD, NUM_BUCKETS - 1)
            atomic_add(waiting, later, 1)
            push(w, t, later, child)


def measure_worklist(threads: int) -> dict[str, Any]:
    """Return metrics, all named ``worklist_...``: nanoseconds of a push and a pop, that by `queue.SimpleQueue`, and shares of all items."""
    size = settings().chunk_items
    words = new_list(NUM_ITEMS, size, [0])
    _push_and_pop(words.ctypes.data, 1)
    ours, theirs = [], []
    for _ in range(NUM_ROUNDS):
        began = perf_counter()
        _push_and_pop(words.ctypes.data, NUM_ITEMS)
        ours.append((perf_counter() - began) / NUM_ITEMS)
        theirs.append(_queue_seconds(NUM_ITEMS // 8))
    counts, words = _shared_work(threads, size)
    at = words[THREADS : THREADS + threads * THREAD_WORDS].reshape(threads, THREAD_WORDS)
    own, others = int(at[:, FROM_OWN].sum()), int(at[:, FROM_OTHERS].sum())
    return {
        "worklist_push_and_pop_ns": statistics.median(ours) * 1e9,
        "worklist_ratio_of_simple_queue": statistics.median(b / a for a, b in zip(ours, theirs, strict=True)),
        "worklist_own_package_share": own / max(1, own + others),
        "worklist_inversion_share": int(counts[:, 1].sum()) / int(counts[:, 0].sum()),
        "worklist_items": int(counts[:, 0].sum()),
    }


def _queue_seconds(num_items: int) -> float:
    queue: SimpleQueue[int] = SimpleQueue()
    began = perf_counter()
    for i in range(num_items):
        queue.put(i)
    for _ in range(num_items):
        queue.get()
    return (perf_counter() - began) / num_items


def _shared_work(threads: int, size: int) -> tuple[Array, Array]:
    """Have threads, in two packages if there are several, work on one list."""
    words = new_list(NUM_ITEMS, size, [2 * t // threads for t in range(threads)])
    counts, waiting = np.zeros((threads, 8), np.int64), np.zeros(NUM_BUCKETS, np.int64)
    waiting[0] = 1
    push(words.ctypes.data, 0, 0, 1)
    with ThreadPoolExecutor(threads) as pool:
        many = 2 * threads * size
        for future in [pool.submit(_work, words.ctypes.data, t, waiting, many, counts[t]) for t in range(threads)]:
            future.result()
    return counts, words
