"""Announces, once in a process, that kernels are being compiled: where nothing is cached that takes longer than the computation.

The announcement is a warning of the logger of this module, which Python shows on stderr unless logging is configured otherwise; workers of
a cluster and ``--quiet`` silence it (`silence`).
Kernels that are compiled in this process are noticed by numba's event ``numba:compile``, which does not occur for those that are cached.
"""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import Any

from numba.core.caching import IndexDataCacheFile
from numba.core.event import Listener, register

from oocgraph.compiled.cache_files import LockedCacheFile

logger = logging.getLogger(__name__)

COMPILING = "compiling kernels: the first call of each function does so, which may take half a minute (`oocgraph warm` does it for all)"

NOTICEABLE_SECONDS = 1.0
"""Compilation in this process that is not worth a word."""


class _Compilations(Listener):  # type: ignore[misc]
    """Notices kernels of oocgraph that are compiled in this process, of which one may compile others."""

    def __init__(self) -> None:
        self._spent, self._depth, self._began = 0.0, 0, 0.0

    def on_start(self, event: Any) -> None:
        """Have the kernel's cache written under a lock, and announce the compilation if it has taken long already.

        An entry for callers from C, a tenth of the compilation, only those kernels have that ask for one.
        """
        dispatcher = event.data["dispatcher"]
        if (dispatcher.py_func.__module__ or "").startswith("oocgraph."):
            dispatcher.targetoptions.setdefault("no_cfunc_wrapper", True)
            file = getattr(dispatcher._cache, "_cache_file", None)
            if type(file) is IndexDataCacheFile:
                file.__class__ = LockedCacheFile
        if not self._depth:
            self._began = time.perf_counter()
            if self._spent > NOTICEABLE_SECONDS:
                announce()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Count the time."""
        self._depth -= 1
        if not self._depth:
            self._spent += time.perf_counter() - self._began


@cache
def announce() -> None:
    """Say that kernels are being compiled, the first time."""
    logger.warning(COMPILING)


def silence() -> None:
    """Do not announce anything in this process: a worker's user would not see it, and could not help it."""
    logger.setLevel(logging.ERROR)


register("numba:compile", _Compilations())
