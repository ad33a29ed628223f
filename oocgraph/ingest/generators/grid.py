"""A grid of streets: every vertex is joined to its right and lower neighbour; the depth is rows + columns - 2.

The opposite of a Kronecker graph: thousands of levels of tiny frontiers. Vertex ``(row, column)`` has the id
``row * columns + column``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from oocgraph.arguments import known_keywords
from oocgraph.errors import ArgumentError
from oocgraph.ingest.generators.generated import GeneratedEdges
from oocgraph.resources import Resources, is_count
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption


class GridEdges(GeneratedEdges):
    """Edges of a grid of `rows` x `columns` vertices, undirected: first the horizontal ones, then the vertical.

    Examples
    --------
    >>> source, target = GridEdges(2, 3).edges(0, 7)
    >>> list(zip(source.tolist(), target.tolist()))
    [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    """

    def __init__(self, rows: int, columns: int) -> None:
        if rows < 1 or columns < 1:
            raise ArgumentError(f"a grid of {rows} x {columns} has no vertices; rows and columns must be at least 1")
        self._columns = columns
        self._num_horizontal = rows * (columns - 1)
        super().__init__(
            f"grid(rows={rows}, columns={columns})", num_vertices=rows * columns, num_rows=self._num_horizontal + (rows - 1) * columns
        )

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of edges ``first .. first + num_edges - 1``."""
        position = np.arange(first, first + num_edges, dtype=np.int64)
        horizontal = position < self._num_horizontal
        across = position + position // max(1, self._columns - 1)
        source = np.where(horizontal, across, position - self._num_horizontal)
        return source, source + np.where(horizontal, 1, self._columns)


@known_keywords
def generate_grid(
    shape: tuple[int, int],
    path: str | os.PathLike[str],
    *,
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
    if len(numbers) != 2 or not all(map(is_count, numbers)):
        raise ArgumentError(f"shape is {shape!r}; give the numbers of rows and columns, 1 or more each, such as (1000, 1000)")
    source = GridEdges(*map(int, numbers))
    return build_csr(source, path, overwrite=overwrite, resources=resources, memory_budget=memory_budget, progress=progress)
