"""Cuts a sparse matrix into parts of equal numbers of nonzeros, and puts parts together again.

In: a matrix in CSR, CSC or sorted COO: of SciPy, of CuPy (recognised by their attributes, never imported), or a store's
(`oocgraph.sparse.stored`); or a part of one, which its worker cuts again. Out: a list of parts (`oocgraph.sparse.partial`), slices of
the matrix's own arrays.
Where parts begin is found by bisection of the pointers, O(log m) elements each; where a store's are cut into many parts, by one pass.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, algorithms 2, 4 and 6; placement: section 4.2.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np

from oocgraph.arguments import is_whole, known_keywords
from oocgraph.errors import ArgumentError
from oocgraph.sparse.partial import Partial, PartialCOO, PartialCSC, PartialCSR
from oocgraph.sparse.placement import NumaNode, Place, place, topology
from oocgraph.sparse.stored import StoredMatrix
from oocgraph.store.graph import CSRStore
from oocgraph.store.slices import StoredSlice

MAX_PARTS = 1 << 20
"""More than there are cores or devices to take them."""

SCAN_ENTRIES = 1 << 20
"""Entries of a COO matrix compared at once when its order is checked."""


@known_keywords
def balanced_partition(
    matrix: Any, parts: int, *, numa: Sequence[NumaNode] | Mapping[int, Sequence[int] | int] | None = None
) -> list[PartialCSR] | list[PartialCSC] | list[PartialCOO]:
    """Cut a matrix into parts whose numbers of nonzeros differ by at most one.

    Parameters
    ----------
    matrix
        Sparse matrix or array of SciPy or CuPy in CSR, CSC, or COO sorted by row or by column; a graph store (its ``out`` lists, in store
        order) or a `oocgraph.sparse.stored.StoredMatrix`. Or a part, which is cut again.
    parts
        At least 1; more than there are nonzeros leaves some parts empty.
    numa
        Nodes over which the parts are placed, first over nodes and then inside of each; or a description as
        `oocgraph.sparse.placement.topology` takes.

    Returns
    -------
    list of PartialCSR, PartialCSC or PartialCOO
        In order; they hold slices of the matrix's arrays, which must not be changed meanwhile.

    Raises
    ------
    ArgumentError
        `parts` is no whole number from 1, the format is another, or a COO matrix is not sorted.

    Notes
    -----
    O(parts log m) time and a few hundred bytes a part. The order of a COO matrix is checked once, in O(nonzeros) time, by blocks.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> one, two = balanced_partition(csr_array([[1, 2, 3], [0, 0, 4]]), 2)
    >>> one.indices.tolist(), two.indices.tolist(), two.first_row_partial, two.indptr.tolist()
    ([0, 1], [2, 2], True, [0, 1, 2])
    """
    if not is_whole(parts, 1, MAX_PARTS):
        raise ArgumentError(f"parts is {parts!r}; it must be a whole number, 1 or more (and {MAX_PARTS} at most)")
    whole = _whole(matrix)
    start, total, parts = whole.start, whole.stop - whole.start, int(parts)
    if numa is None:
        return _cut(whole, [start + total * p // parts for p in range(parts + 1)])
    places = place(parts, topology(numa) if isinstance(numa, Mapping) else numa)
    bounds = [start + e for e in _two_level(total, places)]
    return [replace(part, place=where) for part, where in zip(_cut(whole, bounds), places, strict=True)]


def cut(matrix: Any, bounds: Sequence[int]) -> list[Any]:
    """Cut a matrix, or a part again, at given nonzeros: ascending, from its first to behind its last; see `balanced_partition`.

    Raises
    ------
    ArgumentError
        The bounds are others, or the matrix is one that cannot be cut.
    """
    whole = _whole(matrix)
    ends = (whole.start, whole.stop)
    if len(bounds) < 2 or (bounds[0], bounds[-1]) != ends or any(a > z for a, z in pairwise(bounds)):
        raise ArgumentError(f"parts must begin at ascending nonzeros and cover all, from {ends[0]} to {ends[1]}; not at {list(bounds)}")
    return _cut(whole, bounds)


def merge(partials: Sequence[Any]) -> Any:
    """Put the parts of a matrix together again.

    Parameters
    ----------
    partials
        All parts of one matrix, in order.

    Returns
    -------
    sparse matrix
        Of the class, with the values, dtypes and order of entries that were cut; a store's is a ``scipy.sparse.csr_array`` in store order.

    Raises
    ------
    ArgumentError
        There is no part, or one is missing, twice, or of another matrix.
    """
    if not partials:
        raise ArgumentError("there are no parts to merge; give all parts of a matrix, in order")
    first = partials[0]
    ends = [(0, first.start), *((a.stop, z.start) for a, z in pairwise(partials))]
    begun = [(0, first.first_line), *((a.stop_line, z.first_line + z.first_line_partial) for a, z in pairwise(partials))]
    for i, (part, (end, start), (stop_line, line)) in enumerate(zip(partials, ends, begun, strict=True)):
        if type(part) is not type(first) or part.shape != first.shape or end != start or stop_line != line:
            raise ArgumentError(
                f"part {i} ({type(part).__name__} of shape {part.shape}, nonzeros {part.start} to {part.stop}) does not go on where those "
                f"before it end (nonzero {end}); give all parts of one matrix, in order"
            )
    loaded = [part.load() for part in partials]
    values = None if first.values is None else np.concatenate([part.values for part in loaded])
    if isinstance(first, PartialCOO):
        rows, columns = (np.concatenate([getattr(part, name) for part in loaded]) for name in ("rows", "columns"))
        return first.make((values, (rows, columns)), shape=first.shape)
    begins = [part.indptr[int(part.first_line_partial) : -1] + part.start for part in loaded]
    pointers = np.concatenate([*begins, loaded[-1].indptr[-1:] + loaded[-1].start])
    return first.make((values, np.concatenate([part.indices for part in loaded]), pointers), shape=first.shape)


Begin = tuple[int, bool]
"""The line that holds a nonzero, and whether that line begins before it."""


def _begins(part: Any, entries: Sequence[int]) -> list[Begin]:
    """Return where nonzeros of a part are: ascending ones behind its first."""
    if isinstance(part, PartialCOO):
        lines = part.rows if part.by == "row" else part.columns
        return [
            (part.stop_line, False) if at == lines.size else (int(lines[at]), bool(lines[at - 1] == lines[at]))
            for at in (e - part.start for e in entries)
        ]
    if isinstance(part.pointers, StoredSlice):
        found = list(zip(*part.pointers.last_at_most(entries), strict=True))
    else:
        lines = [bisect_right(part.pointers, e) - 1 for e in entries]
        found = [(line, bool(part.pointers[line] < e)) for line, e in zip(lines, entries, strict=True)]
    return [(part.first_line + line, partial) for line, partial in found]


def _whole(matrix: Any) -> Any:
    """Return a matrix as one part that has all of it; a part as it is."""
    if isinstance(matrix, Partial):
        return matrix
    if isinstance(matrix, CSRStore):
        matrix = StoredMatrix(matrix, "out")
    kind = getattr(matrix, "format", None)
    if kind not in ("csr", "csc") and not (kind == "coo" and len(matrix.shape) == 2):
        what = f"a sparse matrix in format {kind!r}" if kind else f"of type {type(matrix).__name__}"
        raise ArgumentError(
            f"only CSR, CSC and COO matrices and graph stores can be cut, and this is {what}; convert it with matrix.tocsr()"
        )
    by: Literal["row", "column"] = _order_of(matrix) if kind == "coo" else "row" if kind == "csr" else "column"
    shape = int(matrix.shape[0]), int(matrix.shape[1])
    num_lines = shape[0 if by == "row" else 1]
    common: dict[str, Any] = {
        "start": 0, "first_line": 0, "stop_line": num_lines, "first_line_partial": False, "shape": shape, "values": matrix.data,
        "make": getattr(matrix, "make", type(matrix)),
    }  # fmt: skip
    if kind == "coo":
        return PartialCOO(stop=int(matrix.row.size), by=by, rows=matrix.row, columns=matrix.col, **common)
    compressed = PartialCSR if kind == "csr" else PartialCSC
    pointers = matrix.indptr[: num_lines + 1]
    return compressed(stop=int(matrix.indptr[num_lines]), pointers=pointers, indices=matrix.indices, **common)


def _order_of(matrix: Any) -> Literal["row", "column"]:
    """Return how a COO matrix is sorted."""
    if _ascends(matrix.row):
        return "row"
    if _ascends(matrix.col):
        return "column"
    raise ArgumentError(
        "this COO matrix is sorted neither by row nor by column, so the lines at its cuts are unknown; sort it with "
        "order = numpy.argsort(matrix.row, kind='stable'), or convert it with matrix.tocsr()"
    )


def _cut(whole: Any, bounds: Sequence[int]) -> list[Any]:
    """Make the parts between consecutive bounds."""
    at_start = sum(e == whole.start for e in bounds[:-1])
    begins = [(whole.first_line, whole.first_line_partial)] * at_start + _begins(whole, bounds[at_start:-1]) + [(whole.stop_line, False)]
    return [
        _slice(whole, start, stop, first, last + goes_on, partial)
        for (start, stop), ((first, partial), (last, goes_on)) in zip(pairwise(bounds), pairwise(begins), strict=True)
    ]


def _slice(whole: Any, start: int, stop: int, first_line: int, stop_line: int, partial: bool) -> Any:
    """Return nonzeros ``start .. stop - 1`` of a part, which are in these lines, as a part."""
    entries, lines = slice(start - whole.start, stop - whole.start), slice(first_line - whole.first_line, stop_line - whole.first_line + 1)
    names = ("rows", "columns") if isinstance(whole, PartialCOO) else ("indices",)
    arrays = {name: getattr(whole, name)[entries] for name in names}
    if not isinstance(whole, PartialCOO):
        arrays["pointers"] = whole.pointers[lines]
    values = None if whole.values is None else whole.values[entries]
    return replace(
        whole, start=start, stop=stop, first_line=first_line, stop_line=stop_line, first_line_partial=partial, values=values, place=None,
        **arrays,
    )  # fmt: skip


def _two_level(total: int, places: Sequence[Place]) -> list[int]:
    """Cut first over nodes and then inside of each: shares differ by one at most all the same."""
    bounds, before, parts = [0], 0, len(places)
    for _, group in groupby(places, key=lambda one: one.node):
        size = len(list(group))
        first, stop = total * before // parts, total * (before + size) // parts
        bounds += [first + (stop - first) * i // size for i in range(1, size + 1)]
        before += size
    return bounds


def _ascends(lines: Any) -> bool:
    return all(
        bool((lines[a + 1 : a + 1 + SCAN_ENTRIES] >= lines[a : a + SCAN_ENTRIES][: lines.size - 1 - a]).all())
        for a in range(0, lines.size - 1, SCAN_ENTRIES)
    )
