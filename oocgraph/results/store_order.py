"""Level or parent of a finished search in store order, read from its partitions' arrays when asked.

In: a result store, and the vertex_partition that says where each vertex is. Out: an array-like, as `Search` and `Join` use one: NumPy's
indexing by an integer, a slice or an array of store numbers, and `numpy.asarray` for all of it. Nothing is kept.

A request is put into ascending order once. Inside a partition local positions ascend in store number, so those of each partition
ascend too, and are read by coalesced ranges. It is served in pieces, which bounds what is held beside the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.partition.vertex_partition import VertexPartition
from oocgraph.store.arrays import PlainArray
from oocgraph.store.columns import read_at
from oocgraph.store.search_store import SearchStore
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array, no_parent

PIECE_VERTICES = 1 << 19
"""Vertices located and read at once: about 20 MB of positions."""


class StoreOrder:
    """An array of a search, (num_vertices,), in store order, on disk. It may be pickled.

    Parameters
    ----------
    search_store
        Where the partitions' arrays are.
    vertex_partition
        The vertex_partition of the graph that the search used.
    name
        ``level`` or ``parent``.

    Raises
    ------
    CorruptStoreError
        A partition's array is missing, or is not of this vertex_partition.

    Notes
    -----
    Peak host bytes of a request: its result, 16 bytes for each number asked for out of order, and about 25 MB.
    512 k random vertices of 9 M are read in 0.03 s, all of them in 0.25 s (cached, 8 partitions).
    """

    ndim = 1

    def __init__(self, search_store: SearchStore, vertex_partition: VertexPartition, name: str) -> None:
        self.name, self._vertex_partition = name, vertex_partition
        self._parts = [search_store.part(p, name) for p in range(vertex_partition.num_partitions)]
        for p, (part, num_owned) in enumerate(zip(self._parts, vertex_partition.num_owned.tolist(), strict=True)):
            if part.length != num_owned:
                raise CorruptStoreError(
                    f"{search_store.path}: partition {p} has {part.length:,} {name}s, but was assigned {num_owned:,} vertices; "
                    "the graph or the number of partitions is not that of this search"
                )
        self._most = _deepest(search_store) if name == "level" else vertex_partition.num_vertices - 1
        self.dtype: np.dtype[Any] = max((part.dtype for part in self._parts), key=lambda dtype: dtype.itemsize)
        self.shape, self.size = (vertex_partition.num_vertices,), vertex_partition.num_vertices

    def __repr__(self) -> str:
        return f"<StoreOrder {self.name}: {self.size:,} {self.dtype} in {len(self._parts)} partitions>"

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: Any) -> Any:
        """Return the value of a vertex, or an array of those of a slice or of an array of integers (negative: from the end)."""
        if isinstance(key, tuple):  # as Dask indexes
            if len(key) != 1:
                raise IndexError(f"{key!r}: {self!r} has one dimension")
            (key,) = key
        if isinstance(key, slice):
            return self._read_slice(range(self.size)[key])
        wanted = np.asarray(key)
        if wanted.dtype == np.bool_ and wanted.shape == self.shape:
            wanted = np.flatnonzero(wanted)
        elif wanted.size == 0 and isinstance(key, list):
            wanted = wanted.astype(np.int64)
        if wanted.dtype.kind not in "iu":
            raise IndexError(f"{key!r}: only integers, slices and arrays of integers are indices of {self!r}")
        values = self._read(self._checked(wanted.reshape(-1))).reshape(wanted.shape)
        return values if wanted.ndim else values[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all values, as `numpy.asarray` asks for them."""
        if copy is False:
            raise ValueError(f"{self!r} is on disk: it cannot be an array without a copy")
        values = self._read_slice(range(self.size))
        return values if dtype is None else values.astype(dtype, copy=False)

    def _checked(self, wanted: Array) -> Array:
        """Return store numbers as int64, negative ones counted from the end."""
        if not wanted.size:
            return wanted.astype(np.int64)
        low, high = int(wanted.min()), int(wanted.max())
        if low < -self.size or high >= self.size:
            raise IndexError(f"index {low if low < -self.size else high} is out of bounds for {self!r}")
        wanted = wanted.astype(np.int64, copy=False)
        return np.where(wanted < 0, wanted + self.size, wanted) if low < 0 else wanted

    def _read_slice(self, wanted: range) -> Array:
        ascending = wanted if wanted.step > 0 else wanted[::-1]
        out = np.empty(len(ascending), self.dtype)
        for start, stop in _pieces(len(ascending)):
            piece = ascending[start:stop]
            out[start:stop] = self._read_ascending(np.arange(piece.start, piece.stop, piece.step, dtype=np.int64))
        return out if wanted.step > 0 else out[::-1]

    def _read(self, wanted: Array) -> Array:
        """Return the values at store numbers in any order."""
        out = np.empty(wanted.size, self.dtype)
        order = None if np.all(wanted[1:] >= wanted[:-1]) else np.argsort(wanted)
        for start, stop in _pieces(wanted.size):
            if order is None:
                out[start:stop] = self._read_ascending(wanted[start:stop])
            else:
                places = order[start:stop]
                out[places] = self._read_ascending(wanted[places])
        return out

    def _read_ascending(self, wanted: Array) -> Array:
        """Return the values at a piece of ascending store numbers."""
        owner, local = self._vertex_partition.locate(wanted)
        if len(self._parts) <= 1 << 16:
            owner = owner.astype(np.uint16)  # NumPy's stable sort of 16 bits is a radix sort
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner, np.arange(len(self._parts) + 1), sorter=order)
        out = np.empty(wanted.size, self.dtype)
        for part, start, stop in zip(self._parts, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if start < stop:
                places = order[start:stop]
                out[places] = self._values(part, local[places])
        return out

    def _values(self, part: PlainArray, positions: Array) -> Array:
        values = read_at(part, positions)
        none = no_parent(values.dtype) if self.name == "parent" else LEVEL_UNREACHED if values.dtype == np.uint8 else UNREACHED
        known = values[values != none]
        if known.size and not (int(known.min()) >= 0 and int(known.max()) <= self._most):
            what = f"a parent that is none of {self.size:,} vertices" if self.name == "parent" else "a level beyond its depth"
            raise CorruptStoreError(f"{part.folder / self.name}: names {what}; remove the result store and search again")
        if values.dtype == self.dtype:
            return values
        wide = values.astype(self.dtype)  # levels of one byte beside those of a partition that needed more
        wide[values == LEVEL_UNREACHED] = UNREACHED
        return wide


def _deepest(search_store: SearchStore) -> int:
    """Return what no level is above: one more than the depth of the search, where that is known."""
    return int(search_store.fields.get("depth", np.iinfo(np.int32).max - 1)) + 1


def _pieces(length: int) -> Iterator[tuple[int, int]]:
    for start in range(0, length, PIECE_VERTICES):
        yield start, min(length, start + PIECE_VERTICES)
