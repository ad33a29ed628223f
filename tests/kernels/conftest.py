"""Devices on which CUDA kernels are tested: the CPU, in several thread orders, and a real one where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.kernels.gpu import GpuKernels


class Gpu:
    """A device with its compiled kernels, and copies to and from it."""

    def __init__(self, device):
        self.device = device
        self._kernels = {}
        self._stream = device.stream()

    def kernels(self, dtype):
        """Kernels for ids of `dtype`, compiled once."""
        dtype = np.dtype(dtype)
        if dtype not in self._kernels:
            self._kernels[dtype] = GpuKernels(self.device, dtype)
        return self._kernels[dtype]

    def pin(self, values):
        """Copy a host array to pinned memory."""
        values = np.ascontiguousarray(values)
        pinned = self.device.pinned(values.nbytes).view(values.dtype)
        pinned[:] = values
        return pinned

    def up(self, values):
        """Copy a host array to the device."""
        target = self.device.empty(values.size, values.dtype)
        if values.size:
            self.device.copy(self.pin(values), target, self._stream)
            self.device.synchronize(self._stream)
        return target

    def down(self, source):
        """Copy a device array to the host, after all kernels."""
        for kernels in self._kernels.values():
            self.device.synchronize(kernels.stream)
        out = self.device.pinned(source.size * source.dtype.itemsize).view(source.dtype)
        if source.size:
            self.device.copy(source, out, self._stream)
            self.device.synchronize(self._stream)
        return out.copy()


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(seed, marks=pytest.mark.shim, id=f"order-{seed}") for seed in range(2)),
        pytest.param(None, marks=pytest.mark.gpu, id="gpu"),
    ],
)
def gpu(request):
    """Each device in turn."""
    if request.param is None:
        return Gpu(request.getfixturevalue("cuda_device"))
    from tests.cuda_on_cpu.device import CpuDevice

    return Gpu(CpuDevice(seed=request.param))
