"""Breadth-first searches from random sources, each validated, beside a peer on the same sources.

In: a store and how to measure. Out: a `BenchReport`. The peer loads first; then each source is searched by both in turn.
Results wait on disk and are validated when all searches are done and the memory of the runtime is free again.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.judge import broken_rule
from oocgraph.bench.peers import Peer, Peers
from oocgraph.bench.sources import draw_sources
from oocgraph.bench.spool import ResultSpool
from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler
from oocgraph.results.bfs import BFSResult
from oocgraph.runtime.local import LocalRuntime
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import input_positions
from oocgraph.store.vertices import VertexIds
from oocgraph.types import PAGE_BYTES, Array, Direction, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One source.

    Attributes
    ----------
    result : dict
        `BFSResult.summary`.
    invalid
        The rule that the result breaks; None when it is valid.
    peer_seconds, peer_degree_ordered_seconds
        The peer's time from the same source; None without a peer.
    """

    result: dict[str, Any]
    invalid: str | None
    peer_seconds: float | None
    peer_degree_ordered_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """All sources, and what holds for the run.

    Attributes
    ----------
    url, seed, threads, direction
        What was measured, and how.
    edge_bytes, memory_budget, planes_resident, load_seconds
        As for a search; the load is made once.
    peak_host_bytes
        Peak of this process from the load to the last search; the peer has its own process.
    peer, peer_peak_bytes
        The peer and the peak of its resident memory.
    searches
        One entry per source.
    """

    url: str
    seed: int
    threads: int
    direction: str
    edge_bytes: int
    memory_budget: int
    planes_resident: int
    load_seconds: float
    peak_host_bytes: int
    peer: str | None
    peer_peak_bytes: int | None
    searches: tuple[Measured, ...]

    @property
    def num_invalid(self) -> int:
        """Results that break a rule."""
        return sum(one.invalid is not None for one in self.searches)

    def values(self, name: str) -> list[Any]:
        """Return one figure of every search."""
        return [one.result[name] for one in self.searches]

    def figures(self) -> dict[str, Any]:
        """Return medians, extremes and ratios, then every search: what ``--json`` prints.

        Notes
        -----
        ``ratio_to_peer`` is the median over the sources of our seconds by the peer's; the ratio of the medians follows from
        the two medians beside it. The harmonic mean weighs searches by their time: edges of all by seconds of all when
        they reach the same component.
        """
        seconds, fractions, teps = self.values("seconds"), self.values("read_fraction"), self.values("teps")
        return {
            "graph": self.url,
            "num_sources": len(self.searches),
            "num_invalid": self.num_invalid,
            "seed": self.seed,
            "threads": self.threads,
            "direction": self.direction,
            "median_seconds": statistics.median(seconds),
            "min_seconds": min(seconds),
            "max_seconds": max(seconds),
            "harmonic_mean_teps": statistics.harmonic_mean(teps),
            "median_read_fraction": statistics.median(fractions),
            "worst_read_fraction": max(fractions),
            "median_bytes_read": statistics.median(self.values("bytes_read")),
            "edge_bytes": self.edge_bytes,
            "peak_host_bytes": self.peak_host_bytes,
            "memory_budget": self.memory_budget,
            "planes_resident": self.planes_resident,
            "load_seconds": self.load_seconds,
            **self._peer_figures(),
            **self._oracle_figures(),
            "searches": [_flat(one) for one in self.searches],
        }

    def _peer_figures(self) -> dict[str, Any]:
        if self.peer is None:
            return {}
        ours = self.values("seconds")
        figures: dict[str, Any] = {"peer": self.peer, "peer_peak_bytes": self.peer_peak_bytes}
        for prefix, suffix in (("peer", ""), ("peer_degree_ordered", "_degree_ordered")):
            theirs = [getattr(one, f"{prefix}_seconds") for one in self.searches]
            if None not in theirs:
                figures[f"{prefix}_median_seconds"] = statistics.median(theirs)
                figures[f"ratio_to_peer{suffix}"] = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        return figures

    def _oracle_figures(self) -> dict[str, Any]:
        """Compare pages read with those of the better direction in each iteration, over all sources."""
        iterations = [one for search in self.searches for one in search.result["iterations"]]
        if not iterations or iterations[0]["push_pages"] is None:
            return {}
        pages = sum(one["bytes_read"] for one in iterations) / PAGE_BYTES
        best = sum(min(one["push_pages"], one["pull_pages"]) for one in iterations)
        return {"num_pages_read": round(pages), "num_pages_oracle": best, "ratio_to_oracle": pages / best if best else None}


def _flat(one: Measured) -> dict[str, Any]:
    """One search as JSON fields."""
    fields = asdict(one)
    return {**fields.pop("result"), **fields, "valid": one.invalid is None}


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
) -> BenchReport:
    """Measure searches from random sources.

    Parameters
    ----------
    store
        The graph.
    num_sources, seed
        How many vertices with edges to draw, and how.
    progress
        Told searches and validations done.
    memory_budget, threads, direction
        As for `bfs`; the peer gets as many threads.
    peer
        As for `Peers`.
    oracle
        Count in each iteration the exact pages that either direction would read.
    scratch
        Folder for results awaiting validation (5 bytes per vertex and source) and for a peer's graph.

    Raises
    ------
    OocGraphError
        The graph has no edges, or the peer cannot run; and all that `bfs` raises.
    """
    threads = threads or settings().threads
    vertices = draw_sources(store, num_sources, seed)
    with tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=scratch) as folder:
        rows = input_positions(store)[vertices] if peer else vertices
        spool = ResultSpool(Path(folder))
        with Peers(peer, store, threads=threads, scratch=Path(folder)) as peers, PeakSampler() as sampler:
            with LocalRuntime.open(store, memory_budget=memory_budget, threads=threads, oracle=oracle, progress=progress) as runtime:
                times = _search_all(runtime, vertices, rows, direction, peers, spool, progress)
                budget, planes, load_seconds = runtime.memory_budget, runtime.planes_resident, runtime.load_seconds
            del runtime
        peak_bytes = sampler.peak_bytes
        searches = _validate_all(store, spool, times, progress, memory_budget)
    return BenchReport(
        url=store.url,
        seed=seed,
        threads=threads,
        direction=direction,
        edge_bytes=store.edge_bytes,
        memory_budget=budget,
        planes_resident=planes,
        load_seconds=load_seconds,
        peak_host_bytes=peak_bytes,
        peer=peer,
        peer_peak_bytes=peers.peer.peak_bytes if peers.peer else None,
        searches=searches,
    )


def _search_all(
    runtime: LocalRuntime, vertices: Array, rows: Array, direction: Direction, peers: Peers, spool: ResultSpool, progress: Progress
) -> list[tuple[float | None, float | None]]:
    """Search from each source, ours and the peer's in turn; returns the peer's seconds."""
    times = []
    ids = VertexIds(runtime.store).ids_of(vertices).tolist()
    for i, (source, vertex, row) in enumerate(zip(ids, vertices.tolist(), rows.tolist(), strict=True)):
        result = bfs(runtime.store, source, runtime=runtime, direction=direction)
        spool.put(result)
        times.append((_peer_seconds(peers.peer, row, result), _peer_seconds(peers.degree_ordered, vertex, result)))
        del result  # or it would be held beside the next one
        progress("searching", i + 1, len(ids))
    return times


def _peer_seconds(peer: Peer | None, row: int, result: BFSResult) -> float | None:
    """Time of the peer from the same source, which must reach as many vertices."""
    if peer is None:
        return None
    found = peer.search(row)
    if found.num_reached != result.num_reached:
        raise OocGraphError(
            f"--peer {peer.name} reaches {found.num_reached:,} vertices from {result.source!r}, oocgraph {result.num_reached:,}: "
            "they do not search the same graph, or one of them is wrong"
        )
    return found.seconds


def _validate_all(
    store: CSRStore, spool: ResultSpool, times: Sequence[tuple[float | None, float | None]], progress: Progress,
    memory_budget: str | int | None,
) -> tuple[Measured, ...]:  # fmt: skip
    searches = []
    for i, (first, second) in enumerate(times):
        invalid = broken_rule(store, spool.take(i), memory_budget=memory_budget)  # of results one is in memory at a time
        searches.append(
            Measured(result=spool.figures(i).summary(), invalid=invalid, peer_seconds=first, peer_degree_ordered_seconds=second)
        )
        progress("validating", i + 1, len(times))
    return tuple(searches)
