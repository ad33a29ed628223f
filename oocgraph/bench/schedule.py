"""Schedules of blocks of edges beside each other: shortest paths, core numbers, and searches of graphs in locality order.

In: a store and how to measure. Out: a `Report`. Of each algorithm, runs with all edges in memory, and runs with a share of them, by
priority and in sweeps, take turns from the same sources, with a peer's. What is held in the tight runs is the smallest budget that a
refusal names, and `share` of the edge bytes. Bytes are counted as multiples of the edge bytes, weights included. Results must be the same
for every schedule, and the last of each is validated.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.algorithms.cores import core_numbers
from oocgraph.algorithms.runtimes import open_runtime
from oocgraph.algorithms.sssp import sssp
from oocgraph.bench.distribution import measure_distribution
from oocgraph.bench.harness import Report, in_turn, paired_ratios, scratch_folder
from oocgraph.bench.peers import Peer, PeerRun, open_peers
from oocgraph.bench.results_on_disk import first_violation
from oocgraph.bench.sources import draw_sources
from oocgraph.bench.worklist import measure_worklist
from oocgraph.config import settings
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import input_positions
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Progress
from oocgraph.verify import verify_bfs
from oocgraph.verify_results import verify_cores, verify_sssp

LEAST = re.compile(r"memory_budget to at least (\d+)M")

IN_MEMORY = "memory"
"""Name of the runs that have all edges in memory."""

ALGORITHMS = ("sssp", "core", "bfs")

WORK_LIST = "worklist"
"""Name of what `measure_worklist` measures, among algorithms."""

DISTRIBUTION = "distribution"
"""Name of what `measure_distribution` measures; it takes a minute, and so is measured only if named."""


def bench_schedule(
    store: CSRStore,
    *,
    num_sources: int,
    progress: Progress,
    seed: int = 1,
    algorithms: Sequence[str] = (),
    schedules: Sequence[str] = ("async", "buckets"),
    share: float = 0.25,
    threads: int | None = None,
    peer: str | None = None,
    scratch: str | None = None,
) -> Report:
    """Measure schedules.

    Parameters
    ----------
    store
        The graph.
    num_sources, seed
        Sources of paths and searches, drawn at random; core numbers are found as often.
    progress
        Called with runs done.
    algorithms
        Of `ALGORITHMS`, `WORK_LIST` or `DISTRIBUTION`; by default work lists and all that the graph is for: paths where it has weights,
        searches where it is in locality order.
    schedules
        Of shortest paths in the tight runs.
    share
        Share of the edge bytes that tight runs hold.
    threads
        Ours, and a peer's.
    peer
        As for `open_peers`; of algorithms that it does not have there are none.
    scratch
        Folder for a peer's graph.

    Raises
    ------
    OocGraphError
        The graph has no edges, or the peer cannot run; and all that the algorithms raise.
    """
    threads = threads or settings().threads
    vertices = draw_sources(store, num_sources, seed)
    sources = VertexIds(store).ids_of(vertices).tolist()
    about = store.attributes
    fits = {"sssp": about.weighted, "core": not about.num_self_loops, "bfs": about.vertex_order == "locality"}
    metrics: dict[str, Any] = {"graph": store.url, "num_sources": len(sources), "seed": seed, "threads": threads, "share": share}
    if not algorithms or WORK_LIST in algorithms:
        metrics |= measure_worklist(threads)
    if DISTRIBUTION in algorithms:
        metrics |= measure_distribution(store, int(vertices[0]), threads, progress)
    invalid: list[str] = []
    input_rows = input_positions(store)[vertices] if peer else vertices
    rows = vertices if about.vertex_order == "degree" else input_rows  # of GAPBS, whose file is in the store's order then
    for name in [one for one in algorithms if one in ALGORITHMS] if algorithms else [one for one in ALGORITHMS if fits[one]]:
        runs = _runs_of(name, store, schedules)
        with (
            _subjects(runs, store, sources, share=share, threads=threads) as (subjects, budgets),
            scratch_folder(scratch) as folder,
            open_peers(name, peer, store, threads=threads, folder=folder, optional=True) as peers,
        ):
            theirs = {one.name: _asked(one, rows if peers[1:] else input_rows) for one in peers}
            found = in_turn({**subjects, **theirs}, range(len(sources)), progress, phase=name)
        for schedule, budget in budgets.items():
            results = found[schedule]
            edge_bytes = max(1, results[0].edge_bytes)
            metrics |= {
                f"{name}_{schedule}_median_seconds": statistics.median(_seconds(one) for one in results),
                f"{name}_{schedule}_read_fraction": statistics.median(_bytes(one) / edge_bytes for one in results),
                f"{name}_{schedule}_peak_host_bytes": max(one.peak_host_bytes for one in results),
                f"{name}_{schedule}_budget": budget,
            }
            for other in list(budgets)[1:]:
                if schedule == "async" != other:
                    metrics |= paired_ratios(f"{name}_seconds_by_{other}", [*map(_seconds, results)], [*map(_seconds, found[other])])
                    byte_counts = [[max(1, _bytes(one)) for one in found[which]] for which in (schedule, other)]
                    metrics |= paired_ratios(f"{name}_bytes_by_{other}", *byte_counts)
            invalid += _invalid(name, schedule, store, results, found[IN_MEMORY])
        if peers:
            best = [min(times) for times in zip(*([one.seconds for one in found[peer.name]] for peer in peers), strict=True)]
            metrics[f"{name}_peer"] = " or ".join(one.name for one in peers)
            metrics[f"{name}_peer_median_seconds"] = statistics.median(best)
            metrics |= paired_ratios(f"{name}_ratio_to_peer", [_seconds(one) for one in found[IN_MEMORY]], best)
    return Report(title=repr(store), metrics=metrics, invalid=tuple(invalid))


def _runs_of(name: str, store: CSRStore, schedules: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Return functions of a source and of where to run, by schedule; the first is in memory."""
    if name == "sssp":
        return {
            one: lambda source, schedule="async" if one == IN_MEMORY else one, **where: sssp(store, source, schedule=schedule, **where)
            for one in (IN_MEMORY, *schedules)
        }
    if name == "core":
        kinds = {IN_MEMORY: "async", "async": "async", "rounds": "rounds"}
        return {one: lambda source, kind=kind, **where: core_numbers(store, schedule=kind, **where) for one, kind in kinds.items()}
    return dict.fromkeys((IN_MEMORY, "async"), lambda source, **where: bfs(store, source, **where))


@contextmanager
def _subjects(
    runs: dict[str, Callable[..., Any]], store: CSRStore, sources: Sequence[Any], *, share: float, threads: int
) -> Iterator[tuple[dict[str, Callable[[int], Any]], dict[str, int]]]:
    """Yield what is measured, as functions of the number of a source, and the budget of each."""
    resources = Resources(threads=threads, device="cpu", client=False)
    edge_bytes = runs[IN_MEMORY](sources[0], resources=resources).edge_bytes  # and kernels are loaded
    subjects: dict[str, Callable[[int], Any]] = {}
    budgets = {IN_MEMORY: resources.limit_bytes}
    with open_runtime(store, resources=resources) as runtime:
        subjects[IN_MEMORY] = lambda number: runs[IN_MEMORY](sources[number], runtime=runtime)
        subjects[IN_MEMORY](0)
        for name, run in runs.items():
            if name == IN_MEMORY:
                continue

            def tight(number: int, name: str = name, run: Callable[..., Any] = run) -> Any:
                least = _least(lambda **given: run(sources[number], **given), threads)
                budgets[name] = least + int(share * edge_bytes)
                return run(sources[number], resources=Resources(memory_budget=budgets[name], threads=threads, device="cpu", client=False))

            budgets[name], subjects[name] = 0, tight
        yield subjects, budgets


def _least(run: Callable[..., Any], threads: int) -> int:
    """Return the smallest budget that a refusal names."""
    try:
        run(resources=Resources(memory_budget="1M", threads=threads, device="cpu", client=False))
    except BudgetError as error:
        if named := LEAST.search(str(error)):
            return int(named[1]) << 20
        raise
    raise OocGraphError("a budget of 1M was not refused; measure a larger graph")


def _asked(peer: Peer, rows: Array) -> Callable[[int], PeerRun]:
    return lambda number: peer.run(int(rows[number]))


def _seconds(result: Any) -> float:
    return float(result.seconds)


def _bytes(result: Any) -> int:
    return int(result.search.bytes_requested if hasattr(result, "search") else result.bytes_requested)


def _invalid(name: str, schedule: str, store: CSRStore, results: Sequence[Any], others: Sequence[Any]) -> Iterator[str]:
    """Yield what is wrong with results: they differ from those in memory, or the last one is not valid."""
    column = {"sssp": "stored_value", "core": "stored_core_number"}.get(name)
    for number, (one, other) in enumerate(zip(results, others, strict=True)):
        same = one.num_reached == other.num_reached if column is None else np.array_equal(getattr(one, column), getattr(other, column))
        if not same:
            yield f"{name}, {schedule}, run {number}: another result than in memory"
    verify: Any = {"sssp": verify_sssp, "core": verify_cores, "bfs": verify_bfs}[name]
    if violation := first_violation(store, results[-1], verify=verify):
        yield f"{name}, {schedule}: {violation}"
