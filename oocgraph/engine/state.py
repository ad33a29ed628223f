"""The state of one search: visited bits, parents, levels and the frontier, in store order."""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.engine.buffers import BufferPool
from oocgraph.engine.level_log import LevelLog
from oocgraph.kernels import cpu
from oocgraph.kernels.rows import Marks, Tails
from oocgraph.plan.direction import Facts
from oocgraph.plan.residency import KEPT_EDGES, QUEUE_CAPACITY
from oocgraph.results.search import DeviceMetrics, Iteration
from oocgraph.types import LEVEL_UNREACHED, PAGE_BYTES, Array


def are_marked(bitmap: Array, vertices: Array) -> Array:
    """Return whether the bits of vertices are set, as numbers that are 0 or not: (n,) uint64 of (n,) int64 and (num_words,) uint64."""
    marked: Array = (bitmap[vertices >> 6] >> (vertices & 63).astype(np.uint64)) & np.uint64(1)
    return marked


class SearchProgress:
    """How far a search is, and the metrics of its iterations; wherever its arrays are.

    Attributes
    ----------
    num_vertices : int
        Vertices that it notes parents and levels of.
    level : int
        Level of the frontier.
    frontier_size, frontier_edges : int
        Active vertices, and the sum of their (out-)degrees.
    num_reached, unvisited_edges : int
        Visited vertices; the sum of the (in-)degrees of the others.
    pulled : bool
        Whether the last iteration was a pull.
    bytes_requested : int
        Of the store's files.
    targets : (num_targets,) int64
        Vertices at which a search of the whole graph stops when all of them are visited; none: it goes on.
    """

    def __init__(self, num_vertices: int) -> None:
        self.targets = np.empty(0, np.int64)
        self.num_vertices = num_vertices
        self.level = 0
        self.frontier_size = self.frontier_edges = 0
        self.num_reached = 0
        self.unvisited_edges = 0
        self.pulled = False
        self.bytes_requested = 0
        self.counts = np.zeros(7, np.int64)
        self.log = LevelLog()

    @property
    def num_unvisited(self) -> int:
        """Rows without a level."""
        return self.num_vertices - self.num_reached

    def facts(
        self, num_vertices: int, num_edges: int, *, frontier_pages: int = 0, sample: tuple[int, int, int, int] = (0, 0, 0, 0),
        disk_pages: int = 0,
    ) -> Facts:  # fmt: skip
        """Return what the direction rules compare.

        Parameters
        ----------
        num_vertices, num_edges
            Of the graph; edges as stored.
        frontier_pages, disk_pages
            As of `Facts`.
        sample
            Vertices sampled, neighbours looked at for them, found, left undecided.
        """
        sampled, probes, found, left = sample
        return Facts(
            frontier=self.frontier_size,
            frontier_edges=self.frontier_edges,
            frontier_pages=frontier_pages,
            unvisited=self.num_unvisited,
            unvisited_edges=self.unvisited_edges,
            num_vertices=num_vertices,
            num_edges=num_edges,
            sampled=sampled,
            sampled_probes=probes,
            sampled_found=found,
            sampled_undecided=left,
            disk_pages=disk_pages,
            pulled=self.pulled,
        )

    @property
    def depth(self) -> int:
        """Largest level that has a vertex."""
        return self.level if self.frontier_size else max(0, self.level - 1)

    def take_log(self, log: Array, fetched_bytes: int, fetch_seconds: float) -> None:
        """Take over what `push_levels` did: its counts, and its log with the pages fetched for its first level."""
        rows = log[: int(self.counts[4])].astype(np.float64)
        if len(rows):
            rows[0, 2:] += fetched_bytes, 1e9 * fetch_seconds
            self.pulled = False
        self.log.add_tiny(self.level + 1, rows)
        self.bytes_requested += int(self.counts[3]) + fetched_bytes
        self.frontier_size, self.frontier_edges, self.level = (int(x) for x in self.counts[:3])
        self.counts[3] = self.counts[4] = 0

    def moved_in_tiny_level(self, num_vertices: int, num_edges: int) -> DeviceMetrics | None:
        """Return what went to a device for levels of few edges; None where nothing is known of it."""
        return None

    def iterations(self) -> tuple[Iteration, ...]:
        """Return the metrics of all iterations so far."""
        return self.log.iterations(self.moved_in_tiny_level)


class SearchState(SearchProgress):
    """What a search knows; kernels write its arrays in place.

    Attributes
    ----------
    frontier, visited, before, undecided : (num_words,) uint64
        Bitmaps: active vertices; visited ones now and at the start of the iteration; what a pull has left to the disk.
    parent : (num_vertices,) index dtype
        Unset where not visited.
    level : int
        Level of the frontier.
    kept, kept_entries
        Tails that a pull read without a hit, for the next pull (see `oocgraph.kernels.cpu.pull_tails`).
    wide : bool
        Whether levels are int32 (from the start on graphs of high diameter) or one byte each.
    queued : bool
        Whether the frontier is in ``queues`` rather than in the bitmap.
    reached_edges : int, optional
        Edges of all that was reached, as stored, if the search has ended and they are known.
    is_finished : bool
        Whether the search has ended, with parents and levels set everywhere.
    """

    def __init__(self, num_vertices: int, dtype: np.dtype[Any], pool: BufferPool, *, num_kept: int = 0, wide: bool = False) -> None:
        super().__init__(num_vertices)
        n, words = num_vertices, max(1, -(-num_vertices // 64))
        self.num_words = words
        self.frontier, self.visited, self.before, self.undecided = np.zeros((4, words), np.uint64)
        both = pool.take(n * (dtype.itemsize + 4))
        self.parent, levels = both[: n * dtype.itemsize].view(dtype), both[n * dtype.itemsize :]
        self.level8, self.level32 = levels[:n], levels.view(np.int32)
        self.wide = wide
        self.queued = True
        self.reached_edges: int | None = None
        self.is_finished = False
        self.queues = pool.take(4 * QUEUE_CAPACITY * 8).view(np.int64).reshape(4, QUEUE_CAPACITY)
        self.kept = np.zeros(2, np.int64)
        self.kept_entries = Tails(
            pool.take(num_kept // KEPT_EDGES * 8).view(np.int64),
            pool.take(num_kept // KEPT_EDGES * 16).view(np.int64).reshape(-1, 2),
            pool.take(num_kept * dtype.itemsize).view(dtype),
        )

    def touch(self) -> None:
        """Have the system give the memory of parents and levels now: a first search would wait for it."""
        self.parent[:: PAGE_BYTES // self.parent.itemsize] = 0
        self.level32[:: PAGE_BYTES // 4] = 0

    @property
    def closed(self) -> Array:
        """Bitmap over all vertices of what a push may not find."""
        return self.visited

    @property
    def reached(self) -> Array:
        """Bitmap over all vertices of what has been reached."""
        return self.visited

    @property
    def owners(self) -> tuple[Array | None, Array | None]:
        """``owned, rank`` of a partition (see `oocgraph.kernels.cpu.push_rows`); None of a whole graph."""
        return None, None

    @property
    def num_kept(self) -> int:
        """Entries of `kept_entries` in use."""
        return min(int(self.kept[0]), self.kept_entries.vertex.size)

    @property
    def marks(self) -> Marks:
        """Where the vertices are noted that this iteration finds."""
        return Marks(self.parent, self.level8, self.level32, self.wide, self.level + 1)

    @property
    def levels(self) -> Array:
        """Levels in the form in use: uint8, or int32 when the depth needs it."""
        return self.level32 if self.wide else self.level8

    def widen_if_needed(self) -> None:
        """Turn to int32 levels before one appears that a byte cannot hold."""
        if not self.wide and self.level + 1 >= LEVEL_UNREACHED:
            cpu.widen_levels(self.level8, self.level32, self.num_vertices)
            self.wide = True
