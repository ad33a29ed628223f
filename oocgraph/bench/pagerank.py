"""Iterations of PageRank, beside a peer's on the same graph and beside the disk.

In: a store and how to measure. Out: a `Report`. Each round runs ours, reads the edges from first to last as one sequential reader does
(if ours read some), then runs every peer; ratios are made inside a round and the median of the rounds counts. The first iteration of
ours, which brings edges into memory, is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oocgraph.algorithms.pagerank import pagerank
from oocgraph.bench.disk import sequential_bytes_per_second
from oocgraph.bench.harness import Report, in_turn, scratch_folder
from oocgraph.bench.peers import Peer, open_peers, peer_metrics
from oocgraph.config import setting, settings
from oocgraph.resources import Resources
from oocgraph.results.pagerank import PageRankResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Precision, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRun:
    """One run of ours, without its first iteration.

    Attributes
    ----------
    iteration_seconds : float
        Median of the iterations.
    bytes_per_second : float
        Rate of reading from the disk; 0 if all edges were in memory.
    sequential_bytes_per_second : float or None
        Rate of the sequential reader; None where nothing was read or the store is not of plain files.
    """

    iteration_seconds: float
    bytes_per_second: float
    sequential_bytes_per_second: float | None = None


def bench_pagerank(
    store: CSRStore,
    *,
    num_iterations: int,
    num_rounds: int,
    progress: Progress,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    precision: Precision = "auto",
    peer: str | None = None,
    scratch: str | None = None,
) -> Report:
    """Measure PageRank without weights.

    Parameters
    ----------
    store
        The graph.
    num_iterations, num_rounds
        Number of iterations in each round, and of rounds.
    progress
        Called with runs done.
    memory_budget, threads, precision
        As for `pagerank`; GAPBS gets as many threads.
    peer
        As for `open_peers`.
    scratch
        Folder for a peer's graph.

    Raises
    ------
    OocGraphError
        The peer cannot run; and all that `pagerank` raises.
    """
    threads = threads or settings().threads
    resources = Resources(memory_budget=memory_budget, threads=threads, client=False)
    options: dict[str, Any] = {"tol": 0, "max_iter": num_iterations + 1, "weight": False}
    result: PageRankResult | None = None

    def rank(_number: int) -> RankRun:
        nonlocal result
        with setting("precision", precision):
            result = pagerank(store, resources=resources, **options)
        return _run_of(store, result)

    with scratch_folder(scratch) as folder, open_peers("pagerank", peer, store, threads=threads, folder=folder) as peers:
        subjects: dict[str, Callable[[int], Any]] = {one.name: partial(_iteration_seconds, one, num_iterations) for one in peers}
        found = in_turn({"ours": rank, **subjects}, range(num_rounds), progress, phase="running")
    assert result is not None
    runs: list[RankRun] = found["ours"]
    seconds = [one.iteration_seconds for one in runs]
    names = ("edge_bytes", "kept_bytes", "peak_host_bytes", "memory_budget", "bytes_read")
    metrics = {
        "num_iterations": num_iterations,
        "num_rounds": num_rounds,
        "threads": threads,
        "median_iteration_seconds": statistics.median(seconds),
        "min_iteration_seconds": min(seconds),
        **{name: getattr(result, name) for name in names},
        **disk_metrics(runs),
    }
    for i, one in enumerate(peers, 1):
        metrics |= peer_metrics(i, one, found[one.name], seconds, timed="iteration_seconds")
    return Report(title=repr(result), metrics=metrics)


def _run_of(store: CSRStore, result: PageRankResult) -> RankRun:
    steps = result.steps[1:]
    num_bytes = sum(one.bytes_read for one in steps)
    return RankRun(
        iteration_seconds=statistics.median(one.seconds for one in steps),
        bytes_per_second=num_bytes / sum(one.seconds for one in steps),
        sequential_bytes_per_second=sequential_bytes_per_second([store.array(f"{store.pull_group}/indices")]) if num_bytes else None,
    )


def _iteration_seconds(peer: Peer, num_iterations: int, _number: int) -> float:
    found = peer.run(num_iterations)
    return found.seconds / (found.count or num_iterations)


def disk_metrics(runs: Sequence[RankRun]) -> dict[str, Any]:
    """Compare the rates of our reading with those of the sequential reader in the same rounds, where there was one."""
    shares = [one.bytes_per_second / one.sequential_bytes_per_second for one in runs if one.sequential_bytes_per_second]
    if not shares:
        return {}
    rate = statistics.median(one.bytes_per_second for one in runs)
    return {"median_bytes_per_second": rate, "fraction_of_sequential": statistics.median(shares)}
