"""The kernels of a partitioned graph as plain NumPy: the oracle that `oocgraph.kernels.partition` must equal, same names and signatures.

Bitmaps are turned into arrays of bool and lists of vertices; blocks are cut one vertex after the other.
"""

from __future__ import annotations

import numpy as np

from oocgraph.types import Array


def _marked(rows: Array) -> Array:
    """Return the positions marked in a bitmap, ascending."""
    return np.flatnonzero(np.unpackbits(rows.view(np.uint8), bitorder="little"))


def _mark(rows: Array, positions: Array) -> None:
    """Mark distinct positions in a bitmap."""
    bits = np.zeros(rows.size * 64, np.bool_)
    bits[positions] = True
    rows |= np.packbits(bits, bitorder="little").view(np.uint64)


def _owned(first: Array, stop: Array) -> Array:
    """Store numbers of a partition's vertices: entry i is local position i."""
    return np.concatenate([np.empty(0, np.int64), *[np.arange(a, z) for a, z in zip(first, stop, strict=True)]])


def cut_blocks(degree_first: Array, degree_value: Array, num_vertices: int, max_vertices: int, max_edges: int, out: Array) -> int:
    """See `oocgraph.kernels.partition.cut_blocks`."""
    counts = np.diff(np.append(degree_first, num_vertices))
    num_blocks = vertices = edges = 0
    for v, degree in enumerate(np.repeat(degree_value, counts).tolist()):
        if v == 0 or vertices == max_vertices or edges + degree > max_edges:
            out[num_blocks] = v
            num_blocks += 1
            vertices = edges = 0
        vertices += 1
        edges += degree
    return num_blocks


def scatter_bits(first: Array, stop: Array, local: Array, part: Array, out: Array) -> None:
    """See `oocgraph.kernels.partition.scatter_bits`."""
    owned, marked = _owned(first, stop), _marked(part)
    _mark(out, owned[marked[marked < owned.size]])


def gather_bits(first: Array, stop: Array, local: Array, rows: Array, out: Array) -> None:
    """See `oocgraph.kernels.partition.gather_bits`."""
    out[:] = 0
    _mark(out, np.flatnonzero(np.isin(_owned(first, stop), _marked(rows))))


def own_bits(first: Array, stop: Array, out: Array) -> None:
    """See `oocgraph.kernels.partition.own_bits`."""
    _mark(out, _owned(first, stop))


def rank_words(owned: Array, rank: Array) -> int:
    """See `oocgraph.kernels.partition.rank_words`."""
    ones = np.bitwise_count(owned).astype(np.int64)
    rank[:] = np.cumsum(ones) - ones
    return int(ones.sum())


def to_global(local_positions: Array, count: int, first: Array, stop: Array, local: Array, out: Array) -> None:
    """See `oocgraph.kernels.partition.to_global`."""
    out[:count] = _owned(first, stop)[local_positions[:count].astype(np.int64)]


def take_marked(rows: Array, values: Array, out: Array) -> int:
    """See `oocgraph.kernels.partition.take_marked`."""
    marked = _marked(rows)
    out[: marked.size] = values[marked]
    return int(marked.size)


def take_runs(first: Array, stop: Array, local: Array, piece: Array, piece_first: int, out: Array) -> int:
    """See `oocgraph.kernels.partition.take_runs`."""
    owned = _owned(first, stop)
    here = np.flatnonzero((owned >= piece_first) & (owned < piece_first + piece.size))
    out[here] = piece[owned[here] - piece_first]
    return int(here.size)
