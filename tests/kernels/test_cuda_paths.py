"""What edges do to distances and parents: weights of every dtype, on the CPU in several orders of threads, and on a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from oocgraph.kernels import gpu_paths
from oocgraph.kernels.gpu import Counter, GpuKernels
from oocgraph.kernels.gpu_paths import PathKernels, Told, weight_kind
from tests.kernels.on_device import DEVICES, open_device

UNREACHED = {"int32": np.int32(2**31 - 1), "int64": np.int64(2**63 - 1), "float64": np.float64(np.inf)}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
KINDS = [*(("int32", kind) for kind in INTEGERS), ("int64", "uint32"), ("int64", "int64"), ("float64", "float32"), ("float64", "float64")]


class Memory:
    """Arrays to and from a device, in the order of a stream."""

    def __init__(self, device, stream):
        self.device, self.stream = device, stream

    def put(self, values, target=None):
        target = self.device.empty(values.size, values.dtype) if target is None else target
        pinned = self.device.pinned(values.nbytes).view(values.dtype)
        pinned[:] = values
        self.device.copy(pinned, target, self.stream)
        self.device.synchronize(self.stream)
        return target

    def get(self, array):
        pinned = self.device.pinned(array.nbytes).view(array.dtype)
        self.device.copy(array, pinned, self.stream)
        self.device.synchronize(self.stream)
        return np.array(pinned)


@pytest.mark.parametrize("seed", DEVICES)
@pytest.mark.parametrize("index", [np.uint32, np.int64])
@pytest.mark.parametrize(("distance", "weight"), KINDS)
def test_one_look_at_a_piece_of_the_edges(seed, index, distance, weight):
    """Each target gets the least sum, and is pending if that is less; its parent is the smallest that gives it. No target has a row."""
    device, rng, unreached = open_device(seed), np.random.default_rng(seed or 0), UNREACHED[distance]
    n, num_rows = 300, 120
    degree = rng.choice([0, 0, 1, 3, 70, 700], num_rows)
    offset, start = np.concatenate([[0], np.cumsum(degree)]), np.sort(rng.integers(0, 5000, num_rows))
    vertex, edges = np.sort(rng.choice(n // 2, num_rows, replace=False)), rng.integers(n // 2, n, 6000)
    if np.dtype(weight).kind == "f":  # the smallest floats, too, which are no normal numbers
        weights = (rng.integers(0, 1000, 6000) * (1e-44 if weight == "float32" else 0.5)).astype(weight)
    else:
        weights = rng.integers(0, min(np.iinfo(weight).max, 2**30), 6000).astype(weight)
    own = np.zeros(n, distance) if weight == "float32" else rng.integers(0, 5000, n).astype(distance)
    own[(rng.random(n) < 0.5) & (np.arange(n) >= n // 2)] = unreached
    e0, e1 = int(rng.integers(0, offset[-1] // 2)), int(rng.integers(offset[-1] // 2, offset[-1]))

    kernels = GpuKernels(device, np.dtype(index))
    memory, none = Memory(device, kernels.stream), np.iinfo(index).max
    paths = PathKernels(device, np.dtype(index), np.dtype(distance), kernels.stream, kernels.counters)
    counters = np.zeros(kernels.counters.size, np.int64)
    counters[Counter.NUM_ROWS] = num_rows
    memory.put(counters, kernels.counters)
    there, parent, pending = (memory.put(one) for one in (own, np.full(n, none, index), np.zeros(-(-n // 64), np.uint64)))
    paths.begin(np.empty(0, np.int64), there, unreached, parent, pending)
    memory.put(own, there)
    rows = SimpleNamespace(vertex=memory.put(vertex.astype(index)), offset=memory.put(offset))
    given = memory.put(start), e0, e1, memory.put(edges.astype(index)), memory.put(weights), weight_kind(weights.dtype), 0
    for look in (gpu_paths.DISTANCES, gpu_paths.PARENTS):
        paths.relax(look, rows, *given, there, parent, pending, pending, unreached, num_edges=e1 - e0)

    expected, parents, row = own.copy(), np.full(n, none, index), np.repeat(np.arange(num_rows), degree)[e0:e1]
    at = start[row] + np.arange(e0, e1) - offset[row]
    before, targets = own[vertex[row]], edges[at]
    sums = before + weights[at].astype(distance)
    np.minimum.at(expected, targets, sums)
    gives = (sums == expected[targets]) & (sums != before)
    np.minimum.at(parents, targets[gives], vertex[row][gives].astype(index))
    assert paths.read()[Told.WHY] == 0
    np.testing.assert_array_equal(memory.get(there), expected)
    np.testing.assert_array_equal(memory.get(parent), parents)
    marked = np.unpackbits(memory.get(pending).view(np.uint8), bitorder="little")[:n]
    np.testing.assert_array_equal(marked, expected < own)
