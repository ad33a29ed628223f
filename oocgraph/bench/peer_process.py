"""A peer in a process of its own, so that its memory is not ours: ``python -m oocgraph.bench.peer_process NAME GRAPH THREADS``.

In, on stdin: one row number of the exported graph a line. Out, on stdout: one JSON object a line: first ``load_seconds`` (or
``error``), then for each source ``seconds`` and ``num_reached``, with the process's peak so far.
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter

import numpy as np

from oocgraph.bench.child import tell
from oocgraph.bench.engines import open_engine
from oocgraph.errors import OocGraphError
from oocgraph.store.graph import open_graph


def main() -> None:
    """Serve searches until stdin ends."""
    name, url, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    start = perf_counter()
    try:
        store = open_graph(url)
        matrix = store.to_scipy(dtype=np.float64 if name == "scipy" else np.uint8)
        engine = open_engine(name, matrix, directed=store.attributes.directed, threads=threads)
    except (OocGraphError, MemoryError) as error:
        answer(error=str(error) or "out of memory")
        return
    answer(load_seconds=perf_counter() - start)
    for line in sys.stdin:
        start = perf_counter()
        result = engine.search(int(line))
        seconds = perf_counter() - start
        answer(seconds=seconds, num_reached=engine.count(result))


def answer(**fields: object) -> None:
    """Print one line."""
    tell(**fields, peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main()
