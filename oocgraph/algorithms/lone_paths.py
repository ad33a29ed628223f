"""Shortest paths from up to eight sources that share little: each alone, in memory, several at a time.

In: sources, and the rows of all vertices, all of which stay in memory. Out: what depends on each vertex, added up. On a grid or a road two
sources rarely find a vertex on the same level, so that rows of eight numbers of paths, of which one is used, only take up the caches.
"""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import numpy as np

from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.kernels import lone_paths as kernels
from oocgraph.kernels.betweenness import HUGE, STEP, TINY
from oocgraph.kernels.lone_paths import ONE_WAY, TOO_DEEP, TOO_MANY
from oocgraph.kernels.piece_rows import empty_pieces
from oocgraph.sparse.piece_table import PieceTable
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

EDGE_SECONDS = 6e-9
"""About what an edge takes."""


def lone_bytes(store: CSRStore) -> int:
    """Return what a thread holds."""
    return store.num_rows * (8 + store.index_dtype.itemsize)


def lone_kernels(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return calls of all kernels, to load them."""
    pieces, numbers, level = empty_pieces(store.index_dtype), np.empty(0), np.empty(0, np.uint16)
    return [
        (kernels.search, pieces, pieces, 0, 0, level, numbers, numbers, np.empty(0, store.index_dtype)),
        (kernels.count_found, level.reshape(1, 0), 0, 0, 0),
        (kernels.add_up, level.reshape(1, 0), 0, numbers.reshape(1, 0), numbers, 0, 0),
    ]


class LonePaths:
    """Searches of several threads, each from one source.

    Parameters
    ----------
    sweeps
        Whose threads are used, as many as have room (`Sweeps.num_spared`).
    tables
        Lists ``out`` and ``in``.
    unseen
        Level of a vertex that has not been found; others are below.
    """

    def __init__(self, sweeps: Sweeps, tables: tuple[PieceTable, PieceTable], unseen: int) -> None:
        self._sweeps, self._pieces, self._unseen = sweeps, tuple(table.pieces for table in tables), unseen
        for table in tables:
            for piece in range(len(table.pieces.places)):
                is_here = table.bring(piece)
                assert is_here, "a search alone is for edges that stay in memory"
        n = sweeps.store.num_rows
        self._room: SimpleQueue[tuple[Array, Array]] = SimpleQueue()
        for _ in range(sweeps.num_spared):
            self._room.put((np.empty(n), np.empty(n, sweeps.store.index_dtype)))

    def add(self, sources: Array, level: Array, dependency: Array, centrality: Array) -> int:
        """Add to `centrality` what depends on each vertex; return the last level.

        Parameters
        ----------
        sources : (num_sources,) int64
        level, dependency : (num_sources or more, num_vertices) uint16 and float64
            Out, for each source: level of each vertex, and what depends on it where it is found.

        Raises
        ------
        ArgumentError
            There are too many levels, or paths.
        CorruptStoreError
            An edge is in one of both lists only.
        """
        level, dependency = level[: sources.size], dependency[: sources.size]
        level.fill(self._unseen)
        seconds = EDGE_SECONDS * self._sweeps.store.attributes.num_stored_edges * sources.size

        def search(b: int) -> int:
            room = self._room.get()
            try:
                return int(kernels.search(*self._pieces, sources[b], self._unseen, level[b], dependency[b], *room))
            finally:
                self._room.put(room)

        depths = self._sweeps.team.run(search, range(sources.size), seconds)
        if TOO_MANY in depths:
            raise too_many_paths(self._sweeps.store)
        if TOO_DEEP in depths:
            raise too_long_paths(self._sweeps.store, self._unseen)
        if ONE_WAY in depths:
            raise CorruptStoreError(f"{self._sweeps.store.url}: an edge of its lists 'out' is not in 'in'; run `oocgraph check`")
        self._sweeps.vertices(lambda a, z: kernels.add_up(level, self._unseen, dependency, centrality, a, z), seconds)
        return max(depths)


def too_many_paths(store: CSRStore) -> ArgumentError:
    """Return the error for numbers of paths on one level whose ratio is too large."""
    most = int(np.log10(HUGE * STEP) - np.log10(TINY))
    return _refusal(store, f"more than 1e{most} times as many shortest paths as between one of them and another as far away")


def too_long_paths(store: CSRStore, most: int) -> ArgumentError:
    """Return the refusal of paths of `most` edges or more."""
    return _refusal(store, f"shortest paths of {most:,} edges or more")


def _refusal(store: CSRStore, what: str) -> ArgumentError:
    return ArgumentError(
        f"{store.url}: between two vertices there are {what}, and betweenness_centrality cannot count them; "
        "give a smaller graph, or one of smaller diameter"
    )
