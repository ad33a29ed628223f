"""Keep memory what a budget says: freed buffers go back to the system, and Arrow keeps none for itself."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.machine import TRIM_BYTES, TRIM_THRESHOLD, return_end_of_arena, return_freed_bytes
from oocgraph.types import Array

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MMAP_THRESHOLD = -3
"""``M_MMAP_THRESHOLD`` of ``mallopt(3)``."""

MMAP_BYTES = 4 << 20
"""Arrays above this are mapped and unmapped by themselves.

The C library would raise the limit to 32 MiB by itself, and keep what it freed."""

CODEC_MMAP_BYTES = 256 << 10
"""The same once chunks are decoded: Blosc's buffers, of 0.5 to 1 MiB, would leave 6 to 9 MiB in the arena of each thread, zstd's 2."""

MOST_KEPT_BYTES, KEPT_SHARE = 16 << 20, 1 / 32
"""What a build lets each thread keep (of 128 KiB, blocks of a Parquet file take two faults for three pages, 2 us each), and which part of
its budget all threads may keep."""


ARROW_BYTES = 32 << 20
"""What Arrow's own allocator keeps, for some seconds, of what its reader of Parquet has freed: 8 to 28 MiB of a peak of 8."""

ONCE_BYTES = 4 << 20
"""Bytes from which on NumPy asks for huge pages."""


def passing_array(length: int, dtype: Any) -> Array:
    """Return an uninitialised array that is written and read a few times only: (length,) of `dtype`.

    A large one is of small pages. NumPy asks for huge ones, which serve access in any order, but a system rarely has them ready: where a
    virtual machine had given its free memory back to the host, the first touch of them took 2 ns a byte, and of small ones 0.5 ns.
    """
    num_bytes = length * np.dtype(dtype).itemsize
    if num_bytes < ONCE_BYTES:
        return np.empty(length, dtype)
    return np.frombuffer(mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype)


def kept_bytes_of(limit_bytes: int, threads: int) -> int:
    """Return what each thread of a build may keep of what it has freed, within a budget."""
    return max(TRIM_BYTES, min(MOST_KEPT_BYTES, int(KEPT_SHARE * limit_bytes / threads)))


LOOP_SECONDS = 0.1
"""How long the thread of an event loop may take to begin."""

_mapped_above, _kept_bytes = MMAP_BYTES, TRIM_BYTES

_loops: weakref.WeakSet[AbstractEventLoop] = weakref.WeakSet()


def map_buffers_of_codecs() -> None:
    """Have the buffers of codecs mapped and unmapped by themselves, from now on."""
    _set_allocator(CODEC_MMAP_BYTES, _kept_bytes)


def clear_behind(loop: AbstractEventLoop) -> None:
    """Have the thread of an event loop, which holds what comes over a network, give back what it has freed in `return_all_freed`, too."""
    _loops.add(loop)


def return_all_freed() -> None:
    """Give what this process has freed back to the system, in tenths of a millisecond; it keeps little of what it frees from now on."""
    _set_allocator(_mapped_above, _kept_bytes)
    waits = []
    for loop in list(_loops):
        done = threading.Event()
        with suppress(RuntimeError):  # it is closed meanwhile
            if loop.is_running():
                loop.call_soon_threadsafe(_return_in_loop, done)
                waits.append(done)
    for wait in waits:
        wait.wait(LOOP_SECONDS)
    release_arrow()
    return_freed_bytes()


_default_pool = threading.Lock()
"""Held while another pool is Arrow's default for a moment."""


def release_arrow() -> None:
    """Have Arrow's allocators give back what this thread has freed: readers use the one that Arrow began with, whatever pool is set since.

    Of whatever pool `release_unused` is called, pyarrow 26 has the default one release: each is the default for a moment.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None:
        return
    with _default_pool:
        before = pa.default_memory_pool()
        try:
            for name in set(pa.supported_memory_backends()) - {"system"}:  # the system's gives back by itself
                pool = getattr(pa, f"{name}_memory_pool")()
                pa.set_memory_pool(pool)
                pool.release_unused()
        finally:
            pa.set_memory_pool(before)


def _return_in_loop(done: threading.Event) -> None:
    return_end_of_arena()
    done.set()


def _set_allocator(mapped_above: int, kept_bytes: int) -> None:
    """Tell the C library what to map, and what of freed memory to keep at the end of an arena."""
    global _mapped_above, _kept_bytes
    _mapped_above, _kept_bytes = mapped_above, kept_bytes
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, mapped_above)
    _keep(kept_bytes)


def _keep(kept_bytes: int) -> None:
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(TRIM_THRESHOLD, kept_bytes)


def arrow_bytes() -> int:
    """Return what Arrow may keep of what its reader has freed: nothing where it began with the system's allocator, as in a command."""
    pa = sys.modules.get("pyarrow")
    if pa is None:
        return 0
    backends, asked = pa.supported_memory_backends(), os.environ.get("ARROW_DEFAULT_MEMORY_POOL")
    return 0 if (asked if asked in backends else backends[0]) == "system" else ARROW_BYTES


@contextmanager
def ending_threads() -> Iterator[None]:
    """Let nothing be kept for a while: a thread that ends inside gives back what it has kept, if it calls `return_end_of_arena` first.

    That leaves what is in front of small pieces which the thread has for itself; as it ends they are freed, and that goes, too.
    """
    _keep(TRIM_BYTES)
    try:
        yield
    finally:
        _keep(_kept_bytes)


@contextmanager
def returned_memory(kept_bytes: int = TRIM_BYTES) -> Iterator[None]:
    """Use Arrow's system allocator inside, if Arrow is loaded, and give freed memory back at the end.

    So many bytes that are freed may be kept until then, of each thread: who allocates block after block of less than `MMAP_BYTES` waits for
    the system to clear their pages otherwise.
    """
    pa = sys.modules.get("pyarrow")
    with _default_pool:
        before = None if pa is None else pa.default_memory_pool()
        if pa is not None:
            pa.set_memory_pool(pa.system_memory_pool())
    kept_before = _kept_bytes
    _set_allocator(_mapped_above, kept_bytes)
    try:
        yield
    finally:
        _set_allocator(_mapped_above, kept_before)
        if pa is not None:
            with _default_pool:
                pa.set_memory_pool(before)
        return_freed_bytes()
