"""PageRank by power iteration, out of core: ranks in memory, in-edges streamed, as many kept as the budget allows.

Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking: Bringing Order to the Web", 1999, with NetworkX's conventions: a vertex that
no edge leaves (isolated ones too) passes its rank on to all, or as the personalization says; ranks sum to 1; the run ends when the sum
of the absolute changes is below N * tol. Differs from the paper in: each vertex pulls from its in-neighbours, so every rank has one writer;
and, if asked, ranks are used as soon as they are made (`oocgraph.products.in_place`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.algorithms.devices import on_devices
from oocgraph.algorithms.pagerank_arguments import Ranked, check_arguments, chosen_column, is_in_place, result_bytes
from oocgraph.algorithms.runtimes import Runtime, check_runtime, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.arrays import Device, Work
from oocgraph.config import settings
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, with_threads_that_fit
from oocgraph.products.in_place import InPlaceRanking
from oocgraph.products.personalization import Personalization, charge_personalization
from oocgraph.products.rank_run import RankOptions, RankRun
from oocgraph.products.ranking import Ranking, charge_ranking, load_kernels
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.pagerank import PageRankResult, RankIteration
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

    from oocgraph.products.device_ranking import DeviceRanking


@known_keywords
def pagerank(
    graph: CSRStore | str | os.PathLike[str],
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    personalization: Mapping[Any, float] | Sequence[float] | Array | None = None,
    weight: str | bool | None = None,
    schedule: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> PageRankResult:
    """Rank of every vertex: where a walk that follows edges, and now and then starts again, is found in the long run.

    Parameters
    ----------
    graph
        A graph store or its path.
    damping
        Probability of following an edge, from 0 to below 1 (NetworkX's `alpha`).
    tol
        The run ends when the sum of the absolute changes of all ranks is below N * tol, as in NetworkX. 0: exactly `max_iter` iterations,
        and no error.
    max_iter
        Iterations at most.
    personalization
        How likely each vertex is to be started at: a dictionary from ids to numbers (others get 0), or a number for each input id,
        ascending, isolated ones included. By default all alike.
    weight
        Edge column of the weights; True: the graph's weight; False: every edge counts 1; by default the graph's weight, if it has one.
    schedule
        ``auto``: each iteration begins with the ranks of the one before. ``in-place``: ranks are used as soon as they are made
        (Gauss-Seidel), which takes up to a third fewer sweeps; the same ranks within `tol`. A cluster has ``auto`` alone.
    checkpoint
        Folder for the state of the run, written every few iterations (setting ``oocgraph.checkpoint-every``) and at the end. If it holds
        a state, the run continues from it, and ends with the same ranks, to the last bit (with a client: if it has as many workers; on
        GPUs: within rounding).
    runtime
        The graph opened before (`oocgraph.open_runtime`), for many runs; it has its own resources. It, or each of its workers, keeps
        edges between runs, as many as fit; on GPUs if it was opened there.
    resources
        Threads, device, memory and cluster; see `oocgraph.Resources`. GPUs (all that this process sees) have the vectors and as many
        edges as fit; the others are streamed in each iteration. They gather float64, and sum in any order: ranks differ by rounding
        from those of the processor, and from one run to the next.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client`: its workers share the iterations, each with the in-edges of a range of vertices; the same as in
        `resources`. By default the current client, if there is one. A lost worker costs the iteration that it was in, or two. The ranks
        differ from those of one process by rounding.
    progress
        Called with ("iterations", done, most); True draws a bar.

    Returns
    -------
    PageRankResult

    Raises
    ------
    ConvergenceError
        The ranks still change by more than N * tol after `max_iter` iterations.
    ArgumentError
        An argument is invalid, or a weight is negative, NaN or infinite.
    VertexNotFoundError
        An id of `personalization` does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works, and the worker.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store, or the checkpoint, cannot be opened or read.
    OutputError
        The checkpoint is of another run, or cannot be written.

    Notes
    -----
    Host memory: 28 bytes for each vertex that has edges (32 with weights), with a personalization 8 more and 8 for each input id, a few
    pieces of 2 MiB of edges, and what the budget has left for edges that stay. All is charged before the run. On a cluster each worker
    holds 44 bytes for each vertex that has edges (48 with weights, whose sums it makes itself), and this process 16.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = pagerank(build_csr(([0, 1, 2], [2, 2, 0]), f"{folder}/g.zarr", directed=True))
    ...     result.rank.round(3).tolist()
    [0.464, 0.05, 0.486]
    """
    check_arguments(damping, tol, max_iter, weight)
    asked, knobs = resources_of("pagerank", resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph), settings()
    if runtime is not None:
        check_runtime(runtime, graph)
        asked = replace(runtime.resources, client=runtime.client)
    in_place = is_in_place(schedule, knobs.precision, is_on_cluster=bool(asked.client))
    store = open_graph(graph) if runtime is None else runtime.store
    column = chosen_column(store, weight)
    options = RankOptions(
        store=store, damping=float(damping), column=column, personalization=personalization, precision=knobs.precision, resources=asked,
        in_place=in_place,
    )  # fmt: skip
    load_libraries(store)
    load_kernels(store, column, personalized=personalization is not None, precision=knobs.precision, in_place=in_place)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        run = RankRun(options, tol * store.attributes.num_input_vertices, max_iter, checkpoint, knobs.checkpoint_every, shown)
        if asked.client:
            found = _on_cluster(options, run, asked.client, None if runtime is None else runtime.lease)
        else:
            opened = opened_of(runtime, graph, asked)
            found = _here(options, run, opened)
        run.check_converged(found.state)
    state = found.state
    return PageRankResult(
        stored_rank=state.rank,
        ids=VertexIds(store),
        isolated_scale=1.0 if np.isnan(state.isolated_scale) else state.isolated_scale,
        personalization=run.personalization.by_id,
        damping=damping,
        tol=tol,
        weights=column,
        iterations=state.iteration,
        converged=state.change < run.enough,
        change=state.change,
        steps=tuple(run.steps),
        edge_bytes=found.edge_bytes,
        kept_bytes=found.kept_bytes,
        load_seconds=found.load_seconds,
        peak_host_bytes=sampler.peak_bytes,
        memory_budget=found.memory_budget,
    )


def _here(options: RankOptions, run: RankRun, opened: OpenedGraph | Unopened) -> Ranked:
    """Rank in this process, on GPUs where they are to be used."""
    asked, found = options.resources, None
    if not options.in_place and options.precision != "single":
        work = partial(_work, options, run)
        found = on_devices("ranking", opened, asked, lambda devices, given: _on_devices(options, run, opened, devices, given), work=work)
    elif asked.device == "cuda" or asked.device_memory_budget is not None:
        what = "schedule is 'in-place'" if options.in_place else "oocgraph.precision is single"
        device = "device is 'cuda'" if asked.device == "cuda" else "device_memory_budget is given"
        raise ArgumentError(f"{device}, but {what}, which the processor alone has; leave one of them out")
    return found or with_threads_that_fit(
        lambda threads: opened.within(lambda budget: _in_process(options, run, opened, threads, budget)), asked.num_threads
    )


def _work(options: RankOptions, run: RankRun) -> Work:
    """Estimate a ranking: edges reach a device once, and are multiplied in each iteration; changes shrink by `damping` at least."""
    from oocgraph.algorithms.spmv import ENTRY_SECONDS
    from oocgraph.kernels.gpu_spmv import product_source

    store = options.store
    num_edges, weight_bytes = store.attributes.num_stored_edges, 0 if options.column is None else 8
    num_iterations = run.max_iter if not run.enough else 1
    if 0 < run.enough < 1 and options.damping:
        num_iterations = min(run.max_iter, 1 + int(math.log(run.enough) / math.log(options.damping)))
    seconds = num_iterations * num_edges * ENTRY_SECONDS / options.resources.num_threads
    source = product_source(store.index_dtype, np.dtype(np.float64))
    return Work(seconds, num_edges * (store.index_dtype.itemsize + weight_bytes), (source,))


def _in_process(options: RankOptions, run: RankRun, opened: OpenedGraph | Unopened, threads: int, budget: Budget) -> Ranked:
    """Rank with threads of this process."""
    start, store, column = perf_counter(), options.store, options.column
    trial = Budget(budget.limit_bytes, budget.baseline_bytes)
    trial.alternatively("the result, when it is written,", result_bytes(store, options.personalization))
    with trial.all_or_none():
        trial.reserve("threads and compiled code", SLACK_BYTES)
        charge_personalization(store, options.personalization, trial)
        charge_ranking(store, trial, column=column, threads=threads, whole_rows=options.in_place)
    budget.reserve("threads and compiled code", SLACK_BYTES)
    charge_personalization(store, options.personalization, budget)
    run.begin()
    given: dict[str, Any] = {"damping": options.damping, "column": column, "threads": threads, "personalization": run.personalization}
    ranking = (
        InPlaceRanking(store, budget, open_edges=opened.edges, **given) if options.in_place
        else Ranking(store, budget, precision=options.precision, open_edges=opened.edges, **given)
    )  # fmt: skip
    return _iterated(ranking, run, budget, start)


def _on_devices(
    options: RankOptions, run: RankRun, opened: OpenedGraph | Unopened, devices: Sequence[Device], requested: str | int | None
) -> Ranked:  # fmt: skip
    """Rank on GPUs."""
    from oocgraph.algorithms.pagerank_on_device import ranking_on

    def begun() -> Personalization:
        run.begin()
        return run.personalization

    def within(budget: Budget) -> Ranked:
        start = perf_counter()
        budget.alternatively("the result, when it is written,", result_bytes(options.store, options.personalization))
        with ranking_on(devices, options, opened, budget, requested, begun) as ranking:
            return _iterated(ranking, run, budget, start)

    return opened.within(within)


def _iterated(ranking: Ranking | InPlaceRanking | DeviceRanking, run: RankRun, budget: Budget, start: float) -> Ranked:
    """Iterate to the end of a run, which began to load at `start`."""
    ranking.begin(run.resumed())
    load_seconds = perf_counter() - start
    while not run.is_done(ranking.state):
        metrics = _measured_step(ranking)
        run.note(ranking.state, metrics, ranking.ranks)
    return Ranked(
        state=replace(ranking.state, rank=ranking.ranks()),
        edge_bytes=ranking.edges.edge_bytes,
        kept_bytes=ranking.edges.kept_bytes,
        load_seconds=load_seconds,
        memory_budget=budget.limit_bytes,
    )


def _on_cluster(options: RankOptions, run: RankRun, client: Any, lease: str | None) -> Ranked:
    """Rank on the workers of a client; imports nothing of Dask before."""
    from oocgraph.algorithms.pagerank_on_cluster import rank_on_cluster

    return rank_on_cluster(options, run, client, lease)


def _measured_step(ranking: Ranking | InPlaceRanking | DeviceRanking) -> RankIteration:
    """Do one iteration; its time ends when the ranks are there."""
    start, device, requested = perf_counter(), device_bytes_read(), ranking.edges.bytes_requested
    single = ranking.state.single
    ranking.step()
    requested = ranking.edges.bytes_requested - requested
    return RankIteration(
        iteration=ranking.state.iteration,
        change=ranking.state.change,
        seconds=perf_counter() - start,
        bytes_requested=requested,
        bytes_read=max(requested, device_bytes_read() - device),
        precision="single" if single else "double",
    )
