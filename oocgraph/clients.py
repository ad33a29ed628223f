"""A Dask client: whether it can be used, what the scheduler knows, and waiting that ends when the scheduler is lost.

In: a `distributed.Client`. Out: answers, or one error that says what happened and what to do. Who finds schedulers and starts workers is
`oocgraph.cluster`. `distributed` is imported when something is waited for.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from oocgraph.errors import ArgumentTypeError, ClusterError, OocGraphError
from oocgraph.memory import format_bytes
from oocgraph.text import counted

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.1
"""Between two looks for a scheduler file, for workers, or for the connection to the scheduler."""

LOOK_SECONDS = 1.0
"""Between two looks for workers, while there is nothing else to do."""

MORE_MEMORY = "give each worker more memory (memory_limit=, dask worker --memory-limit, --worker-memory)"
"""A remedy."""

RECENT_SECONDS = 300.0
"""How long ago a nanny may have ended a worker that this is a reason why workers are lost now."""


def check_client(client: Any) -> None:
    """Refuse a client that cannot be used.

    Raises
    ------
    ArgumentTypeError
        It is no client.
    ClusterError
        It is closed, lost its scheduler, is asynchronous, or speaks UCX.
    """
    if not (hasattr(client, "scheduler_info") and hasattr(client, "submit")):
        connected = ": distributed.Client(cluster)" if hasattr(client, "scheduler_address") else ""
        raise ArgumentTypeError(f"client is {client!r}; give a distributed.Client{connected}")
    if getattr(client, "asynchronous", False):
        raise ClusterError("the client is asynchronous; give one that was made with asynchronous=False")
    if client.status in ("closing", "closed"):
        raise ClusterError("the client is closed; connect a new one: distributed.Client(address)")
    if client.status != "running":
        raise scheduler_lost(client)
    protocol = str(getattr(client.scheduler, "address", "")).partition("://")[0]
    if protocol.startswith("ucx"):
        raise ClusterError(
            f"the cluster's protocol is {protocol}, but messages of oocgraph are in host memory and pass over TCP; start the cluster with "
            "protocol='tcp'"
        )


def ask(
    client: Client, method: Callable[..., Any], *arguments: Any, meanwhile: Callable[[], Any] = lambda: None, **options: Any
) -> Any:  # fmt: skip
    """Call a method of a client, such as ``client.run``, and wait for its answer as long as the client has its scheduler.

    Dask may wait for ever for the answer of a scheduler that has gone. `meanwhile` is called between two waits; what it raises ends them.

    Raises
    ------
    ClusterError
        The client has lost the scheduler.
    """

    def check_connection() -> None:
        if client.status != "running":
            raise scheduler_lost(client)
        meanwhile()

    with scheduler_loss_reported(client):
        return _await(client, partial(method, *arguments, **options), check_connection, POLL_SECONDS)


def fetch(client: Client, future: Any, *, meanwhile: Callable[[], Any], interval_seconds: float) -> Any:
    """Wait for a task and return its result, however long the transfer takes.

    Dask's ``future.result(timeout=...)`` begins the transfer again after each timeout, so a large result might never arrive, and a
    timeout at the wrong moment reaches the caller as an ``UnboundLocalError``. Here the transfer begins once.

    Parameters
    ----------
    client
        Owner of the future.
    future
        A `distributed.Future`, of a task in any state.
    meanwhile
        Called between two waits; what it raises ends the transfer. It must notice lost workers, for whose tasks Dask waits for ever.
    interval_seconds
        Between two calls of `meanwhile`.

    Raises
    ------
    ClusterError
        The client has no connection to the scheduler.
    concurrent.futures.CancelledError
        The task was cancelled.
    Exception
        Whatever the task or `meanwhile` raises.
    """
    return _await(client, partial(client.gather, future), meanwhile, interval_seconds)


def _await(client: Client, begin: Callable[[], Any], meanwhile: Callable[[], Any], interval_seconds: float) -> Any:
    """Begin a call once on the client's event loop, where it returns a coroutine, and wait for its answer."""

    async def call() -> Any:
        try:
            return await begin()
        except asyncio.CancelledError:
            _expect_end_of_gathers()
            raise

    if client.status != "running":
        raise scheduler_lost(client)
    answer = asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)
    try:
        while not wait([answer], timeout=interval_seconds).done:
            meanwhile()
        return answer.result()
    except asyncio.CancelledError as error:  # asyncio's form of the error of a cancelled task; no `except Exception` catches it
        raise CancelledError(*error.args) from error
    finally:
        answer.cancel()


def _expect_end_of_gathers() -> None:
    """Take note of how Dask's waiting ends when nobody waits for that any more: else asyncio prints a traceback for each result."""
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__qualname__", "") == "Client._gather.<locals>.wait":
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def workers_of(client: Client) -> dict[str, dict[str, Any]]:
    """Return what the scheduler knows of each worker, by address.

    Raises
    ------
    ClusterError
        The client has lost the scheduler.
    """
    scheduler = client.scheduler
    if scheduler is None:  # the client has been closed
        raise scheduler_lost(client)
    workers: dict[str, dict[str, Any]] = ask(client, scheduler.identity, n_workers=-1)["workers"]
    return workers


def is_running(worker: Mapping[str, Any]) -> bool:
    """Whether the scheduler gives tasks to a worker (one of `workers_of`): it is not closing, and not paused."""
    return bool(worker["status"] == "running")


def wait_for_workers(client: Client, num_workers: int, seconds: float) -> int:
    """Wait until some workers are there, for a time that no clock shortens or stretches; return how many there are then.

    Raises
    ------
    ClusterError
        The client has lost the scheduler.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = sum(map(is_running, workers_of(client).values()))
        if found >= num_workers or time.monotonic() >= deadline:
            return found
        time.sleep(POLL_SECONDS)


def wait_for_worker(client: Client, seconds: float) -> None:
    """Wait for the first worker.

    Raises
    ------
    ClusterError
        None comes in time.
    """
    with wanted(client):
        found = wait_for_workers(client, 1, seconds)
    if not found:
        raise no_workers(client, seconds)


def no_workers(client: Client, seconds: float) -> ClusterError:
    """Return the error of a client that has had no workers for a while, or none that Dask gives tasks to."""
    address = client.scheduler.address
    if paused := [one for one in workers_of(client).values() if one["status"] == "paused"]:
        fullest = max(paused, key=lambda one: int(one["metrics"]["memory"]))
        held, limit = (format_bytes(int(many or 0)) for many in (fullest["metrics"]["memory"], fullest["memory_limit"]))
        return ClusterError(
            f"the scheduler at {address} gives tasks to no worker: Dask has paused {counted(len(paused), 'workers')} for the memory "
            f"held (distributed.worker.memory.pause), the fullest at {held} of {limit}, and none has gone on within {seconds:g} s "
            f"(oocgraph.worker-timeout); {MORE_MEMORY}, and start them again (client.restart()){why_lost(client)}"
        )
    return ClusterError(
        f"the scheduler at {address} has no workers, and none came within {seconds:g} s (oocgraph.worker-timeout); start some: dask worker "
        f"{address}{why_lost(client)}"
    )


def wait_for_tasks(client: Client, futures: Sequence[Any], seconds: float) -> None:
    """Wait until tasks have ended, well or not.

    Raises
    ------
    ClusterError
        The client has lost the scheduler, or has had no workers for so long; or the tasks were cancelled.
    """
    from distributed import wait as wait_for

    check_workers = _attendance(client, seconds)
    with losses_reported(client), client.as_current():  # it asks the current one
        while True:
            with suppress(TimeoutError):
                wait_for(futures, timeout=LOOK_SECONDS)
                return
            check_workers()


def results_of(client: Client, futures: Sequence[Any], seconds: float) -> list[Any]:
    """Return the results of tasks, which are computed again where workers were lost.

    Raises
    ------
    ClusterError
        See `wait_for_tasks`.
    Exception
        Whatever a task raises.
    """
    with losses_reported(client):
        found: list[Any] = fetch(client, futures, meanwhile=_attendance(client, seconds), interval_seconds=LOOK_SECONDS)
    return found


def _attendance(client: Client, seconds: float) -> Callable[[], None]:
    """Return what is to be called now and then: it raises an error when no worker has run, or could run, a task for so long.

    Dask waits for ever for what they would do.
    """
    seen = time.monotonic()

    def look() -> None:
        nonlocal seen
        if any(is_running(one) or one["metrics"].get("executing") for one in workers_of(client).values()):
            seen = time.monotonic()
        elif time.monotonic() - seen > seconds:
            raise no_workers(client, seconds)

    return look


@contextmanager
def wanted(client: Client) -> Iterator[None]:
    """Have a task wait for a worker meanwhile, if there is none: an adaptive cluster starts none for anything else."""
    waiting = None
    if not any(map(is_running, workers_of(client).values())):
        waiting = client.submit(int, key=f"oocgraph-waits-{uuid.uuid4().hex}")
    try:
        yield
    finally:
        if waiting is not None:
            waiting.release()


def why_lost(client: Any) -> str:
    """Return the end of a message about lost workers: that nannies have ended some because of their memory; empty if none has."""

    def ended(seconds: float, dask_scheduler: Any = None) -> list[int]:
        """Sent by value: the scheduler may have no oocgraph."""
        import time

        notes = dask_scheduler.get_events("worker-restart-memory")
        return [said["rss"] for noted, said in notes if time.time() - noted < seconds]

    held_bytes: list[int] = []
    with suppress(Exception):  # the caller reports the loss, whether or not its reason is known
        held_bytes = ask(client, client.run_on_scheduler, ended, RECENT_SECONDS)
    if not held_bytes:
        return ""
    return (
        f"; nannies have ended {counted(len(held_bytes), 'workers')} in the last {RECENT_SECONDS / 60:g} minutes for the memory that they "
        f"held, the last one at {format_bytes(held_bytes[-1])} (distributed.worker.memory.terminate): {MORE_MEMORY}, or a "
        "smaller memory_budget"
    )


def scheduler_lost(client: Client) -> ClusterError:
    """Return the error of a client that has lost its scheduler: it may be trying to connect again, or have given up."""
    status = "" if client.status == "running" else f" (client {client.status})"
    return ClusterError(
        f"the connection to the scheduler was lost{status}; start a cluster again, connect a new client, and call again: a search with a "
        "result store resumes (bfs(resume=)), and pagerank goes on from its checkpoint=, if it had one"
    )


@contextmanager
def scheduler_loss_reported(client: Client) -> Iterator[None]:
    """Raise `scheduler_lost` where Dask raises anything because the scheduler has gone: which error that is depends on the moment."""
    from distributed.comm import CommClosedError

    try:
        yield
    except OocGraphError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if client.status == "running" and not isinstance(error, CommClosedError):
            raise
        raise scheduler_lost(client) from error


@contextmanager
def losses_reported(client: Client) -> Iterator[None]:
    """Raise `scheduler_lost` as `scheduler_loss_reported` does, and an error of the same kind for tasks that were cancelled."""
    try:
        with scheduler_loss_reported(client):
            yield
    except CancelledError as error:
        raise ClusterError(
            "what the workers were computing has been cancelled, by client.restart() or by another client, or its data were lost: make the "
            "call again"
        ) from error
