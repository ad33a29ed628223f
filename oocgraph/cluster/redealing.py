"""Shares of the edges that the workers of an opened graph own, dealt again between its searches by measured speed.

In: a `Placement`, the outcomes of its searches. Out: the shares of the next search, loaded on the workers under the same lease and within
the same budgets, with the reason. `oocgraph.plan.redealing` chooses; here is what it costs and what can go wrong: shares that do not fit
are given up for those before, and a search that goes on keeps the shares that its logs were written with.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence

from oocgraph.cluster.events import SHARES, Watch
from oocgraph.cluster.logged_search import Outcome
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.session import WorkersLostError
from oocgraph.errors import BudgetError, DeviceError
from oocgraph.partition.balance import imbalance
from oocgraph.plan.redealing import Dealing, choose_shares
from oocgraph.store.search_store import SearchStore

logger = logging.getLogger(__name__)

LAST_SEARCHES = 16
"""Searches whose work is summed up, so that a worker that becomes slow is noticed however long the runtime has been open. After so many the
last dealing counts no more: that it did not help, or has not paid yet, may have been the doing of others on the machine."""


class MeasuredShares:
    """The shares of one opened graph; one search at a time.

    Attributes
    ----------
    seconds
        What loading with other shares has taken in all.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._busy: deque[Sequence[float]] = deque(maxlen=LAST_SEARCHES)
        self._last: Dealing | None = None
        self._refusal: str | None = None
        self.seconds = 0.0

    @property
    def of_edges(self) -> tuple[float, ...]:
        """Part of all edges that each partition owns."""
        edges = [part["num_edges"] for part in self._placement.parts]
        return tuple(one / max(1, sum(edges)) for one in edges)

    def measure(self, outcome: Outcome) -> None:
        """Take the work of a search; what was done while partitions moved, or by workers with several of them, says nothing of speed."""
        addresses = self._placement.addresses
        if outcome.num_epochs > 1:
            self._busy.clear()
        elif len(set(addresses)) == len(addresses):
            self._busy.append([outcome.busy_seconds.get(address, 0.0) for address in addresses])

    def deal(self, result_store: SearchStore, watch: Watch) -> str:
        """Have workers hold the shares of the search that begins, or goes on, in `result_store`, and note them there; returns the reason.

        Raises
        ------
        BudgetError
            A search that goes on was begun with shares that do not fit.
        """
        if int(result_store.field("epoch")) < 0:
            reason = self._deal_by_speed(watch)
            result_store.record_shares(self._placement.spec.shares)
            return reason
        if result_store.shares != self._placement.spec.shares:
            self._use(result_store.shares, watch)
            self._last = None
        return "those that the search was begun with"

    def _deal_by_speed(self, watch: Watch) -> str:
        """Deal shares again, if what was measured says so."""
        placement = self._placement
        before = placement.spec.shares
        if placement.spec.settings.redeal_shares == "off":
            return "kept: oocgraph.redeal-shares is off"
        if self._refusal is not None:
            return self._refusal
        if not self._busy:
            return "kept: no search has been measured yet (of workers with one partition each)"
        busy = [sum(of_one) for of_one in zip(*self._busy, strict=True)]
        edges = [part["num_edges"] for part in placement.parts]
        last = self._last if len(self._busy) < LAST_SEARCHES else None
        choice = choose_shares(edges=edges, busy_seconds=busy, shares=before, last=last)
        if choice.shares == before:
            return choice.reason
        try:
            seconds = self._use(choice.shares, watch)
        except (BudgetError, DeviceError) as error:
            self._use(before, watch)
            self._refusal = f"kept: shares by measured edges a second cannot be held: {error}"
            logger.warning("shares of %s are %s", placement.spec.url, self._refusal)
            return self._refusal
        self._last = Dealing(busy.index(max(busy)), imbalance(busy), seconds)
        logger.info("shares of %s: %s", placement.spec.url, choice.reason)
        message = {"graph": placement.spec.url, "lease": placement.session.lease, "edge_shares": self.of_edges, "reason": choice.reason}
        placement.session.client.log_event(SHARES, message)
        return choice.reason

    def _use(self, shares: tuple[int, ...] | None, watch: Watch) -> float:
        """Load the graph on the workers with these shares; returns the seconds that took."""
        began = time.perf_counter()
        self._busy.clear()
        try:
            self._placement.deal_again(shares)
        except WorkersLostError:
            self._placement.place_again(watch)
        seconds = time.perf_counter() - began
        self.seconds += seconds
        return seconds
