"""Words and constants that every layer shares: dtypes, sentinels, sizes.

An index dtype is uint32 unless the graph has more than 2**32 - 2 vertices (then int64). Inside,
the largest value of the index dtype means "no parent"; to the user unreached is -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]
"""Called as ``progress(phase, done, total)``; units are the phase's own (edges, bytes, bins)."""

ProgressOption = Progress | bool | None
"""What a public function takes as `progress`: a function to call, True for a bar, False or None for silence."""

VertexOrder = Literal["degree", "locality", "original"]
AskedOrder = Literal["auto", "degree", "locality", "original"]
Duplicates = Literal["drop", "min", "max", "sum", "first", "error", "keep"]
Direction = Literal["auto", "push", "pull", "half", "alpha-beta", "gemini"]
Codec = Literal["none", "blosc", "zstd"]
IdKind = Literal["int64", "string"]
Precision = Literal["auto", "single", "double"]
"""Of what PageRank gathers: by the size of the graph and the change, float32, float64."""

DeviceKind = Literal["auto", "cpu", "cuda"]
"""Where a search runs: on a GPU if one can be used and its start pays, on the processor, on a GPU."""

PAGE_BYTES = 4096
"""The unit of checksums and of scattered reads: what a disk and a page cache move at least."""

UNREACHED = -1
"""Level and parent of a vertex that no path reaches, in results (int32 and int64)."""

LEVEL_UNREACHED = 255
"""Level of an unreached vertex in the one-byte form a search keeps while the depth is below 255."""

MAX_UINT32_VERTICES = 2**32 - 2
"""Above this many vertices neighbours are stored as int64."""


def index_dtype(num_vertices: int) -> np.dtype[Any]:
    """Dtype of neighbour ids for a graph of `num_vertices` vertices."""
    return np.dtype(np.uint32 if num_vertices <= _MOST_UINT32_VERTICES else np.int64)


_MOST_UINT32_VERTICES = MAX_UINT32_VERTICES
"""Limit that `index_dtype` compares with; tests lower it so that small graphs have int64 indices."""


def no_parent(dtype: np.dtype[Any]) -> int:
    """Return the sentinel that means "no parent" in an array of index dtype `dtype`."""
    return int(np.iinfo(dtype).max)


def ignore_progress(phase: str, done: int, total: int) -> None:
    """Accept progress and do nothing: the default."""
