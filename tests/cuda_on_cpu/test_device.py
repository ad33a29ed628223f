"""The CPU as a device: what it counts and refuses, and that its streams find what is missing between copies and kernels."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from oocgraph.arrays import Device
from oocgraph.errors import DeviceError
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice
from tests.cuda_on_cpu.memory import DeviceArray

pytestmark = needs_shim

CODE = """
extern "C" __global__ void add(const int* x, long long n, int* sums) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&sums[i % 4], x[i]);
}
extern "C" __global__ void set(int* x, long long n, int value) { for (long long i = threadIdx.x; i < n; i += blockDim.x) x[i] = value; }
extern "C" __global__ void stuck(int* x) { if (threadIdx.x & 1) __syncthreads(); else __syncwarp(); }
"""
NAMES = ["add", "set", "stuck"]

SEEDS = range(8)


def test_methods_are_those_of_the_protocol():
    """Same names and parameters."""
    for name, method in inspect.getmembers(Device, inspect.isfunction):
        if not name.startswith("_"):
            assert list(inspect.signature(method).parameters) == list(inspect.signature(getattr(CpuDevice, name)).parameters), name


def staged_sums(device, *, omit=""):
    """Sum six pieces through two buffers: filled by the host, copied by one stream, read by kernels of another."""
    num_pieces, size, buffers = 6, 1000, range(2)
    function = device.module(CODE, NAMES)
    copies, kernels = device.stream(), device.stream()
    pinned = [device.pinned(4 * size).view(np.int32) for _ in buffers]
    staged = [device.empty(size, np.int32) for _ in buffers]
    copied, consumed = [device.event() for _ in buffers], [device.event() for _ in buffers]
    sums = device.empty(4, np.int32)
    device.launch(function.get_function("set"), 1, 32, (sums, np.int64(4), np.int32(0)), kernels)
    for piece in range(num_pieces):
        b = piece % 2
        if omit != "the host waits for the copy":
            device.synchronize(copied[b])
        pinned[b][:] = np.arange(size) + piece
        if omit != "the copy waits for the kernel":
            device.wait(copies, consumed[b])
        device.copy(pinned[b], staged[b], copies)
        device.record(copied[b], copies)
        if omit != "the kernel waits for the copy":
            device.wait(kernels, copied[b])
        device.launch(function.get_function("add"), 2, 64, (staged[b], np.int64(size), sums), kernels)
        device.record(consumed[b], kernels)
    result = device.pinned(16).view(np.int32)
    device.copy(sums, result, kernels)
    if omit != "the host waits for the result":
        device.synchronize(kernels)
    expected = (np.arange(size)[:, None] + np.arange(num_pieces)).reshape(-1, 4, num_pieces).sum(axis=(0, 2))
    return np.array_equal(result, expected)


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_pipeline_gives_the_same_in_every_order(seed, deferred):
    """Whatever the streams do first."""
    assert staged_sums(CpuDevice(seed, deferred=deferred))


@pytest.mark.parametrize(
    "omit",
    ["the host waits for the copy", "the copy waits for the kernel", "the kernel waits for the copy", "the host waits for the result"],
)
def test_a_missing_wait_is_found_by_some_order(omit):
    """Deferred streams show it; streams that do everything at once cannot."""
    right = [staged_sums(CpuDevice(seed, deferred=True), omit=omit) for seed in SEEDS]
    assert not all(right)
    assert right[1], "as early as possible nothing goes wrong"
    assert staged_sums(CpuDevice(), omit=omit)


def test_a_buffer_filled_after_the_copy_was_asked_for_is_found():
    """A device may be quick."""
    right = []
    for seed in SEEDS:
        device = CpuDevice(seed, deferred=True)
        stream, pinned, array = device.stream(), device.pinned(4), device.empty(4, np.uint8)
        pinned[:] = 0
        device.copy(pinned, array, stream)
        pinned[:] = 7
        device.copy(array, back := device.pinned(4), stream)
        device.synchronize(stream)
        right.append(bool((back == 7).all()))
    assert right[0]
    assert not right[1]
    assert 1 < sum(right) < len(right) - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_that_is_freed_before_it_is_used_is_found(seed):
    """An operation in a queue does not keep the memory that it needs."""
    device = CpuDevice(seed, deferred=True)
    stream = device.stream()
    found = 0
    for _ in range(8):
        try:
            device.copy(device.empty(1 << 10, np.uint8), back := device.pinned(1 << 10), stream)
            device.synchronize(stream)
            assert (back == back[0]).all()
        except RuntimeError:
            found += 1
    assert found == 0 if seed == 1 else found > 0


def test_events_stand_for_where_they_were_recorded_last():
    """A wait that was asked for before is of the old place."""
    device = CpuDevice(0, deferred=True)
    one, other, event = device.stream(), device.stream(), device.event()
    arrays = [device.empty(1, np.int32) for _ in range(2)]
    setter = device.module(CODE, NAMES).get_function("set")
    for array in arrays:
        device.launch(setter, 1, 1, (array, np.int64(1), np.int32(3)), one)
        device.record(event, one)
        if array is arrays[0]:
            device.wait(other, event)
    backs = [device.pinned(4).view(np.int32) for _ in arrays]
    for array, back in zip(arrays, backs, strict=True):
        device.copy(array, back, other)
    device.synchronize(other)
    assert backs[0][0] == 3
    assert backs[1][0] != 3
    with pytest.raises(DeviceError, match="has not been reached"):
        device.seconds(event, event)


def test_memory_is_counted_and_refused():
    """Device memory and page-locked memory, now and at most."""
    device = CpuDevice(total_bytes=1000)
    array, pinned = device.empty((10, 20), np.int16), device.pinned(300)
    part = array.reshape(-1)[5:].view(np.uint8)
    with pytest.raises(DeviceError, match="device_memory_budget"):
        device.empty(601, np.uint8)
    rest = device.empty(600, np.uint8)
    assert (device.free_bytes(), device.allocated_bytes, device.num_allocations) == (0, 1000, 2)
    del array, rest
    assert device.allocated_bytes == 400, "a view keeps all of it"
    del part, pinned
    assert (device.allocated_bytes, device.peak_bytes, device.pinned_bytes, device.peak_pinned_bytes) == (0, 1000, 0, 300)
    assert device.calls == {"empty": 3, "pinned": 1}


def test_launches_and_copies_are_counted():
    """For tests of what a search uses."""
    device = CpuDevice()
    staged_sums(device)
    assert device.launched == {"set": 1, "add": 6}
    assert device.copied_bytes == {"to_device": 24000, "to_host": 16}


def test_the_host_does_not_touch_device_memory():
    """What would fail or be slow on a GPU is refused."""
    device = CpuDevice()
    array = device.empty(10, np.int32)
    assert isinstance(array[2:4], DeviceArray)
    for touch in (lambda: array[3], lambda: array + 1, lambda: list(array), lambda: np.copy(array), array.sum, array.copy):
        with pytest.raises(TypeError, match="device memory"):
            touch()
    with pytest.raises(TypeError, match="device memory"):
        array[3:] = 0
    assert repr(array) == "<device array of shape (10,), int32>"


def test_ordinary_arrays_are_refused():
    """Copies are between device and page-locked memory; kernels take arrays of the device."""
    device = CpuDevice()
    stream, array, pinned, ordinary = device.stream(), device.empty(16, np.uint8), device.pinned(16), np.zeros(16, np.uint8)
    stuck = device.module(CODE, NAMES).get_function("stuck")
    for source, target in ((ordinary, array), (array, ordinary), (pinned, pinned)):
        with pytest.raises(TypeError):
            device.copy(source, target, stream)
    with pytest.raises(ValueError, match="16 bytes to 15"):
        device.copy(pinned, array[1:], stream)
    with pytest.raises(ValueError, match="contiguous"):
        device.copy(pinned[::2], array[:8], stream)
    for argument in (ordinary, pinned):
        with pytest.raises(TypeError):
            device.launch(stuck, 1, 32, (argument,), stream)
    with pytest.raises(DeviceError, match="page-locked"):
        device.mapped(ordinary)


def test_a_device_can_be_lost_at_any_moment():
    """The k-th call raises, and every call after it."""
    num_calls = CpuDevice()
    staged_sums(num_calls)
    for k in range(1, num_calls.calls.total() + 1, 7):
        device = CpuDevice(fail_after=k)
        with pytest.raises(DeviceError, match="the device was lost"):
            staged_sums(device)
        assert device.calls.total() == k
        with pytest.raises(DeviceError, match="the device was lost"):
            device.stream()
        device.close()


@pytest.mark.parametrize("deferred", [False, True])
def test_after_a_fault_nothing_works(deferred):
    """As on a GPU, whose context is gone."""
    device = CpuDevice(deferred=deferred)
    stuck, stream, array = device.module(CODE, NAMES).get_function("stuck"), device.stream(), device.empty(1, np.int32)

    def fail():
        device.launch(stuck, 1, 64, (array,), stream)
        device.synchronize(stream)

    for call in (fail, device.stream, lambda: device.synchronize(stream)):
        with pytest.raises(DeviceError, match=r"stuck: .*deadlock"):
            call()
