"""One partition's part in a search: it owns vertices, and finds which of them each level reaches.

In: a loaded partition; in each step the frontier parts of all partitions. Out: its own part of the next frontier, and a log record
from which its state can be made again. What is noted of its vertices (visited bits, parents, levels) is at local positions; the
frontier and what has been reached are bitmaps over all vertices, in store numbers.

Levels with few edges are taken by every partition alike, many in one call: each finds all their vertices and notes its own. That
costs the edges of a tiny frontier once more per partition and saves the exchange, which costs thousands of edges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from oocgraph.compiled.shared_work import MOST_PIECES
from oocgraph.config import Settings
from oocgraph.engine.buffers import BufferPool
from oocgraph.engine.cpu_engine import PREFETCH_MISSES, Call, Engine, Job, TinyLimits
from oocgraph.engine.levels import iterate
from oocgraph.engine.shard import Adjacency, Shard
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.engine.state import SearchState
from oocgraph.engine.take_over import (
    LEAST_SECONDS,
    PULL_HEADS,
    PULL_TAILS,
    PUSH,
    CommonPart,
    Facts,
    Offer,
    Result,
    StateLayout,
    TakenFrom,
    joined,
    num_pieces_of,
)
from oocgraph.errors import ClusterError, CorruptStoreError
from oocgraph.exchange.parts import FrontierPart, join_parts, make_part
from oocgraph.exchange.windows import Channel
from oocgraph.kernels import cpu
from oocgraph.kernels import partition as bits
from oocgraph.kernels.rows import NO_LONG_ROWS, Marks, Tails, no_files
from oocgraph.partition.vertex_partition import VertexPartition
from oocgraph.plan.direction import Choice
from oocgraph.plan.residency import QUEUE_CAPACITY
from oocgraph.results.search import Iteration
from oocgraph.store.arrays import PlainArray
from oocgraph.store.graph import CSRStore
from oocgraph.store.search_record import Bounds, Record
from oocgraph.types import Array, Direction

FEW_VERTICES = (PREFETCH_MISSES - QUEUE_CAPACITY // 512) // 2
"""Vertices of a frontier whose rows may have to be read: they lie in at most as many pages (of 512 edges or more) as are read together."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What a search was asked for.

    Attributes
    ----------
    direction
        Rule that chooses push or pull.
    last_level
        Maximum depth.
    few
        As of `tiny_limits`.
    take_over
        Share of a partition's vertices that other workers may work on in an iteration.
    """

    direction: Direction
    last_level: int
    few: TinyLimits
    take_over: float = 0.0


def tiny_limits(store: CSRStore, *, in_memory: bool) -> TinyLimits:
    """Return up to how many vertices and edges a frontier has that every partition pushes alike: 0 where none is.

    All partitions of a search, in all its epochs, must take the same levels without an exchange. So they receive these numbers, and what
    one of them holds, or loses to another graph, only makes it slower.

    Parameters
    ----------
    in_memory
        Whether every partition holds all edges.
    """
    if not isinstance(store.array("out/indices"), PlainArray):
        return TinyLimits(0, 0)
    return TinyLimits(QUEUE_CAPACITY if in_memory else FEW_VERTICES, QUEUE_CAPACITY)


def bounds_of(vertex_partition: VertexPartition) -> list[Bounds]:
    """Return what the log of each partition can name."""
    return [Bounds(num_owned, vertex_partition.num_vertices) for num_owned in vertex_partition.num_owned.tolist()]


class PartState(SearchState):
    """The state of one search in one partition; see `SearchState` for what is the same.

    Attributes
    ----------
    frontier : (num_words of all vertices,) uint64
        Store numbers.
    visited, before, undecided : (num_words of the partition,) uint64
        Local positions.
    entered
        What was visited when the step began, and is in the log.
    is_new, ended
        Whether no step has been taken yet; whether no level is left to find.
    common
        The memory that it is in, if others may map it and take over work.
    lost
        Whether what a device had noted of it could not be brought to the host: it has to be made again from the logs.
    """

    def __init__(self, part: PartRuntime, *, num_kept: int, wide: bool) -> None:
        super().__init__(part.num_owned, part.store.index_dtype, part.buffers, num_kept=num_kept, wide=wide)
        words = max(1, -(-part.store.num_rows // 64))
        self.frontier, self._reached, self._closed = (np.zeros(words, np.uint64) for _ in range(3))
        self.set_owners(part.owned, part.rank)
        lent = None if part.common is None else part.common.lend(self)
        self.common = None if lent is None else part.common
        if lent is not None:
            self.visited, self.undecided, self._closed, self.parent = lent.visited, lent.undecided, lent.closed, lent.parent
            self.level8, self.level32 = lent.level8, lent.level32
        self.queued = False
        self.num_own_visited = 0
        self.entered = np.zeros(self.num_words, np.uint64)
        self.is_new, self.ended, self.lost = False, False, False

    def set_owners(self, owned: Array, rank: Array) -> None:
        """Say which vertices are the partition's: see `owners`."""
        self._owners = (owned, rank)

    @property
    def closed(self) -> Array:
        """Bitmap over all vertices: visited, or not owned."""
        return self._closed

    @property
    def reached(self) -> Array:
        """Bitmap over all vertices of what has been reached, of all owners."""
        return self._reached

    @property
    def owners(self) -> tuple[Array | None, Array | None]:
        """``owned, rank``."""
        return self._owners

    @property
    def num_unvisited(self) -> int:
        """Own vertices without a level."""
        return self.num_vertices - self.num_own_visited


class PartRuntime(Engine):
    """A partition ready for searches.

    Parameters
    ----------
    store, vertex_partition, partition
        Which vertices of which graph.
    graph
        What of it is in memory (`oocgraph.engine.shard_plan`).
    threads, io_threads
        Compute and reading threads.
    knobs
        The configuration that holds for its searches.
    """

    def __init__(
        self,
        store: CSRStore,
        vertex_partition: VertexPartition,
        partition: int,
        graph: Shard[Adjacency],
        *,
        threads: int,
        io_threads: int,
        knobs: Settings,
    ) -> None:
        super().__init__(store, graph, threads=threads, io_threads=io_threads, knobs=knobs)
        self.vertex_partition, self.partition = vertex_partition, partition
        self.num_owned = int(vertex_partition.num_owned[partition])
        self.blocks = [vertex_partition.blocks_of(p) for p in range(vertex_partition.num_partitions)]
        self.own_blocks = self.blocks[partition]
        words = max(1, -(-store.num_rows // 64))
        self.owned = np.zeros(words, np.uint64)
        self.rank = np.zeros(words, np.uint32 if store.num_rows < 2**32 else np.int64)
        bits.own_bits(*self.own_blocks[:2], self.owned)
        bits.rank_words(self.owned, self.rank)
        self.common: CommonPart | None = None
        if graph.planes is not None:
            layout = StateLayout(self.num_owned, store.num_rows, store.index_dtype, self.rank.dtype)
            self.common = CommonPart(graph.planes, layout, self.owned, self.rank)
        self.channel: Channel | None = None
        self.take_over_share = 0.0

    def close(self) -> None:
        """End the threads, close the files and give back memory that others map."""
        super().close()
        if self.common is not None:
            self.common.close()

    @property
    def buffers(self) -> BufferPool:
        """Lends the arrays of states."""
        return self._buffers

    @property
    def has_failed(self) -> bool:
        """Whether it has to be loaded again before any step can be taken."""
        return False

    # The state of a search.

    def start(self, sources: Array) -> PartState:
        """Return the state in which `sources` (store numbers, distinct) are the frontier, at level 0."""
        state = self._new_state(wide=False)
        cpu.mark_vertices(sources, sources.size, state.frontier)
        state.reached[:] = state.frontier
        bits.gather_bits(*self.own_blocks, state.frontier, state.visited)
        own = sources[self.vertex_partition.locate(sources)[0] == self.partition]
        positions = self.vertex_partition.locate(own)[1]
        state.parent[positions] = own
        state.levels[positions] = 0
        state.is_new = True
        self.measure(state)
        self._measure_frontier(state)
        return state

    def resume(self, logs: Sequence[Iterable[Record]]) -> PartState:
        """Return the state after the last of the given steps, from the records of every partition, in step order.

        Parents are needed of the partition's own records only. Those of a dense record are not in the log (they would be most of
        its bytes): each vertex finds one again among its neighbours one level above, by a pull.
        """
        state = self._new_state(wide=False)
        above, frontier = np.zeros_like(state.frontier), np.zeros_like(state.frontier)
        level = -1
        for records in zip(*logs, strict=True):
            if records[0].level - 1 == level:
                above, frontier = frontier, above
            else:
                above[:] = 0
            frontier[:] = 0
            if any(record.level != records[0].level for record in records) or records[0].level < level:
                raise CorruptStoreError(
                    f"the logs of the search do not fit each other: partitions are at different levels after step {records[0].step}; "
                    "start the search again"
                )
            level = state.level = records[0].level
            state.widen_if_needed()
            for p, record in enumerate(records):
                self._scatter(p, record.early_vertex[record.early_level == level - 1], above)
                self._scatter(p, record.early_vertex, state.reached)
                self._scatter(p, record.found, frontier)
            np.bitwise_or(state.reached, frontier, out=state.reached)
            self._take_notes(state, records[self.partition], above)
        state.frontier[:] = frontier
        self.measure(state)
        self._measure_frontier(state)
        return state

    def _scatter(self, partition: int, positions: Array, rows: Array) -> None:
        """Set in `rows`, over all vertices, a partition's positions, listed or as a bitmap (uint64)."""
        if positions.size and positions.dtype != np.uint64:
            marked = np.zeros(max(1, -(-int(self.vertex_partition.num_owned[partition]) // 64)), np.uint64)
            cpu.add_vertices(positions, marked)
            positions = marked
        if positions.size:
            bits.scatter_bits(*self.blocks[partition], positions, rows)

    def adopt(self, state: PartState) -> None:
        """Take over a state that was made while the partition was loaded otherwise: the tails it keeps begin elsewhere."""
        state.kept[:] = 0
        state.set_owners(self.owned, self.rank)

    def _new_state(self, *, wide: bool) -> PartState:
        residency = self.graph.residency
        return PartState(self, num_kept=residency.num_kept, wide=wide or residency.road)

    def _take_notes(self, state: PartState, record: Record, above: Array) -> None:
        """Visit the own vertices of a record; `above` marks those of all partitions one level above what the step found alone."""
        state.parent[record.early_vertex] = record.early_parent
        state.levels[record.early_vertex] = record.early_level
        cpu.add_vertices(record.early_vertex, state.visited)
        if record.dense:
            self._find_parents(state, record.found, above)
        else:
            state.parent[record.found] = record.parent
            state.levels[record.found] = record.level
            cpu.add_vertices(record.found, state.visited)

    def _find_parents(self, state: PartState, found: Array, above: Array) -> None:
        """Visit the vertices marked in `found` from parents among `above`."""
        visited = state.visited | found
        state.visited[:] = ~found
        state.frontier[:] = above
        state.level -= 1
        self._pull(state)
        state.level += 1
        if (~state.visited).any():
            raise CorruptStoreError(
                f"the logs of the search do not fit the graph {self.store.url}: a vertex of level {state.level} has no neighbour at the "
                "level above; start the search again"
            )
        state.visited[:] = visited

    def _pull(self, state: PartState) -> None:
        """Find the unvisited vertices that have a neighbour in the frontier."""
        if self.pull_heads(state):
            self.pull_tails(state)

    # A step.

    def step(
        self,
        state: PartState,
        options: SearchOptions,
        parts: Sequence[FrontierPart] | None,
    ) -> FrontierPart:
        """Find the levels up to the next one whose vertices the peers need.

        Parameters
        ----------
        parts
            What all partitions found in the step before; None when the state holds the frontier already.

        Returns
        -------
        FrontierPart
            Empty when the search has ended.
        """
        if state.is_new:
            state.entered[:] = 0
        else:
            state.entered[:] = state.visited
        state.is_new = False
        state.before[:] = state.visited
        if parts is not None and not state.ended:
            self._join(state, parts)
        going = not self._ends(state, options)
        if going and options.direction in ("auto", "push"):
            going = self._tiny_levels(state, options) and not self._ends(state, options)
        if going:
            iterate(self, state, options.direction)
        else:
            state.ended = True
        new = state.visited & ~state.before
        count = int(np.bitwise_count(new).sum())
        return make_part(new, count, state.level, self.own_blocks, self.store.index_dtype)

    def _ends(self, state: PartState, options: SearchOptions) -> bool:
        """Whether there is no level left to find."""
        return state.ended or not state.frontier_size or state.level >= options.last_level

    def record(self, state: PartState, step: int) -> Record:
        """Return what the step has noted."""
        dtype = self.store.index_dtype
        early_vertex, early_parent = self._listed(state, state.before & ~state.entered)
        levels = state.levels[early_vertex].astype(np.int32)
        new = state.visited & ~state.before
        if new.nbytes < int(np.bitwise_count(new).sum()) * dtype.itemsize:
            return Record(step, state.level, early_vertex, early_parent, levels, True, new, np.empty(0, dtype))
        return Record(step, state.level, early_vertex, early_parent, levels, False, *self._listed(state, new))

    def _listed(self, state: PartState, rows: Array) -> tuple[Array, Array]:
        """List the vertices marked in `rows` (local positions), and their parents."""
        count, dtype = int(np.bitwise_count(rows).sum()), self.store.index_dtype
        vertices, parents = np.empty(count, dtype), np.empty(count, dtype)
        if count:
            cpu.list_vertices(rows, vertices)
            bits.take_marked(rows, state.parent, parents)
        return vertices, parents

    def _join(self, state: PartState, parts: Sequence[FrontierPart]) -> None:
        join_parts(parts, self.blocks, state.frontier)
        state.queued = False
        np.bitwise_or(state.reached, state.frontier, out=state.reached)
        self._measure_frontier(state)
        state.num_reached += state.frontier_size
        state.unvisited_edges -= state.frontier_edges

    def _tiny_levels(self, state: PartState, options: SearchOptions) -> bool:
        """Take the levels with few edges, as every partition does; returns whether a larger frontier is left."""
        level = state.level
        going = self.push_levels(state, options.last_level, few=options.few)
        if state.level > level:
            bits.gather_bits(*self.own_blocks, state.reached, state.visited)
            state.before[:] = state.visited
            state.num_own_visited = int(np.bitwise_count(state.visited).sum())
        return going

    # What `oocgraph.engine.levels.iterate` asks of a runtime, where it differs from a whole graph's.

    @property
    def most_taken(self) -> int:
        """Active vertices of an iteration that others may take over: 0 where nothing can be offered to them."""
        return 0 if self.common is None or self.channel is None else int(self.take_over_share * self.num_owned)

    def is_offered(self, state: SearchState, seconds: float) -> bool:
        """Whether others may take over pieces of work for so long."""
        assert isinstance(state, PartState)
        return self.most_taken > 0 and state.common is self.common and seconds >= LEAST_SECONDS

    def cut(self, state: SearchState, size: int, seconds: float) -> list[tuple[int, int]]:
        """Cut a range into pieces: more of them where others may take some."""
        if not self.is_offered(state, seconds) or size < 2:
            return super().cut(state, size, seconds)
        num_pieces = min(size, num_pieces_of(seconds))
        return [(size * i // num_pieces, size * (i + 1) // num_pieces) for i in range(num_pieces)]

    @property
    def num_reads(self) -> int:
        """Pieces into which work of reading threads is cut."""
        return min(super().num_reads, MOST_PIECES) if self.most_taken else super().num_reads

    def spread(self, state: SearchState, job: Job, call: Call, pieces: Sequence[tuple[int, int]]) -> list[Result]:
        """Return what `call` makes of pieces, some of which others may take."""
        if not self.is_offered(state, job.seconds) or len(pieces) < 2:
            return super().spread(state, job, call, pieces)
        pieces = joined(pieces)
        assert self.common is not None
        assert self.channel is not None
        assert self.common.state is not None
        planes, own = self.common.planes.address, self.common.state
        facts = Facts(
            kind=job.kind, level=state.level + 1, wide=state.wide, num_pieces=len(pieces),
            num_planes=self.graph.pull.num_planes, num_pulled=self.graph.pull.resident.size, num_pushed=self.graph.push.resident.size,
            is_dense=job.is_dense, gap=job.gap,
            planes_fd=planes.fd, planes_token=planes.token, planes_bytes=planes.num_bytes,
            state_fd=own.fd, state_token=own.token, state_bytes=own.num_bytes,
        )  # fmt: skip

        def run(claim: Callable[[Array], Result]) -> list[Result]:
            return self._run(job, lambda _, buffer: claim(buffer), range(len(pieces)))

        return Offer(self.common, self.channel, self.most_taken).run(facts, pieces, job.active(pieces), run, call)

    def take_over(self, state: PartState, facts: Facts, piece: tuple[int, int], owner: TakenFrom, plan: ShardPlan) -> tuple[int, int]:
        """Work on a piece of another partition's step, in its memory.

        Parameters
        ----------
        state
            Of this partition, with the same frontier.
        facts, owner
            Of the job; what is mapped of its owner.
        plan
            Of the owner's partition.

        Returns
        -------
        (left, num_bytes): vertices left undecided by a pull over what is in memory; bytes read.

        Raises
        ------
        ClusterError
            The piece does not lie in what is worked on.
        """
        push, pull = self.graph.push, self.graph.pull
        size = push.num_edges if facts.kind == PUSH else max(1, -(-plan.num_owned // 64))
        if not 0 <= piece[0] < piece[1] <= size:
            raise ClusterError(f"partition {plan.partition} offers a piece from {piece[0]} to {piece[1]} of {size}")
        there = StateLayout(plan.num_owned, self.store.num_rows, self.store.index_dtype, self.rank.dtype).arrays(owner.state)
        marks = Marks(there.parent, there.level8, there.level32, bool(facts.wide), facts.level)
        rows = pull if facts.kind != PUSH else push
        resident = rows.resident[: facts.num_pushed if facts.kind == PUSH else facts.num_pulled]
        files = no_files(rows.page_shift) if rows.files is None else rows.files.stream_arguments if facts.is_dense else rows.files.arguments
        none = Tails(np.empty(0, np.int64), np.empty((0, 2), np.int64), resident[:0])

        def call(piece: tuple[int, int], buffer: Array) -> Result:
            indices = buffer.view(resident.dtype)
            if facts.kind == PUSH:
                pushed: Result = cpu.push_rows(
                    *piece, push.lookup, push.heads, resident, 0, files, facts.gap, buffer, indices,
                    state.frontier, there.closed, there.owned, there.rank, marks,
                )  # fmt: skip
                return pushed
            if facts.kind == PULL_HEADS:
                heads = plan.heads_in(owner.planes, facts.num_planes)
                _, left = cpu.pull_heads(
                    *piece, plan.num_owned, plan.lookup, heads, resident, 0, state.frontier, there.visited, there.undecided, marks,
                    NO_LONG_ROWS,
                )  # fmt: skip
                return left, 0, 0
            result: Result = cpu.pull_tails(
                *piece, plan.lookup, facts.num_planes, resident.size, files, facts.gap, buffer, indices, none,
                np.zeros(2, np.int64), state.frontier, there.visited, there.undecided, marks, NO_LONG_ROWS,
            )  # fmt: skip
            return result

        job = Job(facts.kind, 0.0, lambda _: np.zeros(1, np.int64), None if facts.kind == PULL_HEADS else rows.files)
        ((left, num_bytes, _),) = self._run(job, call, [piece])
        return int(left) if facts.kind == PULL_HEADS else 0, int(num_bytes)

    def can_take_over(self, state: PartState, facts: Facts, plan: ShardPlan) -> bool:
        """Whether what this worker holds fits the job: its frontier, the same first edges and, for the others, their files.

        The facts are another process's: nothing is indexed with them before their sizes are those that its partition has by `plan`.
        """
        push, pull = self.graph.push, self.graph.pull
        size, rows = (facts.num_pushed, push) if facts.kind == PUSH else (facts.num_pulled, pull)
        on_disk = size < rows.num_edges and rows.files is None and facts.kind != PULL_HEADS
        layout = StateLayout(plan.num_owned, self.store.num_rows, self.store.index_dtype, self.rank.dtype)
        return (
            facts.kind in (PULL_HEADS, PULL_TAILS, PUSH)
            and not state.queued
            and facts.level == state.level
            and 0 <= size <= rows.resident.size
            and not on_disk
            and facts.state_bytes == layout.num_bytes
            and facts.planes_bytes == plan.shared_planes_bytes(facts.num_planes)
        )

    def begin_iteration(self, state: SearchState) -> None:
        """Remember what is visited, and make room for the next level."""
        self.on_phase("kernel")
        state.widen_if_needed()
        state.before[:] = state.visited

    def push(self, state: SearchState) -> int:
        """Push the frontier's rows, keeping the targets owned; returns bytes requested."""
        np.bitwise_not(self.owned, out=state.closed)
        bits.scatter_bits(*self.own_blocks, state.visited, state.closed)
        num_bytes = super().push(state)
        bits.gather_bits(*self.own_blocks, state.closed, state.visited)
        return num_bytes

    def advance(self, state: SearchState, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """Count the own vertices found in this iteration, and record its metrics."""
        assert isinstance(state, PartState)
        state.level += 1
        state.pulled = choice.direction == "pull"
        state.bytes_requested += num_bytes
        state.num_own_visited = int(np.bitwise_count(state.visited).sum())
        seconds = time.perf_counter() - began
        state.log.add(self.annotate(Iteration(state.level, choice.direction, choice.reason, frontier, undecided, seconds, num_bytes)))

    def annotate(self, metrics: Iteration) -> Iteration:
        """Add to the metrics of an iteration what else is known of it."""
        return metrics

    def measure(self, state: SearchState) -> None:
        """Count again what has been reached."""
        assert isinstance(state, PartState)
        state.num_reached, edges = self._count_edges(self.graph.push, state.reached, state.num_reached)
        state.unvisited_edges = self.graph.push.num_edges - edges
        state.num_own_visited = int(np.bitwise_count(state.visited).sum())

    def _measure_frontier(self, state: PartState) -> None:
        state.frontier_size, state.frontier_edges = self._count_edges(self.graph.push, state.frontier, state.num_unvisited)
