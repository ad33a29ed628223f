"""CUDA C++ executed on NumPy arrays, with the interface of ``cupy.RawModule``.

The source is compiled by g++ (`cuda_on_cpu.h`); a launch returns when the kernel has ended. The interpreter lock is released
meanwhile, so that several threads may launch at the same time.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from oocgraph.errors import DeviceError
from tests.cuda_on_cpu.build import build, runtime_library

MESSAGE_BYTES = 512
MAX_BLOCK_THREADS = 1024
SANITIZE_VARIABLE = "CUDA_ON_CPU_SANITIZE"
"""Set where a process runs under the address sanitizer (`sanitizer.py`): its modules are built for that."""

_Sizes = ctypes.c_uint * 3


class _Kernel(ctypes.Structure):
    """What a module exports for each kernel (`cuda_on_cpu.h`)."""

    _fields_ = (
        ("kinds", ctypes.c_char_p),
        ("sizes", ctypes.c_char_p),
        (
            "launch",
            ctypes.CFUNCTYPE(
                ctypes.c_int, _Sizes, _Sizes, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
            ),
        ),
    )


class KernelError(DeviceError):
    """A kernel ended in a deadlock or a fault, or was launched with what it does not take."""


class CpuRawModule:
    """A compiled CUDA source.

    Parameters
    ----------
    code, names
        The source, and the kernels wanted of it: functions, or instances of templates such as ``expand<long long>``.
    seed
        0: threads and blocks run in order, as far as they do not wait. Any other number: an order of its own.
    sanitize
        Build for the address sanitizer. ``None``: where this process runs under it.
    """

    def __init__(self, code: str, names: Sequence[str], *, seed: int = 0, sanitize: bool | None = None) -> None:
        if sanitize is None:
            sanitize = SANITIZE_VARIABLE in os.environ
        self.seed = seed
        self._number = {name: number for number, name in enumerate(names)}
        entries = "".join(f"CUDA_ON_CPU_ENTRY({number}, {name})\n" for name, number in self._number.items())
        source = f'#include "cuda_on_cpu.h"\nnamespace kernels {{\n#line 1 "kernels.cu"\n{code}\n{entries}}}\n'
        self._library = ctypes.CDLL(str(build(source, "module", sanitize=sanitize, libraries=(runtime_library(sanitize=sanitize),))))

    def get_function(self, name: str) -> CpuFunction:
        """Return a kernel by the name that was given for it."""
        return CpuFunction(_Kernel.in_dll(self._library, f"kernel_{self._number[name]}"), name, seed=self.seed)


class CpuFunction:
    """A kernel that is called as ``function(grid, block, arguments)``."""

    def __init__(self, kernel: _Kernel, name: str, *, seed: int) -> None:
        self.name = name
        self.seed = seed
        self._kernel = kernel
        self._parameters = [(kind, int(size)) for kind, size in zip(kernel.kinds.decode(), kernel.sizes.decode(), strict=True)]

    def __call__(self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], **ignored: Any) -> None:
        """Run all blocks; arrays are changed in place."""
        grid, block = ((*sizes, 1, 1)[:3] for sizes in (grid, block))
        if not 0 < np.prod(block) <= MAX_BLOCK_THREADS or min(*grid, *block) < 1:
            raise KernelError(f"{self.name}: a launch of {grid} blocks of {block} threads is not possible")
        values = self._values(arguments)
        pointers = (ctypes.c_void_p * len(values))(*[value.__array_interface__["data"][0] for value in values])
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        if self._kernel.launch(_Sizes(*grid), _Sizes(*block), pointers, self.seed, message, MESSAGE_BYTES):
            raise KernelError(f"{self.name}: {message.value.decode()}")

    def _values(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        """Each argument as an array of one entry, checked against the kernel's parameters as a GPU would not."""
        if len(arguments) != len(self._parameters):
            raise KernelError(f"{self.name}: {len(arguments)} arguments for {len(self._parameters)} parameters")
        return [
            self._value(position, *parameter, argument)
            for position, (parameter, argument) in enumerate(zip(self._parameters, arguments, strict=True))
        ]

    def _value(self, position: int, kind: str, size: int, argument: Any) -> np.ndarray:
        if kind == "p":
            if argument is None or (isinstance(argument, np.integer) and argument.nbytes == 8 and argument == 0):
                return np.zeros(1, np.uint64)
            if isinstance(argument, np.ndarray) and argument.flags.c_contiguous:
                return np.array([argument.__array_interface__["data"][0]], np.uint64)
            raise KernelError(f"{self.name}: argument {position} is a pointer: a contiguous array or a null, not {argument!r}")
        fits = isinstance(argument, np.generic) and argument.nbytes == size and (argument.dtype.kind == "f") == (kind == "f")
        if not fits:
            raise KernelError(
                f"{self.name}: argument {position} has {size} bytes, kind {kind!r}: a NumPy number of that size, not {argument!r}"
            )
        return np.array([argument])
