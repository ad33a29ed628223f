"""Measures partitioning: edges a second by each policy, from a cold graph on disk to partitions on disk, beside METIS on the same graph.

In: a graph, policies, a cluster. Out: `PolicyReport` for each policy. All runs are taken in turn, so that what disturbs the machine
disturbs all; the first run of a policy, which compiles it, is told apart. Every result is proved before it counts.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from oocgraph.algorithms.partition_graph import partition_options, partition_with_report
from oocgraph.bench.child import Child
from oocgraph.bench.probe import Probes
from oocgraph.bench.spool import leave_page_cache
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler, device_bytes_read
from oocgraph.partition.check import check_partitions
from oocgraph.partition.policy import Policy
from oocgraph.partition.report import PartitionReport, report_of
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

PEERS = ("pymetis",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """What one policy did.

    Attributes
    ----------
    policy : str
    first_seconds : float
        Of the first run, with compilation.
    seconds : tuple of float
        Of all runs; without the time that it took to force the partitions to disk.
    sync_seconds : float
        That time, median.
    bytes_read : int
        From block devices by all processes, median.
    peak_host_bytes : int
        Of the largest process.
    quality : PartitionReport
    """

    policy: str
    first_seconds: float
    seconds: tuple[float, ...]
    sync_seconds: float
    bytes_read: int
    peak_host_bytes: int
    quality: PartitionReport

    def row(self, num_edges: int, peer_seconds: float | None) -> dict[str, Any]:
        """Return the figures as one line of a table."""
        median = statistics.median(self.seconds)
        row = {
            "policy": self.policy,
            "first_seconds": self.first_seconds,
            "median_seconds": median,
            "sync_seconds": self.sync_seconds,
            "edges_per_second": num_edges / median,
            "first_edges_per_second": num_edges / self.first_seconds,
            "bytes_read": self.bytes_read,
            "peak_host_bytes": self.peak_host_bytes,
            "replication": self.quality.replication_factor,
            "edge_balance": self.quality.edge_balance,
            "master_balance": self.quality.master_balance,
            "proxy_balance": self.quality.proxy_balance,
        }
        if peer_seconds is not None:
            row |= {"times_faster_than_peer": peer_seconds / median, "first_times_faster": peer_seconds / self.first_seconds}
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBench:
    """All of it.

    Attributes
    ----------
    num_stored_edges, num_partitions, num_workers : int
        Workers: 0 for the threads of this process.
    policies : tuple of PolicyReport
    peer : str or None
    peer_seconds : tuple of float
    """

    num_stored_edges: int
    num_partitions: int
    num_workers: int
    policies: tuple[PolicyReport, ...]
    peer: str | None
    peer_seconds: tuple[float, ...]

    def figures(self) -> dict[str, Any]:
        """Return all figures, for JSON and for tables."""
        peer = statistics.median(self.peer_seconds) if self.peer_seconds else None
        fields: dict[str, Any] = {
            "num_stored_edges": self.num_stored_edges,
            "num_partitions": self.num_partitions,
            "num_workers": self.num_workers,
        }
        if peer is not None:
            fields |= {"peer": self.peer, "peer_median_seconds": peer}
        return {**fields, "policies": [one.row(self.num_stored_edges, peer) for one in self.policies]}


def bench_partition(
    store: CSRStore, *, policies: Sequence[str | Policy], num_partitions: int, repeats: int,
    open_client: Callable[[], AbstractContextManager[Any]] | None, peer: str | None, memory_budget: str | int | None, scratch: str | None,
    progress: Progress,
) -> PartitionBench:  # fmt: skip
    """Partition a graph by each policy, `repeats` times, in turn with the peer.

    Raises
    ------
    OocGraphError
        The peer is not known or not there, or a result is wrong.
    """
    if peer is not None and peer not in PEERS:
        raise OocGraphError(f"--peer {peer}: not a peer of this benchmark; choose {', '.join(PEERS)}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=scratch)))
        child = None
        if peer is not None:
            child = stack.enter_context(Child("oocgraph.bench.peer_partition", store.url, str(num_partitions), who=f"--peer {peer}"))
            child.answer()
        client = None if open_client is None else stack.enter_context(open_client())
        num_workers = 0 if client is None else len(client.nthreads())
        runs: list[list[_Run]] = [[] for _ in policies]
        peers: list[float] = []
        for i in range(repeats):
            for k, policy in enumerate(policies):
                progress("partitioning", i * len(policies) + k, repeats * len(policies))
                runs[k].append(_run(store, policy, num_partitions, folder / "parts.zarr", client, memory_budget))
            if child is not None:
                peers.append(float(child.ask("run")["seconds"]))
        progress("partitioning", repeats * len(policies), repeats * len(policies))
    return PartitionBench(
        num_stored_edges=store.attributes.num_stored_edges,
        num_partitions=num_partitions,
        num_workers=num_workers,
        policies=tuple(_report(policy, found) for policy, found in zip(policies, runs, strict=True)),
        peer=peer,
        peer_seconds=tuple(peers),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    sync_seconds: float
    bytes_read: int
    peak_host_bytes: int
    quality: PartitionReport


def _run(store: CSRStore, policy: str | Policy, num_partitions: int, out: Path, client: Any, memory_budget: str | int | None) -> _Run:
    """Partition once, from a cold graph; prove the result and remove it."""
    leave_page_cache(Path(store.url))
    before = _bytes_read(client)
    options = partition_options(store, num_partitions, policy, memory_budget=memory_budget)
    with ExitStack() as stack:
        probes = None if client is None else stack.enter_context(Probes(client))
        sampler = stack.enter_context(PeakSampler())
        began = perf_counter()
        made, phases = partition_with_report(store, out, options, client)
        seconds = perf_counter() - began - phases["sync"]
    peak = sampler.peak_bytes if probes is None else max(one.peak_host_bytes for one in probes.workers.values())
    num_bytes = _bytes_read(client) - before
    check_partitions(made, store)
    quality = report_of(made)
    shutil.rmtree(out)
    return _Run(seconds, phases["sync"], num_bytes, peak, quality)


def _bytes_read(client: Any) -> int:
    return device_bytes_read() if client is None else sum(client.run(device_bytes_read).values())


def _report(policy: str | Policy, runs: Sequence[_Run]) -> PolicyReport:
    return PolicyReport(
        policy=policy if isinstance(policy, str) else policy.name,
        first_seconds=runs[0].seconds,
        seconds=tuple(one.seconds for one in runs),
        sync_seconds=statistics.median(one.sync_seconds for one in runs),
        bytes_read=int(statistics.median(one.bytes_read for one in runs)),
        peak_host_bytes=max(one.peak_host_bytes for one in runs),
        quality=runs[-1].quality,
    )
