"""The steps of an iteration: compute threads over words, reading threads over pages.

In: a `Shard`, and per search a state. `LocalRuntime` runs them on a whole graph, `PartRuntime` on what one partition owns: then
the rows of the pull adjacency, and all that is noted of vertices, are at the partition's local positions, while neighbours and
the frontier are store numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oocgraph.closing import Closing
from oocgraph.compiled.deques import Member
from oocgraph.config import Settings
from oocgraph.engine.buffers import BufferPool
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.long_rows import Look, Part, look_through
from oocgraph.engine.shard import Adjacency, Shard
from oocgraph.engine.state import SearchState, are_marked
from oocgraph.engine.take_over import PULL_HEADS, PULL_TAILS, PUSH, Result
from oocgraph.engine.windows import pull_windows, push_windows
from oocgraph.kernels import cpu
from oocgraph.kernels.row_runs import load_row_runs
from oocgraph.kernels.rows import NO_LONG_ROWS, ChunkFiles, new_long_rows, no_files
from oocgraph.plan.direction import Facts
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.store.gather import EdgeFiles, Gatherer
from oocgraph.store.graph import CSRStore
from oocgraph.subgraph.extract import edge_pieces, equal_pieces, slice_cuts
from oocgraph.team import PIECES_PER_THREAD as PIECES_PER_COMPUTING_THREAD
from oocgraph.team import Counts, borrow, give_back
from oocgraph.types import LEVEL_UNREACHED, PAGE_BYTES, Array, no_parent

NUM_SLICES = 1024
"""Slices of the vertex range in which rows and pages are counted and from which pieces of work are made."""

PIECES_PER_THREAD = 4
"""Pieces a reading thread gets, so that one slow piece does not hold up the rest."""

WORD_SECONDS, ROW_SECONDS, PROBE_SECONDS = 1e-9, 1e-8, 4e-9
"""About what a word of a bitmap takes, a row that is looked up, and a neighbour that is looked for in the frontier: to tell little work."""

PULL_GRAIN, LEAST_GRAIN = 256, 16
"""Words that a thread takes at once in a pull, at the most and at the least: to take some costs 0.13 us, more than a pull of one word."""

LONG_ROW, MOST_LONG_ROWS = 1 << 16, 4096
"""Entries of a row that one thread looks through before all do, 0.2 ms, and how many such rows a pull puts off."""

PAGE_SECONDS = 2e-5
"""About what a page from disk takes, with all reading threads."""

SAMPLE_WORDS = 256
"""Bitmap words that a sample for the cost rule looks at."""

LOG_LEVELS = 8192
"""Levels in one call of the kernel for tiny frontiers."""

SERIAL_MISSES = 16
"""Pages that this kernel reads one after the other (66 us each) before it asks for them to be read together."""

PREFETCH_MISSES = 2048
"""Pages up to which they are read together into its cache; above, the iteration is planned as a large one."""

BUFFER_BYTES = 256 << 10
"""Staging buffer of a reading thread."""

SPARSE_GAP_PAGES, DENSE_GAP_PAGES, DENSE_SHARE = 1, 8, 0.3
"""Pages read though not needed, to join two reads: few, or more when this share of all pages is needed anyway."""


DISK_BYTE_COST = 25
"""What a byte from disk costs in bytes of memory traffic: scattered pages 0.33 GB/s against about 8 GB/s."""


Call = Callable[[Any, Array], Result]
"""Works on a piece, with a buffer for what is read; that is empty where nothing is."""


class Job(NamedTuple):
    """A step's work on a range, before it is cut.

    Attributes
    ----------
    kind
        See `oocgraph.engine.take_over`.
    seconds
        About how long it takes in one thread.
    active
        Counts the active vertices of pieces.
    files
        Of the edges that are read; None: all are in memory.
    is_dense, gap
        How they are read.
    """

    kind: int
    seconds: float
    active: Callable[[Sequence[tuple[int, int]]], Array]
    files: EdgeFiles | None = None
    is_dense: bool = False
    gap: int = 0


class TinyLimits(NamedTuple):
    """Up to how many vertices and edges a frontier is tiny."""

    vertices: int
    edges: int


COUNT_SHARE = 1 / 16
"""Frontiers above this share of the vertices are not counted before a decision: a push of one reads nearly all pages."""


class Engine(Closing):
    """A graph in memory, as far as it is, with the threads and caches that search it.

    Parameters
    ----------
    store, graph
        The graph on disk, and what is resident of it.
    threads, io_threads
        Compute and reading threads.
    knobs
        The configuration that holds for its searches.

    Attributes
    ----------
    pull_grain : int
        Words that a thread takes at once in a pull, less than `PULL_GRAIN` where threads would not have enough pieces.
    """

    outside_byte_cost: float = DISK_BYTE_COST
    outside_page_bytes: int = PAGE_BYTES

    def __init__(self, store: CSRStore, graph: Shard[Adjacency], *, threads: int, io_threads: int, knobs: Settings) -> None:
        self.store, self.graph, self.threads, self.io_threads, self.knobs = store, graph, threads, io_threads, knobs
        self.team = borrow(threads)
        on_disk = any(adjacency.files is not None for adjacency in graph.adjacencies)
        if not all(adjacency.all_resident or adjacency.files is not None for adjacency in graph.adjacencies):
            load_row_runs()
        self._gatherer = Gatherer(io_threads, BUFFER_BYTES) if on_disk else None
        self._cuts = {id(adjacency): slice_cuts(max(1, -(-adjacency.num_rows // 64)), NUM_SLICES) for adjacency in graph.adjacencies}
        self._cache_tag = np.full(graph.residency.cache_slots, -1, np.int64)
        self._cache = np.empty(max(1, self._cache_tag.size) * PAGE_BYTES, np.uint8)
        self._missing = np.empty(PREFETCH_MISSES if on_disk else 0, np.int64)
        self._long_rows = new_long_rows(MOST_LONG_ROWS, LONG_ROW)
        self.pull_grain = min(PULL_GRAIN, max(LEAST_GRAIN, graph.pull.num_rows // 64 // (threads * PIECES_PER_COMPUTING_THREAD)))
        self._buffers = BufferPool()
        self.lifetime = Lifetime(store.url)
        self.on_phase: Callable[[str], None] = _ignore_phase

    def close(self) -> None:
        """End the threads and close the files; closing again does nothing."""
        with self.lifetime.ending() as was_open:
            if not was_open:
                return
            give_back(self.team)
            if self._gatherer is not None:
                self._gatherer.close()
            self.graph.close()

    @property
    def thread_counts(self) -> Counts | None:
        """What its threads have done so far, with the work that they shared; None of one thread."""
        return self.team.counts if self.threads > 1 else None

    @property
    def planes_resident(self) -> int:
        """Planes in memory."""
        return self.graph.pull.num_planes

    # The steps, in the order in which an iteration takes them.

    def little_levels(self, state: SearchState, last_level: int, *, may_pull: bool) -> bool:
        """Find levels that are little work, many in one call; returns whether one is left that is more: here those of tiny frontiers."""
        return self.push_levels(state, last_level)

    def push_levels(self, state: SearchState, last_level: int, *, few: TinyLimits | None = None) -> bool:
        """Push tiny frontiers, many levels in one kernel call; returns whether a larger frontier is left.

        Where `few` is given, it alone says what is tiny; else what has to be read counts too.
        """
        push = self.graph.push
        most = few or TinyLimits(QUEUE_CAPACITY, QUEUE_CAPACITY)
        too_large = state.frontier_size > most.vertices or state.frontier_edges > most.edges
        if too_large or (push.files is None and not push.all_resident):
            return True
        self._to_queue(state)
        last_of_form = np.iinfo(np.int32).max if state.wide else LEVEL_UNREACHED - 1
        limits = np.array([last_level, most.edges, SERIAL_MISSES, last_of_form, SERIAL_MISSES, most.vertices], np.int64)
        log = np.empty((LOG_LEVELS, 4), np.int64)
        fetched, fetch_seconds = 0, 0.0
        while True:
            status, error = cpu.push_levels(
                state.queues, state.counts, limits, push.lookup, push.heads, push.resident, _files_of(push),
                self._cache_tag, self._cache, self._cache.view(self.store.index_dtype), self._missing,
                state.reached, *state.owners, state.marks, state.targets, log,
            )  # fmt: skip
            if error and push.files is not None:
                raise push.files.error(error)
            state.take_log(log, fetched, fetch_seconds)
            limits[2], fetched, fetch_seconds = SERIAL_MISSES, 0, 0.0
            if status == cpu.STATUS_MISSES and (few is not None or state.counts[5] < PREFETCH_MISSES):
                began = time.perf_counter()
                fetched = self._fill_cache(int(state.counts[5]))
                fetch_seconds = time.perf_counter() - began
                limits[2] = self._missing.size
            elif status != cpu.STATUS_LOG_FULL:
                break
        self.measure(state)
        if status == cpu.STATUS_DONE:
            return False
        self._to_bitmap(state)
        return True

    def facts(self, state: SearchState, *, with_costs: bool) -> Facts:
        """Measure what the direction rules compare."""
        n, m, pages = self.store.num_rows, self.store.attributes.num_stored_edges, 0
        if not with_costs:
            return state.facts(n, m)
        if not self.graph.push.all_resident:
            many = state.frontier_size > COUNT_SHARE * self.store.num_rows
            pages = self.graph.push.disk_pages if many else self.frontier_pages(state)
        pull = self.graph.pull
        step = max(1, state.num_words // SAMPLE_WORDS)
        sample = cpu.sample_heads(step, state.num_vertices, pull.lookup, pull.heads, pull.resident, state.frontier, state.visited)
        return state.facts(n, m, frontier_pages=pages, sample=sample, disk_pages=pull.disk_pages)

    def pull_heads(self, state: SearchState) -> int:
        """Pull over what is resident; returns how many vertices that leaves undecided."""
        pull = self.graph.pull

        what = pull.lookup, pull.heads, pull.resident
        marks = state.frontier, state.visited, state.undecided, state.marks, self._long_rows if self.threads > 1 else NO_LONG_ROWS

        def heads(member: Member, grain: int) -> int:
            return int(cpu.pull_heads_in_pieces(member, grain, state.num_words, state.num_vertices, *what, *marks)[1])

        def piece_of_heads(piece: tuple[int, int], _: Array) -> Result:
            return int(cpu.pull_heads(*piece, state.num_vertices, *what, 0, *marks)[1]), 0, 0

        seconds = WORD_SECONDS * state.num_words + PROBE_SECONDS * state.num_unvisited
        if self.is_offered(state, seconds):
            job = Job(PULL_HEADS, seconds, lambda pieces: _num_marked(lambda a, z: ~state.visited[a:z], pieces))
            left = sum(one[0] for one in self.spread(state, job, piece_of_heads, self.cut(state, state.num_words, seconds)))
        else:
            left = sum(self.team.run_pieces(heads, state.num_words, self.pull_grain, seconds))
        left += look_through(state, pull, self._long_rows, _files_of(pull), self._look_in_memory)
        if left and state.num_kept:
            left -= int(cpu.pull_kept(state.kept_entries, 0, state.num_kept, state.frontier, state.visited, state.undecided, state.marks))
        return int(left)

    def undecided_pages(self, state: SearchState) -> int:
        """Exact number of first pages that the undecided vertices need."""
        return int(self._count(self.graph.pull, state.undecided, state.num_unvisited, first_pages_only=True)[:, 2].sum())

    def frontier_pages(self, state: SearchState) -> int:
        """Exact number of pages that the frontier's rows need."""
        return int(self._count(self.graph.push, state.frontier, state.frontier_size, first_pages_only=False)[:, 2].sum())

    def pull_tails(self, state: SearchState) -> int:
        """Pull the undecided vertices' tails from disk; returns bytes requested."""
        pull = self.graph.pull
        if pull.files is None or self._gatherer is None:
            return pull_windows(pull, state, self.io_threads)
        counts = self._count(pull, state.undecided, state.num_unvisited, first_pages_only=True)
        dense = counts[:, 2].sum() > DENSE_SHARE * pull.disk_pages
        gap = DENSE_GAP_PAGES if dense else SPARSE_GAP_PAGES
        files = pull.files.stream_arguments if dense else pull.files.arguments
        cuts = self._cuts[id(pull)]
        pieces = [(int(cuts[a]), int(cuts[z])) for a, z in equal_pieces(counts[:, 0], self.num_reads)]

        def call(piece: tuple[int, int], buffer: Array) -> Result:
            if piece[0] == pieces[0][0]:
                self.on_phase("read")
            result: Result = cpu.pull_tails(
                *piece, pull.lookup, pull.num_planes, pull.resident.size, files, gap, buffer,
                buffer.view(pull.resident.dtype), state.kept_entries, state.kept,
                state.frontier, state.visited, state.undecided, state.marks, self._long_rows,
            )  # fmt: skip
            return result

        job = Job(
            PULL_TAILS, PAGE_SECONDS * int(counts[:, 2].sum()), lambda pieces: _num_marked(lambda a, z: state.undecided[a:z], pieces),
            pull.files, dense, gap,
        )  # fmt: skip
        num_bytes = sum(one[1] for one in self.spread(state, job, call, pieces))

        def look_on_disk(look: Look, parts: Sequence[Part]) -> list[Result]:
            nonlocal num_bytes
            assert self._gatherer is not None
            looked = self._gatherer.run(look, parts, pull.files)
            num_bytes += sum(one[1] for one in looked)
            return looked

        look_through(state, pull, self._long_rows, files, look_on_disk)
        return num_bytes

    def push(self, state: SearchState) -> int:
        """Push the frontier's rows; returns bytes requested."""
        push = self.graph.push
        counts = self._count(push, state.frontier, state.frontier_size, first_pages_only=False)
        dense = counts[:, 2].sum() > DENSE_SHARE * push.disk_pages
        gap = DENSE_GAP_PAGES if dense else SPARSE_GAP_PAGES
        files = push.files.stream_arguments if dense and push.files is not None else _files_of(push)
        on_files = push.files is not None and self._gatherer is not None
        seconds = PROBE_SECONDS * state.frontier_edges
        num_pieces = self.num_reads if on_files else len(self.cut(state, 1 << 20, seconds))
        weights = counts[:, 1] + counts[:, 2] * (PAGE_BYTES // push.stored.dtype.itemsize)
        pieces = edge_pieces(weights, np.append(counts[:, 3], push.num_edges), num_pieces)

        def call(piece: tuple[int, int], buffer: Array) -> Result:
            if piece[0] == pieces[0][0] and buffer.size:
                self.on_phase("read")
            result: Result = cpu.push_rows(
                *piece, push.lookup, push.heads, push.resident, 0, files, gap, buffer,
                buffer.view(push.resident.dtype), state.frontier, state.closed, *state.owners, state.marks,
            )  # fmt: skip
            return result

        if on_files:
            seconds += PAGE_SECONDS * int(counts[:, 2].sum())
        job = Job(PUSH, seconds, partial(_rows_in, counts), push.files if on_files else None, bool(dense), gap)
        if on_files:
            return sum(one[1] for one in self.spread(state, job, call, pieces))
        self.spread(state, job, call, [(a, min(z, push.resident.size)) for a, z in pieces if a < push.resident.size])
        return 0 if push.all_resident else push_windows(push, state, self.io_threads, _files_of(push))

    def finish(self, state: SearchState) -> None:
        """Set parent and level of what was not reached."""
        none = no_parent(self.store.index_dtype)

        def finish(a: int, z: int) -> None:
            cpu.finish_search(a, z, state.num_vertices, state.visited, none, state.marks)

        self.team.run_range(finish, state.num_words, WORD_SECONDS * state.num_words + PROBE_SECONDS * state.num_unvisited)

    def reached_edges(self, state: SearchState) -> int:
        """Edges of the reached part: out-edges when directed, else each edge once (a kept self-loop is stored once)."""
        is_reached = partial(are_marked, state.reached)
        if state.reached_edges is None:
            state.reached_edges = self._count_edges(self.graph.push, state.reached, state.num_reached)[1]
        stored = state.reached_edges - self.store.count_dead_edges(is_reached)
        return stored if self.store.attributes.directed else (stored + self.store.count_self_loops(is_reached)) // 2

    # What differs between a whole graph and a partition.

    def is_offered(self, state: SearchState, seconds: float) -> bool:
        """Whether others may take over pieces of work for so long."""
        return False

    def cut(self, state: SearchState, size: int, seconds: float) -> list[tuple[int, int]]:
        """Cut a range, work for so long, into pieces."""
        return self.team.cut(size, seconds)

    @property
    def num_reads(self) -> int:
        """Pieces into which work of reading threads is cut."""
        return 0 if self._gatherer is None else self._gatherer.num_threads * PIECES_PER_THREAD

    def spread(self, state: SearchState, job: Job, call: Call, pieces: Sequence[tuple[int, int]]) -> list[Result]:
        """Return what `call` makes of pieces: in reading threads where the job has files, else in those that compute."""
        return self._run(job, call, pieces)

    def measure(self, state: SearchState) -> None:
        """Count again what has been reached."""
        raise NotImplementedError

    # Below: how the steps are spread over threads.

    def _run(self, job: Job, call: Call, pieces: Sequence[Any]) -> list[Result]:
        if job.files is not None and self._gatherer is not None:
            return self._gatherer.run(call, pieces, job.files)
        return self.team.run(lambda piece: call(piece, _NO_BUFFER), pieces, job.seconds)

    def _look_in_memory(self, look: Look, parts: Sequence[Part]) -> list[Result]:
        return self.team.run(lambda part: look(part, _NO_BUFFER), parts, PROBE_SECONDS * self._long_rows.limit * len(parts))

    def _count(self, adjacency: Adjacency, rows: Array, num_rows: int, *, first_pages_only: bool) -> Array:
        """Rows, edges, pages and first edge of each slice, of about so many marked rows: (num_slices, 4) int64."""
        cuts = self._cuts[id(adjacency)]
        out = np.empty((cuts.size - 1, 4), np.int64)

        def count(a: int, z: int) -> None:
            cpu.count_rows(
                cuts[a : z + 1], adjacency.num_rows, adjacency.lookup, adjacency.num_planes, adjacency.resident.size,
                adjacency.page_shift, rows, first_pages_only, out[a:z],
            )  # fmt: skip

        self.team.run_range(count, cuts.size - 1, _seconds_of_rows(rows.size, num_rows))
        return out

    def _count_edges(self, adjacency: Adjacency, rows: Array, num_rows: int) -> tuple[int, int]:
        """Count marked rows, about so many, and their edges."""

        def count(a: int, z: int) -> tuple[int, int]:
            result: tuple[int, int] = cpu.count_edges(a, z, adjacency.lookup, rows)
            return result

        results = self.team.run_range(count, rows.size, _seconds_of_rows(rows.size, num_rows))
        return sum(r[0] for r in results), sum(r[1] for r in results)

    def _to_queue(self, state: SearchState) -> None:
        if not state.queued:
            cpu.list_vertices(state.frontier, state.queues[0])
            state.counts[6] = 0
            state.queued = True
        state.counts[:6] = state.frontier_size, state.frontier_edges, state.level, 0, 0, 0

    def _to_bitmap(self, state: SearchState) -> None:
        if state.queued:
            cpu.mark_vertices(state.queues[state.counts[6]], state.frontier_size, state.frontier)
            state.queued = False

    def _fill_cache(self, count: int) -> int:
        """Read the missing pages into the page cache, with all reading threads; returns bytes read."""
        push = self.graph.push
        if push.files is None or self._gatherer is None:
            return 0
        # one thread per slot: pages that share a slot must not be read at the same time
        _, last = np.unique(self._missing[:count] % self._cache_tag.size, return_index=True)
        pages = np.sort(self._missing[last])
        files = push.files.arguments

        def call(piece: tuple[int, int], buffer: Array) -> tuple[int, int, int]:
            done, error = cpu.fill_cache(pages, *piece, files, self._cache_tag, self._cache)
            return 0, done, error

        pieces = _pairs(slice_cuts(pages.size, self._gatherer.num_threads))
        return sum(one[1] for one in self._gatherer.run(call, pieces, push.files))


_NO_BUFFER = np.empty(0, np.uint8)


def _num_marked(words: Callable[[int, int], Array], pieces: Sequence[tuple[int, int]]) -> Array:
    """Count the bits that are set in each of some ranges of words: (num_pieces,) int64.

    Piece by piece, in a core's cache: with sums over all words 134 M vertices took 20 ms and 50 MB, so 2.8 ms.
    """
    counts: Array = np.array([int(np.bitwise_count(words(a, z)).sum()) for a, z in pieces], np.int64)
    return counts


def _rows_in(counts: Array, pieces: Sequence[tuple[int, int]]) -> Array:
    """Count the rows, at most, that lie in each of some ranges of edges, by those of slices (see `Engine._count`): (num_pieces,) int64."""
    before = np.concatenate([[0], np.cumsum(counts[:, 0])])
    ends: Array = np.array(pieces, np.int64).reshape(-1, 2)
    first = np.maximum(0, np.searchsorted(counts[:, 3], ends[:, 0], side="right") - 1)
    rows: Array = before[np.searchsorted(counts[:, 3], ends[:, 1], side="left")] - before[first]
    return rows


def _ignore_phase(_name: str) -> None:
    """Accept the name of a phase and do nothing."""


def _seconds_of_rows(num_words: int, num_rows: int) -> float:
    """About how long it takes to look up marked rows."""
    return WORD_SECONDS * num_words + ROW_SECONDS * num_rows


def _pairs(cuts: Array) -> list[tuple[int, int]]:
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def _files_of(adjacency: Adjacency) -> ChunkFiles:
    """Return an adjacency's files as kernels take them."""
    return adjacency.files.arguments if adjacency.files is not None else no_files(adjacency.page_shift)
