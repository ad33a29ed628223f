"""METIS in a process of its own: ``python -m oocgraph.bench.peer_partition GRAPH PARTS``.

In, on stdin: a line for each run. Out, on stdout: one JSON object a line: first ``load_seconds`` (or ``error``), then for each run
``seconds`` of the partitioner alone, without loading, and the number of stored edges it cut, with the process's peak so far.
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter

import numpy as np

from oocgraph.bench.child import tell
from oocgraph.errors import OocGraphError
from oocgraph.store.graph import open_graph


def main() -> None:
    """Partition until stdin ends."""
    url, parts = sys.argv[1], int(sys.argv[2])
    start = perf_counter()
    try:
        import pymetis

        store = open_graph(url)
        if store.attributes.directed:
            raise OocGraphError(f"--peer pymetis takes undirected graphs, and {url} is directed")
        matrix = store.to_scipy(dtype=np.uint8)
        matrix.setdiag(0)
        matrix.eliminate_zeros()  # METIS takes no self-loops
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        adjacency = pymetis.CSRAdjacency(adj_starts=indptr, adjacent=indices)
    except ImportError as error:
        tell(error=f"--peer pymetis: {error}; pip install pymetis")
        return
    except (OocGraphError, MemoryError) as error:
        tell(error=str(error) or "out of memory")
        return
    tell(load_seconds=perf_counter() - start)
    for _ in sys.stdin:
        start = perf_counter()
        _, member = pymetis.part_graph(parts, adjacency)
        seconds = perf_counter() - start
        owner = np.asarray(member)
        cut = int(np.count_nonzero(np.repeat(owner, np.diff(indptr)) != owner[indices]))
        tell(seconds=seconds, num_cut=cut, peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()
