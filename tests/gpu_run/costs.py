"""What no test shows of a GPU: time to a context, to compiled kernels, of a launch, of a read, of page-locked memory.

Run it twice: the second time kernels come from the cache of compiled ones. The first three figures are those that
`oocgraph.arrays.start_up` estimates.
"""

from __future__ import annotations

import time

import numpy as np

LAUNCHES, READS = 2000, 500
PINNED = (1 << 24, 1 << 30, 4 << 30)
"""Bytes of page-locked memory."""


def measure(open_device, pinned=PINNED, launches=LAUNCHES, reads=READS):
    """Iterate over (what, value)."""
    from oocgraph.kernels.gpu import GpuKernels
    from oocgraph.kernels.warm_device import uncompiled

    began = time.perf_counter()
    device = open_device()
    yield "seconds to a context", time.perf_counter() - began
    yield "sources that are not compiled", float(len(uncompiled([device])))
    began = time.perf_counter()
    kernels = GpuKernels(device, np.dtype(np.uint32))
    device.synchronize(kernels.stream)
    yield "seconds to compiled kernels", time.perf_counter() - began
    words = device.empty(1 << 20, np.uint64)
    kernels.fill(words, 0)
    device.synchronize(kernels.stream)
    began = time.perf_counter()
    for _ in range(launches):
        kernels.fill(words, 0)
    yield "microseconds of the host for a launch", 1e6 * (time.perf_counter() - began) / launches
    device.synchronize(kernels.stream)
    began = time.perf_counter()
    for _ in range(reads):
        kernels.read()
    yield "microseconds to read the counters", 1e6 * (time.perf_counter() - began) / reads
    for num_bytes in pinned:
        began = time.perf_counter()
        memory = device.pinned(num_bytes)
        yield f"seconds to lock {num_bytes >> 20} MiB", time.perf_counter() - began
        began = time.perf_counter()
        del memory
        yield f"seconds to let {num_bytes >> 20} MiB go", time.perf_counter() - began


if __name__ == "__main__":
    from oocgraph.arrays import device_choice

    for what, value in measure(lambda: device_choice("cuda").device):
        print(what, value, flush=True)
