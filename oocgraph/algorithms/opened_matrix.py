"""A matrix in memory, open for many products: on GPUs it is brought to them once.

In: a sparse matrix, resources. Out: `OpenedMatrix`, what `oocgraph.open_runtime` returns for one; `oocgraph.spmv` alone takes it.
"""

from __future__ import annotations

from typing import Any

from oocgraph.engine.opened import Opened
from oocgraph.memory import bytes_before
from oocgraph.resources import Resources
from oocgraph.sparse.balanced import balanced_partition


class OpenedMatrix(Opened):
    """A sparse matrix in host memory for any number of products, which take turns. Use it in a ``with`` statement.

    Parameters
    ----------
    matrix
        In CSR, CSC or sorted COO; it must not be changed meanwhile.
    resources
        Memory, threads and device.

    Raises
    ------
    ArgumentError
        The matrix cannot be cut.
    """

    def __init__(self, matrix: Any, resources: Resources) -> None:
        balanced_partition(matrix, 1)  # which refuses what cannot be cut
        super().__init__(f"a matrix of shape {matrix.shape}", resources.limit_bytes, bytes_before(resources.limit_bytes))
        self.matrix, self.resources = matrix, resources
