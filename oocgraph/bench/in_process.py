"""Our own search without a cluster, in a process of its own, to stand beside the one on a cluster.

In: a store, what the process may use. Out: figures of each search; results wait on disk and are validated in that process when all
searches are done. This module is also what runs there: ``python -m oocgraph.bench.in_process GRAPH OPTIONS``, OPTIONS as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.child import Child, tell
from oocgraph.bench.judge import broken_rule
from oocgraph.bench.spool import ResultSpool
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler
from oocgraph.runtime.local import LocalRuntime
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Direction

VALIDATE = "validate"
"""What is asked last: end the searches, judge their results."""


class InProcessPeer:
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
        options = {
            "threads": threads,
            "memory_budget": memory_budget,
            "max_planes": max_planes,
            "direction": direction,
            "folder": str(folder),
        }
        self._arguments = "oocgraph.bench.in_process", url, json.dumps(options)
        self.load: dict[str, Any] = {}
        self.peak_host_bytes = 0

    def __enter__(self) -> Self:
        self._child = Child(*self._arguments, who="the search in process")
        try:
            self.load = self._child.answer()
        except BaseException:
            self._child.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._child.close()

    def search(self, vertex: int) -> dict[str, Any]:
        """Search from a vertex of the store; returns `BFSResult.summary`.

        Raises
        ------
        OocGraphError
            The search failed, or its process has ended.
        """
        return self._child.ask(vertex)

    def validate(self) -> list[str | None]:
        """Return the rule that each result breaks, None for a valid one, in the order of the searches; there are no more searches then."""
        answer = self._child.ask(VALIDATE)
        self.peak_host_bytes = int(answer["peak_host_bytes"])
        return list(answer["invalid"])


def main() -> None:
    """Serve searches until the validation."""
    url, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        serve(url, folder=Path(options.pop("folder")), **options)
    except (OocGraphError, MemoryError) as error:
        tell(error=str(error) or "out of memory")


def serve(url: str, *, folder: Path, threads: int, memory_budget: int, max_planes: int, direction: Direction) -> None:
    """Load the graph, search from each vertex that is asked for, then validate."""
    store, spool = open_graph(url), ResultSpool(folder)
    ids = VertexIds(store)
    with PeakSampler() as sampler:
        with LocalRuntime.open(store, memory_budget=memory_budget, threads=threads, max_planes=max_planes) as runtime:
            resident_bytes = runtime.graph.residency.resident_bytes
            load = {name: getattr(runtime, name) for name in ("load_seconds", "planes_resident", "memory_budget")}
            tell(**load, resident_bytes=resident_bytes)
            for line in sys.stdin:
                if line.strip() == VALIDATE:
                    break
                (source,) = ids.ids_of([int(line)]).tolist()
                result = bfs(store, source, runtime=runtime, direction=direction)
                spool.put(result)
                tell(**result.summary())
            else:
                return  # who asked has gone
        del runtime
    invalid = [broken_rule(store, spool.take(i)) for i in range(len(spool))]
    tell(invalid=invalid, peak_host_bytes=sampler.peak_bytes)


if __name__ == "__main__":
    main()
