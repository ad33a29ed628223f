"""Work lists: items by priority, which threads put in and take out without a word of Python.

A thread pushes items to a *chunk* of its own, a ring of `chunk_items` of them; a full chunk goes to a list of the thread's *package* (cores
that share a cache). A *bag* has such a list for each package. It gives a thread what is in the thread's own chunk, then a chunk of its
package, then one of another package, then what the thread has just pushed. Chunks come from one stack, whose word has a tag, so that a
chunk that came back meanwhile is not taken for the one that was there.

There is a bag for each *bucket*. Bags are entered in a global log, in which a thread reads from where it was last, for a sorted map of its
own; a bag that is not there is made under a lock. Who pushes an earlier bucket than it works on moves there at once. Who finds its bag
empty looks for the earliest that is not, from the earliest bucket that anyone works on: the first thread of a package looks at all threads,
the others at that one, unless they have found nothing, when they look at all, too. So threads share the earliest bucket, about: priorities
are soft. A thread that has found nothing does not count: else others would look at all bags again and again, from where it was last.

All is over when as many items are done as were pushed: an item is done when its thread asks for the next one.

Source: Nguyen, Lenharth, Pingali, "A Lightweight Infrastructure for Graph Analytics", SOSP 2013 (the scheduler obim). Differs in: chunks
and bags are limited; a push for which there is no chunk is refused, and one for which there is no bag goes to the bag before, the first of
which is before all buckets: what is found behind its own bucket has been worked on there.

Everything is in one array of int64, given by its address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import acquire_word, release_word, sched_yield, set_word, swap_word, word_at
from oocgraph.compiled.kept import kept
from oocgraph.types import Array

LINE = 8
"""Words in a line of a processor's cache."""

(CHUNK_ITEMS, NUM_THREADS, NUM_PACKAGES, NUM_BAGS, PERIOD, LISTS, LOG, MAPS, OPEN, RECENT, CHUNKS) = range(11)
"""Where the header has what: sizes; how many items a thread takes before it looks for an earlier bucket, less one; where parts begin."""

FREE, VERSION, LOG_LOCK, THREADS = 2 * LINE, 3 * LINE, 4 * LINE, 5 * LINE
"""Words that threads share: the stack of chunks (``tag << 40 | chunk``), how many bags there are, the lock of the log; and where what each
thread has begins."""

(BUCKET, PUT, TAKE, POPPED, BAG, KNOWN, FROM_OWN, FROM_OTHERS, SCAN, PUSHED, DONE, PACKAGE, LEADER) = range(13)
THREAD_WORDS = 2 * LINE
"""What a thread has: its bucket, the chunks of that it pushes to and takes from, the items popped; its bag, how much of the log it knows,
chunks taken from its own package and from others; for others: the earliest bucket that may have items, items pushed, and done; its package,
and the first thread of that."""

LOCK, FRONT, BACK = range(3)
"""A list of chunks: its lock, its first and its last chunk."""

BEGIN, COUNT, AFTER, CHUNK_HEADER = range(4)
"""A chunk: its first item, how many there are, the next chunk of its list, and its items. Chunks are named by their places; 0: none."""

NUM_RECENT = 256
"""Buckets whose bags a thread finds without its map: one for each remainder."""

MASK = (1 << 40) - 1
"""Bits of a chunk's place in the word of the stack."""

TAGS = (1 << 62) - 1
"""Bits of that word: the tag begins again before it would be negative."""

EARLIEST, LATEST = -(2**31), 2**31
"""Buckets before and behind all."""

MAX_BAGS = 1 << 14
"""Buckets that have a bag of their own."""


class Operations(NamedTuple):
    """Compiled functions of a work list at the address w, for its thread t.

    Attributes
    ----------
    push
        ``push(w, t, bucket, item) -> bool``: False if there is no chunk for it.
    pop
        ``pop(w, t) -> (found, item)``; the item before is done.
    is_over
        ``is_over(w) -> bool``: whether all items that were pushed are done.
    """

    push: Callable[..., Any]
    pop: Callable[..., Any]
    is_over: Callable[..., Any]


def words_needed(num_items: int, chunk_items: int, num_threads: int, num_packages: int = 1, num_bags: int = MAX_BAGS) -> int:
    """Return the words of a list with room for so many items, besides chunks that are not full."""
    return int(_layout(num_items, chunk_items, num_threads, num_packages, num_bags)[-1])


def new_list(
    num_items: int, chunk_items: int, packages: Sequence[int], *, num_bags: int = MAX_BAGS, period: int = 0, room: Array | None = None,
) -> Array:  # fmt: skip
    """Return an empty list.

    Parameters
    ----------
    num_items
        Items that it has room for, besides chunks that are not full.
    chunk_items
        Items of a chunk.
    packages
        Package of each thread, 0 and up.
    num_bags
        Buckets that have a bag of their own.
    period
        How many items a thread takes before it looks for an earlier bucket, a power of two; 0: as many as its bag has.
    room : (words_needed(...),) int64
        Where it is put; by default a new array.
    """
    num_threads, num_packages = len(packages), max(packages) + 1
    *parts, num_chunks, num_words = _layout(num_items, chunk_items, num_threads, num_packages, num_bags)
    words = np.empty(num_words, np.int64) if room is None else room
    words[: parts[-1]] = 0
    words[: CHUNKS + 1] = chunk_items, num_threads, num_packages, num_bags, (period or 2**62) - 1, *parts
    at = words[THREADS : THREADS + num_threads * THREAD_WORDS].reshape(num_threads, THREAD_WORDS)
    at[:, PACKAGE], at[:, LEADER] = packages, [packages.index(package) for package in packages]
    at[:, BAG], at[:, SCAN] = -1, EARLIEST
    words[parts[-2] : parts[-1]].reshape(num_threads, NUM_RECENT, 2)[:, :, 1] = -1
    size = chunk_items + CHUNK_HEADER
    words[parts[-1] + AFTER : num_words : size] = parts[-1] + size * np.arange(1, num_chunks + 1)
    words[num_words - size + AFTER] = 0
    words[FREE] = parts[-1]
    words[VERSION], words[words[LOG]] = 1, EARLIEST
    return words


def _layout(num_items: int, chunk_items: int, num_threads: int, num_packages: int, num_bags: int) -> list[int]:
    """Where parts begin, from the lists to the chunks; how many chunks there are, and how many words all are."""
    num_chunks = -(-num_items // chunk_items) + 4 * num_threads + 1
    sizes = [
        THREADS + num_threads * THREAD_WORDS, num_bags * num_packages * LINE, num_bags, num_threads * num_bags * 2,
        num_threads * num_bags * 2, num_threads * NUM_RECENT * 2,
    ]  # fmt: skip
    ends = np.cumsum([-(-size // LINE) * LINE for size in sizes]).tolist()
    return [*ends, num_chunks, ends[-1] + num_chunks * (chunk_items + CHUNK_HEADER)]


def make_operations(pause: Any, compiled: Callable[..., Any]) -> Operations:
    """Return the operations.

    Parameters
    ----------
    pause
        Compiled. ``pause(w, t)`` is called wherever another thread may come in between: a test has it wait there.
    compiled
        Compiles a function.
    """

    def new_chunk(w: Any, t: Any) -> Any:
        """Take a chunk from the stack; 0: there is none."""
        while True:
            word = acquire_word(w, FREE)
            chunk = word & MASK
            if not chunk:
                return np.int64(0)
            after = acquire_word(w, chunk + AFTER)
            pause(w, t)
            if swap_word(w, FREE, word, ((word | MASK) + 1) & TAGS | after) == word:
                set_word(w, chunk + BEGIN, 0)
                set_word(w, chunk + COUNT, 0)
                return chunk

    def give_chunk(w: Any, t: Any, chunk: Any) -> None:
        while True:
            word = acquire_word(w, FREE)
            release_word(w, chunk + AFTER, word & MASK)
            pause(w, t)
            if swap_word(w, FREE, word, ((word | MASK) + 1) & TAGS | chunk) == word:
                return

    def lock_word(w: Any, t: Any, at: Any) -> None:
        while swap_word(w, at, 0, 1) != 0:
            sched_yield()
        pause(w, t)

    lock_word = compiled(lock_word)

    def append(w: Any, t: Any, bag: Any, package: Any, chunk: Any) -> None:
        """Put a chunk at the end of a list."""
        at = word_at(w, LISTS) + (bag * word_at(w, NUM_PACKAGES) + package) * LINE
        set_word(w, chunk + AFTER, 0)
        lock_word(w, t, at + LOCK)
        back = word_at(w, at + BACK)
        pause(w, t)
        release_word(w, back + AFTER if back else at + FRONT, chunk)
        set_word(w, at + BACK, chunk)
        release_word(w, at + LOCK, 0)

    def take_chunk(w: Any, t: Any, bag: Any, package: Any) -> Any:
        """Take the first chunk of a list; 0: it has none."""
        at = word_at(w, LISTS) + (bag * word_at(w, NUM_PACKAGES) + package) * LINE
        if not acquire_word(w, at + FRONT):
            return np.int64(0)
        lock_word(w, t, at + LOCK)
        chunk = word_at(w, at + FRONT)
        pause(w, t)
        if chunk:
            after = word_at(w, chunk + AFTER)
            release_word(w, at + FRONT, after)
            if not after:
                set_word(w, at + BACK, 0)
        release_word(w, at + LOCK, 0)
        return chunk

    def find(w: Any, t: Any, bucket: Any) -> Any:
        """Place in the thread's map of the first bag whose bucket is not earlier."""
        at = word_at(w, MAPS) + t * word_at(w, NUM_BAGS) * 2
        low, high = np.int64(0), word_at(w, THREADS + t * THREAD_WORDS + KNOWN)
        while low < high:
            middle = (low + high) >> 1
            if word_at(w, at + 2 * middle) < bucket:
                low = middle + 1
            else:
                high = middle
        return low

    find = compiled(find)

    def replay(w: Any, t: Any) -> None:
        """Enter the bags of the log that are new into the thread's map."""
        known_at = THREADS + t * THREAD_WORDS + KNOWN
        known, version = word_at(w, known_at), acquire_word(w, VERSION)
        at = word_at(w, MAPS) + t * word_at(w, NUM_BAGS) * 2
        while known < version:
            bucket = word_at(w, word_at(w, LOG) + known)
            place = find(w, t, bucket)
            for i in range(known, place, -1):
                set_word(w, at + 2 * i, word_at(w, at + 2 * i - 2))
                set_word(w, at + 2 * i + 1, word_at(w, at + 2 * i - 1))
            set_word(w, at + 2 * place, bucket)
            set_word(w, at + 2 * place + 1, known)
            known += 1
            set_word(w, known_at, known)

    replay = compiled(replay)

    def known_bag(w: Any, t: Any, bucket: Any) -> Any:
        """Bag of a bucket in the thread's map; -1: it is not there."""
        place = find(w, t, bucket)
        at = word_at(w, MAPS) + (t * word_at(w, NUM_BAGS) + place) * 2
        if place < word_at(w, THREADS + t * THREAD_WORDS + KNOWN) and word_at(w, at) == bucket:
            return word_at(w, at + 1)
        return np.int64(-1)

    known_bag = compiled(known_bag)

    def bag_of(w: Any, t: Any, bucket: Any) -> Any:
        """Bag of a bucket; it is made if there is none."""
        bag = known_bag(w, t, bucket)
        while bag < 0:
            replay(w, t)
            bag = known_bag(w, t, bucket)
            if bag >= 0:
                break
            pause(w, t)
            if swap_word(w, LOG_LOCK, 0, 1) != 0:
                sched_yield()
                continue
            replay(w, t)
            bag = known_bag(w, t, bucket)
            version = acquire_word(w, VERSION)
            if bag < 0 and version < word_at(w, NUM_BAGS):
                set_word(w, word_at(w, LOG) + version, bucket)
                pause(w, t)
                release_word(w, VERSION, version + 1)
                replay(w, t)
                bag = version
            elif bag < 0:
                place = max(np.int64(0), find(w, t, bucket) - 1)
                bag = word_at(w, word_at(w, MAPS) + (t * word_at(w, NUM_BAGS) + place) * 2 + 1)
            release_word(w, LOG_LOCK, 0)
        return bag

    bag_of, new_chunk, give_chunk = compiled(bag_of), compiled(new_chunk), compiled(give_chunk)
    append, take_chunk = compiled(append), compiled(take_chunk)

    def move(w: Any, t: Any, bag: Any, bucket: Any) -> None:
        """Have a thread work on a bag."""
        line, opened = THREADS + t * THREAD_WORDS, word_at(w, OPEN) + t * word_at(w, NUM_BAGS) * 2
        left = word_at(w, line + BAG)
        if left == bag:
            return
        if left >= 0:
            set_word(w, opened + 2 * left, word_at(w, line + PUT))
            set_word(w, opened + 2 * left + 1, word_at(w, line + TAKE))
        set_word(w, line + PUT, word_at(w, opened + 2 * bag))
        set_word(w, line + TAKE, word_at(w, opened + 2 * bag + 1))
        set_word(w, line + BAG, bag)
        set_word(w, line + BUCKET, bucket)

    move = compiled(move)

    def push_elsewhere(w: Any, t: Any, bucket: Any, item: Any) -> Any:
        """Push to a bag that the thread does not work on, or where its chunk is full."""
        line, recent = THREADS + t * THREAD_WORDS, word_at(w, RECENT) + (t * NUM_RECENT + (bucket & (NUM_RECENT - 1))) * 2
        bag = word_at(w, recent + 1)
        if bag < 0 or word_at(w, recent) != bucket:
            bag = bag_of(w, t, bucket)
            set_word(w, recent, bucket)
            set_word(w, recent + 1, bag)
        if word_at(w, line + BAG) < 0 or bucket < word_at(w, line + BUCKET):
            move(w, t, bag, word_at(w, word_at(w, LOG) + bag))
        bucket = word_at(w, word_at(w, LOG) + bag)
        if bucket < word_at(w, line + SCAN):
            release_word(w, line + SCAN, bucket)
        at, size = line + PUT, word_at(w, CHUNK_ITEMS)
        if bag != word_at(w, line + BAG):
            at = word_at(w, OPEN) + (t * word_at(w, NUM_BAGS) + bag) * 2
        chunk = word_at(w, at)
        if not chunk or word_at(w, chunk + COUNT) == size:
            fresh = new_chunk(w, t)
            if not fresh:
                return False
            if chunk:
                append(w, t, bag, word_at(w, line + PACKAGE), chunk)
            chunk = fresh
            set_word(w, at, chunk)
        count = word_at(w, chunk + COUNT)
        i = word_at(w, chunk + BEGIN) + count
        set_word(w, chunk + CHUNK_HEADER + (i - size if i >= size else i), item)
        set_word(w, chunk + COUNT, count + 1)
        release_word(w, line + PUSHED, word_at(w, line + PUSHED) + 1)
        return True

    push_elsewhere = compiled(push_elsewhere)

    def push(w: Any, t: Any, bucket: Any, item: Any) -> Any:
        line, size = THREADS + t * THREAD_WORDS, word_at(w, CHUNK_ITEMS)
        chunk = word_at(w, line + PUT)
        if chunk and word_at(w, line + BUCKET) == bucket:
            count = word_at(w, chunk + COUNT)
            if count < size:
                i = word_at(w, chunk + BEGIN) + count
                set_word(w, chunk + CHUNK_HEADER + (i - size if i >= size else i), item)
                set_word(w, chunk + COUNT, count + 1)
                if bucket < word_at(w, line + SCAN):
                    release_word(w, line + SCAN, bucket)
                release_word(w, line + PUSHED, word_at(w, line + PUSHED) + 1)
                return True
        return push_elsewhere(w, t, bucket, item)

    def chunk_of(w: Any, t: Any, bag: Any, at: Any) -> Any:
        """Chunk of a bag that the thread may take from, 0 if there is none; `at`: where those that it pushes to and takes from are."""
        empty = word_at(w, at + 1)
        if empty and word_at(w, empty + COUNT):
            return empty
        line, packages = THREADS + t * THREAD_WORDS, word_at(w, NUM_PACKAGES)
        own = word_at(w, line + PACKAGE)
        package: Any = own
        chunk: Any = np.int64(0)
        while True:
            chunk = take_chunk(w, t, bag, package)
            if chunk:
                which = line + (FROM_OWN if package == own else FROM_OTHERS)
                set_word(w, which, word_at(w, which) + 1)
                break
            package = package + 1 if package + 1 < packages else np.int64(0)
            if package == own:
                break
        pushed = word_at(w, at)
        if not chunk and pushed and word_at(w, pushed + COUNT):  # it is taken from now, and the empty one pushed to
            set_word(w, at, empty)
            chunk, empty = pushed, np.int64(0)
        elif not chunk and pushed:
            set_word(w, at, 0)
            give_chunk(w, t, pushed)
        if empty:
            give_chunk(w, t, empty)
        set_word(w, at + 1, chunk)
        return chunk

    chunk_of = compiled(chunk_of)

    def take(w: Any, t: Any, chunk: Any) -> Any:
        """Take the first item of a chunk."""
        popped, i = THREADS + t * THREAD_WORDS + POPPED, word_at(w, chunk + BEGIN)
        set_word(w, chunk + BEGIN, i + 1 if i + 1 < word_at(w, CHUNK_ITEMS) else 0)
        set_word(w, chunk + COUNT, word_at(w, chunk + COUNT) - 1)
        set_word(w, popped, word_at(w, popped) + 1)
        return word_at(w, chunk + CHUNK_HEADER + i)

    take = compiled(take)

    def pop_elsewhere(w: Any, t: Any) -> Any:
        """Take an item of the thread's bag, or else of the earliest that has one."""
        line = THREADS + t * THREAD_WORDS
        bag = word_at(w, line + BAG)
        if bag >= 0 and (word_at(w, line + POPPED) + 1) & word_at(w, PERIOD):
            chunk = chunk_of(w, t, bag, line + PUT)
            if chunk:
                if word_at(w, line + SCAN) == LATEST:
                    release_word(w, line + SCAN, word_at(w, line + BUCKET))
                return True, take(w, t, chunk)
        replay(w, t)
        own, leader = word_at(w, line + SCAN), word_at(w, line + LEADER)
        start = min(own, acquire_word(w, THREADS + leader * THREAD_WORDS + SCAN))
        if leader == t or own == LATEST:
            for other in range(word_at(w, NUM_THREADS)):
                start = min(start, acquire_word(w, THREADS + other * THREAD_WORDS + SCAN))
        at = word_at(w, MAPS) + t * word_at(w, NUM_BAGS) * 2
        for i in range(find(w, t, start), word_at(w, line + KNOWN)):
            bucket, bag = word_at(w, at + 2 * i), word_at(w, at + 2 * i + 1)
            is_own = bag == word_at(w, line + BAG)
            chunk = chunk_of(w, t, bag, line + PUT if is_own else word_at(w, OPEN) + (t * word_at(w, NUM_BAGS) + bag) * 2)
            if chunk:
                move(w, t, bag, bucket)
                release_word(w, line + SCAN, bucket)
                return True, take(w, t, chunk)
        release_word(w, line + SCAN, LATEST)
        return False, np.int64(0)

    pop_elsewhere = compiled(pop_elsewhere)

    def pop(w: Any, t: Any) -> Any:
        line = THREADS + t * THREAD_WORDS
        popped, chunk = word_at(w, line + POPPED), word_at(w, line + TAKE)
        pause(w, t)
        release_word(w, line + DONE, popped)
        if chunk and (popped + 1) & word_at(w, PERIOD):
            count, i = word_at(w, chunk + COUNT), word_at(w, chunk + BEGIN)
            if count:
                set_word(w, chunk + BEGIN, i + 1 if i + 1 < word_at(w, CHUNK_ITEMS) else 0)
                set_word(w, chunk + COUNT, count - 1)
                set_word(w, line + POPPED, popped + 1)
                return True, word_at(w, chunk + CHUNK_HEADER + i)
        return pop_elsewhere(w, t)

    def is_over(w: Any) -> Any:
        # what is done is counted first: it was pushed before, so both are equal only if nothing was left in between
        done, pushed = np.int64(0), np.int64(0)
        for t in range(word_at(w, NUM_THREADS)):
            done += acquire_word(w, THREADS + t * THREAD_WORDS + DONE)
        for t in range(word_at(w, NUM_THREADS)):
            pushed += acquire_word(w, THREADS + t * THREAD_WORDS + PUSHED)
        return done == pushed

    return Operations(compiled(push), compiled(pop), compiled(is_over))


@nb.njit(nogil=True, inline="always")
def _go_on(w: Any, t: Any) -> None:
    """Wait for nothing."""


def _kept(function: Callable[..., Any]) -> Any:
    return kept(function, __name__, f"list_{function.__name__}")


push, pop, is_over = make_operations(_go_on, _kept)


@nb.njit(nogil=True, cache=True)
def bucket_of(w: Any, t: Any) -> Any:
    """Bucket of the item that a thread popped last."""
    return word_at(w, THREADS + t * THREAD_WORDS + BUCKET)
