"""The steps of an iteration on a GPU: kernels over planes and resident edges, and batches of rows whose edges come from elsewhere.

In: a `Shard` on a device, and per search a `DeviceState`. The same steps as `oocgraph.engine.cpu_engine.Engine`, so that
`oocgraph.engine.levels` runs on either. The host launches, decides, and gathers edges; it sees no vertex but those of rows that its
threads must gather.

How edges that are not in device memory are taken is `oocgraph.plan.access`: read by kernels where they are (pinned host memory), or
gathered by host threads into staging buffers while earlier ones are copied and processed (`oocgraph.subgraph.staging`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from oocgraph.arrays import Device
from oocgraph.closing import Closing
from oocgraph.config import Settings
from oocgraph.engine.cpu_engine import COUNT_SHARE, SAMPLE_WORDS
from oocgraph.engine.device_graph import LINE_BYTES, DeviceAdjacency
from oocgraph.engine.device_levels import TINY, TinyLevels
from oocgraph.engine.device_state import DeviceArrays, DeviceState, num_words
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.shard import Shard
from oocgraph.engine.staged import StagedEdges, source_of
from oocgraph.engine.state import are_marked
from oocgraph.errors import CorruptStoreError, DeviceError
from oocgraph.kernels.gpu import EVERY_EDGE, Counter, GpuKernels
from oocgraph.plan.access import Access, AccessFacts, choose_access, pull_access
from oocgraph.plan.direction import Choice, Facts
from oocgraph.results.search import DeviceMetrics, Iteration
from oocgraph.store.graph import CSRStore
from oocgraph.subgraph.dependency import DependencySubgraph
from oocgraph.subgraph.staging import StagingMetrics
from oocgraph.types import Array

LINK_BYTE_COST, DISK_BYTE_COST = 80, 2000
"""What a byte over the link, or from disk, costs in bytes of device memory traffic: 4 TB/s against 50 GB/s and 2 GB/s."""

SAMPLE_EDGES = 256
"""Resident edges of a list that a sample looks at."""

WINDOW_PAGES = 4
"""A pull asks for one page (or line) of each tail, then for four, sixteen, ... of those that are still undecided."""


class OnDevice(Protocol):
    """A search whose arrays are on the device."""

    arrays: DeviceArrays
    num_vertices: int
    level: int
    frontier_size: int
    frontier_edges: int

    @property
    def marks(self) -> tuple[Any, ...]:
        """Where kernels note what this iteration finds."""
        ...


class Batch(NamedTuple):
    """Counts of a batch of rows: rows, edges of the parts asked for, rows that ask for more than that, lines that the parts lie in."""

    num_rows: int
    num_edges: int
    num_beyond: int
    num_lines: int


class DeviceEngine(Closing):
    """A graph on a device, with the threads that gather what is not there.

    Parameters
    ----------
    store, graph
        The graph on disk, and what of it is in memory.
    kernels
        Of the device, for the graph's index dtype.
    io_threads, scratch_bytes
        Threads that gather edges, and the scratch buffer of each.
    partition
        Named in errors.

    Attributes
    ----------
    owners
        ``owned, rank`` of a partition (see `oocgraph.kernels.cpu.push_rows`), in device memory; None of a whole graph.
    """

    outside_byte_cost: float = LINK_BYTE_COST

    def __init__(
        self, store: CSRStore, graph: Shard[DeviceAdjacency], device: Device, kernels: GpuKernels, *, io_threads: int,
        scratch_bytes: int, knobs: Settings, partition: int = 0,
    ) -> None:  # fmt: skip
        self.store, self.graph, self.device, self.kernels, self.knobs, self.partition = store, graph, device, kernels, knobs, partition
        self.subgraph = DependencySubgraph(device, kernels, num_words(store.num_rows), graph.residency.row_capacity)
        self.tiny = TinyLevels(device, kernels)
        self.staged = StagedEdges(
            device, kernels, graph.residency, io_threads=io_threads, scratch_bytes=scratch_bytes,
            fetches_rows=not (graph.push.all_resident and graph.pull.all_resident),
        )  # fmt: skip
        self.lifetime = Lifetime(store.url)
        self.outside_byte_cost = LINK_BYTE_COST if graph.pull.in_host_memory else DISK_BYTE_COST
        self._accesses: list[Access] = []
        self._metrics = StagingMetrics()
        self._link_bytes = 0
        self._stale: dict[int, Array] = {}
        self._frontier_pages: int | None = None
        self._undecided = self._undecided_pages = 0
        self._failed: DeviceError | None = None
        self.owners: tuple[Any, Any] = (None, None)

    @property
    def outside_page_bytes(self) -> int:
        """What is moved at least of edges that are not on the device."""
        return self.graph.pull.page_bytes

    @property
    def thread_counts(self) -> None:
        """Nothing: kernels of the device do what threads would share."""

    @property
    def planes_resident(self) -> int:
        """Planes in device memory."""
        return self.graph.pull.num_planes

    # The steps, in the order in which an iteration takes them.

    def begin_iteration(self, state: DeviceState) -> None:
        """Make room for the next level."""
        with self.naming(state):
            state.widen_if_needed()
        self.begin(state, state.frontier_pages)

    def begin(self, state: OnDevice, frontier_pages: int | None = None) -> None:
        """Reset counters and metrics; what the last iteration found is cleared later: a pull overwrites it, a push adds to it.

        `frontier_pages` is what `push_pages` would count, where that is known.
        """
        with self.naming(state):
            self.kernels.reset()
            self._stale = {id(one): one for one in (state.arrays.found, state.arrays.pushed)}
            self._accesses, self._metrics, self._link_bytes = [], StagingMetrics(), 0
            self._frontier_pages, self._undecided, self._undecided_pages = frontier_pages, 0, 0

    def facts(self, state: DeviceState, *, with_costs: bool) -> Facts:
        """Return what the direction rules compare: measured when the last iteration ended."""
        n, m = self.store.num_rows, self.store.attributes.num_stored_edges
        if not with_costs:
            return state.facts(n, m)
        pages, disk_pages = self.push_pages(state), self.graph.pull.disk_pages
        return state.facts(n, m, frontier_pages=pages, sample=state.sample, disk_pages=disk_pages)

    def pull_heads(self, state: OnDevice) -> int:
        """Pull over what is in device memory; returns how many vertices that leaves undecided."""
        a, pull = state.arrays, self.graph.pull
        with self.naming(state):
            self._stale.pop(id(a.found), None)
            self.kernels.pull_heads(
                0, a.visited.size, state.num_vertices, pull.lookup, *pull.heads, pull.resident, 0,
                a.frontier, a.visited, a.undecided, a.found, state.marks,
            )  # fmt: skip
            if pull.all_resident:
                return 0
            self._count_pages(pull, a.undecided, Counter.NUM_PAGES, first_pages_only=True)
            if self._frontier_pages is None and not self.graph.push.all_resident:
                self._count_pages(self.graph.push, a.frontier, Counter.FRONTIER_PAGES)
            counts = self.kernels.read()
            if self._frontier_pages is None:
                self._frontier_pages = int(counts[Counter.FRONTIER_PAGES])
            self._undecided, self._undecided_pages = int(counts[Counter.UNDECIDED]), int(counts[Counter.NUM_PAGES])
            return self._undecided

    def undecided_pages(self, state: OnDevice) -> int:
        """Return how many first pages (or lines) the undecided vertices need: counted with them."""
        return self._undecided_pages

    def push_pages(self, state: OnDevice) -> int:
        """Return what a push would take from outside of device memory, in pages (or lines): counted unless the frontier is large."""
        push = self.graph.push
        if push.all_resident:
            return 0
        return push.disk_pages if self._is_large(state) else self.frontier_pages(state)

    def costs(self, state: OnDevice) -> tuple[int, tuple[int, int, int, int]]:
        """Return `push_pages` and a sample of what a pull would do, after one wait."""
        push = self.graph.push
        with self.naming(state):
            self.sample_heads(state)
            is_counted = not push.all_resident and not self._is_large(state)
            if is_counted:
                self._count_pages(push, state.arrays.frontier, Counter.FRONTIER_PAGES)
            counts = self.kernels.read().tolist()
            if is_counted:
                self._frontier_pages = counts[Counter.FRONTIER_PAGES]
        return self.push_pages(state), sample_of(counts)

    def frontier_pages(self, state: OnDevice) -> int:
        """Count the pages (or lines) that the frontier's rows need."""
        if self._frontier_pages is None:
            with self.naming(state):
                self._count_pages(self.graph.push, state.arrays.frontier, Counter.FRONTIER_PAGES)
                self._frontier_pages = int(self.kernels.read()[Counter.FRONTIER_PAGES])
        return self._frontier_pages

    def _is_large(self, state: OnDevice) -> bool:
        return state.frontier_size > self._large_frontier

    @property
    def _large_frontier(self) -> int:
        """Vertices of a frontier above which its pages are not counted before the direction is chosen."""
        return int(COUNT_SHARE * self.store.num_rows)

    def pull_tails(self, state: OnDevice) -> int:
        """Pull the undecided vertices' tails; returns bytes read from files.

        Where host memory has all edges, one launch reads each list there, line by line, up to a neighbour in the frontier.
        """
        a, pull, kernels = state.arrays, self.graph.pull, self.kernels
        with self.naming(state):
            if not pull.in_host_memory:
                return self._pull_windows(state)
            self._accesses.append(pull_access(self._undecided))
            base = int(pull.resident.size)
            kernels.pull_lists(
                pull.lookup, pull.num_planes, pull.mapped[base:], base, a.frontier, a.visited, a.undecided, a.found, state.marks,
                is_mapped=True,
            )  # fmt: skip
            return 0

    def _pull_windows(self, state: OnDevice) -> int:
        """Gather the undecided vertices' tails window by window, first a page of each: those that it decides need no more."""
        a, pull, kernels, rows = state.arrays, self.graph.pull, self.kernels, self.subgraph
        left, behind, window, num_bytes = self._undecided, 0, 1, 0
        part = {"skip": pull.num_planes, "low": pull.resident.size, "page_shift": pull.page_shift}

        def look(begin: Array, e0: int, e1: int, edges: Array, base: int, num_rows: int) -> None:
            kernels.pull_tails(
                rows.vertex, num_rows, begin, rows.offset, e0, e1, edges, base, a.frontier, a.visited, a.undecided, a.found, state.marks
            )

        while left:
            kernels.copy(a.undecided, a.active)
            most, left = left, 0  # at most so many, since some may have been found
            for row0 in self._batches(a.active, most):
                rows.ask(pull.lookup, row0=row0, count_shift=self._line_shift, **part, behind=behind, window=window)
                counts, num_read = self._take(pull, most - row0, look)
                kernels.close_rows(rows.vertex, min(rows.capacity, most - row0), rows.start, rows.offset, pull.lookup, a.undecided)
                left += counts.num_beyond
                num_bytes += num_read
            behind, window = behind + window, WINDOW_PAGES * window
        return num_bytes

    def push(self, state: OnDevice) -> int:
        """Push the frontier's rows; returns bytes read from files."""
        a, push, kernels, rows = state.arrays, self.graph.push, self.kernels, self.subgraph
        found = a.closed, a.pushed, self.owners, state.marks

        def look(begin: Array, e0: int, e1: int, edges: Array, base: int, _: int) -> None:
            self._push(begin, e0, e1, edges, base, e1 - e0, found)

        with self.naming(state):
            num_bytes = 0
            if self._stale:
                kernels.clear_all(*self._stale.values())
                self._stale = {}
            for row0 in self._batches(a.frontier, state.frontier_size):
                if push.resident.size or push.all_resident:
                    rows.ask(push.lookup, row0=row0, high=push.resident.size)
                    self._push(rows.start, 0, EVERY_EDGE, push.resident, 0, state.frontier_edges, found)
                if push.all_resident:
                    continue
                rows.ask(push.lookup, row0=row0, count_shift=self._line_shift, skip=push.num_planes, low=push.resident.size)
                most = min(rows.capacity, state.frontier_size - row0)
                kernels.push_heads(
                    rows.vertex, most, push.lookup, push.resident.size, *push.heads, a.closed, a.pushed, self.owners, state.marks
                )
                num_bytes += self._take(push, most, look)[1]
            return num_bytes

    def _push(self, begin: Array, e0: int, e1: int, edges: Array, base: int, num_edges: int, found: tuple[Any, ...]) -> None:
        """Push a piece of the batch."""
        closed, pushed, owners, noted = found
        rows = self.subgraph
        self.kernels.push_rows(
            rows.vertex, begin, rows.offset, e0, e1, edges, base, closed, pushed, owners, noted, self.tiny.queues[0], num_edges=num_edges
        )

    def finish(self, state: DeviceState) -> None:
        """Set parent and level of what was not reached, and wait until both exist."""
        a = state.arrays
        with self.naming(state):
            none = np.iinfo(self.kernels.dtype).max
            self.kernels.finish_search(state.num_vertices, a.visited, a.parent, none, a.level8, a.level32, wide=state.wide)
            self.device.synchronize(self.kernels.stream)

    # Rows, batch by batch.

    def _batches(self, active: Array, count: int) -> range:
        """Begin with the active vertices, of which there are `count`; return the number of each batch's first row."""
        self.subgraph.activate(active)
        return range(0, count, self.subgraph.capacity)

    def _count_pages(
        self, adjacency: DeviceAdjacency, active: Array, slot: Counter, *, first_pages_only: bool = False, most: int = -1
    ) -> None:
        """Let the device count what the active vertices' rows need from outside, unless the frontier has more than `most` vertices."""
        self.subgraph.count_pages(
            active, adjacency.lookup, count_shift=adjacency.page_shift, first_pages_only=first_pages_only, slot=slot, most=most,
            skip=adjacency.num_planes, low=adjacency.resident.size,
        )  # fmt: skip

    @property
    def _line_shift(self) -> int:
        """Binary logarithm of the edges in a line of memory."""
        return (LINE_BYTES // self.kernels.dtype.itemsize).bit_length() - 1

    def _take(self, adjacency: DeviceAdjacency, most: int, look: Callable[[Array, int, int, Array, int, int], None]) -> tuple[Batch, int]:
        """Take the edges that the batch (of at most `most` rows) asks for in the way that costs least; `look` launches kernels on them.

        Returns what the batch is, and bytes read.
        """
        kernels, rows = self.kernels, self.subgraph
        itemsize, most = kernels.dtype.itemsize, min(most, rows.capacity)
        if not adjacency.in_host_memory:  # then they are gathered: the rows come to the host together with the counts
            self.staged.fetch(rows, most)
        counts = kernels.read()
        batch = Batch(*(int(counts[slot]) for slot in (Counter.NUM_ROWS, Counter.NUM_EDGES, Counter.NUM_BEYOND, Counter.NUM_PAGES)))
        if not batch.num_edges:
            return batch, 0
        access = choose_access(
            AccessFacts(
                num_rows=batch.num_rows,
                wanted_bytes=batch.num_edges * itemsize,
                line_bytes=batch.num_lines * LINE_BYTES,
                in_host_memory=adjacency.in_host_memory,
            )
        )
        self._accesses.append(access)
        if access.kind == "zero-copy":
            self._link_bytes += batch.num_lines * LINE_BYTES
            look(rows.start, 0, batch.num_edges, adjacency.mapped, 0, batch.num_rows)
            return batch, 0
        if adjacency.in_host_memory:
            self.staged.fetch(rows, batch.num_rows)
            self.device.synchronize(kernels.stream)
        self._link_bytes += batch.num_edges * itemsize
        metrics = self.staged.run(
            [source_of(adjacency)],
            adjacency.num_edges,
            batch.num_rows,
            batch.num_edges,
            lambda parts, e0, e1: look(rows.offset, e0, e1, parts[0], e0, batch.num_rows),
        )
        self._metrics = self._metrics + metrics
        return batch, metrics.bytes_read

    # Many tiny levels in one launch.

    def load_large_levels(self) -> None:
        """Do nothing: all kernels are in memory."""

    def little_levels(self, state: DeviceState, last_level: int, *, may_pull: bool) -> bool:
        """Push tiny frontiers; returns whether a larger frontier is left."""
        push, a = self.graph.push, state.arrays
        if not push.in_host_memory or state.frontier_size > TINY.vertices or state.frontier_edges > TINY.edges:
            return True
        with self.naming(state):
            if state.num_queued != state.frontier_size:
                self.subgraph.activate(a.frontier)
                self.subgraph.list_rows(0, self.tiny.queues[0])
            state.tiny_from_host = not push.all_resident
            has_grown = self.tiny.push(state, push, push.resident if push.all_resident else push.mapped, last_level)
            self.measure(state)
            return has_grown

    # Metrics.

    def measure(self, state: DeviceState) -> None:
        """Count again what has been reached, and the frontier if there is one; counters were 0."""
        self.kernels.count_edges(self.graph.pull.lookup, state.arrays.visited, Counter.FOUND, Counter.NUM_EDGES)
        counts = self.measure_frontier(state) if state.frontier_size else self.kernels.read().tolist()
        state.num_reached, state.unvisited_edges = counts[Counter.FOUND], self.graph.pull.num_edges - counts[Counter.NUM_EDGES]

    def measure_frontier(self, state: DeviceState) -> list[int]:
        """Count the frontier and the pages that its rows need, and try what a pull would do for a sample; returns all counters."""
        a, push, pull = state.arrays, self.graph.push, self.graph.pull
        self.kernels.measure_frontier(
            push.lookup, pull.lookup, self._sample_step(state), state.num_vertices, *pull.heads, pull.resident, a.frontier, a.visited,
            most=SAMPLE_EDGES,
        )  # fmt: skip
        if not push.all_resident:
            self._count_pages(push, a.frontier, Counter.FRONTIER_PAGES, most=self._large_frontier)
        counts: list[int] = self.kernels.read().tolist()
        state.frontier_size, state.frontier_edges = counts[Counter.FRONTIER_VERTICES], counts[Counter.FRONTIER_EDGES]
        state.frontier_pull_edges = state.frontier_edges if pull is push else counts[Counter.FRONTIER_PULL_EDGES]
        is_counted = not push.all_resident and not self._is_large(state)
        state.frontier_pages = counts[Counter.FRONTIER_PAGES] if is_counted else None
        state.sample = sample_of(counts)
        state.num_queued = counts[Counter.QUEUE_SIZE]
        return counts

    def sample_heads(self, state: OnDevice) -> None:
        """Try what a pull would do for a sample of the unvisited vertices; `sample_of` reads it from the counters."""
        a, pull = state.arrays, self.graph.pull
        step = self._sample_step(state)
        self.kernels.sample_heads(
            step, state.num_vertices, pull.lookup, *pull.heads, pull.resident, a.frontier, a.visited, most=SAMPLE_EDGES
        )

    def _sample_step(self, state: OnDevice) -> int:
        return max(1, int(state.arrays.visited.size) // SAMPLE_WORDS)

    def iteration(self, state: DeviceState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> Iteration:
        """Return the metrics of the iteration that ends."""
        seconds = time.perf_counter() - began
        return Iteration(state.level, choice.direction, choice.reason, frontier, undecided, seconds, num_bytes, device=self.moved())

    def moved(self) -> DeviceMetrics:
        """Return what this iteration has moved to the device, and when; the counters have been fetched since."""
        staged = self._metrics
        kinds = {access.kind for access in self._accesses}
        return DeviceMetrics(
            access=" and ".join(sorted(kinds)) + ": " + self._accesses[-1].reason if kinds else "resident",
            link_bytes=self._link_bytes + int(self.kernels.fetched[Counter.NUM_LINES]) * LINE_BYTES,
            num_batches=len(self._accesses),
            num_pieces=staged.num_pieces,
            read_seconds=staged.read_seconds,
            copy_seconds=staged.copy_seconds,
            kernel_seconds=staged.kernel_seconds,
            span_seconds=staged.span_seconds,
            idle_seconds=staged.idle_seconds,
        )

    @property
    def has_failed(self) -> bool:
        """Whether the device has failed: nothing is asked of it any more."""
        return self._failed is not None

    def accesses(self) -> list[str]:
        """Say how the edges of this iteration were taken that are not in device memory."""
        return [access.reason for access in self._accesses[-1:]]

    def close(self) -> None:
        """End the threads, close the files, give the memory back; closing again does nothing."""
        with self.lifetime.ending() as was_open:
            if not was_open:
                return
            self.staged.close()
            self.graph.close()
            device = self.device
            kept = {"store": self.store, "lifetime": self.lifetime, "partition": self.partition}
            self.__dict__.clear()  # the arrays with it
            self.__dict__.update(kept)
            device.close()

    def reached_edges(self, state: DeviceState) -> int:
        """Edges of the reached part: out-edges when directed, else each edge once (a kept self-loop is stored once)."""
        with self.naming(state):
            self.kernels.reset()
            self.kernels.count_edges(self.graph.push.lookup, state.arrays.visited, Counter.FOUND, Counter.NUM_EDGES)
            stored = int(self.kernels.read()[Counter.NUM_EDGES])
        if self.store.attributes.directed:
            return stored
        if not self.store.attributes.num_self_loops:
            return stored // 2
        visited = self.staged.download(state.arrays.visited)
        return (stored + self.store.count_self_loops(partial(are_marked, visited))) // 2

    # Errors.

    @contextmanager
    def naming(self, state: OnDevice) -> Iterator[None]:
        """Name partition and level in what goes wrong; after a device has failed, nothing is asked of it any more."""
        self.lifetime.check()
        if self._failed is not None:
            raise DeviceError(f"the device failed in an earlier search ({self._failed}); open the graph again")
        try:
            yield
        except (CorruptStoreError, DeviceError) as error:
            self._raise(error, state)

    def _raise(self, error: CorruptStoreError | DeviceError, state: OnDevice) -> NoReturn:
        text = f"partition {self.partition}, level {state.level + 1}: {error}"
        if isinstance(error, DeviceError):
            self._failed = error
        raise type(error)(text) from error


def sample_of(counts: Sequence[int]) -> tuple[int, int, int, int]:
    """Return vertices sampled, neighbours looked at for them, found and left undecided, from the kernels' counters."""
    sampled, probes = int(counts[Counter.SAMPLED]), int(counts[Counter.PROBES])
    return sampled, probes, int(counts[Counter.SAMPLE_FOUND]), int(counts[Counter.SAMPLE_UNDECIDED])
