"""A module in place of CuPy that writes down how it is called, and fails where it is told to.

Names and signatures are those of CuPy 13 and 14: cupy/_core/raw.pyx, cupy/cuda/{function,memory,pinned_memory,stream}.pyx,
cupy_backends/cuda/api/runtime.pyx.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np

FREE, TOTAL = 3 << 30, 8 << 30


class CUDARuntimeError(RuntimeError):
    def __init__(self, status):
        super().__init__(f"cudaError{status}: what CUDA says")
        self.status = status


class OutOfMemoryError(MemoryError):
    pass


class NVRTCError(RuntimeError):
    pass


class FakeNvrtc:
    """As `cupy.cuda.nvrtc`: what it gives names the source's kernels; `compilations` counts, `refusal` is a log with which it refuses."""

    NVRTCError = NVRTCError

    def __init__(self, calls, version=(13, 0), archs=(75, 80, 90, 100)):
        self.version, self.archs, self.compilations, self.refusal, self._calls, self._programs = version, archs, 0, None, calls, []

    def getVersion(self):
        return self.version

    def getSupportedArchs(self):
        return self.archs

    def createProgram(self, code, name, headers, include_names):
        self._programs.append(SimpleNamespace(code=code, names=[], options=()))
        return len(self._programs)

    def addNameExpression(self, program, name):
        self._programs[program - 1].names.append(name)

    def compileProgram(self, program, options):
        found = self._programs[program - 1]
        self._calls.append(("compile", (found.code, options, tuple(found.names))))
        if self.refusal is not None:
            raise NVRTCError("NVRTC_ERROR_COMPILATION (6)")
        self.compilations, found.options = self.compilations + 1, options

    def getProgramLog(self, program):
        return self.refusal

    def getLoweredName(self, program, name):
        return "lowered " + name

    def getCUBIN(self, program):
        return b"\x7fELF" + "\n".join("lowered " + name for name in self._programs[program - 1].names).encode()

    def getPTX(self, program):
        return self.getCUBIN(program).replace(b"\x7fELF", b".version")

    def destroyProgram(self, program):
        assert self._programs[program - 1] is not None
        self._programs[program - 1] = None


class FakePool:
    """As `cupy.cuda.MemoryPool`."""

    def __init__(self, cupy, free_bytes=1 << 20):
        self.free, self.used, self.limit, self._cupy = free_bytes, 0, 0, cupy

    def malloc(self, size):
        raise NotImplementedError

    def free_bytes(self):
        return self.free

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.free + self.used

    def get_limit(self):
        return self.limit

    def free_all_blocks(self):
        self._cupy.calls.append(("free_all_blocks", ()))


class FakeArray:
    """As `cupy.ndarray(shape, dtype, memptr)`."""

    def __init__(self, shape, dtype, memptr):
        self.shape, self.dtype, self.data = shape, np.dtype(dtype), memptr
        self.nbytes = int(np.prod(shape)) * self.dtype.itemsize


class FakeCupy(ModuleType):
    """The module; `fail` maps the name of a function of CUDA's runtime to the status it fails with."""

    def __init__(self, *, count=1, capability=(9, 0), runtime_version=13020, archs=(75, 80, 90, 100)):
        super().__init__("cupy")
        self.calls, self.fail, self.stuck = [], {}, SimpleNamespace(memory=None, loads=[])
        self.ndarray, self._current = FakeArray, threading.local()
        self.runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError, is_hip=False, hostAllocPortable=1, hostAllocMapped=2, memcpyDefault=4,
            runtimeGetVersion=self._of("runtimeGetVersion", runtime_version), getDeviceCount=self._of("getDeviceCount", count),
            getDevice=self._get_device, setDevice=self._set_device, memGetInfo=self._of("memGetInfo", (FREE, TOTAL)),
            memcpyAsync=self._of("memcpyAsync", None),
            pointerGetAttributes=lambda pointer: SimpleNamespace(devicePointer=pointer),
            getDeviceProperties=self._of(
                "getDeviceProperties",
                {"name": b"Fake GPU", "multiProcessorCount": 132, "major": capability[0], "minor": capability[1]},
            ),
        )  # fmt: skip
        self.pool, self.nvrtc = FakePool(self), FakeNvrtc(self.calls, archs=archs)
        self.cuda = SimpleNamespace(
            runtime=self.runtime,
            nvrtc=self.nvrtc,
            driver=SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda function, block, _shared: 65536 // (function * block)),
            function=SimpleNamespace(Module=self._module),
            Device=self._device,
            PinnedMemory=self._pinned,
            PinnedMemoryPointer=lambda memory, offset: bytearray(memory.size - offset),
            UnownedMemory=lambda pointer, size, owner, device: SimpleNamespace(ptr=pointer, size=size, owner=owner, device_id=device),
            MemoryPointer=lambda memory, offset: SimpleNamespace(mem=memory, ptr=memory.ptr + offset),
            Stream=self._of("Stream", SimpleNamespace(ptr=77, wait_event=self._of("wait_event", None), synchronize=self._of("sync", None))),
            Event=self._of("Event", SimpleNamespace(ptr=88, record=self._of("record", None), synchronize=self._of("sync", None))),
            get_current_stream=lambda: SimpleNamespace(synchronize=self._of("sync current", None)),
            get_elapsed_time=self._of("get_elapsed_time", 250.0),
            get_allocator=lambda: self.allocator,
        )
        self.allocator = self.pool.malloc

    def called(self, name):
        """Return the arguments of each call of `name`."""
        return [arguments for called, arguments in self.calls if called == name]

    def get_default_memory_pool(self):
        return self.pool

    def empty(self, shape, dtype):
        if self.stuck.memory is not None:
            raise self.stuck.memory
        return FakeArray(shape if isinstance(shape, tuple) else (shape,), dtype, SimpleNamespace(ptr=4096))

    def _of(self, name, result):
        def call(*args, **kwargs):
            self.calls.append((name, (*args, kwargs) if kwargs else args))
            if name in self.fail:
                raise CUDARuntimeError(self.fail[name])
            return result

        return call

    def _get_device(self):
        """Return the current device of the thread, which is no call that is written down."""
        if "getDevice" in self.fail:
            raise CUDARuntimeError(self.fail["getDevice"])
        return getattr(self._current, "ordinal", 0)

    def _set_device(self, ordinal):
        self._of("setDevice", None)(ordinal)
        self._current.ordinal = ordinal

    @contextmanager
    def _device(self, ordinal):
        """As `cupy.cuda.Device` in a ``with`` statement."""
        before = self._get_device()
        self._set_device(ordinal)
        yield
        self._set_device(before)

    def _pinned(self, size, flags):
        self._of("PinnedMemory", None)(size, flags)
        return SimpleNamespace(size=size)

    def _module(self):
        """Return what loads an image and gives its kernels; `stuck.loads` are statuses with which the next loads fail."""
        names = []

        def load(image):
            self._of("load", None)(image)
            if self.stuck.loads:
                raise CUDARuntimeError(self.stuck.loads.pop(0))
            names.extend(image.removeprefix(b"\x7fELF").removeprefix(b".version").decode().split("\n"))

        def get_function(name):
            if name not in names:
                raise CUDARuntimeError(500)

            def function(grid, block, args, **kwargs):
                self._of("launch", None)(name, grid, block, args, kwargs)

            return function

        return SimpleNamespace(load=load, get_function=get_function)
