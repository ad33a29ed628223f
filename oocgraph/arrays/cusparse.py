"""The product of cuSPARSE, NVIDIA's library, which others are measured against.

In: a CSR matrix and a vector in host memory, a device. Out: a function that multiplies them there. CuPy brings the library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oocgraph.arrays.cuda import CudaDevice
from oocgraph.types import Array


def cusparse_product(device: Any, matrix: Any, x: Array) -> tuple[Callable[[], None], Callable[[], Array]] | None:
    """Bring a matrix and a vector to a GPU, for products by cuSPARSE.

    Parameters
    ----------
    device
        None is returned for one that is not CUDA's.
    matrix
        ``scipy.sparse.csr_array`` of float32 or float64.
    x : (num_columns,) like the matrix

    Returns
    -------
    multiply, result : callable
        The first multiplies, and waits for it; the second returns the last product on the host.
    """
    if not isinstance(device, CudaDevice):
        return None
    import cupy
    import cupyx.scipy.sparse

    with cupy.cuda.Device(device.ordinal):
        there = cupyx.scipy.sparse.csr_matrix(
            (cupy.asarray(matrix.data), cupy.asarray(matrix.indices), cupy.asarray(matrix.indptr)), shape=matrix.shape
        )
        vector: Any = cupy.asarray(x)
    last: list[Any] = []

    def multiply() -> None:
        with cupy.cuda.Device(device.ordinal):
            last[:] = [there @ vector]
            cupy.cuda.get_current_stream().synchronize()

    def result() -> Array:
        found: Array = last[0].get()
        return found

    return multiply, result
