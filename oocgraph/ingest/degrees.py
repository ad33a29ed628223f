"""Degrees of provisional vertices: counted in one array when it fits the budget, otherwise through bins of endpoints.

In: clean edges, block by block, from any thread. Out: the length of the list that a pull walks, and for directed graphs whether
a vertex has an out-edge.
"""

from __future__ import annotations

import threading

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import uniform_bins
from oocgraph.external_sort.vertex_file import VertexFile
from oocgraph.ingest.build_job import Job
from oocgraph.kernels.build import add_degrees, count_ids
from oocgraph.types import Array


class DegreeCounter:
    """Counts the entries of each vertex.

    Parameters
    ----------
    job
        The build; its sizes say whether the counts fit in memory.
    num_ids
        Number of provisional vertices.
    col_bits
        Bits of a provisional id in a key.
    """

    def __init__(self, job: Job, *, num_ids: int, col_bits: int) -> None:
        self._job, self._col_bits = job, np.uint64(col_bits)
        in_memory = num_ids <= job.sizes.resident_ids
        self._degree = VertexFile(job.folder("degree"), num_ids, np.uint32, in_memory=in_memory)
        self._has_out = VertexFile(job.folder("has-out"), num_ids, np.uint8, in_memory=in_memory) if job.directed else None
        self._lock = threading.Lock()
        self._ends: BinFiles | None = None
        self._rows: BinFiles | None = None
        if not in_memory:
            bins = uniform_bins(0, num_ids, job.sizes.num_slices(num_ids))
            self._ends = BinFiles(job.folder("ends"), bins)
            self._rows = BinFiles(job.folder("rows"), bins) if job.directed else None

    def count(self, keys: Array) -> None:
        """Add sorted keys."""
        if self._ends is None:
            flags = self._has_out.resident if self._has_out is not None else np.empty(0, np.uint8)
            with self._lock:
                add_degrees(keys, self._col_bits, not self._job.directed, self._degree.resident, flags)
            return
        rows, cols = keys >> self._col_bits, keys & ((np.uint64(1) << self._col_bits) - np.uint64(1))
        self._ends.append((cols,), self._job.scratch)
        if self._rows is None:
            self._ends.append((rows[rows != cols],), self._job.scratch)
        else:
            self._rows.append((rows[np.flatnonzero(np.diff(rows, prepend=~rows[:1]))],), self._job.scratch)

    def finish(self) -> tuple[VertexFile, VertexFile | None]:
        """Return the degrees and the flags of vertices with an out-edge."""
        if self._ends is not None:
            self._sum(self._ends, self._degree)
        if self._rows is not None and self._has_out is not None:
            self._sum(self._rows, self._has_out)
        return self._degree, self._has_out

    def _sum(self, files: BinFiles, out: VertexFile) -> None:
        def add(index: int) -> None:
            first, stop = files.bins.starts[index], files.bins.starts[index + 1]
            counts = np.zeros(stop - first, np.uint32)
            for (ids,) in files.blocks(index, self._job.sizes.block_rows):
                count_ids(ids, np.uint64(first), counts)
            out.write(first, counts if out.dtype == np.uint32 else (counts > 0).astype(out.dtype))
            files.remove(index)

        self._job.workers.each(add, range(files.bins.num_bins))
