"""A matrix times a vector by threads, part by part: rows go straight to their place, columns are added up as a tree.

In: parts of a matrix (`oocgraph.sparse.partial`), in memory or streamed from a store, and a vector. Out: ``y = plus(y, A x)``. Parts by
row write disjoint rows; of a row that is cut each part but the first hands back one number, and these are added at the end, part by part.
Parts by column all reach every row: each thread adds to a vector of its own, and the vectors are added in pairs, in log2(threads) steps.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, section 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oocgraph.compiled import load
from oocgraph.kernels import spmv
from oocgraph.kernels.semirings import Semiring
from oocgraph.products.product_checks import checked_piece
from oocgraph.progress import sum_of_threads
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.sparse.partial import Partial, PartialCOO, PartialCSC, PartialCSR
from oocgraph.team import Team, team_of
from oocgraph.types import Array, Progress, ignore_progress

PARTS_PER_THREAD = 8
"""Parts of what is in memory for each thread, so that one that is held up does not hold up the others."""

EDGES = "edges"
"""Phase of progress: edges (nonzeros) multiplied, of how many."""


_Each = Callable[[Callable[[Any], Array]], list[Array]]
"""Calls a function with every part, in threads, and returns what it made of them in their order."""


def is_by_row(part: Partial) -> bool:
    """Whether a line of the part is a row."""
    return isinstance(part, PartialCSR) or (isinstance(part, PartialCOO) and part.by == "row")


def num_private_vectors(parts: Sequence[Partial], threads: int) -> int:
    """Vectors as long as `y` that `multiply` makes."""
    return 0 if not parts or is_by_row(parts[0]) else min(threads, len(parts)) - 1


def load_kernel(part: Partial, x: Array, y: Array, semiring: Semiring) -> None:
    """Bring the kernel for parts like this one into memory, before memory is counted; compiled elsewhere if it is not cached."""
    kernel, arguments = _call(part.unread(), x, y[:0], y[:0], semiring)
    load.load_kernel(kernel, arguments)


def multiply(parts: Sequence[Any], x: Array, y: Array, semiring: Semiring, *, threads: int, first_row: int = 0) -> None:
    """Add the product of a matrix in memory and a vector to `y`.

    Parameters
    ----------
    parts
        All of one matrix, or of a range of its rows.
    x : (num_columns,) or, of `PartialCSR`, (num_columns, width) float32 or float64; uint8 (0 and 1) in ``or_and``
    y : (num_rows,) or (num_rows, width) like `x`
    threads
        Threads that take parts, each when it is done with the last.
    first_row
        Row of ``y[0]``; only for parts by row.

    Notes
    -----
    Host bytes: `num_private_vectors` times `y`.
    """
    if not parts:
        return
    with team_of(threads) as team:
        if is_by_row(parts[0]):
            _by_rows(parts, x, y, semiring, lambda use: team.run(use, parts), first_row)
        else:
            _by_columns(parts, x, y, semiring, team, num_private_vectors(parts, threads))


def multiply_streamed(edges: EdgeStream, x: Array, y: Array, semiring: Semiring, progress: Progress = ignore_progress) -> None:
    """Add the product of a stored graph, or of a range of its rows, and a vector to `y`.

    Parameters
    ----------
    x : (num_vertices,) or (num_vertices, width) float32 or float64; uint8 (0 and 1) in ``or_and``
        In store order.
    y : (rows of ``edges.part``,) or (rows, width) like `x`
        The first may have been begun by an earlier part: then what is added to it is only this part's share of it.
    progress
        Called in this thread with (`EDGES`, done, all).

    Raises
    ------
    CorruptStoreError
        The store cannot be read, or a neighbour is no vertex.
    OocGraphError
        A value is NaN, in a semiring that would not hand it on.
    """
    add = sum_of_threads(progress, EDGES, edges.part.num_entries)

    def each(use: Callable[[Any], Array]) -> list[Array]:
        return edges.each(lambda part: multiplied(use, part))

    def multiplied(use: Callable[[Any], Array], part: PartialCSR) -> Array:
        carry = use(checked_piece(part, semiring, edges.values_name))
        add(part.num_entries)
        return carry

    _by_rows(edges.parts, x, y, semiring, each, edges.part.first_line)


def _by_rows(parts: Sequence[Any], x: Array, y: Array, semiring: Semiring, each: _Each, first_row: int) -> None:
    def add_rows(part: PartialCSR | PartialCOO) -> Array:
        """Return what the part has of a row that was begun before: (1,) or (1, width) like `y`."""
        carry = semiring.zeros((1, *y.shape[1:]), y.dtype)
        kernel, arguments = _call(part, x, y[part.first_line - first_row : part.stop_line - first_row], carry, semiring)
        kernel(*arguments)
        return carry

    carries = each(add_rows)
    cut = [(part.first_line - first_row, carry) for part, carry in zip(parts, carries, strict=True) if part.first_line_partial]
    for row, carry in cut:
        semiring.add(y[row : row + 1], carry)


def put_rows(part: Partial, rows: Array, y: Array, semiring: Semiring) -> None:
    """Add what a part by row has made to `y`: rows in their place; the first is only its share where an earlier part began it."""
    own = y[part.first_line : part.stop_line]
    semiring.add(own, rows)


def _by_columns(parts: Sequence[Any], x: Array, y: Array, semiring: Semiring, team: Team, num_private: int) -> None:
    sums = [y, *(semiring.zeros(y.size, y.dtype) for _ in range(num_private))]

    def add_share(g: int) -> None:
        for part in parts[g :: len(sums)]:
            kernel, arguments = _call(part, x, sums[g], y[:0], semiring)
            kernel(*arguments)

    team.run(add_share, range(len(sums)))
    distance = 1
    while distance < len(sums):

        def add(g: int, distance: int = distance) -> None:
            semiring.add(sums[g], sums[g + distance])

        team.run(add, range(0, len(sums) - distance, 2 * distance))
        distance *= 2


def _call(part: Any, x: Array, y: Array, carry: Array, semiring: Semiring) -> tuple[Any, tuple[Any, ...]]:
    """Return the kernel that multiplies a part, and its arguments; `y` is of the part's rows, or of all when it is by column."""
    values, code = _values(part, semiring), semiring.code
    if isinstance(part, PartialCSR):
        rows = (part.first_line_partial, part.pointers, part.start, part.stop, part.indices)
        return spmv.multiply_csr if y.ndim == 1 else spmv.multiply_csr_dense, (code, *rows, values, x, y, carry)
    if isinstance(part, PartialCSC):
        own = x[part.first_line : part.stop_line]
        return spmv.multiply_csc, (code, part.pointers, part.start, part.stop, part.indices, values, own, y)
    cut, first_row = (part.first_line_partial, part.first_line) if part.by == "row" else (False, 0)
    return spmv.multiply_coo, (code, cut, first_row, part.rows, part.columns, values, x, y, carry)


def _values(part: Partial, semiring: Semiring) -> Array | None:
    """Return the values as kernels take them: none where they do not matter, bools as bytes."""
    if part.values is None or not semiring.uses_values:
        return None
    values: Array = part.values.view(np.uint8) if part.values.dtype == np.bool_ else part.values
    return values
