"""One computation on a Dask cluster: its workers checked before it begins, watched while it lasts, notified when it has ended.

In: a client. Out: a `ClusterSession`, under which searches, products, partitionings and traversals over parts run alike: what a worker
must have and see, when it counts as lost, how the result of a task is fetched, and what is given back at the end. What is done about a
lost worker differs: see `rerun` here, `oocgraph.cluster.placement` for what workers hold, and
`oocgraph.cluster.supersteps` for what is done in steps.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from oocgraph.clients import ask, check_client, fetch, scheduler_loss_reported, scheduler_lost, wait_for_worker, why_lost, workers_of
from oocgraph.cluster import worker as tasks
from oocgraph.cluster.events import Watch
from oocgraph.cluster.preflight import SharedFolder, check_workers, clients_of
from oocgraph.cluster.silence import SilenceWatch
from oocgraph.cluster.specs import StateLostError
from oocgraph.cluster.worker import OocGraphPlugin
from oocgraph.config import settings
from oocgraph.errors import ArgumentError, ClusterError, OocGraphError
from oocgraph.resources import seceded

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""Interval between checks of scheduler and workers while no event arrives."""

BROADCAST_SECONDS = 2.0
"""How long an answer of all workers is waited for before those that are left are asked again."""

ATTEMPTS = 3
"""Times that a computation without logs is begun when workers are lost meanwhile."""

Found = TypeVar("Found")


class WorkersLostError(ClusterError):
    """A worker that the computation needs has gone; others can take its part."""


class ClusterSession:
    """The workers of a client, for one computation or one opened graph. Use it in a ``with`` statement.

    Parameters
    ----------
    client
        A `distributed.Client`.

    Attributes
    ----------
    lease
        Name of what is reserved on the workers; begins with that of the client.
    closed
        Whether workers have been asked to give back what they hold.

    Raises
    ------
    ClusterError
        The client is closed, lost its scheduler, or is asynchronous.
    """

    def __init__(self, client: Any) -> None:
        check_client(client)
        self.client = client
        self.lease = f"{client.id}/{uuid.uuid4().hex}"
        self.closed = False
        self._silence = SilenceWatch(client, settings().silent_worker_timeout)

    def __enter__(self) -> Self:
        self._silence.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Have the workers give back what they hold for this session; a silent one must not hold that up. Closing again does nothing."""
        if not self.closed:
            self.closed = True
            try:
                self.tell_all(tasks.release, self.lease)
            finally:
                self._silence.__exit__(None, None, None)

    @contextmanager
    def loss_reported(self) -> Iterator[None]:
        """Compute in this context: the loss of the scheduler is one error, whatever Dask raises, and a task leaves its worker's threads."""
        with seceded(), scheduler_loss_reported(self.client):
            yield

    # Before it begins.

    def find_workers(self, url: str | None, fingerprint: str | None, folder: SharedFolder | None = None) -> dict[str, dict[str, Any]]:
        """Wait for workers, check them (`check_workers`) and prepare them; returns what each says of itself, by address.

        Raises
        ------
        ClusterError
            No worker comes in time, one has another version, or does not see the graph or the folder.
        """
        with self.loss_reported():
            wait_for_worker(self.client, settings().worker_timeout)
            replies = check_workers(self.client, url, fingerprint, folder)
            self._release_what_is_left()
            self.prepare()
        return replies

    def prepare(self) -> None:
        """Give every worker the plugin, also those that come later or are started again."""
        ask(self.client, self.client.register_plugin, OocGraphPlugin())

    def _release_what_is_left(self) -> None:
        """Give back what clients hold that are gone without having closed their sessions."""
        replies = ask(self.client, self.client.run, tasks.leases, on_error="ignore")
        if held := {lease for leases in replies.values() for lease in leases}:
            there = clients_of(self.client)  # asked after the workers: who holds something and is not there has gone
            for lease in sorted(held):
                if lease.partition("/")[0] not in there:
                    ask(self.client, self.client.run, tasks.release, lease, on_error="ignore")

    # While it lasts.

    def workers(self) -> dict[str, dict[str, Any]]:
        """Return the workers that the scheduler knows, by address."""
        self.check()
        try:
            return workers_of(self.client)
        except ClusterError:
            self.check()
            raise

    def check_open(self) -> None:
        """Refuse to go on when the user has closed the session.

        Raises
        ------
        ArgumentError
            It is closed.
        """
        if self.closed:
            raise ArgumentError("the runtime is closed; open another one (open_runtime)")

    def check(self) -> None:
        """Refuse to go on when the user has closed the session, or the scheduler is lost."""
        self.check_open()
        if self.client.status != "running":
            raise scheduler_lost(self.client)

    def tell_all(self, call: Callable[..., Any], name: str) -> None:
        """Call on every worker, perhaps twice, as far as they can be reached: what is gone holds nothing.

        The scheduler may go on to connect to a worker that has just died, for 30 s; those that are left are called again before.
        """
        deadline = time.monotonic() + BROADCAST_SECONDS
        left: set[str] | None = None

        def look() -> None:
            if time.monotonic() > deadline if left is None else not left <= set(workers_of(self.client)):
                raise WorkersLostError("a worker does not answer")

        while self.client.status == "running":
            try:
                ask(self.client, self.client.run, call, name, workers=left and sorted(left), on_error="ignore", meanwhile=look)
                return
            except WorkersLostError:
                left = set(workers_of(self.client))
            except ClusterError as error:  # the scheduler has just gone, and this must not hide the message about it
                logger.info("workers were not asked to drop %s: %s", name, error)
                return

    def submit(self, address: str | None, task: Callable[..., Any], *arguments: Any, key: Any = None, elsewhere: bool = False) -> Any:
        """Submit a task for one worker, or for any; with `elsewhere`, Dask may run it on another one if that is lost."""
        options: dict[str, Any] = {} if elsewhere else {"retries": 0}
        if address is not None:
            options |= {"workers": [address], "allow_other_workers": elsewhere}
        try:
            return self.client.submit(task, *arguments, key=key, pure=False, **options)
        except Exception:
            self.check()
            raise

    def call(self, address: str | None, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Submit a function that takes the plugin of the worker first (`with_plugin`); options are those of `submit`."""
        return self.submit(address, tasks.with_plugin, function, *arguments, **options)

    def at_once(self, submit: Callable[[], Found]) -> Found:
        """Submit tasks in one message to the scheduler: after one that it has sent, the client waits for 10 ms."""

        async def call() -> Found:
            return submit()

        try:
            found: Found = self.client.sync(call)
            return found
        except OocGraphError:
            raise
        except Exception:
            self.check()
            raise

    def scatter(self, value: Any, addresses: list[str]) -> Any:
        """Send something to workers.

        Raises
        ------
        WorkersLostError
            One of them has gone since it was found.
        """
        try:
            (sent,) = self.client.scatter([value], workers=addresses, broadcast=True, hash=False)
            return sent
        except Exception as error:  # of Dask: a KeyError where the scheduler knows a worker no more
            self.check_workers(addresses)
            raise ClusterError(f"a vector or a matrix could not be sent to the workers: {error!r}; see their logs") from error

    def check_workers(self, addresses: Iterable[str]) -> None:
        """Notice a worker that has gone before anybody listened."""
        if gone := sorted(set(addresses) - set(self.workers())):
            raise WorkersLostError(f"worker {gone[0]} was lost")

    def next_event(self, watch: Watch, addresses: set[str]) -> tuple[str, Any]:
        """Return what happens next; if the scheduler is lost, or one of the workers at `addresses`, that is an error."""
        watch.follow(addresses)
        try:
            kind, message = watch.queue.get(timeout=POLL_SECONDS)
        except queue.Empty:
            self.check_workers(addresses)
            return "nothing", None
        if kind == "lost" and message in addresses:
            raise WorkersLostError(f"worker {message} was lost")
        return kind, message

    def gather(self, futures: Mapping[Any, str], use: Callable[[int, Any], None] | None = None, *, needed: Iterable[str] = ()) -> list[Any]:
        """Fetch what tasks return, each with its worker, in order; `use` takes each instead of the list that is returned.

        The first failure is raised: of a task, of its worker, or of another one that is `needed`; the scheduler then forgets the tasks.
        """
        addresses, found = {*futures.values(), *needed}, list[Any]()
        try:
            for i, future in enumerate(futures):
                result = self._result(future, addresses, futures)
                if use is None:
                    found.append(result)
                else:
                    use(i, result)
            return found
        except BaseException:
            self.drop(futures)
            raise

    def _result(self, future: Any, addresses: set[str], others: Iterable[Any]) -> Any:
        """Fetch what a task has returned; until then its worker may go, and Dask would wait for another like it."""

        def look() -> None:
            self.check_workers(addresses)
            for one in others:
                if one.status not in ("pending", "finished"):
                    self.raise_failure(one, addresses)

        try:
            return fetch(self.client, future, meanwhile=look, interval_seconds=POLL_SECONDS)
        except WorkersLostError:
            raise
        except Exception as error:
            self.check()
            self.raise_failure(future, addresses)
            self.check_workers(addresses)
            if isinstance(error, CancelledError):  # what the worker was sent went with it
                raise WorkersLostError("a worker was lost with what it had been sent") from error
            raise

    def combine(self, partials: Mapping[Any, str], function: Callable[..., Any], *arguments: Any) -> dict[Any, str]:
        """Combine results as a tree, each pair on the worker of its first; `function` takes the arguments and both. Returns the last."""
        found = dict(partials)
        while len(found) > 1:
            left = list(found.items())
            found = {}
            for (one, address), *other in (left[i : i + 2] for i in range(0, len(left), 2)):
                found[self.submit(address, function, *arguments, one, other[0][0]) if other else one] = address
        return found

    def raise_failure(self, future: Any, addresses: Iterable[str]) -> None:
        """Raise what a task has raised, or say which of the workers at `addresses` it was lost with."""
        if future.status == "finished":
            return
        self.check()
        if future.status == "error":
            error = future.exception()
            if isinstance(error, StateLostError):
                raise WorkersLostError(str(error)) from error
            if isinstance(error, OocGraphError):
                raise error
            raise ClusterError(f"a task failed on its worker: {error!r}") from error
        self.check_workers(addresses)
        raise WorkersLostError(f"a task was {future.status}")

    def drop(self, futures: Iterable[Any]) -> None:
        """Have the scheduler forget tasks; what runs already ends, and is not heard of any more."""
        for future in futures:
            future.release()

    def rerun(self, compute: Callable[[], Found], lost: Callable[[], None] = lambda: None) -> Found:
        """Compute something; if a worker is lost meanwhile, call `lost` and compute it again.

        Raises
        ------
        ClusterError
            A worker was lost each time.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self.loss_reported():
                    if attempt > 1:
                        lost()  # others may be lost while it asks them
                    return compute()
            except WorkersLostError as error:
                if attempt == ATTEMPTS:
                    raise ClusterError(
                        f"{error}, as others in {ATTEMPTS - 1} attempts before; see the workers' logs{why_lost(self.client)}"
                    ) from error
                logger.warning("%s; what it had is computed again", error)
        raise AssertionError("unreachable")
