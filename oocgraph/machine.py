"""What this machine and the control group of this process leave to it."""

from __future__ import annotations

import os
from pathlib import Path

from oocgraph.config import require_proc


def cgroup_limit_bytes() -> int | None:
    """Memory limit of the control group (version 1 or 2) of this process; None where there is none."""
    limits = []
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in groups:
        _, controllers, path = line.split(":", 2)
        names = {"memory": ("memory", "memory.limit_in_bytes"), "": ("", "memory.max")}.get(controllers)
        if names is None:
            continue
        root = Path("/sys/fs/cgroup") / names[0]
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            file = folder / names[1]
            if file.is_file() and (text := file.read_text().strip()).isdigit():
                limits.append(int(text))
    sane = [limit for limit in limits if limit < 1 << 60]
    return min(sane) if sane else None


def available_bytes() -> int:
    """Memory that this process could still take without swapping, machine-wide."""
    require_proc()
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
