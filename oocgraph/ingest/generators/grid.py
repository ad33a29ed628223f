"""A grid of streets: every vertex is joined to its right and lower neighbour; the depth is rows + columns - 2.

The opposite of a Kronecker graph: thousands of levels of tiny frontiers. Vertex ``(row, column)`` has the id
``row * columns + column``.
"""

from __future__ import annotations

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.ingest.generators.generated import GeneratedEdges
from oocgraph.types import Array


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
            raise OocGraphError(f"a grid of {rows} x {columns} has no vertices; --rows and --columns must be at least 1")
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
