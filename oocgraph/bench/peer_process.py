"""A library in a process of its own: ``python -m oocgraph.bench.peer_process ALGORITHM NAME GRAPH THREADS``.

In, on stdin: one number a line, see `Library.run`. Out, on stdout: one JSON object a line: first ``load_seconds`` (or ``error``), then for
each number ``seconds`` and ``count``, with the process's peak so far.
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter

import numpy as np

from oocgraph.bench.child import answer
from oocgraph.bench.libraries import FLOAT64_LIBRARIES, open_library
from oocgraph.errors import OocGraphError
from oocgraph.store.graph import open_graph


def main() -> None:
    """Serve runs until stdin ends."""
    algorithm, name, url, threads = sys.argv[1:]
    start = perf_counter()
    try:
        store = open_graph(url)
        matrix = store.to_scipy(dtype=np.float64 if name in FLOAT64_LIBRARIES else np.uint8)
        library = open_library(algorithm, name, matrix, directed=store.attributes.directed, threads=int(threads))
    except (OocGraphError, MemoryError) as error:
        answer(error=str(error) or "out of memory")
        return
    del matrix
    answer(load_seconds=perf_counter() - start)
    for line in sys.stdin:
        start = perf_counter()
        result = library.run(int(line))
        seconds = perf_counter() - start
        count = None if library.count is None else library.count(result)
        answer(seconds=seconds, count=count, peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()
