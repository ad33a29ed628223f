"""Searches on a Dask cluster beside the same searches in one process, with as many threads and the same planes; every result validated.

In: a store, how to reach the cluster, how to measure. Out: a `Report`. The process beside the cluster is neither this one nor a
worker, so that what the client holds is measured too. Each source is searched by both in turn; or, under a memory cap that does not
hold both, all sources by the one and then, when it is gone, all by the other. Results wait on disk until neither is left. Both search on
the processor, whatever else workers have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.cluster_metrics import ClusterSearch, compared, invalid_results, run_metrics, worker_metrics
from oocgraph.bench.disk import drop_page_cache
from oocgraph.bench.harness import Report, in_turn, scratch_folder
from oocgraph.bench.in_process import InProcessPeer
from oocgraph.bench.results_on_disk import first_violation
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.bench.worker_sampler import WorkerSample, WorkerSamplers
from oocgraph.cluster.logged_search import Outcome
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.config import parse_bytes, settings
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler, host_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Direction, Progress


def bench_cluster(
    store: CSRStore,
    *,
    open_client: Callable[[], AbstractContextManager[Any]],
    num_sources: int,
    seed: int,
    progress: Progress,
    source: Any = None,
    num_partitions: int | None = None,
    memory_budget: str | int | None = None,
    in_process_memory: str | int | None = None,
    direction: Direction = "auto",
    apart: bool = False,
    scratch: str | None = None,
) -> Report:
    """Measure searches on a cluster.

    Parameters
    ----------
    store
        The graph.
    open_client
        Returns a context that yields a `distributed.Client`, and at its end stops what it had to start.
    num_sources, seed
        Number of vertices with edges to draw, and the seed of the draw.
    progress
        Called with searches and validations done.
    source
        An id to search from `num_sources` times, instead of random ones.
    num_partitions, memory_budget
        As in `ClusterRuntime.open`.
    in_process_memory
        Bytes that the process beside the cluster may hold; by default the sum of the workers' budgets.
    direction
        As for `bfs`. Only ``auto`` and ``push`` let workers take levels with few edges without an exchange.
    apart
        Search all sources on the cluster, leave it, then search them in process: the memory of both is never in use at once.
    scratch
        Folder for results awaiting validation, which every worker must see (10 bytes per vertex and source).

    Raises
    ------
    OocGraphError
        The graph has no edges, or the workers cannot be used; and all that `bfs` raises.
    """
    vertices = _vertices(store, source, num_sources, seed)
    with scratch_folder(scratch or settings().result_folder) as folder, ExitStack() as stack:
        asked = {"num_partitions": num_partitions, "memory_budget": memory_budget}
        cluster = stack.enter_context(open_cluster(store, open_client, direction, folder, **asked))
        subjects: dict[str, Callable[[int], Any]] = {"cluster": cluster.search}
        if apart:
            in_turn(subjects, vertices, progress, phase="searching on the cluster")
            stack.close()
            subjects = {}
        memory = cluster.load["memory_budget"] if in_process_memory is None else parse_bytes(in_process_memory)
        limits = {"threads": cluster.threads, "memory_budget": memory, "max_planes": cluster.load["planes_resident"]}
        with InProcessPeer(store.url, direction=direction, folder=folder, **limits) as process:
            theirs = in_turn({**subjects, "process": process.search}, vertices, progress, phase="searching", alternate=True)["process"]
            stack.close()
            their_rules = process.validate()
        searches = cluster.compare(theirs, their_rules, progress)
    invalid, workers = invalid_results(searches), worker_metrics(cluster.parts, cluster.searches, cluster.samples)
    return Report(
        title=repr(store),
        metrics={
            "graph": store.url,
            "num_sources": len(searches),
            "num_invalid": len(invalid),
            "seed": None if source is not None else seed,
            "direction": direction,
            "apart": apart,
            "threads": cluster.threads,
            **run_metrics(searches, workers, cluster.parts),
            "edge_bytes": store.edge_bytes,
            **cluster.load,
            **{f"in_process_{name}": value for name, value in process.load.items()},
            "in_process_peak_host_bytes": process.peak_host_bytes,
            **cluster.client,
            "workers": workers,
            "searches": searches,
        },
        invalid=invalid,
    )


def _vertices(store: CSRStore, source: Any, num_sources: int, seed: int) -> list[int]:
    """Return the store numbers to search from."""
    if source is None:
        drawn: list[int] = draw_sources(store, num_sources, seed).tolist()
        return drawn
    vertex = int(VertexIds(store).vertices_of(source)[0])
    if vertex < 0:
        raise OocGraphError(f"--source {source} is an isolated vertex: there is nothing to search; choose a vertex that has edges")
    return [vertex] * num_sources


class MeasuredRuntime(ClusterRuntime):
    """Keeps the `Outcome` of the last search as `outcome`."""

    outcome: Outcome

    def search_into(self, *arguments: Any, **options: Any) -> Outcome:
        """Search as `ClusterRuntime.search_into` does."""
        self.outcome = super().search_into(*arguments, **options)
        return self.outcome


class ClusterSide:
    """The searches on the cluster; see `open_cluster`.

    Attributes
    ----------
    threads
        Number of threads of all workers that hold partitions.
    parts
        What each partition holds, as `ClusterRuntime.parts`.
    load
        ``load_seconds``, ``planes_resident`` and ``memory_budget`` of the runtime.
    client
        Growth of this process's memory at most during the load (``client_load_growth_bytes``) and, once the cluster is left, during the
        searches (``client_growth_bytes``). A scheduler may live in it.
    searches
        One entry for each search so far.
    samples
        Samples of the workers by address, once the cluster is left.
    """

    def __init__(self, runtime: MeasuredRuntime, direction: Direction, folder: Path) -> None:
        self._runtime, self._store, self._direction, self._folder = runtime, runtime.store, direction, folder
        used = set(runtime.addresses)
        self.threads = sum(num_threads for address, num_threads in runtime.client.nthreads().items() if address in used)
        self.parts = runtime.parts
        self.load = {name: getattr(runtime, name) for name in ("load_seconds", "planes_resident", "memory_budget")}
        self.client: dict[str, int] = {}
        self.searches: list[ClusterSearch] = []
        self.samples: dict[str, WorkerSample] = {}

    def search(self, vertex: int) -> None:
        """Search from a vertex of the store; the result stays on disk."""
        (source,) = source_ids(self._store, [vertex])
        path = self._folder / f"search-{len(self.searches)}.zarr"
        began = time.perf_counter()
        result = bfs(self._store, source, runtime=self._runtime, direction=self._direction, result_store=path)
        seconds = time.perf_counter() - began
        self.searches.append(ClusterSearch(result, self._runtime.outcome, seconds))
        drop_page_cache(path.rglob("*"))

    def compare(self, theirs: Sequence[dict[str, Any]], their_rules: Sequence[str | None], progress: Progress) -> list[dict[str, Any]]:
        """Validate the results, and put each beside that of the process."""
        rows = []
        owned, itemsize = [int(part["num_owned"]) for part in self.parts], self._store.index_dtype.itemsize
        for i, (search, their, their_rule) in enumerate(zip(self.searches, theirs, their_rules, strict=True)):
            rules = first_violation(self._store, search.result), their_rule
            rows.append(compared(search, their, rules, owned=owned, itemsize=itemsize))
            progress("validating", i + 1, len(theirs))
        return rows


@contextmanager
def open_cluster(
    store: CSRStore, open_client: Callable[[], AbstractContextManager[Any]], direction: Direction, folder: Path, **asked: Any
) -> Iterator[ClusterSide]:
    """Load the graph on the workers; free them at the end. `asked` is for `ClusterRuntime.open`."""
    with open_client() as client, WorkerSamplers(client) as samplers:
        before = host_bytes()
        with PeakSampler() as loading:
            runtime = MeasuredRuntime.open(store, client=client, device="cpu", result_folder=folder, **asked)
        with runtime:
            cluster = ClusterSide(runtime, direction, folder)
            cluster.client["client_load_growth_bytes"] = loading.peak_bytes - before
            before = host_bytes()
            with PeakSampler() as searching:
                yield cluster
    cluster.client["client_growth_bytes"] = searching.peak_bytes - before
    cluster.samples = samplers.workers
