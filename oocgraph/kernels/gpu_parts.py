"""Parts of a graph on a GPU: launches of the kernel in ``cuda/parts.cu``."""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.kernels.gpu import Counter, GpuKernels, Launcher, cuda_source, index_name
from oocgraph.types import Array

SOURCES = ("common", "parts")
"""The files of ``kernels/cuda`` that parts use, beside those of searches."""


def part_names(index_dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the names of all kernels for local numbers of `index_dtype` (uint32 or int64)."""
    return (f"expand_part<{index_name(index_dtype)}>",)


def part_source(index_dtype: np.dtype[Any]) -> Source:
    """Return what parts compile; see `part_names`."""
    return Source(cuda_source(SOURCES), part_names(index_dtype))


class PartKernels(Launcher):
    """The compiled kernel of one device, launched on the stream of the kernels that list rows."""

    def __init__(self, device: Device, kernels: GpuKernels) -> None:
        self._kernels = kernels
        super().__init__(device, part_source(kernels.dtype), kernels.stream)

    def expand(
        self, rows: Any, begin: Array, e0: int, e1: int, edges: Array, base: int, seen: Array, found: Array, found_from: Array
    ) -> None:  # fmt: skip
        """Expand edges ``e0 .. e1 - 1`` of a batch's rows; what is new is added to `seen` and, with its row, to `found`: QUEUE_SIZE."""
        args = rows.vertex, begin, rows.offset, np.int64(e0), np.int64(e1), edges, np.int64(base), seen, found, found_from
        (name,) = part_names(self._kernels.dtype)
        self._launch(name, -(-(e1 - e0) // 4), *args, self._kernels.counters)

    def num_found(self) -> int:
        """Wait for the kernels launched so far; return how many vertices are listed."""
        return int(self._kernels.read()[Counter.QUEUE_SIZE])
