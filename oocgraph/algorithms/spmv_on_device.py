"""A matrix times a vector on the GPUs of this machine: a part with as many nonzeros for each, streamed through its memory.

In: an operand, devices. Out: the result in host memory; of a CuPy matrix, which is multiplied where it is, a CuPy vector.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022; see `oocgraph.products.device_product`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oocgraph.algorithms.operands import GraphOperand, MatrixOperand
from oocgraph.arrays import Device
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.errors import ArgumentError
from oocgraph.kernels.gpu_spmv import GpuProductKernels
from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import Budget
from oocgraph.products.device_product import DeviceShare, add_piece, charge_host, device_dtype, multiply_on_devices
from oocgraph.products.product_checks import check_shape, check_values_dtype, checked_piece, compute_dtype, has_nan, refuse_nan
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import stored_matrix
from oocgraph.store.input_order import BLOCK_BYTES
from oocgraph.types import Array


def multiply_on(
    devices: Sequence[Device], operand: GraphOperand | MatrixOperand, *, limit_bytes: int, device_memory_budget: str | int | None
) -> Array:  # fmt: skip
    """Multiply on devices; see `oocgraph.spmv`. `device_memory_budget` is of each device.

    Raises
    ------
    BudgetError
        One of the budgets does not do.
    """
    if isinstance(operand, GraphOperand):
        return _of_graph(devices, operand, limit_bytes, device_memory_budget)
    return _of_matrix(devices, operand, limit_bytes, device_memory_budget)


def _of_graph(devices: Sequence[Device], operand: GraphOperand, limit_bytes: int, requested: str | int | None) -> Array:
    store, ring, column = operand.store, operand.semiring, operand.column
    matrix = stored_matrix(store, transpose=operand.transpose, column=column)
    parts = balanced_partition(matrix, len(devices))
    shares = _shares(devices, parts, operand, requested, partial(_read_stored, operand))
    budget = Budget(limit_bytes)
    with budget.all_or_none():
        budget.reserve("vectors", operand.vector_bytes + 2 * store.num_rows * shares[0].dtype.itemsize)
        budget.reserve("vertex ids", BLOCK_BYTES)
        charge_host(shares, budget)
    sums = ring.zeros(store.num_rows, operand.dtype)
    multiply_on_devices(shares, operand.in_store_order().astype(shares[0].dtype, copy=False), sums)
    if has_nan(sums) and column is not None:
        refuse_nan(((part.start, part.values.read()) for share in shares for part in share.pieces if part.values is not None),
                   operand.values_name)  # fmt: skip
    return operand.in_input_order(sums)


def _of_matrix(devices: Sequence[Device], operand: MatrixOperand, limit_bytes: int, requested: str | int | None) -> Array:
    ring = operand.semiring
    shares = _shares(devices, operand.parts(len(devices)), operand, requested, None)
    budget = Budget(limit_bytes)
    with budget.all_or_none():
        budget.reserve("vectors", (operand.num_rows + operand.x.size) * shares[0].dtype.itemsize + operand.converted_bytes)
        charge_host(shares, budget)
    y = ring.zeros(operand.num_rows, operand.dtype)
    multiply_on_devices(shares, operand.converted().astype(shares[0].dtype, copy=False), y)
    if has_nan(y) and ring.uses_values:
        refuse_nan([(0, operand.matrix.data)], "the matrix")
    return y.view(np.bool_) if ring.is_boolean else y


def _shares(
    devices: Sequence[Device], parts: Sequence[Any], operand: GraphOperand | MatrixOperand, requested: str | int | None, read: Any
) -> list[DeviceShare]:  # fmt: skip
    dtype = device_dtype(operand.dtype, operand.semiring)
    return [
        DeviceShare(device, part, dtype, operand.semiring, device_limit=device_limit_bytes(device, requested), read=read)
        for device, part in zip(devices, parts, strict=True)
    ]


def _read_stored(operand: GraphOperand, piece: Any, buffers: dict[str, Array]) -> Any:
    return checked_piece(piece.load(buffers), operand.semiring, operand.values_name)


def multiply_where_it_is(
    device: Device, matrix: Any, x: Any, semiring: Semiring, *, transpose: bool, device_memory_budget: str | int | None
) -> Any:  # fmt: skip
    """Multiply a matrix that is in device memory; see `oocgraph.spmv`.

    Parameters
    ----------
    device
        Where the matrix is; what others do there with it must have ended.
    x : (num_columns,)
        In its memory, too.

    Returns
    -------
    (num_rows,) float32, float64 or bool
        In its memory.
    """
    (part,) = balanced_partition(matrix, 1)
    part = part.transposed() if transpose else part
    check_values_dtype(matrix.data.dtype if semiring.uses_values else None)
    num_columns = part.shape[1]
    check_shape(x, num_columns, semiring, f"the matrix has {num_columns:,} columns" + (" when transposed" if transpose else ""))
    _refuse_nan_there(x, "x is NaN at position {}; set a number there")
    if semiring.uses_values:
        _refuse_nan_there(matrix.data, "weight {} of the matrix is NaN; give every edge a number, or drop those without")
    dtype = device_dtype(compute_dtype(x.dtype, matrix.data.dtype if semiring.uses_values else None, semiring), semiring)
    budget = Budget(device_limit_bytes(device, device_memory_budget), baseline_bytes=0)
    entry_bytes = (dtype.itemsize if semiring.uses_values else 0) + 2 * 8  # where values and indices have to be converted
    budget.reserve(f"the product on {device.name}", sum(part.shape) * dtype.itemsize + 16 * (part.num_lines + 1) + part.stop * entry_bytes)
    arrays, own = _arrays(part, dtype, semiring), x.astype(dtype)
    kernels = GpuProductKernels(device, arrays["indices" if "indices" in arrays else "rows"].dtype, dtype)
    y, offset = device.empty(part.shape[0], dtype), device.empty(part.num_lines + 1, np.int64)
    device.wait_for_others()
    kernels.set_values(y, semiring.identity)
    if part.num_entries:
        add_piece(kernels, part, arrays, offset, semiring, own, y)
    device.synchronize(kernels.stream)
    return y > 0 if semiring.is_boolean else y


def _refuse_nan_there(vector: Any, message: str) -> None:
    """Raise with the position of the first NaN of a device's array."""
    if vector.dtype.kind == "f" and vector.size:
        bad = ~((vector >= 0) | (vector < 0))
        if bool(bad.any()):
            raise ArgumentError(message.format(f"{int(bad.argmax()):,}"))


def _arrays(part: Any, dtype: np.dtype[Any], semiring: Semiring) -> dict[str, Any]:
    """Return the part's arrays as kernels take them, converted on the device where they have to be."""
    found: dict[str, Any] = {}
    names = [name for name in ("indices", "pointers", "rows", "columns") if hasattr(part, name)]
    for name in names:
        array = getattr(part, name)
        found[name] = array.view(np.uint32) if array.dtype.itemsize == 4 else array.astype(np.int64)
    if semiring.uses_values:
        found["values"] = (part.values != 0).astype(dtype) if semiring.is_boolean else part.values.astype(dtype)
    return found
