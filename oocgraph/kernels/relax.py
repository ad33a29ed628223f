"""Loops of `oocgraph.kernels.blocks` for shortest paths, and for operators of a user."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels import blocks, intrinsics
from oocgraph.kernels.blocks import make_work
from oocgraph.kernels.policy import KeyedCache


def make_relaxing(relax: Any, priority: Any, *, maximise: bool, most: Any, name: str | None) -> Callable[..., Any]:
    """Return `oocgraph.kernels.blocks.make_work` compiled; kept in the cache on disk where it has a `name` in this module."""
    work: Any = make_work(relax, priority, maximise=maximise, most=most)
    if name is not None:
        work.__module__, work.__name__, work.__qualname__ = __name__, name, name
    compiled = nb.njit(nogil=True)(work)
    if name is not None:
        compiled._cache = KeyedCache(work, f"{name} {_stamps()}")
    return compiled  # type: ignore[no-any-return]


@cache
def _stamps() -> str:
    """Return what tells the modules that are compiled into the loops from other versions of them."""
    stats = [os.stat(path) for path in (blocks.__file__, intrinsics.__file__, __file__)]
    return " ".join(f"{stat.st_mtime_ns} {stat.st_size}" for stat in stats)


@nb.njit(nogil=True, cache=True)
def _add(value: Any, weight: Any, old: Any) -> Any:
    return value + weight


@nb.njit(nogil=True, cache=True)
def _add_integers(value: Any, weight: Any, old: Any) -> Any:
    return np.int64(value) + np.int64(weight)


@nb.njit(nogil=True, cache=True)
def _itself(value: Any) -> Any:
    return value


shortest_narrow = make_relaxing(_add_integers, _itself, maximise=False, most=np.int64(2**31 - 2), name="shortest_narrow")
"""Shortest paths with int32 distances."""

shortest_wide = make_relaxing(_add_integers, _itself, maximise=False, most=np.int64(2**62), name="shortest_wide")
"""Shortest paths with int64 distances."""

shortest_float = make_relaxing(_add, _itself, maximise=False, most=None, name="shortest_float")
"""Shortest paths with float64 distances."""
