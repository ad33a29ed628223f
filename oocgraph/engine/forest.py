"""Trees of vertices that are joined along edges: out of core, by planes first, then by the lists of vertices outside of the largest tree.

In: a store. Out: `Forest`, whose `parent` names a vertex of the same tree for each vertex; once compressed, its smallest. A share of the
edges may be linked alone: another forest of the same vertices is joined as if each vertex that it names were a neighbour. Or the forests of
all shares have their trees in common, in memory that they share.

Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling" (Afforest), IPDPS 2018.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from oocgraph.closing import Closing
from oocgraph.engine.naming import PIECE_BYTES, name_by_smallest_id
from oocgraph.kernels import components as kernels
from oocgraph.kernels.live import NO_ROWS
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.store.arrays import StoredArray, decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import BLOCK_ROWS, map_ahead
from oocgraph.types import Array, Progress, ignore_progress

GAP_BYTES = 32 << 10
"""Neighbours that are read, though not needed, to join two reads."""

MAX_RANGES = 1 << 14
"""Ranges of entries that are found at once."""

ALL_LIVE = np.empty(0, np.uint64)
"""Which entries count, where all do."""

SAMPLED_VERTICES = 1024
"""Vertices among which the component of most is taken for the largest."""


def kernel_calls(dtype: np.dtype[Any]) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return calls of all kernels, to load them."""
    vertices, numbers = np.empty(0, dtype), np.empty(0, np.int64)
    return [
        (kernels.link_plane, (vertices, 0, vertices)),
        (kernels.link_rows, (vertices, 0, 0, numbers, 0, 0, vertices)),
        (kernels.cut_rows, (vertices, 0, 0, numbers, 0, ALL_LIVE, 0, 0, np.empty((0, 2), np.int64))),
        (kernels.compress, (vertices, 0, 0, 0)),
        (kernels.link_live_plane, (vertices, 0, NO_ROWS, 0, ALL_LIVE, 0, vertices)),
        (kernels.count_entries, (vertices, 0, NO_ROWS, 0, ALL_LIVE, 0)),
        (kernels.are_all_in, (vertices, 0, 0, 0)),
        (kernels.begin, (vertices, 0, 0)),
        (kernels.name_components, (vertices, vertices, vertices, 0, 0)),
        (kernels.rename, (vertices, vertices, 0, 0, 0)),
    ]


def charge_forest(store: CSRStore, budget: Budget, threads: int, *, num_vectors: int) -> None:
    """Reserve what a `Forest` holds, with so many vectors of vertex numbers in all."""
    indices = [store.array(f"{group}/indices") for group in _groups(store)]
    budget.reserve("components", num_vectors * store.num_rows * store.index_dtype.itemsize + store.num_rows)
    budget.reserve("pieces", 2 * threads * (PIECE_BYTES + max(decoded_bytes(array) for array in indices)))
    budget.reserve("row starts", 2 * threads * 8 * (BLOCK_ROWS + 1) + 16 * MAX_RANGES)
    budget.reserve("threads and compiled code", SLACK_BYTES)
    for name, num_bytes in store.mask_charges(_groups(store)).items():
        budget.reserve(name, num_bytes)


def _groups(store: CSRStore) -> list[str]:
    return ["out", "in"] if store.attributes.directed else ["out"]


class Forest(Closing):
    """The trees of one run, and what has been read. Use it in a ``with`` statement: it has threads.

    Parameters
    ----------
    share
        Which of how many shares of the edges are linked.
    resident
        Beginnings of arrays of the store that are in memory, by name: they are not read.
    parent
        Where the trees are, if the forests of all shares have them in common: each begins and compresses its share of the vertices.
        Between any of `__init__`, `link_planes`, `largest` and `link_lists` all wait for each other.

    Attributes
    ----------
    parent : (num_vertices,) index dtype
        A vertex of the same tree.
    num_planes
        Neighbours of each vertex that are linked, at all shares.
    num_bytes, plane_bytes
        Bytes read; those of planes.
    """

    def __init__(
        self, store: CSRStore, threads: int, progress: Progress = ignore_progress, share: tuple[int, int] = (0, 1),
        resident: Mapping[str, Array] | None = None, parent: Array | None = None,
    ) -> None:  # fmt: skip
        self.store, self.threads, self.progress, self.share, self._resident = store, threads, progress, share, resident or {}
        self._own, self._pool = threading.local(), ThreadPoolExecutor(threads, thread_name_prefix="oocgraph-forest")
        self.parent = np.empty(store.num_rows, store.index_dtype) if parent is None else parent
        number, count = (0, 1) if parent is None else share
        self._bounds = number * store.num_rows // count, (number + 1) * store.num_rows // count
        self._in_parts(lambda start, stop: kernels.begin(self.parent, start, stop))
        self.giant, self.num_planes, self.num_bytes, self.plane_bytes = -1, 0, 0, 0
        self._anchor = -1  # a vertex of the component that stays the largest, once vertices of it are passed over

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def link_planes(self, most: int | None = None) -> None:
        """Link every vertex with its first neighbours, as long as a plane is less than what is left without it; or `most` of them."""
        store = self.store
        sizes = np.diff(store.plane_offsets).tolist() if store.attributes.vertex_order == "degree" else []
        link = self._link_plane()
        for plane, size in enumerate(sizes[:most]):
            if most is None and plane > 1 and self._entries_left() <= size:
                break
            array, first = store.array(f"{store.pull_group}/planes/indices").masked(None), int(store.plane_offsets[plane])
            step = PIECE_BYTES // array.dtype.itemsize

            def read(start: int, plane: int = plane, array: Any = array, first: int = first, size: int = size, step: int = step) -> int:
                neighbours = self._read(array, first + start, first + min(size, start + step))
                link(plane, start, neighbours.astype(self.parent.dtype, copy=False))
                return self._num_read(array, first + start, neighbours)

            self.plane_bytes += sum(self._map(read, range(0, size, step)[self.share[0] :: self.share[1]]))
            self.num_planes += 1
            self._compress()
            self.progress("planes", plane + 1, len(sizes))
        self.num_bytes += self.plane_bytes

    def _link_plane(self) -> Callable[[int, int, Array], None]:
        """Return what links vertices from one on with their neighbours in a plane.

        Where not all entries count, a vertex of the component that is held for the largest from now on need not be looked at: an edge
        from it to one outside of that is in the list of the other, too.
        """
        group = self.store.pull_group
        live = self._live(group)
        if not live.size or not self.store.attributes.num_planes:
            return lambda plane, start, neighbours: kernels.link_plane(self.parent, start, neighbours)
        rows = sorted_lookup(self.store)

        def link(plane: int, start: int, neighbours: Array) -> None:
            kernels.link_live_plane(self.parent, self.giant if self._anchor >= 0 else -1, rows, plane, live, start, neighbours)

        return link

    def largest(self) -> int:
        """Return the root of the largest tree that the planes have made, as far as a sample tells; -1 without planes."""
        self._compress()
        self._find_giant()
        return self.giant

    def link_lists(self, giant: int | None = None) -> None:
        """Link the vertices outside of the largest component, or of the one with root `giant`, with the neighbours that no plane had."""
        if giant is None:
            self._find_giant()
        else:
            self.giant = giant
        groups = _groups(self.store)
        for i, group in enumerate(groups):
            self.progress("lists", i, len(groups))
            array, skip = self.store.array(f"{group}/indices"), self.num_planes if group == self.store.pull_group else 0

            def read(piece: tuple[int, Array, int, int], array: Any = array, skip: int = skip) -> int:
                first, offsets, begin, end = piece
                entries = self._read(array, begin, end)
                kernels.link_rows(self.parent, self.giant, first, offsets, skip, begin, entries.astype(self.parent.dtype, copy=False))
                return self._num_read(array, begin, entries)

            self.num_bytes += sum(self._map(read, self._ranges(group, skip, array.dtype.itemsize)))
        self.progress("lists", len(groups), len(groups))

    def join(self, parent: Array) -> None:
        """Put the trees of another forest of these vertices into this one: (num_vertices,) index dtype."""
        kernels.link_plane(self.parent, 0, parent)
        self._compress()

    def named(self) -> tuple[Array, int]:
        """Name each component after its vertex with the smallest id: (num_vertices,) store numbers, and how many there are."""
        num_roots = self._compress()
        named = np.empty(self.parent.size if num_roots > 1 else 0, self.parent.dtype)
        name_by_smallest_id(self.store, self.parent, named, num_roots, self._in_parts, self._read)
        return self.parent, num_roots

    def _ranges(self, group: str, skip: int, itemsize: int) -> Iterator[tuple[int, Array, int, int]]:
        """Yield the ranges of entries that are needed, each with the first of some rows and where they begin."""
        ranges, store, live = np.empty((MAX_RANGES, 2), np.int64), self.store, self._live(group)
        has_planes = group == store.pull_group and store.attributes.vertex_order == "degree"
        num_rows = self._num_longer(skip) if has_planes else store.num_rows
        for first_row in range(self.share[0] * BLOCK_ROWS, num_rows, self.share[1] * BLOCK_ROWS):
            first, stop = first_row, min(num_rows, first_row + BLOCK_ROWS)
            if kernels.are_all_in(self.parent, self.giant, first, stop):
                continue
            offsets = store.array(f"{group}/indptr").read(first, stop + 1)
            while offsets.size > 1:
                rows, count = kernels.cut_rows(
                    self.parent, self.giant, first, offsets, skip, live, GAP_BYTES // itemsize, PIECE_BYTES // itemsize, ranges
                )
                for begin, end in ranges[:count].tolist():
                    low = int(np.searchsorted(offsets, begin, side="right")) - 1
                    high = int(np.searchsorted(offsets, end))
                    yield first + low, offsets[low : high + 1], begin, end
                first, offsets = first + rows, offsets[rows:]

    def _read(self, array: StoredArray, start: int, stop: int) -> Array:
        """Read elements, unless they are in memory; up to `PIECE_BYTES` into memory of the calling thread, which its next read reuses."""
        if self._is_resident(array, stop):
            return self._resident.get(array.name, array.held)[start:stop]
        if (stop - start) * array.dtype.itemsize > PIECE_BYTES:  # a part of a very long row
            return array.read(start, stop)
        piece: Array | None = getattr(self._own, "piece", None)
        if piece is None:
            piece = self._own.piece = np.empty(PIECE_BYTES, np.uint8)
        values = piece.view(array.dtype)[: stop - start]
        array.read_into(start, values)
        return values

    def _is_resident(self, array: StoredArray, stop: int) -> bool:
        return stop <= self._resident.get(array.name, array.held).size

    def _num_read(self, array: StoredArray, start: int, values: Array) -> int:
        """Return how many bytes were read of values that begin at `start`."""
        return 0 if self._is_resident(array, start + values.size) else int(values.nbytes)

    def _compress(self) -> int:
        """Have vertices name the roots of their trees; returns how many there are."""
        return sum(self._in_parts(lambda start, stop: int(kernels.compress(self.parent, self.giant, start, stop))))

    def _in_parts(self, call: Callable[[int, int], Any]) -> list[Any]:
        """Call for ranges of all vertices, or of the share that is compressed here, one for each thread."""
        cuts = np.linspace(*self._bounds, self.threads + 1).astype(np.int64).tolist()
        return list(self._map(lambda cut: call(*cut), pairwise(cuts)))

    def _map(self, call: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Call for each item with all threads."""
        return map_ahead(self._pool, call, items, 2 * self.threads - 1)

    def _num_longer(self, skip: int) -> int:
        """Vertices of the degree-ordered group that have more than `skip` neighbours: the first ones."""
        value, first = self.store.degree_classes
        longer = int(np.count_nonzero(value > skip))
        return int(first[longer]) if longer < first.size else self.store.num_rows

    def _find_giant(self) -> None:
        """Take the component of most vertices of a sample for the largest; without planes there is none yet."""
        if self._anchor >= 0:
            while self.parent[self._anchor] != self._anchor:
                self._anchor = int(self.parent[self._anchor])
            self.giant = self._anchor
        elif self.num_planes and self.parent.size:
            sample = self.parent[np.random.default_rng(0).integers(0, self.parent.size, SAMPLED_VERTICES)]
            while not np.array_equal(above := self.parent[sample], sample):  # others have not compressed their shares yet
                sample = above
            roots, counts = np.unique(sample, return_counts=True)
            self.giant = int(roots[counts.argmax()])
            if 2 * counts.max() > sample.size and self._live(self.store.pull_group).size:
                self._anchor = self.giant

    def _entries_left(self) -> int:
        """Entries that are read of the lists outside of the largest component, of those that no plane had."""
        self._find_giant()
        group = self.store.pull_group
        gap = GAP_BYTES // self.store.array(f"{group}/indices").dtype.itemsize
        rows = sorted_lookup(self.store)
        return int(kernels.count_entries(self.parent, self.giant, rows, self.num_planes, self._live(group), gap))

    def _live(self, group: str) -> Array:
        """Which entries of a group count, bit by bit; empty where all do."""
        mask = self.store.array(f"{group}/indices").mask
        return ALL_LIVE if mask is None else mask.live
