"""A sparse matrix cut at any nonzero, so that every worker has the same number of them: MSREP's pCSR, pCSC and pCOO.

`oocgraph.sparse.balanced` makes them and puts them together again. A line is a row of CSR and of COO sorted by row, a column of CSC
and of COO sorted by column. A part has all lines that begin in it, empty ones included, and before them the rest of one that an earlier
part began (`Partial.first_line_partial`); so every line is begun by exactly one part.

A part copies nothing: entries and pointers are slices of the matrix's own arrays (views in memory or on the device, unread ranges of a
store), and cutting costs O(parts log m). The local pointer array of the paper, ``indptr``, is made from the slice when it is asked for, in
O(lines of the part), by the library that owns the slice, so on the device where there is one. Kernels here take the slice itself and
clip as they go.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, section 3, algorithms 2, 4 and 6. Differs from
the paper in: ranges are half-open; pointers are uncut until asked for; empty lines and empty parts have a place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar

import numpy as np

from oocgraph.sparse.placement import Place
from oocgraph.store.slices import StoredSlice

Vector = Any
"""A one-dimensional array: NumPy's, CuPy's, or a `StoredSlice`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Partial:
    """Nonzeros ``start .. stop - 1`` of a matrix.

    Attributes
    ----------
    start, stop : int
        Their range (``start_idx`` and, one before `stop`, ``end_idx`` of the paper).
    first_line, stop_line : int
        Range of its lines.
    first_line_partial : bool
        Whether the first line was begun by an earlier part (``start_flag``).
    shape : (int, int)
        Of the whole matrix.
    values : (stop - start,) any dtype, or None
        Slice of the matrix's values; None: all are one.
    make : callable
        Makes the whole matrix again, of arrays and shape: SciPy's or CuPy's class.
    place : Place or None
        Where it belongs (`oocgraph.sparse.placement`).
    """

    start: int
    stop: int
    first_line: int
    stop_line: int
    first_line_partial: bool
    shape: tuple[int, int]
    values: Vector | None
    make: Callable[..., Any]
    place: Place | None = None

    @property
    def num_entries(self) -> int:
        """Nonzeros."""
        return self.stop - self.start

    @property
    def num_lines(self) -> int:
        """Lines, empty ones included."""
        return self.stop_line - self.first_line

    @property
    def entry_bytes(self) -> int:
        """Bytes of the nonzeros in memory."""
        return sum(slice_.nbytes for slice_ in self._slices().values())

    def load(self, buffers: Mapping[str, Any] | None = None, *, direct: Collection[str] = ()) -> Self:
        """Return the part with slices of a store read: into `buffers` (by field) where given; itself when all is in memory.

        `direct`: fields that are read around the page cache, where that can be done (`oocgraph.store.arrays.PlainArray.read_into`).
        """
        read: dict[str, Any] = {
            name: slice_.read(None if buffers is None else buffers.get(name), direct=name in direct)
            for name, slice_ in self._slices(pointers=True).items()
            if isinstance(slice_, StoredSlice)
        }
        return replace(self, **read) if read else self

    def unread(self) -> Self:
        """Return the part with an empty array of its dtype in place of each slice of a store: what kernels are compiled for."""
        empty: dict[str, Any] = {
            name: np.empty(0, slice_.dtype) for name, slice_ in self._slices(pointers=True).items() if isinstance(slice_, StoredSlice)
        }
        return replace(self, **empty)

    def _slices(self, *, pointers: bool = False) -> dict[str, Vector]:
        names = ["values", "indices", "rows", "columns"] + (["pointers"] if pointers else [])
        found = {name: getattr(self, name, None) for name in names}
        return {name: slice_ for name, slice_ in found.items() if slice_ is not None}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Compressed(Partial):
    """A part of a matrix that has pointers.

    Attributes
    ----------
    pointers : (num_lines + 1,) integers
        The matrix's own, of these lines: the first may lie before `start`, the last behind `stop`.
    indices : (num_entries,) integers
        Slice of the matrix's indices.
    """

    pointers: Vector
    indices: Vector

    @property
    def indptr(self) -> Vector:
        """Local pointers: (num_lines + 1,) from 0 to `num_entries`; with `indices` and `values` a matrix that any library takes."""
        pointers = self.pointers.read() if isinstance(self.pointers, StoredSlice) else self.pointers
        return pointers.clip(self.start, self.stop) - self.start


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PartialCSR(_Compressed):
    """A part of a CSR matrix: lines are rows, `indices` are columns."""

    @property
    def start_row(self) -> int:
        """First row."""
        return self.first_line

    @property
    def stop_row(self) -> int:
        """Row after the last."""
        return self.stop_line

    @property
    def first_row_partial(self) -> bool:
        """Whether an earlier part began the first row."""
        return self.first_line_partial

    def transposed(self) -> PartialCSC:
        """Return the same part of the transpose; nothing is moved."""
        return _as(PartialCSC, self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PartialCSC(_Compressed):
    """A part of a CSC matrix: lines are columns, `indices` are rows."""

    @property
    def start_column(self) -> int:
        """First column."""
        return self.first_line

    @property
    def stop_column(self) -> int:
        """Column after the last."""
        return self.stop_line

    @property
    def first_column_partial(self) -> bool:
        """Whether an earlier part began the first column."""
        return self.first_line_partial

    def transposed(self) -> PartialCSR:
        """Return the same part of the transpose; nothing is moved."""
        return _as(PartialCSR, self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PartialCOO(Partial):
    """A part of a COO matrix whose entries are sorted by row or by column.

    Attributes
    ----------
    by : str
        ``row`` or ``column``: what a line is.
    rows, columns : (num_entries,) integers
        Slices of the matrix's coordinates, of the whole matrix (those of the paper begin at the part's first line).
    """

    by: Literal["row", "column"]
    rows: Vector
    columns: Vector

    def transposed(self) -> PartialCOO:
        """Return the same part of the transpose; nothing is moved."""
        by: Literal["row", "column"] = "column" if self.by == "row" else "row"
        return replace(self, by=by, rows=self.columns, columns=self.rows, shape=self.shape[::-1])


_C = TypeVar("_C", bound=_Compressed)


def _as(kind: type[_C], part: _Compressed) -> _C:
    """Return a part of CSR as one of CSC, or the reverse, of the transpose."""
    return kind(
        start=part.start, stop=part.stop, first_line=part.first_line, stop_line=part.stop_line, place=part.place, make=part.make,
        first_line_partial=part.first_line_partial, shape=part.shape[::-1], values=part.values, pointers=part.pointers,
        indices=part.indices,
    )  # fmt: skip
