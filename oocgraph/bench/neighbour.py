"""A process that keeps a core busy, beside what is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SPIN = "import os, sys; os.sched_setaffinity(0, [int(sys.argv[1])]); print(flush=True)\nwhile True: pass"


@contextmanager
def busy_neighbour(core: int) -> Iterator[None]:
    """Keep a core busy."""
    with subprocess.Popen([sys.executable, "-c", _SPIN, str(core)], stdout=subprocess.PIPE) as neighbour:
        try:
            assert neighbour.stdout is not None
            neighbour.stdout.readline()  # it has begun
            yield
        finally:
            neighbour.kill()
