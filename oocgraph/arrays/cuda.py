"""One NVIDIA GPU through CuPy: the `oocgraph.arrays.Device` that searches run on.

Device memory comes from the allocator that CuPy has: its own pool, or RMM's where the user, or a worker of dask-cuda, has called
``cupy.cuda.set_allocator(rmm.allocators.cupy.rmm_cupy_allocator)``; see `oocgraph.arrays.pools`. Kernels are compiled by
`oocgraph.arrays.compiler` and kept by `oocgraph.arrays.cubins`.
Page-locked memory does not come from CuPy's pool, which rounds up to powers of two. A method makes the device current in the thread that
calls it, because in CUDA that is a property of the thread, and then the one that was current before.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from oocgraph.arrays import cubins, pools
from oocgraph.arrays.compiler import Compiled, CompileError, Source, Target, target_for
from oocgraph.arrays.drivers import properties_of, usable_cupy
from oocgraph.errors import DeviceError
from oocgraph.types import Array

logger = logging.getLogger(__name__)

ERROR_MEMORY = 2
"""``cudaErrorMemoryAllocation`` (CUDA's driver_types.h; its driver API has the same number)."""

ERROR_PEER_ENABLED = 704
"""``cudaErrorPeerAccessAlreadyEnabled``."""

LOST = frozenset({46, 214, 220, 226, 700, 702, 709, 710, *range(714, 720), 999})
"""Errors after which a process can do nothing more with the device (driver_types.h): it is not available, faults of its memory or a link,
faults of a kernel (illegal address, time-out, failed assertion, hardware exceptions), a context that is gone, unknown."""

LOG_LINES = 8
"""Lines of a compiler's log that an error shows."""

REFUSED = frozenset({200, 209, 218, 222, 500})
"""What the driver says of code that is not for this device or this driver, or is none: invalid image, no kernel image for the device,
invalid PTX, PTX of a newer compiler, a name that is not found (cuda.h)."""

_loaded: WeakKeyDictionary[Any, dict[tuple[int, Source], _Functions]] = WeakKeyDictionary()
"""Kernels that are in the memory of devices, by CuPy's module."""

_loading = threading.Lock()

_of_arrays: WeakKeyDictionary[type, dict[int, CudaDevice]] = WeakKeyDictionary()
"""Devices that `device_of` has opened, by the class of the array and by number."""

P = ParamSpec("P")
R = TypeVar("R")


def open_cuda(ordinal: int | None = None) -> CudaDevice:
    """Open a GPU; see `oocgraph.arrays.device_choice`."""
    return CudaDevice(*usable_cupy(ordinal))


def open_others(first: CudaDevice) -> list[CudaDevice]:
    """Open all other GPUs that this process sees; one that cannot be used is left out, which is logged."""
    found = []
    for ordinal in range(first.num_devices()):
        if ordinal != first.ordinal:
            try:
                found.append(open_cuda(ordinal))
            except DeviceError as error:
                logger.warning("CUDA device %d is left out: %s", ordinal, error)
    return found


def num_uncompiled(sources: Sequence[Source], ordinal: int | None = None) -> int:
    """Return how many of some sources would have to be compiled for a GPU, on which this makes no context.

    Raises
    ------
    DeviceError, MissingDependencyError
        No GPU can be used.
    """
    cupy, ordinal = usable_cupy(ordinal)
    return sum(not is_ready(cupy, ordinal, source) for source in sources)


def device_of(array: Any) -> CudaDevice:
    """Return the device that holds a CuPy array; it is opened once per process, because the checks take milliseconds."""
    ordinal = int(array.device.id)
    known = _of_arrays.setdefault(type(array), {})
    if (found := known.get(ordinal)) is None:
        found = known[ordinal] = open_cuda(ordinal)
    return found


def _on_device(method: Callable[Concatenate[CudaDevice, P], R]) -> Callable[Concatenate[CudaDevice, P], R]:
    """Make the device current for this thread during the call, and tell of CUDA's errors as `DeviceError`."""

    @wraps(method)
    def call(self: CudaDevice, /, *args: P.args, **kwargs: P.kwargs) -> R:
        runtime = self._runtime
        try:
            before = runtime.getDevice()
            runtime.setDevice(self.ordinal)
            try:
                return method(self, *args, **kwargs)
            finally:
                if before != self.ordinal:
                    runtime.setDevice(before)
        except (RuntimeError, MemoryError) as error:  # CUDARuntimeError, CUDADriverError; OutOfMemoryError
            raise self._told(error) from error

    return call


class CudaDevice:
    """A GPU. Opened by `open_cuda`, which says why one cannot be.

    Parameters
    ----------
    cupy
        The module.
    ordinal
        Among the devices that this process sees.
    """

    def __init__(self, cupy: Any, ordinal: int) -> None:
        self._cupy, self._runtime, self.ordinal = cupy, cupy.cuda.runtime, ordinal
        self.name, self.num_multiprocessors, self.total_bytes = "", 0, 0
        self.bus_id: str | None = None
        self._look()

    def __repr__(self) -> str:
        return f"<CUDA device {self.ordinal}: {self.name}>"

    @_on_device
    def _look(self) -> None:
        properties = self._runtime.getDeviceProperties(self.ordinal)
        self.name = properties["name"].decode()
        pools.count(self._cupy, self.ordinal)
        self.num_multiprocessors = int(properties["multiProcessorCount"])
        self.total_bytes = int(self._runtime.memGetInfo()[1])
        if "pciBusID" in properties:
            self.bus_id = "{pciDomainID:04x}:{pciBusID:02x}:{pciDeviceID:02x}.0".format(**properties)

    @_on_device
    def free_bytes(self) -> int:
        """Return what the driver has left and what the pool holds unused, CuPy's or RMM's."""
        pool = pools.pool_of(self._cupy, self.ordinal)
        free = int(self._runtime.memGetInfo()[0])
        return free if pool is None else pool.room(free)

    @_on_device
    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Allocate an array in device memory, with any content.

        Raises
        ------
        DeviceError
            There is not as much memory; the message has the numbers.
        """
        try:
            array: Array = self._cupy.empty(shape, dtype)
        except MemoryError as error:
            wanted = math.prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
            raise DeviceError(f"{self._label} has no room for {_mib(wanted)}: {self._room()} ({error}); {self._more_room()}") from error
        return array

    @_on_device
    def pinned(self, num_bytes: int) -> Array:
        """Allocate page-locked host memory that every device can read; it is freed with its last view."""
        if not num_bytes:
            return np.empty(0, np.uint8)
        flags = self._runtime.hostAllocPortable | self._runtime.hostAllocMapped
        try:
            memory = self._cupy.cuda.PinnedMemory(num_bytes, flags)
        except self._runtime.CUDARuntimeError as error:
            if error.status != ERROR_MEMORY:
                raise
            raise DeviceError(
                f"{_mib(num_bytes)} of host memory cannot be page-locked for {self._label} ({error}); set memory_budget to less"
            ) from error
        return np.frombuffer(self._cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint8, num_bytes)

    @_on_device
    def mapped(self, pinned: Array) -> Array:
        """Return a device's view of (a view of) pinned memory; with unified addresses its address is the same."""
        cupy = self._cupy
        address = int(self._runtime.pointerGetAttributes(pinned.ctypes.data).devicePointer) if pinned.size else 0
        if pinned.size and not address:
            raise DeviceError(f"{self._label} cannot read host memory that is not page-locked")
        memory = cupy.cuda.UnownedMemory(address, pinned.nbytes, pinned, self.ordinal)
        array: Array = cupy.ndarray(pinned.shape, pinned.dtype, cupy.cuda.MemoryPointer(memory, 0))
        return array

    @_on_device
    def stream(self) -> Any:
        """Make a stream that does not wait for CUDA's default stream."""
        return self._cupy.cuda.Stream(non_blocking=True)

    @_on_device
    def event(self, *, blocking: bool = False) -> Any:
        """Make an event with timing; the host waits for it without sleeping, unless it is `blocking` (``cudaEventBlockingSync``)."""
        return self._cupy.cuda.Event(block=blocking)

    @_on_device
    def record(self, event: Any, stream: Any) -> None:
        """Let the event be reached when all work that `stream` has now is done."""
        event.record(stream)

    @_on_device
    def wait(self, stream: Any, event: Any) -> None:
        """Let later work of `stream` wait for the event."""
        stream.wait_event(event)

    @_on_device
    def synchronize(self, what: Any) -> None:
        """Let this thread wait for a stream or an event, without the interpreter's lock."""
        what.synchronize()

    @_on_device
    def wait_for_others(self) -> None:
        """Let this thread wait for the stream on which CuPy works for it."""
        self._cupy.cuda.get_current_stream().synchronize()

    @_on_device
    def asarray(self, x: Any) -> Array:
        """Return what is given as an array in device memory: itself if it is one that is here, else a copy."""
        array: Any = self._cupy.asarray(x)
        return array if int(array.device.id) == self.ordinal else array.copy()  # type: ignore[no-any-return]

    @_on_device
    def num_devices(self) -> int:
        """Devices that this process sees."""
        return int(self._runtime.getDeviceCount())

    @_on_device
    def seconds(self, start: Any, stop: Any) -> float:
        """Return the time between two events that have been reached (CUDA's clock: half a microsecond)."""
        return float(self._cupy.cuda.get_elapsed_time(start, stop)) / 1000

    @_on_device
    def copy(self, source: Array, target: Array, stream: Any) -> None:
        """Copy on `stream`; the direction follows from the addresses."""
        if source.nbytes != target.nbytes:
            raise ValueError(f"a copy of {source.nbytes} bytes to {target.nbytes} bytes")
        if source.nbytes:
            self._runtime.memcpyAsync(_address(target), _address(source), source.nbytes, self._runtime.memcpyDefault, stream.ptr)

    @_on_device
    def reaches(self, other: Any) -> bool:
        """Whether a copy from another device comes straight from its memory; access to that is turned on."""
        if not isinstance(other, CudaDevice) or not (
            other.ordinal == self.ordinal or self._runtime.deviceCanAccessPeer(self.ordinal, other.ordinal)
        ):
            return False
        if other.ordinal != self.ordinal:
            try:
                self._runtime.deviceEnablePeerAccess(other.ordinal)
            except self._runtime.CUDARuntimeError as error:
                if error.status != ERROR_PEER_ENABLED:
                    raise
        return True

    @_on_device
    def module(self, code: str, names: Sequence[str]) -> Any:
        """Load kernels, once in a process: from the cache of compiled ones, into which they are compiled if it lacks them.

        Raises
        ------
        DeviceError
            The source does not compile: the message has the first lines of the log. Or the driver does not take the machine code.
        """
        source = Source(code, tuple(names))
        with _loading:  # others that need the same wait
            loaded = _loaded.setdefault(self._cupy, {})
            if (found := loaded.get((self.ordinal, source))) is None:
                found = loaded[self.ordinal, source] = self._load(source)
        return found

    def lacks(self, code: str, names: Sequence[str]) -> bool:
        """Whether `module` would have to compile."""
        return not is_ready(self._cupy, self.ordinal, Source(code, tuple(names)))

    def _load(self, source: Source) -> _Functions:
        target, nvrtc = self._target, self._cupy.cuda.nvrtc
        try:
            compiled = cubins.compiled_for(nvrtc, source, target)
            try:
                return self._functions(compiled)
            except RuntimeError as error:
                if getattr(error, "status", None) not in REFUSED:
                    raise
                logger.warning("%s does not take CUDA kernels from the cache (%s): they are compiled again", self._label, error)
            cubins.forget(nvrtc, source, target)
            return self._functions(cubins.compiled_for(nvrtc, source, target))
        except CompileError as error:
            log = [line for line in str(error).splitlines() if line.strip()]
            more = [f"... {len(log) - LOG_LINES} more lines"] if len(log) > LOG_LINES else []
            raise DeviceError("\n".join([f"the kernels do not compile for {self._label}:", *log[:LOG_LINES], *more])) from error

    def _functions(self, compiled: Compiled) -> _Functions:
        module = self._cupy.cuda.function.Module()
        module.load(compiled.image)
        return _Functions({name: module.get_function(lowered) for name, lowered in compiled.lowered.items()})

    @property
    def _target(self) -> Target:
        return _target(self._cupy, self.ordinal)

    @_on_device
    def resident_blocks(self, function: Any, block: int) -> int:
        """Return how many blocks, of `block` threads each, of a kernel a multiprocessor holds at once."""
        return int(self._cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, block, 0))

    @_on_device
    def launch(self, function: Any, grid: int, block: int, args: tuple[Any, ...], stream: Any) -> None:
        """Start a kernel; returns when it is in the stream's queue."""
        function((grid,), (block,), args, stream=stream)

    def close(self) -> None:
        """Give the unused blocks of CuPy's pool back to the driver; of an allocator that the user has set nothing."""
        try:
            self._give_back()
        except DeviceError as error:  # of a device that has failed: the cause has been reported
            logger.debug("%s", error)

    @_on_device
    def _give_back(self) -> None:
        pools.give_back(self._cupy)

    def current(self) -> AbstractContextManager[Any]:
        """Make the device current for CuPy's own operators in this thread, while the context that returns is entered."""
        context: AbstractContextManager[Any] = self._cupy.cuda.Device(self.ordinal)
        return context

    def _room(self) -> str:
        """Say how much memory is free, and where."""
        free, total = self._runtime.memGetInfo()
        pool = pools.pool_of(self._cupy, self.ordinal)
        inside = "" if pool is None else f"; {pool.name} holds {_mib(pool.size_bytes)}, of which {_mib(pool.free_bytes)} are free"
        return f"{_mib(free)} of {_mib(total)} are free{inside}"

    def _more_room(self) -> str:
        pool = pools.pool_of(self._cupy, self.ordinal)
        remedy = "" if pool is None or not pool.remedy else f"{pool.remedy}, "
        return f"{remedy}set device_memory_budget to less, or end other programs that use the device (nvidia-smi lists them)"

    @property
    def _label(self) -> str:
        return f"CUDA device {self.ordinal}" + (f" ({self.name})" if self.name else "")

    def _told(self, error: RuntimeError | MemoryError) -> DeviceError:
        status = getattr(error, "status", None)
        if status == ERROR_MEMORY or isinstance(error, MemoryError):
            return DeviceError(f"{self._label} is out of memory ({error}); {self._more_room()}")
        if status in LOST:
            return DeviceError(
                f"{self._label} has failed: {error}; this process can do nothing more with it, start a new one (nvidia-smi and the "
                "kernel's log tell whether the device is well, device='cpu' does without)"
            )
        return DeviceError(f"{self._label}: {error}")


def is_ready(cupy: Any, ordinal: int, source: Source) -> bool:
    """Whether kernels are in a device's memory, or in the cache of compiled ones."""
    if (ordinal, source) in _loaded.get(cupy, {}):
        return True
    return cubins.is_kept(cupy.cuda.nvrtc, source, _target(cupy, ordinal))


def _target(cupy: Any, ordinal: int) -> Target:
    properties, supported = properties_of(cupy, ordinal), cupy.cuda.nvrtc.getSupportedArchs()
    return target_for(10 * properties["major"] + properties["minor"], supported)


class _Functions:
    """Compiled kernels by name."""

    def __init__(self, functions: dict[str, Any]) -> None:
        self._functions = functions

    def get_function(self, name: str) -> Any:
        """Return the kernel `name`, one of those that were asked for."""
        return self._functions[name]


def _address(array: Any) -> int:
    """Return where an array starts, on the device or in host memory."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):,.1f} MiB"
