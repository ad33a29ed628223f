"""Counts what a 1D or 2D traversal of a stored graph would send, from the levels of its vertices: nothing is partitioned.

In: a store, levels that a search has found. Out: `TrafficCounts` of vertices in some number of sets, for 1D (each set a part) and 2D
(each a row of parts) alike: the candidates between sets are the same. Sets are those of the real partitions, by the same functions
(`oocgraph.partition.policies`), and the lists of all vertices are read, so every count is exact.

Held: 4 bytes a vertex of levels, 2 (4) of sets, and a number for each level and pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.kernels import forecast as kernels
from oocgraph.kernels.prop import make_prop
from oocgraph.partition.policies import named_policy
from oocgraph.partition.policy import CompiledPolicy, compile_policy
from oocgraph.plan.traffic import PairCounts
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.partitions import master_dtype
from oocgraph.store.rows import offset_blocks, read_entries, row_blocks
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array, VertexOrder

PIECE_EDGES = 1 << 20
"""Entries read at once; a longer row is a piece alone."""


def reading_bytes(store: CSRStore) -> int:
    """Bytes of a piece while it is read, of one group after the other."""
    return max(
        PIECE_EDGES * store.array(f"{group}/indices").dtype.itemsize
        + sum(decoded_bytes(store.array(f"{group}/{name}")) for name in ("indices", "indptr"))
        for group in store.attributes.stored_groups
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrafficCounts:
    """What would be sent where vertices are in some number of sets.

    Attributes
    ----------
    candidates
        By pair of sets, the frontier's set first: (num_sets, num_sets) pairs.
    broadcasts
        The same of the frontier, by number of columns: (num_sets, columns) pairs.
    edges : dict
        By number of columns, (num_sets, columns) int64: edges of each part.
    set_vertices : (num_sets,) int64
        Vertices of each set.
    """

    candidates: PairCounts
    broadcasts: dict[int, PairCounts]
    edges: dict[int, Array]
    set_vertices: Array


class TrafficCounter:
    """Reads all rows of a graph for each number of sets.

    Parameters
    ----------
    store
        The graph.
    level : (num_vertices,) uint8 or int32
        In store order, as a search gives them.
    num_levels
        Levels that have vertices.

    Attributes
    ----------
    level_vertices, level_edges : (num_levels,) int64
        Vertices of each level, and their out-edges.
    """

    def __init__(self, store: CSRStore, level: Array, num_levels: int) -> None:
        self.store, self.num_levels = store, num_levels
        self.level = level.astype(np.int32)
        if level.dtype == np.uint8:
            self.level[level == LEVEL_UNREACHED] = UNREACHED
        self.level_vertices = np.bincount(self.level[self.level >= 0], minlength=num_levels)
        self.level_edges = self._edges_by(self.level, num_levels)

    def sets(self, num_sets: int) -> Array:
        """Return the set of each vertex, as the real partitions have it: (num_vertices,) int16 or int32."""
        store = self.store
        found = np.full(store.num_rows, -1, master_dtype(num_sets))
        prop = make_prop(store.num_rows, store.attributes.num_stored_edges, num_sets, directed=store.attributes.directed,
                         index_dtype=store.index_dtype)  # fmt: skip
        policy, none, at = _one_dimension(store.attributes.vertex_order), np.empty(0, store.index_dtype), np.empty(3, np.int64)
        for first, offsets in offset_blocks(store, "out"):
            rows = prop.with_rows(first, offsets, none, int(offsets[0]), rows_are_in=False)
            policy.assign_masters(rows, first, first + offsets.size - 1, None, found, at)
        return found

    def count(self, num_sets: int, columns: Iterable[int] = ()) -> TrafficCounts:
        """Count for vertices in `num_sets` sets: candidates, and for each number of columns what is broadcast.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        set_of = self.sets(num_sets)
        candidates = self._zeros(num_sets * num_sets)
        broadcasts = {c: self._zeros(num_sets * c) for c in columns}
        edges = {c: np.zeros(num_sets * c, np.int64) for c in broadcasts}

        piece = 0, np.empty(0, np.int64), 0, np.empty(0, self.store.array("out/indices").dtype)
        common, numbers = (set_of, self.level, num_sets), np.empty(0, np.int64)
        pairs = candidates.counts, candidates.lengths
        load_kernels([
            (kernels.count_candidates, (*piece, *common, *pairs)),
            *([(kernels.count_broadcasts, (*piece, *common, *pairs, numbers))] if broadcasts else []),
        ])  # fmt: skip

        def count_candidates(*piece: object) -> None:
            kernels.count_candidates(*piece, set_of, self.level, num_sets, candidates.counts, candidates.lengths)

        def count_broadcasts(*piece: object) -> None:
            for c, found in broadcasts.items():
                kernels.count_broadcasts(*piece, set_of, self.level, c, found.counts, found.lengths, edges[c])

        if self.store.attributes.directed:
            self._each_piece("in", count_candidates)
            if broadcasts:
                self._each_piece("out", count_broadcasts)
        else:
            self._each_piece("out", count_candidates, count_broadcasts)
        return TrafficCounts(
            candidates=candidates,
            broadcasts=broadcasts,
            edges={1: self._edges_by(set_of, num_sets)[:, None]} | {c: one.reshape(num_sets, c) for c, one in edges.items()},
            set_vertices=np.bincount(set_of, minlength=num_sets),
        )

    def _zeros(self, num_pairs: int) -> PairCounts:
        return PairCounts(np.zeros((self.num_levels, num_pairs), np.int64), np.zeros(num_pairs, np.int64))

    def _each_piece(self, group: str, *uses: Callable[..., None]) -> None:
        """Hand first row, offsets, first entry and entries of every piece to each of some functions."""
        indices = self.store.array(f"{group}/indices")
        buffer = np.empty(PIECE_EDGES, indices.dtype)
        for block in row_blocks(self.store, group, max_entries=PIECE_EDGES, whole_rows=True):
            entries = read_entries(indices, block, buffer)
            for use in uses:
                use(block.first_row, block.indptr, block.start, entries)

    def _edges_by(self, key: Array, num_keys: int) -> Array:
        """Count the out-edges of the vertices with each key, (num_vertices,) integers: (num_keys,) int64. Negative keys do not count."""
        total = np.zeros(num_keys + 1, np.float64)  # whole numbers, exact below 2**53
        for first, offsets in offset_blocks(self.store, "out"):
            here = key[first : first + offsets.size - 1].astype(np.int64) + 1
            total += np.bincount(np.maximum(here, 0), weights=np.diff(offsets), minlength=num_keys + 1)
        return total[1:].astype(np.int64)


@cache
def _one_dimension(vertex_order: VertexOrder) -> CompiledPolicy:
    """Compile who masters what: about a second."""
    return compile_policy(named_policy("1d", vertex_order=vertex_order))
