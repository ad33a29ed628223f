"""Metrics of searches on a cluster, beside the same searches in one process: medians, extremes, shares.

In: what each search returned, and what each partition holds. Out: dictionaries for `Report.metrics`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oocgraph.bench.harness import extremes, medians
from oocgraph.bench.worker_sampler import WorkerSample
from oocgraph.cluster.logged_search import Outcome
from oocgraph.partition.balance import imbalance
from oocgraph.results.bfs import BFSResult
from oocgraph.results.search import Iteration


@dataclass(frozen=True, slots=True)
class ClusterSearch:
    """One search on the cluster.

    Attributes
    ----------
    result, outcome
        The result, whose arrays are on disk; hops, epochs and metrics of the workers.
    call_seconds
        Time of the whole call of `oocgraph.bfs`: also making the result store and writing levels and parents.
    """

    result: BFSResult
    outcome: Outcome
    call_seconds: float


def compared(
    search: ClusterSearch, theirs: dict[str, Any], rules: tuple[str | None, str | None], *, owned: Sequence[int], itemsize: int
) -> dict[str, Any]:
    """Return the metrics of one source.

    Parameters
    ----------
    search, theirs
        The search on the cluster, and `BFSResult.summary` of the one in process.
    rules
        The rule that either result breaks; None when it is valid.
    owned, itemsize
        Number of vertices of each partition; bytes of an id.

    Notes
    -----
    ``num_iterations`` are levels that were looked for, the last of which may be empty; ``num_steps`` exchanges between partitions,
    ``num_hops`` tasks of each, one after the other, which are hops of the scheduler. ``put_bytes`` went through shared memory.
    ``overhead_ms_per_iteration`` is the difference of both sides' seconds by the number of iterations. Of ``call_seconds``,
    ``result_seconds`` is writing levels and parents. ``busy_seconds``, by worker, are those in its steps. ``sent_bytes`` are
    those of frontier parts, ``bound_bytes`` the sum of ``(P - 1) x min(ids, bitmap)`` of each; ``worst_sent_to_bound`` is their largest
    ratio in an iteration, 0 when nothing was sent.
    """
    result, outcome = search.result.summary(), search.outcome
    num_iterations, busy = max(1, len(result["iterations"])), outcome.busy_seconds
    sent = [sent_and_bound(one, owned, itemsize) for one in search.result.iterations]
    ours, other = result["seconds"], theirs["seconds"]
    return {
        "source": result["source"],
        "num_reached": result["num_reached"],
        "depth": result["depth"],
        "num_iterations": num_iterations,
        "num_hops": outcome.num_hops,
        "num_steps": outcome.num_steps,
        "exchange": outcome.exchange,
        "put_bytes": outcome.exchanged["put_bytes"],
        "wait_seconds": outcome.exchanged["wait_seconds"],
        "seconds": ours,
        "in_process_seconds": other,
        "ratio": ours / other,
        "overhead_ms_per_iteration": 1e3 * (ours - other) / num_iterations,
        "ms_per_iteration": 1e3 * ours / num_iterations,
        "busy_imbalance": imbalance(list(busy.values())),
        "bytes_read": result["bytes_read"],
        "sent_bytes": sum(num_bytes for num_bytes, _ in sent),
        "valid": rules == (None, None),
        "result": result,
        "in_process": theirs,
        "invalid": rules[0],
        "in_process_invalid": rules[1],
        "call_seconds": search.call_seconds,
        "result_seconds": outcome.result_seconds,
        "num_epochs": outcome.num_epochs,
        "busy_seconds": busy,
        "bound_bytes": sum(bound for _, bound in sent),
        "worst_sent_to_bound": max((num_bytes / bound for num_bytes, bound in sent if bound), default=0.0),
    }


def sent_and_bound(iteration: Iteration, owned: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Bytes of the frontier parts that an iteration sent, and the bytes that these may have by ``(P - 1) x min(ids, bitmap)``.

    Examples
    --------
    >>> from oocgraph.results.search import PartMetrics
    >>> few, many = PartMetrics(0, "a", "push", 0.1, 0, 8, 2), PartMetrics(1, "b", "push", 0.1, 0, 16, 90)
    >>> sent_and_bound(Iteration(1, "push", "", 1, 0, 0.1, 0, parts=(few, many)), owned=[100, 100], itemsize=4)
    (24, 24)
    """
    peers = len(owned) - 1
    sent = [part for part in iteration.parts if part.sent_bytes]
    bound = sum(peers * min(part.num_found * itemsize, 8 * -(-owned[part.partition] // 64)) for part in sent)
    return sum(part.sent_bytes for part in sent), bound


def invalid_results(searches: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the rules that results break, each with its source and side."""
    sides = {"invalid": "on the cluster", "in_process_invalid": "in process"}
    return tuple(
        f"source {one['result']['source']}, {where}: {one[name]}" for one in searches for name, where in sides.items() if one[name]
    )


def worker_metrics(
    parts: Sequence[dict[str, Any]], searches: Sequence[ClusterSearch], samples: dict[str, WorkerSample]
) -> list[dict[str, Any]]:
    """Return the metrics of each worker over the whole run.

    What it held is as at the start; ``busy_seconds`` are in all steps of all searches. Peak and transferred bytes are None when it was
    restarted.
    """
    busy: dict[str, float] = {part["worker"]: 0.0 for part in parts}
    for search in searches:
        for worker, seconds in search.outcome.busy_seconds.items():
            busy[worker] = busy.get(worker, 0.0) + seconds
    rows = []
    for address, busy_seconds in busy.items():
        held, sample = [part for part in parts if part["worker"] == address], samples.get(address)
        sums = {name: sum(part[name] for part in held) for name in ("num_owned", "num_edges", "resident_bytes")}
        rows.append(
            {
                "worker": address,
                "partitions": [part["partition"] for part in held],
                "num_owned": sums["num_owned"],
                "num_edges": sums["num_edges"],
                "memory_budget": max((part["memory_budget"] for part in held), default=0),
                "resident_bytes": sums["resident_bytes"],
                "peak_host_bytes": None if sample is None else sample.peak_host_bytes,
                "busy_seconds": busy_seconds,
                "transferred_bytes": None if sample is None else sample.transferred_bytes,
            }
        )
    return rows


def run_metrics(searches: Sequence[dict[str, Any]], workers: Sequence[dict[str, Any]], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians, extremes and ratios over all searches.

    Ratios and overheads are per source, of two searches made in turn. ``seconds`` end when levels and parents are in the workers' memory,
    those of the process when they are in its own.
    """
    iterations, sent = _sum(searches, "num_iterations"), _sum(searches, "sent_bytes")
    transferred, peaks = ([one[name] for one in workers] for name in ("transferred_bytes", "peak_host_bytes"))
    busy = [one["busy_seconds"] for one in workers]
    return {
        "num_workers": len(workers),
        "num_partitions": len(parts),
        **extremes(searches, "seconds", "in_process_seconds", "ratio", "overhead_ms_per_iteration", "ms_per_iteration"),
        **medians(searches, "call_seconds", "result_seconds", "num_iterations", "num_steps", "num_hops", "wait_seconds"),
        "hops_per_iteration": _sum(searches, "num_hops") / iterations,
        "num_epochs": _sum(searches, "num_epochs"),
        "sent_bytes_per_iteration": sent / iterations,
        "exchange": searches[0]["exchange"],
        "put_bytes_per_iteration": _sum(searches, "put_bytes") / iterations,
        "transferred_bytes_per_iteration": None if None in transferred else sum(transferred) / iterations,
        "sent_to_bound": sent / max(1, _sum(searches, "bound_bytes")),
        "worst_sent_to_bound": max(one["worst_sent_to_bound"] for one in searches),
        "busy_imbalance": imbalance(busy),
        "busy_fraction": sum(busy) / _sum(searches, "seconds") / len(workers),
        "edges_imbalance": imbalance([part["num_edges"] for part in parts]),
        "vertices_imbalance": imbalance([part["num_owned"] for part in parts]),
        **medians(searches, "bytes_read"),
        "in_process_median_bytes_read": statistics.median(one["in_process"]["bytes_read"] for one in searches),
        "max_worker_peak_host_bytes": None if None in peaks else max(peaks),
    }


def _sum(rows: Sequence[dict[str, Any]], name: str) -> Any:
    return sum(row[name] for row in rows)
