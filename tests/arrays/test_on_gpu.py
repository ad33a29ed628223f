"""A real GPU: copies, mapped memory, events, kernels, and too much memory."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.errors import DeviceError

pytestmark = pytest.mark.gpu

CODE = """
template <class T> __global__ void add(const T* source, T* target, T amount, long long n)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        target[i] = source[i] + amount;
}
extern "C" __global__ void is_null(const int* pointer, int* target) { target[0] = pointer == nullptr; }
"""

N = 100_000


@pytest.fixture
def stream(cuda_device):
    return cuda_device.stream()


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


def test_device_describes_itself(cuda_device):
    assert cuda_device.name
    assert cuda_device.num_multiprocessors > 0
    assert 0 < cuda_device.free_bytes() <= cuda_device.total_bytes


def test_copies_there_on_the_device_and_back(cuda_device, stream):
    array = np.arange(N, dtype=np.int64)
    first = to_device(cuda_device, array, stream)
    second = cuda_device.empty(N, np.int64)
    cuda_device.copy(first, second, stream)
    assert np.array_equal(to_host(cuda_device, second, stream), array)
    assert np.array_equal(to_host(cuda_device, second[10:20], stream), array[10:20])


@pytest.mark.parametrize(("dtype", "name"), [(np.uint32, "add<unsigned int>"), (np.int64, "add<long long>")])
def test_kernel_with_arrays_and_scalars(cuda_device, stream, dtype, name):
    function = cuda_device.module(CODE, ["add<unsigned int>", "add<long long>"]).get_function(name)
    source, target = to_device(cuda_device, np.arange(N, dtype=dtype), stream), cuda_device.empty(N, dtype)
    cuda_device.launch(function, 64, 256, (source, target, dtype(7), np.int64(N)), stream)
    assert np.array_equal(to_host(cuda_device, target, stream), np.arange(N, dtype=dtype) + dtype(7))


def test_none_is_a_null_pointer(cuda_device, stream):
    target = cuda_device.empty(1, np.int32)
    cuda_device.launch(cuda_device.module(CODE, ["is_null"]).get_function("is_null"), 1, 1, (None, target), stream)
    assert to_host(cuda_device, target, stream)[0] == 1


def test_kernel_reads_and_writes_mapped_host_memory(cuda_device, stream):
    source, target = cuda_device.pinned(4 * N).view(np.uint32), cuda_device.pinned(4 * N).view(np.uint32)
    source[:] = np.arange(N)
    function = cuda_device.module(CODE, ["add<unsigned int>"]).get_function("add<unsigned int>")
    args = (cuda_device.mapped(source[8:]), cuda_device.mapped(target[8:]), np.uint32(1), np.int64(N - 8))
    cuda_device.launch(function, 64, 256, args, stream)
    cuda_device.synchronize(stream)
    assert np.array_equal(target[8:], source[8:] + 1)


def test_pageable_memory_is_not_mapped(cuda_device):
    with pytest.raises(DeviceError):
        cuda_device.mapped(np.zeros(1000))


def test_events_order_streams_and_measure_time(cuda_device):
    first, second = cuda_device.stream(), cuda_device.stream()
    start, middle, stop = (cuda_device.event() for _ in range(3))
    array, copied, back = cuda_device.empty(1 << 24, np.uint32), cuda_device.pinned(1 << 26), cuda_device.empty(1 << 26, np.uint8)
    cuda_device.record(start, first)
    cuda_device.copy(array, copied, first)
    cuda_device.record(middle, first)
    cuda_device.wait(second, middle)
    cuda_device.copy(copied, back, second)
    cuda_device.record(stop, second)
    cuda_device.synchronize(stop)
    assert all(cuda_device.is_done(event) for event in (start, middle, stop))
    whole, part = cuda_device.seconds(start, stop), cuda_device.seconds(start, middle)
    assert 0 < part < whole < 10


def test_too_much_memory_is_a_clear_error_and_the_device_goes_on(cuda_device, stream):
    with pytest.raises(DeviceError, match=r"no room for .* MiB are free .*device_memory_budget"):
        cuda_device.empty(2 * cuda_device.total_bytes, np.uint8)
    with pytest.raises(DeviceError, match="CUDA device 0"):
        cuda_device.pinned(1 << 50)
    assert np.array_equal(to_host(cuda_device, to_device(cuda_device, np.arange(9), stream), stream), np.arange(9))


def test_sources_that_do_not_compile(cuda_device):
    with pytest.raises(DeviceError, match="do not compile"):
        cuda_device.module("template <class T> __global__ void k(T x) { undeclared(x); }", ["k<int>"])


def test_memory_goes_back_when_the_device_is_closed(cuda_device):
    array = cuda_device.empty(1 << 28, np.uint8)
    cuda_device.close()
    held = cuda_device.free_bytes()
    del array
    cuda_device.close()
    assert cuda_device.free_bytes() >= held + (1 << 27)
