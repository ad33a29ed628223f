"""Which device a search gets, and what is said where it gets none."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from types import SimpleNamespace

import pytest

from oocgraph.arrays import cuda, device_choice, devices_choice, drivers
from oocgraph.errors import DeviceError, MissingDependencyError, OocGraphError
from tests.arrays.fake_cupy import FakeCupy


@pytest.fixture
def offer(monkeypatch):
    """Let a driver and a CuPy be found."""

    def call(cupy=None, *, driver=13000, packages=("cupy-cuda13x",)):
        monkeypatch.setattr(drivers, "driver_version", lambda: driver)
        monkeypatch.setattr(drivers, "installed_packages", lambda: list(packages))
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        return cupy

    return call


def refused(words):
    """Both wishes come to nothing for the same reason: ``cuda`` as an error, ``auto`` as the processor."""
    with pytest.raises((DeviceError, MissingDependencyError), match=words) as caught:
        device_choice("cuda")
    device, reason = device_choice("auto")
    assert (device, reason) == (None, str(caught.value))
    return caught.type


def test_processor_when_asked_for():
    assert device_choice("cpu").device is None


def test_unknown_kind_is_refused():
    with pytest.raises(OocGraphError, match="device is 'gpu'; it must be one of auto, cpu, cuda"):
        device_choice("gpu")


def test_no_driver_is_found_without_importing_cupy(monkeypatch):
    """A machine without a GPU does not pay for CuPy's import."""
    monkeypatch.setattr(drivers, "DRIVER_LIBRARY", "libcuda-that-is-not-there.so.1")
    monkeypatch.setattr(drivers, "_import_cupy", lambda _driver: pytest.fail("CuPy was imported"))
    assert refused("no NVIDIA driver is found") is DeviceError


def test_importing_the_package_does_not_import_cupy():
    code = "import sys, oocgraph, oocgraph.arrays, oocgraph.arrays.cuda; print('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_driver_tells_its_version(monkeypatch):
    class Library:
        def cuDriverGetVersion(self, reference):
            reference._obj.value = 12040

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: Library())
    assert drivers.driver_version() == 12040


@pytest.mark.parametrize(("driver", "extra"), [(13010, "cuda13"), (12020, "cuda12")])
def test_missing_cupy_names_the_extra_that_fits_the_driver(offer, driver, extra):
    offer(None, driver=driver, packages=())  # None in sys.modules: not found
    assert refused(rf"need CuPy: pip install 'oocgraph\[{extra}\]'") is MissingDependencyError


def test_two_cupys_are_refused_before_the_import(offer):
    offer(None, packages=("cupy-cuda12x", "cupy-cuda13x"))
    assert refused("cupy-cuda12x, cupy-cuda13x; pip uninstall cupy-cuda12x cupy-cuda13x, then") is DeviceError


def test_cupy_that_does_not_load_is_told_in_its_own_words(offer, monkeypatch, tmp_path):
    """CuPy draws rules around its message; what counts is the line before the last."""
    offer(packages=("cupy-cuda12x",))
    (tmp_path / "cupy.py").write_text("raise ImportError('''\n====\nCuPy: trouble\n  ImportError: libfoo.so.12: no such file\n====\n''')")
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.syspath_prepend(tmp_path)
    assert refused(r"cupy-cuda12x is installed but cannot be imported \(ImportError: libfoo.so.12: no such file\)") is DeviceError


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (12020, r"supports CUDA 12.2, CuPy is built for CUDA 13.2; pip install 'oocgraph\[cuda12\]' in place"),
        (11040, "supports CUDA 11.4, CuPy is built for CUDA 13.2; install a driver for CUDA 13 or newer"),
    ],
)
def test_old_driver_names_both_versions(offer, driver, words):
    offer(FakeCupy(), driver=driver)
    assert refused(words) is DeviceError


def test_insufficient_driver_as_cuda_finds_it(offer):
    """Where versions do not tell, CUDA's own error does."""
    offer(FakeCupy()).fail["getDeviceCount"] = drivers.ERROR_INSUFFICIENT_DRIVER
    assert refused("driver is too old") is DeviceError


def test_no_visible_device_shows_the_variable(offer, monkeypatch):
    offer(FakeCupy()).fail["getDeviceCount"] = drivers.ERROR_NO_DEVICE
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert refused("CUDA_VISIBLE_DEVICES is ''; unset it") is DeviceError
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert refused("the NVIDIA driver shows no device") is DeviceError


def test_cuda_that_does_not_start(offer):
    offer(FakeCupy()).fail["getDeviceCount"] = 802
    assert refused(r"CUDA cannot be used: cudaError802.*\(does nvidia-smi work\?\)") is DeviceError


@pytest.mark.parametrize("call", ["getDeviceCount", "getDevice"])
def test_a_process_forked_from_one_that_used_cuda(offer, call):
    offer(FakeCupy()).fail[call] = drivers.ERROR_INITIALIZATION
    assert refused("forked from one that had used a GPU: start such processes by multiprocessing's 'spawn'") is DeviceError


@pytest.mark.parametrize("call", ["getDevice", "getDeviceProperties"])
def test_a_device_that_disappears_while_it_is_looked_for(offer, call):
    offer(FakeCupy()).fail[call] = 46
    assert refused("cannot be used: cudaError46") is DeviceError


def test_cupy_for_rocm(offer):
    offer(FakeCupy()).runtime.is_hip = True
    assert refused("built for ROCm") is DeviceError


def test_ordinal_beyond_the_devices(offer):
    offer(FakeCupy(count=2))
    assert device_choice("cuda", 1).device.ordinal == 1
    with pytest.raises(DeviceError, match="no CUDA device 2: this process sees 2"):
        device_choice("cuda", 2)


def test_of_several_mig_instances_a_process_sees_one(offer, monkeypatch):
    """CUDA's rule; with dask-cuda each worker has one."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-6f9dd59a-0000,MIG-GPU-8932f937/1/0")
    cupy = offer(FakeCupy(count=1))
    assert [one.ordinal for one in devices_choice("cuda")[0]] == [0]
    with pytest.raises(DeviceError, match=r"no CUDA device 1: this process sees 1, .*MIG instances CUDA shows a process the first"):
        device_choice("cuda", 1)
    cupy.fail["getDeviceCount"] = drivers.ERROR_NO_DEVICE
    assert refused("CUDA_VISIBLE_DEVICES is 'MIG-6f9dd59a-0000,.*name one that nvidia-smi -L lists") is DeviceError


def test_all_devices_that_can_be_used(offer, monkeypatch, caplog):
    """The current one first; of the others those that cannot be used are left out."""
    assert devices_choice("cpu") == ((), "the processor was asked for")
    offer(FakeCupy(count=3))
    devices, reason = devices_choice("auto")
    assert ([one.ordinal for one in devices], reason) == ([0, 1, 2], "a GPU can be used")
    opened = cuda.open_cuda

    def open_but_one(ordinal=None):
        if ordinal == 1:
            raise DeviceError("it is too old")
        return opened(ordinal)

    monkeypatch.setattr(cuda, "open_cuda", open_but_one)
    assert [one.ordinal for one in devices_choice("cuda")[0]] == [0, 2]
    assert "CUDA device 1 is left out: it is too old" in caplog.text


def test_devices_are_numbered_alike_at_every_call(offer):
    """The first is the one that is current for the user, and stays that; or the one that is asked for."""
    cupy = offer(FakeCupy(count=4))
    for _ in range(2):
        assert [one.ordinal for one in devices_choice("cuda")[0]] == [0, 1, 2, 3]
    cupy.runtime.setDevice(2)
    for _ in range(2):
        assert [one.ordinal for one in devices_choice("cuda")[0]] == [2, 0, 1, 3]
    assert [one.ordinal for one in devices_choice("cuda", 1)[0]] == [1, 0, 2, 3]


def test_device_of_an_array_is_the_one_that_holds_it(offer, monkeypatch):
    """Each device is opened only once."""
    monkeypatch.setattr(cuda, "_of_arrays", {})
    offer(FakeCupy(count=2))
    arrays = [SimpleNamespace(device=SimpleNamespace(id=ordinal)) for ordinal in (1, 0, 1)]
    found = [cuda.device_of(array) for array in arrays]
    assert [one.ordinal for one in found] == [1, 0, 1]
    assert found[0] is found[2]


@pytest.mark.parametrize(("capability", "hint"), [((7, 0), True), ((3, 5), False)])
def test_device_that_the_compiler_no_longer_knows(offer, capability, hint):
    offer(FakeCupy(capability=capability))
    with pytest.raises(DeviceError, match=r"Fake GPU.* has compute capability .*NVRTC 13.0 makes code for 7.5 and newer") as caught:
        device_choice("cuda")
    assert ("oocgraph[cuda12]" in str(caught.value)) == hint


def test_compiler_that_is_missing(offer):
    cupy = offer(FakeCupy())

    def get_version():
        raise RuntimeError("CuPy failed to load libnvrtc.so.13: OSError")

    cupy.cuda.nvrtc.getVersion = get_version
    assert refused("NVRTC cannot be loaded") is DeviceError


def test_usable_device_is_taken(offer):
    offer(FakeCupy())
    device, reason = device_choice("auto")
    assert (device.name, device.num_multiprocessors, device.total_bytes, device.ordinal) == ("Fake GPU", 132, 8 << 30, 0)
    assert reason == "a GPU can be used"
