"""Whether a GPU can be used, and if not, why: driver, CuPy, visible devices, what the compiler can make code for.

In: the ordinal of a device. Out: the module `cupy` and the ordinal, or an error with the remedy. Where there is no driver
CuPy is not imported, so that asking costs next to nothing.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib import metadata
from typing import Any

from oocgraph.errors import DeviceError, MissingDependencyError

DRIVER_LIBRARY = "libcuda.so.1"

CUPY_PACKAGES = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")
"""Distributions that all bring the module `cupy`; two of them overwrite each other's files."""

ERROR_INITIALIZATION, ERROR_INSUFFICIENT_DRIVER, ERROR_NO_DEVICE = 3, 35, 100
"""``cudaErrorInitializationError``, ``…InsufficientDriver``, ``…NoDevice`` (CUDA's driver_types.h; CuPy has no names for them)."""

MIN_CAPABILITY = 50
"""Compute capability (times 10) from which the kernels compile, where the compiler still can."""


def usable_cupy(ordinal: int | None) -> tuple[Any, int]:
    """Import CuPy and find the device.

    Raises
    ------
    DeviceError
        No driver, a driver that is too old, a CuPy that does not fit, no visible device, a device that is too old.
    MissingDependencyError
        CuPy is not installed.
    """
    driver = driver_version()
    if driver is None:
        raise no_driver()
    cupy = _import_cupy(driver)
    runtime = cupy.cuda.runtime
    built = int(runtime.runtimeGetVersion())
    if runtime.is_hip:
        raise DeviceError("CuPy is built for ROCm, the kernels are for CUDA; install cupy-cuda12x or cupy-cuda13x")
    if driver // 1000 < built // 1000:
        raise _too_old(driver, built)
    count = _num_devices(runtime, driver, built)
    if ordinal is None:
        try:
            ordinal = int(runtime.getDevice())
        except runtime.CUDARuntimeError as error:
            raise _unusable(error) from error
    if not 0 <= ordinal < count:
        shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        one = "; of several MIG instances CUDA shows a process the first" if "MIG-" in shown else ""
        raise DeviceError(f"there is no CUDA device {ordinal}: this process sees {count}, numbered from 0{one}")
    _check_capability(cupy, ordinal, driver)
    return cupy, ordinal


def no_driver() -> DeviceError:
    """Return the error where no GPU can be used because there is no driver."""
    return DeviceError(
        f"no NVIDIA driver is found ({DRIVER_LIBRARY} cannot be loaded); install it, or start the container with GPUs "
        "(docker run --gpus all)"
    )


def driver_version() -> int | None:
    """Return the newest CUDA that the driver supports (12040 is 12.4); None where there is no driver."""
    try:
        library = _loaded(DRIVER_LIBRARY)
    except OSError:
        return None
    version = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    return version.value


@cache
def _loaded(library: str) -> ctypes.CDLL:
    """Load a library, once: every search asks whether there is a driver."""
    return ctypes.CDLL(library)


def has_context(ordinal: int) -> bool:
    """Whether this process has the primary context of a device, made by whatever uses CUDA in it; none is made by asking."""
    try:
        library = _loaded(DRIVER_LIBRARY)
        flags, active = ctypes.c_uint(0), ctypes.c_int(0)
        status = library.cuDevicePrimaryCtxGetState(ctypes.c_int(ordinal), ctypes.byref(flags), ctypes.byref(active))
    except (OSError, AttributeError):
        return False
    return status == 0 and bool(active.value)  # not 0: CUDA has not been initialized, or there is no such device


def _import_cupy(driver: int) -> Any:
    installed = installed_packages()
    if len(installed) > 1:
        raise DeviceError(
            f"several CuPy packages are installed and overwrite each other's files: {', '.join(installed)}; "
            f"pip uninstall {' '.join(installed)}, then pip install {_extra(driver)}"
        )
    try:
        import cupy
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise MissingDependencyError(f"searches on a GPU need CuPy: pip install {_extra(driver)}") from error
        raise DeviceError(
            f"{installed[0] if installed else 'CuPy'} is installed but cannot be imported ({_last_words(error)}); the driver supports CUDA "
            f"{_dotted(driver)}: pip install {_extra(driver)}"
        ) from error
    return cupy


def installed_packages() -> list[str]:
    """Return the installed distributions of `CUPY_PACKAGES`."""
    found = []
    for name in CUPY_PACKAGES:
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found.append(name)
    return found


def _num_devices(runtime: Any, driver: int, built: int) -> int:
    try:
        count = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        if error.status == ERROR_INSUFFICIENT_DRIVER:
            raise _too_old(driver, built) from error
        if error.status != ERROR_NO_DEVICE:
            raise _unusable(error) from error
        count = 0
    if not count:
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")
        if shown is None:
            raise DeviceError("the NVIDIA driver shows no device (nvidia-smi -L lists those there are)")
        raise DeviceError(f"no CUDA device is visible: CUDA_VISIBLE_DEVICES is {shown!r}; unset it, or name one that nvidia-smi -L lists")
    return count


def _unusable(error: Any) -> DeviceError:
    """Return the error where CUDA does not start, although there is a driver."""
    if error.status == ERROR_INITIALIZATION:
        return DeviceError(
            f"CUDA cannot be used: {error}; so it is in a process that was forked from one that had used a GPU: start such processes by "
            "multiprocessing's 'spawn' or 'forkserver'. Anywhere else: does nvidia-smi work?"
        )
    return DeviceError(f"CUDA cannot be used: {error} (does nvidia-smi work?)")


def properties_of(cupy: Any, ordinal: int) -> dict[str, Any]:
    """Return what CUDA says of a device.

    Raises
    ------
    DeviceError
        It is not there any more.
    """
    try:
        found: dict[str, Any] = cupy.cuda.runtime.getDeviceProperties(ordinal)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"CUDA device {ordinal} cannot be used: {error} (does nvidia-smi still list it?)") from error
    return found


def _check_capability(cupy: Any, ordinal: int, driver: int) -> None:
    """Refuse a device that the compiler makes no code for."""
    try:
        major, minor = cupy.cuda.nvrtc.getVersion()
        least = max(MIN_CAPABILITY, min(cupy.cuda.nvrtc.getSupportedArchs()))
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"CUDA's compiler NVRTC cannot be loaded ({_last_words(error)}); pip install {_extra(driver)} nvidia-cuda-nvrtc"
        ) from error
    properties = properties_of(cupy, ordinal)
    found = 10 * properties["major"] + properties["minor"]
    if found < least:
        older = (
            "; cupy-cuda12x has a compiler that does (pip install 'oocgraph[cuda12]')" if major >= 13 and found >= MIN_CAPABILITY else ""
        )
        raise DeviceError(
            f"CUDA device {ordinal} ({properties['name'].decode()}) has compute capability {found // 10}.{found % 10}, but NVRTC "
            f"{major}.{minor} makes code for {least // 10}.{least % 10} and newer{older}"
        )


def _too_old(driver: int, built: int) -> DeviceError:
    other = f"pip install {_extra(driver)} in place of the CuPy that is there, or " if driver >= 12000 else ""
    return DeviceError(
        f"the NVIDIA driver is too old: it supports CUDA {_dotted(driver)}, CuPy is built for CUDA {_dotted(built)}; "
        f"{other}install a driver for CUDA {built // 1000} or newer"
    )


def _extra(driver: int) -> str:
    """Return what brings the CuPy that fits the driver."""
    return "'oocgraph[cuda13]'" if driver >= 13000 else "'oocgraph[cuda12]'"


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _last_words(error: Exception) -> str:
    """Return the last line that says something: CuPy draws rules around its messages."""
    lines = [line.strip() for line in str(error).splitlines() if any(letter.isalnum() for letter in line)]
    return lines[-1] if lines else type(error).__name__
