"""What tests of CUDA kernels share: the kernels of some files as one module, and arrays to and from a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from oocgraph.arrays import device_choice
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice

DEVICES = (
    *(pytest.param(seed, marks=needs_shim, id=f"order-{seed}") for seed in range(4)),
    pytest.param(None, marks=pytest.mark.gpu, id="gpu"),
)
"""Parameters of `open_device`: the CPU with several orders of threads, and a GPU."""

COUNTERS = (
    "FRONTIER_VERTICES", "FRONTIER_EDGES", "FRONTIER_PULL_EDGES", "FOUND", "UNDECIDED", "SAMPLED", "PROBES", "SAMPLE_FOUND",
    "SAMPLE_UNDECIDED", "NUM_ROWS", "NUM_EDGES", "NUM_PAGES", "QUEUE_SIZE", "NUM_BEYOND", "SCRATCH", "NUM_LINES",
    "FRONTIER_PAGES",
)  # fmt: skip
NUM_COUNTERS = 20
C_NAME = {
    np.dtype(np.uint32): "unsigned int",
    np.dtype(np.int64): "long long",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}


def source(*names: str) -> str:
    """Join the CUDA files of these names."""
    folder = files("oocgraph.kernels") / "cuda"
    return "\n".join((folder / f"{name}.cu").read_text() for name in names)


def open_device(seed: int | None) -> Any:
    """Open the CPU with an order of threads; None: a GPU, or skip the test."""
    if seed is not None:
        return CpuDevice(seed=seed)
    device, reason = device_choice("auto")
    if device is None:
        pytest.skip(f"no GPU: {reason}")
    return device


class Bench:
    """A device with a compiled module, and short ways to use both."""

    def __init__(self, device: Any, code: str, names: Sequence[str]) -> None:
        self.device, self.module, self.stream = device, device.module(code, names), device.stream()

    def put(self, array: np.ndarray) -> Any:
        """Copy to the device."""
        array = np.ascontiguousarray(array)
        pinned = self.device.pinned(max(1, array.nbytes))[: array.nbytes].view(array.dtype)
        pinned[:] = array.reshape(-1)
        target = self.device.empty(array.size, array.dtype)
        if array.size:
            self.device.copy(pinned, target, self.stream)
            self.device.synchronize(self.stream)
        return target

    def get(self, array: Any) -> np.ndarray:
        """Copy to the host."""
        if not array.size:
            return np.empty(0, array.dtype)
        pinned = self.device.pinned(array.nbytes).view(array.dtype)
        self.device.copy(array, pinned, self.stream)
        self.device.synchronize(self.stream)
        return np.array(pinned)

    def launch(self, name: str, grid: int, block: int, *args: Any) -> None:
        """Run a kernel and wait for it."""
        self.device.launch(self.module.get_function(name), grid, block, args, self.stream)
        self.device.synchronize(self.stream)


def bitmap(vertices: Iterable[int], num_vertices: int) -> np.ndarray:
    """Mark some vertices in a bitmap: 32-bit words, an even number of them."""
    bits = np.zeros(-(-num_vertices // 64) * 64, np.uint8)
    bits[np.fromiter(vertices, np.int64)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


def marked(words: np.ndarray) -> np.ndarray:
    """List the vertices that are marked in a bitmap, ascending."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def counters(**values: int) -> np.ndarray:
    """Make counters, named values set, the others 0."""
    array = np.zeros(NUM_COUNTERS, np.int64)
    for name, value in values.items():
        array[COUNTERS.index(name)] = value
    return array
