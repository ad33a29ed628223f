"""Searches of one graph, all of whose edges are on the device, with and without their results on the host: for profilers, too."""

from __future__ import annotations

import statistics
import sys
import time

import oocgraph
from oocgraph import Resources
from oocgraph.engine.in_process import open_in_process

FIRST_SOURCE, NUM_SOURCES = 3, 32


def measure(url, num_sources=NUM_SOURCES, device=None):
    """Return medians of a search on a device: milliseconds of its own, with results on the host, and the levels of the last."""
    graph = oocgraph.open_graph(url)
    wall, own = [], []
    with open_in_process(graph, Resources(device="cuda"), device=device) as runtime:
        oocgraph.bfs(graph, FIRST_SOURCE, runtime=runtime)
        for source in range(FIRST_SOURCE, FIRST_SOURCE + num_sources):
            began = time.perf_counter()
            found = oocgraph.bfs(graph, source, runtime=runtime)
            wall.append(time.perf_counter() - began)
            own.append(found.seconds)
    return 1e3 * statistics.median(own), 1e3 * statistics.median(wall), found.depth


if __name__ == "__main__":
    own, wall, depth = measure(sys.argv[1])
    print(f"ms of a search: {own:.3f}, with results on the host: {wall:.3f}; {depth} levels")
