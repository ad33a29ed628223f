"""Metrics of searches on a GPU: medians, extremes, and times beside those that the bandwidths allow.

In: runs of cases, rates of the memories. Out: dictionaries whose names carry the units.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

from oocgraph.bench.disk import DiskRate
from oocgraph.bench.gpu_cases import CaseRun
from oocgraph.bench.gpu_rates import DeviceRates
from oocgraph.bench.harness import extremes, medians, paired_ratios
from oocgraph.results.bfs import BFSResult

SUMMED = ("num_batches", "num_pieces", "read_seconds", "copy_seconds", "kernel_seconds", "span_seconds", "idle_seconds")
"""Metrics of an iteration that are summed over a search."""

SHOWN_LEVELS = 64
"""Levels of a search that are listed."""


def search_metrics(result: BFSResult, rates: DeviceRates, disk: DiskRate) -> dict[str, Any]:
    """Return the metrics of one search.

    Notes
    -----
    ``overlap_seconds``: a copy and a kernel ran at the same time. ``each_edge_once_ratio``: the time by that of copying all edges once
    from pinned memory. ``slowest_tier_ratio``: the time by that of the slowest of the disk (bytes read), the link (bytes over it) and the
    kernels that consumed staged edges; None where no edge came from outside of the device, or the disk's rate is not known.
    ``seconds`` ends when parent and level are in host memory, ``device_seconds`` and ``device_teps`` when they are on the device.
    """
    on_device = [one.device for one in result.iterations if one.device is not None]
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in on_device) for name in SUMMED}
    working = sums["span_seconds"] - sums["idle_seconds"]
    names = ("source", "num_reached", "depth", "seconds", "teps", "bytes_read", "read_fraction", "link_bytes")
    tiers = [result.link_bytes / rates.link, sums["kernel_seconds"]]
    if result.bytes_read:
        tiers.append(result.bytes_read / disk.bytes_per_second if disk.bytes_per_second else 0.0)
    known = result.link_bytes and (not result.bytes_read or disk.bytes_per_second)
    device_seconds = result.seconds - result.search.results_seconds
    return {
        **{name: getattr(result, name) for name in names},
        "device_seconds": device_seconds,
        "device_teps": result.num_reached_edges / device_seconds if device_seconds > 0 else 0.0,
        "results_ratio": result.seconds / device_seconds if device_seconds > 0 else None,
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


def case_metrics(run: CaseRun, rates: DeviceRates, disk: DiskRate) -> dict[str, Any]:
    """Return the metrics of a case: medians and worst ones, what was held, then every search."""
    case = run.case
    head = {"case": case.name, "edges": case.edges, "budget_share": case.budget_share, "refused": run.refused}
    if run.refused is not None:
        return {**head, "device_memory_budget": case.device_memory_budget}
    searches = [search_metrics(result, rates, disk) for result in run.results]
    for search, rule in zip(searches, run.invalid, strict=True):
        search |= {"valid": rule is None, "invalid": rule}
    metrics: dict[str, Any] = {
        **head,
        "num_sources": len(searches),
        "num_invalid": sum(rule is not None for rule in run.invalid),
        **extremes(searches, "seconds", "link_fraction"),
        **medians(
            searches, "teps", "device_seconds", "device_teps", "link_bytes", "bytes_read", "read_fraction", *SUMMED, "overlap_seconds"
        ),
    }
    for name in ("each_edge_once_ratio", "slowest_tier_ratio", "results_ratio"):
        values = [one[name] for one in searches if one[name] is not None]
        metrics[f"median_{name}"] = statistics.median(values) if values else None
    if run.cpu is not None:
        metrics |= _cpu_metrics(run, searches)
    if run.sweep is not None:
        metrics |= _sweep_metrics(run, searches)
    return {**metrics, **run.held, "searches": searches}


def _cpu_metrics(run: CaseRun, searches: list[dict[str, Any]]) -> dict[str, Any]:
    """Return those of the processor beside; ``cpu_to_gpu`` is the median over the sources of its seconds by the device's."""
    cpu = dict(run.cpu or {})
    if "seconds" not in cpu:
        return {"cpu": cpu}
    cpu["median_seconds"] = statistics.median(cpu["seconds"])
    cpu["num_invalid"] = sum(rule is not None for rule in run.cpu_invalid)
    return {"cpu": cpu, **paired_ratios("cpu_to_gpu", cpu["seconds"], [one["seconds"] for one in searches])}


def _sweep_metrics(run: CaseRun, searches: list[dict[str, Any]]) -> dict[str, Any]:
    """Return those of the baseline beside.

    ``link_to_sweep`` is the median over the sources of our bytes over the link by its bytes, ``sweep_to_gpu`` of its seconds by ours.
    """
    sweep = dict(run.sweep or {})
    if "searches" not in sweep:
        return {"sweep": sweep}
    theirs = sweep["searches"]
    sweep["num_invalid"] = sum(rule is not None for rule in run.sweep_invalid)
    sweep |= {f"median_{name}": statistics.median(one[name] for one in theirs) for name in ("seconds", "link_bytes")}
    bytes_of = [[one["link_bytes"] for one in all_of] for all_of in (searches, theirs)]
    seconds_of = [[one["seconds"] for one in all_of] for all_of in (theirs, searches)]
    return {"sweep": sweep, **paired_ratios("link_to_sweep", *bytes_of), **paired_ratios("sweep_to_gpu", *seconds_of)}
