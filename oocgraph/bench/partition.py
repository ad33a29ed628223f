"""Partitioning: edges a second by each policy, from a cold graph on disk to partitions on disk, beside METIS on the same graph.

In: a graph, policies, a cluster. Out: a `Report` with a row for each policy. Policies and peer take turns; the first run of a policy,
which compiles it, is reported apart. Every result is proved before it counts.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from oocgraph.algorithms.partition_graph import partition_options, partition_with_report
from oocgraph.bench.disk import drop_page_cache
from oocgraph.bench.harness import Report, in_turn, scratch_folder
from oocgraph.bench.peers import Peer, open_peers
from oocgraph.bench.worker_sampler import WorkerSamplers
from oocgraph.memory import PeakSampler, device_bytes_read
from oocgraph.partition.check import check_partitions
from oocgraph.partition.policy import Policy
from oocgraph.partition.report import PartitionReport, report_of
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress


def bench_partition(
    store: CSRStore, *, policies: Sequence[str | Policy], num_partitions: int, repeats: int,
    open_client: Callable[[], AbstractContextManager[Any]] | None, peer: str | None, memory_budget: str | int | None, scratch: str | None,
    progress: Progress,
) -> Report:  # fmt: skip
    """Partition a graph by each policy, `repeats` times, in turn with the peer.

    Raises
    ------
    OocGraphError
        The peer is unknown or not installed, or a result is wrong.

    Notes
    -----
    Of each policy: ``seconds`` are without the time that it took to force the partitions to disk (``sync_seconds``), ``bytes_read`` are
    from block devices by all processes, ``peak_host_bytes`` that of the largest process. ``num_workers`` is 0 for threads of this process.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(scratch))
        peers = stack.enter_context(open_peers("partition", peer, store, threads=1, folder=folder))
        client = None if open_client is None else stack.enter_context(open_client())
        num_workers = 0 if client is None else len(client.nthreads())
        subjects: dict[str, Callable[[int], Any]] = {
            str(k): partial(_run, store, policy, num_partitions, folder / "parts.zarr", client, memory_budget)
            for k, policy in enumerate(policies)
        }
        subjects |= {one.name: partial(_peer_seconds, one, num_partitions) for one in peers}
        found = in_turn(subjects, range(repeats), progress, phase="partitioning")
    peer_seconds = statistics.median(found[peer]) if peer is not None else None
    num_edges = store.attributes.num_stored_edges
    return Report(
        title=repr(store),
        metrics={
            "num_stored_edges": num_edges,
            "num_partitions": num_partitions,
            "num_workers": num_workers,
            **({"peer": peer, "peer_median_seconds": peer_seconds} if peer is not None else {}),
            "policies": [_row(policy, found[str(k)], num_edges, peer_seconds) for k, policy in enumerate(policies)],
        },
    )


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    sync_seconds: float
    bytes_read: int
    peak_host_bytes: int
    quality: PartitionReport


def _run(
    store: CSRStore, policy: str | Policy, num_partitions: int, out: Path, client: Any, memory_budget: str | int | None, _number: int
) -> _Run:
    """Partition once, from a cold graph; prove the result and remove it."""
    drop_page_cache(Path(store.url).rglob("*"))
    before = _bytes_read(client)
    options = partition_options(store, num_partitions, policy, memory_budget=memory_budget)
    with ExitStack() as stack:
        workers = None if client is None else stack.enter_context(WorkerSamplers(client))
        sampler = stack.enter_context(PeakSampler())
        began = perf_counter()
        made, phases = partition_with_report(store, out, options, client)
        seconds = perf_counter() - began - phases["sync"]
    peak = sampler.peak_bytes if workers is None else max(one.peak_host_bytes for one in workers.workers.values())
    num_bytes = _bytes_read(client) - before
    check_partitions(made, store)
    quality = report_of(made)
    shutil.rmtree(out)
    return _Run(seconds, phases["sync"], num_bytes, peak, quality)


def _peer_seconds(peer: Peer, num_partitions: int, _number: int) -> float:
    return peer.run(num_partitions).seconds


def _bytes_read(client: Any) -> int:
    return device_bytes_read() if client is None else sum(client.run(device_bytes_read).values())


def _row(policy: str | Policy, runs: Sequence[_Run], num_edges: int, peer_seconds: float | None) -> dict[str, Any]:
    """Return one policy as a line of a table: medians of its runs, the first run apart."""
    first, median, quality = runs[0].seconds, statistics.median(one.seconds for one in runs), runs[-1].quality
    row = {
        "policy": policy if isinstance(policy, str) else policy.name,
        "first_seconds": first,
        "median_seconds": median,
        "sync_seconds": statistics.median(one.sync_seconds for one in runs),
        "edges_per_second": num_edges / median,
        "first_edges_per_second": num_edges / first,
        "bytes_read": int(statistics.median(one.bytes_read for one in runs)),
        "peak_host_bytes": max(one.peak_host_bytes for one in runs),
        "replication": quality.replication_factor,
        "edge_balance": quality.edge_balance,
        "master_balance": quality.master_balance,
        "proxy_balance": quality.proxy_balance,
    }
    if peer_seconds is not None:
        row |= {"times_faster_than_peer": peer_seconds / median, "first_times_faster": peer_seconds / first}
    return row
