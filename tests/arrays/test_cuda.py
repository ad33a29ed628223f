"""How the GPU is asked through CuPy, and how its failures are told; without a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from oocgraph.arrays.cuda import CudaDevice
from oocgraph.cache_folder import VARIABLE
from oocgraph.errors import DeviceError
from tests.arrays.fake_cupy import FREE, FakeCupy, FakeNvrtc, OutOfMemoryError


@pytest.fixture
def cupy(monkeypatch, tmp_path):
    """CuPy, and a cache of compiled kernels in which there is nothing yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return FakeCupy()


@pytest.fixture
def device(cupy):
    return CudaDevice(cupy, 0)


def test_names_are_those_of_cupy(cupy):
    """Where CuPy is installed: it has all that the module in its place has."""
    real = pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
    for name in vars(cupy.runtime):
        assert hasattr(real.cuda.runtime, name)
    for name in vars(cupy.cuda):
        assert hasattr(real.cuda, name)
    for name in ("ndarray", "empty", "get_default_memory_pool"):
        assert hasattr(real, name)
    for name in (name for name in vars(FakeNvrtc) if not name.startswith("_")):
        assert hasattr(real.cuda.nvrtc, name)
    for name in ("load", "get_function"):
        assert hasattr(real.cuda.function.Module, name)
    for name in ("free_bytes", "used_bytes", "total_bytes", "get_limit"):
        assert hasattr(real.cuda.MemoryPool, name)
        assert hasattr(real.cuda.MemoryAsyncPool, name)
    assert (real.cuda.runtime.memcpyDefault, real.cuda.runtime.hostAllocPortable, real.cuda.runtime.hostAllocMapped) == (4, 1, 2)


def test_every_call_makes_the_device_current_in_its_thread(cupy):
    device = CudaDevice(cupy, 3)
    cupy.runtime.setDevice(3)
    cupy.calls.clear()
    device.event()
    device.event(blocking=True)
    events = [("Event", ({"block": blocking},)) for blocking in (False, True)]
    assert cupy.calls == [("setDevice", (3,)), events[0], ("setDevice", (3,)), events[1]]


def test_a_call_leaves_the_current_device_of_the_thread(cupy):
    """Also one that fails, and the end."""
    device = CudaDevice(cupy, 3)
    cupy.runtime.setDevice(1)
    device.stream()
    assert cupy.runtime.getDevice() == 1
    cupy.fail["Event"] = 700
    with pytest.raises(DeviceError, match="700"):
        device.event()
    assert cupy.runtime.getDevice() == 1
    device.close()
    assert cupy.called("free_all_blocks") == [()]
    assert cupy.runtime.getDevice() == 1
    with device.current():
        assert cupy.runtime.getDevice() == 3
    assert cupy.runtime.getDevice() == 1


def test_blocks_that_are_there_at_once_are_what_the_driver_says(cupy, device):
    """By the registers of a kernel, here 64 a thread."""
    assert device.resident_blocks(SimpleNamespace(ptr=64), 256) == 4
    assert device.resident_blocks(SimpleNamespace(ptr=64), 128) == 8


def test_pinned_memory_bypasses_the_pool_and_can_be_mapped(cupy, device):
    """Exactly the bytes that were asked for, portable and mapped; writable."""
    pinned = device.pinned(1000)
    assert cupy.called("PinnedMemory") == [(1000, 1 | 2)]
    assert (pinned.dtype, pinned.shape, pinned.flags.writeable) == (np.uint8, (1000,), True)
    assert device.pinned(0).size == 0


def test_mapped_memory_has_the_address_of_its_view_and_keeps_it_alive(device):
    view = device.pinned(64).view(np.uint32)[4:]
    mapped = device.mapped(view)
    assert (mapped.data.ptr, mapped.shape, mapped.dtype) == (view.ctypes.data, (12,), np.uint32)
    assert (mapped.data.mem.owner is view, mapped.data.mem.size, mapped.data.mem.device_id) == (True, 48, 0)


def test_pageable_memory_is_not_mapped(cupy, device):
    cupy.runtime.pointerGetAttributes = lambda _pointer: type("Attributes", (), {"devicePointer": 0})
    with pytest.raises(DeviceError, match="not page-locked"):
        device.mapped(np.zeros(4))


def test_copy_leaves_the_direction_to_the_addresses(cupy, device):
    source, target, stream = np.arange(8), device.empty(8, np.int64), device.stream()
    device.copy(source, target, stream)
    assert cupy.called("memcpyAsync") == [(4096, source.ctypes.data, 64, cupy.runtime.memcpyDefault, 77)]
    assert cupy.called("Stream") == [({"non_blocking": True},)]
    with pytest.raises(ValueError, match="64 bytes to 32 bytes"):
        device.copy(source, device.empty(4, np.int64), stream)


def test_events(cupy, device):
    event, stream = device.event(), device.stream()
    device.record(event, stream)
    device.wait(stream, event)
    device.synchronize(event)
    assert (cupy.called("record"), cupy.called("wait_event"), cupy.called("sync")) == ([(stream,)], [(event,)], [()])
    assert device.seconds(event, event) == 0.25


def test_event_of_a_failed_device_is_an_error_not_a_wait_for_ever(cupy, device):
    cupy.fail["sync"] = 719
    with pytest.raises(DeviceError, match=r"CUDA device 0 \(Fake GPU\) has failed: cudaError719.*start a new one"):
        device.synchronize(device.event())


def test_kernels_are_compiled_once_and_launched_on_the_stream(cupy, device):
    names = ("expand<unsigned int>", "scan")
    module, stream = device.module("code", names), device.stream()
    assert CudaDevice(cupy, 0).module("code", list(names)) is module
    assert cupy.called("compile") == [("code", ("-std=c++17", "-ftz=false", "-arch=sm_90"), names)]
    args = (device.empty(3, np.uint32), np.int64(3), None)
    device.launch(module.get_function(names[0]), 2, 256, args, stream)
    assert cupy.called("launch") == [(f"lowered {names[0]}", (2,), (256,), args, {"stream": stream})]


def test_each_device_has_kernels_of_its_own_of_one_compilation(cupy, device):
    first, second = device.module("code", ("k",)), CudaDevice(cupy, 1).module("code", ("k",))
    assert first is not second
    assert (cupy.nvrtc.compilations, len(cupy.called("load"))) == (1, 2)


def test_sources_that_do_not_compile_show_the_first_lines(cupy, device):
    cupy.nvrtc.refusal = "\n".join(f"kern.cu({i}): error: wrong\n" for i in range(20))
    with pytest.raises(DeviceError) as caught:
        device.module("code", ())
    lines = str(caught.value).splitlines()
    assert (lines[0], lines[1]) == ("the kernels do not compile for CUDA device 0 (Fake GPU):", "kern.cu(0): error: wrong")
    assert lines[-1] == "... 12 more lines"


def test_full_device_memory_is_told_with_numbers_and_setting(cupy, device):
    cupy.stuck.memory = OutOfMemoryError("Out of memory allocating 4,194,304 bytes")
    with pytest.raises(
        DeviceError, match=r"no room for 4.0 MiB: 3,072.0 MiB of 8,192.0 MiB are free; CuPy's pool .*device_memory_budget"
    ) as caught:
        device.empty((1 << 10, 1 << 10), np.uint32)
    assert "device_memory_budget" in str(caught.value)


def test_full_host_memory_is_told_with_its_setting(cupy, device):
    cupy.fail["PinnedMemory"] = 2
    with pytest.raises(DeviceError, match=r"1.0 MiB of host memory cannot be page-locked .*memory_budget"):
        device.pinned(1 << 20)


@pytest.mark.parametrize(
    ("status", "words"), [(2, "is out of memory"), (700, "has failed: cudaError700"), (999, "has failed"), (1, "cudaError1")]
)
def test_cuda_errors_are_told_with_the_device(cupy, device, status, words):
    function = device.module("code", ("k",)).get_function("k")
    cupy.fail["launch"] = status
    with pytest.raises(DeviceError, match="CUDA device 0.*" + words):
        device.launch(function, 1, 256, (), device.stream())


def test_device_that_is_lost_when_work_begins(cupy, device):
    cupy.fail["setDevice"] = 46
    with pytest.raises(DeviceError, match="has failed: cudaError46"):
        device.stream()
    device.close()  # nothing more to say


def test_free_memory_includes_what_the_pool_holds_unless_it_is_another_s(cupy, device):
    assert device.free_bytes() == FREE + (1 << 20)
    device.close()
    assert len(cupy.called("free_all_blocks")) == 1
    cupy.allocator = lambda size: None
    assert device.free_bytes() == FREE
    device.close()
    assert len(cupy.called("free_all_blocks")) == 1


def test_what_cupy_does_for_this_thread_is_waited_for(cupy, device):
    device.wait_for_others()
    assert len(cupy.called("sync current")) == 1


def test_vector_comes_to_the_device_unless_it_is_there(cupy, device):
    """A copy of one of another device is made with this one current."""
    there, elsewhere = SimpleNamespace(device=SimpleNamespace(id=0)), SimpleNamespace(device=SimpleNamespace(id=1), copy=lambda: "copy")
    cupy.asarray = lambda given: given
    assert device.asarray(there) is there
    assert device.asarray(elsewhere) == "copy"
    assert cupy.called("setDevice")[-1] == (0,)
