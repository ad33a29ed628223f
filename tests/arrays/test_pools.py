"""A pool of device memory leaves to a search what it holds unused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from oocgraph.arrays.cuda import CudaDevice
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.errors import BudgetError, DeviceError
from tests.arrays.fake_cupy import FakeCupy
from tests.arrays.fake_rmm import (
    CudaMemoryResource,
    FakeRmm,
    LimitingResourceAdaptor,
    PoolMemoryResource,
    StatisticsResourceAdaptor,
    TrackingResourceAdaptor,
    rmm_cupy_allocator,
)

TOTAL = 141 << 30
"""An H200."""

CONTEXT = 1 << 30


@pytest.fixture
def offer(monkeypatch):
    """Let CuPy take memory from RMM; returns the device and RMM."""

    def call(resource, *, driver_bytes):
        cupy, rmm = FakeCupy(), FakeRmm(resource)
        monkeypatch.setitem(sys.modules, "rmm", rmm)
        cupy.allocator = rmm_cupy_allocator
        cupy.runtime.memGetInfo = lambda: (driver_bytes, TOTAL)
        return CudaDevice(cupy, 0), rmm, cupy

    return call


def eighty():
    """Return a pool of 80 % of the card, as dask-cuda's ``--rmm-pool-size 0.8`` makes it."""
    return PoolMemoryResource(CudaMemoryResource(), int(0.8 * TOTAL))


REST = TOTAL - int(0.8 * TOTAL) - CONTEXT


@pytest.mark.parametrize("wrapped", [lambda pool: pool, TrackingResourceAdaptor, StatisticsResourceAdaptor])
def test_a_pool_of_most_of_the_card_leaves_it_to_the_plan(offer, wrapped):
    device, _, _ = offer(wrapped(eighty()), driver_bytes=REST)
    assert device_limit_bytes(device, None) > 0.7 * TOTAL
    assert device_limit_bytes(device, "110G") == 110 << 30


def test_a_pool_that_cupy_does_not_use_is_not_free(offer):
    """dask-cuda gives it to CuPy only where told to: the driver's rest is all there is."""
    device, _, cupy = offer(eighty(), driver_bytes=REST)
    cupy.allocator = cupy.pool.malloc
    assert device.free_bytes() == REST + cupy.pool.free
    with pytest.raises(BudgetError, match="device_memory_budget"):
        device_limit_bytes(device, "110G")


@pytest.mark.parametrize("wrapped", [TrackingResourceAdaptor, StatisticsResourceAdaptor])
def test_what_of_a_pool_is_in_use_is_not_free(offer, wrapped):
    counter = wrapped(eighty())
    device, _, _ = offer(counter, driver_bytes=REST)
    counter.used = 50 << 30
    assert device.free_bytes() == REST + int(0.8 * TOTAL) - (50 << 30)


def test_a_pool_that_nothing_counts_is_counted_from_the_first_device_on(offer):
    """Once: another device in the same process finds the counter."""
    device, rmm, cupy = offer(eighty(), driver_bytes=REST)
    counter = rmm.resource
    assert isinstance(counter, StatisticsResourceAdaptor)
    counter.used = 1 << 30
    assert CudaDevice(cupy, 0).free_bytes() == device.free_bytes() == REST + int(0.8 * TOTAL) - (1 << 30)
    assert rmm.resource is counter


def test_what_counts_beneath_a_pool_says_nothing_of_its_use(offer):
    """It counts what the pool has taken of the driver."""
    beneath = TrackingResourceAdaptor(CudaMemoryResource())
    beneath.used = int(0.8 * TOTAL)
    device, rmm, _ = offer(PoolMemoryResource(beneath, int(0.8 * TOTAL)), driver_bytes=REST)
    assert device.free_bytes() == REST + int(0.8 * TOTAL)
    assert isinstance(rmm.resource, StatisticsResourceAdaptor)


def test_a_limit_holds_whatever_the_device_has(offer):
    limited = LimitingResourceAdaptor(eighty(), 20 << 30)
    device, _, _ = offer(limited, driver_bytes=REST)
    limited.used = 15 << 30
    assert device.free_bytes() == 5 << 30


def test_rmm_without_a_pool_has_what_the_driver_has(offer):
    device, rmm, _ = offer(CudaMemoryResource(), driver_bytes=REST)
    assert (device.free_bytes(), type(rmm.resource)) == (REST, CudaMemoryResource)


def test_a_limit_of_cupy_s_own_pool_holds():
    """CUPY_GPU_MEMORY_LIMIT."""
    cupy = FakeCupy()
    device = CudaDevice(cupy, 0)
    cupy.pool.limit, cupy.pool.used = 1 << 30, 1 << 28
    assert device.free_bytes() == (1 << 30) - (1 << 28)


def test_another_pool_of_cupy_s_is_counted_and_kept():
    """Of `cupy.cuda.MemoryAsyncPool`, for example."""
    cupy = FakeCupy()
    device, other = CudaDevice(cupy, 0), type(cupy.pool)(cupy, free_bytes=5 << 20)
    cupy.allocator = other.malloc
    assert device.free_bytes() == cupy.runtime.memGetInfo()[0] + (5 << 20)
    device.close()
    assert cupy.called("free_all_blocks") == []


def test_a_full_pool_is_one_clear_error(offer):
    """The driver has memory left, of which the pool may take none."""
    counter = TrackingResourceAdaptor(eighty())
    device, _, cupy = offer(counter, driver_bytes=REST)
    counter.used = int(0.8 * TOTAL) - (1 << 20)
    cupy.stuck.memory = MemoryError("std::bad_alloc: out_of_memory: RMM failure: Maximum pool size exceeded")
    words = (
        r"^CUDA device 0 \(Fake GPU\) has no room for 8.0 MiB: .* RMM's pool holds 115,507.2 MiB, of which 1.0 MiB are free "
        r"\(std::bad_alloc.*Maximum pool size exceeded\); give workers a larger --rmm-pool-size .*device_memory_budget"
    )
    with pytest.raises(DeviceError, match=words):
        device.empty(1 << 20, np.int64)
    cupy.stuck.memory = None
    assert device.empty(8, np.int64).nbytes == 64


def test_names_are_those_of_rmm():
    """Where RMM is installed: it has all that the module in its place has."""
    real = pytest.importorskip("rmm", reason="RMM is not installed", exc_type=ImportError)
    fake = FakeRmm(None)
    for name, found in vars(fake.mr).items():
        assert hasattr(real.mr, name)
        for attribute in [one for one in vars(found) if not one.startswith("_")] if isinstance(found, type) else []:
            assert hasattr(getattr(real.mr, name), attribute)
