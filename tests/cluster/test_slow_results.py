"""Results that take longer to fetch than the interval between two looks at the workers."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from types import SimpleNamespace

import dask
import pytest

from oocgraph.clients import fetch
from oocgraph.cluster import phases as cluster_phases
from oocgraph.cluster import session
from oocgraph.cluster.phases import DaskPhases
from oocgraph.cluster.session import ClusterSession, WorkersLostError
from oocgraph.errors import ClusterError
from tests.processes import PATIENCE_SECONDS

LOOKS = 20
"""Looks at the workers that a transfer outlasts."""

INTERVAL_SECONDS = 0.001


class SlowClient:
    """A client with one worker, ``tcp://1``, and an event loop; at the last of some looks something happens.

    Parameters
    ----------
    loop
        Event loop of another thread.
    """

    status, address = "running", "tcp://0"

    def __init__(self, loop):
        self.loop = SimpleNamespace(asyncio_loop=loop)
        self.scheduler = self
        self.workers = {"tcp://1": {"status": "running"}}
        self.num_looks = self.num_transfers = 0
        self.arrived, self.cancelled = asyncio.Event(), threading.Event()
        self.at_last = self.arrived.set

    async def gather(self, future):
        """Transfer what a task has returned."""
        self.num_transfers += 1
        try:
            await self.arrived.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return future.found()

    async def identity(self, n_workers):
        """Tell which workers there are."""
        self.num_looks += 1
        if self.num_looks == LOOKS:
            self.at_last()
        return {"workers": dict(self.workers)}

    def submit(self, _function, *, key):
        """Take a task that waits for a worker, for which none comes."""
        return SimpleNamespace(key=key, release=lambda: None)

    def look(self):
        """Look at the workers from the thread that waits."""
        asyncio.run_coroutine_threadsafe(self.identity(-1), self.loop.asyncio_loop).result()


@pytest.fixture
def client():
    """Return a client whose transfers arrive after some looks."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield SlowClient(loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def future(found=lambda: "rows", status="finished"):
    """Return a task that has ended; `found` returns or raises what is fetched."""
    return SimpleNamespace(status=status, found=found)


def raising(error):
    """Return a function that raises an error."""

    def found():
        raise error

    return found


def fetch_from(client, one):
    """Fetch, and look at the workers meanwhile."""
    return fetch(client, one, meanwhile=client.look, interval_seconds=INTERVAL_SECONDS)


def test_a_slow_transfer_begins_once_and_arrives(client):
    """It is not begun again after each look."""
    assert fetch_from(client, future()) == "rows"
    assert (client.num_looks, client.num_transfers) == (LOOKS, 1)


@pytest.mark.parametrize("error", [ValueError("of the task"), TimeoutError("of the task"), CancelledError("of the task")])
def test_what_a_task_raises_is_raised(client, error):
    """A timeout of the task is not taken for one of the wait."""
    with pytest.raises(type(error), match="of the task"):
        fetch_from(client, future(raising(error)))


@pytest.mark.parametrize("error", [WorkersLostError("gone"), KeyboardInterrupt("gone")])
def test_a_transfer_is_cancelled_when_the_wait_ends(client, error):
    """By whatever is raised meanwhile."""
    with pytest.raises(type(error), match="gone"):
        fetch(client, future(), meanwhile=raising(error), interval_seconds=INTERVAL_SECONDS)
    assert client.cancelled.wait(PATIENCE_SECONDS)


def test_a_transfer_that_dask_cancels_is_an_error_of_its_own(client):
    """``asyncio.CancelledError`` is no `Exception`: Dask's own wait ended with an ``UnboundLocalError``."""
    with pytest.raises(CancelledError):
        fetch_from(client, future(raising(asyncio.CancelledError())))


def test_nothing_is_fetched_without_a_scheduler(client):
    """The client may have lost its connection before."""
    client.status = "closed"
    with pytest.raises(ClusterError, match="connection to the scheduler was lost"):
        fetch_from(client, future())
    assert client.num_transfers == 0


def without_init(kind, **attributes):
    """Return an object that has only what fetching needs."""
    made = kind.__new__(kind)
    made.__dict__.update(attributes)
    return made


def fetch_in_session(client, one):
    """Fetch what the one worker of a task has found."""
    made = without_init(ClusterSession, client=client, closed=False)
    return made._result(one, {"tcp://1"}, [one])


def fetch_in_partitioning(client, one):
    """Fetch the counts of many blocks, for which any worker will do."""
    made = without_init(ClusterSession, client=client, closed=False)
    return without_init(DaskPhases, _session=made)._result(one, "edges")


CALLERS = [(fetch_in_session, "tcp://1 was lost"), (fetch_in_partitioning, "no worker")]


@pytest.fixture
def often(monkeypatch):
    """Look at the workers often, and wait for none."""
    for module in (session, cluster_phases):
        monkeypatch.setattr(module, "POLL_SECONDS", INTERVAL_SECONDS)
    with dask.config.set({"oocgraph.worker-timeout": INTERVAL_SECONDS}):
        yield


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("fetch_in", [caller for caller, _ in CALLERS])
def test_a_slow_result_arrives(client, fetch_in):
    """Of a search, a product and a partitioning."""
    assert fetch_in(client, future()) == "rows"
    assert client.num_looks >= LOOKS
    assert client.num_transfers == 1


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("status", ["finished", "pending"])
@pytest.mark.parametrize(("fetch_in", "message"), CALLERS)
def test_a_slow_result_is_given_up_when_its_worker_goes(client, fetch_in, message, status):
    """Dask has the task wait for another worker like it, and the wait would never end."""
    client.at_last = client.workers.clear
    with pytest.raises(ClusterError, match=message):
        fetch_in(client, future(status=status))
    assert client.cancelled.wait(PATIENCE_SECONDS)


def test_a_task_that_is_cancelled_has_lost_its_worker(client):
    """What a worker was sent goes with it, and Dask cancels the tasks that need it, before a look finds the worker gone."""
    client.arrived.set()
    with pytest.raises(WorkersLostError, match="cancelled"):
        fetch_in_session(client, future(raising(CancelledError("gone")), status="cancelled"))


def test_the_worker_of_a_cancelled_task_is_named(client):
    """The scheduler has forgotten the worker before it cancels what needed it."""
    client.arrived.set()
    client.workers.clear()
    with pytest.raises(WorkersLostError, match="worker tcp://1 was lost"):
        fetch_in_session(client, future(raising(CancelledError("gone")), status="cancelled"))


def test_an_error_of_a_task_is_told_as_one(client):
    """With what was raised; its workers are there."""
    client.arrived.set()
    error = ValueError("of the task")
    failed = future(raising(error), status="error")
    failed.exception = lambda: error
    with pytest.raises(ClusterError, match=r"failed on .*worker.*of the task"):
        fetch_in_session(client, failed)


def test_a_worker_that_goes_before_it_is_sent_anything_is_a_lost_one(monkeypatch):
    """Dask's scheduler then knows no such worker, and says so by a KeyError."""

    def scatter(*_, **__):
        raise KeyError("tcp://1")

    monkeypatch.setattr(session, "workers_of", lambda client: {})
    client = SimpleNamespace(status="running", scatter=scatter)
    with pytest.raises(WorkersLostError, match="tcp://1 was lost"):
        without_init(ClusterSession, client=client, closed=False).scatter(None, ["tcp://1"])


def test_workers_that_are_left_are_called_without_those_that_have_died(client, monkeypatch):
    """While the scheduler still tries to connect to a worker that has just died, nothing waits for it."""
    monkeypatch.setattr(session, "BROADCAST_SECONDS", INTERVAL_SECONDS)
    called = []

    async def run(call, name, *, workers, on_error):
        called.append(workers)
        if len(called) == 2:
            client.workers.popitem()  # another one dies meanwhile
        if len(called) < 3:
            await client.arrived.wait()

    client.run = run
    client.workers["tcp://2"] = {"status": "running"}
    without_init(ClusterSession, client=client, closed=False).tell_all(print, "name")
    assert called == [None, ["tcp://1", "tcp://2"], ["tcp://1"]]
