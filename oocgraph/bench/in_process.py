"""Our own search without a cluster, in a process of its own, to stand beside the one on a cluster.

In: a store, what the process may use. Out: a summary of each search; results wait on disk and are validated in that process when all
searches are done. This module is also what runs there: ``python -m oocgraph.bench.in_process GRAPH OPTIONS``, OPTIONS as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.child import Child, answer
from oocgraph.bench.results_on_disk import ResultsOnDisk
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Direction, ignore_progress

VALIDATE = "validate"
"""The last question: end the searches, validate their results."""


class InProcessPeer(Child):
    """Searches in one process, with some threads. A context manager; entering it loads the graph.

    Parameters
    ----------
    url
        The graph.
    threads, memory_budget, max_planes
        As in `LocalRuntime.open`.
    direction
        As for `bfs`.
    folder
        Where results wait for their validation.

    Attributes
    ----------
    load
        Once loaded: ``load_seconds``, ``planes_resident``, ``memory_budget``, ``resident_bytes`` (rows in memory beside the planes).
    peak_host_bytes
        After `validate`: from the load to the last search.
    """

    def __init__(self, url: str, *, threads: int, memory_budget: int, max_planes: int, direction: Direction, folder: Path) -> None:
        limits = {"threads": threads, "memory_budget": memory_budget, "max_planes": max_planes}
        options = json.dumps({**limits, "direction": direction, "folder": str(folder)})
        super().__init__("oocgraph.bench.in_process", url, options, who="the search in process")
        self.peak_host_bytes = 0

    def search(self, vertex: int) -> dict[str, Any]:
        """Search from a vertex of the store; returns `BFSResult.summary`.

        Raises
        ------
        OocGraphError
            The search failed, or its process has ended.
        """
        return self.ask(vertex)

    def validate(self) -> list[str | None]:
        """Return the rule that each result breaks, None for a valid one, in the order of the searches; there are no more searches then."""
        reply = self.ask(VALIDATE)
        self.peak_host_bytes = int(reply["peak_host_bytes"])
        return list(reply["invalid"])


def main() -> None:
    """Serve searches until the validation."""
    url, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        serve(url, ResultsOnDisk(Path(options.pop("folder"))), **options)
    except (OocGraphError, MemoryError) as error:
        answer(error=str(error) or "out of memory")


def serve(url: str, results: ResultsOnDisk, *, direction: Direction, **limits: Any) -> None:
    """Load the graph, search from each vertex that is asked for, then validate."""
    store = open_graph(url)
    ids = VertexIds(store)
    with PeakSampler() as sampler:
        with LocalRuntime.open(store, **limits) as runtime:
            load = {name: getattr(runtime, name) for name in ("load_seconds", "planes_resident", "memory_budget")}
            answer(**load, resident_bytes=runtime.graph.residency.resident_bytes)
            for line in sys.stdin:
                if line.strip() == VALIDATE:
                    break
                (source,) = ids.ids_of([int(line)]).tolist()
                result = bfs(store, source, runtime=runtime, direction=direction)
                results.put(result)
                answer(**result.summary())
                del result  # or it would be held beside the next one
            else:
                return  # the process that asked has ended
        del runtime
    answer(invalid=results.validate(store, ignore_progress), peak_host_bytes=sampler.peak_bytes)


if __name__ == "__main__":
    main()
