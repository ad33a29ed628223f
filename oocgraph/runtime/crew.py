"""The workers that hold a graph's partitions: which holds what, tasks that only one of them may run, and what to do when one is lost.

In: a client, a `GraphSpec`, a first placement. Out: a `Crew`, whose `next_event` raises `WorkersLostError` as soon as a worker goes that
matters; `place_again` then gives its partitions to others. Steps of searches are in `oocgraph.runtime.driver`.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from oocgraph.errors import BudgetError, ClusterError, DeviceError, OocGraphError
from oocgraph.runtime import worker as tasks
from oocgraph.runtime.events import Watch
from oocgraph.runtime.scheduler import ask, fetch, scheduler_lost, workers_of
from oocgraph.runtime.specs import GraphSpec, StateLostError

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often it is looked whether scheduler and workers are still there, when nothing happens."""

NO_NANNY_SECONDS = 5.0
"""How long a lost worker is waited for that no nanny restarts."""

MAX_IDLE_EPOCHS = 8
"""Placements in a row without a step taken, after which something is wrong that placing them again does not mend."""


class WorkersLostError(ClusterError):
    """A worker that holds a partition has gone; the driver places its partitions again."""


class Crew:
    """The workers of one opened graph.

    Parameters
    ----------
    client
        A `distributed.Client`.
    spec
        What they hold.
    placement
        Address of the worker of each partition; changed as workers are lost.
    nannies
        By address, whether a nanny restarts the worker.

    Attributes
    ----------
    lease
        Name of what is reserved on the workers.
    graph
        Name of what they hold, in tasks.
    parts
        What each partition's worker has said of it when it had loaded it.
    num_moves
        Partitions that went to another worker so far.
    closed
        Whether workers have been told to give back what they hold.
    """

    def __init__(self, client: Any, spec: GraphSpec, placement: list[str], nannies: dict[str, bool]) -> None:
        self.client, self.spec, self.placement = client, spec, placement
        self.lease = f"{client.id}/{uuid.uuid4().hex}"
        self.graph = spec.graph
        self.parts: list[dict[str, Any]] = [{} for _ in placement]
        self.num_moves = 0
        self.closed = False
        self._nannies = nannies

    def tell_all(self, call: Callable[..., Any], name: str) -> None:
        """Call on every worker, as far as they can be reached: what is gone holds nothing."""
        if self.client.status != "running":
            return
        try:
            ask(self.client, self.client.run, call, name, on_error="ignore")
        except ClusterError as error:  # the scheduler has just gone, and this must not hide the message about it
            logger.info("workers were not told to drop %s: %s", name, error)

    def acquire(self, partitions: Iterable[int], watch: Watch) -> None:
        """Have the workers of some partitions load them, as far as they do not hold them."""
        mine: dict[str, list[int]] = {}
        for p in partitions:
            mine.setdefault(self.placement[p], []).append(p)
        futures = {}
        for address, numbers in mine.items():
            key = f"load-partitions-{uuid.uuid4().hex}"
            futures[self.submit(key, address, tasks.acquire, self.lease, self.spec, numbers)] = address
        for figures in self.gather(futures, watch):
            for part in figures:
                self.parts[part["partition"]] = part

    def submit(self, key: Any, address: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a task that only one worker may run."""
        try:
            return self.client.submit(task, *arguments, workers=[address], allow_other_workers=False, key=key, pure=False, retries=0)
        except Exception:
            self.check_open()
            raise

    def gather(self, futures: Mapping[Any, str], watch: Watch) -> list[Any]:
        """Wait for tasks, each with its worker, and return their results; the first failure, of a task or of a worker, is raised."""
        addresses = set(futures.values())
        for future in futures:
            future.add_done_callback(lambda done: watch.put("done", done))
        waiting = set(futures)
        try:
            while waiting:
                kind, message = self.next_event(watch, addresses)
                if kind == "done" and message in waiting:
                    self.raise_failure(message)
                    waiting.discard(message)
            return [self._result(future, watch, addresses) for future in futures]
        except BaseException:
            self.drop(futures)
            raise

    def _result(self, future: Any, watch: Watch, addresses: set[str]) -> Any:
        """Fetch what a task has returned; until then its worker may go, and Dask would wait for another like it."""
        try:
            return fetch(self.client, future, meanwhile=lambda: self.next_event(watch, addresses), interval_seconds=POLL_SECONDS)
        except WorkersLostError:
            raise
        except Exception:
            self.check_open()
            self.raise_failure(future)
            raise

    def next_event(self, watch: Watch, addresses: set[str]) -> tuple[str, Any]:
        """Return what happens next; if the scheduler is lost, or one of the workers at `addresses`, that is an error."""
        try:
            kind, message = watch.queue.get(timeout=POLL_SECONDS)
        except queue.Empty:
            if gone := sorted(addresses - set(self._workers())):  # a worker may have gone before anybody listened
                raise WorkersLostError(f"worker {gone[0]} was lost") from None
            return "nothing", None
        if kind == "workers" and message["action"] == "remove-worker" and message["worker"] in addresses:
            raise WorkersLostError(f"worker {message['worker']} was lost")
        return kind, message

    def _workers(self) -> dict[str, dict[str, Any]]:
        """Return the workers that the scheduler knows, by address."""
        self.check_open()
        try:
            return workers_of(self.client)
        except ClusterError:
            self.check_open()
            raise

    def check_open(self) -> None:
        """Refuse to go on when the user has closed the runtime, or the scheduler is lost."""
        if self.closed:
            raise ClusterError("this runtime has been closed; open another with ClusterRuntime.open")
        if self.client.status != "running":
            raise scheduler_lost(self.client)

    def raise_failure(self, future: Any) -> None:
        """Raise what a task has raised."""
        if future.status == "finished":
            return
        self.check_open()
        if future.status == "error":
            error = future.exception()
            if isinstance(error, StateLostError):
                raise WorkersLostError(str(error)) from error
            if isinstance(error, OocGraphError):
                raise error
            raise ClusterError(f"a task failed on its worker: {error!r}") from error
        raise WorkersLostError(f"a task was {future.status}")

    def drop(self, futures: Iterable[Any]) -> None:
        """Have the scheduler forget tasks; what runs already ends, and is not heard of any more."""
        for future in futures:
            future.release()

    def place_again(self, watch: Watch) -> None:
        """Give the partitions of lost workers to others, loading what those do not hold.

        Raises
        ------
        ClusterError
            No worker is left, and none comes back in time.
        BudgetError
            The workers that are left cannot hold them.
        """
        patience = self.spec.settings.worker_timeout
        began, attempts = time.monotonic(), 0
        refused: OocGraphError | None = None
        while True:
            alive = self._workers()
            self._nannies |= {address: bool(info.get("nanny")) for address, info in alive.items()}
            lost = [p for p, address in enumerate(self.placement) if address not in alive]
            if alive:
                attempts += 1
                try:
                    self._move(lost, sorted(alive), watch)
                    return
                except WorkersLostError as error:
                    if attempts < MAX_IDLE_EPOCHS:
                        continue
                    raise ClusterError(
                        f"partitions were placed again {attempts} times, in vain: {error}; look at the workers' logs"
                    ) from error
                except BudgetError as error:
                    refused = error
            if not any(self._nannies.get(self.placement[p], False) for p in lost):
                patience = min(patience, NO_NANNY_SECONDS)
            if time.monotonic() - began > patience:
                raise refused or ClusterError(
                    f"no worker is left, and none came back within {patience:g} s; start workers and resume the search "
                    "(--resume with the search's --result-store)"
                )
            with suppress(queue.Empty):
                watch.queue.get(timeout=POLL_SECONDS)

    def _move(self, lost: Sequence[int], workers: Sequence[str], watch: Watch) -> None:
        """Place `lost` partitions on those of `workers` that hold fewest; try all before it is refused."""
        for p in lost:
            refused: OocGraphError | None = None
            for address in sorted(workers, key=lambda one: (self.placement.count(one), one)):
                before, self.placement[p] = self.placement[p], address
                try:
                    self.acquire([p], watch)
                    self.num_moves += 1
                    refused = None
                    break
                except (BudgetError, DeviceError) as error:
                    self.placement[p], refused = before, error
            if refused is not None:
                raise refused
        self.acquire(range(len(self.placement)), watch)  # a worker that came back under its old address holds nothing
