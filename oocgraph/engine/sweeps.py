"""Sweeps over all edges of a graph: kernels are given whole rows, and vectors of all vertices, as often as an algorithm wants.

In: a store, what an algorithm needs (`Needs`), a budget. Out: `Sweeps`, whose `pull` gives every row of a list to a kernel once, in several
threads, while others read. Edges stay in memory from one sweep to the next as far as the budget goes. A kernel is called as

    kernel(first, pointers, start, indices, values, *whole, *mine, *scalars, *scratch)

for rows ``first .. first + pointers.size - 2``. The neighbours of row ``first + r`` are
``indices[pointers[r] - start : pointers[r + 1] - start]``, and their weights are there in `values`, which is None without a column. `whole`
are arrays of all vertices, which it reads; `mine` those of the rows alone, which it may write: no row is in two calls, so nothing is atomic
and no result depends on the number of threads. `scratch` are arrays that no other call has meanwhile. On a cluster
(`oocgraph.cluster.sweeps`) workers have ranges of the rows.

A sweep that needs few of the rows (`Rows`) says so: `Sweeps.select` finds where they are and what they cost, and `pull` with that leaves
the rest on disk.
"""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import selection
from oocgraph.memory import SLACK_BYTES, Budget, device_bytes_read, page_cache_bytes
from oocgraph.results.writer import writing_bytes
from oocgraph.sparse import edge_stream
from oocgraph.sparse.edge_stream import READ_AHEAD, EdgeStream, Ranges, pieces_bytes
from oocgraph.sparse.partial import PartialCSR
from oocgraph.sparse.piece_table import PieceTable
from oocgraph.store.arrays import REMEDY, PlainArray
from oocgraph.store.gather import checksum_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_places import row_ends, row_lengths, row_pieces, whole_row_pieces
from oocgraph.store.rows import degree_blocks, longest_row
from oocgraph.store.scattered import RangeReader, kept_bytes, load_gathering, reading_bytes
from oocgraph.team import Team, team_of
from oocgraph.types import PAGE_BYTES, Array, Progress, ignore_progress

RANGE_VERTICES = 1 << 16
"""Vertices of a range."""

ROOM = "room of its own"
"""What `Needs.room_bytes` are charged as."""

DEGREES_BYTES = 32 * RANGE_VERTICES
"""What `Sweeps.degrees` holds: offsets as they are read, and checked, and degrees of two ranges."""

BATCH_PIECES, MOST_BATCHES = 8, 16
"""Pieces of a batch of rows, at least, and batches, at most."""

MOST_RANGES = 64
"""Ranges of rows of a piece that are read one by one: each takes about 30 us, as long as reading 64 KiB in one go."""

MOST_SELECTIONS = 2
"""Selections that an algorithm holds at once."""

READ_SHARE, UNCACHED_SHARE, LEAST_READ = 128, 1024, 1 << 10
"""Rows that are read by themselves are one in so many at the most, or so many: a page of the page cache takes about 1 us, one of the disk
20, while all edges are read as fast as they are copied. (Of a shuffled grid of 2 M vertices, one in 140 took as long as all.)"""

READ_ROWS, ROW_BYTES = 1 << 13, 256
"""Rows that are read by themselves at once, and what each takes: where it begins and ends, and while these are found."""

READ_ENTRIES, ENTRY_BYTES = 1 << 15, 40
"""Their neighbours that are in one part, and what each takes, with its row."""

GAP_PAGES = 4
"""Pages between two rows that are read with them, if there are no more."""

Chosen = Callable[[int, int], bool]
"""Whether there is anything to do for rows ``first .. stop - 1``."""

Lists = Literal["in", "out"]
"""Which lists are swept; those of an undirected graph are the same."""


class Rows(NamedTuple):
    """Rows that a sweep needs: those v with ``(words[v] ^ inverted) & mask``, not 0.

    Attributes
    ----------
    words : (num_vertices,) uint64
    mask, inverted : uint64
    """

    words: Array
    mask: Any = np.uint64(2**64 - 1)
    inverted: Any = np.uint64(0)


class Selection(NamedTuple):
    """Where rows are that a sweep needs.

    Attributes
    ----------
    lists
        Their lists.
    ranges
        Pieces that have such rows, and which rows of them are read.
    num_entries, num_read : int
        About how many neighbours these rows have, and how many are read from the store.
    """

    lists: Lists
    ranges: Ranges
    num_entries: int
    num_read: int


class Way(NamedTuple):
    """How rows are gone through.

    Attributes
    ----------
    lists
        Which.
    only
        Which rows; None: all.
    is_backwards
        Whether the last ones come first.
    has_scratch
        Whether the kernel takes scratch.
    """

    lists: Lists
    only: Chosen | Selection | range | None = None
    is_backwards: bool = False
    has_scratch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What an algorithm needs, all of which is charged before anything is read.

    Attributes
    ----------
    vectors
        Bytes of arrays of all vertices, by name; those of the result included.
    by_threads
        Bytes of what depends on the number of threads, by name.
    result_bytes
        Bytes of the result, which stays when the rest is gone.
    lists
        Which lists it sweeps.
    column
        Edge column of the weights; None: all are one.
    kernels
        Each kernel with arguments, those of the rows left out, that have the types with which it is called.
    vertex_kernels
        Each kernel that is not given rows, with arguments that have the types with which it is called.
    scratch
        Dtype and length of arrays of zeros that a call has for itself, as the call before has left them.
    longest_row
        Entries of the longest row, if `scratch` has room for as many: a longer row is an error then.
    room_bytes
        Bytes that it can use beside all this: the least, and the most that are of use. They come before edges that stay in memory.
    room_share
        How much of what is left it has, if the most is more than that.
    spare_bytes
        Bytes that each thread can use beside all this where all edges stay in memory, and there is room for them.
    selects
        Whether it sweeps over some of the rows only (`Sweeps.select`).
    sent_bytes
        Bytes of the vectors that a worker of a cluster is sent for a sweep; by default of all.
    """

    vectors: Mapping[str, int]
    result_bytes: int
    by_threads: Mapping[str, Callable[[int], int]] = field(default_factory=dict)
    lists: Sequence[Lists] = ("in",)
    column: str | None = None
    kernels: Sequence[tuple[Any, ...]] = ()
    vertex_kernels: Sequence[tuple[Any, ...]] = ()
    scratch: Sequence[tuple[Any, int]] = ()
    longest_row: int | None = None
    room_bytes: tuple[int, int] = (0, 0)
    room_share: float = 1.0
    spare_bytes: int = 0
    selects: bool = False
    sent_bytes: int | None = None


class Edges(Protocol):
    """Where the edges are, and who gives them to kernels: `StreamedEdges`, or the workers of a cluster (`oocgraph.cluster.sweeps`)."""

    def pull(self, kernel: Any, whole: Sequence[Array], mine: Sequence[Array], scalars: Sequence[Any], way: Way) -> list[Any]:
        """See `Sweeps.pull`."""
        ...

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files so far."""
        ...

    @property
    def bytes_read(self) -> int:
        """The larger of these and the device bytes of the process."""
        ...


@dataclass(slots=True, eq=False)
class StreamedEdges:
    """The edges of a graph, or of ranges of its rows, in this process.

    Attributes
    ----------
    streams
        By lists, with the bytes that each had requested before.
    device_began
        Bytes that the process had read from devices before.
    reader
        Of rows by themselves, where these are in plain local files.
    longest_row, url
        See `Needs.longest_row`; the store, for its error.
    """

    streams: dict[Lists, tuple[EdgeStream, int]] = field(default_factory=dict)
    device_began: int = field(default_factory=device_bytes_read)
    scratch: queue.SimpleQueue[Sequence[Array]] = field(default_factory=queue.SimpleQueue)
    reader: RangeReader | None = None
    longest_row: int | None = None
    url: str = ""

    @property
    def are_kept(self) -> bool:
        """Whether all stay in memory once they were read."""
        return all(stream.num_kept == len(stream.parts) for stream, _ in self.streams.values())

    @property
    def unkept_bytes(self) -> int:
        """Bytes of edges that are read each time."""
        return sum(stream.unkept_bytes for stream, _ in self.streams.values())

    def stream(self, lists: Lists) -> EdgeStream:
        """Return the stream of some lists."""
        return self.streams[lists if lists in self.streams else next(iter(self.streams))][0]

    def pull(self, kernel: Any, whole: Sequence[Array], mine: Sequence[Array], scalars: Sequence[Any], way: Way) -> list[Any]:
        """See `Sweeps.pull`; of a range of rows `mine` begins with its first."""
        stream = self.stream(way.lists)
        before = stream.part.first_line

        def call(part: PartialCSR) -> Any:
            if way.has_scratch and self.longest_row is not None:
                self._check_rows(part, self.longest_row)
            rows, scratch = slice(part.first_line - before, part.stop_line - before), self.scratch.get() if way.has_scratch else ()
            try:
                return kernel(
                    part.first_line, part.pointers, part.start, part.indices, as_numbers(part.values), *whole,
                    *(one[rows] for one in mine), *scalars, *scratch,
                )  # fmt: skip
            finally:
                if way.has_scratch:
                    self.scratch.put(scratch)

        return stream.each(call, _ranges_of(stream, way.only), is_backwards=way.is_backwards)

    def _check_rows(self, part: PartialCSR, longest_row: int) -> None:
        """Refuse rows that are longer than the store says that any is.

        Raises
        ------
        CorruptStoreError
            One is.
        """
        most = int(np.diff(part.pointers).max(initial=0))
        if most > longest_row:
            raise CorruptStoreError(
                f"{self.url}: by indptr a row from row {part.first_line:,} on has {most:,} entries, by the degrees none has more than "
                f"{longest_row:,}; {REMEDY}"
            )

    def select(self, rows: Rows, lists: Lists) -> Selection:
        """See `Sweeps.select`."""
        stream = self.stream(lists)
        num_entries, num_read, ranges = 0, 0, dict[int, Array | None]()
        scratch = np.empty((MOST_RANGES, 2), np.int64)
        for i, part in enumerate(stream.parts):
            page = PAGE_BYTES // part.indices.dtype.itemsize
            mean = max(1.0, part.num_entries / max(1, part.num_lines))
            num_ranges, num_rows, num_between = selection.find_ranges(
                *rows, part.first_line, part.stop_line, max(1, int(GAP_PAGES * page / mean)), scratch
            )
            if not num_rows:
                continue
            is_whole = i < stream.num_kept or num_ranges == MOST_RANGES or num_between > part.num_lines // 2
            ranges[i] = None if is_whole else scratch[:num_ranges].copy()
            num_entries += int(num_rows * mean)
            if i >= stream.num_kept:
                num_read += part.num_entries if is_whole else int(num_between * mean) + num_ranges * page
        return Selection(lists, ranges, num_entries, num_read)

    def most_rows(self, lists: Lists) -> int:
        """See `Sweeps.most_rows`."""
        stream, reader = self.stream(lists), self.reader
        if stream.num_kept == len(stream.parts) or reader is None:
            return 0 if reader is None else reader.store.num_rows
        return max(LEAST_READ, reader.store.num_rows // (UNCACHED_SHARE if stream.is_direct else READ_SHARE))

    def rows(self, vertices: Array, lists: Lists, whole_rows: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """See `Sweeps.rows`."""
        assert self.reader is not None
        cut = whole_row_pieces if whole_rows else row_pieces
        for which, begin, end in cut(*row_ends(self.reader.store, lists, vertices, self.reader), READ_ENTRIES):
            yield which, np.append(0, np.cumsum(end - begin)), self.reader.read(f"{lists}/indices", begin, end)

    @property
    def bytes_requested(self) -> int:
        """See `Edges`."""
        by_rows = 0 if self.reader is None else self.reader.bytes_read.total()
        return by_rows + sum(stream.bytes_requested - before for stream, before in self.streams.values())

    @property
    def bytes_read(self) -> int:
        """See `Edges`."""
        return max(self.bytes_requested, device_bytes_read() - self.device_began)


@dataclass(slots=True, eq=False)
class Sweeps:
    """The edges of a graph for any number of sweeps; `open_sweeps` makes one.

    Attributes
    ----------
    store : CSRStore
    team : Team
        Threads, for work on vertices.
    progress : Progress
    edges : Edges
    room_bytes : int
        What it has of `Needs.room_bytes`.
    num_spared : int
        Threads that have `Needs.spare_bytes`.
    num_sweeps : int
        Made so far.
    """

    store: CSRStore
    team: Team
    progress: Progress
    edges: Edges
    room_bytes: int = 0
    num_spared: int = 0
    num_sweeps: int = 0
    _degree_bytes: int = 0

    def pull(
        self, kernel: Any, whole: Sequence[Array] = (), mine: Sequence[Array] = (), scalars: Sequence[Any] = (), *, lists: Lists = "in",
        only: Chosen | Selection | range | None = None, alternates: bool = False, has_scratch: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Give every row to a kernel, and return what its calls return, in the order of the rows.

        Parameters
        ----------
        kernel
            Compiled; called in several threads at once (see this module).
        whole, mine
            Arrays of all vertices along the first axis; of `mine` each call gets its rows.
        scalars
            Numbers, or arrays that all calls share (in this process only).
        lists
            Of an undirected graph, there is one list of a vertex, and ``in`` is ``out``. A selection has its own.
        only
            Whether there is anything to do for rows ``first .. stop - 1``: pieces for which there is not need not be read. Or rows that
            `select` has found; the kernel is given others too, where these are in memory or near. Or pieces of one of `batches`.
        alternates
            Begin every other sweep with the last rows: where calls use what others find, it travels in both directions.
        has_scratch
            Whether the kernel takes `Needs.scratch` (in this process only).

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        self.num_sweeps += not (isinstance(only, range) and only.start)  # the batches of a graph are one sweep
        those = only.lists if isinstance(only, Selection) else self._those(lists)
        way = Way(those, only, alternates and self.num_sweeps % 2 == 0, has_scratch)
        return self.edges.pull(kernel, whole, mine, scalars, way)

    @property
    def can_select(self) -> bool:
        """Whether rows can be left out: in this process."""
        return isinstance(self.edges, StreamedEdges)

    def select(self, rows: Rows, *, lists: Lists = "in") -> Selection:
        """Find where rows are that a sweep needs, and about what it costs (`Needs.selects`; in this process only)."""
        return self._streamed.select(rows, self._those(lists))

    @property
    def unkept_bytes(self) -> int:
        """Bytes of edges that are read in each sweep (in this process only)."""
        return self._streamed.unkept_bytes

    def most_rows(self, lists: Lists) -> int:
        """Return how many rows can be read by themselves (`rows`) in less time than all, in this process; 0: none can be."""
        return self._streamed.most_rows(self._those(lists))

    def can_bring(self, lists: Lists) -> bool:
        """Whether a `table` finds rows in memory that do not stay there (in this process only)."""
        return self._streamed.stream(self._those(lists)).can_lend

    def rows(self, vertices: Array, lists: Lists, *, whole_rows: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """Read rows by themselves, some at a time (`Needs.selects`; in this process only).

        Parameters
        ----------
        vertices : (num,) int64
            Ascending; at most `READ_ROWS`.
        whole_rows
            Each comes at once, empty ones too; none has more than `READ_ENTRIES` entries.

        Yields
        ------
        (slice, (num_rows + 1,) int64, (num_entries,) index dtype)
            Which of the vertices have neighbours here, and where those of each begin and end; a row that is not whole may come in parts.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        return self._streamed.rows(vertices, self._those(lists), whole_rows)

    def row_lengths(self, vertices: Array, lists: Lists) -> Array:
        """Return how many neighbours some vertices have, as `rows` takes them: (num,) int64."""
        return row_lengths(self.store, self._those(lists), vertices, self._streamed.reader)

    def pieces(self, lists: Lists = "in") -> list[AbstractContextManager[PartialCSR]]:
        """Return what holds each piece of the rows in memory while its context lasts, for threads of others; each once.

        (In this process only.)
        """
        stream = self._streamed.stream(self._those(lists))
        return [stream.piece(i) for i in range(len(stream.parts))]

    def table(self, lists: Lists = "in") -> PieceTable:
        """Return where rows are in memory, for kernels that go from row to row (in this process only)."""
        return PieceTable(self._streamed.stream(self._those(lists)))

    def batches(self, lists: Lists = "in") -> list[tuple[range, slice]]:
        """Cut the rows into batches, always the same, that are large enough for several threads: pieces and rows of each.

        (In this process only.)
        """
        parts = self._streamed.stream(self._those(lists)).parts
        count = max(1, min(MOST_BATCHES, len(parts) // BATCH_PIECES))
        cuts = [len(parts) * i // count for i in range(count + 1)]
        return [(range(a, z), slice(parts[a].first_line, parts[z - 1].stop_line)) for a, z in pairwise(cuts)]

    def degrees(self, lists: Lists) -> Iterator[tuple[int, Array]]:
        """Yield how many neighbours consecutive vertices have: the first of them, and (num_rows,) int64; no list is read.

        Holds `DEGREES_BYTES`.
        """
        group = self._those(lists)
        is_held = self.store.array(f"{group}/indptr").is_held
        for first, degree in degree_blocks(self.store, group, RANGE_VERTICES):
            self._degree_bytes += 0 if is_held else degree.nbytes
            yield first, degree

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files so far."""
        return self._degree_bytes + self.edges.bytes_requested

    @property
    def _streamed(self) -> StreamedEdges:
        assert isinstance(self.edges, StreamedEdges)
        return self.edges

    def _those(self, lists: Lists) -> Lists:
        return lists if self.store.attributes.directed else "out"

    def add_up(self, *results: Sequence[float]) -> float:
        """Add up what calls have returned: always in the same order; infinite if float64 does not hold it."""
        with np.errstate(over="ignore"):
            return float(np.sum([np.sum(one) for one in results]))

    def vertices(self, call: Callable[[int, int], Any], seconds: float) -> list[Any]:
        """Return what ``call(start, stop)`` makes of ranges of all vertices, always the same; all take so long in one thread."""
        n = self.store.num_rows
        ranges = [(start, min(n, start + RANGE_VERTICES)) for start in range(0, n, RANGE_VERTICES)]
        return self.team.run(lambda piece: call(*piece), ranges, seconds)


OpenEdges = Callable[[CSRStore, Needs, Budget], AbstractContextManager[Edges]]
"""Opens the edges within a budget, which is charged with the vectors already."""


@contextmanager
def open_sweeps(
    store: CSRStore, needs: Needs, budget: Budget, open_edges: OpenEdges, *, threads: int, pieces: int, progress: Progress = ignore_progress
) -> Iterator[Sweeps]:
    """Charge what an algorithm needs, and yield the edges.

    Parameters
    ----------
    open_edges
        Opens them; it needs `pieces` bytes at the least.
    threads
        Of work on vertices.

    Raises
    ------
    BudgetError
        It does not fit; the message names all of it and the smallest budget that works.
    """
    trial = Budget(budget.limit_bytes, budget.baseline_bytes, following_bytes=budget.following_bytes)
    trial.alternatively("the result, when it is written,", needs.result_bytes + SLACK_BYTES + writing_bytes(store))
    with trial.all_or_none():
        charge_needs(store, needs, threads, trial)
        trial.reserve("pieces of edges", pieces)
    charge_needs(store, needs, threads, budget)
    (room, most), left = needs.room_bytes, max(0, trial.available_bytes)
    more = most - room if most - room <= left else int(needs.room_share * left)
    if more:
        budget.reserve(ROOM, more)
    with team_of(threads) as team, open_edges(store, needs, budget) as edges:
        spared = 0
        if needs.spare_bytes and isinstance(edges, StreamedEdges) and edges.are_kept:
            spared = min(threads, max(0, budget.available_bytes) // needs.spare_bytes)
            budget.reserve("threads alone", spared * needs.spare_bytes)
        yield Sweeps(store, team, progress, edges, room + more, spared)


@contextmanager
def stream_edges(store: CSRStore, needs: Needs, budget: Budget, *, opened: OpenedGraph | Unopened, threads: int) -> Iterator[StreamedEdges]:
    """Yield the edges in this process: as many stay in memory as the budget has room for."""
    lists, edges, options = (
        lists_of(store, needs),
        StreamedEdges(longest_row=needs.longest_row, url=store.url),
        stream_options(needs, threads),
    )
    for i, one in enumerate(lists):
        others = sum(pieces_bytes(store, transpose=other == "in", **options) for other in lists[i + 1 :])
        if others:  # they get a fair share of what there is
            left, own = len(lists) - i, pieces_bytes(store, transpose=one == "in", **options)
            share = min(budget.available_bytes // left * (left - 1), budget.available_bytes - own)
            budget.reserve("other lists", max(others, share))
        stream = opened.edges(store, budget, transpose=one == "in", keep_edges=True, **options)
        if others:
            budget.release("other lists")
        stream.read_directly(page_cache_bytes(budget.limit_bytes))
        edges.streams[one] = stream, stream.bytes_requested
    for _ in range(_num_callers(threads) if needs.scratch else 0):
        edges.scratch.put([np.zeros(length, dtype) for dtype, length in needs.scratch])
    with RangeReader(store, Budget(sys.maxsize, 0)) as reader:  # charged before
        edges.reader = reader if _rows_bytes(store, needs) else None
        yield edges


def least_bytes(store: CSRStore, needs: Needs, threads: int) -> int:
    """Return what `stream_edges` holds at the least."""
    return sum(pieces_bytes(store, transpose=one == "in", **stream_options(needs, threads)) for one in lists_of(store, needs))


def stream_options(needs: Needs, threads: int) -> dict[str, Any]:
    """Return arguments of `EdgeStream`."""
    return {"column": needs.column, "threads": threads, "whole_rows": True}


def load_sweep_kernels(store: CSRStore, needs: Needs) -> None:
    """Bring the kernels of an algorithm into memory, before memory is counted."""
    calls: list[tuple[Any, tuple[Any, ...]]] = [(kernel, tuple(arguments)) for kernel, *arguments in needs.vertex_kernels]
    for one in lists_of(store, needs):
        indices, pointers = (np.empty(0, store.array(f"{one}/{name}").dtype.newbyteorder("=")) for name in ("indices", "indptr"))
        values = None
        if needs.column is not None:
            values = as_numbers(np.empty(0, store.array(f"{one}/{needs.column}").dtype.newbyteorder("=")))
        calls += [(kernel, (0, pointers, 0, indices, values, *arguments)) for kernel, *arguments in needs.kernels]
    if needs.selects:
        calls.append((selection.find_ranges, (*Rows(np.empty(0, np.uint64)), 0, 0, 0, np.empty((0, 2), np.int64))))
    load_kernels(calls)
    if _rows_bytes(store, needs):
        for itemsize in {store.index_dtype.itemsize, 8}:  # of neighbours, and of where rows begin
            load_gathering(np.dtype(f"u{itemsize}"))


def charge_needs(store: CSRStore, needs: Needs, threads: int, budget: Budget) -> None:
    """Reserve the vectors of an algorithm, and what else it needs at the least."""
    charges = {**needs.vectors, **{name: bytes_of(threads) for name, bytes_of in needs.by_threads.items()}}
    if needs.scratch:
        charges["scratch"] = _num_callers(threads) * sum(np.dtype(dtype).itemsize * length for dtype, length in needs.scratch)
    if needs.selects:
        num_pieces = store.edge_bytes // edge_stream.PIECE_BYTES + 1
        charges["ranges of rows"] = MOST_SELECTIONS * num_pieces * MOST_RANGES * 16
    if rows := _rows_bytes(store, needs):
        charges["rows by themselves"] = rows
    if needs.room_bytes[0]:
        charges[ROOM] = needs.room_bytes[0]
    budget.reserve("threads and compiled code", SLACK_BYTES)
    for name, num_bytes in charges.items():
        budget.reserve(name, num_bytes)


def _rows_bytes(store: CSRStore, needs: Needs) -> int:
    """Return what it takes to read rows by themselves (`Sweeps.rows`); 0: they are not read so."""
    arrays = [store.array(f"{one}/indices") for one in (lists_of(store, needs) if needs.selects else ())]
    if not arrays or store.where is not None or not all(isinstance(array, PlainArray) for array in arrays):
        return 0
    entries, rows = min(READ_ENTRIES, max(array.length for array in arrays)), min(READ_ROWS, store.num_rows)
    pointers = [store.array(f"{one}/indptr") for one in lists_of(store, needs)]
    reader_bytes = reading_bytes(store) + kept_bytes(store) + sum(map(checksum_bytes, arrays + pointers))
    return reader_bytes + ENTRY_BYTES * entries + ROW_BYTES * rows


def longest_list(store: CSRStore, lists: Lists = "in") -> int:
    """Return the most neighbours that a vertex has."""
    group = lists if store.attributes.directed else "out"
    if group == store.pull_group and store.attributes.vertex_order == "degree":
        return int(max(store.degree_classes[0][:1], default=0))
    return longest_row(store, group)[1]


def _num_callers(threads: int) -> int:
    """Return how many calls of a kernel there are at a time, at most."""
    return threads + READ_AHEAD


def _ranges_of(stream: EdgeStream, only: Chosen | Selection | range | None) -> Ranges | None:
    """Return the pieces that are needed."""
    if isinstance(only, range):
        return dict.fromkeys(only)
    if only is None or isinstance(only, Selection):
        return None if only is None else only.ranges
    return {i: None for i, part in enumerate(stream.parts) if only(part.first_line, part.stop_line)}


def lists_of(store: CSRStore, needs: Needs) -> list[Lists]:
    """Return the lists that an algorithm sweeps and the graph has."""
    return list(dict.fromkeys(needs.lists)) if store.attributes.directed else ["out"]


def as_numbers(values: Array | None) -> Array | None:
    """Return bools as bytes, which kernels can multiply."""
    return values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values
