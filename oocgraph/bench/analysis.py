"""An analysis beside a peer's on the same graph, whichever it is: time, bytes, and whether both find the same.

In: the name of an analysis, a store, and how to measure. Out: a `Report`. Each round runs ours from the store; without a budget, on a graph
that is opened, whose edges stay in memory as those of a peer do; then every peer; ratios are made inside a round and the median of
the rounds counts. What an analysis counts (triangles, components, the weight of a forest, modularity) is compared in every round;
where there is a verifier, it validates the last result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import oocgraph
from oocgraph.algorithms.runtimes import open_runtime
from oocgraph.bench.harness import Report, in_turn, scratch_folder
from oocgraph.bench.peers import open_peers, peer_metrics
from oocgraph.bench.results_on_disk import first_violation
from oocgraph.config import settings
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress
from oocgraph.verify_results import verify_components

SOURCES = 16
"""Vertices from which an analysis searches, where the time of one counts."""


def _read(result: Any) -> dict[str, Any]:
    return {"read_fraction": result.bytes_read / max(1, result.edge_bytes)}


def _read_beside_planes(result: Any) -> dict[str, Any]:
    beside = result.bytes_requested - result.plane_bytes
    return {"plane_bytes": result.plane_bytes, "list_fraction": beside / max(1, result.edge_bytes)}


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis.

    Attributes
    ----------
    function
        Its public name.
    count
        Field of the summary that a peer counts, too; None: there is none.
    options
        Arguments.
    tolerance
        By how much counts may differ, as a share of the peer's; below: of what is better where it is larger.
    per
        How many of its kind a run is: seconds are of one.
    read
        Returns metrics of what was read for a result.
    count_of_others
        Field of the result that peers from the second on count in place of `count`; what peers count is then no metric.
    difference
        Message where a peer counts something else.
    verify
        Validates a result of the graph.
    opens_within_budget
        Whether an opened graph is measured where there is a budget, too: within it.
    """

    function: str
    count: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    tolerance: float = 0.0
    per: int = 1
    read: Callable[[Any], dict[str, Any]] = _read
    count_of_others: str | None = None
    difference: str = "{peer} finds {name} {theirs:,}, not {ours:,}"
    verify: Callable[..., None] | None = None
    opens_within_budget: bool = False


ANALYSES = {
    "biconnected-components": Analysis("biconnected_components", count="num_components"),
    "betweenness": Analysis("betweenness_centrality", options=(("k", SOURCES),), per=SOURCES),
    "coloring": Analysis("greedy_coloring", count="num_colors"),
    "components": Analysis(
        "connected_components", count="num_components", read=_read_beside_planes, count_of_others="num_linked",
        difference="{peer} finds {theirs} components, not {ours}", verify=verify_components, opens_within_budget=True,
    ),
    "eigenvector": Analysis("eigenvector_centrality"),
    "hits": Analysis("hits"),
    "label-propagation": Analysis("label_propagation"),
    "louvain": Analysis("louvain", count="modularity", tolerance=0.01),
    "scc": Analysis("strongly_connected_components", count="num_components"),
    "spanning-forest": Analysis("minimum_spanning_forest", count="total_weight", tolerance=1e-6),
    "triangles": Analysis("triangles", count="num_triangles"),
}  # fmt: skip


def bench_analysis(
    store: CSRStore, name: str, *, num_rounds: int, progress: Progress, memory_budget: str | int | None = None, threads: int | None = None,
    peer: str | None = None, scratch: str | None = None,
) -> Report:  # fmt: skip
    """Measure an analysis.

    Parameters
    ----------
    store
        The graph.
    name
        In `ANALYSES`.
    num_rounds
        Number of rounds.
    progress
        Called with runs done.
    memory_budget, threads
        Of ours, from the store; a peer gets as many threads.
    peer
        As for `open_peers`.
    scratch
        Folder for a peer's graph.

    Raises
    ------
    OocGraphError
        The peer cannot run; and all that the function raises.
    """
    analysis, threads = ANALYSES[name], threads or settings().threads
    within = Resources(memory_budget=memory_budget, threads=threads, client=False)
    compute: Callable[..., Any] = getattr(oocgraph, analysis.function)
    options = dict(analysis.options)
    with scratch_folder(scratch) as folder, open_peers(name, peer, store, threads=threads, folder=folder) as peers:
        subjects: dict[str, Callable[[int], Any]] = {one.name: one.run for one in peers}
        ours: dict[str, Callable[[int], Any]] = {"ours": lambda _: compute(store, resources=within, **options)}
        with ExitStack() as opened:
            if memory_budget is None or analysis.opens_within_budget:  # an opened graph takes memory, too
                runtime = opened.enter_context(open_runtime(store, resources=replace(within, device="cpu")))
                ours["resident"] = lambda _: compute(store, runtime=runtime, **options)
            found = in_turn({**ours, **subjects}, [SOURCES] * num_rounds, progress, phase="running")
    result, counts, invalid = found["ours"][-1], [], list[str]()
    seconds = {one: [run.seconds / analysis.per for run in found[one]] for one in ours}
    if analysis.count is not None:
        counts = [one.summary()[analysis.count] for kind in ours for one in found[kind]]
        if len(set(counts)) > 1:
            invalid.append(f"{analysis.count} differs from run to run: {sorted(set(counts))}")
    if analysis.verify is not None and (violation := first_violation(store, result, verify=analysis.verify)):
        invalid.append(violation)
    metrics: dict[str, Any] = {
        "num_rounds": num_rounds,
        "threads": threads,
        **({} if analysis.count is None else {analysis.count: counts[0]}),
        "median_seconds": statistics.median(seconds["ours"]),
        **{f"{kind}_median_seconds": statistics.median(seconds[kind]) for kind in ours if kind != "ours"},
        "median_load_seconds": statistics.median(one.load_seconds for one in found["ours"]),
        "edge_bytes": result.edge_bytes,
        **analysis.read(result),
        "peak_host_bytes": max(one.peak_host_bytes for one in found["ours"]),
        "memory_budget": result.memory_budget,
    }
    for i, one in enumerate(peers, 1):
        theirs = [run.seconds / analysis.per for run in found[one.name]]
        metrics |= peer_metrics(i, one, theirs, seconds["ours"], seconds.get("resident", ()))
        peers_counts = {run.count for run in found[one.name]} - {None}
        if analysis.count is not None and peers_counts:
            if analysis.count_of_others is None:
                metrics[f"peer_{i}_{analysis.count}"] = statistics.median(peers_counts)
            expected = counts[0] if i == 1 or analysis.count_of_others is None else getattr(result, analysis.count_of_others)
            wrong = [count for count in peers_counts if not _agrees(expected, count, analysis)]
            invalid += [analysis.difference.format(peer=one.name, name=analysis.count, theirs=count, ours=expected) for count in wrong]
    return Report(title=repr(result), metrics=metrics, invalid=tuple(invalid))


def _agrees(ours: float, theirs: float, analysis: Analysis) -> bool:
    """Whether what was counted is the same; of what is better where it is larger, more will do."""
    if analysis.count == "modularity":
        return ours >= theirs * (1 - analysis.tolerance)
    return math.isclose(ours, theirs, rel_tol=analysis.tolerance)
