"""The lists of a graph in blocks on disk, as many held as fit, and threads that work on them by priority (`oocgraph.kernels.blocks`).

In: a store, a budget, a compiled loop. Out: `BlockEngine`, whose `run` changes values in place until none gets better. Blocks stay in
memory from one run to the next. Threads that read are the same as those that compute: there are more of them than cores, because those
that wait for the disk need none.

Once all edges of a graph of few edges a vertex are in memory, threads hand each other single vertices (`oocgraph.compiled.worklist`): on a
grid of 2000 x 2000 that takes 0.8 of the time; with hubs or many edges, where most of a block is pending at once, 1.2 to 1.6.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from oocgraph.closing import Closing
from oocgraph.compiled.load import load_kernels
from oocgraph.compiled.worklist import MAX_BAGS, new_list, words_needed
from oocgraph.config import settings
from oocgraph.engine.packages import Thread, place_threads
from oocgraph.kernels import blocks as kernels
from oocgraph.kernels.blocks import NONE, Agenda, BlockFiles, BlockRows, Held, Rules
from oocgraph.kernels.relax import Loop, Values
from oocgraph.kernels.rows import no_files
from oocgraph.memory import SLACK_BYTES, Budget, page_cache_bytes
from oocgraph.pool import Call, Pool
from oocgraph.store.arrays import PlainArray, StoredArray, aligned, decoded_bytes
from oocgraph.store.gather import EdgeFiles, checksum_bytes
from oocgraph.store.graph import BLOCK_VERTICES, CSRStore
from oocgraph.store.layout import SELF_LOOPS
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import are_by_degree, damaged_rows, degree_blocks, offset_blocks
from oocgraph.types import PAGE_BYTES, Array, Progress, ignore_progress, no_parent

SHIFT = 14
"""Binary logarithm of the entries of a block: 64 KiB of neighbours. On a Kronecker graph of scale 22 in memory blocks of 2**12 and 2**16
entries took 1.1 and 1.3 times as long."""

LEAST_SHIFT = 8
"""Of shares of small graphs, whose blocks are smaller: each share has some groups of them."""

GROUP_SHIFT = 6
"""Blocks of a group, 64: of as many the earliest bucket is noted, and one share has them."""

SHARE_GROUPS = 4
"""Groups of a share, where blocks of `LEAST_SHIFT` do: they are worked on at different times."""

READERS = 8
"""Threads beyond those that compute, which read meanwhile; 4 and 16 took as long (Kronecker graph of scale 22, a quarter of it held)."""

PLACED_ROWS = 1 << 16
"""Rows whose beginnings are read at once."""

LEVEL_SLACK = 16
"""Slack of levels. Of a grid of 2000 x 2000 in locality order, with a tenth of it held, 4.0, 2.8, 2.2 and 2.1 times the edges are read
with 8, 16, 32 and 128, and 6, 15, 28 and 57 % of the work is done again."""

READ_AHEAD = 16
"""Blocks that a thread reads at a time when all are read."""

LATER = "other shares"

POLL_SECONDS = 0.1
"""How often progress is reported."""

AGENDA_ARRAYS = 6
"""Of an agenda, which shares have in common."""

LOOK_SECONDS = 0.004
"""How often a share looks whether it has to pause: work that is aborted ends within 10 ms."""

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
    idle_seconds
        Time for which threads had nothing to do, by the number of threads, those included that wait for something to read.
    """

    num_followed: int
    num_again: int
    num_blocks: int
    num_read: int
    bytes_read: int
    seconds: float
    idle_seconds: float


class Run(NamedTuple):
    """What a run took.

    Attributes
    ----------
    num_blocks
        Of the graph.
    work
    device_bytes
        Read from devices meanwhile, by this process or by workers.
    """

    num_blocks: int
    work: Work
    device_bytes: int


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
    """The lists of a graph, in blocks. Use it in a ``with`` statement: it has open files.

    Parameters
    ----------
    store
        The graph.
    column
        Edge column of the weights; None: all are one.
    in_lists
        Whether the in-lists of a directed graph follow its out-lists; these have no weights then.
    share
        Which of how many shares of the blocks it has: every n-th group of 64, of n shares. What becomes pending in others is not worked on.
    sharers
        Engines that are still to be made with the same budget, this one among them: it takes its share of what is left.
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

    def __init__(
        self, store: CSRStore, column: str | None, budget: Budget, *, threads: int, beside: Mapping[str, int], in_lists: bool = False,
        share: tuple[int, int] = (0, 1), sharers: int = 1,
    ) -> None:  # fmt: skip
        self.store, self.threads = store, threads
        self._groups = ("out", "in") if in_lists and store.attributes.directed else ("out",)
        self._arrays: list[StoredArray] = [store.array(f"out/{name}") for name in ("indices", *([column] if column else []))]
        self._lengths = [store.array(f"{group}/indices").length for group in self._groups]
        self.shift = block_shift(sum(self._lengths), share[1])
        self._first_blocks: list[int] = [0, *np.cumsum([max(1, -(-length >> self.shift)) for length in self._lengths]).tolist()]
        self._is_held = share[1] == 1 and not self._groups[1:] and all(array.is_held for array in self._arrays)
        self.share, blocks = share, np.arange(self._first_blocks[-1])
        self._is_own = (blocks >> GROUP_SHIFT) % share[1] == share[0]
        self.num_blocks = int(np.count_nonzero(self._is_own))
        self._is_small = self.num_blocks == 1 and share[1] == 1  # one thread does it in less time than others take to begin
        self._num_computing, self._num_workers = (1, 1) if self._is_small else (threads, threads + READERS)
        self.places = [Thread(0, None)] if self._is_small else place_threads(threads)
        self._chunk_items = settings().chunk_items
        self._list: Array = np.empty(0, np.int64)
        self._left: Agenda | None = None
        self._num_slots = self._charge(budget, beside, sharers)
        self.rows = _block_rows(store, self._groups, self._lengths, self._first_blocks, self.shift)
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
        self, loop: Loop, values: Values, rows: Array, buckets: Array, *, schedule: Schedule, slack: int,
        loads_all: bool = True, last: int = int(NONE), progress: Progress = ignore_progress, agenda: Agenda | None = None,
        look: Callable[[], bool] | None = None,
    ) -> Work:  # fmt: skip
        """Work until nothing is pending.

        Parameters
        ----------
        loop : Loop
        values
            Changed in place.
        rows, buckets : (n,) int64, int32
            Rows that are pending at the beginning, with their buckets.
        schedule, slack
            Which block is next; see `Schedule` and `oocgraph.kernels.blocks.Rules`.
        loads_all
            Whether most blocks are going to be needed: if all fit, they are read in order as soon as an eighth of them has been.
        last
            Last bucket that is worked on; what is later stays pending, see `pending_rows`.
        progress
            Called with ("edges followed", how many, 0).
        agenda
            One that other shares work on at the same time, from `shared_agenda`: `rows` are added to what is pending there.
        look
            Called every few milliseconds; work pauses when it returns True. `is_quiet` says whether anything is left.

        Raises
        ------
        EdgeError
            An edge makes a value better than the one it comes from, or one that does not fit.
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        began = time.perf_counter()
        num_workers = self._num_workers
        self._left = None
        is_alone = agenda is None
        agenda, rules = self._begun(self._agenda(last) if agenda is None else agenda), self._rules(schedule, slack, loads_all)
        kernels.make_all_pending(self.rows, agenda, rows, buckets)
        counts = np.zeros((num_workers, 8), np.int64)

        def by_block(worker: int) -> int:
            block = slot = -1
            graph = self.rows, self._held, self._block_files
            while True:
                code, block, slot = loop.by_block(*graph, values, agenda, rules, block, slot, counts[worker])
                if code != kernels.READ:
                    return int(code)
                counts[worker, 4:6] += 1, self._read(block, slot)

        with Pool(num_workers, "oocgraph-blocks") as pool:

            def in_threads(one: Callable[[int], int], number: int) -> set[int]:
                def guarded(worker: int) -> int:
                    try:
                        return one(worker)
                    except BaseException:
                        kernels.fail(agenda, kernels.INTERRUPTED, 0, 0)
                        raise

                def report() -> None:
                    progress("edges followed", _sum(counts, 0), 0)
                    if look is not None and look():
                        kernels.fail(agenda, kernels.PAUSED, 0, 0)

                if self._is_small and look is None:  # else somebody has to look, and to report, while the thread works
                    code = guarded(0)
                    report()
                    return {code}
                return _wait([pool.submit(guarded, i) for i in range(number)], report, POLL_SECONDS if look is None else LOOK_SECONDS)

            def in_memory() -> None:
                if schedule == "async" and loop.by_vertex is not None and self._list.size and last == NONE and is_alone:
                    address = self._empty_list()
                    graph = self.rows, self._held, values, agenda, address
                    loop.by_vertex(*graph, -1, counts[0])

                    def by_vertex(worker: int) -> int:
                        self.places[worker].bind()
                        loop.by_vertex(*graph, worker, counts[worker])
                        return 0

                    in_threads(by_vertex, self._num_computing)
                in_threads(by_block, self._num_computing)

            try:
                if self._is_whole():
                    in_memory()
                elif kernels.LOAD in in_threads(by_block, num_workers) and self._load_rest(agenda, counts, in_threads):
                    rules = rules._replace(loads_all=False)
                    in_memory()
            except BaseException:
                kernels.fail(agenda, kernels.INTERRUPTED, 0, 0)
                self._forget()
                raise
        self._num_held = int(agenda.control[kernels.NUM_HELD])
        self._raise(agenda)
        self._left = agenda
        followed, again, ran, idle, read, num_bytes = (_sum(counts, i) for i in range(6))
        return Work(followed, again, ran, read, num_bytes, time.perf_counter() - began, idle / 1e6 / num_workers)

    def _load_rest(self, agenda: Agenda, counts: Array, in_threads: Callable[[Callable[[int], int], int], set[int]]) -> bool:
        """Read the blocks that are not held, in order: all, or as many as there is time for; returns whether nothing has failed."""
        if agenda.control[kernels.STOP] not in (0, kernels.PAUSED):
            return False
        missing = np.flatnonzero(agenda.slot == -1)
        first_slot, begun, starts = int(agenda.control[kernels.NUM_HELD]), list[int](), iter(range(0, missing.size, READ_AHEAD))

        def load(worker: int) -> int:
            for start in starts:
                begun.append(start)
                blocks, slot = missing[start : start + READ_AHEAD], first_slot + start
                if self._files:
                    kernels.read_blocks(self.rows, self._block_files, self._held, agenda, blocks, slot, counts[worker])
                else:
                    for i, block in enumerate(blocks.tolist()):
                        counts[worker, 4:6] += 1, self._read(block, slot + i)
                if agenda.control[kernels.STOP]:
                    break
            return 0

        in_threads(load, min(READERS, self._num_workers))
        if agenda.control[kernels.STOP] not in (0, kernels.PAUSED):
            return False
        kernels.enter_blocks(agenda, missing[: len(begun) * READ_AHEAD], first_slot)
        return True

    def _charge(self, budget: Budget, beside: Mapping[str, int], sharers: int) -> int:
        """Reserve what is held; returns how many blocks that is."""
        n, blocks, every = len(self._groups) * (self.store.num_rows + 1) - 1, self.num_blocks, self._is_own.size
        slot_bytes = (0 if self._is_held else sum(array.dtype.itemsize << self.shift for array in self._arrays)) + 12
        least = blocks if self._is_held else min(blocks, self._num_workers + 1)
        decoded = sum(decoded_bytes(array, 1 << self.shift) for array in self._all_arrays())
        charges = {
            **beside,
            "rows": 2 * (n + 1) + 4 * (n // 64 + 2) + 16 * (every + 1) + 56 * (PLACED_ROWS + 1),
            "what is pending": 2 * ((n + every) // 8 + 8) + 10 * every,
            "checksums": sum(checksum_bytes(array) for array in self._all_arrays()),
            "blocks that are read": least * slot_bytes + 2 * PAGE_BYTES + self._num_workers * decoded,
            "threads and compiled code": SLACK_BYTES,
            **self.store.mask_charges(self._groups),
        }
        budget.reserve_all({**charges, LATER: (sharers - 1) * sum(charges.values())})  # the others are as large as this one
        more = max(0, min(blocks - least, budget.available_bytes // sharers // slot_bytes))
        budget.release(LATER)
        budget.reserve("resident edges", more * slot_bytes)
        list_bytes = 8 * self._list_words()
        if least + more == blocks and not has_many_edges(self.store) and list_bytes <= budget.available_bytes:
            budget.reserve("work list", list_bytes)
            self._list = np.empty(list_bytes // 8, np.int64)
        return least + more

    def _list_words(self) -> int:
        num_packages = max(thread.package for thread in self.places) + 1
        return words_needed(self.store.num_rows, self._chunk_items, self._num_computing, num_packages, self._num_bags)

    @property
    def _num_bags(self) -> int:
        return min(MAX_BAGS, self.store.num_rows + 64)

    def _empty_list(self) -> int:
        """Return the address of a work list with nothing on it, and all the room there is."""
        packages = [thread.package for thread in self.places]
        new_list(self.store.num_rows, self._chunk_items, packages, num_bags=self._num_bags, room=self._list)
        return int(self._list.ctypes.data)

    def _all_arrays(self) -> list[StoredArray]:
        return [*self._arrays, *([self.store.array("in/indices")] if self._groups[1:] else [])]

    def _room(self, array: StoredArray) -> Array:
        """Return memory for as many blocks of an array as are held; the array itself, if it is in memory."""
        return array.held if self._is_held else aligned(self._num_slots << self.shift, array.dtype.newbyteorder("="))

    def _open_files(self, budget: Budget) -> None:
        """Have kernels read plain local files themselves; past the page cache, where that cannot hold what is not held here."""
        self._block_files = BlockFiles(no_files(0), no_files(0), no_files(0))
        arrays, size = self._all_arrays(), 1 << self.shift
        in_pages = all((array.dtype.itemsize << self.shift) % PAGE_BYTES == 0 for array in arrays)
        in_chunks = all(array.num_chunks < 2 or array.chunk_length % size == 0 for array in arrays)
        if not self._is_held and in_pages and in_chunks and all(isinstance(array, PlainArray) and array.dtype.isnative for array in arrays):
            unheld = (self.num_blocks - self._num_slots) * sum(array.dtype.itemsize << self.shift for array in self._arrays)
            direct = unheld > page_cache_bytes(budget.limit_bytes)
            for array in arrays:
                assert isinstance(array, PlainArray)
                self._files.append(EdgeFiles(array, stream_direct=direct))
            arguments = [files.stream_arguments for files in self._files]
            self._block_files = BlockFiles(arguments[0], arguments[len(self._arrays) - 1], arguments[-1])

    def _read(self, block: int, slot: int) -> int:
        """Read a block that kernels cannot read; returns the bytes that were not in memory."""
        is_second = block >= self._first_blocks[1]
        arrays = [self.store.array("in/indices")] if is_second else self._arrays
        begin, num_bytes = (block - self._first_blocks[int(is_second)]) << self.shift, 0
        for array, room in zip(arrays, self._held, strict=False):
            part = room[slot << self.shift : (slot << self.shift) + min(1 << self.shift, array.length - begin)]
            array.read_into(begin, part)
            num_bytes += 0 if array.is_held else part.nbytes
        return num_bytes

    def pending_rows(self) -> Array:
        """Return the rows of which something is pending since the last run, ascending: (n,) int64."""
        if self._left is None:
            return np.empty(0, np.int64)
        found = np.empty(kernels.pending_rows(self.rows, self._left, np.empty(0, np.int64)), np.int64)
        kernels.pending_rows(self.rows, self._left, found)
        return found

    def _agenda(self, last: int) -> Agenda:
        """Return an agenda on which nothing is pending yet."""
        made = self.shared_agenda([np.empty(size, dtype) for size, dtype in self.shared_arrays(1)], number=0)
        clear(made, last)
        return made

    def make_pending(self, agenda: Agenda, rows: Array, buckets: Array) -> None:
        """Add rows to what is pending, on which nobody works: (n,) int64, int32."""
        kernels.make_all_pending(self.rows, agenda, rows, buckets)

    def shared_arrays(self, num_shares: int) -> list[tuple[int, np.dtype[Any]]]:
        """Return sizes and dtypes of the arrays of an agenda that shares have in common."""
        words, groups = (self.rows.offset.size - 1 + int(self.rows.inside[-1])) // 64 + 1, (self._is_own.size >> GROUP_SHIFT) + 1
        sizes = {"u8": (words, words), "i4": (self._is_own.size, groups, groups), "i8": (num_shares * kernels.CONTROL_WORDS,)}
        return [(size, np.dtype(kind)) for kind, each in sizes.items() for size in each]

    def shared_agenda(self, arrays: Sequence[Array], number: int) -> Agenda:
        """Return this engine's view of an agenda, in which its words of control have a number; `clear` empties all of it."""
        pending, seen, bucket, held_group, other_group, controls = arrays
        control = controls[number * kernels.CONTROL_WORDS :][: kernels.CONTROL_WORDS]
        busy = (~self._is_own).astype(np.uint8)
        return Agenda(
            pending, seen, bucket, held_group, other_group, self._slot, self._block_in, self._stamp, busy, control, controls, *self.share
        )  # fmt: skip

    def _begun(self, agenda: Agenda) -> Agenda:
        """Note in an agenda what is held, and take nothing to be stopped."""
        control = agenda.control
        control[kernels.NUM_HELD], control[kernels.STOP] = self._num_held, 0
        control[kernels.CLOCK] = max(int(control[kernels.CLOCK]), int(self._stamp.max(initial=0)))
        return agenda._replace(slot=self._slot, block_in=self._block_in, stamp=self._stamp)

    def _rules(self, schedule: Schedule, slack: int, loads_all: bool) -> Rules:
        loads = loads_all and self._num_slots == self.num_blocks > self._num_held
        return Rules(slack, self._num_computing, READERS, schedule != "async", schedule == "rounds", loads)

    def _forget(self) -> None:
        """Take no block to be held any more; where the arrays are in memory, all are, each at its own place."""
        self._slot = np.where(self._is_own, -1, kernels.FOREIGN).astype(np.int32)
        self._block_in = np.full(self._num_slots, -1, np.int32)
        self._stamp, self._num_held = np.zeros(self._num_slots, np.int64), 0
        if self._is_held:
            self._slot[:] = self._block_in[:] = np.arange(self.num_blocks)
            self._num_held = self.num_blocks

    def _is_whole(self) -> bool:
        """Whether all blocks are held."""
        return self._num_held == self.num_blocks

    def _raise(self, agenda: Agenda) -> None:
        """Say why work has stopped before all was done."""
        why, place, other = (int(agenda.control[i]) for i in (kernels.STOP, kernels.PLACE, kernels.OTHER))
        if why in (0, kernels.PAUSED):
            return
        self._forget()
        if why == kernels.UNREADABLE:
            raise self._files[min(other, len(self._files) - 1)].error(place)
        raise EdgeError(why, place, other)


def clear(agenda: Agenda, last: int = int(NONE)) -> None:
    """Have nothing pending on an agenda, up to the last bucket that is of interest; nobody works on it."""
    agenda.pending[:], agenda.seen[:], agenda.controls[:] = 0, 0, 0
    agenda.bucket[:], agenda.held_group[:], agenda.other_group[:] = NONE, NONE, NONE
    agenda.controls[kernels.LAST] = last


def has_many_edges(store: CSRStore) -> bool:
    """Whether a graph has hubs or many edges a vertex: whether most of it is near, as against roads."""
    mean_degree = store.array("out/indices").length / max(1, store.num_rows)
    degree, _ = store.degree_classes if store.attributes.vertex_order == "degree" else (np.zeros(1), None)
    return mean_degree > 16 or int(degree.max(initial=0)) > 8 * mean_degree


def degree_dtype(store: CSRStore) -> np.dtype[np.signedinteger]:
    """Return the dtype of degrees: int32 where they fit."""
    return np.dtype(np.int32 if store.attributes.num_stored_edges < 2**31 else np.int64)


def total_degrees(store: CSRStore) -> Array:
    """Return the out- and in-edges of each vertex, together: (num_vertices,)."""
    degree = np.zeros(store.num_rows, degree_dtype(store))
    for group in ("out", "in") if store.attributes.directed else ("out",):
        for start, counts in degree_blocks(store, group):
            degree[start : start + counts.size] += counts.astype(degree.dtype)
    return degree


def simple_degrees(store: CSRStore) -> Array:
    """Return the neighbours of each vertex of an undirected graph without duplicates, itself left out: (num_vertices,)."""
    degree = total_degrees(store)
    if store.attributes.num_self_loops:
        for _, vertices in store.array(SELF_LOOPS).blocks(BLOCK_VERTICES):
            np.subtract.at(degree, vertices, 1)
    return degree


def load_loop(loop: Loop, value_dtype: np.dtype[Any], store: CSRStore, column: str | None) -> None:
    """Bring a loop into memory, and what sets rows out in blocks, before memory is counted."""
    index, offset, words, small = np.empty(0, store.index_dtype), np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int32)
    weights = np.empty(0, np.uint8 if column is None else store.array(f"out/{column}").dtype.newbyteorder("="))
    value, none = np.empty(0, value_dtype), no_files(0)
    by_vertex = loop.by_vertex is not None and not has_many_edges(store)
    rows = kernels.empty_rows(SHIFT)
    agenda = Agenda(words, words, small, small, small, small, small, offset, np.empty(0, np.uint8), offset, offset, 0, 1)
    files, held = BlockFiles(none, none, none), Held(index, weights)
    values = Values(value, index, store.index_dtype.type(0), value, offset, 1.0, words, offset)
    load_kernels([
        (loop.by_block, (rows, held, files, values, agenda, Rules(0, 1, 1, False, False, False), -1, -1, offset)),
        *([(loop.by_vertex, (rows, held, values, agenda, 0, 0, offset))] if by_vertex else []),
        (kernels.place_rows, (offset, 0, rows, offset)),
        (kernels.finish_rows, (rows, offset)),
        (kernels.make_all_pending, (rows, agenda, offset, small)),
        (kernels.read_blocks, (rows, files, held, agenda, offset, 0, offset)),
        (kernels.enter_blocks, (agenda, offset, 0)),
        (kernels.fail, (agenda, 0, 0, 0)),
        (kernels.is_quiet, (agenda,)),
        (kernels.pending_rows, (rows, agenda, offset)),
    ])  # fmt: skip


NO_TARGETS = np.empty(0, np.int64)
"""Of work that no vertex ends."""


def new_values(
    value: Array, parent: Array, bound: Any, *, targets: Array = NO_TARGETS, scale: float = 1.0, num_left: int = 0,
) -> Values:  # fmt: skip
    """Return values to work on; those left are all of `num_left` vertices."""
    left = np.full(num_left // 64 + 1, ~np.uint64(0)) if num_left else np.empty(0, np.uint64)
    if num_left:
        left[-1] = (1 << (num_left & 63)) - 1
    busy = parent.dtype.type(np.iinfo(parent.dtype).max - 1)
    return Values(value, parent, busy, np.full(1, bound, value.dtype), targets, scale, left, np.zeros(1, np.int64))


def forget_beyond(bound: Any, value: Array, parent: Array, unreached: Any) -> None:
    """Forget vertices beyond a bound: they were found on the way, perhaps not by a shortest path."""
    for start in range(0, value.size, 1 << 20):
        values, parents = (array[start : start + (1 << 20)] for array in (value, parent))
        parents[values > bound] = no_parent(parent.dtype)
        values[values > bound] = unreached


def _wait(calls: list[Call[int]], report: Callable[[], None], seconds: float) -> set[int]:
    """Wait for threads, and report meanwhile; returns what they return."""
    codes = set()
    for call in calls:
        while not call.wait(seconds):
            report()
        codes.add(call.result())
    report()
    return codes


def _sum(counts: Array, i: int) -> int:
    return int(counts[:, i].sum())


def num_shares(store: CSRStore, wanted: int) -> int:
    """Return into how many shares the blocks of a graph may be divided, at most as many as are wanted."""
    return max(1, min(wanted, store.array("out/indices").length >> min(SHIFT, LEAST_SHIFT) + GROUP_SHIFT))


def block_shift(num_entries: int, num_shares: int) -> int:
    """Return the binary logarithm of the entries of a block."""
    shift = SHIFT
    while shift > LEAST_SHIFT and num_shares > 1 and num_entries >> shift + GROUP_SHIFT < SHARE_GROUPS * num_shares:
        shift -= 1
    return shift


def _block_rows(store: CSRStore, groups: tuple[str, ...], lengths: list[int], first_blocks: list[int], shift: int) -> BlockRows:
    """Return where the lists are in blocks."""
    n, num_blocks = store.num_rows, first_blocks[-1]
    num_rows = len(groups) * (n + 1) - 1
    num_entries = (first_blocks[-2] << shift) + lengths[-1]
    rows = BlockRows(
        np.empty(num_rows + 1, np.uint16), np.empty(num_blocks + 1, np.int64), np.zeros(num_blocks, np.int64),
        np.zeros(num_rows // 64 + 2, np.uint32), num_entries, shift, n + 1 if groups[1:] else num_rows, first_blocks[1],
    )  # fmt: skip
    at = np.zeros(2, np.int64)
    for group, length, first_row, first_block in zip(groups, lengths, (0, n + 1), first_blocks, strict=False):
        last = 0
        for row, begins in _row_begins(store, group):
            last = int(begins[-1]) if begins.size else last
            if not kernels.place_rows(begins + (first_block << shift), first_row + row, rows, at):
                raise damaged_rows(store, group)
        if last != length:
            raise damaged_rows(store, group)
    kernels.finish_rows(rows, at)
    return rows


def _row_begins(store: CSRStore, group: str) -> Iterator[tuple[int, Array]]:
    """Iterate over where rows begin: the first row of a block, and (n,) int64; the last block has the end of all rows, too."""
    if are_by_degree(store, group):  # known from the degrees
        lookup = sorted_lookup(store)
        for first in range(0, store.num_rows + 1, PLACED_ROWS):
            rows = np.arange(first, min(store.num_rows + 1, first + PLACED_ROWS))
            c = np.searchsorted(lookup.first, rows, side="right") - 1
            yield first, lookup.edge[c] + (rows - lookup.first[c]) * lookup.value[c]
        return
    for first, begins in offset_blocks(store, group, PLACED_ROWS):
        is_last = first + begins.size - 1 == store.num_rows
        yield first, begins if is_last else begins[:-1]
    if not store.num_rows:
        yield 0, np.zeros(1, np.int64)
