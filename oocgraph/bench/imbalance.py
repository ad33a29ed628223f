"""Searches on workers of one host, one of which shares its core with a busy process: how much the others help by taking over work.

In: a store, how to start a cluster, shares of a worker's vertices that others may take over. Out: a `Report`. Each worker is bound to a
core of its own. The graph is opened once for each share and once for 0, with which the others are compared, and all search the same
sources in turn: first undisturbed, then with a process that keeps the first worker's core busy. Shares of the edges stay as they are.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.cluster import MeasuredRuntime
from oocgraph.bench.harness import Report, in_turn, paired_ratios, scratch_folder
from oocgraph.bench.neighbour import busy_neighbour
from oocgraph.bench.results_on_disk import first_violation
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.clients import workers_of
from oocgraph.config import setting, settings
from oocgraph.errors import ClusterError
from oocgraph.store.graph import CSRStore
from oocgraph.types import Direction, Progress


class Measured(NamedTuple):
    """A search: its seconds, what members did, and the rule that its result breaks, if any."""

    seconds: float
    exchanged: dict[str, float]
    violation: str | None


def bench_imbalance(
    store: CSRStore,
    *,
    open_client: Callable[[], AbstractContextManager[Any]],
    shares: Sequence[float],
    num_sources: int,
    seed: int,
    progress: Progress,
    memory_budget: str | int | None = None,
    direction: Direction = "auto",
    scratch: str | None = None,
) -> Report:
    """Measure searches on a cluster with and without a busy neighbour of one worker.

    Parameters
    ----------
    store
        The graph.
    open_client
        Returns a context that yields a `distributed.Client`; its workers must be processes of this host.
    shares
        Settings of ``oocgraph.take-over`` to compare with 0.
    num_sources, seed
        Number of vertices with edges to draw, and the seed of the draw.
    progress
        Called with searches done.
    memory_budget, direction
        As for `bfs`.
    scratch
        Folder for results, which every worker must see.

    Raises
    ------
    ClusterError
        Fewer than two workers, or workers that do not share memory.
    """
    vertices = draw_sources(store, num_sources, seed).tolist()
    metrics: dict[str, Any] = {"graph": store.url, "seed": seed, "direction": direction, "num_sources": num_sources, "shares": [*shares]}
    invalid: list[str] = []
    with scratch_folder(scratch or settings().result_folder) as folder, ExitStack() as stack:
        client = stack.enter_context(open_client())
        cores = _bind_workers(client)
        subjects: dict[str, Callable[[int], Any]] = {}
        for share in (0.0, *shares):
            with setting("take-over", share), setting("redeal-shares", "off"):
                runtime = stack.enter_context(
                    MeasuredRuntime.open(store, client=client, memory_budget=memory_budget, device="cpu", result_folder=folder)
                )
            if len(cores) < 2 or not runtime.placement.shares_memory:
                there = f"{len(cores)} worker{'s' * (len(cores) > 1)}, {runtime.placement.exchange}"
                remedy = "use two workers or more of this host, with a thread for each partition"
                raise ClusterError(f"nothing can be taken over: {there}; {remedy}")
            subjects[f"{share:g}"] = partial(_search, store, runtime, direction, folder)
        metrics |= {"num_workers": len(cores), "exchange": runtime.placement.exchange}
        for phase, neighbour in (("quiet", None), ("busy", cores[min(cores)])):
            with ExitStack() as beside:
                if neighbour is not None:
                    beside.enter_context(busy_neighbour(neighbour))
                in_turn(subjects, vertices[:1], progress, phase="warming up")
                found = in_turn(subjects, vertices, progress, phase=phase, alternate=True)
            metrics |= {f"{phase}_{name}": value for name, value in _summary(found).items()}
            invalid += [f"{phase}, {name}: {one.violation}" for name, rows in found.items() for one in rows if one.violation]
    return Report(title=repr(store), metrics=metrics, invalid=tuple(invalid))


def _summary(found: dict[str, list[Measured]]) -> dict[str, Any]:
    """Return medians for each share, and ratios to a share of 0."""
    alone, rest = found["0"], {name: rows for name, rows in found.items() if name != "0"}
    summary: dict[str, Any] = {"median_seconds": [statistics.median(one.seconds for one in rows) for rows in found.values()]}
    for column, counter in (("wait_seconds", "wait_seconds"), ("helped_seconds", "helped_seconds"), ("taken_vertices", "taken")):
        summary[f"median_{column}"] = [statistics.median(one.exchanged[counter] for one in rows) for rows in found.values()]
    for name, rows in rest.items():
        summary |= paired_ratios(f"ratio_{name}", [one.seconds for one in rows], [one.seconds for one in alone])
    return summary


def _search(store: CSRStore, runtime: MeasuredRuntime, direction: Direction, folder: Path, vertex: int) -> Measured:
    path = folder / "search.zarr"
    (source,) = source_ids(store, [vertex])
    result = bfs(store, source, runtime=runtime, direction=direction, result_store=path)
    violation = first_violation(store, result)
    shutil.rmtree(path)
    return Measured(runtime.outcome.seconds, runtime.outcome.exchanged, violation)


def _bind_workers(client: Any) -> dict[str, int]:
    """Bind the threads of each worker to a core; returns these, by worker."""
    cores = sorted(os.sched_getaffinity(0))
    bound = {address: cores[k % len(cores)] for k, address in enumerate(sorted(workers_of(client)))}
    for address, core in bound.items():
        client.run(_bind, core, workers=[address])
    return bound


def _bind(core: int) -> None:
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})
