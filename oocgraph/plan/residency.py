"""Which part of the graph stays in memory: planes, the first edges, caches. Pure; decided before anything is read.

In: sizes of the graph and the bytes that the budget leaves. Out: `Residency`, or BudgetError with the smallest budget.

Where everything fits, planes are loaded too, because a pull over them needs no branch per vertex; not those of a view, because to replace
what does not count in them takes longer than a search gains (Kronecker graph of scale 22: 24 ms, nothing). Where it does not: on a graph
whose degrees differ widely a plane decides most vertices of a pull (hub-first lists), so planes come first; on one with
equal degrees the k-th neighbour is any vertex, and a byte of plane saves no more than a byte of row, while a resident row also
serves pushes, so all goes to rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from oocgraph.errors import BudgetError
from oocgraph.memory import SLACK_BYTES, enough_memory, format_bytes
from oocgraph.types import PAGE_BYTES

SKEWED = 1.0
"""Squared coefficient of variation of the degrees from which planes pay (uniform random: 1 / degree; Kronecker: above 30)."""

CACHE_SHARE = 0.04
"""Share of what is left that caches single pages for frontiers of a few vertices."""

ROAD_CACHE_SHARE = 0.5
"""The same where the degrees are alike and below `ROAD_DEGREE`: a wave front that moves slowly reads the same pages level after level
(grid of 4,000 x 4,000, 8,000 levels: 77 times the edges with 4 MiB of cache, 0.8 times with 50 MiB)."""

ROAD_DEGREE = 8

MAX_CACHE_SLOTS = 1 << 16
"""Pages of that cache at most: 256 MiB."""

MIN_CACHE_SLOTS = 256

SLOT_BYTES = PAGE_BYTES + 8
"""A cached page and its tag."""

KEPT_EDGES = 16
"""Edges of room per kept tail."""

KEPT_SHARE = 0.04
"""Share of what is left that keeps tails which a pull read without a hit (uniform, 2^22 vertices: 88 MB not read again)."""

MAX_KEPT_BYTES = 64 << 20

QUEUE_CAPACITY = 1 << 16
"""Edges that a frontier may have to be pushed by one thread, many levels a call."""

QUEUE_BYTES = 4 * QUEUE_CAPACITY * 8 + SLACK_BYTES
"""Of the frontiers of such levels, and of what no array accounts for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSizes:
    """What the plan needs to know of a graph, or of a partition of it, in memory or on a device.

    Attributes
    ----------
    num_vertices, itemsize
        Vertices with edges; bytes of a neighbour id.
    num_edges
        Stored entries of each group that a search reads: one (undirected) or two (push, pull).
    indptr_bytes
        Explicit row starts that must be resident.
    plane_edges : tuple of int
        Entries in planes 0 .. k - 1, for k = 0 .. planes stored (so the first is 0).
    skew
        Squared coefficient of variation of the degrees of the pull group.
    checksum_bytes
        Page checksums, when reads are to be checked.
    is_held
        Whether edges, planes and row starts are in memory already.
    is_view
        Whether some edges are replaced as they are read.
    part_bytes
        Of a partition: what it holds whether or not a search runs (bitmaps of owned vertices, row lookups). Its searches are charged
        apart (`part_state_bytes`). None of a whole graph.
    lookup_bytes
        Row lookups on a device: 24 bytes for each distinct degree, or 8 for each row and 8 more.
    num_owned
        Vertices that a partition on a device owns; None of a whole graph.
    """

    num_vertices: int
    itemsize: int
    num_edges: tuple[int, ...]
    plane_edges: tuple[int, ...]
    skew: float
    indptr_bytes: int = 0
    checksum_bytes: int = 0
    is_held: bool = False
    is_view: bool = False
    part_bytes: int | None = None
    lookup_bytes: int = 0
    num_owned: int | None = None


@dataclass(frozen=True, slots=True)
class Residency:
    """What stays in memory.

    Attributes
    ----------
    num_planes
        Planes resident.
    num_resident
        First edges resident, per group.
    cache_slots
        4 KiB pages cached for tiny frontiers; 0 when everything is resident.
    num_kept
        Edges of tails kept from one pull for the next; 0 when everything is resident.
    road
        Whether the degrees are alike and low, as in graphs of high diameter.
    vertex_bytes, plane_bytes, resident_bytes, staging_bytes, cache_bytes
        What each takes.
    """

    num_planes: int
    num_resident: tuple[int, ...]
    cache_slots: int
    num_kept: int
    road: bool
    vertex_bytes: int
    plane_bytes: int
    resident_bytes: int
    staging_bytes: int
    cache_bytes: int

    @property
    def num_bytes(self) -> int:
        """All of them."""
        return self.vertex_bytes + self.plane_bytes + self.resident_bytes + self.staging_bytes + self.cache_bytes


def vertex_state_bytes(sizes: GraphSizes) -> int:
    """Bytes of parents, levels (room for int32), five bitmaps and explicit row starts; of a partition only what it always holds."""
    if sizes.part_bytes is not None:
        return sizes.part_bytes + sizes.indptr_bytes + sizes.checksum_bytes
    n = sizes.num_vertices
    return n * (sizes.itemsize + 4) + 5 * (n // 8 + 8) + sizes.indptr_bytes + sizes.checksum_bytes


def least_search_bytes(sizes: GraphSizes, io_threads: int, buffer_bytes: int) -> int:
    """Bytes with which a search reads almost all edges from disk."""
    return vertex_state_bytes(sizes) + QUEUE_BYTES + io_threads * buffer_bytes + 2 * MIN_CACHE_SLOTS * SLOT_BYTES


def whole_search_bytes(sizes: GraphSizes) -> int:
    """Bytes with which a search holds all edges and planes."""
    return vertex_state_bytes(sizes) + QUEUE_BYTES + (sum(sizes.num_edges) + sizes.plane_edges[-1]) * sizes.itemsize


def part_state_bytes(num_vertices: int, num_owned: int, itemsize: int) -> int:
    """Bytes of one search of a partition.

    Of its own vertices parents, levels (room for int32), four bitmaps and the parents and vertices of one log record; of all vertices
    three bitmaps and the frontier parts that come from its peers; queues.
    """
    return num_owned * (3 * itemsize + 4) + 4 * (num_owned // 8 + 8) + 5 * (num_vertices // 8 + 8) + 5 * QUEUE_CAPACITY * 8


def plan_residency(
    sizes: GraphSizes,
    *,
    available_bytes: int,
    limit_bytes: int,
    io_threads: int,
    buffer_bytes: int,
    max_planes: int | None,
    shares: int = 1,
    least_bytes: int = 0,
) -> Residency:
    """Divide `available_bytes`, which is one of several equal shares, among planes, rows and caches.

    Parameters
    ----------
    least_bytes
        What the process needs in any case at another time: a refusal names no less.

    Raises
    ------
    BudgetError
        Vertex state and staging alone do not fit; the message gives the smallest budget that works.
    """
    state = vertex_state_bytes(sizes)
    queues = QUEUE_BYTES
    all_edges = sum(sizes.num_edges)
    item = 0 if sizes.is_held else sizes.itemsize  # bytes that it takes to have one more
    most_planes = len(sizes.plane_edges) - 1 if max_planes is None else min(max_planes, len(sizes.plane_edges) - 1)
    left = available_bytes - state - queues
    road = sizes.skew < SKEWED and sizes.num_edges[-1] < ROAD_DEGREE * sizes.num_vertices
    if all_edges * item <= left:
        fitting = [k for k in range(most_planes + 1) if (all_edges + sizes.plane_edges[k]) * item <= left]
        k = 0 if sizes.is_view else max(fitting)
        return Residency(k, sizes.num_edges, 0, 0, road, state, sizes.plane_edges[k] * item, all_edges * item, queues, 0)
    planes_wanted = most_planes if sizes.skew >= SKEWED or max_planes is not None else 0
    staging = io_threads * buffer_bytes
    left -= staging
    minimum = 2 * MIN_CACHE_SLOTS * SLOT_BYTES
    if left < minimum:
        need = limit_bytes + shares * (minimum - left)
        others = f", in each of {shares} partitions" if shares > 1 else ""
        raise BudgetError(
            f"the memory budget {format_bytes(limit_bytes)} is too small: the state of {sizes.num_vertices:,} vertices takes "
            f"{format_bytes(state)}, staging for {io_threads} read threads and caches {format_bytes(staging + queues + minimum)}{others}, "
            f"and {format_bytes(limit_bytes - shares * available_bytes)} are in use already; "
            f"{enough_memory(max(need, least_bytes))}"
        )
    share = ROAD_CACHE_SHARE if road else CACHE_SHARE
    slots = int(max(MIN_CACHE_SLOTS, min(MAX_CACHE_SLOTS, share * left // SLOT_BYTES)))
    num_kept = int(min(MAX_KEPT_BYTES, KEPT_SHARE * left) // (item + 24 / KEPT_EDGES))
    cache = slots * SLOT_BYTES + num_kept * item + num_kept // KEPT_EDGES * 24
    left -= cache
    k = max(k for k in range(planes_wanted + 1) if sizes.plane_edges[k] * item <= left)
    left -= sizes.plane_edges[k] * item
    resident = tuple(int(m * min(1.0, left / (all_edges * item))) for m in sizes.num_edges)
    return Residency(k, resident, slots, num_kept, road, state, sizes.plane_edges[k] * item, sum(resident) * item, staging + queues, cache)
