"""Blocks of edges by priority on a Dask cluster: each worker has a share of them, and hears in each step what all have found.

In: a `Placement` that holds the shares. Out: `BlockRounds`, a program of `oocgraph.cluster.supersteps` that makes a `FoundTable`. When a
worker is lost, its shares go to others; one share that is left says what it knows, and all go on from there, or all begin again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.cluster import worker_blocks
from oocgraph.cluster.events import Watch
from oocgraph.cluster.placement import Placement, placed
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.supersteps import Program, Step, Supersteps
from oocgraph.cluster.worker import with_plugin
from oocgraph.cluster.worker_blocks import BlockSteps, SharedSlice, SharesSpec, acquire
from oocgraph.engine.blocks import EdgeError, Run, Work, num_shares
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress


@dataclass(frozen=True, slots=True)
class FoundTable:
    """What the shares have found together.

    Attributes
    ----------
    table
        Of one share, or of all, merged.
    run : Run
        Of all shares; its time begins when all is loaded.
    """

    table: Any
    run: Run


class BlockRounds(Program[FoundTable]):
    """The steps of one run.

    Parameters
    ----------
    placement
        Holds the shares.
    name
        Unique.
    message
        Of what shares say: `worker_blocks.SharesSpec`.
    title, label
        See `Program`.
    merge
        What makes one table of two, with the plugin first; None: that of any share has all.
    progress
        Called with ("edges followed", how many, 0).
    """

    most_ahead = 2

    def __init__(
        self, placement: Placement, name: str, message: type[Any], *, title: str, label: str,
        merge: Callable[..., Any] | None, progress: Progress,
    ) -> None:  # fmt: skip
        self._placement, self._session, self._progress, self._merge = placement, placement.session, progress, merge
        self.name, self.title, self.label, self.epoch, self._last = name, title, label, 0, -1
        self._message = message
        self._work, self._device_bytes = np.zeros(len(Work._fields)), 0
        self._began = perf_counter()

    def begin(self) -> Step:
        """Begin, or go on with what the share knows that is furthest."""
        self.epoch += 1
        self._is_shared = self._placement.shares_memory
        if self.epoch > 1:
            addresses = sorted(set(self._placement.addresses))
            held = self._session.gather({self._session.call(a, worker_blocks.held_number, self._session.lease): a for a in addresses})
            known = [(*one, address) for one, address in zip(held, addresses, strict=True) if one is not None and one[0] >= 0]
            if known:
                _, share, address = max(known)
                return Step(self._last, [self._session.call(address, worker_blocks.table, self._session.lease, share)])
        return Step(-1)

    def steps(self, *, is_first: bool) -> BlockSteps:
        """Return what a worker does: `worker_blocks.BlockSteps`."""
        message = SharedSlice if self._is_shared else self._message
        return BlockSteps(message=message)

    def complete(self, number: int, reports: Sequence[dict[str, Any]], hop: Step) -> bool:
        """Take note of a step; whether nothing is left to do.

        Raises
        ------
        EdgeError
            Of a share.
        """
        self._last = number
        for report in reports:
            if report["error"] is not None:
                raise EdgeError(*report["error"])
            if report["work"] is not None:
                self._work += report["work"]
            self._device_bytes += report["device_bytes"]
        self._progress("edges followed", int(self._work[0]), 0)
        return all(report["is_done"] for report in reports)

    def finish(self) -> FoundTable:
        """Fetch what was found."""
        addresses, lease = self._placement.addresses, self._session.lease
        merge = None if self._is_shared else self._merge
        wanted = addresses if merge else addresses[:1]
        tables = {self._session.call(address, worker_blocks.table, lease, p): address for p, address in enumerate(wanted)}
        if merge:
            tables = self._session.combine(tables, with_plugin, merge)
        (table,) = self._session.gather(tables, needed=addresses)
        *counts, _, idle = self._work.tolist()
        work = Work._make([*map(int, counts), perf_counter() - self._began, idle / len(addresses)])
        num_blocks = sum(part["num_blocks"] for part in self._placement.parts)
        return FoundTable(table, Run(num_blocks, work, self._device_bytes))


def run_on_cluster(
    store: CSRStore, resources: Resources, spec: type[SharesSpec], *, title: str, label: str, merge: Callable[..., Any] | None,
    progress: Progress, **asked: Any,
) -> FoundTable:  # fmt: skip
    """Compute on the workers of the client of `resources`, whose memory and threads are each worker's; `asked` are fields of `spec`."""
    with ClusterSession(resources.client) as session, session.loss_reported(), Watch(session.client, uuid.uuid4().hex) as watch:
        placement = placed(
            session, store, resources, watch, spec, acquire, device="cpu",
            divide=lambda workers: num_shares(store, resources.num_partitions or workers), **asked,
        )  # fmt: skip
        program = BlockRounds(placement, watch.search, spec.message, title=title, label=label, merge=merge, progress=progress)
        return Supersteps(placement, watch).run(program)
