"""Counts what a 1D or 2D traversal of a stored graph would send, from the levels of its vertices: nothing is partitioned.

In: a store, levels that a search has found. Out: `Meetings` of vertices in some number of sets, for 1D (each set a member) and 2D (each a
row of members) alike: the candidates between sets are the same. Sets are those of the real partitions, by the same functions
(`oocgraph.partition.grid`), and every count is of vertices that would be sent: where all vertices are looked at, the forecast is exact.

Held: 4 bytes a vertex of levels, 1 of strata, 2 (4) of sets, and the counts (`oocgraph.plan.traffic.MAX_CELLS`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from types import TracebackType
from typing import Self

import numpy as np

from oocgraph.kernels import forecast as kernels
from oocgraph.kernels.prop import make_prop
from oocgraph.partition.grid import grid_policy
from oocgraph.partition.policy import CompiledPolicy, compile_policy
from oocgraph.plan.sample import Choice, choose_sample, draw_runs
from oocgraph.plan.traffic import Counted, kept_pairs
from oocgraph.runtime.sampled_rows import NOT_CHOSEN, Piece, RowReader, count_edges_by
from oocgraph.store.graph import CSRStore
from oocgraph.store.partitions import master_dtype
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array, VertexOrder

SURE, SAMPLED = 0, 1
"""Strata."""

CERTAIN_SHARE = 1 / 4
"""In-edges of what small levels meet, as a share of the edges that may be looked at: their out-neighbours may be hubs."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Meetings:
    """What would be sent where vertices are in some number of sets.

    Attributes
    ----------
    candidates : Counted
        By pair of sets (`oocgraph.kernels.forecast`), the frontier's set first.
    lists : (num_sets, num_sets) float64
        Vertices of the second set with an in-neighbour in the first.
    casts : dict
        By number of columns: by set and column.
    cast_lists : dict
        By number of columns, (num_sets, columns) float64: vertices of the set with an out-edge in the column, where its master is not.
    edges : dict
        By number of columns, (num_sets, columns) float64: edges of each member.
    set_vertices : (num_sets,) int64
    """

    candidates: Counted
    lists: Array
    casts: dict[int, Counted]
    cast_lists: dict[int, Array]
    edges: dict[int, Array]
    set_vertices: Array


class MeetingCounter:
    """Looks at the rows of a graph, as often as it is asked. Use it in a ``with`` statement.

    Parameters
    ----------
    store
        The graph.
    level : (num_vertices,) uint8 or int32
        In store order, as a search gives them.
    num_levels
        Levels that have vertices.
    max_edges
        Entries looked at, of a graph of few levels.
    io_threads
        Reading threads.

    Attributes
    ----------
    choice : Choice
        What is looked at, and why.
    level_vertices, level_edges : (num_levels,) int64
        Vertices of each level, and their out-edges.
    """

    def __init__(self, store: CSRStore, level: Array, num_levels: int, *, max_edges: int, io_threads: int) -> None:
        self.store, self.num_levels = store, num_levels
        self.level = level.astype(np.int32)
        if level.dtype == np.uint8:
            self.level[level == LEVEL_UNREACHED] = UNREACHED
        self._open = ExitStack()
        self._out = self._open.enter_context(RowReader(store, "out", io_threads=io_threads))
        self._in = self._open.enter_context(RowReader(store, "in", io_threads=io_threads)) if store.attributes.directed else self._out
        self.level_vertices = np.bincount(self.level[self.level >= 0], minlength=num_levels)
        self.level_edges = count_edges_by(self._out, self.level, num_levels)
        read_twice = 1 + store.attributes.directed
        self.choice: Choice = choose_sample(read_twice * store.attributes.num_stored_edges, self.level_edges, max_edges)
        self._stratum = None if self.choice.one_in == 1 else self._strata(int(CERTAIN_SHARE * max_edges))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.close()

    def _strata(self, max_edges: int) -> Array:
        """Choose vertices: (num_vertices,) uint8."""
        stratum = np.full(self.store.num_vertices, NOT_CHOSEN, np.uint8)
        stratum[self.level == 0] = SURE  # a few lists, even of hubs: who is told of the source
        left = max_edges
        for small in self.choice.small_levels:
            mine = self.level == small
            met = np.zeros_like(mine)
            for piece in self._out.pieces(np.where(mine, np.uint8(SURE), np.uint8(NOT_CHOSEN))):
                met[piece.edges] = True
            for vertices in (mine, met):  # who is told of, and who is found
                wanted = vertices & (stratum != SURE)
                cost = int(count_edges_by(self._in, wanted.astype(np.int8) - np.int8(1), 1)[0])
                if cost <= left:
                    stratum[wanted] = SURE
                    left -= cost
        for first, stop in draw_runs(self.store.num_vertices, self.choice.one_in).tolist():
            run = stratum[first:stop]
            run[run != SURE] = SAMPLED
        return stratum

    @cached_property
    def weight(self) -> float:
        """Vertices that one of the sample stands for."""
        if self._stratum is None:
            return 1.0
        num_sure, num_sampled = int((self._stratum == SURE).sum()), int((self._stratum == SAMPLED).sum())
        return (self.store.num_vertices - num_sure) / max(1, num_sampled)

    def sets(self, num_sets: int) -> Array:
        """Return the set of each vertex, as the real partitions have it: (num_vertices,) int16 or int32."""
        store = self.store
        found = np.full(store.num_vertices, -1, master_dtype(num_sets))
        prop = make_prop(store.num_vertices, store.attributes.num_stored_edges, num_sets, directed=store.attributes.directed,
                         index_dtype=store.index_dtype)  # fmt: skip
        policy, none, at = _one_dimension(store.attributes.vertex_order), np.empty(0, store.index_dtype), np.empty(3, np.int64)
        for first, pointers in self._out.indptr_blocks():
            rows = prop.with_rows(first, pointers, none, int(pointers[0]), rows_are_in=False)
            policy.assign_masters(rows, first, first + pointers.size - 1, None, found, at)
        return found

    def count(self, num_sets: int, columns: Iterable[int] = ()) -> Meetings:
        """Count for vertices in `num_sets` sets: candidates, and for each number of columns what is broadcast."""
        set_of = self.sets(num_sets)
        meetings = _Cells(num_sets, num_sets, self.num_levels)
        casts = {c: _Cells(num_sets, c, self.num_levels) for c in columns}
        if meetings.one_in > 1 or any(cells.one_in > 1 for cells in casts.values()):
            self._look(set_of, num_sets, meetings, casts)
            for cells in (meetings, *casts.values()):
                cells.choose()
        self._look(set_of, num_sets, meetings, casts)
        by_set = count_edges_by(self._out, set_of, num_sets).astype(np.float64)
        edges = {1: by_set[:, None]} | {c: _shared_out(by_set, cells.work_of(self.weight, num_sets)) for c, cells in casts.items()}
        return Meetings(
            candidates=meetings.counted(self.weight), lists=meetings.lists(self.weight).reshape(num_sets, num_sets),
            casts={c: cells.counted(self.weight) for c, cells in casts.items()},
            cast_lists={c: cells.lists(self.weight).reshape(num_sets, c) for c, cells in casts.items()},
            edges=edges, set_vertices=np.bincount(set_of, minlength=num_sets),
        )  # fmt: skip

    def _look(self, set_of: Array, num_sets: int, meetings: _Cells, casts: dict[int, _Cells]) -> None:
        for piece in self._in.pieces(self._stratum):
            kernels.count_meetings(*piece, set_of, self.level, meetings.slot_of, num_sets, meetings.counts, meetings.lengths)
            if self._in is self._out:
                self._look_at_casts(piece, set_of, casts)
        if casts and self._in is not self._out:
            for piece in self._out.pieces(self._stratum):
                self._look_at_casts(piece, set_of, casts)

    def _look_at_casts(self, piece: Piece, set_of: Array, casts: dict[int, _Cells]) -> None:
        for columns, cells in casts.items():
            kernels.count_casts(*piece, set_of, self.level, cells.slot_of, columns, cells.counts, cells.lengths, cells.work)


@cache
def _one_dimension(vertex_order: VertexOrder) -> CompiledPolicy:
    """Compile who masters what: about a second."""
    return compile_policy(grid_policy("1d", vertex_order))


class _Cells:
    """Counts by level and pair, of all pairs or of a sample of those that have anything to say.

    Attributes
    ----------
    one_in : int
        Of so many pairs one is counted; before `choose`, if it is above 1, none.
    """

    def __init__(self, num_senders: int, num_receivers: int, num_levels: int) -> None:
        num_pairs = num_senders * num_receivers
        self.num_receivers, self.num_levels, self.one_in = num_receivers, num_levels, kept_pairs(num_pairs, num_levels)
        self.pair_weight = 1.0
        self._start(np.arange(num_pairs, dtype=np.int32) if self.one_in == 1 else np.full(num_pairs, -1, np.int32))

    def _start(self, slot_of: Array) -> None:
        self.slot_of = slot_of
        self.pairs = np.flatnonzero(slot_of >= 0)
        self.counts = np.zeros((2, self.num_levels, self.pairs.size), np.int64)
        self.lengths = np.zeros((2, slot_of.size), np.int64)
        self.work = np.zeros((2, slot_of.size), np.int64)

    def choose(self) -> None:
        """Keep as many of the pairs that have a list as may be counted, and begin again."""
        active = np.flatnonzero(self.lengths.sum(axis=0))
        self.one_in = kept_pairs(active.size, self.num_levels)
        kept = np.sort(np.random.default_rng(active.size).permutation(active)[: -(-active.size // self.one_in)])
        self.pair_weight = active.size / max(1, kept.size)
        slot_of = np.full(self.slot_of.size, -1, np.int32)
        slot_of[kept] = np.arange(kept.size)
        self._start(slot_of)

    def lists(self, weight: float) -> Array:
        """Length of the list of each pair, estimated: (num_pairs,) float64."""
        return np.asarray(self.lengths[SURE] + weight * self.lengths[SAMPLED])

    def counted(self, weight: float) -> Counted:
        """Return what was counted."""
        return Counted(
            sure=self.counts[SURE], sampled=self.counts[SAMPLED], weight=weight, lengths=self.lists(weight)[self.pairs],
            sender=self.pairs // self.num_receivers, pair_weight=self.pair_weight,
        )  # fmt: skip

    def work_of(self, weight: float, num_sets: int) -> Array:
        """Edges of each member, estimated: (num_sets, columns) float64."""
        return np.asarray(self.work[SURE] + weight * self.work[SAMPLED]).reshape(num_sets, -1)


def _shared_out(by_set: Array, estimated: Array) -> Array:
    """Share the edges of each set out to its columns as was estimated."""
    total = estimated.sum(axis=1, keepdims=True)
    return np.asarray(by_set[:, None] * estimated / np.where(total > 0, total, 1.0))
