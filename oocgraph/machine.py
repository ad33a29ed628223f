"""What this machine and the control group of this process leave to it."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path

from oocgraph.config import require_proc

TRIM_THRESHOLD, TRIM_BYTES = -1, 128 << 10
"""``M_TRIM_THRESHOLD`` of ``mallopt(3)``, and its default: what is free at the end of an arena, if it is more, goes back to the system."""


def kernel_text(path: str) -> str:
    """Return what a file of the kernel says, in one read: a tenth of the time that `Path.read_text` takes."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 16).decode()
    finally:
        os.close(fd)


def kib_of(text: str, name: str) -> int:
    """Return the bytes of a line such as ``RssAnon:  12 kB``; 0 where there is no such line."""
    _, found, rest = text.partition(f"\n{name}:")
    return int(rest.split(maxsplit=1)[0]) * 1024 if found else 0


def cgroup_limit_bytes() -> int | None:
    """Memory limit of the control group (version 1 or 2) of this process; None where there is none."""
    try:
        texts = [kernel_text(file).strip() for file in _limit_files(kernel_text("/proc/self/cgroup"))]
    except OSError:
        return None
    sane = [int(text) for text in texts if text.isdigit() and int(text) < 1 << 60]
    return min(sane) if sane else None


@lru_cache(maxsize=1)
def _limit_files(groups: str) -> list[str]:
    """Return the files with the memory limits of control groups, and of those around them, as ``/proc/self/cgroup`` names them."""
    files = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        names = {"memory": ("memory", "memory.limit_in_bytes"), "": ("", "memory.max")}.get(controllers)
        if names is None:
            continue
        root = Path("/sys/fs/cgroup") / names[0]
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            if (folder / names[1]).is_file():
                files.append(os.fspath(folder / names[1]))
    return files


def available_bytes() -> int:
    """Memory that this process could still take without swapping, machine-wide."""
    require_proc()
    return kib_of(kernel_text("/proc/meminfo"), "MemAvailable") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def deleted_folder() -> str | None:
    """Return what to say where the folder that this process is in has been deleted: relative paths lead nowhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the current folder has been deleted; change to another one"
    return None


def return_freed_bytes() -> None:
    """Give what the C library keeps of freed memory back to the system, in some milliseconds at most.

    ``malloc_trim`` leaves the end of the arenas that threads have.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(TRIM_THRESHOLD, TRIM_BYTES)
        return_end_of_arena()
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def return_end_of_arena() -> None:
    """Have the C library look at the end of this thread's arena, as where a piece is freed, and give back what it may not keep."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    libc.free(libc.malloc(TRIM_BYTES // 2 + 4096))
