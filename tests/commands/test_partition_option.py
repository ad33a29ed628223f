"""``oocgraph bfs --partition``: 1D, 2D, and a folder of partitions; in process and on a cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from oocgraph import generate_kronecker
from tests import every_knob
from tests.commands.conftest import remains


@pytest.fixture
def graph(kron, tmp_path):
    """Copy of the graph in an empty folder."""
    return shutil.copytree(kron, tmp_path / "graph.zarr")


@pytest.mark.parametrize("partition", ["1d", "2d"])
def test_made_on_the_fly(run, graph, tmp_path, partition):
    """Valid, with messages counted by level, and nothing left behind."""
    outcome = run("bfs", graph, "--source", 3, "--partition", partition, "--partitions", 4, "--validate", "--json")
    assert outcome.json["valid"]
    assert (outcome.json["partition"], outcome.json["num_partitions"]) == (partition, 4)
    kinds = [{kind["kind"] for kind in level["exchanged"]} for level in outcome.json["iterations"]]
    assert all(kind == ({"all-to-all"} if partition == "1d" else {"gather", "broadcast"}) for kind in kinds)
    total = sum(kind["num_bytes"] for level in outcome.json["iterations"] for kind in level["exchanged"])
    assert outcome.json["exchanged_bytes"] == total > 0
    assert outcome.json["setup_seconds"] > 0
    assert remains(tmp_path) == ["graph.zarr"]


def test_a_folder_on_a_cluster(run, graph, tmp_path):
    """Two workers that are started and stopped give the levels of a search in process; the table shows what was exchanged."""
    every_knob.partition(graph, 3, "CVC", tmp_path / "parts")
    assert run("bfs", graph, "--source", 3, "--out", tmp_path / "expected.csv").code == 0
    cluster = ["--cluster", "local", "--workers", 2, "--threads-per-worker", 1, "--worker-memory", "1G"]
    outcome = run("bfs", graph, "--source", 3, "--partition", tmp_path / "parts", *cluster, "--out", tmp_path / "found.csv")
    assert outcome.code == 0, outcome.stderr
    assert "messages" in outcome.stdout
    expected, found = (pd.read_csv(tmp_path / f"{name}.csv").set_index("vertex")["level"] for name in ("expected", "found"))
    assert found.equals(expected)


def test_the_memory_that_is_named_does(tmp_path):
    """In a process as small as a user's: too little is refused before the search and named; with that much the promise is kept."""
    graph = generate_kronecker(17, tmp_path / "graph.zarr", seed=1)
    every_knob.partition(graph, 4, "CVC", tmp_path / "parts")
    command = [sys.executable, "-m", "oocgraph", "bfs", graph.url, "--source", "3", "--partition", str(tmp_path / "parts"), "--json"]
    refused = subprocess.run([*command, "--memory", "80M"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    named = refused.stderr.split("at least ")[1].split()[0]
    found = json.loads(subprocess.run([*command, "--memory", named], capture_output=True, text=True, check=True).stdout)
    assert found["peak_host_bytes"] <= found["memory_budget"]


def test_what_cannot_be_meant_is_refused(run, graph):
    """Partitions without a cluster or --partition; a direction; a folder that is not there."""
    assert "--partitions is for a cluster" in run("bfs", graph, "--source", 3, "--partitions", 4).stderr
    outcome = run("bfs", graph, "--source", 3, "--partition", "2d", "--direction", "pull")
    assert outcome.code == 2
    assert "--direction is 'pull', but a partition holds" in outcome.stderr
    assert "no such file or folder" in run("bfs", graph, "--source", 3, "--partition", "3d").stderr
