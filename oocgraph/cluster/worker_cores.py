"""A worker's share of core numbers: how many edges each vertex has left, and a share of the blocks of edges.

Workers of one host have the degrees in common (`oocgraph.cluster.worker_blocks`), and begin again when one is lost: nobody knows which
edges it has taken. Elsewhere a share takes, in a step, what the others have taken from the degrees, removes the vertices that come down to
the level by that, follows the lists of removed vertices in its own blocks until it finds none any more, and says what it has taken, and
which vertices it has removed, in order. Where no share finds any, all go on to the next level. All know the same after a step, in the same
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oocgraph.cluster.worker_blocks import SLICES, BlockShare, Found, SharesSpec
from oocgraph.engine.blocks import BlockEngine, Work, degree_dtype, load_loop, new_values, total_degrees
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import HELD_FIRST, NONE
from oocgraph.kernels.relax import Values
from oocgraph.memory import Budget
from oocgraph.store.columns import distinct
from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import BLOCK_ROWS
from oocgraph.types import Array, no_parent


class CoreSlice(NamedTuple):
    """What a share has taken from degrees.

    Attributes
    ----------
    vertices, taken : (n,)
        Store numbers, and how many of their edges have gone with vertices that the share has removed.
    removed : (m,)
        Those that it has removed, in order.
    is_done : bool
        Whether no vertex is left.
    """

    vertices: Array
    taken: Array
    removed: Array
    is_done: bool


class CoreTable(NamedTuple):
    """What all shares knew as the last step of one began.

    Attributes
    ----------
    degree, rank : (num_vertices,)
        Edges left, or the core number; how many vertices were removed before.
    level, num_removed : int
    pending : (n,) int64
        Vertices whose lists were to be followed.
    followed : list of arrays
        Those whose lists each share had followed.
    """

    degree: Array
    rank: Array
    level: int
    num_removed: int
    pending: Array
    followed: list[Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresSpec(SharesSpec):
    """What a worker loads."""

    message: ClassVar[type[Any]] = CoreSlice

    def load_kernels(self, store: CSRStore) -> None:
        """See `SharesSpec`."""
        for loop in (relax.peel, relax.peel_share):
            load_loop(loop, degree_dtype(store), store, None)

    def open_share(self, store: CSRStore, budget: Budget, number: int, *, threads: int, sharers: int, is_first: bool) -> CoreShare:
        """See `SharesSpec`."""
        n, itemsize, index_size = store.num_rows, degree_dtype(store).itemsize, store.index_dtype.itemsize
        sent_bytes = n * (itemsize + 2 * index_size)
        beside = {"what all shares have taken": self.num_partitions * sent_bytes} if is_first else {}
        beside |= {
            f"degrees and ranks of share {number}": 2 * n * (itemsize + index_size) + n // 8 + 16 * BLOCK_ROWS,
            f"what share {number} has taken": SLICES * sent_bytes,
            f"pending vertices of share {number}": 4 * 8 * n,
            f"degrees and ranks of share {number}, as they are fetched": n * (itemsize + index_size),
        }
        engine = BlockEngine(
            store, None, budget, threads=threads, beside=beside, in_lists=True, share=(number, self.num_partitions), sharers=sharers
        )  # fmt: skip
        return CoreShare(engine, number)


class CoreShare(BlockShare):
    """A share of the blocks, and the degrees that it knows."""

    loop, slack, loads_all = relax.peel, HELD_FIRST, True

    def __init__(self, engine: BlockEngine, number: int) -> None:
        super().__init__(engine)
        self._number, self._level, self._num_removed = number, -1, 0
        self._known = self._rank = np.empty(0)
        self._pending, self._followed = np.empty(0, np.int64), list[Array]()

    def layout(self) -> list[tuple[int, np.dtype[Any]]]:
        """Degrees, ranks, the level, vertices that are left, and how many are removed."""
        n, kind = self.engine.store.num_rows, degree_dtype(self.engine.store)
        num_words = n // 64 + 1 if n else 0  # as `new_values` has them
        return [(n, kind), (n, self.engine.store.index_dtype), (1, kind), (num_words, np.dtype(np.uint64)), (1, np.dtype(np.int64))]

    def values_in(self, arrays: Sequence[Array]) -> Values:
        """See `BlockShare`."""
        degree, rank, level, left, num_removed = arrays
        return new_values(degree, rank, 0)._replace(bound=level, left=left, num_removed=num_removed)

    def fill(self, values: Values, before: Sequence[CoreTable]) -> tuple[Array, Array]:
        """Begin with all vertices: `before` is empty."""
        begun = new_values(total_degrees(self.engine.store), values.parent, -1, num_left=values.value.size)
        values.value[:], values.bound[:], values.left[:], values.num_removed[:] = begun.value, begun.bound, begun.left, 0
        return np.empty(0, np.int64), np.empty(0, np.int32)

    def is_complete(self, values: Values) -> bool:
        """Whether no vertex is left."""
        return int(values.num_removed[0]) == values.value.size

    @property
    def can_resume(self) -> bool:
        """Whether it knows the degrees after a step: of those in shared memory nobody knows which edges they lack."""
        return not self.is_shared and self._known.size > 0

    def take_over(self, before: CoreShare) -> None:
        """See `BlockShare`."""
        self._known, self._rank, self._level, self._num_removed = before._known, before._rank, before._level, before._num_removed
        self._pending, self._followed = before._pending, before._followed

    def table(self) -> CoreTable:
        """See `BlockShare`."""
        if self.is_shared:
            assert self._shared is not None
            values, _ = self._shared
            return CoreTable(values.value.copy(), values.parent.copy(), int(values.bound[0]), values.value.size, self._pending, [])
        return CoreTable(self._known.copy(), self._rank.copy(), self._level, self._num_removed, self._pending, self._followed)

    def begin(self, before: Sequence[CoreTable]) -> Found:
        """See `BlockShare`."""
        n, index_dtype, kind = self.engine.store.num_rows, self.engine.store.index_dtype, degree_dtype(self.engine.store)
        self._leave()
        self._values = new_values(np.empty(n, kind), np.zeros(n, index_dtype), -1)
        self._known, self._rank = np.empty(n, kind), np.empty(n, index_dtype)
        if before:
            (table,) = before
            self._known[:], self._rank[:] = table.degree, table.rank
            self._level, self._num_removed, self._pending, self._followed = table[2:]
        else:
            self._known[:] = total_degrees(self.engine.store)
            self._rank[:] = no_parent(self._rank.dtype)
            self._level, self._num_removed, self._pending, self._followed = -1, 0, np.empty(0, np.int64), []
            self._go_up()
        self._values.value[:] = self._known
        return self._work()

    def go_on(self, before: Sequence[CoreSlice]) -> Found:
        """See `BlockShare`."""
        degree, known = self._values.value, self._known
        for one in before:
            degree[one.vertices] = known[one.vertices]
        for one in before:
            degree[one.vertices] -= one.taken
        vertices = np.concatenate([one.vertices for one in before])
        degree[vertices] = np.maximum(degree[vertices], self._level)
        known[vertices] = degree[vertices]
        self._followed = [one.removed for one in before]
        removed = np.concatenate(self._followed).astype(np.int64)
        removed = removed[np.sort(np.unique(removed, return_index=True)[1])]  # in order, of one that several have removed the first
        self._remove(removed)
        here = distinct(vertices).astype(np.int64)
        here = here[(degree[here] == self._level) & (self._rank[here] == no_parent(self._rank.dtype))]
        self._remove(here)
        self._pending = np.concatenate([removed, here])
        if not self._pending.size:
            self._go_up()
        return self._work()

    def _remove(self, vertices: Array) -> None:
        self._rank[vertices] = np.arange(self._num_removed, self._num_removed + vertices.size, dtype=self._rank.dtype)
        self._num_removed += vertices.size

    def _go_up(self) -> None:
        """Go on to the next level at which a vertex is left, and remove those."""
        self._followed = []
        left = self._rank == no_parent(self._rank.dtype)
        if left.any():
            self._level = int(self._known[left].min())
            self._pending = np.flatnonzero(left & (self._known == self._level))
            self._remove(self._pending)

    def _work(self) -> Found:
        """Follow the lists that are pending here."""
        values, rank = self._values, self._rank
        if not self._pending.size:
            none = np.empty(0, rank.dtype)
            return Found(CoreSlice(none, np.empty(0, values.value.dtype), none, is_done=True), None)
        pending = self._pending
        if self._followed:
            pending = np.setdiff1d(distinct(pending), distinct(self._followed[self._number].astype(np.int64)), assume_unique=True)
        second = self.engine.rows.second_row
        rows = np.concatenate([pending, pending + second]) if second < self.engine.rows.offset.size - 1 else pending
        values.bound[0], values.num_removed[0] = self._level, 0
        work: Work = self.engine.run(relax.peel_share, values, rows, np.full(rows.size, NONE), schedule="async", slack=HELD_FIRST)
        changed = np.flatnonzero(values.value != self._known)
        taken = self._known[changed] - values.value[changed]
        removed = changed[values.value[changed] == self._level]
        removed = removed[np.argsort(values.parent[removed])]
        return Found(CoreSlice(changed.astype(rank.dtype), taken, removed.astype(rank.dtype), is_done=False), work)
