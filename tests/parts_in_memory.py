"""Parts of a graph in memory, made of masters and edge owners that a test chooses: like `oocgraph.store.partitions.Part`, without files."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


class ArrayInMemory:
    """A `StoredArray` that is an array."""

    unit, held = 1, np.empty(0)

    def __init__(self, values, name, chunk_length=1000):
        self.values, self.name, self.dtype, self.length, self.chunk_length = values, name, values.dtype, values.size, chunk_length

    def read(self, start, stop):
        """Return a copy of a range."""
        return self.values[start:stop].copy()

    def read_into(self, start, out, *, direct=False):
        """Copy a range."""
        out[:] = self.values[start : start + out.size]

    def is_cached(self, start, stop):
        """Whether a range is in memory."""
        return True


class StoreInMemory:
    """A store by names of arrays."""

    check_pages = False
    attributes = SimpleNamespace(codec="none")

    def __init__(self, arrays):
        self.arrays = arrays

    def checked(self, check_pages):
        """Return itself: there are no checksums."""
        return self

    def has_array(self, name):
        """Whether there is an array of that name."""
        return name in self.arrays

    def array(self, name):
        """Return a reader."""
        return ArrayInMemory(self.arrays[name], name)


class PartInMemory:
    """One part.

    Parameters
    ----------
    index
        Its number.
    rows, columns
        Its edges, as numbers of the graph.
    masters
        Partition of each vertex of the graph.
    group
        ``out`` or ``in``.
    """

    def __init__(self, index, rows, columns, masters, group="out"):
        self.index, self.num_edges = index, rows.size
        present = np.unique(np.concatenate([rows, columns])).astype(np.int64)
        mine = masters[present] == index
        self._global_id = np.concatenate([present[mine], present[~mine]])
        self._isolated = np.setdiff1d(np.flatnonzero(masters == index), present)
        self._owner = masters[present[~mine]].astype(np.int32)
        self.num_masters, self.num_mirrors, self.num_isolated = int(mine.sum()), int((~mine).sum()), self._isolated.size
        self.num_vertices = present.size
        local = np.full(masters.size, -1, np.int64)
        local[self._global_id] = np.arange(present.size)
        order = np.lexsort((local[columns], local[rows]))
        indptr = np.zeros(present.size + 1, np.int64)
        np.cumsum(np.bincount(local[rows], minlength=present.size), out=indptr[1:])
        self.store = StoreInMemory({f"{group}/indptr": indptr, f"{group}/indices": local[columns][order].astype(np.uint32)})

    def global_id(self):
        """Return numbers in the graph."""
        return self._global_id

    def isolated_masters(self):
        """Return masters without an edge here."""
        return self._isolated

    def mirror_owner(self):
        """Return the owners of mirrors."""
        return self._owner


def cut_in_memory(num_parts, src, dst, masters, owners, group="out"):
    """Cut edges into parts: edge i is in part ``owners[i]``."""
    masters = np.asarray(masters)
    return [PartInMemory(p, src[owners == p], dst[owners == p], masters, group) for p in range(num_parts)]


def edges_of(store, group="out"):
    """Rows and columns of all stored entries of a graph, in store numbers."""
    indptr = store.read(f"{group}/indptr")
    return np.repeat(np.arange(store.num_rows), np.diff(indptr)), store.read(f"{group}/indices").astype(np.int64)


def cut_1d(num_parts, num_vertices, src, dst):
    """Masters own equal ranges and all their out-edges."""
    masters = np.arange(num_vertices) * num_parts // max(1, num_vertices)
    return cut_in_memory(num_parts, src, dst, masters, masters[src] if src.size else src)


def cut_2d(num_rows, num_columns, num_vertices, src, dst):
    """Set i of `num_rows` equal ones is owned by P(i, i mod columns); P(i, j) has the edges from it to sets k, k mod columns == j."""
    of = np.arange(num_vertices) * num_rows // max(1, num_vertices)
    masters = of * num_columns + of % num_columns
    return cut_in_memory(num_rows * num_columns, src, dst, masters, of[src] * num_columns + of[dst] % num_columns)
