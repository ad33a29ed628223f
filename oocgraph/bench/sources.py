"""Sources of a benchmark: vertices drawn at random among those from which an edge leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BLOCK_VERTICES = 1 << 20
"""Vertices examined together: 8 MiB of row starts."""


def draw_sources(store: CSRStore, num_sources: int, seed: int) -> Array:
    """Draw distinct vertices that have an out-edge; fewer when the graph has not as many.

    Parameters
    ----------
    store
        An open graph.
    num_sources
        Number of vertices.
    seed
        The same seed draws the same vertices of the same store.

    Returns
    -------
    (at most num_sources,) int64
        Store numbers.

    Raises
    ------
    OocGraphError
        The graph has no edge.
    """
    if not store.attributes.num_stored_edges:
        raise OocGraphError(f"{store.url}: the graph has no edge, so there is no source to draw; measure a graph with edges")
    random = np.random.default_rng(seed)
    num_candidates = sum(block.size for block in _candidates(store))
    positions = random.choice(num_candidates, min(num_sources, num_candidates), replace=False)
    drawn = np.empty(positions.size, np.int64)
    start = 0
    for block in _candidates(store):
        here = (positions >= start) & (positions < start + block.size)
        drawn[here] = block[positions[here] - start]
        start += block.size
    return drawn


def _candidates(store: CSRStore) -> Iterator[Array]:
    """Yield the vertices that have an out-edge, block by block; every stored vertex of an undirected graph has one."""
    indptr = store.array("out/indptr") if store.attributes.directed else None
    for start in range(0, store.num_rows, BLOCK_VERTICES):
        stop = min(store.num_rows, start + BLOCK_VERTICES)
        yield np.arange(start, stop) if indptr is None else start + np.flatnonzero(np.diff(indptr.read(start, stop + 1)))


def source_ids(store: CSRStore, vertices: Sequence[int] | Array) -> list[Any]:
    """Return the user's ids of some vertices of the store."""
    ids: list[Any] = VertexIds(store).ids_of(vertices).tolist()
    return ids
