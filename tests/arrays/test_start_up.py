"""Device ``auto`` starts a GPU only for work that is worth it, and says why it does not."""

from __future__ import annotations

import sys

import pytest

from oocgraph.arrays import Work, cubins, cuda, device_choice, devices_choice, drivers
from oocgraph.arrays.compiler import Source
from oocgraph.arrays.start_up import (
    COMPILE_SECONDS,
    CONTEXT_SECONDS,
    LINK_BYTES_PER_SECOND,
    LOAD_SECONDS,
    start_up_seconds,
    why_not_worth,
)
from oocgraph.cache_folder import VARIABLE
from oocgraph.errors import DeviceError
from tests.arrays.fake_cupy import FakeCupy

SOURCE = Source("code", ("scan",))
SMALL, MIDDLE, LARGE = (Work(seconds, 0, (SOURCE,)) for seconds in (0.01, 1.0, 100.0))


@pytest.fixture
def offer(monkeypatch, tmp_path):
    """Let a driver and a CuPy be found; `has_context` says whether the process uses CUDA already."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))

    def call(*, has_context=False, driver=13000):
        cupy = FakeCupy(count=2)
        monkeypatch.setattr(drivers, "driver_version", lambda: driver)
        monkeypatch.setattr(drivers, "installed_packages", lambda: ["cupy-cuda13x"])
        monkeypatch.setattr(drivers, "has_context", lambda _ordinal: has_context)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        return cupy

    return call


def test_small_work_is_left_to_the_processor_before_anything_is_started(offer, monkeypatch):
    """CuPy is not even imported."""
    offer()
    monkeypatch.setattr(cuda, "usable_cupy", lambda _ordinal: pytest.fail("CuPy was imported"))
    device, reason = device_choice("auto", work=lambda: SMALL)
    assert device is None
    assert reason == "to start a GPU takes about 0.41 s, the work on the processor about 0.01 s"


def test_small_work_is_on_the_gpu_that_is_asked_for(offer):
    offer()
    assert device_choice("cuda", work=lambda: SMALL).device.name == "Fake GPU"
    assert device_choice("auto").device.name == "Fake GPU"


def test_work_that_is_worth_a_context_but_no_compilation_waits_for_the_cache(offer):
    """No context is made to find that out."""
    cupy = offer()
    device, reason = device_choice("auto", work=lambda: MIDDLE)
    assert (device, cupy.called("memGetInfo"), cupy.called("compile")) == (None, [], [])
    assert reason == "to start a GPU and compile its kernels takes about 2.9 s, the work on the processor about 1 s"
    cubins.compiled_for(cupy.nvrtc, SOURCE, cuda._target(cupy, 0))
    assert device_choice("auto", work=lambda: MIDDLE).device.name == "Fake GPU"


def test_large_work_is_worth_everything(offer):
    offer()
    assert device_choice("auto", work=lambda: LARGE)[1] == "a GPU can be used"
    devices, _ = devices_choice("auto", work=lambda: LARGE)
    assert [one.ordinal for one in devices] == [0, 1]
    assert devices_choice("auto", work=lambda: SMALL)[0] == ()


def test_a_context_that_is_there_costs_nothing_more(offer):
    cupy = offer(has_context=True)
    cubins.compiled_for(cupy.nvrtc, SOURCE, cuda._target(cupy, 0))
    assert device_choice("auto", work=lambda: Work(0.1, 0, (SOURCE,))).device is not None
    device, reason = device_choice("auto", work=lambda: Work(0.1, int(LINK_BYTES_PER_SECOND), (SOURCE,)))
    assert device is None
    assert reason == "to start a GPU takes about 0.01 s, to bring the edges to it about 1 s, the work on the processor about 0.1 s"


def test_work_is_not_estimated_where_there_is_no_driver(offer):
    offer(driver=None)
    device, reason = device_choice("auto", work=lambda: pytest.fail("estimated"))
    assert device is None
    assert "no NVIDIA driver" in reason


def test_a_gpu_that_cannot_be_used_is_told_as_before(offer, monkeypatch):
    """Work that is worth a start does not hide why there is none."""
    offer()

    def refuse(_ordinal):
        raise DeviceError("the driver is ill")

    monkeypatch.setattr(cuda, "usable_cupy", refuse)
    assert device_choice("auto", work=lambda: LARGE) == (None, "the driver is ill")


def test_a_device_that_disappears_before_it_is_opened(offer):
    """After the cache has been asked what it has for it."""
    cupy = offer()
    answers = iter([None, None, 46])

    def look(_ordinal):
        if (status := next(answers)) is not None:
            raise cupy.runtime.CUDARuntimeError(status)
        return {"name": b"Fake GPU", "multiProcessorCount": 132, "major": 9, "minor": 0}

    cupy.runtime.getDeviceProperties = look
    device, reason = device_choice("auto", work=lambda: LARGE)
    assert device is None
    assert reason == "CUDA device 0 cannot be used: cudaError46: what CUDA says (does nvidia-smi still list it?)"


@pytest.mark.parametrize(("has_context", "num_uncompiled"), [(False, 0), (False, 2), (True, 0), (True, 2)])
def test_start_up_is_context_loading_and_compiling(has_context, num_uncompiled):
    expected = (0 if has_context else CONTEXT_SECONDS) + (3 - num_uncompiled) * LOAD_SECONDS + num_uncompiled * COMPILE_SECONDS
    start = start_up_seconds(3, num_uncompiled=num_uncompiled, has_context=has_context)
    assert start == pytest.approx(expected)
    options = {"num_uncompiled": num_uncompiled, "has_context": has_context}
    assert why_not_worth(Work(start * 0.99, 0, (SOURCE,) * 3), **options)
    assert not why_not_worth(Work(start * 1.01, 0, (SOURCE,) * 3), **options)


@pytest.mark.parametrize(("status", "active", "found"), [(0, 1, True), (0, 0, False), (3, 1, False)])
def test_the_driver_says_whether_there_is_a_context(monkeypatch, status, active, found):
    """3: CUDA has not been initialized in this process."""

    class Library:
        def cuDevicePrimaryCtxGetState(self, ordinal, flags, state):
            state._obj.value = active
            return status

    monkeypatch.setattr(drivers, "_loaded", lambda _name: Library())
    assert drivers.has_context(0) is found


def test_without_a_driver_there_is_no_context(monkeypatch):
    monkeypatch.setattr(drivers, "DRIVER_LIBRARY", "libcuda-that-is-not-there.so.1")
    assert not drivers.has_context(0)
