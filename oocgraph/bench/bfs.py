"""Breadth-first searches from random sources, each validated, beside a peer on the same sources.

In: a store and how to measure. Out: a `Report`. The peer loads first; then each source is searched by both in turn.
Results wait on disk and are validated when all searches are done and the memory of the runtime is free again.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.harness import Report, extremes, in_turn, medians, paired_ratios, scratch_folder
from oocgraph.bench.page_counter import CountingRuntime, PageCounts
from oocgraph.bench.peers import Peer, open_peers
from oocgraph.bench.results_on_disk import ResultsOnDisk
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.config import settings
from oocgraph.engine.in_process import open_in_process
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import input_positions
from oocgraph.types import PAGE_BYTES, Array, Direction, Progress

PEER_GRAPHS = ("peer", "peer_degree_ordered")
"""Prefixes of the metrics of the peers: on the graph in input order, and in degree order (GAPBS alone)."""


def bench_bfs(
    store: CSRStore,
    *,
    num_sources: int,
    seed: int,
    progress: Progress,
    memory_budget: str | int | None = None,
    threads: int | None = None,
    direction: Direction = "auto",
    peer: str | None = None,
    oracle: bool = False,
    scratch: str | None = None,
) -> Report:
    """Measure searches from random sources.

    Parameters
    ----------
    store
        The graph.
    num_sources, seed
        Number of vertices with edges to draw, and the seed of the draw.
    progress
        Called with searches and validations done.
    memory_budget, threads, direction
        As for `bfs`; the peer gets as many threads.
    peer
        As for `open_peers`.
    oracle
        Count in each iteration the exact pages that either direction would read.
    scratch
        Folder for results awaiting validation (5 bytes per vertex and source) and for a peer's graph.

    Raises
    ------
    OocGraphError
        The graph has no edges, or the peer cannot run; and all that `bfs` raises.

    Notes
    -----
    ``peak_host_bytes`` is the peak of this process from the load to the last search; the peer has its own process, whose peak of resident
    memory is ``peer_peak_bytes``. ``ratio_to_peer`` is the median over the sources of our seconds by the peer's; the ratio of the medians
    follows from the two medians beside it. The harmonic mean weighs searches by their time: edges of all by seconds of all when
    they reach the same component.
    """
    threads = threads or settings().threads
    vertices = draw_sources(store, num_sources, seed)
    rows = [input_positions(store)[vertices], vertices] if peer else []
    limits = {"memory_budget": memory_budget, "threads": threads}
    pages: list[Sequence[PageCounts]] = []
    with scratch_folder(scratch) as folder:
        results = ResultsOnDisk(folder)
        with open_peers("bfs", peer, store, threads=threads, folder=folder) as peers, PeakSampler() as sampler:
            named = zip(PEER_GRAPHS, peers, rows, strict=False)
            timed = {name: partial(_peer_seconds, one, sources, results) for name, one, sources in named}
            kind = CountingRuntime if oracle else LocalRuntime
            held, seconds = _search_all(kind, store, source_ids(store, vertices), direction, limits, timed, results, pages, progress)
        rules = results.validate(store, progress, memory_budget=memory_budget)
    columns = {f"{name}_seconds": seconds.get(name, [None] * len(rules)) for name in PEER_GRAPHS}
    searches = [
        {**result.summary(), "invalid": rule, **dict(zip(columns, theirs, strict=True)), "valid": rule is None}
        for result, rule, *theirs in zip(results, rules, *columns.values(), strict=True)
    ]
    for one, counts in zip(searches, pages, strict=False):  # one entry for each search, or none
        one["iterations"] = [{**each, **both._asdict()} for each, both in zip(one["iterations"], counts, strict=True)]
    return Report(
        title=repr(store),
        metrics={
            "graph": store.url,
            "num_sources": len(searches),
            "num_invalid": len(rules) - rules.count(None),
            "seed": seed,
            "threads": threads,
            "direction": direction,
            **_medians(searches),
            "edge_bytes": store.edge_bytes,
            "peak_host_bytes": sampler.peak_bytes,
            **held,
            **_peer_metrics(peer, peers, searches),
            **_oracle_figures(searches, pages),
            "searches": searches,
        },
        invalid=tuple(f"source {one['source']}: {one['invalid']}" for one in searches if not one["valid"]),
    )


def _search_all(
    kind: type[LocalRuntime], store: CSRStore, sources: Sequence[Any], direction: Direction, limits: dict[str, Any],
    peers: dict[str, Any], results: ResultsOnDisk, pages: list[Sequence[PageCounts]], progress: Progress,
) -> tuple[dict[str, Any], dict[str, list[float]]]:  # fmt: skip
    """Search from each source, ours and the peers' in turn; return what the runtime held, and the seconds of the peers.

    The runtime and its memory are gone when this function returns.
    """
    is_usual = kind is LocalRuntime
    opened: Any = open_in_process(store, Resources(**limits, device="cpu"), progress=progress) if is_usual else kind.open(store, **limits)
    with opened as runtime:

        def search(number: int) -> None:
            result = bfs(store, sources[number], runtime=runtime, direction=direction)
            if isinstance(runtime, CountingRuntime):
                result = replace(result, search=runtime.without_counting(result.search))
                pages.append(runtime.pages)
            results.put(result)

        seconds = in_turn({"ours": search, **peers}, range(len(sources)), progress, phase="searching")
        held = {name: getattr(runtime, name) for name in ("memory_budget", "planes_resident", "load_seconds")}
    return held, seconds


def _peer_seconds(peer: Peer, rows: Array, results: ResultsOnDisk, number: int) -> float:
    """Time of the peer from the same source, which must reach as many vertices."""
    ours, found = results[number], peer.run(int(rows[number]))
    if found.count != ours.num_reached:
        raise OocGraphError(
            f"--peer {peer.name} reaches {found.count:,} vertices from {ours.source!r}, oocgraph {ours.num_reached:,}: "
            "they do not search the same graph, or one of them is wrong"
        )
    return found.seconds


def _medians(searches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians and extremes of the searches."""
    seconds = [one["seconds"] for one in searches]
    return {
        **medians(searches, "seconds"),
        "min_seconds": min(seconds),
        "max_seconds": max(seconds),
        "harmonic_mean_teps": statistics.harmonic_mean(one["teps"] for one in searches),
        **extremes(searches, "read_fraction"),
        **medians(searches, "bytes_read"),
    }


def _peer_metrics(spec: str | None, peers: Sequence[Peer], searches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the peers' medians, and the ratios of our seconds to theirs."""
    if not peers:
        return {}
    ours = [one["seconds"] for one in searches]
    metrics: dict[str, Any] = {"peer": spec, "peer_peak_bytes": peers[0].peak_bytes}
    for name in PEER_GRAPHS[: len(peers)]:
        theirs = [one[f"{name}_seconds"] for one in searches]
        metrics[f"{name}_median_seconds"] = statistics.median(theirs)
        metrics |= paired_ratios(f"ratio_to_{name}", ours, theirs)
    return metrics


def _oracle_figures(searches: Sequence[dict[str, Any]], pages: Sequence[Sequence[PageCounts]]) -> dict[str, Any]:
    """Compare pages read with those of the better direction in each iteration, over all sources."""
    if not any(pages):
        return {}
    num_read = sum(one["bytes_read"] for search in searches for one in search["iterations"]) / PAGE_BYTES
    best = sum(min(one) for counts in pages for one in counts)
    return {"num_pages_read": round(num_read), "num_pages_oracle": best, "ratio_to_oracle": num_read / best if best else None}
