"""What a partitioning policy may ask about the graph: CuSP's ``prop``, the same text compiled and as plain Python.

In: counts, two row lookups (see `oocgraph.kernels.rows`) and the rows that are at hand. Out: `Prop`, a named tuple. Its methods are
ordinary Python functions; compiled code gets those very functions through ``overload_method``, so a policy cannot decide otherwise
where it is compiled.

A question about a vertex whose row is at hand is answered from that row's two offsets; about any other by the lookup: one offset where
it is explicit, a bisection over the distinct degrees where the store is degree-sorted. What was not brought along raises an error;
nothing is answered with a guess.

References
----------
Hoang, Dathathri, Gill, Pingali: CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics. IPDPS 2019, section III.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numba import types
from numba.extending import overload_method

from oocgraph.kernels.rows import RowLookup, find_class, row_of
from oocgraph.types import Array

_NONE = np.empty(0, np.int64)
NO_LOOKUP = RowLookup(_NONE, _NONE, _NONE, _NONE)
"""Of rows whose places are not brought along."""


class Prop(NamedTuple):
    """A graph as its policy sees it; make one with `make_prop`, bring rows to it with `with_rows`.

    Attributes
    ----------
    num_vertices, num_edges, num_partitions : int
        Vertices that have an edge, stored entries (an undirected edge twice), partitions.
    directed : bool
        Whether in-edges differ from out-edges.
    out_rows, in_rows : RowLookup
        Of an undirected graph only the first is used.
    rows_are_in : bool
        Whether the rows at hand are in-lists.
    first_row, begin : int
        First row at hand, and the entry of the store that ``indices[0]`` is.
    row_indptr : (num_rows + 1,) int64
        Entries of the store at which the rows at hand begin; empty without rows.
    indices : (num_entries,) index dtype
        Neighbours of the rows at hand; empty where only their lengths are.
    """

    num_vertices: int
    num_edges: int
    num_partitions: int
    directed: bool
    out_rows: RowLookup
    in_rows: RowLookup
    rows_are_in: bool
    first_row: int
    begin: int
    row_indptr: Array
    indices: Array

    def out_degree(self, v: Any) -> Any:
        """Return the number of stored entries in the out-list of vertex `v`."""
        r = v - self.first_row
        if 0 <= r < self.row_indptr.size - 1 and (not self.rows_are_in or not self.directed):
            return self.row_indptr[r + 1] - self.row_indptr[r]
        return _degree(self.num_vertices, self.out_rows, v)

    def in_degree(self, v: Any) -> Any:
        """Return the number of stored entries in the in-list of vertex `v`; of an undirected graph that is its out-degree."""
        r = v - self.first_row
        if 0 <= r < self.row_indptr.size - 1 and (self.rows_are_in or not self.directed):
            return self.row_indptr[r + 1] - self.row_indptr[r]
        if self.directed:
            return _degree(self.num_vertices, self.in_rows, v)
        return _degree(self.num_vertices, self.out_rows, v)

    def first_out_edge(self, v: Any) -> Any:
        """Return the position of vertex `v`'s first out-edge among all stored entries (where it would be, if it has none)."""
        r = v - self.first_row
        if 0 <= r < self.row_indptr.size - 1 and (not self.rows_are_in or not self.directed):
            return self.row_indptr[r]
        return _begin(self.num_vertices, self.out_rows, v)

    def neighbours(self, v: Any) -> Any:
        """Return the neighbours of the vertex that is being assigned, out of the lists that are read (``read="in"``: its in-neighbours).

        A view, not to be written to. Of another vertex the whole row may not be at hand, which is an error.
        """
        r = v - self.first_row
        if r < 0 or r >= self.row_indptr.size - 1:
            raise IndexError("prop.neighbours(v): the neighbours of v are not at hand; ask in get_master, for the vertex that it assigns")
        start, stop = self.row_indptr[r] - self.begin, self.row_indptr[r + 1] - self.begin
        if start < 0 or stop > self.indices.size:
            raise IndexError("prop.neighbours(v): only a part of v's row is at hand; ask in get_master, for the vertex that it assigns")
        return self.indices[start:stop]

    def with_rows(self, first_row: int, row_indptr: Array, indices: Array, begin: int, *, rows_are_in: bool) -> Prop:
        """Return the same with other rows at hand (not from compiled code)."""
        return self._replace(
            first_row=int(first_row), row_indptr=row_indptr, indices=indices, begin=int(begin), rows_are_in=bool(rows_are_in)
        )


def make_prop(
    num_vertices: int,
    num_edges: int,
    num_partitions: int,
    *,
    directed: bool,
    out_rows: RowLookup = NO_LOOKUP,
    in_rows: RowLookup = NO_LOOKUP,
    index_dtype: Any = np.uint32,
) -> Prop:
    """Return a `Prop` with no rows at hand.

    Parameters
    ----------
    num_edges
        Stored entries.
    out_rows, in_rows
        Lookups of both groups, where the policy asks for degrees; `in_rows` is not used of an undirected graph.
    index_dtype
        Dtype of neighbours.

    Examples
    --------
    A path of three vertices, each edge stored twice:

    >>> indptr = np.array([0, 1, 3, 4])
    >>> none = np.empty(0, np.int64)
    >>> prop = make_prop(3, 4, 2, directed=False, out_rows=RowLookup(indptr, none, none, none))
    >>> int(prop.out_degree(1)), int(prop.in_degree(2)), int(prop.first_out_edge(2))
    (2, 1, 3)
    >>> prop.with_rows(1, indptr[1:3], np.array([0, 2], np.uint32), 1, rows_are_in=False).neighbours(1)
    array([0, 2], dtype=uint32)
    """
    counts = int(num_vertices), int(num_edges), int(num_partitions), bool(directed)
    lookups = (RowLookup(*(np.ascontiguousarray(array, np.int64) for array in rows)) for rows in (out_rows, in_rows))
    return Prop._make((*counts, *lookups, False, 0, 0, np.empty(0, np.int64), np.empty(0, index_dtype)))


@nb.njit(nogil=True, cache=True)
def _check(num_vertices: Any, lookup: Any, v: Any) -> None:
    if v < 0 or v >= num_vertices:
        raise IndexError("a policy asked about a vertex that is not in the graph")
    if lookup.indptr.size == 0 and lookup.first.size == 0:
        raise LookupError("a policy asked for degrees or positions that were not brought along")


@nb.njit(nogil=True, cache=True)
def _degree(num_vertices: Any, lookup: Any, v: Any) -> Any:
    """Length of row `v`."""
    _check(num_vertices, lookup, v)
    if lookup.indptr.size:
        return lookup.indptr[v + 1] - lookup.indptr[v]
    return lookup.value[find_class(lookup.first, v)]


@nb.njit(nogil=True, cache=True)
def _begin(num_vertices: Any, lookup: Any, v: Any) -> Any:
    """First entry of row `v`."""
    _check(num_vertices, lookup, v)
    return row_of(lookup, 0 if lookup.indptr.size else find_class(lookup.first, v), v)[0]


def _compile_as(name: str, written: Any) -> None:
    """Let compiled code call the method `name` of a `Prop`: as the very function that Python calls."""
    implementation = FunctionType(written.__code__, written.__globals__, name)

    def method(self: Any, v: Any) -> Any:
        return implementation if getattr(self, "instance_class", None) is Prop else None

    method.__annotations__ = {}  # numba wants those of both to be equal, and needs none
    overload_method(types.NamedTuple, name)(method)


for _method in (Prop.out_degree, Prop.in_degree, Prop.first_out_edge, Prop.neighbours):
    _compile_as(_method.__name__, _method)
