"""What every step of one build shares: the user's choices, the sizes of blocks and bins, the threads, the writer, the clock.

Everything that grows with the graph is charged to a `Budget`; what is left is shared by the threads, and gives how many edges
a block and how many records a bin may have (`plan_sizes`, pure numbers). The build refuses here, before it writes anything, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from oocgraph.config import check_threads, settings
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Scratch, Workers
from oocgraph.ingest.sources.source import Request, Source
from oocgraph.memory import Budget, format_bytes
from oocgraph.sorting import sort_keys
from oocgraph.store.records import Payload
from oocgraph.store.writer import StoreWriter
from oocgraph.types import Array, AskedOrder, Codec, Duplicates, IdKind, Progress

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BINS, MOST_BINS = 256, 768
"""Temporary files that one step writes to at once, and how many it may where a bin would not fit into memory otherwise: a process may often
open 1024."""

BIN_RECORDS = 1 << 20
"""Records that a bin should have: 8 MiB of keys sort in the cache (210 M keys/s a core)."""

MAX_BLOCK_ROWS = 1 << 20
MIN_BLOCK_ROWS = 1 << 13
"""Edges read at a time: large enough that each bin's slice of a block is a page or more, small enough for the cache."""

ROW_BYTES = 64
"""Bytes that a block takes for each edge beside its columns: ids as read and as int64, keys, keys distributed to bins."""

RECORD_BYTES = 40
"""Bytes that sorting takes for each record: the key, packed and as it is, room to sort it, and two results on their way to the file."""

ORDER_BYTES = 16
"""More for each record with columns: the order, and keys in it."""

PAYLOAD_COPIES = 4
"""Copies of the columns alive at once: as read, distributed, sorted, written."""

LEAST_THREADS = 2
"""Threads of builds and merges, however little memory there is, if so many are asked for: one takes 30 MiB less, and much longer."""

READER_BYTES = 30 << 20
"""What a reader may hold beside its block, per thread: parser state, compressed pages. Three columns of Parquet with dictionaries take 18
MB by Arrow's own allocator, which its reader uses whatever pool is set, and 8 by the system's, which the command line asks for."""

WORKER_BYTES = 48 << 20
"""What a worker beyond the number of cores must find, or it is left out."""

FIXED_BYTES = 24 << 20
"""Compiled code, checksums, metadata, fragmentation of the heap; not imports, which are loaded before memory is counted."""

COMPRESSION_BYTES = 16 << 20
"""What writing compressed arrays takes: 3 MiB for a chunk as values and as stored, up to 1 MiB of the next one of each array."""

TEXT_COPIES = 16
"""Bytes held for each byte of strings that is sorted: copies, offsets, the hash table of distinct ones, the order."""

LEAST_TEXT_BYTES = 1 << 20
"""Bytes of strings that a thread sorts at the least, for which what readers are charged has room: with an eighth, a build took three times
as long, of slices of some strings each."""

VERTEX_BYTES = 5
"""Bytes of a vertex in memory: its number, and a flag."""

VERTEX_SHARE = 0.5
"""Share of the free budget that vertex arrays may take; beyond it they stay on disk and are joined instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions(Request):
    """The choices of a build, as `oocgraph.build_csr` describes them: what to read of the source, and how to build.

    A store that goes with the process need not be `durable`: forced to disk.

    Raises
    ------
    ArgumentError
        A choice is not one of those that there are.
    """

    duplicates: Duplicates | None = None
    keep_self_loops: bool = False
    vertex_order: AskedOrder = "degree"
    memory_budget: str | int | None = None
    codec: Codec = "none"
    overwrite: bool = False
    durable: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        Request.__post_init__(self)
        check_threads(self.threads)
        for name, kind in (("duplicates", Duplicates), ("vertex_order", AskedOrder), ("codec", Codec), ("id_kind", IdKind)):
            chosen, known = getattr(self, name), get_args(kind)
            if chosen not in known and (chosen is not None or name not in {"duplicates", "id_kind"}):
                raise ArgumentError(f"{name} is {chosen!r}; it must be one of {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What one build may hold.

    Attributes
    ----------
    threads
        Threads that work at once.
    block_rows
        Edges in a block.
    capacity
        Records that a thread may hold to sort.
    text_bytes
        Bytes of strings that a thread may hold to sort.
    resident_ids
        Vertices whose numbers (4 bytes each, and a flag) fit the share of vertex arrays.
    record_bytes
        Bytes that a record takes while it is sorted.
    """

    threads: int
    block_rows: int
    capacity: int
    resident_ids: int
    text_bytes: int
    record_bytes: int = RECORD_BYTES

    def beside(self, vertex_bytes: int) -> Sizes:
        """Return the sizes of steps beside which vertex arrays hold so many bytes: threads sort with what is left of the arrays' share."""
        left = max(0, VERTEX_BYTES * self.resident_ids - vertex_bytes)
        return replace(self, capacity=self.capacity + left // (self.threads * self.record_bytes))

    @property
    def slice_ids(self) -> int:
        """Vertices whose numbers each thread may hold when not all fit."""
        return max(1 << 10, self.resident_ids // (self.threads + 1))

    def num_slices(self, num_ids: int) -> int:
        """Return the number of ranges into which `num_ids` vertices are cut, so that each thread may hold one.

        Raises
        ------
        BudgetError
            There would be more than `MAX_BINS`.
        """
        slices = max(1, -(-5 * num_ids // (4 * self.slice_ids)))
        if slices > MAX_BINS:
            raise BudgetError(
                f"{num_ids:,} vertices are too many for the memory budget: {slices} passes of {self.slice_ids:,}, "
                f"at most {MAX_BINS} are made; set memory_budget to {-(-slices // MAX_BINS)} times as much"
            )
        return slices

    def num_bins(self, num_records: int, *, shares: int = 1) -> int:
        """Return the number of bins for about `num_records` records, of which `shares` kinds are written at once.

        `MAX_BINS` suffice if a thread can sort twice what is in one: a bin that it cannot sort is read three times and written twice.
        """
        wanted, fitting = min(BIN_RECORDS, max(1, self.capacity // 3)), max(1, self.capacity // 2)
        most = max(MAX_BINS // shares, min(MOST_BINS // shares, -(-num_records // fitting)))
        return min(most, max(1, -(-num_records // wanted)))


def most_workers(threads: int) -> int:
    """Return how many workers there are for so many threads, where memory suffices."""
    return threads + threads // 2


def rows_beside(job: Job, name: str, num_bytes: int) -> int:
    """Return how many edges a block may have while one thread copies edges out of something that takes so many bytes.

    Raises
    ------
    BudgetError
        There is no room for it.
    """
    row_bytes = _edge_bytes(job.payload.binned_bytes)[0]
    budget = Budget(job.budget.limit_bytes, job.budget.baseline_bytes)
    budget.reserve("copying", FIXED_BYTES + READER_BYTES + MIN_BLOCK_ROWS * row_bytes)
    budget.reserve(name, num_bytes)
    return min(job.sizes.block_rows, MIN_BLOCK_ROWS + budget.available_bytes // row_bytes)


def workers_for(threads: int, available_bytes: int) -> int:
    """Return how many workers keep `threads` cores busy.

    Half as many again, where there is memory for them: a worker waits for files a third of its time (kron22 under 450 MiB: 9.0 s
    with three, 10.5 s with two).
    """
    more = most_workers(threads)
    return more if more * WORKER_BYTES <= available_bytes - FIXED_BYTES else threads


def _edge_bytes(payload_bytes: int) -> tuple[int, int]:
    """Bytes that an edge takes in a block, and that a record takes while it is sorted."""
    order = ORDER_BYTES if payload_bytes else 0
    return ROW_BYTES + PAYLOAD_COPIES * payload_bytes, RECORD_BYTES + order + PAYLOAD_COPIES * payload_bytes


def least_build_bytes(threads: int, payload_bytes: int, *, compressed: bool = False) -> int:
    """Return what a build takes at the least, beside the interpreter; arguments as of `plan_sizes`."""
    per_edge = sum(_edge_bytes(payload_bytes))
    return FIXED_BYTES + (COMPRESSION_BYTES if compressed else 0) + threads * (READER_BYTES + MIN_BLOCK_ROWS * per_edge)


def ample_build_bytes(threads: int, payload_bytes: int, num_ids: int, *, compressed: bool = False) -> int:
    """Return with what a build reads the largest blocks and holds the numbers of all vertices: more memory gains little."""
    least = least_build_bytes(threads, payload_bytes, compressed=compressed)
    per_edge = sum(_edge_bytes(payload_bytes))
    return least + max(2 * VERTEX_BYTES * num_ids, 2 * threads * MAX_BLOCK_ROWS * per_edge // 2)


def input_bytes(edges: Any, threads: int) -> int:
    """Return what so many threads that read an edge list hold beyond `READER_BYTES` each: of many columns, of large pages.

    Threads that sort strings have room for the least of them where usual readers have.
    """
    if not isinstance(edges, Source):
        return 0
    most, num_bytes = edges.readers
    sorting = threads * TEXT_COPIES * LEAST_TEXT_BYTES if edges.id_kind == "string" else 0
    return max(0, min(threads, most) * num_bytes + sorting - threads * READER_BYTES)


def plan_sizes(budget: Budget, threads: int, payload_bytes: int, *, compressed: bool = False, more_bytes: int = 0) -> Sizes:
    """Divide what is left of `budget`.

    Parameters
    ----------
    budget
        With the interpreter as its baseline.
    threads
        Threads that will work.
    payload_bytes
        Bytes of the columns beside each edge.
    compressed
        Whether the arrays are compressed.
    more_bytes
        What `input_bytes` returns.

    Raises
    ------
    BudgetError
        Not even the smallest blocks fit; or they would leave less than a sixth, and fewer threads have larger ones, which is quicker (3
        million edges under 1100M on two cores with 32 threads: 7.9 s, with 16: 2.7).
    """
    per_row, per_record = _edge_bytes(payload_bytes)
    fixed = FIXED_BYTES + (COMPRESSION_BYTES if compressed else 0) + more_bytes
    least = least_build_bytes(threads, payload_bytes, compressed=compressed) + more_bytes
    if least > budget.available_bytes - (0 if threads <= most_workers(LEAST_THREADS) else budget.available_bytes // 6):
        need = budget.promised_bytes + least
        raise BudgetError(
            f"the build needs {format_bytes(least)} beside the {budget.baseline_text}, "
            f"but the memory budget is {format_bytes(budget.limit_bytes)}; {budget.remedy(need)}"
        )
    budget.reserve("build", fixed + threads * READER_BYTES)
    free = budget.available_bytes
    resident = int(VERTEX_SHARE * free)
    text = max(LEAST_TEXT_BYTES, free // (threads * TEXT_COPIES))
    share = (free - resident) // threads
    rows = min(MAX_BLOCK_ROWS, max(MIN_BLOCK_ROWS, share // per_row))
    return Sizes(threads, rows, max(MIN_BLOCK_ROWS, share // per_record), resident // VERTEX_BYTES, text, per_record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One build. Nothing here grows with the graph.

    Attributes
    ----------
    options
        The user's choices.
    directed, payload
        What they mean for this source.
    writer, temporary, workers, budget, sizes, progress
        What the steps work with.
    threads
        Threads that compute: workers are more where there is memory for them.
    phases
        What each step took, in order.
    """

    options: BuildOptions
    directed: bool
    payload: Payload
    writer: StoreWriter
    temporary: Folder
    workers: Workers
    budget: Budget
    sizes: Sizes
    progress: Progress
    threads: int
    phases: dict[str, Phase] = field(default_factory=dict)

    @property
    def scratch(self) -> Scratch:
        """Buffers of the calling thread."""
        return self.workers.scratch

    def sort(self, keys: Array, num_pieces: int) -> None:
        """Sort keys in their place: one of so many pieces, so that several threads share it if those are few."""
        sort_keys(keys, partial(self.scratch.get, "sorting"), threads=max(1, self.threads // num_pieces))

    def folder(self, name: str) -> Folder:
        """Return a folder for temporary files, on the disk of the output."""
        return self.temporary.child(name)

    def results(self, name: str, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Apply `function` to each item in the threads, and report how many are done; the results come in the items' order."""
        for done, result in enumerate(self.workers.ordered(function, items), 1):
            yield result
            self.progress(name, done, len(items))

    def each(self, name: str, function: Callable[[Item], Any], items: Sequence[Item]) -> None:
        """Apply `function` to each item in the threads, report how many are done, and wait."""
        for _ in self.results(name, function, items):
            pass

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a step; the threads forget their buffers after it."""
        began = Phase.until_now()
        yield
        self.workers.scratch.forget()
        self.phases[name] = Phase.until_now() - began


def with_more(job: Job, free_bytes: int) -> int:
    """Return what a process needs in which `plan_sizes` has so many bytes to divide: with more memory there may be more workers, too.

    Beyond the fewest, these leave a sixth of it.
    """
    more = (most_workers(job.options.threads or settings().threads) - job.sizes.threads) * READER_BYTES
    return job.budget.promised_bytes + min(more, max(5 * free_bytes, most_workers(LEAST_THREADS) * READER_BYTES)) + free_bytes


@dataclass(frozen=True, slots=True)
class Phase:
    """What a step took.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall time, and time of all cores.
    bytes_read, bytes_written
        Bytes of files, those in the page cache too.
    """

    seconds: float
    cpu_seconds: float
    bytes_read: int
    bytes_written: int

    @classmethod
    def until_now(cls) -> Phase:
        """Return what this process has taken so far, from any moment on."""
        read, written = moved_bytes()
        return cls(time.perf_counter(), time.process_time(), read, written)

    def __sub__(self, before: Phase) -> Phase:
        return Phase(
            self.seconds - before.seconds,
            self.cpu_seconds - before.cpu_seconds,
            self.bytes_read - before.bytes_read,
            self.bytes_written - before.bytes_written,
        )


def moved_bytes() -> tuple[int, int]:
    """Bytes that this process has got from read calls and passed to write calls so far; 0 where /proc does not tell."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0, 0
    found = dict(line.split(": ") for line in lines)
    return int(found["rchar"]), int(found["wchar"])
