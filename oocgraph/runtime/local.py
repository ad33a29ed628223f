"""Runs the steps of a search in this process: compute threads over words, reading threads over pages.

In: a store, a budget. Out: a `LocalRuntime`, loaded once, on which `oocgraph.algorithms.bfs` runs any number of searches.
Notes on memory: what is charged to the budget is in `plan.residency`; a search allocates its parents and levels anew
because the result keeps them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import numpy as np

from oocgraph.config import settings
from oocgraph.kernels import cpu, warm
from oocgraph.memory import Budget, device_bytes_read, effective_budget_bytes
from oocgraph.plan.direction import Choice, Facts
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.result import Iteration
from oocgraph.runtime.buffers import BufferPool
from oocgraph.runtime.oracle import PageOracle, oracle_bytes
from oocgraph.runtime.resident import Adjacency, load_graph
from oocgraph.runtime.state import SearchState
from oocgraph.runtime.windows import pull_windows, push_windows
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import SELF_LOOPS
from oocgraph.subgraph.extract import edge_pieces, equal_pieces, slice_cuts
from oocgraph.subgraph.gather import Gatherer
from oocgraph.types import LEVEL_UNREACHED, PAGE_BYTES, Array, Progress, ignore_progress, no_parent

NUM_SLICES = 1024
"""Slices of the vertex range in which rows and pages are counted and from which pieces of work are made."""

PIECES_PER_THREAD = 4
"""Pieces a thread gets, so that one slow piece does not hold up the rest."""

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


COUNT_SHARE = 1 / 16
"""Frontiers above this share of the vertices are not counted before a decision: a push of one reads nearly all pages."""


class LocalRuntime:
    """A graph ready for searches in this process. Use `LocalRuntime.open` in a ``with`` statement."""

    def __init__(
        self, store: CSRStore, budget: Budget, *, threads: int, io_threads: int, max_planes: int | None, check_pages: bool
    ) -> None:
        self.store, self.budget, self.threads = store, budget, threads
        self.graph = load_graph(
            store, budget, threads=threads, io_threads=io_threads, buffer_bytes=BUFFER_BYTES, max_planes=max_planes, check_pages=check_pages
        )
        self.load_seconds = self.graph.load_seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="oocgraph-compute")
        self._on_disk = not all(adjacency.all_resident for adjacency in self.graph.adjacencies)
        self._gatherer = Gatherer(io_threads, BUFFER_BYTES) if self._on_disk else None
        self._cuts = slice_cuts(max(1, -(-store.num_vertices // 64)), NUM_SLICES)
        self._cache_tag = np.full(self.graph.residency.cache_slots, -1, np.int64)
        self._cache = np.empty(max(1, self._cache_tag.size) * PAGE_BYTES, np.uint8)
        self.oracle: PageOracle | None = None
        self._buffers = BufferPool()
        self.searching = threading.Lock()
        self._missing = np.empty(PREFETCH_MISSES if self._on_disk else 0, np.int64)

    @classmethod
    def open(
        cls,
        graph: CSRStore | str | os.PathLike[str],
        *,
        memory_budget: str | int | None = None,
        threads: int | None = None,
        io_threads: int | None = None,
        max_planes: int | None = None,
        check_pages: bool = False,
        oracle: bool = False,
        progress: Progress = ignore_progress,
    ) -> Self:
        """Check the budget and load what stays in memory.

        Parameters
        ----------
        graph
            A store or its path.
        memory_budget
            Bytes of the whole process (text such as ``640M``); by default most of what machine and control group leave.
        threads, io_threads
            Compute and reading threads; by default from the configuration.
        max_planes
            Resident planes at most; by default as many as stored, where they pay and fit.
        check_pages
            Compare every page read during searches with its checksum.
        oracle
            Count, in each iteration, the pages that push and pull would each read (`Iteration.push_pages`, ``pull_pages``). Slow.

        Raises
        ------
        BudgetError
            The budget is too small; names the smallest that works.
        StoreError
            `graph` is not a store that can be read.
        """
        store = graph if isinstance(graph, CSRStore) else open_graph(graph)
        knobs = settings()
        warm.load_search_kernels(store.attributes.index_dtype, progress)
        limit = effective_budget_bytes(memory_budget if memory_budget is not None else knobs.memory_budget)
        budget = Budget(limit)
        if oracle:
            budget.reserve("oracle", oracle_bytes(store))
        runtime = cls(
            store,
            budget,
            threads=threads or knobs.threads,
            io_threads=io_threads or knobs.io_threads,
            max_planes=max_planes,
            check_pages=check_pages,
        )
        if oracle:
            runtime.oracle = PageOracle(runtime.graph.pull, store.num_vertices)
        return runtime

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the threads and close the files."""
        self._pool.shutdown()
        if self._gatherer is not None:
            self._gatherer.close()
        self.graph.close()

    @property
    def planes_resident(self) -> int:
        """Planes in memory."""
        return self.graph.residency.num_planes

    @property
    def memory_budget(self) -> int:
        """Bytes the process may hold."""
        return self.budget.limit_bytes

    # The steps, in the order in which an iteration takes them.

    def start(self, sources: Array) -> SearchState:
        """Return the state in which `sources` (store numbers, distinct) are visited at level 0 and are the frontier."""
        residency = self.graph.residency
        state = SearchState(
            self.store.num_vertices, self.store.index_dtype, self._buffers, num_kept=residency.num_kept, wide=residency.road
        )
        state.unvisited_edges = self.graph.pull.num_edges
        cpu.mark_vertices(sources, sources.size, state.frontier)
        state.visited[:] = state.frontier
        state.parent[sources] = sources
        state.levels[sources] = 0
        self._measure_frontier(state)
        state.queued = sources.size <= QUEUE_CAPACITY
        if state.queued:
            state.queues[0, : sources.size] = sources
        return state

    def push_levels(self, state: SearchState, last_level: int) -> bool:
        """Push tiny frontiers, many levels in one kernel call; returns whether a larger frontier is left."""
        push = self.graph.push
        if max(state.frontier_size, state.frontier_edges) > QUEUE_CAPACITY or (push.files is None and not push.all_resident):
            return True
        self._to_queue(state)
        if self.oracle is not None:
            last_level = min(last_level, state.level + 1)
        last_of_form = np.iinfo(np.int32).max if state.wide else LEVEL_UNREACHED - 1
        limits = np.array([last_level, QUEUE_CAPACITY, SERIAL_MISSES, last_of_form, SERIAL_MISSES], np.int64)
        log = np.empty((LOG_LEVELS, 4), np.int64)
        fetched, fetch_seconds = 0, 0.0
        while True:
            status, error = cpu.push_levels(
                state.queues, state.counts, limits, *push.lookup, *push.heads, push.resident, *_file_arguments(push),
                self._cache_tag, self._cache, self._cache.view(self.store.index_dtype), self._missing,
                state.visited, *state.marks[:4], log,
            )  # fmt: skip
            if error and push.files is not None:
                raise push.files.error(error)
            state.take_log(log, fetched, fetch_seconds)
            limits[2], fetched, fetch_seconds = SERIAL_MISSES, 0, 0.0
            if status == cpu.STATUS_MISSES and state.counts[5] < PREFETCH_MISSES:
                began = time.perf_counter()
                fetched = self._fill_cache(int(state.counts[5]))
                fetch_seconds = time.perf_counter() - began
                limits[2] = self._missing.size
            elif status != cpu.STATUS_LOG_FULL:
                break
        self._measure_visited(state)
        if status == cpu.STATUS_DONE:
            return False
        self._to_bitmap(state)
        return True

    def ask_oracle(self, state: SearchState) -> tuple[float, int]:
        """Note the pages that a push and a pull of this iteration would read; returns the seconds and device bytes that took."""
        began, device_began = time.perf_counter(), device_bytes_read()
        if self.oracle is not None:
            self._to_bitmap(state)
            state.oracle_pages.append((self.frontier_pages(state), self.oracle.pull_pages(state)))
        return time.perf_counter() - began, device_bytes_read() - device_began

    def begin_iteration(self, state: SearchState) -> None:
        """Remember what is visited, and make room for the next level."""
        self._to_bitmap(state)
        state.widen_if_needed()
        state.before[:] = state.visited

    def facts(self, state: SearchState) -> Facts:
        """Measure what the direction rules compare."""
        pages = 0
        if not self.graph.push.all_resident:
            many = state.frontier_size > COUNT_SHARE * state.num_vertices
            pages = self.graph.push.disk_pages if many else self.frontier_pages(state)
        pull = self.graph.pull
        sampled, probes, found, left = cpu.sample_heads(
            max(1, state.num_words // SAMPLE_WORDS),
            state.num_vertices,
            *pull.lookup,
            *pull.heads,
            pull.resident,
            state.frontier,
            state.visited,
        )
        return Facts(
            frontier=state.frontier_size,
            frontier_edges=state.frontier_edges,
            frontier_pages=pages,
            unvisited=state.num_vertices - state.num_reached,
            unvisited_edges=state.unvisited_edges,
            num_vertices=state.num_vertices,
            sampled=sampled,
            sampled_probes=probes,
            sampled_found=found,
            sampled_undecided=left,
            disk_pages=pull.disk_pages,
            pulled=state.pulled,
        )

    def pull_heads(self, state: SearchState) -> int:
        """Pull over what is resident; returns how many vertices that leaves undecided."""
        pull = self.graph.pull

        def heads(w0: int, w1: int) -> tuple[int, int]:
            result: tuple[int, int] = cpu.pull_heads(
                w0, w1, state.num_vertices, *pull.lookup, *pull.heads, pull.resident, 0,
                state.frontier, state.visited, state.undecided, *state.marks,
            )  # fmt: skip
            return result

        left = sum(int(left) for _, left in self._map(heads, slice_cuts(state.num_words, self.threads * PIECES_PER_THREAD)))
        if left and state.num_kept:
            kept = (*state.kept_entries, 0, state.num_kept)
            left -= int(cpu.pull_kept(*kept, state.frontier, state.visited, state.undecided, *state.marks))
        return int(left)

    def undecided_pages(self, state: SearchState) -> int:
        """Exact number of first pages that the undecided vertices need."""
        return int(self._count(self.graph.pull, state.undecided, first_pages_only=True)[:, 2].sum())

    def frontier_pages(self, state: SearchState) -> int:
        """Exact number of pages that the frontier's rows need."""
        return int(self._count(self.graph.push, state.frontier, first_pages_only=False)[:, 2].sum())

    def pull_tails(self, state: SearchState) -> int:
        """Pull the undecided vertices' tails from disk; returns bytes requested."""
        pull = self.graph.pull
        if pull.files is None or self._gatherer is None:
            return pull_windows(pull, state, self._count(pull, state.undecided, first_pages_only=False))
        counts = self._count(pull, state.undecided, first_pages_only=True)
        dense = counts[:, 2].sum() > DENSE_SHARE * pull.disk_pages
        gap = DENSE_GAP_PAGES if dense else SPARSE_GAP_PAGES
        files = pull.files.stream_arguments if dense else pull.files.arguments
        pieces = [
            (int(self._cuts[a]), int(self._cuts[z])) for a, z in equal_pieces(counts[:, 0], self._gatherer.num_threads * PIECES_PER_THREAD)
        ]

        def call(piece: tuple[int, int], buffer: Array) -> tuple[int, int, int]:
            result: tuple[int, int, int] = cpu.pull_tails(
                *piece, *pull.lookup, pull.num_planes, pull.resident.size, *files, gap, buffer,
                buffer.view(pull.resident.dtype), *state.kept_entries, state.kept,
                state.frontier, state.visited, state.undecided, *state.marks,
            )  # fmt: skip
            return result

        return self._gatherer.run(call, pieces, pull.files)[1]

    def push(self, state: SearchState) -> int:
        """Push the frontier's rows; returns bytes requested."""
        push = self.graph.push
        counts = self._count(push, state.frontier, first_pages_only=False)
        dense = counts[:, 2].sum() > DENSE_SHARE * push.disk_pages
        gap = DENSE_GAP_PAGES if dense else SPARSE_GAP_PAGES
        files = push.files.stream_arguments if dense and push.files is not None else _file_arguments(push)
        on_files = push.files is not None and self._gatherer is not None
        workers = self._gatherer.num_threads if on_files and self._gatherer else self.threads
        weights = counts[:, 1] + counts[:, 2] * (PAGE_BYTES // push.stored.dtype.itemsize)
        pieces = edge_pieces(weights, np.append(counts[:, 3], push.num_edges), workers * PIECES_PER_THREAD)

        def call(piece: tuple[int, int], buffer: Array) -> tuple[int, int, int]:
            result: tuple[int, int, int] = cpu.push_rows(
                *piece, *push.lookup, *push.heads, push.resident, 0, *files, gap, buffer,
                buffer.view(push.resident.dtype), state.frontier, state.visited, *state.marks,
            )  # fmt: skip
            return result

        if push.files is not None and self._gatherer is not None:
            return self._gatherer.run(call, pieces, push.files)[1]
        in_memory = [(a, min(z, push.resident.size)) for a, z in pieces if a < push.resident.size]
        for _ in self._pool.map(lambda piece: call(piece, _NO_BUFFER), in_memory):
            continue
        return 0 if push.all_resident else push_windows(push, state, counts, _file_arguments(push))

    def advance(self, state: SearchState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """Make the vertices found in this iteration the frontier, and record its figures."""
        self._map(lambda a, z: cpu.difference(a, z, state.visited, state.before, state.frontier), slice_cuts(state.num_words, self.threads))
        state.level += 1
        state.pulled = choice.direction == "pull"
        state.bytes_requested += num_bytes
        self._measure_frontier(state)
        seconds = time.perf_counter() - began
        state.record(Iteration(state.level, choice.direction, choice.reason, frontier, undecided, seconds, num_bytes))

    def finish(self, state: SearchState) -> None:
        """Set parent and level of what was not reached."""
        none = no_parent(self.store.index_dtype)
        cuts = slice_cuts(state.num_words, self.threads)
        marks = (state.visited, state.parent, none, state.level8, state.level32, state.wide)
        self._map(lambda a, z: cpu.finish_search(a, z, state.num_vertices, *marks), cuts)

    # Below: how the steps are spread over threads.

    def _map(self, call: Callable[[int, int], Any], cuts: Array) -> list[Any]:
        pairs = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        if len(pairs) == 1:
            return [call(*pairs[0])]
        return [future.result() for future in [self._pool.submit(call, a, z) for a, z in pairs]]

    def _count(self, adjacency: Adjacency, rows: Array, *, first_pages_only: bool) -> Array:
        """Rows, edges, pages and first edge of each slice: (num_slices, 4) int64."""
        out = np.empty((self._cuts.size - 1, 4), np.int64)

        def count(a: int, z: int) -> None:
            cpu.count_rows(
                self._cuts[a : z + 1], self.store.num_vertices, *adjacency.lookup, adjacency.num_planes, adjacency.resident.size,
                adjacency.page_shift(), rows, first_pages_only, out[a:z],
            )  # fmt: skip

        self._map(count, slice_cuts(self._cuts.size - 1, self.threads))
        return out

    def _measure_frontier(self, state: SearchState) -> None:
        size, edges = self._count_edges(self.graph.push, state.frontier)
        pull_edges = edges if self.graph.pull is self.graph.push else self._count_edges(self.graph.pull, state.frontier)[1]
        state.frontier_size, state.frontier_edges = size, edges
        state.num_reached += size
        state.unvisited_edges -= pull_edges

    def _measure_visited(self, state: SearchState) -> None:
        state.num_reached, edges = self._count_edges(self.graph.pull, state.visited)
        state.unvisited_edges = self.graph.pull.num_edges - edges

    def reached_edges(self, state: SearchState) -> int:
        """Edges of the reached part: out-edges when directed, else each edge once (a kept self-loop is stored once)."""
        stored = self._count_edges(self.graph.push, state.visited)[1]
        if self.store.attributes.directed:
            return stored
        loops = self.store.read(SELF_LOOPS).astype(np.int64) if self.store.attributes.num_self_loops else np.empty(0, np.int64)
        reached = (state.visited[loops >> 6] >> (loops & 63).astype(np.uint64)) & np.uint64(1)
        return (stored + int(reached.sum())) // 2

    def _count_edges(self, adjacency: Adjacency, rows: Array) -> tuple[int, int]:
        indptr, first, _, value = adjacency.lookup
        results = self._map(lambda a, z: cpu.count_edges(a, z, indptr, first, value, rows), slice_cuts(rows.size, self.threads))
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
        fds, chunk_pages, num_bytes, checksums, _ = push.files.arguments

        def call(piece: tuple[int, int], buffer: Array) -> tuple[int, int, int]:
            done, error = cpu.fill_cache(pages, *piece, fds, chunk_pages, num_bytes, checksums, self._cache_tag, self._cache)
            return 0, done, error

        pieces = _pairs(slice_cuts(pages.size, self._gatherer.num_threads))
        return self._gatherer.run(call, pieces, push.files)[1]


_NO_BUFFER = np.empty(0, np.uint8)


def _pairs(cuts: Array) -> list[tuple[int, int]]:
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def _file_arguments(adjacency: Adjacency) -> tuple[Any, ...]:
    """Return ``fds, chunk_pages, num_bytes, checksums, page_shift``; without files where nothing is read from them."""
    if adjacency.files is not None:
        return adjacency.files.arguments
    return np.empty(0, np.int32), 1, 0, np.empty(0, np.uint32), adjacency.page_shift()
