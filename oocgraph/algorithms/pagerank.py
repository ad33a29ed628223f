"""PageRank by power iteration, out of core: ranks in memory, in-edges streamed, as many kept as the budget allows.

Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking: Bringing Order to the Web", 1999, with NetworkX's conventions: a vertex that
no edge leaves (isolated ones too) passes its rank on to all, or as the personalization says; ranks sum up to 1; the run ends when the sum
of the absolute changes is below N * tol. Differs from the paper in: each vertex pulls from its in-neighbours, so every rank has one writer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import google_crc32c
import numpy as np

from oocgraph.algorithms.pagerank_arguments import charge_wanted, check_arguments, chosen_column, result_bytes, wanted_of
from oocgraph.allocator import returned_memory
from oocgraph.config import settings
from oocgraph.errors import ConvergenceError
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, effective_budget_bytes
from oocgraph.products.ranking import Precision, Ranking, RankState, Wanted, charge_ranking, load_kernels
from oocgraph.progress import watched
from oocgraph.results.pagerank import PageRankResult, RankIteration
from oocgraph.store.fingerprint import column_fingerprint, graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.rank_checkpoint import RankCheckpoint
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress, ProgressOption

ITERATIONS = "iterations"
"""Phase of progress: iterations done, of the most that may be done."""


def pagerank(
    graph: CSRStore | str | os.PathLike[str],
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    personalization: Mapping[Any, float] | Sequence[float] | Array | None = None,
    weights: str | bool | None = None,
    precision: Precision = "auto",
    threads: int | None = None,
    memory_budget: str | int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 5,
    check_pages: bool = False,
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
    weights
        Edge column of the weights; True: the graph's weight; False: every edge counts 1; by default the graph's weight, if it has one.
    precision
        Of what is gathered along edges (ranks and sums are float64): ``double``; ``single`` (float32: the changes may not come below
        1.5e-7 * damping / (1 - damping) in all); by default single while a large graph's ranks still change by more than that and 1e-6
        in all, then double.
    threads
        Compute threads; by default the cores this process may use.
    memory_budget
        Bytes that the whole process may hold (text such as ``"640M"``); by default most of what the machine leaves.
    checkpoint
        Folder for the state of the run, written every `checkpoint_every` iterations and at the end. If it has one, the run goes on from
        it, and ends with the same ranks, to the last bit.
    check_pages
        Compare what is read of the store with its checksums.
    progress
        Called with ("iterations", done, most); True draws a bar.

    Returns
    -------
    PageRankResult

    Raises
    ------
    ConvergenceError
        The ranks still change by more than N * tol after `max_iter` iterations.
    OocGraphError
        An argument cannot be meant, or a weight is negative, NaN or infinite.
    VertexNotFoundError
        An id of `personalization` does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store, or the checkpoint, cannot be opened or read.
    OutputError
        The checkpoint is of another run, or cannot be written.

    Notes
    -----
    Host memory: 28 bytes for each vertex that has edges (32 with weights), with a personalization 8 more and 8 for each input id, a few
    pieces of 2 MiB of edges, and what the budget has left for edges that stay. All is charged before the run.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = pagerank(build_csr(([0, 1, 2], [2, 2, 0]), f"{folder}/g.zarr", directed=True))
    ...     result.rank.round(3).tolist()
    [0.464, 0.05, 0.486]
    """
    check_arguments(damping, tol, max_iter, weights, precision, threads, checkpoint_every)
    store = open_graph(graph, check_pages=check_pages)
    knobs, start = settings(), perf_counter()
    limit_bytes = effective_budget_bytes(memory_budget if memory_budget is not None else knobs.memory_budget)
    column = chosen_column(store, weights)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        load_kernels(store, column, personalized=personalization is not None, precision=precision)
        budget = Budget(limit_bytes)
        trial = Budget(limit_bytes, budget.baseline_bytes)
        trial.alternatively("the result, when it is written,", result_bytes(store, personalization))
        with trial.together():
            trial.reserve("threads and compiled code", SLACK_BYTES)
            charge_wanted(store, personalization, trial)
            charge_ranking(store, trial, column=column, threads=threads or knobs.threads)
        budget.reserve("threads and compiled code", SLACK_BYTES)
        charge_wanted(store, personalization, budget)
        wanted = wanted_of(store, personalization)
        saved = None if checkpoint is None else _open_checkpoint(checkpoint, store, damping, column, precision, wanted)
        ranking = Ranking(
            store, budget, damping=float(damping), column=column, wanted=wanted, threads=threads or knobs.threads, precision=precision
        )
        ranking.begin(None if saved is None else _resumed(saved, store.num_vertices))
        load_seconds = perf_counter() - start
        steps = _iterate(ranking, tol * wanted.num_ids, max_iter, saved, checkpoint_every, shown)
    state, edges = ranking.state, ranking.edges
    return PageRankResult(
        stored_rank=state.rank,
        ids=VertexIds(store),
        isolated_scale=1.0 if np.isnan(state.isolated_scale) else state.isolated_scale,
        wanted=wanted.by_id,
        damping=damping,
        tol=tol,
        weights=column,
        iterations=state.iteration,
        converged=state.change < tol * wanted.num_ids,
        change=state.change,
        steps=steps,
        edge_bytes=sum(part.entry_bytes for part in edges.parts),
        kept_bytes=sum(part.entry_bytes for part in edges.parts[: edges.num_kept]),
        load_seconds=load_seconds,
        peak_host_bytes=sampler.peak_bytes,
        memory_budget=limit_bytes,
    )


def _iterate(
    ranking: Ranking, enough: float, max_iter: int, saved: RankCheckpoint | None, checkpoint_every: int, progress: Progress
) -> tuple[RankIteration, ...]:
    """Iterate until the change is below `enough`; return what was measured.

    Raises
    ------
    ConvergenceError
        It is not after `max_iter` iterations, and `enough` is not 0.
    """
    steps: list[RankIteration] = []
    while ranking.state.iteration < max_iter and not ranking.state.change < enough:
        steps.append(_measured_step(ranking))
        state = ranking.state
        done = state.iteration == max_iter or state.change < enough
        if saved is not None and (done or state.iteration % checkpoint_every == 0):
            saved.write(_scalars(state), state.rank)
        progress(ITERATIONS, state.iteration, max_iter)
    if enough and not ranking.state.change < enough:
        kept = "; the checkpoint goes on from here" if saved is not None else ""
        floor = ranking.single_floor
        circling = ranking.state.single and enough < floor
        other = f", or choose precision='double': float32 may go round with changes up to {floor:.2g}" if circling else ""
        raise ConvergenceError(
            f"PageRank has not converged: after {ranking.state.iteration} iterations ranks still change by {ranking.state.change:.3g}, and "
            f"tol asks for less than {enough:.3g} (N * tol); raise max_iter (--max-iter) or tol (--tol){other}{kept}"
        )
    return tuple(steps)


def _measured_step(ranking: Ranking) -> RankIteration:
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


def _open_checkpoint(
    folder: str | os.PathLike[str], store: CSRStore, damping: float, column: str | None, precision: str, wanted: Wanted
) -> RankCheckpoint:
    """Return the checkpoint of this run: what the ranks of an iteration depend on tells it from others."""
    personalization = None if wanted.by_id is None else format(google_crc32c.extend(0, wanted.by_id.view(np.uint8)), "08x")
    run = {
        "graph": graph_fingerprint(store),
        "damping": float(damping),
        "weights": column,
        "checksum of the weights": None if column is None else column_fingerprint(store, f"out/{column}"),
        "precision": precision,
        "checksum of the personalization": personalization,
    }
    return RankCheckpoint(folder, run)


def _scalars(state: RankState) -> dict[str, Any]:
    """Return all of a state but the ranks, as JSON values; floats as texts that give back every bit."""
    floats = {name: float(getattr(state, name)).hex() for name in ("isolated_scale", "dangling", "change")}
    return {"iteration": state.iteration, "single": state.single, **floats}


def _resumed(saved: RankCheckpoint, num_vertices: int) -> RankState | None:
    """Return the state that a checkpoint holds; None where it holds none yet."""
    found = saved.read(num_vertices)
    if found is None:
        return None
    scalars, rank = found
    floats = {name: float.fromhex(scalars[name]) for name in ("isolated_scale", "dangling", "change")}
    return RankState(iteration=scalars["iteration"], single=scalars["single"], rank=rank, **floats)
