"""Trees of vertices that are joined along edges: out of core, by planes first, then by the lists of vertices outside of the largest tree.

In: a store. Out: `Forest`, whose `parent` names a vertex of the same tree for each vertex; once compressed, its smallest. A share of the
edges may be linked alone: another forest of the same vertices is joined as if each vertex that it names were a neighbour. Or the forests of
all shares have their trees in common, in memory that they share.

Sutton, Ben-Nun, Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling" (Afforest), IPDPS 2018.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from oocgraph.closing import Closing
from oocgraph.engine.naming import PIECE_BYTES, name_by_smallest_id, naming_calls
from oocgraph.kernels import components as kernels
from oocgraph.kernels.live import NO_ROWS
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.pool import Pool
from oocgraph.store.arrays import Mask, StoredArray, decoded_bytes
from oocgraph.store.gather import checksum_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import BLOCK_ROWS
from oocgraph.store.scattered import RangeReader, reading_bytes
from oocgraph.types import PAGE_BYTES, Array, Progress, ignore_progress

GAP_BYTES = 32 << 10
"""Neighbours that are read, though not needed, to join two reads."""

MAX_RANGES = 1 << 14
"""Ranges of entries that are found at once."""

LISTED_ROWS = 1 << 18
"""Rows among which those are found whose entries are gathered."""

ALL_LIVE = np.empty(0, np.uint64)
"""Which entries count, where all do."""

SAMPLED_ENTRIES, MANY = 1024, 4
"""Entries of lists among which the component of most is taken for the largest; its part of them from which on it stays that."""

SAMPLED_VERTICES, SAMPLED_TOGETHER = 1024, 64
"""Vertices by which it is decided how many planes are read; those of about the same length."""

READ_COST, LINK_COST, PLANE_COST = 3, 20, 6
"""What an entry takes, measured in memory, by what it takes if it is read only: in a list, if it is linked in one, and in a plane."""

SHORT_LISTS, LONGER_LISTS = 16, 8
"""Longest list of the first band, by the mean length; how much longer those of the next band are."""

LEAST_EVALUATED, MOST_EVALUATED = 1 << 14, 1 << 20
"""Entries for which a thread evaluates the condition at once."""


def kernel_calls(store: CSRStore) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return calls of all kernels, to load them."""
    vertices, numbers = np.empty(0, store.index_dtype), np.empty(0, np.int64)
    return [
        (kernels.link_plane, (vertices, 0, vertices)),
        (kernels.link_rows, (vertices, 0, 0, numbers, 0, 0, vertices)),
        (kernels.cut_rows, (vertices, 0, 0, numbers, 0, 0, 0, np.empty((0, 2), np.int64))),
        (kernels.compress, (vertices, 0, 0, 0)),
        (kernels.link_live_planes, (vertices, 0, NO_ROWS, 0, ALL_LIVE, (0, 0), vertices, numbers)),
        (kernels.count_entries, (vertices, 0, NO_ROWS, 0, 0)),
        (kernels.list_outside, (vertices, 0, 0, numbers, ALL_LIVE, 0, np.empty((3, 0), np.int64))),
        (kernels.link_ranges, (vertices, np.empty((3, 0), np.int64), 0, numbers, ALL_LIVE, vertices, (0, 0))),
        (kernels.count_live, (NO_ROWS, ALL_LIVE, 0, numbers, np.empty((3, 0), np.int64))),
        (kernels.row_starts, (NO_ROWS, 0, numbers)),
        (kernels.are_all_in, (vertices, 0, 0, 0)),
        (kernels.begin, (vertices, 0, 0)),
        *((kernel, tuple(given)) for kernel, *given in naming_calls(store)),
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
    if any(array.mask is not None for array in indices):
        budget.reserve("buffers of reading threads", reading_bytes(store) + sum(checksum_bytes(array) for array in indices[1:]))
        budget.reserve("gathered entries", (threads + 1) * PIECE_BYTES + 8 * 8 * _num_listed(store))


def _num_listed(store: CSRStore) -> int:
    return min(LISTED_ROWS, max(MAX_RANGES, store.num_rows))


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
        self._reader = RangeReader(store, Budget(sys.maxsize, 0), resident)  # charged before
        self._own, self._pool = threading.local(), Pool(threads, "oocgraph-forest")
        self.parent = np.empty(store.num_rows, store.index_dtype) if parent is None else parent
        number, count = (0, 1) if parent is None else share
        self._bounds = number * store.num_rows // count, (number + 1) * store.num_rows // count
        self._in_parts(lambda start, stop: kernels.begin(self.parent, start, stop))
        self.giant, self.num_planes, self.num_bytes, self.plane_bytes = -1, 0, 0, 0
        self._evaluated_from: dict[str, int] = {}  # first entry from which on the condition is evaluated, by array
        self._anchor = -1  # a vertex of the component that stays the largest, once vertices of it are passed over

    def close(self) -> None:
        """End the threads, close files."""
        self._pool.close()
        self._reader.close()

    def link_planes(self, most: int | None = None) -> None:
        """Link every vertex with its first neighbours, as long as a plane is less than what is left without it; or `most` of them.

        Where not all entries count, only the vertices with the fewest neighbours: those of the first band.
        """
        store, mask = self.store, self._mask(self.store.pull_group)
        sizes = np.diff(store.plane_offsets).tolist() if self._has_planes(store.pull_group) else []
        if mask is None:
            self._link_whole_planes(sizes, most)
        elif sizes and store.num_rows:
            self._link_live_planes(mask, sizes)
        self.num_bytes += self.plane_bytes

    def _link_whole_planes(self, sizes: list[int], most: int | None) -> None:
        """Link every vertex with its first neighbours, plane by plane."""
        for plane, size in enumerate(sizes[:most]):
            if most is None and plane > 1 and self._entries_left() <= size:
                break
            self.plane_bytes += self._link_plane(plane, size)
            self.num_planes += 1
            self._compress()
            self.progress("planes", plane + 1, len(sizes))

    def _link_plane(self, plane: int, size: int) -> int:
        """Link the first vertices, `size` of them, with their neighbours in a plane; returns bytes read."""
        array, offset = self._planes(), int(self.store.plane_offsets[plane])
        step = PIECE_BYTES // array.dtype.itemsize

        def read(start: int) -> int:
            neighbours = self._read(array, offset + start, offset + min(size, start + step))
            kernels.link_plane(self.parent, start, neighbours.astype(self.parent.dtype, copy=False))
            return self._num_read(array, offset + start, neighbours)

        return sum(self._map(read, range(0, size, step)[self.share[0] :: self.share[1]]))

    def _link_live_planes(self, mask: Mask, sizes: list[int]) -> None:
        """Link the vertices of the first band with their first neighbours, along the entries that count, as long as that pays."""
        group, rows = self.store.pull_group, sorted_lookup(self.store)
        first = self._bands(group)[0][0]
        begin, end = np.empty(1, np.int64), np.array([self._num_entries(group)])
        kernels.row_starts(rows, first, begin)
        live = self._evaluated(mask, begin, end)
        self._evaluated_from[f"{group}/indices"] = int(begin[0])
        array, offsets = self._planes(), self.store.plane_offsets
        while number := self._num_planes_that_pay(sizes, first, live):
            plane, step = self.num_planes, PIECE_BYTES // array.dtype.itemsize // number
            ends = [int(offsets[k]) + sizes[k] for k in range(plane, plane + number)]

            def link(start: int, plane: int = plane, step: int = step, ends: list[int] = ends) -> int:
                stop = min(sizes[plane], start + step)
                begins = [min(end, int(offset) + start) for end, offset in zip(ends, offsets[plane:], strict=False)]
                lengths = [min(end - begin, stop - start) for begin, end in zip(begins, ends, strict=True)]
                entries, starts, num_bytes = self._read_stretches(array, begins, lengths, step)
                neighbours = entries.astype(self.parent.dtype, copy=False)
                kernels.link_live_planes(self.parent, self.giant, rows, plane, live, (start, stop), neighbours, starts)
                return num_bytes

            self.plane_bytes += sum(self._map(link, range(first, sizes[plane], step)[self.share[0] :: self.share[1]]))
            self.num_planes += number
            self._compress()
            self.progress("planes", self.num_planes, len(sizes))

    def _num_planes_that_pay(self, sizes: list[int], first: int, live: Array) -> int:
        """Return how many more planes of vertices from `first` on, and the lists of those still outside then, take the least time.

        By a sample. A vertex is taken for joined with the largest component by the next entry that counts. Of vertices in between as many
        are read as lie in gaps no longer than `GAP_BYTES`; gaps between vertices that are drawn at random have exponential lengths.
        """
        n, plane = self.store.num_rows, self.num_planes
        self._find_giant()
        chosen = np.linspace(first, n, SAMPLED_VERTICES, endpoint=False).astype(np.int64)
        found = np.empty((3, chosen.size), np.int64)
        kernels.count_live(sorted_lookup(self.store), live, plane, chosen, found)
        gap = GAP_BYTES / self.store.array(f"{self.store.pull_group}/indices").dtype.itemsize
        degree, count, place = found.reshape(3, -1, SAMPLED_TOGETHER)
        is_outside = ((self._roots(chosen) != self.giant) & (found[2] < found[0])).reshape(degree.shape)
        length, costs = degree.mean(axis=1), []
        for more in range(plane, len(sizes) + 1):
            is_left = is_outside & (place >= more)
            part = is_left.mean(axis=1)
            between = length * (1 / np.maximum(part, 1e-9) - 1)
            ratio = gap / np.maximum(between, 1e-9)
            read = part * (length + between * (1 - np.exp(-ratio) * (1 + ratio)))
            lists = (n - first) * (READ_COST * read.mean() + LINK_COST * (is_left * count).mean())
            costs.append(lists + PLANE_COST * sum(max(0, size - first) for size in sizes[plane:more]))
        return int(np.argmin(costs))

    def _roots(self, vertices: Array) -> Array:
        """Return the roots of the trees of some vertices."""
        while not np.array_equal(above := self.parent[vertices], vertices):
            vertices = above
        return vertices

    def largest(self) -> int:
        """Return the root of the largest tree that the planes have made, as far as a sample tells; -1 without planes."""
        self._compress()
        self._find_giant()
        return self.giant

    def link_lists(self, giant: int | None = None) -> None:
        """Link the vertices outside of the largest component, or of the one with root `giant`, with the neighbours that no plane had."""
        groups = _groups(self.store)
        if giant is None:
            self._find_giant()
        else:
            self.giant = giant
        for i, group in enumerate(groups):
            self.progress("lists", i, len(groups))
            for number, band in enumerate(self._bands(group)):
                if number or (i and self._mask(group) is not None):
                    self._compress(*band)
                    self._find_giant()
                self._link_band(group, self.num_planes if group == self.store.pull_group and not number else 0, *band)
        self.progress("lists", len(groups), len(groups))

    def _link_band(self, group: str, skip: int, first: int, stop: int) -> None:
        """Link vertices outside of the largest component with those in their lists, the first `skip` of each apart."""
        array, mask = self.store.array(f"{group}/indices").masked(None), self._mask(group)
        if mask is not None:
            for block in self._row_blocks(group, skip, first, stop, LISTED_ROWS):
                self.num_bytes += self._link_live(array, mask, *block)
            return

        def link(piece: tuple[int, Array, int, int]) -> int:
            row, offsets, begin, end = piece
            entries = self._read(array, begin, end)
            kernels.link_rows(self.parent, self.giant, row, offsets, skip, begin, entries.astype(self.parent.dtype, copy=False))
            return self._num_read(array, begin, entries)

        self.num_bytes += sum(self._map(link, self._ranges(group, skip, first, stop, array.dtype.itemsize)))

    def _link_live(self, array: StoredArray, mask: Mask, first: int, offsets: Array) -> int:
        """Link the vertices of some rows along the entries that count; returns bytes read."""
        room, num_bytes, most = np.empty((3, _num_listed(self.store)), np.int64), 0, PIECE_BYTES // array.dtype.itemsize
        while offsets.size > 1:
            live, rows = mask.live_in(0, 0), offsets.size - 1
            if int(offsets[0]) < self._evaluated_from.get(array.name, array.length):
                rows, count = kernels.list_outside(self.parent, self.giant, first, offsets, ALL_LIVE, most, room)
                live = self._evaluated(mask, room[1, :count], room[2, :count])
            rows, count = kernels.list_outside(self.parent, self.giant, first, offsets[: rows + 1], live, most, room)
            num_bytes += self._link_listed(array, live, room, count) if count else 0
            first, offsets = first + rows, offsets[rows:]
        return num_bytes

    def _link_listed(self, array: StoredArray, live: Array, ranges: Array, count: int) -> int:
        """Read ranges of lists, a few pieces at once, and link their vertices along the entries that count; returns bytes read."""
        before, most = self._reader.bytes_read[array.name], self.threads * PIECE_BYTES // array.dtype.itemsize
        begin, end = ranges[1, :count], ranges[2, :count]
        ends = np.cumsum(end - begin)
        cuts = np.searchsorted(ends, np.arange(0, int(ends[-1]), most), side="right").tolist()
        for start, stop in pairwise([*dict.fromkeys(cuts), count]):
            entries = self._reader.read(array, begin[start:stop], end[start:stop], gap_pages=GAP_BYTES // PAGE_BYTES)
            offset = ends[start:stop] - (end[start:stop] - begin[start:stop])
            offset -= offset[0]
            shares = np.searchsorted(offset, np.linspace(0, entries.size, self.threads + 1)).tolist()
            link = partial(kernels.link_ranges, self.parent, ranges, start, offset, live, entries)
            for _ in self._map(link, pairwise(shares)):
                continue
        return self._reader.bytes_read[array.name] - before

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

    def _ranges(self, group: str, skip: int, first_row: int, last_row: int, itemsize: int) -> Iterator[tuple[int, Array, int, int]]:
        """Yield the ranges of entries that are needed of some rows, each with the first of its rows and where they begin."""
        ranges, gap, most = np.empty((MAX_RANGES, 2), np.int64), GAP_BYTES // itemsize, PIECE_BYTES // itemsize
        for block in self._row_blocks(group, skip, first_row, last_row, BLOCK_ROWS):
            first, offsets = block
            while offsets.size > 1:
                rows, count = kernels.cut_rows(self.parent, self.giant, first, offsets, skip, gap, most, ranges)
                for begin, end in ranges[:count].tolist():
                    low = int(np.searchsorted(offsets, begin, side="right")) - 1
                    high = int(np.searchsorted(offsets, end))
                    yield first + low, offsets[low : high + 1], begin, end
                first, offsets = first + rows, offsets[rows:]

    def _row_blocks(self, group: str, skip: int, first_row: int, last_row: int, num_rows: int) -> Iterator[tuple[int, Array]]:
        """Yield the first of some rows at once and where they begin, unless all are in the largest component."""
        has_planes = self._has_planes(group)
        last_row = min(last_row, self._num_longer(skip)) if has_planes else last_row
        for first in range(first_row + self.share[0] * num_rows, last_row, self.share[1] * num_rows):
            stop = min(last_row, first + num_rows)
            if kernels.are_all_in(self.parent, self.giant, first, stop):
                continue
            if has_planes:
                offsets = np.empty(stop + 1 - first, np.int64)
                kernels.row_starts(sorted_lookup(self.store), first, offsets)
            else:
                offsets = self.store.array(f"{group}/indptr").read(first, stop + 1)
            yield first, offsets

    def _bands(self, group: str) -> list[tuple[int, int]]:
        """Cut the rows of a group into ranges, in the order in which their lists are read.

        Where not all entries count, those with few entries come first: they are most of the vertices, and join most of the others with the
        largest component, so that the condition need not be evaluated for the long lists of these.
        """
        n = self.store.num_rows
        if self._mask(group) is None or not self._has_planes(group):
            return [(0, n)]
        value, first = self.store.degree_classes
        bands, most, stop = [], SHORT_LISTS * self._num_entries(group) / max(1, n), n
        while stop:
            longer = int(np.count_nonzero(value > most))
            begin = int(first[longer]) if longer and longer < first.size else n if longer else 0
            if begin < stop:
                bands.append((begin, stop))
                stop = begin
            most *= LONGER_LISTS
        return bands

    def _planes(self) -> StoredArray:
        return self.store.array(f"{self.store.pull_group}/planes/indices").masked(None)

    def _has_planes(self, group: str) -> bool:
        return group == self.store.pull_group and self.store.attributes.vertex_order == "degree"

    def _num_entries(self, group: str) -> int:
        return self.store.array(f"{group}/indices").length

    def _evaluated(self, mask: Mask, begin: Array, end: Array) -> Array:
        """Evaluate the condition for ranges of entries that are ascending, with all threads; return the bits."""
        if not begin.size:
            return mask.live_in(0, 0)
        cuts = np.flatnonzero(begin[1:] - end[:-1] > LEAST_EVALUATED)
        starts, stops = begin[np.append(0, cuts + 1)] // LEAST_EVALUATED * LEAST_EVALUATED, end[np.append(cuts, end.size - 1)]
        step = int((stops - starts).sum()) // (4 * self.threads) // LEAST_EVALUATED * LEAST_EVALUATED
        step = max(LEAST_EVALUATED, min(MOST_EVALUATED, step))
        ranges = zip(starts.tolist(), stops.tolist(), strict=True)
        pieces = ((at, min(stop, at + step)) for start, stop in ranges for at in range(start, stop, step))
        for _ in self._map(lambda piece: mask.live_in(*piece), pieces):
            continue
        return mask.live_in(0, 0)

    def _read(self, array: StoredArray, start: int, stop: int) -> Array:
        """Read elements, unless they are in memory; up to `PIECE_BYTES` into memory of the calling thread, which its next read reuses."""
        if self._is_resident(array, stop):
            return self._resident.get(array.name, array.held)[start:stop]
        if (stop - start) * array.dtype.itemsize > PIECE_BYTES:  # a part of a very long row
            return array.read(start, stop)
        values = self._piece().view(array.dtype)[: stop - start]
        array.read_into(start, values)
        return values

    def _read_stretches(self, array: StoredArray, begins: list[int], lengths: list[int], room: int) -> tuple[Array, Array, int]:
        """Read stretches of an array, each of at most `room` elements; return elements, where each begins among them, and bytes read."""
        if self._is_resident(array, begins[-1] + lengths[-1]):
            return self._resident.get(array.name, array.held), np.array(begins), 0
        values = self._piece().view(array.dtype)
        for at, begin, length in zip(range(0, room * len(begins), room), begins, lengths, strict=True):
            array.read_into(begin, values[at : at + length])
        return values, np.arange(0, room * len(begins), room), sum(lengths) * array.dtype.itemsize

    def _piece(self) -> Array:
        """Return memory of the calling thread: `PIECE_BYTES`."""
        piece: Array | None = getattr(self._own, "piece", None)
        if piece is None:
            piece = self._own.piece = np.empty(PIECE_BYTES, np.uint8)
        return piece

    def _is_resident(self, array: StoredArray, stop: int) -> bool:
        return stop <= self._resident.get(array.name, array.held).size

    def _num_read(self, array: StoredArray, start: int, values: Array) -> int:
        """Return how many bytes were read of values that begin at `start`."""
        return 0 if self._is_resident(array, start + values.size) else int(values.nbytes)

    def _compress(self, *bounds: int) -> int:
        """Have vertices, or a range of them, name the roots of their trees; returns how many roots there are."""
        return sum(self._in_parts(lambda start, stop: int(kernels.compress(self.parent, self.giant, start, stop)), *bounds))

    def _in_parts(self, call: Callable[[int, int], Any], *bounds: int) -> list[Any]:
        """Call for ranges of all vertices, or of the share that is compressed here, or of others, one for each thread."""
        start, stop = bounds or self._bounds
        cuts = np.linspace(start, stop, self.threads + 1).astype(np.int64).tolist()
        return list(self._map(lambda cut: call(*cut), pairwise(cuts)))

    def _map(self, call: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Call for each item with all threads."""
        return self._pool.map(call, items, 2 * self.threads - 1)

    def _num_longer(self, skip: int) -> int:
        """Vertices of the degree-ordered group that have more than `skip` neighbours: the first ones."""
        value, first = self.store.degree_classes
        longer = int(np.count_nonzero(value > skip))
        return int(first[longer]) if longer < first.size else self.store.num_rows

    def _find_giant(self) -> None:
        """Take the component with most entries of a sample for the largest; without planes there is none yet.

        Where not all entries count, one that has many stays it: vertices of it are passed over from then on.
        """
        if self._anchor >= 0:
            while self.parent[self._anchor] != self._anchor:
                self._anchor = int(self.parent[self._anchor])
            self.giant = self._anchor
            return
        store, is_masked = self.store, self._mask(self.store.pull_group) is not None
        num_entries = store.array(f"{store.pull_group}/indices").length
        if store.attributes.vertex_order != "degree" or not (self.num_planes or is_masked) or not num_entries:
            return
        rows, entries = sorted_lookup(store), np.random.default_rng(0).integers(0, num_entries, SAMPLED_ENTRIES)
        at = np.searchsorted(rows.edge, entries, side="right") - 1
        sample = self._roots(rows.first[at] + (entries - rows.edge[at]) // rows.value[at])  # others may not have compressed theirs yet
        roots, counts = np.unique(sample, return_counts=True)
        if not is_masked:
            self.giant = int(roots[counts.argmax()])
        elif MANY * counts.max() > sample.size:
            self.giant = self._anchor = int(roots[counts.argmax()])

    def _entries_left(self) -> int:
        """Entries that are read of the lists outside of the largest component, of those that no plane had."""
        self._find_giant()
        group = self.store.pull_group
        gap = GAP_BYTES // self.store.array(f"{group}/indices").dtype.itemsize
        rows = sorted_lookup(self.store)
        return int(kernels.count_entries(self.parent, self.giant, rows, self.num_planes, gap))

    def _mask(self, group: str) -> Mask | None:
        """Return which entries of a group count; None where all do."""
        return self.store.array(f"{group}/indices").mask
