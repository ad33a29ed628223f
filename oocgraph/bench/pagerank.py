"""Iterations of PageRank, beside a peer's on the same graph and beside the disk.

In: a store and how to measure. Out: a `RankReport`. Each round runs ours, then every peer, then reads some of the edges from first to
last as one sequential reader does; ratios are made inside a round and the median of the rounds counts. The first iteration of
ours, which brings edges into memory, is left out.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.algorithms.pagerank import pagerank
from oocgraph.bench.rank_peers import RankPeers
from oocgraph.config import settings
from oocgraph.results.pagerank import PageRankResult
from oocgraph.runtime.ranking import Precision
from oocgraph.store.arrays import PlainArray
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

SEQUENTIAL_BYTES = 8 << 20
"""One read of the sequential reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRound:
    """One round.

    Attributes
    ----------
    iteration_seconds : float
        Median of ours, without the first.
    bytes_per_second : float
        Read from the disk during these iterations; 0 if all edges were in memory.
    peer_seconds : tuple of float
        Of one iteration of each peer.
    sequential_bytes_per_second : float or None
        Of the sequential reader; None where nothing was read or the store is not of plain files.
    """

    iteration_seconds: float
    bytes_per_second: float
    peer_seconds: tuple[float, ...]
    sequential_bytes_per_second: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """All rounds, and what holds for the run.

    Attributes
    ----------
    result : PageRankResult
        Of the last round.
    threads, num_iterations : int
        Compute threads; iterations measured in a round.
    peers : tuple of (str, int)
        Name and peak of resident memory of each peer.
    rounds : tuple of RankRound
    """

    result: PageRankResult
    threads: int
    num_iterations: int
    peers: tuple[tuple[str, int], ...]
    rounds: tuple[RankRound, ...]

    def figures(self) -> dict[str, Any]:
        """Return medians and ratios: what ``--json`` prints."""
        seconds = [one.iteration_seconds for one in self.rounds]
        names = ["edge_bytes", "kept_bytes", "peak_host_bytes", "memory_budget", "bytes_read"]
        figures = {
            "num_iterations": self.num_iterations,
            "num_rounds": len(self.rounds),
            "threads": self.threads,
            "median_iteration_seconds": statistics.median(seconds),
            "min_iteration_seconds": min(seconds),
            **{name: getattr(self.result, name) for name in names},
        }
        shares = [one.bytes_per_second / one.sequential_bytes_per_second for one in self.rounds if one.sequential_bytes_per_second]
        if shares:
            figures["median_bytes_per_second"] = statistics.median(one.bytes_per_second for one in self.rounds)
            figures["fraction_of_sequential"] = statistics.median(shares)
        for i, (name, peak_bytes) in enumerate(self.peers):
            theirs = [one.peer_seconds[i] for one in self.rounds]
            figures |= {
                f"peer_{i + 1}": name,
                f"peer_{i + 1}_peak_bytes": peak_bytes,
                f"peer_{i + 1}_median_iteration_seconds": statistics.median(theirs),
                f"ratio_to_peer_{i + 1}": statistics.median(a / b for a, b in zip(seconds, theirs, strict=True)),
            }
        return figures


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
) -> RankReport:
    """Measure PageRank without weights.

    Parameters
    ----------
    store
        The graph.
    num_iterations, num_rounds
        Iterations in each round, and rounds.
    progress
        Told rounds done.
    memory_budget, threads, precision
        As for `pagerank`; GAPBS gets as many threads.
    peer
        As for `RankPeers`.
    scratch
        Folder for a peer's graph.

    Raises
    ------
    OocGraphError
        The peer cannot run; and all that `pagerank` raises.
    """
    threads, rounds = threads or settings().threads, list[RankRound]()
    options: dict[str, Any] = {"tol": 0, "max_iter": num_iterations + 1, "weights": False, "precision": precision}
    with tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=scratch) as folder:
        with RankPeers(peer, store, threads=threads, scratch=Path(folder)) as peers:
            for i in range(num_rounds):
                result = pagerank(store, threads=threads, memory_budget=memory_budget, **options)
                theirs = tuple(one.iteration_seconds(num_iterations) for one in peers.peers)
                rounds.append(_round(store, result, theirs))
                progress("rounds", i + 1, num_rounds)
        told = tuple((one.name, one.peak_bytes) for one in peers.peers)
    return RankReport(result=result, threads=threads, num_iterations=num_iterations, peers=told, rounds=tuple(rounds))


def _round(store: CSRStore, result: PageRankResult, theirs: tuple[float, ...]) -> RankRound:
    steps = result.steps[1:]
    seconds, num_bytes = sum(one.seconds for one in steps), sum(one.bytes_read for one in steps)
    return RankRound(
        iteration_seconds=statistics.median(one.seconds for one in steps),
        bytes_per_second=num_bytes / seconds,
        peer_seconds=theirs,
        sequential_bytes_per_second=_sequential_bytes_per_second(store) if num_bytes else None,
    )


def _sequential_bytes_per_second(store: CSRStore) -> float | None:
    """Read the neighbours' chunks from first to last, uncached, as one thread does that does nothing else."""
    array = store.array(f"{store.pull_group}/indices")
    if not isinstance(array, PlainArray):
        return None
    buffer, num_bytes, seconds = np.empty(SEQUENTIAL_BYTES, np.uint8), 0, 0.0
    for chunk in range(array.num_chunks):
        fd = array.open_chunk(chunk)
        try:
            with suppress(OSError):  # a file system that keeps no cache has none to drop
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            start = perf_counter()
            while done := os.readv(fd, [buffer.data]):
                num_bytes += done
            seconds += perf_counter() - start
        finally:
            os.close(fd)
    return num_bytes / seconds if num_bytes else None
