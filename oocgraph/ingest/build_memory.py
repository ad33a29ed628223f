"""Keep a build's memory what it says: freed buffers go back to the system, and Arrow takes none for itself."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MMAP_THRESHOLD = -3
"""``M_MMAP_THRESHOLD`` of ``mallopt(3)``."""

MMAP_BYTES = 4 << 20
"""Arrays above this are mapped and unmapped by themselves.

The C library would raise the limit to 32 MiB by itself, and keep what it freed."""


@contextmanager
def returned_memory() -> Iterator[None]:
    """Use Arrow's system allocator inside, and give freed memory back at the end."""
    import pyarrow as pa

    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, MMAP_BYTES)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)


def written_bytes() -> int:
    """Bytes this process has passed to write calls so far; 0 where /proc does not tell."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar")), 0)
