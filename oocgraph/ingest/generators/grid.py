"""A grid of streets: every vertex is joined to its right and lower neighbour; the depth is rows + columns - 2.

The opposite of a Kronecker graph: thousands of levels of tiny frontiers. Vertex ``(row, column)`` has the id
``row * columns + column``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from oocgraph.arguments import is_number, is_whole, known_keywords
from oocgraph.errors import ArgumentError
from oocgraph.ingest.generators.generated import GeneratedEdges
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption


class GridEdges(GeneratedEdges):
    """Edges of a grid of `rows` x `columns` vertices, undirected: first the horizontal ones, then the vertical.

    Parameters
    ----------
    rows, columns
        Of the grid.
    keep
        Share of the streets that are open: which, `seed` says.
    shuffle
        Give vertices random ids, by `seed`.
    weights
        As of `GeneratedEdges`.

    Examples
    --------
    >>> source, target = GridEdges(2, 3).edges(0, 7)
    >>> list(zip(source.tolist(), target.tolist()))
    [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    """

    def __init__(
        self, rows: int, columns: int, *, keep: float = 1.0, shuffle: bool = False, seed: int = 1, weights: Any = None
    ) -> None:  # fmt: skip
        if rows < 1 or columns < 1:
            raise ArgumentError(f"a grid of {rows} x {columns} has no vertices; rows and columns must be at least 1")
        if not (is_number(keep) and 0 < keep <= 1):
            raise ArgumentError(f"keep is {keep!r}; it must be above 0 and at most 1: the share of the edges that are kept")
        self._columns, self._keep, self._shuffle, self._seed = columns, float(keep), shuffle, seed
        self._num_horizontal = rows * (columns - 1)
        options = (f", keep={float(keep)}" if keep < 1 else "") + (", shuffle" if shuffle else "")
        options += f", seed={seed}" if options else ""
        super().__init__(
            f"grid(rows={rows}, columns={columns}{options})", num_vertices=rows * columns,
            num_positions=self._num_horizontal + (rows - 1) * columns, keeps_all=keep == 1, weights=weights,
        )  # fmt: skip

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of the edges at positions ``first .. first + num_edges - 1``."""
        from oocgraph.kernels.generate import kept_edges, shuffle_ids

        position = np.arange(first, first + num_edges, dtype=np.int64)
        horizontal = position < self._num_horizontal
        across = position + position // max(1, self._columns - 1)
        source = np.where(horizontal, across, position - self._num_horizontal)
        target = source + np.where(horizontal, 1, self._columns)
        if self._keep < 1:
            kept = kept_edges(first, num_edges, self._keep, self._seed)
            source, target = source[kept], target[kept]
        if self._shuffle:
            for ids in (source, target):
                shuffle_ids(ids, self.num_vertices or 0, self._seed)
        return source, target


@known_keywords
def generate_grid(
    shape: tuple[int, int],
    path: str | os.PathLike[str],
    *,
    keep: float = 1.0,
    shuffle: bool = False,
    seed: int = 1,
    weights: tuple[int, int] | None = None,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Build a grid of streets straight into a store: thousands of levels of tiny frontiers.

    Parameters
    ----------
    shape
        Numbers of rows and columns; vertex ``(row, column)`` has the id ``row * columns + column``.
    path
        Folder to create.
    keep
        Share of the edges that are kept, above 0 and at most 1: a fifth of the streets is closed at 0.8.
    shuffle
        Give vertices random ids, so that neither these nor their order say where a vertex is.
    seed
        Chooses which edges are kept and the random ids.
    weights
        Smallest and largest integer weight of an edge: a hash of its ends, in the column ``weight``. None: the edges have no weights.
    overwrite, resources, memory_budget, progress
        As in `build_csr`.

    Returns
    -------
    CSRStore

    Raises
    ------
    OutputExistsError, OutputError
        `path` exists and `overwrite` is false, or cannot be written.
    BudgetError
        `memory_budget` is too small for the vertex arrays of this size.
    """
    from oocgraph.ingest.build import build_csr

    numbers = list(shape) if isinstance(shape, Iterable) else []
    if len(numbers) != 2 or not all(is_whole(one, 1) for one in numbers):
        raise ArgumentError(f"shape is {shape!r}; give the numbers of rows and columns, 1 or more each, such as (1000, 1000)")
    source = GridEdges(*map(int, numbers), keep=keep, shuffle=shuffle, seed=seed, weights=weights)
    return build_csr(source, path, overwrite=overwrite, resources=resources, memory_budget=memory_budget, progress=progress)
