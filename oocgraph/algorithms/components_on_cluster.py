"""Connected components on the workers of a Dask cluster: each links its share of the edges.

In: a store, a client. Out: the trees of all, in this process. First planes are linked, a share on each worker; with the trees that these
make each links its share of the lists of vertices outside of the largest one. Where all workers share a host's memory they link in one
forest (`ForestRounds`); elsewhere each has its own, and they are joined in pairs (`_link_apart`). A run whose worker is lost is made again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from oocgraph.cluster import worker_forest
from oocgraph.cluster.events import Watch
from oocgraph.cluster.placement import Placement, placed
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.specs import GraphSpec
from oocgraph.cluster.supersteps import Program, Step, Supersteps
from oocgraph.cluster.worker import with_plugin
from oocgraph.cluster.worker_forest import ForestSteps, Linked, Phase
from oocgraph.errors import ClusterError
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

logger = logging.getLogger(__name__)


class ApartError(ClusterError):
    """The workers that are left do not share memory."""


class ForestRounds(Program[Linked]):
    """The steps of workers that have one forest in common; see `oocgraph.cluster.worker_forest.ForestSteps`.

    Parameters
    ----------
    placement
        Of the shares.
    name
        Unique.
    progress
        Called with ("planes" or "lists", done, all).
    """

    title, label, epoch, final_step, most_ahead = "finding components", "components", 0, int(Phase.LISTS), 2

    def __init__(self, placement: Placement, name: str, progress: Progress) -> None:
        self.name, self._placement, self._progress = name, placement, progress
        self._read, self._device_bytes = np.zeros((1, 3), np.int64), 0

    def begin(self) -> Step:
        """Begin, or begin again.

        Raises
        ------
        ApartError
            After the loss of a worker the others do not share memory any more.
        """
        if not self._placement.shares_memory:
            raise ApartError(self._placement.exchange)
        self.epoch += 1
        self._progress("planes", 0, 1)
        return Step(-1)

    def steps(self, *, is_first: bool) -> ForestSteps:
        """Return what a worker does."""
        return ForestSteps(spec=self._placement.spec)

    def complete(self, number: int, reports: Sequence[dict[str, Any]], hop: Step) -> bool:
        """Take note of what was read."""
        self._device_bytes += sum(report["device_bytes"] for report in reports)
        self._read = np.array([report["read"] for report in reports])
        if number >= Phase.PLANES:
            self._progress("lists", int(number == self.final_step), 1)
        return number == self.final_step

    def finish(self) -> Linked:
        """Fetch the trees."""
        session, address = self._placement.session, self._placement.addresses[0]
        asked = session.call(address, worker_forest.trees, session.lease, self._placement.spec, self.epoch)
        (parent,) = session.gather({asked: address})
        _, num_bytes, plane_bytes = self._read.sum(axis=0).tolist()
        return Linked(parent, int(self._read[0, 0]), num_bytes, plane_bytes, self._device_bytes)


def link_on_cluster(store: CSRStore, resources: Resources, progress: Progress) -> tuple[Linked, str]:
    """Link all edges on the workers of the client of `resources`, whose memory and threads are each worker's.

    Returns
    -------
    The trees, and what workers have exchanged them through, with the reason (`Placement.exchange`).
    """
    with ClusterSession(resources.client) as session, session.loss_reported(), Watch(session.client, uuid.uuid4().hex) as watch:
        placement = placed(
            session, store, resources, watch, GraphSpec, worker_forest.acquire, device="cpu", divide=lambda workers: workers
        )  # fmt: skip
        if placement.shares_memory:
            try:
                return Supersteps(placement, watch).run(ForestRounds(placement, watch.search, progress)), placement.exchange
            except ApartError as error:
                logger.info("%s: they compute the components again, each with trees of its own", error)
        found = session.rerun(lambda: _link_apart(placement, progress), lambda: placement.place_again(watch))
        return found, placement.exchange


def _link_apart(placement: Placement, progress: Progress) -> Linked:
    """Link on workers that each have trees of their own, and join these in pairs."""
    session, spec, addresses = placement.session, placement.spec, sorted(set(placement.addresses))
    before = None
    for i, phase in enumerate(("planes", "lists")):
        progress(phase, 0, 1)
        joined = session.combine(
            {
                session.call(address, worker_forest.link, session.lease, spec, (p, len(addresses)), before): address
                for p, address in enumerate(addresses)
            },
            with_plugin, worker_forest.join, session.lease, spec,
        )  # fmt: skip
        if i:
            found = Linked(*session.gather(joined, needed=addresses)[0])
            progress(phase, 1, 1)
            return found
        (before,) = joined
    raise AssertionError("unreachable")
