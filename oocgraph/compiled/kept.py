"""Compiled closures that are kept in numba's cache on disk: its own key knows the code of a function, not of those that it calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from os import stat
from typing import Any

import numba as nb
from numba.core.caching import FunctionCache

from oocgraph.compiled.cache_files import sources


class KeyedCache(FunctionCache):  # type: ignore[misc]
    """numba's cache on disk, for a closure that is told from others by a key."""

    def __init__(self, function: Any, key: str) -> None:
        super().__init__(function)
        self._key = key

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return signature, codegen.magic_tuple(), self._key


def named(function: Any, module: str, name: str | None) -> Any:
    """Give a closure a name of its own, if it has one.

    Compiled code finds functions by their names and the types of their arguments. Of two closures that were compiled in other processes
    under one name, and are loaded from the cache on disk, one would be called for both.
    """
    if name is not None:
        function.__module__, function.__name__, function.__qualname__ = module, name, name
    return function


def kept(function: Any, module: str, name: str | None) -> Any:
    """Return a closure compiled; kept on disk where it has a name in a module, until one of the package's kernels changes."""
    named(function, module, name)
    compiled = nb.njit(nogil=True)(function)
    if name is not None:
        compiled._cache = KeyedCache(function, f"{name} {stamps([str(sys.modules[module].__file__), *map(str, sources())])}")
    return compiled


def stamps(paths: Iterable[str]) -> str:
    """Return what tells files from other versions of them."""
    stats = [stat(path) for path in paths]
    return " ".join(f"{one.st_mtime_ns} {one.st_size}" for one in stats)
