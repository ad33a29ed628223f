"""Shortest paths on a Dask cluster: each worker has a share of the blocks of edges, and hears in each step what all have found.

In: a `Placement` that holds the shares. Out: `PathsRounds`, a program of `oocgraph.cluster.supersteps` that makes a `FoundPaths`. When a
worker is lost, its shares go to others; one share that is left says all that it knows, and every share works on that again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.cluster import worker_paths
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.supersteps import Program, Step, Task
from oocgraph.cluster.worker import with_plugin
from oocgraph.cluster.worker_paths import PathsStep, PathsTable
from oocgraph.engine.blocks import EdgeError, Work
from oocgraph.kernels.blocks import NONE
from oocgraph.types import Array, Progress


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """What the shares have found together.

    Attributes
    ----------
    distance, parent : (num_vertices,)
    work : Work
        Of all shares.
    device_bytes : int
        Read from devices by workers meanwhile.
    num_steps : int
    """

    distance: Array
    parent: Array
    work: Work
    device_bytes: int
    num_steps: int


class PathsRounds(Program[FoundPaths]):
    """The steps of one run.

    Parameters
    ----------
    placement
        Holds the shares.
    name
        Unique.
    progress
        Called with ("edges followed", how many, 0).
    """

    title, label, most_ahead = "the search for shortest paths", "sssp-step", 2

    def __init__(self, placement: Placement, name: str, progress: Progress) -> None:
        self._placement, self._session, self._progress = placement, placement.session, progress
        self.name, self.epoch, self._last = name, 0, -1
        self._work, self._device_bytes, self._num_steps = np.zeros(len(Work._fields)), 0, 0

    def begin(self) -> Step:
        """Begin at the source, or with what the share knows that is furthest."""
        self.epoch += 1
        if self.epoch > 1:
            addresses = sorted(set(self._placement.addresses))
            held = self._session.gather({self._submit(a, worker_paths.held_number, self._session.lease): a for a in addresses})
            known = [(*one, address) for one, address in zip(held, addresses, strict=True) if one is not None and one[0] >= 0]
            if known:
                _, share, address = max(known)
                return Step(self._last, [self._submit(address, worker_paths.table, self._session.lease, share)])
        return Step(self._last)

    def _submit(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._session.submit(address, with_plugin, function, *arguments)

    def task(self, partition: int, step: int, *, is_first: bool) -> Task:
        """Return what a worker does in a step: `worker_paths.take_step`."""
        one = PathsStep(name=self.name, epoch=self.epoch, number=step, lease=self._session.lease, is_first=is_first)
        return with_plugin, (worker_paths.take_step, partition, one)

    def complete(self, step: Step, reports: Sequence[dict[str, Any]]) -> bool:
        """Take note of a step; whether nothing is pending any more.

        Raises
        ------
        EdgeError
            Of a share.
        """
        self._last = step.number
        for report in reports:
            if report["error"] is not None:
                raise EdgeError(*report["error"])
            if report["work"] is not None:
                self._work += report["work"]
            self._device_bytes += report["device_bytes"]
        self._num_steps += 1
        self._progress("edges followed", int(self._work[0]), 0)
        return all(report["earliest"] == NONE for report in reports)

    def finish(self) -> FoundPaths:
        """Fetch the distances, and the parents that all shares know together."""
        addresses = self._placement.addresses
        tables = {self._submit(address, worker_paths.table, self._session.lease, p): address for p, address in enumerate(addresses)}
        joined = self._session.combine(tables, with_plugin, worker_paths.merged)
        found = PathsTable(*self._session.gather(joined, needed=addresses)[0])
        *counts, seconds, idle = self._work.tolist()
        work = Work._make([*map(int, counts), seconds, idle / len(addresses)])
        return FoundPaths(found.distance, found.parent, work, self._device_bytes, self._num_steps)
