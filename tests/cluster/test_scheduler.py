"""A scheduler is found by address or file, waited for, and told from whatever else answers; no wait is longer than the timeout."""

from __future__ import annotations

import json
import socket
import threading
import time
from types import SimpleNamespace

import dask
import pytest
from distributed import Client, LocalCluster

from oocgraph.clients import workers_of
from oocgraph.cluster import scheduler
from oocgraph.cluster.scheduler import connect
from oocgraph.errors import ClusterError


@pytest.fixture(scope="module")
def running():
    """Return a scheduler with one worker in this process."""
    options = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
    with LocalCluster(n_workers=1, processes=False, protocol="tcp", **options) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def patient():
    """Wait long for an answer that comes."""
    with dask.config.set({"oocgraph.worker-timeout": "10 minutes"}):
        yield


@pytest.fixture
def soon(patient):
    """Wait half a second for one that does not."""
    with dask.config.set({"oocgraph.worker-timeout": "500ms"}):
        yield


@pytest.fixture
def refused():
    """Connect must fail; return the message, which has these words."""

    def call(where, *words):
        with pytest.raises(ClusterError) as error, connect(where):
            pytest.fail("connected")
        message = str(error.value)
        assert message.startswith(f"--scheduler {where}: ")
        for word in words:
            assert word in message
        return message

    return call


@pytest.fixture
def server():
    """Start a server that treats each connection by a function; return its address."""
    sockets = []

    def start(treat):
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                sockets.append(connection)
                treat(connection)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for one in sockets:
        one.close()


def write(path, address):
    path.write_text(json.dumps({"type": "Scheduler", "address": address}))
    return path


@pytest.fixture
def free_address():
    """Address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{unused.getsockname()[1]}"


@pytest.mark.parametrize("form", ["tcp://host:port", "host:port", "file", "path"])
def test_scheduler_is_found(running, tmp_path, form):
    """By its address with or without tcp://, or by its scheduler file."""
    address = running.scheduler_address
    path = write(tmp_path / "scheduler.json", address)
    where = {"tcp://host:port": address, "host:port": address.removeprefix("tcp://"), "file": str(path), "path": path}[form]
    with connect(where) as client:
        assert client.scheduler.address == address
        assert client.status == "running"
    assert client.status == "closed"


@pytest.mark.parametrize("before", [None, "", '{"type": "Sched', "stale"])
def test_file_of_a_starting_scheduler_is_waited_for(running, tmp_path, monkeypatch, free_address, before):
    """A batch job starts its scheduler in the background: the file comes late, in pieces, or replaces one of an earlier job."""
    path = tmp_path / "scheduler.json"
    if before is not None:
        path.write_text(json.dumps({"address": free_address}) if before == "stale" else before)
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        monkeypatch.setattr(scheduler, "ATTEMPT_SECONDS", 600)
        write(path, running.scheduler_address)

    monkeypatch.setattr(scheduler, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))  # other threads sleep as ever
    monkeypatch.setattr(scheduler, "ATTEMPT_SECONDS", 0.1)
    with connect(path) as client:
        assert client.scheduler.address == running.scheduler_address
    assert waits == [scheduler.POLL_SECONDS]


@pytest.mark.usefixtures("soon")
def test_nothing_at_the_address_is_told_with_the_reason(refused, free_address):
    """The message names address, reason, timeout and the setting."""
    message = refused(free_address, f"nothing answers at {free_address}", "0.5 s", "`dask scheduler`", "worker-timeout")
    assert "Connection refused)" in message or "no answer in time)" in message  # Dask tells of the last attempt, which time may cut off


@pytest.mark.usefixtures("soon")
def test_missing_file_is_told(refused, tmp_path):
    """The message says how a scheduler writes one."""
    path = tmp_path / "none.json"
    refused(path, "no such file", f"`dask scheduler --scheduler-file {path}`", "0.5 s")


@pytest.mark.usefixtures("soon")
def test_file_left_over_is_told(refused, tmp_path, free_address):
    """Its address is named, and that the scheduler may have ended."""
    refused(write(tmp_path / "old.json", free_address), free_address, "left over from a scheduler that has ended")


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"source,target\n1,2\n", "not a scheduler file: it is no JSON"),
        (b"\x00\xff\xfe", "not a scheduler file: it is no JSON"),
        (b"[1, 2]", "not a scheduler file: it names no address"),
        (b'{"zarr_format": 3}', "not a scheduler file: it names no address"),
        (b'{"address": 8786}', "not a scheduler file: it names no address"),
        (b'{"address": "somewhere"}', "missing port number"),
        (b'{"address": "tcp', "the file is not complete"),
    ],
)
def test_wrong_file_is_told(refused, tmp_path, content, words):
    """What it is instead of a scheduler file."""
    path = tmp_path / "wrong"
    path.write_bytes(content)
    refused(path, words)


def test_folder_is_no_scheduler_file(refused, tmp_path):
    """Such as the graph, given by mistake."""
    refused(tmp_path, "Is a directory")


@pytest.mark.parametrize("address", ["http://127.0.0.1:8786", "gopher://x"])
def test_unknown_scheme_is_refused_at_once(refused, address):
    """The message says which are known."""
    refused(address, "unknown address scheme", "tcp://host:port")


@pytest.mark.usefixtures("soon")
def test_server_that_stays_silent_is_given_up(refused, server):
    """It accepts and never says a word: a client alone would wait for ever."""
    refused(server(lambda connection: None), "nothing answers", "no answer in time")


@pytest.mark.usefixtures("soon")
def test_server_that_hangs_up_is_given_up(refused, server):
    """Such as a full or foreign service."""
    refused(server(lambda connection: connection.close()), "nothing answers")


def test_server_of_another_kind_is_told(refused, server):
    """An HTTP port, such as that of the dashboard."""
    refused(server(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(99))), "is no Dask scheduler")


def test_worker_instead_of_its_scheduler_is_told(refused, running):
    """The message gives the scheduler's address."""
    (worker,) = running.workers.values()
    refused(worker.address, "is a Dask Worker, not a scheduler", f"its scheduler is {running.scheduler_address}")


def test_all_workers_are_known_at_any_moment(running):
    """Dask's client keeps one answer about its scheduler, which a periodic question for no workers may replace."""
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}), Client(running.scheduler_address) as client:
        assert all(len(workers_of(client)) == 1 for _ in range(1000))
