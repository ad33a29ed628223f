"""Keep memory what a budget says: freed buffers go back to the system, and Arrow keeps none for itself."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MMAP_THRESHOLD = -3
"""``M_MMAP_THRESHOLD`` of ``mallopt(3)``."""

MMAP_BYTES = 4 << 20
"""Arrays above this are mapped and unmapped by themselves.

The C library would raise the limit to 32 MiB by itself, and keep what it freed."""

TRIM_THRESHOLD = -1
"""``M_TRIM_THRESHOLD``."""

KEPT_BYTES = 16 << 20
"""What a thread's heap keeps of what it freed last: a fresh page costs a fault, 2 us on a virtual machine.

By default these are 128 KiB once the other limit is set, and blocks of a Parquet file take two faults for three pages."""


@contextmanager
def returned_memory() -> Iterator[None]:
    """Use Arrow's system allocator inside, if Arrow is loaded, and give freed memory back at the end."""
    pa = sys.modules.get("pyarrow")
    before = None if pa is None else pa.default_memory_pool()
    if pa is not None:
        pa.set_memory_pool(pa.system_memory_pool())
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, MMAP_BYTES)
        libc.mallopt(TRIM_THRESHOLD, KEPT_BYTES)
    try:
        yield
    finally:
        if pa is not None:
            pa.set_memory_pool(before)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)
