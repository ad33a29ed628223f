"""What a measurement of searches on a cluster found, beside the same searches in one process: medians, extremes, shares.

In: one `Comparison` for each source, and what holds for the run. Out: `ClusterReport.figures`, which a command prints.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from oocgraph.results.search import imbalance


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One source.

    Attributes
    ----------
    result : dict
        `DaskBFSResult.summary` of the search on the cluster.
    in_process : dict
        `BFSResult.summary` of the same search in one process.
    invalid, in_process_invalid
        The rule that either result breaks; None when it is valid.
    call_seconds
        The whole call of `oocgraph.bfs` on the cluster: also making the result store and writing levels and parents.
    result_seconds
        Of these, writing levels and parents.
    num_hops, num_epochs
        Steps taken, each one hop of the scheduler; times that partitions were placed.
    busy_seconds : dict
        By worker: in its steps.
    sent_bytes, bound_bytes
        Frontier parts sent, and ``(P - 1) x min(ids, bitmap)`` of each of them.
    worst_sent_to_bound
        Their largest ratio in an iteration; 0 when nothing was sent.
    """

    result: dict[str, Any]
    in_process: dict[str, Any]
    invalid: str | None
    in_process_invalid: str | None
    call_seconds: float
    result_seconds: float
    num_hops: int
    num_epochs: int
    busy_seconds: dict[str, float]
    sent_bytes: int
    bound_bytes: int
    worst_sent_to_bound: float

    @property
    def num_iterations(self) -> int:
        """Levels that were looked for, the last of which may be empty."""
        return max(1, len(self.result["iterations"]))

    def row(self) -> dict[str, Any]:
        """Return the figures of one line of a table."""
        ours, theirs = self.result["seconds"], self.in_process["seconds"]
        return {
            "source": self.result["source"],
            "num_reached": self.result["num_reached"],
            "depth": self.result["depth"],
            "num_iterations": self.num_iterations,
            "num_hops": self.num_hops,
            "seconds": ours,
            "in_process_seconds": theirs,
            "ratio": ours / theirs,
            "overhead_ms_per_iteration": 1e3 * (ours - theirs) / self.num_iterations,
            "ms_per_iteration": 1e3 * ours / self.num_iterations,
            "busy_imbalance": imbalance(list(self.busy_seconds.values())),
            "bytes_read": self.result["bytes_read"],
            "sent_bytes": self.sent_bytes,
            "valid": self.invalid is None and self.in_process_invalid is None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """One worker over the whole run.

    Attributes
    ----------
    worker
        Its address.
    partitions, num_owned, num_edges
        What it held at the start, in numbers of vertices and stored edges.
    memory_budget, resident_bytes
        Bytes it might hold, and that its partitions' planes, rows and bitmaps take.
    peak_host_bytes
        Peak of its process from the load to the last search; None when it was restarted.
    busy_seconds
        In all steps of all searches.
    transferred_bytes
        Results that Dask sent from it; None when it was restarted.
    """

    worker: str
    partitions: tuple[int, ...]
    num_owned: int
    num_edges: int
    memory_budget: int
    resident_bytes: int
    peak_host_bytes: int | None
    busy_seconds: float
    transferred_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """All sources, and what holds for the run.

    Attributes
    ----------
    url, seed, direction, apart
        What was measured, and how; `seed` is None when the source was given.
    threads
        Of all workers, and of the process beside them.
    num_partitions
        Parts that the vertices were dealt to.
    edge_bytes
        Uncompressed bytes of the graph's neighbours.
    load_seconds, planes_resident, memory_budget
        Of the cluster: planes on every worker, the budgets of all workers.
    in_process_load
        The same of the process, by name, and its `peak_host_bytes`.
    parts
        Of each partition: numbers of vertices (``num_owned``) and of stored edges (``num_edges``).
    workers
        One entry per worker.
    client_load_growth_bytes, client_growth_bytes
        How much more this process (the client, and the scheduler of a cluster started here) held at most while workers loaded, and
        while they searched, than before.
    searches
        One entry per source.
    """

    url: str
    seed: int | None
    direction: str
    apart: bool
    threads: int
    num_partitions: int
    edge_bytes: int
    load_seconds: float
    planes_resident: int
    memory_budget: int
    in_process_load: dict[str, Any]
    parts: Sequence[dict[str, Any]]
    workers: tuple[WorkerReport, ...]
    client_load_growth_bytes: int
    client_growth_bytes: int
    searches: tuple[Comparison, ...]

    @property
    def invalid(self) -> list[str]:
        """What is wrong with results, each with its source."""
        told = []
        for one in self.searches:
            told += [f"source {one.result['source']}, on the cluster: {one.invalid}"] if one.invalid else []
            told += [f"source {one.result['source']}, in process: {one.in_process_invalid}"] if one.in_process_invalid else []
        return told

    def figures(self) -> dict[str, Any]:
        """Return medians, extremes and ratios, then every worker and search: what ``--json`` prints.

        Notes
        -----
        Ratios and overheads are per source, of two searches made in turn; ``overhead_ms_per_iteration`` is their difference by the number
        of iterations. ``seconds`` end when levels and parents are in the workers' memory, those of the process when they are in its own.
        """
        rows = [one.row() for one in self.searches]
        hops = sum(one.num_hops for one in self.searches)
        iterations = sum(one.num_iterations for one in self.searches)
        sent = sum(one.sent_bytes for one in self.searches)
        transferred = [one.transferred_bytes for one in self.workers]
        peaks = [one.peak_host_bytes for one in self.workers]
        return {
            "graph": self.url,
            "num_sources": len(rows),
            "num_invalid": len(self.invalid),
            "seed": self.seed,
            "direction": self.direction,
            "apart": self.apart,
            "num_workers": len(self.workers),
            "num_partitions": self.num_partitions,
            "threads": self.threads,
            **_extremes(rows, "seconds", "in_process_seconds", "ratio", "overhead_ms_per_iteration", "ms_per_iteration"),
            "median_call_seconds": statistics.median(one.call_seconds for one in self.searches),
            "median_result_seconds": statistics.median(one.result_seconds for one in self.searches),
            "median_num_iterations": statistics.median(one.num_iterations for one in self.searches),
            "median_num_hops": statistics.median(one.num_hops for one in self.searches),
            "hops_per_iteration": hops / iterations,
            "num_epochs": sum(one.num_epochs for one in self.searches),
            "sent_bytes_per_iteration": sent / iterations,
            "transferred_bytes_per_iteration": None if None in transferred else sum(filter(None, transferred)) / iterations,
            "sent_to_bound": sent / max(1, sum(one.bound_bytes for one in self.searches)),
            "worst_sent_to_bound": max(one.worst_sent_to_bound for one in self.searches),
            "busy_imbalance": imbalance([one.busy_seconds for one in self.workers]),
            "busy_fraction": sum(one.busy_seconds for one in self.workers) / sum(row["seconds"] for row in rows) / len(self.workers),
            "edges_imbalance": imbalance([part["num_edges"] for part in self.parts]),
            "vertices_imbalance": imbalance([part["num_owned"] for part in self.parts]),
            "median_bytes_read": statistics.median(row["bytes_read"] for row in rows),
            "in_process_median_bytes_read": statistics.median(one.in_process["bytes_read"] for one in self.searches),
            "edge_bytes": self.edge_bytes,
            "load_seconds": self.load_seconds,
            "planes_resident": self.planes_resident,
            "memory_budget": self.memory_budget,
            "max_worker_peak_host_bytes": None if None in peaks else max(filter(None, peaks)),
            **{f"in_process_{name}": value for name, value in self.in_process_load.items()},
            "client_load_growth_bytes": self.client_load_growth_bytes,
            "client_growth_bytes": self.client_growth_bytes,
            "workers": [asdict(one) for one in self.workers],
            "searches": [{**row, **asdict(one)} for row, one in zip(rows, self.searches, strict=True)],
        }


def _extremes(rows: Sequence[dict[str, Any]], *names: str) -> dict[str, Any]:
    """Return median and worst (largest) of some columns.

    Examples
    --------
    >>> _extremes([{"seconds": 1.0}, {"seconds": 4.0}, {"seconds": 2.0}], "seconds")
    {'median_seconds': 2.0, 'worst_seconds': 4.0}
    """
    out: dict[str, Any] = {}
    for name in names:
        values = [row[name] for row in rows]
        out |= {f"median_{name}": statistics.median(values), f"worst_{name}": max(values)}
    return out
