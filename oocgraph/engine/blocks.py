"""The lists of a graph in blocks on disk, as many held as fit, and threads that work on them by priority (`oocgraph.kernels.blocks`).

In: a store, a budget, a compiled loop. Out: `BlockEngine`, whose `run` changes values in place until none gets better. Blocks stay in
memory from one run to the next. Threads that read are the same as those that compute: there are more of them than cores, because those
that wait for the disk need none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Literal, NamedTuple

import numpy as np

from oocgraph.closing import Closing
from oocgraph.engine.resident import sorted_lookup
from oocgraph.kernels import blocks as kernels
from oocgraph.kernels.blocks import NONE, Agenda, BlockFiles, BlockRows, Held, Rules, Values
from oocgraph.kernels.load import load_kernels
from oocgraph.kernels.rows import no_files
from oocgraph.memory import SLACK_BYTES, Budget, page_cache_bytes
from oocgraph.store.arrays import PlainArray, StoredArray, aligned, decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import BLOCK_ROWS, offset_blocks
from oocgraph.subgraph.gather import EdgeFiles, checksum_bytes
from oocgraph.types import PAGE_BYTES, Array, Progress, ignore_progress

SHIFT = 14
"""Binary logarithm of the entries of a block: 64 KiB of neighbours. On a Kronecker graph of scale 22 in memory blocks of 2**12 and 2**16
entries took 1.1 and 1.3 times as long."""

READERS = 8
"""Threads beyond those that compute, which read meanwhile; 4 and 16 took as long (Kronecker graph of scale 22, a quarter of it held)."""

POLL_SECONDS = 0.1
"""How often progress is reported."""

Schedule = Literal["async", "buckets", "rounds"]
"""By priority, block by block; in sweeps over the earliest bucket (delta-stepping); in sweeps over all that is pending (Bellman-Ford)."""


class Work(NamedTuple):
    """What a run has done.

    Attributes
    ----------
    num_followed, num_again
        Edges followed; of these, edges of pieces of rows that had been followed before.
    num_blocks
        Blocks worked on, each as often as it was.
    num_read, bytes_read
        Blocks read, each as often as it was, and their bytes.
    seconds
        Wall time.
    """

    num_followed: int
    num_again: int
    num_blocks: int
    num_read: int
    bytes_read: int
    seconds: float


class EdgeError(Exception):
    """An edge that work stopped at.

    Attributes
    ----------
    why
        `oocgraph.kernels.blocks.NOT_MONOTONE` or `OVERFLOW`.
    source, target
        Store numbers of its ends.
    """

    def __init__(self, why: int, source: int, target: int) -> None:
        super().__init__(why, source, target)
        self.why, self.source, self.target = why, source, target


class BlockEngine(Closing):
    """The out-lists of a graph, in blocks. Use it in a ``with`` statement: it has open files.

    Parameters
    ----------
    store
        The graph.
    column
        Edge column of the weights; None: all are one.
    budget
        Charged with what is held, before anything is allocated.
    threads
        Threads that compute.
    beside
        What else is charged, by name: a refusal names a budget for all of it.

    Raises
    ------
    BudgetError
        What is held beside blocks, and a block for each thread, do not fit.
    """

    def __init__(self, store: CSRStore, column: str | None, budget: Budget, *, threads: int, beside: Mapping[str, int]) -> None:
        self.store, self.threads = store, threads
        self._arrays: list[StoredArray] = [store.array(f"out/{name}") for name in ("indices", *([column] if column else []))]
        self.num_blocks = max(1, -(-self._arrays[0].length >> SHIFT))
        self._num_slots = self._charge(budget, beside)
        self.rows = _block_rows(store, self.num_blocks)
        self._files: list[EdgeFiles] = []
        weight = np.ones(1, np.uint8) if column is None else self._room(self._arrays[1])
        self._held = Held(self._room(self._arrays[0]), weight)
        self._forget()
        self._open_files(budget)

    def close(self) -> None:
        """Close the files; closing again does nothing."""
        while self._files:
            self._files.pop().close()

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        """Dtype of the weights; uint8 where all are one."""
        return self._held.weights.dtype

    def run(
        self, work: Callable[..., Any], values: Values, pending: list[tuple[int, int]], *, schedule: Schedule, slack: int,
        progress: Progress = ignore_progress,
    ) -> Work:  # fmt: skip
        """Work until nothing is pending.

        Parameters
        ----------
        work
            What `oocgraph.kernels.relax.make_relaxing` returns.
        values
            Changed in place.
        pending
            Vertices that are pending at the beginning, with their buckets.
        schedule, slack
            Which block is next; see `Schedule` and `oocgraph.kernels.blocks.Rules`.
        progress
            Called with ("edges followed", how many, 0).

        Raises
        ------
        EdgeError
            An edge makes a value better than the one it comes from, or one that does not fit.
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        began = time.perf_counter()
        num_workers = self.threads + (0 if self._is_whole() else READERS)
        agenda, rules = self._agenda(num_workers), self._rules(schedule, slack)
        for vertex, bucket in pending:
            kernels.make_pending(self.rows, agenda, vertex, np.int32(bucket))
        counts = np.zeros((num_workers, 8), np.int64)

        def loop(worker: int) -> None:
            block = slot = -1
            try:
                while True:
                    code, block, slot = work(
                        self.rows, self._held, self._block_files, values, agenda, rules, worker, block, slot, counts[worker]
                    )
                    if code != kernels.READ:
                        return
                    counts[worker, 4:6] += 1, self._read(block, slot)
            except BaseException:
                kernels.fail(agenda, kernels.INTERRUPTED, 0, 0)
                raise

        with ThreadPoolExecutor(num_workers, thread_name_prefix="oocgraph-blocks") as pool:
            try:
                _wait([pool.submit(loop, worker) for worker in range(num_workers)], lambda: progress("edges followed", _sum(counts, 0), 0))
            except BaseException:
                kernels.fail(agenda, kernels.INTERRUPTED, 0, 0)
                self._forget()
                raise
        self._num_held = int(agenda.control[kernels.NUM_HELD])
        self._raise(agenda)
        followed, again, ran, _, read, num_bytes = (_sum(counts, i) for i in range(6))
        return Work(followed, again, ran, read, num_bytes, time.perf_counter() - began)

    def _charge(self, budget: Budget, beside: Mapping[str, int]) -> int:
        """Reserve what is held; returns how many blocks that is."""
        n, blocks = self.store.num_vertices, self.num_blocks
        slot_bytes = sum(array.dtype.itemsize << SHIFT for array in self._arrays) + 12
        least = min(blocks, self.threads + READERS + 1)
        with budget.all_or_none():
            for name, num_bytes in beside.items():
                budget.reserve(name, num_bytes)
            budget.reserve("rows", 2 * (n + 1) + 4 * (n // 64 + 2) + 16 * (blocks + 1) + 48 * (BLOCK_ROWS + 1))
            budget.reserve("what is pending", 2 * ((n + blocks) // 8 + 8) + 9 * blocks + kernels.LOCKS)
            budget.reserve("checksums", sum(checksum_bytes(array) for array in self._arrays))
            decoded = sum(decoded_bytes(array, 1 << SHIFT) for array in self._arrays)
            budget.reserve("blocks that are read", least * slot_bytes + 2 * PAGE_BYTES + (self.threads + READERS) * decoded)
            budget.reserve("threads and compiled code", SLACK_BYTES)
        more = max(0, min(blocks - least, budget.available_bytes // slot_bytes))
        budget.reserve("resident edges", more * slot_bytes)
        return least + more

    def _room(self, array: StoredArray) -> Array:
        return aligned(self._num_slots << SHIFT, array.dtype.newbyteorder("="))

    def _open_files(self, budget: Budget) -> None:
        """Have kernels read plain local files themselves; past the page cache, where that cannot hold what is not held here."""
        self._block_files = BlockFiles(no_files(0), no_files(0))
        size = 1 << SHIFT
        whole = [array.chunk_length % size == 0 == (array.dtype.itemsize << SHIFT) % PAGE_BYTES for array in self._arrays]
        if all(whole) and all(isinstance(array, PlainArray) and array.dtype.isnative for array in self._arrays):
            unheld = (self.num_blocks - self._num_slots) * sum(array.dtype.itemsize << SHIFT for array in self._arrays)
            direct = unheld > page_cache_bytes(budget.limit_bytes)
            for array in self._arrays:
                assert isinstance(array, PlainArray)
                self._files.append(EdgeFiles(array, stream_direct=direct))
            arguments = [files.stream_arguments for files in self._files]
            self._block_files = BlockFiles(arguments[0], arguments[-1])

    def _read(self, block: int, slot: int) -> int:
        """Read a block that kernels cannot read; returns its bytes."""
        begin, num_bytes = block << SHIFT, 0
        for array, room in zip(self._arrays, self._held, strict=False):
            part = room[slot << SHIFT : (slot << SHIFT) + min(1 << SHIFT, array.length - begin)]
            array.read_into(begin, part)
            num_bytes += part.nbytes
        return num_bytes

    def _agenda(self, num_workers: int) -> Agenda:
        """Return an agenda on which nothing is pending yet."""
        words, groups = (self.store.num_vertices + int(self.rows.inside[-1])) // 64 + 1, self.num_blocks // 64 + 1
        control = np.zeros(kernels.CONTROL_WORDS, np.int64)
        control[kernels.LAST], control[kernels.NUM_HELD], control[kernels.CLOCK] = NONE, self._num_held, self._stamp.max(initial=0)
        return Agenda(
            np.zeros(words, np.uint64), np.zeros(words, np.uint64), np.full(self.num_blocks, NONE, np.int32),
            np.full(groups, NONE, np.int32), np.full(groups, NONE, np.int32), self._slot, self._block_in, self._stamp,
            np.zeros(self.num_blocks, np.uint8), np.full(num_workers, NONE, np.int32), control,
        )  # fmt: skip

    def _rules(self, schedule: Schedule, slack: int) -> Rules:
        return Rules(slack, self.threads, READERS, schedule != "async", schedule == "rounds")

    def _forget(self) -> None:
        """Take no block to be held any more."""
        self._slot, self._block_in = np.full(self.num_blocks, -1, np.int32), np.full(self._num_slots, -1, np.int32)
        self._stamp, self._num_held = np.zeros(self._num_slots, np.int64), 0

    def _is_whole(self) -> bool:
        """Whether all blocks are held."""
        return self._num_held == self.num_blocks

    def _raise(self, agenda: Agenda) -> None:
        """Say why work has stopped before all was done."""
        why, place, other = (int(agenda.control[i]) for i in (kernels.STOP, kernels.PLACE, kernels.OTHER))
        if not why:
            return
        self._forget()
        if why == kernels.UNREADABLE:
            raise self._files[other].error(place)
        raise EdgeError(why, place, other)


def load_loop(work: Any, value_dtype: np.dtype[Any], store: CSRStore, column: str | None) -> None:
    """Bring a loop into memory, and what sets rows out in blocks, before memory is counted."""
    index, offset, words, small = np.empty(0, store.index_dtype), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int32)
    weights = np.empty(0, np.uint8 if column is None else store.array(f"out/{column}").dtype.newbyteorder("="))
    value, locks = np.empty(0, value_dtype), np.empty(0, np.uint8)
    rows = BlockRows(np.empty(0, np.uint16), offset, offset, np.empty(0, np.uint32), 0, SHIFT)
    agenda = Agenda(words, words, small, small, small, small, small, offset, locks, small, offset)
    files, held, values = BlockFiles(no_files(0), no_files(0)), Held(index, weights), Values(value, index, locks, value, 0, 1.0)
    load_kernels([
        (work, (rows, held, files, values, agenda, Rules(0, 1, 1, False, False), 0, -1, -1, offset)),
        (kernels.place_rows, (offset, 0, *rows[:4], SHIFT)),
        (kernels.finish_rows, (0, *rows[1:4])),
        (kernels.make_pending, (rows, agenda, 0, np.int32(0))),
        (kernels.fail, (agenda, 0, 0, 0)),
    ])  # fmt: skip


def _wait(futures: list[Future[None]], report: Callable[[], None]) -> None:
    """Wait for threads, and report meanwhile."""
    left = set(futures)
    while left:
        ended, left = wait(left, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in ended:
            future.result()
        report()


def _sum(counts: Array, i: int) -> int:
    return int(counts[:, i].sum())


def _block_rows(store: CSRStore, num_blocks: int) -> BlockRows:
    """Return where the out-lists are in blocks."""
    n = store.num_vertices
    offset, first = np.empty(n + 1, np.uint16), np.empty(num_blocks + 1, np.int64)
    inside, table = np.zeros(num_blocks, np.int64), np.zeros(n // 64 + 2, np.uint32)
    for row, begins in _row_begins(store):
        kernels.place_rows(begins, row, offset, first, inside, table, SHIFT)
    kernels.finish_rows(n, first, inside, table)
    return BlockRows(offset, first, inside, table, store.array("out/indices").length, SHIFT)


def _row_begins(store: CSRStore) -> Iterator[tuple[int, Array]]:
    """Iterate over where rows begin: the first row of a block, and (n,) int64; the last block has the end of all rows, too."""
    if store.attributes.vertex_order == "degree" and store.pull_group == "out":  # known from the degrees
        lookup = sorted_lookup(store)
        for first in range(0, store.num_vertices + 1, BLOCK_ROWS):
            rows = np.arange(first, min(store.num_vertices + 1, first + BLOCK_ROWS))
            c = np.searchsorted(lookup.first, rows, side="right") - 1
            yield first, lookup.edge[c] + (rows - lookup.first[c]) * lookup.value[c]
        return
    for first, begins in offset_blocks(store, "out"):
        is_last = first + begins.size - 1 == store.num_vertices
        yield first, begins if is_last else begins[:-1]
    if not store.num_vertices:
        yield 0, np.zeros(1, np.int64)
