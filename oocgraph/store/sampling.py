"""Samples of neighbours, and random walks: only the pages that hold the drawn positions are read.

In: user ids and a seed. Out: drawn edges, hop by hop, or the vertices of walks. Which neighbours are drawn of a vertex depends on the seed
and the vertex only, so that it is the same for any threads, budget and company. Planes hold the hubs among the neighbours and
would answer with these too often: positions are drawn from whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from oocgraph.arguments import check_whole, is_whole
from oocgraph.compiled.load import load_kernels
from oocgraph.errors import ArgumentError
from oocgraph.kernels.sampling import draw_positions, draw_steps
from oocgraph.store.answering import budget_of, ids_bytes, ids_of
from oocgraph.store.columns import as_numpy, distinct
from oocgraph.store.given import as_collection
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.neighbours import VERTEX_BYTES
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.row_places import group_of, row_ends
from oocgraph.store.scattered import RangeReader
from oocgraph.types import Array

DRAW_BYTES = 96
"""What a drawn edge takes beside its ids: position, neighbour, both ends, hop, and their sorted copies."""

WALK_BLOCK = 1 << 16
"""Walks that take a step at a time."""


class SampledEdges(NamedTuple):
    """Edges drawn by `sample_neighbors`, hop by hop; three arrays of one length.

    Attributes
    ----------
    source, target : (num_edges,) int64, or object arrays of str
        Ends of each edge, as the graph has it: with ``direction="in"`` the target is the vertex whose neighbours were drawn.
    hop : (num_edges,) int64
        Hop that drew it, from 0.
    """

    source: Array
    target: Array
    hop: Array


class Hop(NamedTuple):
    """Edges drawn in one hop: store number of the vertex, and of the neighbour."""

    vertex: Array
    neighbour: Array


def sample_neighbors(
    store: GraphArrays, ids: Any, fanout: Any, seed: int, *, replace: bool, direction: str, memory_budget: str | int | None
) -> SampledEdges:
    """Return drawn edges; see `oocgraph.store.access.GraphAccess.sample_neighbors`."""
    fanouts, group = _fanouts(fanout), group_of(store, direction)
    load_sampling()
    given = as_collection(ids)
    vertex_bytes, num_edges = VERTEX_BYTES * len(given), _most_edges(store, len(given), fanouts)
    following_bytes = vertex_bytes + (DRAW_BYTES + VERTEX_BYTES) * num_edges + ids_bytes(store, 2 * num_edges)
    budget = budget_of(store, memory_budget, following_bytes=following_bytes)
    budget.reserve("given vertices", vertex_bytes)
    with RangeReader(store, budget) as reader:
        numbers = PagedIds(reader).vertices_of(given)
        hops = list(draw_hops(reader, group, distinct(numbers[numbers >= 0]), fanouts, seed, replace=replace))
        ends = np.concatenate([np.empty(0, np.int64), *(one.vertex for one in hops), *(one.neighbour for one in hops)])
        budget.reserve("ids of the edges", ids_bytes(store, ends.size))
        named = np.split(as_numpy(ids_of(reader, ends)), 2)  # in one pass over the pages of both ends
    source, target = named if direction == "out" else reversed(named)
    return SampledEdges(source, target, np.repeat(np.arange(len(hops)), [one.vertex.size for one in hops]))


def draw_hops(reader: RangeReader, group: str, start: Array, fanouts: Sequence[int], seed: int, *, replace: bool) -> Iterator[Hop]:
    """Draw neighbours of some vertices, of those neighbours that were not drawn from before, and so on.

    Parameters
    ----------
    start : (n,) int64
        Store numbers, ascending, each once.
    """
    frontier, seen = start, start
    for fanout in fanouts:
        begin, end = row_ends(reader.store, group, frontier, reader)
        sizes = np.where(end > begin, fanout, 0) if replace else np.minimum(end - begin, fanout)
        offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        reader.budget.reserve("drawn edges", DRAW_BYTES * int(offset[-1]) + VERTEX_BYTES * frontier.size)
        positions = np.empty(int(offset[-1]), np.int64)
        draw_positions(np.uint64(seed % 2**64), frontier, begin, end - begin, offset, replace, positions)
        vertex, neighbour = np.repeat(frontier, sizes), _neighbours_at(reader, group, positions)
        yield Hop(vertex, neighbour)
        frontier = np.setdiff1d(distinct(neighbour), seen, assume_unique=True)
        seen = distinct(np.concatenate([seen, frontier]))


def _neighbours_at(reader: RangeReader, group: str, positions: Array) -> Array:
    """Return the entries at positions, in any order, each read once."""
    places = distinct(positions)
    found = reader.read(f"{group}/indices", places, places + 1).astype(np.int64)
    return found if places.size == positions.size and np.array_equal(places, positions) else found[np.searchsorted(places, positions)]


def random_walk(
    store: GraphArrays, starts: Any, length: int, seed: int, *, direction: str, memory_budget: str | int | None
) -> Array:  # fmt: skip
    """Return the vertices of walks; see `oocgraph.store.access.GraphAccess.random_walk`."""
    check_whole("length", length, least=0, of="steps")
    group = group_of(store, direction)
    load_sampling()
    given = as_collection(starts)
    num_visits = len(given) * (int(length) + 1)
    charges = {
        "given vertices": VERTEX_BYTES * len(given),
        "steps": DRAW_BYTES * min(len(given), WALK_BLOCK),
        "walks": 8 * num_visits,
        "ids of the walks": ids_bytes(store, num_visits) + 8 * num_visits,
    }
    budget = budget_of(store, memory_budget, following_bytes=sum(charges.values()))
    budget.reserve_all(charges)
    walks = np.empty((len(given), int(length) + 1), np.int64)
    with RangeReader(store, budget) as reader:
        known = PagedIds(reader)
        own_ids, numbers = known.parse(given), known.vertices_of(given)
        walks[:, 0] = np.maximum(numbers, 0)
        for step in range(int(length)):
            for first in range(0, len(given), WALK_BLOCK):
                here = slice(first, first + WALK_BLOCK)
                walks[here, step + 1] = _step(reader, group, walks[here, step], first, step, seed)
        if not store.num_rows:
            return np.repeat(own_ids[:, None], walks.shape[1], axis=1)
        found = as_numpy(ids_of(reader, walks.reshape(-1))).reshape(walks.shape)
    found[numbers < 0] = own_ids[numbers < 0, None]
    return found


def _step(reader: RangeReader, group: str, at: Array, first: int, step: int, seed: int) -> Array:
    """Return where walks are after a step; one in a vertex without edges to follow stays there."""
    if not reader.store.num_rows:
        return at
    begin, end = row_ends(reader.store, group, at, reader)
    drawn = np.empty(at.size, np.int64)
    draw_steps(np.uint64(seed % 2**64), first, step, end - begin, drawn)
    moves = end > begin
    after = at.copy()
    after[moves] = _neighbours_at(reader, group, (begin + drawn)[moves])
    return after


def _most_edges(store: GraphArrays, num_vertices: int, fanouts: Sequence[int]) -> int:
    """Return how many edges may be drawn."""
    most = 0
    for fanout in fanouts:
        num_vertices = min(num_vertices * fanout, store.attributes.num_stored_edges)
        most += num_vertices
    return most


def _fanouts(fanout: Any) -> tuple[int, ...]:
    """Return the fanout of each hop.

    Raises
    ------
    ArgumentError
        One is negative or no whole number, or there is none.
    """
    given = tuple(fanout) if isinstance(fanout, list | tuple | np.ndarray) else (fanout,)
    for one in given:
        if not is_whole(one, 0):
            raise ArgumentError(f"fanout is {fanout!r}; it must be a whole number of neighbours, 0 or more, or a list of one for each hop")
    if not given:
        raise ArgumentError("fanout is empty; give the number of neighbours of each hop, such as [15, 10]")
    return tuple(int(one) for one in given)


def load_sampling() -> None:
    """Bring the kernels into memory, before memory is counted."""
    one, none = np.zeros(1, np.int64), np.empty(0, np.int64)
    load_kernels(
        [
            (draw_positions, (np.uint64(0), none, none, none, one, False, none)),
            (draw_steps, (np.uint64(0), 0, 0, none, none)),
        ]
    )
