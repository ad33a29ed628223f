"""The CUDA kernels of everything that runs on GPUs, compiled beforehand into the cache of `oocgraph.arrays.cubins`.

As for the processor's kernels, those of graphs of more than 2**32 vertices are left to the first such graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.kernels.gpu import search_source
from oocgraph.kernels.gpu_spmv import product_source

INDEX = np.dtype(np.uint32)


def device_sources() -> list[Source]:
    """Return what searches and products compile, the longest to compile first."""
    return [search_source(INDEX), *(product_source(INDEX, np.dtype(kind)) for kind in (np.float64, np.float32))]


def uncompiled(devices: Sequence[Device]) -> list[tuple[Device, Source]]:
    """Return what some devices lack."""
    return [(device, source) for source in device_sources() for device in devices if device.lacks(*source)]
