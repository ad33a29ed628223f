"""A worker's share of shortest paths: the distances of all vertices, and a share of the blocks of edges.

Workers of one host have the distances in common (`oocgraph.cluster.worker_blocks`). Elsewhere a share takes, in a step, the distances that
others have found, works on its own blocks by priority (`oocgraph.engine.blocks`), no farther than some buckets behind the earliest of all
shares, and says which distances got better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oocgraph.cluster.worker_blocks import SLICES, BlockShare, Found, SharesSpec
from oocgraph.engine.blocks import BlockEngine, Work, load_loop, new_values
from oocgraph.kernels import relax
from oocgraph.kernels.blocks import NONE
from oocgraph.kernels.relax import Values
from oocgraph.memory import Budget
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, no_parent

BLOCK = 1 << 18
"""Vertices whose parents are looked at together."""

ROUND_BUCKETS = 32
"""Buckets behind the earliest of all shares that a share works on before it hears of the others. (Two workers; Kronecker graph of scale 22,
grid of 2000 x 2000: with 8 buckets 3.1 and 6.2 s, with 32 2.2 and 3.1 s, with 128 2.9 and 2.3 s.)"""


class PathsSlice(NamedTuple):
    """Distances that a share has found to be better, and what is left.

    Attributes
    ----------
    vertices, distance, parent : (n,)
        Store numbers, distances, and neighbours that these come from.
    earliest : int
        Earliest bucket that is pending in the share or for others; `NONE`: nothing is.
    """

    vertices: Array
    distance: Array
    parent: Array
    earliest: int

    @property
    def is_done(self) -> bool:
        """Whether nothing is pending."""
        return self.earliest == NONE


class PathsTable(NamedTuple):
    """What a share knows of all vertices: distances and parents, (num_vertices,) each."""

    distance: Array
    parent: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsSpec(SharesSpec):
    """What a worker loads.

    Attributes
    ----------
    column
        Edge column of the weights.
    kind
        Of distances: a key of `oocgraph.kernels.relax.SHORTEST`.
    scale, slack
        Buckets in a unit of distance; see `oocgraph.kernels.blocks.Rules`.
    sources
        Store numbers, ascending.
    targets
        Store numbers, ascending, of vertices: distances beyond the largest of theirs are not kept; none: any are.
    bound
        Distances beyond it are not kept; None: any are.
    """

    column: str
    kind: str
    scale: float
    slack: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    bound: float | None
    message: ClassVar[type[Any]] = PathsSlice

    def load_kernels(self, store: CSRStore) -> None:
        """See `SharesSpec`."""
        loop, unreached = relax.SHORTEST[self.kind]
        load_loop(loop, unreached.dtype, store, self.column)

    def open_share(self, store: CSRStore, budget: Budget, number: int, *, threads: int, sharers: int, is_first: bool) -> PathsShare:
        """See `SharesSpec`."""
        _, unreached = relax.SHORTEST[self.kind]
        n, most = store.num_rows, most_sent(store.num_rows, self.num_partitions)
        itemsize, index_size = unreached.dtype.itemsize, store.index_dtype.itemsize
        sent_bytes = min(n, most) * (8 + itemsize + index_size)
        beside = {"distances of all shares": self.num_partitions * sent_bytes} if is_first else {}
        beside |= {
            f"distances and parents of share {number}": n * (2 * itemsize + index_size) + n // 8,
            f"distances of share {number} that are sent": SLICES * sent_bytes,
            f"pending vertices of share {number}": 3 * 8 * n,
            f"distances and parents of share {number}, as they are fetched": n * (2 * itemsize + 3 * index_size),  # and `_said` before
        }
        engine = BlockEngine(
            store, self.column, budget, threads=threads, beside=beside, share=(number, self.num_partitions), sharers=sharers
        )  # fmt: skip
        return PathsShare(engine, self, most)


def most_sent(num_vertices: int, num_partitions: int) -> int:
    """Return how many distances a share says at once, at most."""
    return max(1 << 12, -(-num_vertices // num_partitions))


def _blocks(size: int) -> list[slice]:
    return [slice(at, min(at + BLOCK, size)) for at in range(0, size, BLOCK)]


def _depths(up: Array) -> Array:
    """Return how many steps lead from each place to one that leads to itself: (n,) int32; `up` leads there then.

    Each pass goes twice as far: of a place, the number of steps and where they lead change together.
    """
    depth, blocks = np.empty(up.size, np.int32), _blocks(up.size)
    for at in blocks:
        depth[at] = up[at] != np.arange(at.start, at.stop)
    for _ in range(up.size.bit_length()):
        for at in blocks:
            above = up[at]
            depth[at] += depth[above]
            up[at] = up[above]
    return depth


class PathsShare(BlockShare):
    """A share of the blocks, and the distances that it knows."""

    def __init__(self, engine: BlockEngine, spec: PathsSpec, most: int) -> None:
        super().__init__(engine)
        self._spec, self._most, self._targets = spec, most, np.array(spec.targets, np.int64)
        self.loop, self._unreached = relax.SHORTEST[spec.kind]
        self.slack, self.loads_all = spec.slack, spec.bound is None and not spec.targets
        self._values: Values | None = None
        self._published = self._left = np.empty(0)

    def layout(self) -> list[tuple[int, np.dtype[Any]]]:
        """Distances, parents, and the bound."""
        n, kind = self.engine.store.num_rows, self._unreached.dtype
        return [(n, kind), (n, self.engine.store.index_dtype), (1, kind)]

    def values_in(self, arrays: Sequence[Array]) -> Values:
        """See `BlockShare`."""
        value, parent, bound = arrays
        self._published = np.empty(0)
        self._values = new_values(value, parent, 0, targets=self._targets, scale=self._spec.scale)._replace(bound=bound)
        return self._values

    def fill(self, values: Values, before: Sequence[PathsTable]) -> tuple[Array, Array]:
        """Begin at the sources, or with all that one share knows, of which anything may be pending."""
        value, parent, sources, bound = values.value, values.parent, np.array(self._spec.sources, np.int64), self._spec.bound
        value[:], parent[:] = before[0] if before else (self._unreached, no_parent(parent.dtype))
        value[sources], parent[sources] = 0, sources
        values.bound[0] = self._unreached if bound is None else bound
        pending = np.flatnonzero(value != self._unreached) if before else sources
        return pending, self._buckets(pending)

    @property
    def can_resume(self) -> bool:
        """Whether it knows distances: they are upper bounds at any time."""
        return self._values is not None

    def take_over(self, before: PathsShare) -> None:
        """See `BlockShare`."""
        self._values = before._values

    def table(self) -> PathsTable:
        """See `BlockShare`."""
        assert self._values is not None
        value, parent = self._values.value.copy(), self._values.parent.copy()
        is_lost = parent == self._values.busy  # a worker was lost meanwhile: which distance they have is not known
        if is_lost.any():
            reached = np.flatnonzero(~is_lost & (value != self._unreached))
            up = parent[reached]
            while (hangs := is_lost[up] & (value[up] == value[reached])).any():  # by edges of weight 0: a child may become the parent
                is_lost[reached[hangs]] = True
                reached, up = reached[~hangs], up[~hangs]
            value[is_lost], parent[is_lost] = self._unreached, no_parent(parent.dtype)
        return PathsTable(value, parent)

    def begin(self, before: Sequence[PathsTable]) -> Found:
        """Begin at the sources, or with all that one share knows, and this one, of which anything may be pending."""
        n, kind, is_new = self.engine.store.num_rows, self._unreached.dtype, not self._published.size
        if is_new:
            self._leave()
            self._values = self.values_in([np.empty(n, kind), np.empty(n, self.engine.store.index_dtype), np.empty(1, kind)])
            self._published = np.empty(n, kind)
        assert self._values is not None
        value, parent = self._values.value, self._values.parent
        if is_new or not before:
            self.fill(self._values, before)
        else:
            nearer = before[0].distance < value
            np.copyto(value, before[0].distance, where=nearer)
            np.copyto(parent, before[0].parent, where=nearer)
        self._published[:] = before[0].distance if before else value
        return self._work(0, np.flatnonzero(value != self._unreached))

    def go_on(self, before: Sequence[PathsSlice]) -> Found:
        """See `BlockShare`."""
        assert self._values is not None
        value, pending = self._values.value, [self._left]
        for one in before:
            better = np.flatnonzero(one.distance < value[one.vertices])
            vertices, distance = one.vertices[better], one.distance[better]
            value[vertices], self._values.parent[vertices] = distance, one.parent[better]
            self._published[vertices] = distance
            pending.append(vertices.astype(np.int64))
        return self._work(min(one.earliest for one in before), np.concatenate(pending))

    def _work(self, earliest: int, pending: Array) -> Found:
        """Work on what is pending, up to some buckets behind the earliest of all shares."""
        assert self._values is not None
        values, spec = self._values, self._spec
        work: Work | None = None
        if earliest < NONE:
            if spec.targets:
                values.bound[0] = min(values.bound[0], values.value[self._targets].max())
            work = self.engine.run(
                self.loop, values, pending, self._buckets(pending), schedule="async", slack=spec.slack,
                last=min(earliest + ROUND_BUCKETS, int(NONE) - 1), loads_all=self.loads_all,
            )  # fmt: skip
            self._left = self.engine.pending_rows()
        changed = np.flatnonzero(values.value != self._published)
        earliest = min(int(self._buckets(one).min(initial=NONE)) for one in (self._left, changed))
        vertices = self._said(changed).astype(values.parent.dtype)
        distance = values.value[vertices]
        self._published[vertices] = distance
        return Found(PathsSlice(vertices, distance, values.parent[vertices], earliest), work)

    def _said(self, changed: Array) -> Array:
        """Return changed vertices, ascending, that are said at once: of those at one distance none before its parent.

        A share that knew the child alone could find the parent as the child's child, along edges of weight 0.
        """
        assert self._values is not None
        first, parent = changed[: self._most], self._values.parent
        if first.size == changed.size:
            return first
        if not (self._hangs(first) & (parent[first] > first[-1])).any():
            return first
        up = np.empty(changed.size, parent.dtype)
        for at in _blocks(changed.size):
            own = changed[at]
            up[at] = np.where(self._hangs(own), np.searchsorted(changed, parent[own]), np.arange(at.start, at.stop))
        return np.sort(changed[np.argsort(_depths(up), kind="stable")[: self._most]])

    def _hangs(self, vertices: Array) -> Array:
        """Whether each vertex has a parent as far as it is, of which the other shares do not know: (n,) bool."""
        assert self._values is not None
        value, parent = self._values.value, self._values.parent[vertices]
        found: Array = (parent != vertices) & (value[parent] == value[vertices]) & (value[parent] != self._published[parent])
        return found

    def _buckets(self, vertices: Array) -> Array:
        """Buckets of vertices: (n,) int32."""
        assert self._values is not None
        value = self._values.value[vertices].astype(np.float64)
        return np.clip(np.floor(value * self._values.scale), 0, int(NONE) - 1).astype(np.int32)


def merged(plugin: Any, one: PathsTable, other: PathsTable) -> PathsTable:
    """Return the parents that two shares know together: of vertices that give the distance, and are nearer themselves, the smallest."""
    parent = one.parent.copy()
    for here in _blocks(parent.size):
        reached = np.flatnonzero(parent[here] != no_parent(parent.dtype)) + here.start
        nearer = [one.distance[p[reached]] < one.distance[reached] for p in (parent, other.parent)]
        takes = nearer[1] & (~nearer[0] | (other.parent[reached] < parent[reached]))
        parent[reached[takes]] = other.parent[reached[takes]]
    return PathsTable(one.distance, parent)
