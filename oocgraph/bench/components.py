"""Connected components beside a peer's on the same graph, and what was read for them.

In: a store and how to measure. Out: a `Report`. Each round runs ours, from the store to the components in memory, ours again on a graph
that is opened (`resident`: planes and edges are in memory, as those of a peer), then every peer on the graph that it holds; ratios are made
inside a round and the median of the rounds counts. The last result is validated by `verify_components`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from oocgraph.algorithms.components import connected_components
from oocgraph.algorithms.runtimes import open_runtime
from oocgraph.bench.harness import Report, in_turn, scratch_folder
from oocgraph.bench.peers import PeerRun, open_peers, peer_metrics
from oocgraph.config import settings
from oocgraph.errors import ValidationError
from oocgraph.resources import Resources
from oocgraph.results.components import ComponentsResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress
from oocgraph.verify_connectivity import verify_components


def bench_components(
    store: CSRStore,
    *,
    num_rounds: int,
    progress: Progress,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    peer: str | None = None,
    scratch: str | None = None,
) -> Report:
    """Measure connected components.

    Parameters
    ----------
    store
        The graph.
    num_rounds
        Number of rounds.
    progress
        Called with runs done.
    memory_budget, threads
        As for `connected_components`; GAPBS gets as many threads.
    peer
        As for `open_peers`.
    scratch
        Folder for a peer's graph.

    Raises
    ------
    OocGraphError
        The peer cannot run; and all that `connected_components` raises.
    """
    threads = threads or settings().threads
    resources = Resources(memory_budget=memory_budget, threads=threads, device="cpu", client=False)

    def run(_number: int) -> ComponentsResult:
        return connected_components(store, resources=resources)

    with scratch_folder(scratch) as folder, open_peers("components", peer, store, threads=threads, folder=folder) as peers:
        subjects: dict[str, Callable[[int], Any]] = {one.name: one.run for one in peers}
        with open_runtime(store, resources=resources) as runtime:
            opened = {"resident": lambda _: connected_components(store, runtime=runtime)}
            found = in_turn({"ours": run, **opened, **subjects}, range(num_rounds), progress, phase="running")
    resident = [one.seconds for one in found["resident"]]
    ours: list[ComponentsResult] = found["ours"]
    result, seconds = ours[-1], [one.seconds for one in ours]
    metrics: dict[str, Any] = {
        "num_rounds": num_rounds,
        "threads": threads,
        "num_components": result.num_components,
        "median_seconds": statistics.median(seconds),
        "resident_median_seconds": statistics.median(resident),
        "median_load_seconds": statistics.median(one.load_seconds for one in ours),
        "edge_bytes": result.edge_bytes,
        "plane_bytes": result.plane_bytes,
        "list_fraction": (result.bytes_requested - result.plane_bytes) / max(1, result.edge_bytes),
        "peak_host_bytes": max(one.peak_host_bytes for one in ours),
        "memory_budget": result.memory_budget,
    }
    invalid = []
    try:
        verify_components(store, result)
    except ValidationError as error:
        invalid.append(str(error))
    for i, one in enumerate(peers, 1):
        runs: list[PeerRun] = found[one.name]
        metrics |= peer_metrics(i, one, [run.seconds for run in runs], seconds, resident)
        if wrong := {run.count for run in runs} - {result.num_components if i == 1 else result.num_linked}:
            invalid.append(f"{one.name} finds {wrong.pop()} components, not {result.num_components}")
    return Report(title=repr(result), metrics=metrics, invalid=tuple(invalid))
