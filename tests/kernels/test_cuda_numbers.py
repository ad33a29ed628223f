"""Numbers at the ends of their ranges on a device: edges beyond 2**31 and 2**32, and the smallest floats."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from oocgraph.kernels.gpu_spmv import GpuProductKernels
from oocgraph.kernels.semirings import semiring_of
from tests.kernels.on_device import DEVICES, Bench, open_device, source
from tests.kernels.test_cuda_expand import DTYPES, METHODS, NAMES, check, expand, make_rows

FAR = [(1 << 31) - 150, (1 << 32) - 150, 1 << 40]
"""Numbers of a first edge: some edges behind it the next bit is set."""


@pytest.fixture(scope="module", params=DEVICES)
def bench(request):
    """Each device in turn, with the kernels of a push."""
    return Bench(open_device(request.param), source("common", "expand"), NAMES)


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_a_push_over_edges_of_large_numbers(bench, method, dtype, far):
    """What is on the device begins with edge `far`; the rows before it are in another batch."""
    rows = make_rows([600, 0, 50, 3, 0, 260, 3], dtype=dtype, num_vertices=5000, seed=4)
    there = dataclasses.replace(rows, start=rows.start + far)
    check(rows, expand(bench, there, method, base=far))


@pytest.mark.parametrize(("far", "pointer_dtype"), [(FAR[0], np.uint32), *((far, np.int64) for far in FAR)])
def test_a_product_over_edges_of_large_numbers(bench, far, pointer_dtype):
    """A piece of a matrix has pointers of its own, which count from its first nonzero."""
    lengths = np.array([100, 0, 31, 150, 2])
    pointers = far + np.concatenate([[0], np.cumsum(lengths)])
    start, stop = far + 40, far + 270
    kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), np.dtype(np.float64))
    offset = bench.device.empty(pointers.size, np.int64)
    kernels.local_pointers(bench.put(pointers.astype(pointer_dtype)), start, stop, offset)
    bench.device.synchronize(kernels.stream)
    np.testing.assert_array_equal(bench.get(offset), np.clip(pointers, start, stop) - start)


@pytest.mark.parametrize(("name", "value", "x"), [("plus_times", 1e-20, 1e-20), ("min_plus", 1e-40, 2e-41), ("plus_times", 3e-42, 1.0)])
def test_float32_too_small_for_an_exponent_is_not_flushed_to_zero(bench, name, value, x):
    """As on the processor; on a GPU compilers may flush denormals, and CuPy's own compilation does."""
    ring, indices = semiring_of(name), np.array([0, 1], np.uint32)
    values, vector = np.full(2, value, np.float32), np.full(2, x, np.float32)
    kernels = GpuProductKernels(bench.device, np.dtype(np.uint32), np.dtype(np.float32))
    y, offset = bench.device.empty(2, np.float32), bench.put(np.array([0, 1, 2]))
    kernels.set_values(y, ring.identity)
    kernels.multiply_rows(ring, offset, bench.put(indices), bench.put(values), bench.put(vector), y)
    bench.device.synchronize(kernels.stream)
    expected = values * vector if name == "plus_times" else values + vector
    assert 0 < expected[0] < np.finfo(np.float32).tiny
    np.testing.assert_array_equal(bench.get(y), expected)
