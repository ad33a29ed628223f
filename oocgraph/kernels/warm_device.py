"""The CUDA kernels of everything that runs on GPUs, compiled beforehand into the cache of `oocgraph.arrays.cubins`.

Those of graphs of more than 2**32 vertices, and of distances of 64 bits, are left to the first that needs them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.kernels.gpu import search_source
from oocgraph.kernels.gpu_parts import part_source
from oocgraph.kernels.gpu_paths import path_source
from oocgraph.kernels.gpu_spmv import product_source

INDEX = np.dtype(np.uint32)


def device_sources() -> list[Source]:
    """Return what searches, products, shortest paths and parts compile, the longest to compile first."""
    products = (product_source(INDEX, np.dtype(kind)) for kind in (np.float64, np.float32))
    paths = (path_source(INDEX, np.dtype(kind)) for kind in (np.int32, np.float64))
    return [search_source(INDEX), *products, *paths, part_source(INDEX)]


def uncompiled(devices: Sequence[Device]) -> list[tuple[Device, Source]]:
    """Return what some devices lack."""
    return [(device, source) for source in device_sources() for device in devices if device.lacks(*source)]
