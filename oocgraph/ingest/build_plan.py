"""How a build divides its memory: pure numbers in, sizes of blocks and bins out.

Everything that grows with the graph is charged to a `Budget`; what is left is shared by the threads, and gives how many edges
a block and how many records a bin may have. The build refuses here, before it writes anything, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from oocgraph.errors import BudgetError
from oocgraph.memory import Budget, enough_memory, format_bytes

MAX_BINS = 256
"""Temporary files that one step writes to at once."""

BIN_RECORDS = 1 << 20
"""Records that a bin should have: 8 MiB of keys sort in the cache (210 M keys/s a core)."""

MAX_BLOCK_ROWS = 1 << 20
MIN_BLOCK_ROWS = 1 << 13
"""Edges read at a time: large enough that each bin's slice of a block is a page or more, small enough for the cache."""

ROW_BYTES = 64
"""Bytes that a block takes for each edge beside its columns: ids as read and as int64, keys, keys dealt to bins."""

RECORD_BYTES = 48
"""Bytes that sorting takes for each record: the key, and two results on their way to the file."""

PAYLOAD_COPIES = 4
"""Copies of the columns alive at once: as read, dealt, sorted, written."""

READER_BYTES = 24 << 20
"""What a reader may hold beside its block, per thread: compressed column chunks, parser state."""

WORKER_BYTES = 48 << 20
"""What a worker beyond the number of cores must find, or it is left out."""

FIXED_BYTES = 24 << 20
"""Compiled code, checksums, metadata, fragmentation of the heap; not imports, which are loaded before memory is counted."""

COMPRESSION_BYTES = 16 << 20
"""What writing compressed arrays takes: 3 MiB for a chunk as values and as stored, up to 1 MiB of the next one of each array."""

TEXT_COPIES = 16
"""Bytes held for each byte of strings that is sorted: copies, offsets, the hash table of distinct ones, the order."""

VERTEX_SHARE = 0.5
"""Share of the free budget that vertex arrays may take; beyond it they stay on disk and are joined instead."""


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
    """

    threads: int
    block_rows: int
    capacity: int
    resident_ids: int
    text_bytes: int

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
                f"at most {MAX_BINS} are made; set --memory (memory_budget) to {-(-slices // MAX_BINS)} times as much"
            )
        return slices

    def num_bins(self, num_records: int, *, max_bins: int = MAX_BINS) -> int:
        """Return the number of bins for about `num_records` records."""
        wanted = min(BIN_RECORDS, max(1, self.capacity // 3))
        return min(max_bins, max(1, -(-num_records // wanted)))


def workers_for(threads: int, available_bytes: int) -> int:
    """Return how many workers keep `threads` cores busy.

    Half as many again, where there is memory for them: a worker waits for files a third of its time (kron22 under 450 MiB: 9.0 s
    with three, 10.5 s with two).
    """
    more = threads + threads // 2
    return more if more * WORKER_BYTES <= available_bytes - FIXED_BYTES else threads


def plan_sizes(budget: Budget, threads: int, payload_bytes: int, *, compressed: bool = False) -> Sizes:
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

    Raises
    ------
    BudgetError
        Not even the smallest blocks fit.
    """
    per_row = ROW_BYTES + PAYLOAD_COPIES * payload_bytes
    per_record = RECORD_BYTES + PAYLOAD_COPIES * payload_bytes
    fixed = FIXED_BYTES + (COMPRESSION_BYTES if compressed else 0)
    least = fixed + threads * (READER_BYTES + MIN_BLOCK_ROWS * (per_row + per_record))
    if least > budget.available_bytes:
        need = budget.promised_bytes + least
        raise BudgetError(
            f"the build needs {format_bytes(least)} beside the interpreter's {format_bytes(budget.baseline_bytes)}, "
            f"with {threads} threads, but the memory budget is {format_bytes(budget.limit_bytes)}; "
            f"{enough_memory(need)} or use fewer threads"
        )
    budget.reserve("build", fixed + threads * READER_BYTES)
    free = budget.available_bytes
    resident = int(VERTEX_SHARE * free)
    text = free // (threads * TEXT_COPIES)
    share = (free - resident) // threads
    rows = min(MAX_BLOCK_ROWS, max(MIN_BLOCK_ROWS, share // per_row))
    return Sizes(threads, rows, max(MIN_BLOCK_ROWS, share // per_record), resident // 5, text)
