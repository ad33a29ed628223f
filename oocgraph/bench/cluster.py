"""Searches on a Dask cluster beside the same searches in one process, with as many threads and the same planes; every result validated.

In: a store, how to reach the cluster, how to measure. Out: a `ClusterReport`. The process beside the cluster is neither this one nor a
worker, so that what the client holds is measured too. Each source is searched by both in turn; or, under a memory cap that does not
hold both, all sources by the one and then, when it is gone, all by the other. Results wait on disk until neither is left. Both search on
the processor, whatever else workers have.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.cluster_report import ClusterReport, Comparison, WorkerReport
from oocgraph.bench.in_process import InProcessPeer
from oocgraph.bench.judge import broken_rule
from oocgraph.bench.probe import Probes
from oocgraph.bench.sources import draw_sources
from oocgraph.bench.spool import leave_page_cache
from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler, host_bytes, parse_bytes
from oocgraph.results.bfs import BFSResult
from oocgraph.results.search import Iteration
from oocgraph.runtime.dask import ClusterRuntime
from oocgraph.runtime.driver import Outcome
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
) -> ClusterReport:
    """Measure searches on a cluster.

    Parameters
    ----------
    store
        The graph.
    open_client
        Returns a context that yields a `distributed.Client`, and at its end stops what it had to start.
    num_sources, seed
        How many vertices with edges to draw, and how.
    progress
        Told searches and validations done.
    source
        An id to search from `num_sources` times, instead of random ones.
    num_partitions, memory_budget
        As in `ClusterRuntime.open`.
    in_process_memory
        Bytes that the process beside the cluster may hold; by default the sum of the workers' budgets.
    direction
        As for `bfs`. Only ``auto`` and ``push`` let workers take levels with few edges without an exchange.
    apart
        Search all sources on the cluster, leave it, then search them in process: what both hold is never there at once.
    scratch
        Folder for results awaiting validation, which every worker must see (10 bytes per vertex and source).

    Raises
    ------
    OocGraphError
        The graph has no edges, or the workers cannot be used; and all that `bfs` raises.
    """
    vertices = _vertices(store, source, num_sources, seed)
    with tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=scratch or settings().result_folder) as folder, ExitStack() as stack:
        cluster = stack.enter_context(ClusterSide(store, open_client, num_partitions, memory_budget, direction, Path(folder)))
        if apart:
            for i, vertex in enumerate(vertices):
                cluster.search(vertex)
                progress("searching", i + 1, 2 * len(vertices))
            stack.close()
        peer = InProcessPeer(
            store.url,
            threads=cluster.threads,
            memory_budget=cluster.memory_budget if in_process_memory is None else parse_bytes(in_process_memory),
            max_planes=cluster.planes_resident,
            direction=direction,
            folder=Path(folder),
        )
        with peer:
            theirs = []
            for i, vertex in enumerate(vertices):
                if not apart and i % 2 == 0:
                    cluster.search(vertex)
                theirs.append(peer.search(vertex))
                if not apart and i % 2:  # whoever comes second finds pages that the first has read
                    cluster.search(vertex)
                progress("searching", i + 1 + apart * len(vertices), (1 + apart) * len(vertices))
            stack.close()
            their_rules = peer.validate()
        searches = cluster.compare(theirs, their_rules, progress)
    return ClusterReport(
        url=store.url,
        seed=None if source is not None else seed,
        direction=direction,
        apart=apart,
        threads=cluster.threads,
        num_partitions=len(cluster.parts),
        edge_bytes=store.edge_bytes,
        load_seconds=cluster.load_seconds,
        planes_resident=cluster.planes_resident,
        memory_budget=cluster.memory_budget,
        in_process_load={**peer.load, "peak_host_bytes": peer.peak_host_bytes},
        parts=cluster.parts,
        workers=cluster.workers(),
        client_load_growth_bytes=cluster.load_growth_bytes,
        client_growth_bytes=cluster.growth_bytes,
        searches=searches,
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
    """Keeps what the last search says of itself.

    Attributes
    ----------
    outcome
        Of the last search.
    """

    outcome: Outcome

    def search(self, *arguments: Any, **options: Any) -> Outcome:
        """Search as `ClusterRuntime.search` does."""
        self.outcome = super().search(*arguments, **options)
        return self.outcome


class ClusterSide:
    """The searches on the cluster. A context manager; entering it loads the graph on the workers, leaving it frees them.

    Attributes
    ----------
    threads
        Of all workers that hold partitions.
    parts
        What each partition holds, as `ClusterRuntime.parts`.
    load_seconds, planes_resident, memory_budget
        As of `ClusterRuntime`.
    load_growth_bytes, growth_bytes
        How much more this process held at most during the load, and during the searches, than before each.
    """

    def __init__(
        self,
        store: CSRStore,
        open_client: Callable[[], AbstractContextManager[Any]],
        num_partitions: int | None,
        memory_budget: str | int | None,
        direction: Direction,
        folder: Path,
    ) -> None:
        self._store, self._open_client, self._direction, self._folder = store, open_client, direction, folder
        self._asked: dict[str, Any] = {"num_partitions": num_partitions, "memory_budget": memory_budget, "result_folder": folder}
        self._ids = VertexIds(store)
        self._found: list[tuple[BFSResult, Outcome, float]] = []
        self.load_growth_bytes = self.growth_bytes = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            client = stack.enter_context(self._open_client())
            self._probes = stack.enter_context(Probes(client))
            before = host_bytes()
            with PeakSampler() as sampler:
                self._runtime = stack.enter_context(MeasuredRuntime.open(self._store, client=client, device="cpu", **self._asked))
            self.load_growth_bytes = sampler.peak_bytes - before
            runtime = self._runtime
            self.parts = runtime.parts
            self.threads = sum(client.nthreads()[address] for address in set(runtime.placement))
            self.load_seconds, self.planes_resident, self.memory_budget = (
                runtime.load_seconds, runtime.planes_resident, runtime.memory_budget
            )  # fmt: skip
            self._before = host_bytes()
            self._sampler = stack.enter_context(PeakSampler())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)
        self.growth_bytes = self._sampler.peak_bytes - self._before

    def search(self, vertex: int) -> None:
        """Search from a vertex of the store; the result stays on disk."""
        (source,) = self._ids.ids_of([vertex]).tolist()
        path = self._folder / f"search-{len(self._found)}.zarr"
        began = time.perf_counter()
        result = bfs(self._store, source, runtime=self._runtime, direction=self._direction, result_store=path)
        seconds = time.perf_counter() - began
        self._found.append((result, self._runtime.outcome, seconds))
        leave_page_cache(path)

    def compare(self, theirs: Sequence[dict[str, Any]], their_rules: Sequence[str | None], progress: Progress) -> tuple[Comparison, ...]:
        """Validate the results, and put each beside that of the process."""
        out = []
        owned = [int(part["num_owned"]) for part in self.parts]
        itemsize = self._store.index_dtype.itemsize
        for i, ((result, outcome, call_seconds), their, rule) in enumerate(zip(self._found, theirs, their_rules, strict=True)):
            sent = [sent_and_bound(one, owned, itemsize) for one in result.iterations]
            out.append(
                Comparison(
                    result=result.summary(),
                    in_process=their,
                    invalid=broken_rule(self._store, result),
                    in_process_invalid=rule,
                    call_seconds=call_seconds,
                    result_seconds=outcome.result_seconds,
                    num_hops=outcome.num_hops,
                    num_epochs=outcome.num_epochs,
                    busy_seconds=outcome.figures.busy_seconds(),
                    sent_bytes=sum(num_bytes for num_bytes, _ in sent),
                    bound_bytes=sum(bound for _, bound in sent),
                    worst_sent_to_bound=max((num_bytes / bound for num_bytes, bound in sent if bound), default=0.0),
                )
            )
            progress("validating", i + 1, len(theirs))
        return tuple(out)

    def workers(self) -> tuple[WorkerReport, ...]:
        """Return what each worker did, when all is over."""
        busy: dict[str, float] = {part["worker"]: 0.0 for part in self.parts}
        for _, outcome, _ in self._found:
            for worker, seconds in outcome.figures.busy_seconds().items():
                busy[worker] = busy.get(worker, 0.0) + seconds
        return tuple(self._worker(address, busy_seconds) for address, busy_seconds in busy.items())

    def _worker(self, address: str, busy_seconds: float) -> WorkerReport:
        held = [part for part in self.parts if part["worker"] == address]
        probe = self._probes.workers.get(address)
        return WorkerReport(
            worker=address,
            partitions=tuple(part["partition"] for part in held),
            num_owned=sum(part["num_owned"] for part in held),
            num_edges=sum(part["num_edges"] for part in held),
            memory_budget=max((part["memory_budget"] for part in held), default=0),
            resident_bytes=sum(part["resident_bytes"] for part in held),
            peak_host_bytes=None if probe is None else probe.peak_host_bytes,
            busy_seconds=busy_seconds,
            transferred_bytes=None if probe is None else probe.transferred_bytes,
        )


def sent_and_bound(iteration: Iteration, owned: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Bytes of the frontier parts that an iteration sent, and the bytes that these may have by ``(P - 1) x min(ids, bitmap)``.

    Examples
    --------
    >>> from oocgraph.results.search import PartFigures
    >>> few, many = PartFigures(0, "a", "push", 0.1, 0, 8, 2), PartFigures(1, "b", "push", 0.1, 0, 16, 90)
    >>> sent_and_bound(Iteration(1, "push", "", 1, 0, 0.1, 0, parts=(few, many)), owned=[100, 100], itemsize=4)
    (24, 24)
    """
    peers = len(owned) - 1
    sent = [part for part in iteration.parts if part.sent_bytes]
    bound = sum(peers * min(part.num_found * itemsize, 8 * -(-owned[part.partition] // 64)) for part in sent)
    return sum(part.sent_bytes for part in sent), bound
