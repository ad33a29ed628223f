"""The threads of a build, and the buffers that each keeps.

Kernels, sorts and file calls hold no interpreter lock, so plain threads use every core. Results come back in
order with a bounded number in flight, so that memory is bounded too; the first failure stops all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from oocgraph.allocator import ending_threads
from oocgraph.closing import Closing
from oocgraph.machine import return_end_of_arena
from oocgraph.pool import Call, Pool
from oocgraph.types import PAGE_BYTES, Array

Item = TypeVar("Item")
Result = TypeVar("Result")
Block = TypeVar("Block")


class Scratch(threading.local):
    """Buffers that a thread keeps from one block to the next: fresh pages cost a fault each (0.25 us a KiB)."""

    _generation = 0

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}
        self._seen = 0

    def get(self, name: str, length: int, dtype: Any) -> Array:
        """Return an uninitialised array that is valid until the next `get` of the same name in this thread."""
        if self._seen != Scratch._generation:
            self._buffers.clear()
            self._seen = Scratch._generation
        num_bytes = length * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < num_bytes:
            self._buffers.pop(name, None)
            buffer = self._buffers[name] = np.empty(num_bytes, np.uint8)
        return buffer[:num_bytes].view(dtype)

    def forget(self) -> None:
        """Let every thread drop its buffers, each at its next `get`: a new phase needs others."""
        Scratch._generation += 1


class Spare:
    """Memory of blocks that are written, for the next ones, in any threads: fresh pages cost a fault each.

    Parameters
    ----------
    dtype
        Of all arrays.
    length
        Elements of a block, usually: arrays are as long at least, and longer ones are not kept. 0: each is as long as it must be.
    """

    def __init__(self, dtype: np.dtype[Any], length: int = 0) -> None:
        self._dtype, self._length, self._arrays = dtype, length, deque[Array]()

    def get(self, length: int, first: int = 0) -> Array:
        """Return an uninitialised array, in memory that is not used any more where there is enough.

        It begins where element `first` of an array does that begins at a page: so it is written to a file without a copy (`PastCache`).
        """
        num_bytes, lead = length * self._dtype.itemsize, first * self._dtype.itemsize % PAGE_BYTES
        with suppress(IndexError):  # other threads take some, too
            if (used := self._arrays.pop()).size >= num_bytes + 2 * PAGE_BYTES:
                return self._part(used, lead, num_bytes)
        return self._part(np.empty(max(num_bytes, self._least_bytes) + 2 * PAGE_BYTES, np.uint8), lead, num_bytes)

    def put(self, part: Array) -> None:
        """Keep the memory of what `get` returned, or of a part of it, that is not used any more; arrays that own theirs are passed over."""
        whole = part.base
        if whole is not None and whole.dtype == np.uint8 and self._length in (0, (whole.size - 2 * PAGE_BYTES) // self._dtype.itemsize):
            self._arrays.append(whole)

    @property
    def _least_bytes(self) -> int:
        return max(1, self._length) * self._dtype.itemsize

    def _part(self, whole: Array, lead: int, num_bytes: int) -> Array:
        start = -whole.ctypes.data % PAGE_BYTES + lead
        return whole[start : start + num_bytes].view(self._dtype)


class Workers(Closing):
    """A pool of threads; leaving the context stops what runs.

    Parameters
    ----------
    num_threads
        Threads of the pool.
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self.scratch = Scratch()
        self._stopping = threading.Event()
        self._pool = Pool(num_threads, "oocgraph-build", end=return_end_of_arena)

    def beside(self, step: Callable[[Workers], Result]) -> Call[Result]:
        """Have one thread do a step alone, of the `Workers` that it is given; what others do meanwhile is done by the other threads."""
        return self._pool.submit(step, _Alone(self))

    def ordered(self, function: Callable[[Item], Result], items: Iterable[Item], *, most: int | None = None) -> Iterator[Result]:
        """Apply `function` to each item in the pool; the results come in the items' order, at most ``num_threads + 1`` ahead, or `most`."""
        try:
            yield from self._pool.map(function, items, self.num_threads if most is None else most - 1)
        except BaseException:
            self._stopping.set()
            raise

    def ahead(self, items: Iterator[Item]) -> Iterator[Item]:
        """Iterate over the same items, of which the pool makes one ahead."""
        end: Any = object()
        coming = self._pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = self._pool.submit(next, items, end)
            yield item

    def each(self, function: Callable[[Item], Any], items: Iterable[Item]) -> None:
        """Apply `function` to each item in the pool and wait."""
        for _ in self.ordered(function, items):
            pass

    def drain(self, streams: Sequence[Callable[[], Iterator[Block]]], process: Callable[[Block], Any]) -> None:
        """Process every block of every stream.

        A stream is iterated by one thread at a time, but another may fetch its next block while this one is processed,
        so a single stream keeps all threads busy. At most one block per thread is alive.
        """
        lock = threading.Lock()
        unopened = deque(streams)
        idle: deque[Iterator[Block]] = deque()
        busy = 0
        changed = threading.Condition(lock)

        def take() -> Iterator[Block] | None:
            nonlocal busy
            with changed:
                while not self._stopping.is_set():
                    if idle or unopened:
                        busy += 1
                        return idle.popleft() if idle else unopened.popleft()()
                    if not busy:
                        return None
                    changed.wait(0.1)
            return None

        def work(_: int) -> None:
            nonlocal busy
            while (stream := take()) is not None:
                block = None
                try:
                    block = next(stream, None)
                finally:
                    with changed:
                        busy -= 1
                        if block is not None:
                            idle.append(stream)
                        changed.notify_all()
                if block is not None:
                    process(block)
                    del block

        self.each(work, range(self.num_threads))

    def close(self) -> None:
        """Stop what runs, and wait for the threads."""
        self._stopping.set()
        with ending_threads():
            self._pool.close()


class _Alone(Workers):
    """The thread that asks; it ends with the threads of the others."""

    def __init__(self, others: Workers) -> None:
        self.num_threads, self.scratch, self._stopping = 1, others.scratch, others._stopping

    def ordered(self, function: Callable[[Item], Result], items: Iterable[Item], *, most: int | None = None) -> Iterator[Result]:
        """Apply `function` to each item, one after the other."""
        for item in items:
            if self._stopping.is_set():
                raise CancelledError
            yield function(item)

    def ahead(self, items: Iterator[Item]) -> Iterator[Item]:
        """Iterate over the items."""
        return items
