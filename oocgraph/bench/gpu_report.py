"""What was measured on a GPU, as one JSON object: medians, extremes and bounds made from the searches.

In: reports of cases, rates of the memories. Out: dictionaries whose names carry the units.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from oocgraph.bench.gpu_cases import CaseReport
from oocgraph.bench.gpu_rates import DeviceRates, DiskRate
from oocgraph.results.bfs import BFSResult

SUMMED = ("num_batches", "num_pieces", "read_seconds", "copy_seconds", "kernel_seconds", "span_seconds", "idle_seconds")
"""Figures of an iteration that are summed over a search."""

SHOWN_LEVELS = 64
"""Levels of a search that are listed."""


def search_figures(result: BFSResult, rates: DeviceRates, disk: DiskRate) -> dict[str, Any]:
    """Return the figures of one search.

    Notes
    -----
    ``overlap_seconds``: a copy and a kernel ran at the same time. ``each_edge_once_ratio``: the time by that of copying all edges once
    from pinned memory. ``slowest_tier_ratio``: the time by that of the slowest of the disk (bytes read), the link (bytes over it) and the
    kernels that consumed staged edges; None where no edge came from outside of the device, or the disk's rate is not known.
    """
    on_device = [one.device for one in result.iterations if one.device is not None]
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in on_device) for name in SUMMED}
    working = sums["span_seconds"] - sums["idle_seconds"]
    names = ("source", "num_reached", "depth", "seconds", "teps", "bytes_read", "read_fraction", "link_bytes")
    tiers = [result.link_bytes / rates.link, sums["kernel_seconds"]]
    if result.bytes_read:
        tiers.append(result.bytes_read / disk.bytes_per_second if disk.bytes_per_second else 0.0)
    known = result.link_bytes and (not result.bytes_read or disk.bytes_per_second)
    return {
        **{name: getattr(result, name) for name in names},
        "link_fraction": result.link_bytes / result.edge_bytes if result.edge_bytes else 0.0,
        **sums,
        "overlap_seconds": max(0.0, sums["copy_seconds"] + sums["kernel_seconds"] - working),
        "each_edge_once_ratio": result.seconds * rates.link / result.edge_bytes if result.edge_bytes else None,
        "slowest_tier_ratio": result.seconds / max(tiers) if known else None,
        "levels": [_level(one) for one in result.iterations[:SHOWN_LEVELS]],
    }


def _level(iteration: Any) -> dict[str, Any]:
    names = ("level", "direction", "reason", "frontier", "undecided", "seconds", "bytes_read")
    return {**{name: getattr(iteration, name) for name in names}, "device": None if iteration.device is None else asdict(iteration.device)}


def case_figures(report: CaseReport, rates: DeviceRates, disk: DiskRate) -> dict[str, Any]:
    """Return the figures of a case: medians and worst ones, what was held, then every search."""
    case = report.case
    head = {"case": case.name, "edges": case.edges, "budget_share": case.budget_share, "refused": report.refused}
    if report.refused is not None:
        return {**head, "device_memory_budget": case.device_memory_budget}
    searches = [search_figures(result, rates, disk) for result in report.results]
    for search, rule in zip(searches, report.invalid, strict=True):
        search |= {"valid": rule is None, "invalid": rule}
    figures: dict[str, Any] = {**head, "num_sources": len(searches), "num_invalid": sum(rule is not None for rule in report.invalid)}
    for name in ("seconds", "teps", "link_bytes", "link_fraction", "bytes_read", "read_fraction", *SUMMED, "overlap_seconds"):
        figures[f"median_{name}"] = statistics.median(one[name] for one in searches)
    figures["worst_seconds"] = max(one["seconds"] for one in searches)
    figures["worst_link_fraction"] = max(one["link_fraction"] for one in searches)
    for name in ("each_edge_once_ratio", "slowest_tier_ratio"):
        values = [one[name] for one in searches if one[name] is not None]
        figures[f"median_{name}"] = statistics.median(values) if values else None
    if report.cpu is not None:
        figures |= _cpu_figures(report, searches)
    return {**figures, **report.held, "searches": searches}


def _cpu_figures(report: CaseReport, searches: list[dict[str, Any]]) -> dict[str, Any]:
    """Return those of the processor beside; ``cpu_to_gpu`` is the median over the sources of its seconds by the device's."""
    cpu = dict(report.cpu or {})
    if "seconds" not in cpu:
        return {"cpu": cpu}
    cpu["median_seconds"] = statistics.median(cpu["seconds"])
    cpu["num_invalid"] = sum(rule is not None for rule in report.cpu_invalid)
    return {"cpu": cpu, "cpu_to_gpu": statistics.median(a / b["seconds"] for a, b in zip(cpu["seconds"], searches, strict=True))}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """All that was measured of one graph.

    Attributes
    ----------
    url, edge_bytes, num_vertices, num_stored_edges
        The graph.
    disk
        What its disk gives.
    cases
        One for each place of the edges.
    methods
        Of each frontier: ways to gather neighbours against each other.
    plane_scan, preparation
        See `oocgraph.bench.gpu_kernels`; None where it was not measured.
    unmeasured
        Why kernels were not measured; None if they were.
    """

    url: str
    edge_bytes: int
    num_vertices: int
    num_stored_edges: int
    disk: DiskRate
    cases: tuple[CaseReport, ...]
    methods: tuple[dict[str, Any], ...] = ()
    plane_scan: dict[str, Any] | None = None
    preparation: dict[str, Any] | None = None
    unmeasured: str | None = None

    def figures(self, rates: DeviceRates) -> dict[str, Any]:
        """Return what ``--json`` prints of a graph."""
        scan = None
        if self.plane_scan is not None:
            scan = {**self.plane_scan, "device_copy_fraction": self.plane_scan["bytes_per_second"] / rates.device_copy}
        return {
            "graph": self.url,
            "num_vertices": self.num_vertices,
            "num_stored_edges": self.num_stored_edges,
            "edge_bytes": self.edge_bytes,
            "disk_bytes_per_second": self.disk.bytes_per_second,
            "disk": self.disk.how,
            "cases": [case_figures(one, rates, self.disk) for one in self.cases],
            "methods": list(self.methods),
            "plane_scan": scan,
            "preparation": self.preparation,
            "unmeasured": self.unmeasured,
        }

    @property
    def broken(self) -> list[str]:
        """All that was found wrong, in words."""
        out = []
        for one in self.cases:
            rules = list(zip(one.results, one.invalid, strict=True))
            out += [f"{self.url}, {one.case.name}, source {result.source}: {rule}" for result, rule in rules if rule is not None]
            out += [f"{self.url}, processor: {rule}" for rule in one.cpu_invalid if rule is not None]
        out += [f"{self.url}: push by {name} does not find level {one['level']}" for one in self.methods for name in one["wrong"]]
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """One run of the benchmark.

    Attributes
    ----------
    device, date, num_sources, seed
        Where, when (UTC), how.
    emulated
        Kernels were executed on the processor: times say nothing of a GPU.
    rates
        Of the device.
    preparation
        Of a dependency subgraph of many vertices; None where the device has no room.
    graphs
        In the order in which they were given.
    """

    device: str
    date: str
    num_sources: int
    seed: int
    emulated: bool
    rates: DeviceRates
    preparation: dict[str, Any] | None
    graphs: tuple[GraphReport, ...] = field(default=())

    def figures(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        from oocgraph.bench.gpu_targets import judged

        graphs = [graph.figures(self.rates) for graph in self.graphs]
        return {
            "device": self.device,
            "date": self.date,
            "num_sources": self.num_sources,
            "seed": self.seed,
            "num_invalid": len(self.broken),
            "device_copy_bytes_per_second": self.rates.device_copy,
            "link_bytes_per_second": self.rates.link,
            "preparation": self.preparation,
            "graphs": graphs,
            "targets": judged(graphs, self.preparation, emulated=self.emulated),
        }

    @property
    def broken(self) -> list[str]:
        """All that was found wrong, in words."""
        return [rule for graph in self.graphs for rule in graph.broken]
