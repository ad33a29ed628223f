"""What a worker tells its peers: its part of the new frontier, as ids or as a bitmap, whichever is fewer bytes.

In: the bitmap of the vertices that a partition has just found, at its local positions. Out: `FrontierPart`; and from the parts of all
partitions the whole frontier, a bitmap over store numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from oocgraph.kernels import cpu
from oocgraph.kernels import partition as bits
from oocgraph.types import Array

Blocks: TypeAlias = tuple[Array, Array, Array]
"""``first, stop, local`` of the blocks that a partition owns: see `oocgraph.partition.vertex_partition.VertexPartition.blocks_of`."""


class FrontierPart(NamedTuple):
    """The new frontier as far as one partition owns it.

    A tuple, so that Dask sees its size and sends its array without a copy.

    Attributes
    ----------
    level
        Level of its vertices.
    dense
        What `vertices` is.
    vertices
        ``(n,)`` index dtype, store numbers, ascending; or, when dense, ``(num_words,)`` uint64, a bitmap over the partition's positions.
    """

    level: int
    dense: bool
    vertices: Array


def make_part(new: Array, count: int, level: int, blocks: Blocks, dtype: np.dtype[Any]) -> FrontierPart:
    """Pack the `count` vertices marked in `new`, (num_words,) uint64 over the positions of the partition that owns `blocks`."""
    if new.nbytes < count * dtype.itemsize:
        return FrontierPart(level, True, new.copy())
    positions = np.empty(count, dtype)
    cpu.list_vertices(new, positions)
    vertices = np.empty(count, dtype)
    bits.to_global(positions, count, *blocks, vertices)
    return FrontierPart(level, False, vertices)


def join_parts(parts: Sequence[FrontierPart], blocks: Sequence[Blocks], frontier: Array) -> None:
    """Overwrite `frontier`, (num_words,) uint64 over all vertices, with the parts of partitions 0, 1, ... and their blocks."""
    frontier[:] = 0
    for part, owned in zip(parts, blocks, strict=True):
        if part.dense:
            bits.scatter_bits(*owned, part.vertices, frontier)
        else:
            cpu.add_vertices(part.vertices, frontier)
