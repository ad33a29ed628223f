"""Device memory and page-locked memory that are not: NumPy arrays with the manners of both.

Every allocation is one ``malloc`` of exactly its bytes, so that the address sanitizer sees an access behind its end, and starts with any
content. Arrays are views of a `Memory`, which counts as freed when the last of them is gone, while operations that a stream has yet to do
hold only its bytes: what is freed too early is poisoned, and noted (`Uses.dropped`); operations that run on it nonetheless fail.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

ALIGNMENT = 256
"""Bytes; what CUDA's allocations are aligned to at least."""

ANY_CONTENT, POISON = 0xA5, 0xDB

_libc = ctypes.CDLL(None)
_libc.posix_memalign.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_libc.free.restype = None


class Bytes:
    """Allocated bytes, freed with the object."""

    def __init__(self, num_bytes: int) -> None:
        pointer = ctypes.c_void_p()
        if _libc.posix_memalign(ctypes.byref(pointer), ALIGNMENT, num_bytes):
            raise MemoryError(f"{num_bytes} bytes")
        self.address, self.num_bytes = pointer.value or 0, num_bytes
        weakref.finalize(self, _libc.free, pointer)
        ctypes.memset(pointer, ANY_CONTENT, num_bytes)

    def array(self, address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return a plain array over some of the bytes, which keeps all of them."""
        return np.asarray(_Window(self, address, shape, np.dtype(dtype)))


class Uses:
    """Operations that a stream has yet to do with the bytes of one allocation.

    Attributes
    ----------
    dropped : list of str
        Of all allocations: what was freed while there were some.
    """

    dropped: ClassVar[list[str]] = []

    def __init__(self, what: str, held: Bytes) -> None:
        self._what, self._held, self._count, self._lock = what, weakref.ref(held), 0, threading.Lock()

    def add(self, change: int) -> None:
        """Note that some were queued, or are done."""
        with self._lock:
            self._count += change

    def on_free(self) -> None:
        """Poison the bytes if an operation has them yet, as what is allocated next would change them."""
        if self._count and (held := self._held()) is not None:
            ctypes.memset(ctypes.c_void_p(held.address), POISON, held.num_bytes)
            self.dropped.append(f"{self._what}, before {self._count} operations on it")


class Memory:
    """What arrays of one allocation share.

    Parameters
    ----------
    num_bytes
        Its size.
    kind
        ``device`` or ``pinned``.
    on_free
        Called with the size when the last array is gone.
    """

    def __init__(self, num_bytes: int, kind: str, on_free: Callable[[int], None]) -> None:
        self.bytes, self.kind = Bytes(num_bytes), kind
        self.uses = Uses(f"{kind} memory of {num_bytes} bytes", self.bytes)
        weakref.finalize(self, on_free, num_bytes).atexit = False
        weakref.finalize(self, self.uses.on_free).atexit = False

    def array(self) -> np.ndarray:
        """Return all of it as a uint8 array."""
        array = np.asarray(_Window(self, self.bytes.address, (self.bytes.num_bytes,), np.dtype(np.uint8)))
        return array.view(DeviceArray) if self.kind == "device" else array


class _Window:
    """What NumPy makes an array of."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.owner = owner
        self.__array_interface__ = {"shape": shape, "typestr": dtype.str, "data": (address, False), "version": 3}


class DeviceArray(np.ndarray):
    """An array that the host cannot read: it can be sliced, viewed, copied by a stream and given to kernels."""

    def __repr__(self) -> str:
        return f"<device array of shape {self.shape}, {self.dtype}>"

    __str__ = __repr__

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("device memory is not read or written by the host: copy it on a stream")

    __array_ufunc__ = __array_function__ = __setitem__ = __iter__ = __contains__ = _refuse
    __bool__ = __int__ = __float__ = __index__ = __complex__ = _refuse
    all = any = argmax = argmin = argsort = astype = byteswap = choose = compress = copy = cumsum = dump = dumps = fill = item = max = (
        mean
    ) = min = _refuse
    nonzero = partition = prod = put = repeat = searchsorted = sort = std = sum = take = tobytes = tofile = tolist = trace = var = _refuse

    def __getitem__(self, key: Any) -> DeviceArray:
        parts = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, slice) or part is Ellipsis for part in parts):
            self._refuse()
        return super().__getitem__(key)


def memory_of(array: np.ndarray) -> Memory | None:
    """Return the allocation that an array is a view of; ``None`` for any other array."""
    base = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base.owner if isinstance(base, _Window) and isinstance(base.owner, Memory) else None


class Borrowed:
    """An array as a queued operation holds it: its bytes, and whether the array's memory has been freed meanwhile."""

    def __init__(self, array: np.ndarray) -> None:
        memory = memory_of(array)
        if memory is None:
            raise TypeError(f"an array that is neither of this device nor page-locked: {array!r}")
        if not array.flags.c_contiguous:
            raise ValueError("an array that is not contiguous")
        self.kind, self._uses = memory.kind, memory.uses
        self._memory = weakref.ref(memory)
        self._uses.add(1)
        self._plain = memory.bytes.array(array.__array_interface__["data"][0], array.shape, array.dtype)

    def array(self) -> np.ndarray:
        """Return the plain array, once, to the operation; or raise if the memory was freed."""
        self._uses.add(-1)
        if self._memory() is None:
            raise RuntimeError("memory was freed before the operation that uses it had run")
        return self._plain
