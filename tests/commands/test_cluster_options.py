"""A search on a cluster from the shell: the options, the same answer as in process, and ``dask oocgraph``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import contextmanager

import pandas as pd
import pytest

from oocgraph import Resources
from tests.cluster.clusters import Cluster
from tests.commands.announced import ANNOUNCED
from tests.commands.conftest import Outcome, remains
from tests.processes import PATIENCE_SECONDS

LOCAL = ["--cluster", "local", "--workers", 2, "--threads-per-worker", 1]


@pytest.fixture
def graph(kron, tmp_path):
    """Copy of the graph in an empty folder."""
    return shutil.copytree(kron, tmp_path / "graph.zarr")


def levels(path):
    return pd.read_csv(path).set_index("vertex")["level"]


@pytest.fixture(scope="module")
def expected(run, kron, tmp_path_factory):
    """Levels from vertex 3, found in process."""
    path = tmp_path_factory.mktemp("expected") / "levels.csv"
    assert run("bfs", kron, "--source", 3, "--out", path).code == 0
    return levels(path)


def test_local_cluster_gives_the_same_answer(run, graph, tmp_path, expected):
    """Two workers that are started and stopped: valid, the levels of a search in process, nothing left behind."""
    outcome = run("bfs", graph, "--source", 3, *LOCAL, "--worker-memory", "1G", "--validate", "--json", "--out", tmp_path / "out.csv")
    assert outcome.json["valid"]
    assert outcome.json["num_reached"] == (expected >= 0).sum()
    assert outcome.json["client_peak_host_bytes"] > 0
    assert outcome.stderr == ""
    assert levels(tmp_path / "out.csv").equals(expected)
    assert remains(tmp_path) == ["graph.zarr", "out.csv"]


@pytest.mark.parametrize("command", ["pagerank", "components", "core", "sssp"])
def test_other_commands_on_a_running_scheduler(run, graph, scheduler_file, tmp_path, command):
    """The answer of one process, and what the client has held."""
    where, more = ["--scheduler", scheduler_file, "--workers", 2], []
    if command == "sssp":
        graph, more = tmp_path / "weighted.zarr", ["--source", 3]
        assert run("generate", "kronecker", graph, "--scale", 10, "--weights", "1:255").code == 0
    here, there = (
        run(command, graph, *more, *options, "--out", tmp_path / f"{command}-{len(options)}.csv", "--json").json for options in ([], where)
    )
    assert {"peak_host_bytes"} == here.keys() - there.keys()
    more_there = {"client_peak_host_bytes", "exchange"} if command == "components" else {"client_peak_host_bytes"}
    assert more_there == there.keys() - here.keys()
    found, expected = (pd.read_csv(tmp_path / f"{command}-{n}.csv") for n in (len(where), 0))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
    assert "is for a cluster; add --cluster local" in run(command, graph, *more, "--workers", 2).stderr


@pytest.fixture(scope="module")
def scheduler_file(tmp_path_factory):
    """Scheduler file of two workers that somebody else runs, and goes on running."""
    folder = tmp_path_factory.mktemp("scheduler")
    with Cluster(folder, workers=2) as cluster:
        yield folder / "scheduler.json"
        assert len(cluster.workers()) == 2


def test_running_scheduler_by_file(run, graph, scheduler_file, tmp_path, expected):
    """The same answer from workers that run already."""
    outcome = run("bfs", graph, "--source", 3, "--scheduler", scheduler_file, "--workers", 2, "--json", "--out", tmp_path / "out.csv")
    assert outcome.json["num_reached"] == (expected >= 0).sum()
    assert levels(tmp_path / "out.csv").equals(expected)
    assert remains(tmp_path) == ["graph.zarr", "out.csv"]


def test_result_store_is_kept_and_resumed(run, graph, scheduler_file, tmp_path):
    """--resume starts a search where there is none, and answers from one that has ended; --result-store is new."""
    command = ["bfs", graph, "--source", 3, "--scheduler", scheduler_file, "--validate", "--json"]
    first, again = (run(*command, "--resume", tmp_path / "found.zarr").json for _ in range(2))
    assert first["num_reached"] == again["num_reached"]
    assert remains(tmp_path) == ["found.zarr", "graph.zarr"]
    other = run(*command, "--partitions", 3, "--result-store", tmp_path / "other.zarr").json
    assert other["num_reached"] == first["num_reached"]
    assert remains(tmp_path) == ["found.zarr", "graph.zarr", "other.zarr"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", 2], ["--workers", "--cluster local"]),
        (["--threads-per-worker", 2], ["--threads-per-worker"]),
        (["--worker-memory", "1G"], ["--worker-memory"]),
        (["--partitions", 2], ["--partitions", "--scheduler"]),
        (["--result-store", "r.zarr"], ["--result-store"]),
        (["--resume", "r.zarr"], ["--resume"]),
        (["--cluster", "local", "--scheduler", "a:1"], ["--scheduler a:1", "--cluster local"]),
        (["--scheduler", "a:1", "--worker-memory", "1G"], ["--worker-memory", "run already"]),
        (["--cluster", "local", "--resume", "a", "--result-store", "b"], ["--resume", "--result-store"]),
        (["--cluster", "cloud"], ["cloud", "local", "cuda"]),
        (["--cluster", "local", "--workers", 0], ["--workers"]),
        (["--cluster", "local", "--worker-memory", "much"], ["much", "not a size"]),
        (["--cluster", "local", "--worker-memory", "10M"], ["10.0 MiB", "at least 288.0 MiB"]),
        (["--scheduler", "http://host:1"], ["--scheduler http://host:1", "tcp://host:port"]),
    ],
)
def test_wrong_options_are_refused(refused, graph, tmp_path, options, words):
    """Before anything is started; the message names the option."""
    refused("bfs", graph, "--source", 3, *options, words=words)
    assert remains(tmp_path) == ["graph.zarr"]


def test_wrong_vertex_is_told_before_a_cluster_starts(refused, graph, monkeypatch):
    """Nothing is started for an id that does not occur."""
    monkeypatch.setattr("oocgraph.cluster.start.open_client", lambda **_: pytest.fail("started"))
    refused("bfs", graph, "--source", 10**9, *LOCAL, words=["1000000000"])


class _CalledError(Exception):
    """Carries the arguments of a call."""


def test_options_reach_client_and_search(run, graph, monkeypatch):
    """Which workers, and what is done there."""

    @contextmanager
    def open_client(**options):
        opened.update(options)
        yield "client"

    def search(store, source, **options):
        assert store.check_pages
        options.pop("progress")
        raise _CalledError(source, options)

    opened = {}
    monkeypatch.setattr("oocgraph.cluster.start.open_client", open_client)
    monkeypatch.setattr("oocgraph.algorithms.bfs.bfs", search)
    where = ["--cluster", "cuda", "--workers", 3, "--threads-per-worker", 4, "--worker-memory", "2G"]
    what = ["--partitions", 6, "--result-store", "r", "--memory", "1G", "--threads", 2, "--check-pages", "--depth-limit", 5]
    with pytest.raises(_CalledError) as called:
        run("bfs", graph, "--source", 3, "--source", 4, *where, *what)
    assert opened == {"scheduler": None, "cluster": "cuda", "workers": 3, "threads_per_worker": 4, "worker_memory": "2G"}
    assert called.value.args == (
        [3, 4],
        {
            "resources": Resources(client="client", num_partitions=6, memory_budget="1G", threads=2),
            "result_store": "r",
            "resume": None,
            "depth_limit": 5,
            "target": None,
            "where": None,
            "reverse": False,
            "direction": "auto",
            "partition": None,
        },
    )


def test_without_cluster_options_nothing_of_a_cluster_is_imported(graph):
    """A search in process stays as quick to start as it was."""
    code = (
        "import sys; from oocgraph.cli import cli; "
        f"cli(['bfs', {str(graph)!r}, '--source', '3'], standalone_mode=False); assert 'distributed' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=PATIENCE_SECONDS)


def dask(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "dask", "oocgraph", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_dask_knows_the_commands(graph):
    """`dask oocgraph` lists and runs them."""
    helped = dask("--help")
    assert helped.code == 0
    assert "Breadth-first search" in helped.stdout
    assert " bfs " in helped.stdout
    assert dask("info", graph, "--json").json["num_vertices"] > 0


@pytest.mark.parametrize("arguments", [["info", "none.zarr"], ["bfs", "GRAPH", "--source", "x"], ["bfs", "GRAPH", "--source", 10**9]])
def test_dask_gives_the_same_errors(run, graph, arguments):
    """Message and exit code of `oocgraph`."""
    arguments = [graph if one == "GRAPH" else one for one in arguments]
    expected, found = run(*arguments), dask(*arguments)
    assert expected.code == 2
    assert (found.code, found.stdout, found.stderr) == (expected.code, expected.stdout, expected.stderr)


def test_dask_searches_on_a_cluster(graph, tmp_path):
    """Workers start from Dask's command too."""
    outcome = dask("bfs", graph, "--source", 3, *LOCAL, "--validate", "--json")
    assert outcome.json["valid"]
    assert outcome.stderr in ("", ANNOUNCED)
    assert remains(tmp_path) == ["graph.zarr"]
