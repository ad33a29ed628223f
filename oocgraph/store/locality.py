"""Vertices ordered by locality: neighbours get numbers near each other, to be in few blocks of edges.

In: edges, by a function that visits their keys, and which vertices have one. Out: ranks of all vertices. One vertex of 64, by a hash,
begins a cell; the cells grow level by level, one pass over the edges each, until they meet. The cells are vertices of a smaller graph,
which is grouped in the same way in memory, and so on until one group is left, or few join (around a hub all cells are near one): groups
are ordered in the order of their own graph, the cells of a group by when it has reached them, the vertices of a cell by level. So the
vertices of any block of edges are near each other, whatever its size.

For each vertex 12 bytes are held, and the order is the same for any threads, and any order of the edges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.kernels import locality as kernels
from oocgraph.kernels.build import NO_RANK
from oocgraph.types import Array, Progress

SPARSENESS = 64
"""Vertices, or cells, to one that begins a cell, or a group."""

STAGES = ((SPARSENESS - 1, 64), (7, 16), (0, 0))
"""Bits that the hash of a vertex must not have to begin a cell, and how often cells grow then: the second and third are for what the first
has not reached, small components and the far ends of long paths."""


def rank_by_locality(each: Callable[[Callable[[Array], None]], None], col_bits: int, used: Array, rank: Array, progress: Progress) -> None:
    """Rank vertices.

    Parameters
    ----------
    each
        Has a function visit the keys ``row << col_bits | col`` of all edges: (n,) uint64 at a time, in any order, from any threads.
    used : (num_ids,) bool
        Whether a vertex has an edge.
    rank : (num_ids,) uint32
        Written: `oocgraph.kernels.build.NO_RANK` of the others.
    """
    load_kernels(kernels.locality_calls())
    level, cell, bits = np.where(used, kernels.OPEN, kernels.UNUSED), np.full(used.size, kernels.NO_CELL, np.int32), np.uint64(col_bits)
    num_cells, num_levels = 0, 1
    for mask, most in STAGES:
        num_cells = kernels.sow(level, cell, mask, num_cells)
        for current in range(most):
            found = np.zeros(1, np.int64)

            def spread(keys: Array, current: int = current, found: Array = found) -> None:
                kernels.spread(keys, bits, level, cell, np.uint8(current), found)

            each(spread)
            if not found[0]:
                break
            num_levels = max(num_levels, current + 2)
            progress("grow cells", current + 1, current + 2)
    near = np.full(num_cells * kernels.SLOTS, kernels.NO_CELL, np.int32)
    each(lambda keys: kernels.link_cells(keys, bits, cell, near))
    kernels.rank_vertices(level, cell, order_cells(near), num_levels, NO_RANK, rank)


def order_cells(near: Array) -> Array:
    """Return the rank of each cell, so that cells with edges between them are near each other.

    Parameters
    ----------
    near : (num_cells * SLOTS,) int32
        See `oocgraph.kernels.locality.link_cells`.

    Examples
    --------
    >>> path = np.full((4, kernels.SLOTS), kernels.NO_CELL, np.int32)
    >>> path[:, 0], path[:, 1] = [3, 2, 0, 0], [2, 2, 1, 0]
    >>> order_cells(path.ravel()).tolist()
    [0, 3, 2, 1]
    """
    num_cells = near.size // kernels.SLOTS
    group, queue, rank = np.empty(num_cells, np.int32), np.empty(num_cells, np.int32), np.empty(num_cells, np.int32)
    is_last = num_cells <= SPARSENESS
    num_groups = kernels.group_cells(near, np.uint64(2**63 if is_last else SPARSENESS), group, queue)
    if is_last or num_groups > num_cells // 2:
        group_rank = np.arange(num_groups, dtype=np.int32)
    else:
        between = np.full(num_groups * kernels.SLOTS, kernels.NO_CELL, np.int32)
        kernels.link_groups(near, group, between)
        group_rank = order_cells(between)
    kernels.rank_cells(group, queue, group_rank, rank)
    return rank
