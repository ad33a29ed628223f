"""Runs a command under a hard memory cap, page cache included: a control group of its own. Needs root."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup")


@contextmanager
def memory_group(limit_bytes):
    """Yield the folder of a memory control group (version 1 or 2) with that limit; skip the test where there is none."""
    version1 = (_ROOT / "memory").is_dir()
    parent = _ROOT / "memory" if version1 else _ROOT
    group = parent / f"oocgraph-test-{uuid.uuid4().hex[:8]}"
    try:
        if not version1:
            (_ROOT / "cgroup.subtree_control").write_text("+memory")
        group.mkdir()
        (group / ("memory.limit_in_bytes" if version1 else "memory.max")).write_text(str(limit_bytes))
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"needs root and a memory control group ({error})")
    try:
        yield group
    finally:
        for _ in range(100):  # the kernel empties a group a moment after its last process
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def run_capped(limit_bytes, command, *, timeout=600, env=None, cwd=None):
    """Run `command` (a list) within `limit_bytes` of memory and page cache; return the CompletedProcess, output as text."""
    with memory_group(limit_bytes) as group:
        enter = ["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "capped"]
        return subprocess.run(
            [*enter, *map(str, command)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            check=False,
        )
