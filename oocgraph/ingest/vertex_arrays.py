"""Step 4: the arrays that join store order with the user's ids.

In: ranks by ascending id. Out: ``vertices/sorted_id``, ``order`` and ``isolated_id``, written as they come, and
``vertices/id`` in store order, through bins by rank.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocgraph.ingest.bins import BinFiles, Records
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.ids import IdSpace
from oocgraph.ingest.key_bins import uniform_bins
from oocgraph.ingest.ranks import RankBlock
from oocgraph.store import layout
from oocgraph.types import Array, index_dtype

ID_BYTES = 8


def write_vertices(blocks: Iterator[RankBlock], ids: IdSpace, job: Job, *, num_vertices: int) -> tuple[int, BinFiles]:
    """Write what comes in ascending order of ids; return the number of isolated vertices, and ids binned by rank."""
    dtype = index_dtype(num_vertices)
    sorted_id = job.writer.create(layout.SORTED_ID, np.int64)
    order = job.writer.create(layout.ORDER, dtype)
    isolated_id = None if ids.implied else job.writer.create(layout.ISOLATED_ID, np.int64)
    capacity = max(1, job.sizes.capacity // 2)
    by_rank = BinFiles(job.folder("ids"), uniform_bins(0, max(1, num_vertices), min(256, -(-num_vertices // capacity) or 1)), [np.int64])
    num_present = 0
    for block in blocks:
        own = ids.read(block.start, block.start + block.rank.size)
        rank, used_ids = block.rank[block.used], own[block.used]
        sorted_id.append(used_ids)
        order.append(rank)
        if isolated_id is not None:
            isolated_id.append(own[block.present & ~block.used])
        num_present += int(np.count_nonzero(block.present))
        by_rank.append((rank.astype(np.uint64), used_ids), job.scratch)
        job.progress("number vertices", block.start + block.rank.size, ids.num_ids)
    by_rank.close()
    num_input = ids.implied[1] - ids.implied[0] if ids.implied else num_present
    return num_input - num_vertices, by_rank


def write_ids(by_rank: BinFiles, job: Job) -> None:
    """Write ``vertices/id``: each bin of ranks is put in order in memory."""
    out = job.writer.create(layout.VERTEX_ID, np.int64)

    def place(index: int) -> Array:
        records: Records = by_rank.read(index, job.scratch)
        rank, own = records
        first = by_rank.bins.starts[index]
        placed = np.empty(own.size, np.int64)
        placed[rank - np.uint64(first)] = own
        by_rank.remove(index)
        return placed

    for placed in job.workers.ordered(place, range(by_rank.bins.num_bins)):
        out.append(placed)
