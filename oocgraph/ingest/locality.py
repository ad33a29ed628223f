"""Step 3 of a build whose vertices are ordered by locality: neighbours get numbers near each other, to be in few blocks of edges.

In: clean edges by provisional id. Out: ranks of all vertices. One vertex of 64, by a hash, begins a cell; the cells grow level by level,
one pass over the edges each, until they meet. The cells are vertices of a smaller graph, which is grouped in the same way in memory, and so
on until one group is left: groups are ordered in the order of their own graph, the cells of a group by when it has reached them, the
vertices of a cell by level. So the vertices of any block of edges are near each other, whatever its size.

Edges are only streamed. For each vertex 12 bytes are held, and the store is the same for any budget, threads or order of the input.
"""

from __future__ import annotations

import numpy as np

from oocgraph.errors import BudgetError
from oocgraph.external_sort.oversize import Piece
from oocgraph.ingest.build_job import VERTEX_SHARE, Job
from oocgraph.ingest.dedupe import CleanEdges
from oocgraph.kernels import locality as kernels
from oocgraph.kernels.build import NO_RANK
from oocgraph.memory import enough_memory, format_bytes
from oocgraph.types import Array

SPARSENESS = 64
"""Vertices, or cells, to one that begins a cell, or a group."""

STAGES = ((SPARSENESS - 1, 64), (7, 16), (0, 0))
"""Bits that the hash of a vertex must not have to begin a cell, and how often cells grow then: the second and third are for what the first
has not reached, small components and the far ends of long paths."""

ID_BYTES = 12
"""Held for each provisional id: degree and flag, level, cell, and what is kept of cells."""


def rank_by_locality(clean: CleanEdges, job: Job) -> None:
    """Replace degrees by ranks.

    Raises
    ------
    BudgetError
        What is held for each vertex does not fit.
    """
    length = clean.degree.length
    _check_room(length, job)
    degree = clean.degree.resident
    assert degree is not None
    used = degree > 0
    if clean.has_out is not None:
        used |= clean.has_out.read(0, length) > 0
    level = np.where(used, kernels.OPEN, kernels.UNUSED)
    del used
    cell = np.full(length, kernels.NO_CELL, np.int32)
    bits, num_cells, num_levels = np.uint64(clean.col_bits), 0, 1
    for mask, most in STAGES:
        num_cells = kernels.sow(level, cell, mask, num_cells)
        for current in range(most):
            found = np.zeros(1, np.int64)

            def spread(piece: Piece, current: int = current, found: Array = found) -> None:
                for keys in piece.files.key_blocks(piece.index, job.sizes.block_rows):
                    kernels.spread(keys, bits, level, cell, np.uint8(current), found)

            job.workers.each(spread, clean.pieces)
            if not found[0]:
                break
            num_levels = max(num_levels, current + 2)
            job.progress("grow cells", current + 1, current + 2)
    near = np.full(num_cells * kernels.SLOTS, kernels.NO_CELL, np.int32)

    def link(piece: Piece) -> None:
        for keys in piece.files.key_blocks(piece.index, job.sizes.block_rows):
            kernels.link_cells(keys, bits, cell, near)

    job.workers.each(link, clean.pieces)
    cell_rank = order_cells(near)
    kernels.rank_vertices(level, cell, cell_rank, num_levels, NO_RANK, degree)


def has_room(num_ids: int, job: Job) -> bool:
    """Whether the budget has room for what `rank_by_locality` holds."""
    return ID_BYTES * num_ids <= _room(job)


def _room(job: Job) -> int:
    return 5 * job.sizes.resident_ids


def _check_room(num_ids: int, job: Job) -> None:
    needed, room = ID_BYTES * num_ids, _room(job)
    if needed > room:
        need = job.budget.promised_bytes + int(needed / VERTEX_SHARE) + (1 << 20)
        raise BudgetError(
            f"ordering {num_ids:,} vertices by locality needs {format_bytes(needed)} for them, and the memory budget "
            f"{format_bytes(job.budget.limit_bytes)} leaves {format_bytes(room)}; {enough_memory(need)}, or take the vertex order degree"
        )


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
    if is_last or num_groups == num_cells:
        group_rank = np.arange(num_groups, dtype=np.int32)
    else:
        between = np.full(num_groups * kernels.SLOTS, kernels.NO_CELL, np.int32)
        kernels.link_groups(near, group, between)
        group_rank = order_cells(between)
    kernels.rank_cells(group, queue, group_rank, rank)
    return rank
