"""The benchmark of partitioning: what it reports of each policy, and of a peer that is not there."""

from __future__ import annotations

import importlib.util
import json

import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph.bench.partition import bench_partition
from oocgraph.cli import cli
from oocgraph.errors import OocGraphError
from oocgraph.types import ignore_progress


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a small Kronecker graph."""
    return oocgraph.generate_kronecker(9, tmp_path_factory.mktemp("bench") / "graph.zarr", seed=2)


def test_every_policy_is_measured_and_proved(store, tmp_path):
    """In process: one line for each policy, whose figures are of these partitions."""
    command = ["bench", "partition", store.url, "--partitions", "3", "--policy", "EEC", "--policy", "CVC", "--repeats", "2", "--json"]
    found = CliRunner().invoke(cli, [*command, "--scratch", str(tmp_path)], catch_exceptions=False)
    figures = json.loads(found.stdout)
    assert figures["num_workers"] == 0
    assert figures["num_stored_edges"] == store.attributes.num_stored_edges
    for row in figures["policies"]:
        assert row["edges_per_second"] == pytest.approx(store.attributes.num_stored_edges / row["median_seconds"])
        assert row["first_seconds"] > 0
        assert row["peak_host_bytes"] > 0
        assert 1 <= row["replication"] <= 3
        assert 1 <= row["edge_balance"] < 2
    assert [row["policy"] for row in figures["policies"]] == ["EEC", "CVC"]
    assert not list(tmp_path.iterdir())


def test_an_unknown_peer_is_refused(store):
    """Before anything runs."""
    with pytest.raises(OocGraphError, match=r"--peer metis: .*choose pymetis"):
        bench_partition(
            store, policies=["EEC"], num_partitions=2, repeats=1, open_client=None, peer="metis", memory_budget=None, scratch=None,
            progress=ignore_progress,
        )  # fmt: skip


def test_a_peer_partitions_the_same_graph_or_says_what_is_missing(store):
    """With pymetis the ratio is there; without it the message names the package."""
    asked = {"policies": ["EEC"], "num_partitions": 2, "repeats": 1, "open_client": None, "peer": "pymetis"}
    rest = {"memory_budget": None, "scratch": None, "progress": ignore_progress}
    if importlib.util.find_spec("pymetis") is None:
        with pytest.raises(OocGraphError, match="pip install pymetis"):
            bench_partition(store, **asked, **rest)
        return
    report = bench_partition(store, **asked, **rest)
    row = report.metrics["policies"][0]
    assert row["times_faster_than_peer"] == pytest.approx(report.metrics["peer_median_seconds"] / row["median_seconds"])
