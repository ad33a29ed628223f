"""A matrix times a vector on the GPUs of this machine: a part with as many nonzeros for each, in its memory or streamed through it.

In: an operand, devices. Out: the result in host memory; of a CuPy matrix, which is multiplied where it is, a CuPy vector.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022; see `oocgraph.products.device_matrix`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import isnan
from typing import Any

import numpy as np

from oocgraph.algorithms.opened_matrix import OpenedMatrix
from oocgraph.algorithms.operands import GraphOperand, MatrixOperand
from oocgraph.arrays import Device
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.kernels.gpu_spmv import GpuProductKernels
from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import SLACK_BYTES, Budget
from oocgraph.products.device_matrix import DeviceMatrix
from oocgraph.products.device_product import add_piece, device_dtype
from oocgraph.products.product_checks import NAN_WEIGHT, check_shape, check_values_dtype, checked_piece, compute_dtype, has_nan, refuse_nan
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import stored_matrix
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import BLOCK_BYTES
from oocgraph.types import Array

TILE_WIDTH = 32
"""Vectors of a dense right side that are multiplied at once, where there is room: a thread for each in a warp."""

Opened = OpenedGraph | OpenedMatrix | Unopened

OpenedForGraph = OpenedGraph | Unopened


def multiply_on(
    devices: Sequence[Device], operand: GraphOperand | MatrixOperand, opened: Opened, *, device_memory_budget: str | int | None
) -> Array:  # fmt: skip
    """Multiply on devices; see `oocgraph.spmv`. `device_memory_budget` is of each device; a graph that is open keeps the matrix there.

    Raises
    ------
    BudgetError
        One of the budgets does not do.
    """
    multiply = _of_graph if isinstance(operand, GraphOperand) else _of_matrix
    return opened.within(lambda budget: multiply(devices, operand, opened, budget, device_memory_budget))  # type: ignore[arg-type]


def _of_graph(
    devices: Sequence[Device], operand: GraphOperand, opened: OpenedForGraph, budget: Budget, requested: str | int | None
) -> Array:
    store, ring, column = operand.store, operand.semiring, operand.column
    budget.reserve("vertex ids", BLOCK_BYTES)
    budget.reserve("threads and compiled code", SLACK_BYTES)
    budget.reserve("the result", operand.result_bytes)
    y = operand.identities()

    with stored_on(
        devices, store, opened, budget, transpose=operand.transpose, column=column, dtype=operand.dtype, semiring=ring, requested=requested,
        width=operand.width,
    ) as matrix:  # fmt: skip
        order = opened.vertex_order(store, budget)
        bad = _each_tile(matrix, operand, budget, order.to_store, lambda sums, own: order.to_input(sums, y[:, own]))
    if bad and column is not None:
        refuse_nan(((part.start, part.values.read()) for share in matrix.shares for part in share.pieces if part.values is not None),
                   operand.values_name)  # fmt: skip
    return operand.as_given(y)


def _of_matrix(devices: Sequence[Device], operand: MatrixOperand, opened: Opened, budget: Budget, requested: str | int | None) -> Array:
    ring, (part,) = operand.semiring, operand.parts(1)
    budget.reserve("the result", operand.result_bytes)
    y = operand.identities()

    def result(sums: Array, own: slice) -> None:
        y[:, own] = sums

    options: dict[str, Any] = {"read": None, "keep": opened.keeps, "width": operand.width}
    key = (operand.transpose, np.dtype(operand.dtype), ring.is_boolean, ring.uses_values)
    with opened.on_devices(key, lambda: _opened(devices, part, operand.dtype, ring, opened, budget, requested, **options)) as matrix:
        bad = _each_tile(matrix, operand, budget, lambda x, target: np.copyto(target, x, casting="unsafe"), result)
    if bad and ring.uses_values:
        refuse_nan([(0, operand.matrix.data)], "the matrix")
    return operand.as_given(y)


def _each_tile(
    matrix: DeviceMatrix, operand: GraphOperand | MatrixOperand, budget: Budget, fill: Callable[[Array, Array], None],
    result: Callable[[Array, slice], None],
) -> bool:  # fmt: skip
    """Multiply as many vectors at once as there is room for; return whether a result is NaN."""
    ring, x, bad = operand.semiring, operand.x.reshape(operand.x.shape[0], operand.width), False
    each = matrix.host_vector_bytes
    width = max(1, min(x.shape[1], matrix.most_width, matrix.width + budget.available_bytes // each if each else TILE_WIDTH))
    if width > matrix.width:
        budget.reserve("pinned vectors", (width - matrix.width) * each)
    for start in range(0, x.shape[1], width):
        own = slice(start, min(start + width, x.shape[1]))
        matrix.set_width(own.stop - own.start)
        fill(x[:, own], matrix.x)
        sums = matrix.multiply(ring)
        bad = bad or has_nan(sums.reshape(-1))
        result((sums > 0).view(np.uint8) if ring.is_boolean else sums, own)
    return bad


@contextmanager
def stored_on(
    devices: Sequence[Device], store: CSRStore, opened: OpenedForGraph, budget: Budget, *, transpose: bool, column: str | None,
    dtype: np.dtype[Any], semiring: Semiring, requested: str | int | None, width: int = 1, whole_rows: bool = False,
    repeats: bool = False,
) -> Iterator[DeviceMatrix]:  # fmt: skip
    """Yield the matrix of a graph on devices: where the graph is open, the one of the last call, else for this call.

    Parameters
    ----------
    budget
        Of the host, charged with what is made; inside of `OpenedGraph.within`.
    requested
        Device memory that may be held, of each device.
    transpose, column, dtype, semiring, width, whole_rows
        As for `DeviceMatrix`; `column` is the edge column of the values, None: 1 each.
    repeats
        Whether one call multiplies many times.

    Raises
    ------
    BudgetError
        There is too little memory on a device, or on the host.
    """
    transpose, whole_rows = transpose and store.attributes.directed, whole_rows and len(devices) > 1
    key = (transpose, column, np.dtype(dtype), semiring.is_boolean, whole_rows)
    matrix = stored_matrix(store, transpose=transpose, column=column)

    def read(piece: Any, buffers: dict[str, Array]) -> Any:
        return checked_piece(piece.load(buffers), semiring, f"{column and store.attributes.input_column(column)} of {store.url}")

    group = "in" if transpose else "out"
    options: dict[str, Any] = {
        "read": read, "keep": opened.keeps or repeats, "width": width, "whole_rows": whole_rows,
        "first_indices": opened.first_indices(group), "host_indices": opened.host_indices(group),
    }  # fmt: skip
    with opened.on_devices(key, lambda: _opened(devices, matrix, dtype, semiring, opened, budget, requested, **options)) as found:
        yield found


def _opened(
    devices: Sequence[Device], matrix: Any, dtype: np.dtype[Any], semiring: Semiring, opened: Opened, budget: Budget,
    requested: str | int | None, *, width: int, **options: Any,
) -> DeviceMatrix:  # fmt: skip
    """Bring a matrix to devices, with room for as many vectors, or for one where the devices or the host lack that."""
    limits, kind = device_rooms(devices, opened, requested), device_dtype(dtype, semiring)
    held = [opened.held_on_device(number) for number in range(len(devices))]

    def charged(width: int) -> DeviceMatrix | None:
        found = DeviceMatrix(devices, matrix, kind, semiring, device_limits=limits, device_held=held, width=width, **options)
        if width > found.most_width:
            return None
        found.charge(budget, hold=options["keep"])
        return found

    wide = None
    if width > 1:
        with suppress(BudgetError):
            wide = charged(min(width, TILE_WIDTH))
    found = wide or charged(1)
    assert found is not None
    found.open()
    return found


def device_rooms(devices: Sequence[Device], opened: Opened, requested: str | int | None) -> list[int]:
    """Return the bytes of each device's memory that a computation may hold beside what is held for its graph already."""
    allocated = [opened.allocated_on_device(number) for number in range(len(devices))]
    limits = [device_limit_bytes(device, requested, held_bytes=own) for device, own in zip(devices, allocated, strict=True)]
    return [limit - opened.held_on_device(number) for number, limit in enumerate(limits)]


def multiply_where_it_is(
    device: Device, matrix: Any, x: Any, semiring: Semiring, *, transpose: bool, device_memory_budget: str | int | None
) -> Any:  # fmt: skip
    """Multiply a matrix that is in device memory; see `oocgraph.spmv`.

    Parameters
    ----------
    device
        Where the matrix is, current for CuPy's operators; what others do there with it must have ended.
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
    if semiring.is_boolean and semiring.uses_values:  # which no result shows
        _refuse_nan_there(matrix.data, NAN_WEIGHT.format("{}", "the matrix"))
    dtype = device_dtype(compute_dtype(x.dtype, matrix.data.dtype if semiring.uses_values else None, semiring), semiring)
    budget = Budget(device_limit_bytes(device, device_memory_budget), baseline_bytes=0)
    vectors = part.shape[0] * dtype.itemsize + 8 * (part.num_lines + 1)
    budget.reserve(f"the product on {device.name}", vectors + _converted_bytes(part, x, dtype, semiring))
    arrays, own = _arrays(part, dtype, semiring), x.astype(dtype, copy=False)
    kernels = GpuProductKernels(device, arrays["indices" if "indices" in arrays else "rows"].dtype, dtype)
    y, offset = device.empty(part.shape[0], dtype), device.empty(part.num_lines + 1, np.int64)
    device.wait_for_others()
    kernels.set_values(y, semiring.identity)
    if part.num_entries:
        add_piece(kernels, part, arrays, offset, semiring, own, y)
    device.synchronize(kernels.stream)
    if semiring.is_boolean:
        return y > 0
    if _has_nan_there(y) and semiring.uses_values:  # a NaN among the values makes one here; values are read once more only then
        _refuse_nan_there(matrix.data, NAN_WEIGHT.format("{}", "the matrix"))
    return y


def _converted_bytes(part: Any, x: Any, dtype: np.dtype[Any], semiring: Semiring) -> int:
    """Return the bytes of arrays that `multiply_where_it_is` has to convert for its kernels."""
    found = 0 if x.dtype == dtype else dtype.itemsize * int(x.size)
    for name in _index_names(part):
        array = getattr(part, name)
        found += 0 if array.dtype.itemsize in (4, 8) else 8 * int(array.size)
    if semiring.uses_values and (semiring.is_boolean or part.values.dtype != dtype):
        found += (dtype.itemsize + semiring.is_boolean) * int(part.values.size)
    return found


def _has_nan_there(vector: Any) -> bool:
    """Whether a device's array has a NaN."""
    return vector.dtype.kind == "f" and bool(vector.size) and isnan(float(vector.min()))


def _refuse_nan_there(vector: Any, message: str) -> None:
    """Raise with the position of the first NaN of a device's array."""
    if _has_nan_there(vector):
        raise ArgumentError(message.format(f"{int((vector != vector).argmax()):,}"))  # noqa: PLR0124


def _index_names(part: Any) -> list[str]:
    return [name for name in ("indices", "pointers", "rows", "columns") if hasattr(part, name)]


def _arrays(part: Any, dtype: np.dtype[Any], semiring: Semiring) -> dict[str, Any]:
    """Return the part's arrays as kernels take them, converted on the device where they have to be."""
    found: dict[str, Any] = {}
    for name in _index_names(part):
        array = getattr(part, name)
        found[name] = array.view(np.uint32) if array.dtype.itemsize == 4 else array.astype(np.int64, copy=False)
    if semiring.uses_values:
        found["values"] = (part.values != 0).astype(dtype) if semiring.is_boolean else part.values.astype(dtype, copy=False)
    return found
