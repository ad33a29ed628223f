"""A device that is the CPU: `oocgraph.arrays.Device` on NumPy arrays and CUDA sources executed by fibers."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from oocgraph.errors import DeviceError
from tests.cuda_on_cpu.build import BuildError
from tests.cuda_on_cpu.memory import Borrowed, DeviceArray, Memory, memory_of
from tests.cuda_on_cpu.module import CpuFunction, CpuRawModule, KernelError
from tests.cuda_on_cpu.streams import CpuEvent, CpuStream, Deferred, Immediate, Mark, Operation


def _operation(method: Callable) -> Callable:
    """Count a call, and let it fail where the device is to fail or has failed."""

    @wraps(method)
    def call(self: CpuDevice, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self.calls[method.__name__] += 1
            if self.fail_after is not None and self.calls.total() >= self.fail_after:
                self._failure = self._failure or f"{self.name}: the device was lost"
            if self._failure:
                raise DeviceError(self._failure)
        try:
            return method(self, *args, **kwargs)
        except KernelError as error:  # after which nothing works, as on a GPU
            self._failure = str(error)
            raise

    return call


class CpuDevice:
    """A device of few bytes that can be told to behave badly.

    Parameters
    ----------
    seed
        The order of threads and blocks (0: that of their numbers) and, with `deferred`, of what streams do (`streams.py`).
    total_bytes
        Device memory; more is refused.
    deferred
        Whether streams are queues whose work is done later. Otherwise it is done when it is asked for, and several threads may launch
        kernels at the same time.
    fail_after
        The call of a method (1: the first) at which the device is lost. `calls` counts them.
    num_multiprocessors
        Few, because every thread of a grid costs time here.
    bus_id
        Where it says that it is attached.
    peers
        Whether it reaches the memory of others.

    Attributes
    ----------
    allocated_bytes, peak_bytes, num_allocations
        Device memory now and at most, and how often some was asked for.
    pinned_bytes, peak_pinned_bytes, num_pinned_allocations
        The same for page-locked memory.
    calls, launched
        How often each method was called, and each kernel launched, by the name that its module was given.
    waits
        How often the host waited, by ``stream`` and ``event``.
    copied_bytes
        By ``to_device``, ``to_host`` and ``on_device``.
    """

    def __init__(
        self,
        seed: int = 0,
        total_bytes: int = 1 << 30,
        *,
        deferred: bool = False,
        fail_after: int | None = None,
        num_multiprocessors: int = 2,
        bus_id: str | None = None,
        peers: bool = True,
    ) -> None:
        self.name, self.ordinal, self.num_multiprocessors, self.total_bytes = "CPU (shim)", 0, num_multiprocessors, total_bytes
        self.seed, self.fail_after, self.bus_id, self._peers = seed, fail_after, bus_id, peers
        self.allocated_bytes = self.peak_bytes = self.num_allocations = 0
        self.pinned_bytes = self.peak_pinned_bytes = self.num_pinned_allocations = 0
        self.calls: Counter[str] = Counter()
        self.launched: Counter[str] = Counter()
        self.copied_bytes: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self._queues = Deferred(seed) if deferred else Immediate()
        self._failure = ""
        self._lock = threading.RLock()

    def free_bytes(self) -> int:
        """Return the bytes that are left."""
        return self.total_bytes - self.allocated_bytes

    @_operation
    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """Allocate a `DeviceArray` with any content."""
        shape = shape if isinstance(shape, tuple) else (shape,)
        num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        with self._lock:
            if num_bytes > self.free_bytes():
                raise DeviceError(
                    f"{self.name} has no room for {_mib(num_bytes)}: {_mib(self.free_bytes())} of {_mib(self.total_bytes)} are free; "
                    "set device_memory_budget to less"
                )
            self.num_allocations += 1
            self.allocated_bytes += num_bytes
            self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return Memory(num_bytes, "device", self._free).array().view(dtype).reshape(shape)

    @_operation
    def pinned(self, num_bytes: int) -> np.ndarray:
        """Allocate what this device takes for page-locked memory."""
        try:
            memory = Memory(num_bytes, "pinned", self._free_pinned)
        except MemoryError as error:
            raise DeviceError(f"{_mib(num_bytes)} of host memory cannot be page-locked for {self.name}") from error
        with self._lock:
            self.num_pinned_allocations += 1
            self.pinned_bytes += num_bytes
            self.peak_pinned_bytes = max(self.peak_pinned_bytes, self.pinned_bytes)
        return memory.array()

    @_operation
    def mapped(self, pinned: np.ndarray) -> np.ndarray:
        """Return the same memory as a `DeviceArray`."""
        memory = memory_of(pinned)
        if memory is None or memory.kind != "pinned":
            raise DeviceError(f"{self.name} cannot read host memory that is not page-locked")
        return pinned.view(DeviceArray)

    @_operation
    def stream(self) -> CpuStream:
        """Make a stream."""
        return CpuStream()

    @_operation
    def event(self, *, blocking: bool = False) -> CpuEvent:
        """Make an event, which is done until it is recorded."""
        return CpuEvent(blocking)

    @_operation
    def record(self, event: CpuEvent, stream: CpuStream) -> None:
        """Let the event stand for this place in the stream."""
        event.mark = Mark(stream)
        self._queues.submit(stream, Operation(event.mark.reach))

    @_operation
    def wait(self, stream: CpuStream, event: CpuEvent) -> None:
        """Let the stream wait for the place that the event stands for now."""
        if event.mark is not None:
            self._queues.submit(stream, Operation(lambda: None, after=event.mark))

    @_operation
    def synchronize(self, what: CpuStream | CpuEvent) -> None:
        """Do all that is left of a stream, or before an event."""
        with self._lock:
            self.waits["event" if isinstance(what, CpuEvent) else "stream"] += 1
        place = what.mark if isinstance(what, CpuEvent) else what
        if place is not None:
            self._queues.finish(place)

    @_operation
    def wait_for_others(self) -> None:
        """Nobody else uses it."""

    @_operation
    def seconds(self, start: CpuEvent, stop: CpuEvent) -> float:
        """Return the time between two events, by the host's clock."""
        if start.mark is None or stop.mark is None or start.mark.seconds is None or stop.mark.seconds is None:
            raise DeviceError(f"{self.name}: an event has not been reached")
        return stop.mark.seconds - start.mark.seconds

    @_operation
    def copy(self, source: np.ndarray, target: np.ndarray, stream: CpuStream) -> None:
        """Queue a copy, of which one side is device memory."""
        if source.nbytes != target.nbytes:
            raise ValueError(f"a copy of {source.nbytes} bytes to {target.nbytes} bytes")
        read, written = Borrowed(source), Borrowed(target)
        direction = {"pinned": "to_device", "device": "on_device"}[read.kind] if written.kind == "device" else "to_host"
        if read.kind == written.kind == "pinned":
            raise TypeError("a copy from host memory to host memory")
        with self._lock:
            self.copied_bytes[direction] += source.nbytes
        self._queues.submit(stream, Operation(lambda: _copy(read.array(), written.array())))

    def reaches(self, other: CpuDevice) -> bool:
        """Whether a copy from another one is one copy."""
        return self is other or self._peers

    @_operation
    def module(self, code: str, names: Sequence[str]) -> CpuRawModule:
        """Compile with g++."""
        try:
            return CpuRawModule(code, names, seed=self.seed)
        except BuildError as error:
            raise DeviceError(f"the kernels do not compile for {self.name}:\n{error}") from error

    def lacks(self, code: str, names: Sequence[str]) -> bool:
        """Say that nothing has to be compiled: what g++ makes is kept."""
        return False

    def resident_blocks(self, function: CpuFunction, block: int) -> int:
        """As many as 2,048 threads make."""
        return 2048 // block

    @_operation
    def launch(self, function: CpuFunction, grid: int, block: int, args: tuple[Any, ...], stream: CpuStream) -> None:
        """Queue a kernel."""
        for argument in args:
            if isinstance(argument, np.ndarray) and not isinstance(argument, DeviceArray):
                raise TypeError(f"{function.name}: an array in host memory, which has to be mapped: {argument!r}")
        held = [Borrowed(argument) if isinstance(argument, np.ndarray) else argument for argument in args]
        with self._lock:
            self.launched[function.name] += 1

        def run() -> None:
            function((grid,), (block,), [argument.array() if isinstance(argument, Borrowed) else argument for argument in held])

        self._queues.submit(stream, Operation(run))

    def close(self) -> None:
        """Nothing is kept for later."""

    def _free(self, num_bytes: int) -> None:
        with self._lock:
            self.allocated_bytes -= num_bytes

    def _free_pinned(self, num_bytes: int) -> None:
        with self._lock:
            self.pinned_bytes -= num_bytes


def _copy(source: np.ndarray, target: np.ndarray) -> None:
    target.reshape(-1).view(np.uint8)[:] = source.reshape(-1).view(np.uint8)


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):,.1f} MiB"
