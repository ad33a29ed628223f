"""Products and ranks on a GPU: launches of the kernels in ``cuda/spmv.cu`` and ``cuda/ranks.cu``.

In: arrays in device memory (`oocgraph.arrays.Device`). A launch returns at once. Booleans are floats here: an element of ``or_and`` is true
if the sum of ones is above 0, which no rounding brings back to 0; so values are 1 or 0, or none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.kernels.gpu import BLOCK, Launcher, cuda_source, index_name
from oocgraph.kernels.semirings import Semiring
from oocgraph.types import Array

SOURCES = ("common", "spmv", "ranks")
"""The files of ``kernels/cuda`` that products use."""

SHARE_EDGES = 2048
"""Most edges that a warp takes at once of rows, a block of columns. On an H100 1,024 took 1.02 times as long, 512 1.07 times."""

MIN_SHARE_EDGES = 256
"""Fewest: a tile of a warp, as in ``spmv.cu``, or one for each thread of a block."""

WARPS = BLOCK // 32
"""Of a block."""

COLUMN_BLOCKS = 4
"""Blocks of `spmv_columns` that a multiprocessor holds, each with 32 KiB for its hubs."""

HUB_ROWS = 4096
"""Rows whose sums a block of `spmv_columns` keeps, as in ``spmv.cu``."""

HUB_EDGES = 4 * HUB_ROWS
"""Edges of a block from which it keeps sums of hubs: setting and adding these is then less than what it does for edges."""

SPMM_EDGES = 64
"""Edges that a group of threads of `spmm` takes, as in ``spmv.cu``."""

RANK_SUMS = 2
"""Numbers that an iteration of PageRank gives to the host, as in ``ranks.cu``: change, and ranks of vertices without out-edges."""

PLUS, MIN = 0, 1
"""How kernels add, as in ``spmv.cu``."""

_NULL = np.uint64(0)
"""A pointer to nothing."""

_RANKS = ("finish_ranks", "sum_partials")


def product_names(index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the names of all kernels for columns and rows of `index_dtype` (uint32 or int64) and elements of `dtype`."""
    index, value = index_name(index_dtype), _value_name(dtype)
    products = [f"{name}<{index}, {value}, {ring}>" for name in ("spmv", "spmv_columns", "spmm") for ring in (PLUS, MIN)]
    pointers = [f"local_pointers<{index_name(np.dtype(kind))}>" for kind in (np.uint32, np.int64)]
    adding = [f"add_values<{value}, {ring}>" for ring in (PLUS, MIN)]
    ranks = _RANKS if np.dtype(dtype) == np.float64 else ()
    return (*products, *pointers, *adding, f"line_pointers<{index}>", f"set_values<{value}>", *ranks)


def share_edges(num_edges: int, num_takers: int) -> int:
    """Edges that a block, or a warp, takes at once: as many as it can, but so few that all of them have something to do.

    Examples
    --------
    >>> share_edges(1 << 24, 792), share_edges(1 << 20, 792), share_edges(1000, 792)
    (2048, 1024, 256)
    """
    share = SHARE_EDGES
    while share > MIN_SHARE_EDGES and -(-num_edges // share) < num_takers:
        share //= 2
    return share


def product_source(index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> Source:
    """Return what products of these dtypes compile; see `product_names`."""
    return Source(cuda_source(SOURCES), product_names(index_dtype, dtype))


class GpuProductKernels(Launcher):
    """The compiled kernels of one device for some dtypes, launched on one stream.

    Parameters
    ----------
    device
        Where the arrays are.
    index_dtype
        Of columns and rows: uint32 or int64.
    dtype
        Of elements and values: float32 or float64.

    Attributes
    ----------
    stream
        Where kernels are launched.
    """

    def __init__(self, device: Device, index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> None:
        self.index_dtype, self.dtype = np.dtype(index_dtype), np.dtype(dtype)
        self._index, self._value = index_name(self.index_dtype), _value_name(self.dtype)
        super().__init__(device, product_source(self.index_dtype, self.dtype))
        self._wave = {  # blocks of `spmv` that are there at once: no more are launched, so that no second wave begins for a few of them
            ring: device.num_multiprocessors * device.resident_blocks(self._functions[f"spmv<{self._index}, {self._value}, {ring}>"], BLOCK)
            for ring in (PLUS, MIN)
        }

    def set_values(self, y: Array, value: float) -> None:
        """Set all elements of a vector."""
        if y.size:
            self._launch(f"set_values<{self._value}>", y.size, y, np.int64(y.size), self.dtype.type(value))

    def add_values(self, semiring: Semiring, y: Array, other: Array) -> None:
        """Add a vector to another."""
        if y.size:
            self._launch(f"add_values<{self._value}, {_ring(semiring)}>", y.size, y, other, np.int64(y.size))

    def local_pointers(self, pointers: Array, start: int, stop: int, offset: Array) -> None:
        """Write pointers (uint32 or int64), cut to edges ``start .. stop - 1``, from 0 to `offset` ((pointers.size,) int64)."""
        sizes = np.int64(pointers.size), np.int64(start), np.int64(stop)
        self._launch(f"local_pointers<{index_name(pointers.dtype)}>", pointers.size, pointers, *sizes, offset)

    def line_pointers(self, lines: Array, first_line: int, num_lines: int, offset: Array, *, base: int = 0, begun: bool = False) -> None:
        """Write where each line begins among ascending `lines`, which are those from edge `base` on, to `offset`: (num_lines + 1,) int64.

        `begun`: where the first line begins stands there already.
        """
        sizes = np.int64(lines.size), np.int64(first_line), np.int64(num_lines), np.int64(base), np.int64(begun)
        self._launch(f"line_pointers<{self._index}>", lines.size + 1, lines, *sizes, offset)

    def multiply_rows(self, semiring: Semiring, offset: Array, indices: Array, values: Array | None, x: Array, y: Array) -> None:
        """Add to `y` ((num_rows,)) the product of rows that begin at `offset` ((num_rows + 1,) int64, local) and the whole vector."""
        if not indices.size:
            return
        most = self._wave[_ring(semiring)]
        share = share_edges(indices.size, most * WARPS)
        ends = np.int64(0), np.int64(0), np.int64(indices.size), np.int32(share)
        self._launch(
            self._name("spmv", semiring), 32 * -(-indices.size // share), offset, np.int64(y.size), indices, _or_null(values), x, y,
            *ends, self.dtype.type(semiring.identity), max_blocks=most,
        )  # fmt: skip

    def multiply_columns(self, semiring: Semiring, offset: Array, indices: Array, values: Array | None, x: Array, y: Array) -> None:
        """Add to the whole of `y` the product of columns that begin at `offset` and their elements `x` ((num_columns,))."""
        if not indices.size:
            return
        most = COLUMN_BLOCKS * self.device.num_multiprocessors
        share = share_edges(indices.size, most)
        blocks = min(most, -(-indices.size // share))
        hubs = min(HUB_ROWS, y.size) if indices.size >= HUB_EDGES * blocks else 0
        ends = np.int64(0), np.int64(indices.size), np.int32(share), np.int32(hubs)
        self._launch(
            self._name("spmv_columns", semiring), BLOCK * blocks, offset, np.int64(x.size), indices, _or_null(values), x, y, *ends,
            self.dtype.type(semiring.identity),
        )  # fmt: skip

    def multiply_dense(self, semiring: Semiring, offset: Array, indices: Array, values: Array | None, x: Array, y: Array) -> None:
        """Add to `y` ((num_rows, width)) the product of rows that begin at `offset` and `x` ((num_columns, width))."""
        width = y.shape[1]
        if not indices.size or not width:
            return
        lanes = min(32, 1 << (width - 1).bit_length())
        groups = -(-indices.size // SPMM_EDGES)
        ends = np.int64(width), np.int64(0), np.int64(indices.size), np.int32(lanes)
        self._launch(
            self._name("spmm", semiring), groups * lanes, offset, np.int64(y.shape[0]), indices, _or_null(values), x, y, *ends,
            self.dtype.type(semiring.identity),
        )  # fmt: skip

    # PageRank, of float64.

    def num_rank_blocks(self, num_vertices: int) -> int:
        """Blocks of `finish_ranks`, each of which sums `RANK_SUMS` numbers."""
        return max(1, min(-(-num_vertices // BLOCK), self._max_blocks))

    def finish_ranks(
        self, sums: Array, damping: float, jump: float, teleport: Array | None, rank: Array, strength: Array, share: Array, partial: Array,
        out: Array,
    ) -> None:  # fmt: skip
        """Make the ranks of an iteration from the sums of in-neighbours' shares; see `oocgraph.kernels.pagerank.pull_ranks`.

        Parameters
        ----------
        partial : (RANK_SUMS * num_rank_blocks,) float64
            Overwritten.
        out : (RANK_SUMS,) float64
            Sum of the changes; sum of the ranks of vertices that no edge leaves.
        """
        blocks = self.num_rank_blocks(rank.size)
        scalars = np.int64(rank.size), np.float64(damping), np.float64(jump)
        self._launch("finish_ranks", BLOCK * blocks, sums, *scalars, _or_null(teleport), rank, strength, share, partial)
        self._launch("sum_partials", 1, partial, np.int64(blocks), out)

    def _name(self, name: str, semiring: Semiring) -> str:
        return f"{name}<{self._index}, {self._value}, {_ring(semiring)}>"


def _ring(semiring: Semiring) -> int:
    return MIN if semiring.identity else PLUS


def _or_null(array: Array | None) -> Any:
    return _NULL if array is None else array


def _value_name(dtype: np.dtype[Any]) -> str:
    return {"float32": "float", "float64": "double"}[np.dtype(dtype).name]
