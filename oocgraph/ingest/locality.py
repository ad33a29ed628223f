"""Step 3 of a build whose vertices are ordered by locality (`oocgraph.store.locality`).

In: clean edges by provisional id, which are only streamed. Out: ranks of all vertices. The store is the same for any budget.
"""

from __future__ import annotations

from collections.abc import Callable

from oocgraph.errors import BudgetError
from oocgraph.ingest.build_job import VERTEX_BYTES, VERTEX_SHARE, Job, with_more
from oocgraph.ingest.dedupe import CleanEdges, CleanPiece
from oocgraph.memory import enough_memory, format_bytes
from oocgraph.store.locality import rank_by_locality
from oocgraph.types import Array

ID_BYTES = 12
"""Held for each provisional id: degree and flag, level, cell, and what is kept of cells."""


def replace_by_locality(clean: CleanEdges, job: Job) -> None:
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

    def each(visit: Callable[[Array], None]) -> None:
        def of_piece(piece: CleanPiece) -> None:
            for keys in piece.piece.files.key_blocks(piece.piece.index, job.sizes.block_rows):
                visit(keys)

        job.workers.each(of_piece, clean.pieces)

    rank_by_locality(each, clean.col_bits, used, degree, job.progress)


def has_room(num_ids: int, job: Job) -> bool:
    """Whether the budget has room for what `replace_by_locality` holds."""
    return ID_BYTES * num_ids <= _room(job)


def _room(job: Job) -> int:
    return VERTEX_BYTES * job.sizes.resident_ids


def _check_room(num_ids: int, job: Job) -> None:
    needed, room = ID_BYTES * num_ids, _room(job)
    if needed > room:
        need = with_more(job, int(needed / VERTEX_SHARE) + (1 << 20))
        raise BudgetError(
            f"ordering {num_ids:,} vertices by locality needs {format_bytes(needed)} for them, and the memory budget "
            f"{format_bytes(job.budget.limit_bytes)} leaves {format_bytes(room)}; {enough_memory(need)}, or take the vertex order degree"
        )
