"""Shortest paths on a GPU: launches of the kernels in ``cuda/paths.cu``.

In: arrays in device memory (`oocgraph.arrays.Device`), rows of a batch (`oocgraph.subgraph.dependency`). A launch returns at once; what
kernels count is in `PathKernels.told`, which `PathKernels.read` brings to the host.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.kernels.gpu import Launcher, cuda_source, index_name
from oocgraph.types import Array, no_parent

SOURCES = ("common", "paths")
"""The files of ``kernels/cuda`` that shortest paths use, beside those of searches."""

DISTANCES, PARENTS, ORPHANS = range(3)
"""What a look at edges is for, as in ``paths.cu``."""

OVERFLOWS, NO_LENGTH = 1, 2
"""Why an edge cannot be followed, as in ``paths.cu``."""

NOTHING_LEFT = np.iinfo(np.int64).max
"""What `PathKernels.read` has at NEAREST where nothing is pending."""

_DISTANCE_NAMES = {"int32": "int", "int64": "long long", "float64": "double"}
_OF_DISTANCE = ("select_near", "find_farthest")
_OF_BOTH = ("begin_paths", "begin_at", "find_orphans")


class Told(IntEnum):
    """Slots of `PathKernels.told`, as in ``paths.cu``."""

    NUM_NEAR = 0
    NEAREST = 1
    FARTHEST = 2
    WHY = 3
    FROM = 4
    TO = 5


NUM_TOLD = 8


def path_names(index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the names of all kernels for ids of `index_dtype` (uint32 or int64) and distances of `dtype` (int32, int64 or float64)."""
    index, distance = index_name(index_dtype), _DISTANCE_NAMES[np.dtype(dtype).name]
    looks = [f"relax<{index}, {distance}, {look}>" for look in (DISTANCES, PARENTS, ORPHANS)]
    return (
        *(f"{name}<{distance}>" for name in _OF_DISTANCE),
        *(f"{name}<{index}, {distance}>" for name in _OF_BOTH),
        *looks,
        "adopt",
        "clear_told",
    )


def weight_kind(dtype: np.dtype[Any]) -> int:
    """Return how kernels name a dtype of weights: by its bytes, negative of unsigned integers."""
    return -dtype.itemsize if dtype.kind in "ub" else dtype.itemsize


def path_source(index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> Source:
    """Return what shortest paths with distances of `dtype` compile; see `path_names`."""
    return Source(cuda_source(SOURCES), path_names(index_dtype, dtype))


class PathKernels(Launcher):
    """The compiled kernels of one device for some dtypes, launched on one stream.

    Parameters
    ----------
    device
        Where the arrays are.
    index_dtype
        Of vertices: uint32 or int64.
    dtype
        Of distances: int32, int64 or float64.
    stream
        Where kernels are launched: that of the `oocgraph.kernels.gpu.GpuKernels` that list rows.
    counters
        Theirs, whose NUM_ROWS says how many rows a batch has.

    Attributes
    ----------
    told : (8,) int64
        On the device; see `Told`.
    """

    def __init__(self, device: Device, index_dtype: np.dtype[Any], dtype: np.dtype[Any], stream: Any, counters: Array) -> None:
        self.index_dtype, self.dtype = np.dtype(index_dtype), np.dtype(dtype)
        self._index, self._distance = index_name(self.index_dtype), _DISTANCE_NAMES[self.dtype.name]
        super().__init__(device, path_source(self.index_dtype, self.dtype), stream)
        self._none = self.index_dtype.type(no_parent(self.index_dtype))
        self._counters = counters
        self.told = device.empty(NUM_TOLD, np.int64)
        self._host_told = device.pinned(8 * NUM_TOLD).view(np.int64)

    def begin(self, sources: Array, distance: Array, unreached: Any, parent: Array, pending: Array) -> None:
        """Let `sources` ((n,) int64) be the only vertices that have been reached, and pending."""
        n, bits, kinds = distance.size, (pending, np.int64(2 * pending.size)), f"<{self._index}, {self._distance}>"
        self._launch(f"begin_paths{kinds}", n, np.int64(n), distance, unreached, parent, self._none, *bits)
        if sources.size:
            self._launch(f"begin_at{kinds}", sources.size, sources, np.int64(sources.size), distance, parent, pending)
        self._clear(all_of_it=True)

    def select_near(self, pending: Array, near: Array, distance: Array, limit: Any, bound: Any) -> None:
        """Move the pending vertices nearer than `limit` to `near`, and drop those beyond `bound`; see `Told`."""
        self._clear()
        words = np.int64(2 * pending.size)
        self._launch(f"select_near<{self._distance}>", int(words), pending, near, words, distance, limit, bound, self.told)

    def relax(
        self, look: int, rows: Any, begin: Array, e0: int, e1: int, edges: Array, weights: Array, kind: int, base: int, distance: Array,
        parent: Array, orphans: Array, pending: Array, bound: Any, *, num_edges: int,
    ) -> None:  # fmt: skip
        """Look at edges ``e0 .. e1 - 1``, about `num_edges`, of a batch's rows; ``edges`` and ``weights`` are those from `base` on.

        `e1` may be `oocgraph.kernels.gpu.EVERY_EDGE`; `look` says what for, `kind` (`weight_kind`) how weights are stored.
        """
        piece = np.int64(e0), np.int64(e1), edges, weights, np.int32(kind), np.int64(base)
        self._launch(
            f"relax<{self._index}, {self._distance}, {look}>", num_edges // 4, rows.vertex, begin, rows.offset, self._counters, *piece,
            distance, parent, orphans, pending, bound, self._none, self.told,
        )  # fmt: skip

    def find_farthest(self, vertices: Array, distance: Array) -> None:
        """Find the largest distance of some vertices ((n,) int64); see `Told`."""
        self._launch(f"find_farthest<{self._distance}>", vertices.size, vertices, np.int64(vertices.size), distance, self.told)

    def find_orphans(self, distance: Array, unreached: Any, bound: Any, parent: Array, near: Array, orphans: Array) -> None:
        """Mark the vertices that have been reached: with a parent in `near`, without one in `orphans`; NUM_NEAR counts the latter."""
        self._clear()
        words = np.int64(2 * near.size)
        sizes = np.int64(distance.size), words
        marks = near, orphans, self.told
        name = f"find_orphans<{self._index}, {self._distance}>"
        self._launch(name, 32 * int(words), *sizes, distance, unreached, bound, parent, self._none, *marks)

    def adopt(self, pending: Array, orphans: Array, near: Array) -> None:
        """Let the orphans that have found a parent (`pending`) be no orphans any more; NUM_NEAR counts them."""
        self._clear()
        words = np.int64(2 * near.size)
        self._launch("adopt", int(words), pending, orphans, near, words, self.told)

    def read(self) -> Array:
        """Wait for the kernels launched so far; return `told` on the host: (8,) int64, valid until the next call."""
        self.device.copy(self.told, self._host_told, self.stream)
        self.device.synchronize(self.stream)
        return self._host_told

    def _clear(self, *, all_of_it: bool = False) -> None:
        self._launch("clear_told", NUM_TOLD, self.told, np.int32(all_of_it))
