"""Products on a GPU: launches of the kernels in ``cuda/spmv.cu``.

In: arrays in device memory (`oocgraph.arrays.Device`). A launch returns at once. Booleans are floats here: an element of ``or_and`` is true
if the sum of ones is above 0, which no rounding brings back to 0; so values are 1 or 0, or none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.kernels.gpu import BLOCK, BLOCKS_PER_MULTIPROCESSOR, cuda_source, index_name
from oocgraph.kernels.semirings import Semiring
from oocgraph.types import Array

SOURCES = ("common", "spmv")
"""The files of ``kernels/cuda`` that products use."""

SHARE_EDGES = 2048
"""Edges that a block takes at once, as in ``spmv.cu``."""

PLUS, MIN = 0, 1
"""How kernels add, as in ``spmv.cu``."""

_NULL = np.uint64(0)
"""A pointer to nothing."""


def product_names(index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the names of all kernels for columns and rows of `index_dtype` (uint32 or int64) and elements of `dtype`."""
    index, value = index_name(index_dtype), _value_name(dtype)
    products = [f"{name}<{index}, {value}, {ring}>" for name in ("spmv", "spmv_columns") for ring in (PLUS, MIN)]
    pointers = [f"local_pointers<{index_name(np.dtype(kind))}>" for kind in (np.uint32, np.int64)]
    return (*products, *pointers, f"line_pointers<{index}>", f"set_values<{value}>")


def product_source(index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> Source:
    """Return what products of these dtypes compile; see `product_names`."""
    return Source(cuda_source(SOURCES), product_names(index_dtype, dtype))


class GpuProductKernels:
    """The compiled kernels of one device for some dtypes, launched on one stream.

    Parameters
    ----------
    device
        Where the arrays are.
    index_dtype
        Of columns and rows: uint32 or int64.
    dtype
        Of elements and values: float32 or float64.

    Attributes
    ----------
    stream
        Where kernels are launched.
    """

    def __init__(self, device: Device, index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> None:
        self.device, self.index_dtype, self.dtype = device, np.dtype(index_dtype), np.dtype(dtype)
        self._index, self._value = index_name(self.index_dtype), _value_name(self.dtype)
        source = product_source(self.index_dtype, self.dtype)
        module = device.module(*source)
        self._functions = {name: module.get_function(name) for name in source.names}
        self._max_blocks = BLOCKS_PER_MULTIPROCESSOR * device.num_multiprocessors
        self.stream = device.stream()

    def set_values(self, y: Array, value: float) -> None:
        """Set all elements of a vector."""
        if y.size:
            self._launch(f"set_values<{self._value}>", -(-y.size // BLOCK), y, np.int64(y.size), self.dtype.type(value))

    def local_pointers(self, pointers: Array, start: int, stop: int, offset: Array) -> None:
        """Write pointers (uint32 or int64), cut to edges ``start .. stop - 1``, from 0 to `offset` ((pointers.size,) int64)."""
        sizes = np.int64(pointers.size), np.int64(start), np.int64(stop)
        self._launch(f"local_pointers<{index_name(pointers.dtype)}>", -(-pointers.size // BLOCK), pointers, *sizes, offset)

    def line_pointers(self, lines: Array, first_line: int, num_lines: int, offset: Array) -> None:
        """Write where each line begins among ascending `lines` to `offset`: (num_lines + 1,) int64."""
        sizes = np.int64(lines.size), np.int64(first_line), np.int64(num_lines)
        self._launch(f"line_pointers<{self._index}>", -(-(lines.size + 1) // BLOCK), lines, *sizes, offset)

    def multiply_rows(self, semiring: Semiring, offset: Array, indices: Array, values: Array | None, x: Array, y: Array) -> None:
        """Add to `y` ((num_rows,)) the product of rows that begin at `offset` ((num_rows + 1,) int64, local) and the whole vector."""
        identity = self.dtype.type(semiring.identity)
        self._multiply("spmv", semiring, offset, y.size, indices, values, x, y, (np.int64(0),), (identity,))

    def multiply_columns(self, semiring: Semiring, offset: Array, indices: Array, values: Array | None, x: Array, y: Array) -> None:
        """Add to the whole of `y` the product of columns that begin at `offset` and their elements `x` ((num_columns,))."""
        self._multiply("spmv_columns", semiring, offset, x.size, indices, values, x, y, (), ())

    def _multiply(
        self, name: str, semiring: Semiring, offset: Array, num_lines: int, indices: Array, values: Array | None, x: Array, y: Array,
        before: tuple[Any, ...], behind: tuple[Any, ...],
    ) -> None:  # fmt: skip
        if not indices.size:
            return
        ring = MIN if semiring.identity else PLUS
        arrays = indices, _NULL if values is None else values, x, y
        ends = np.int64(0), np.int64(indices.size)
        blocks = -(-indices.size // SHARE_EDGES)
        self._launch(f"{name}<{self._index}, {self._value}, {ring}>", blocks, offset, np.int64(num_lines), *arrays, *before, *ends, *behind)

    def _launch(self, name: str, num_blocks: int, *args: Any) -> None:
        self.device.launch(self._functions[name], max(1, min(num_blocks, self._max_blocks)), BLOCK, args, self.stream)


def _value_name(dtype: np.dtype[Any]) -> str:
    return {"float32": "float", "float64": "double"}[np.dtype(dtype).name]
