"""A device, the CPU as one and a real GPU: copies, mapped memory, events, kernels, and too much memory."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.errors import DeviceError
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice

CODE = """
template <class T> __global__ void add(const T* source, T* target, T amount, long long n)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        target[i] = source[i] + amount;
}
extern "C" __global__ void is_null(const int* pointer, int* target) { target[0] = pointer == nullptr; }
"""

N = 100_000


@pytest.fixture(
    params=[
        pytest.param("at once", marks=needs_shim, id="cpu"),
        *(pytest.param(seed, marks=needs_shim, id=f"cpu-deferred-{seed}") for seed in range(4)),
        pytest.param("gpu", marks=pytest.mark.gpu, id="gpu"),
    ]
)
def device(request):
    """Open the CPU, whose streams work at once or in several orders, or a GPU."""
    if request.param == "gpu":
        return request.getfixturevalue("cuda_device")
    return CpuDevice() if request.param == "at once" else CpuDevice(request.param, deferred=True)


@pytest.fixture
def stream(device):
    return device.stream()


def to_host(device, array, stream):
    pinned = device.pinned(array.nbytes).view(array.dtype)
    device.copy(array, pinned, stream)
    device.synchronize(stream)
    return pinned.copy()


def to_device(device, array, stream):
    pinned = device.pinned(array.nbytes).view(array.dtype)
    pinned[:] = array
    target = device.empty(array.shape, array.dtype)
    device.copy(pinned, target, stream)
    device.synchronize(stream)
    return target


def test_device_describes_itself(device):
    assert device.name
    assert device.num_multiprocessors > 0
    assert 0 < device.free_bytes() <= device.total_bytes


def test_copies_there_on_the_device_and_back(device, stream):
    array = np.arange(N, dtype=np.int64)
    first = to_device(device, array, stream)
    second = device.empty(N, np.int64)
    device.copy(first, second, stream)
    assert np.array_equal(to_host(device, second, stream), array)
    assert np.array_equal(to_host(device, second[10:20], stream), array[10:20])


@pytest.mark.parametrize(("dtype", "name"), [(np.uint32, "add<unsigned int>"), (np.int64, "add<long long>")])
def test_kernel_with_arrays_and_scalars(device, stream, dtype, name):
    function = device.module(CODE, ["add<unsigned int>", "add<long long>"]).get_function(name)
    source, target = to_device(device, np.arange(N, dtype=dtype), stream), device.empty(N, dtype)
    device.launch(function, 64, 256, (source, target, dtype(7), np.int64(N)), stream)
    assert np.array_equal(to_host(device, target, stream), np.arange(N, dtype=dtype) + dtype(7))


def test_none_is_a_null_pointer(device, stream):
    target = device.empty(1, np.int32)
    device.launch(device.module(CODE, ["is_null"]).get_function("is_null"), 1, 1, (None, target), stream)
    assert to_host(device, target, stream)[0] == 1


def test_kernel_reads_and_writes_mapped_host_memory(device, stream):
    source, target = device.pinned(4 * N).view(np.uint32), device.pinned(4 * N).view(np.uint32)
    source[:] = np.arange(N)
    function = device.module(CODE, ["add<unsigned int>"]).get_function("add<unsigned int>")
    args = (device.mapped(source[8:]), device.mapped(target[8:]), np.uint32(1), np.int64(N - 8))
    device.launch(function, 64, 256, args, stream)
    device.synchronize(stream)
    assert np.array_equal(target[8:], source[8:] + 1)


def test_pageable_memory_is_not_mapped(device):
    with pytest.raises(DeviceError):
        device.mapped(np.zeros(1000))


def test_events_order_streams_and_measure_time(device):
    first, second = device.stream(), device.stream()
    start, middle, stop = (device.event() for _ in range(3))
    array, copied, back = device.empty(1 << 22, np.uint32), device.pinned(1 << 24), device.empty(1 << 24, np.uint8)
    device.record(start, first)
    device.copy(array, copied, first)
    device.record(middle, first)
    device.wait(second, middle)
    device.copy(copied, back, second)
    device.record(stop, second)
    device.synchronize(stop)
    whole, part = device.seconds(start, stop), device.seconds(start, middle)
    assert 0 < part < whole < 10


def test_too_much_memory_is_a_clear_error_and_the_device_goes_on(device, stream):
    with pytest.raises(DeviceError, match=r"no room for .* MiB are free.*device_memory_budget"):
        device.empty(2 * device.total_bytes, np.uint8)
    with pytest.raises(DeviceError, match="page-locked"):
        device.pinned(1 << 50)
    assert np.array_equal(to_host(device, to_device(device, np.arange(9), stream), stream), np.arange(9))


def test_sources_that_do_not_compile(device):
    with pytest.raises(DeviceError, match="do not compile"):
        device.module("template <class T> __global__ void k(T x) { undeclared(x); }", ["k<int>"])


@pytest.mark.gpu
def test_memory_goes_back_when_the_device_is_closed(cuda_device):
    array = cuda_device.empty(1 << 28, np.uint8)
    cuda_device.close()
    held = cuda_device.free_bytes()
    del array
    cuda_device.close()
    assert cuda_device.free_bytes() >= held + (1 << 27)
