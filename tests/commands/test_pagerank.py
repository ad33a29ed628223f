"""``oocgraph pagerank``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from oocgraph import open_graph, pagerank
from tests import every_knob
from tests.capped import run_capped
from tests.commands.conftest import ROOT, command, remains


def test_answer_is_one_json_object(run, kron, tmp_path):
    said = run("pagerank", kron, "--top", 3, "--out", tmp_path / "ranks.parquet", "--json").json
    result = pagerank(kron)
    assert said["converged"] is True
    assert said["iterations"] == result.iterations == len(said["steps"])
    assert [(one["vertex"], one["rank"]) for one in said["top"]] == result.top(3)
    assert {"seconds", "bytes_read", "bytes_requested", "peak_host_bytes", "load_seconds", "result_seconds", "kept_bytes"} <= set(said)
    table = pq.read_table(tmp_path / "ranks.parquet")
    np.testing.assert_array_equal(table["rank"].to_numpy(), result.rank)
    np.testing.assert_array_equal(table["vertex"].to_numpy(), result.vertices)


def test_text_shows_the_highest(run, kron):
    outcome = run("pagerank", kron, "--top", 2, "--max-iter", 4, "--tol", 0)
    assert outcome.code == 0
    assert outcome.stdout.splitlines()[0].startswith("<PageRankResult of 4,096 vertices, highest: ")
    best = pagerank(kron, tol=0, max_iter=4).top(2)
    shown = [line.split() for line in outcome.stdout.splitlines()]
    head = shown.index(["vertex", "rank"])
    assert [[str(vertex), f"{rank:,.4g}"] for vertex, rank in best] == shown[head + 2 : head + 4]


@pytest.fixture(scope="module")
def needs(disk_path_factory):
    """Build a graph of strings, one with "=", and weights."""
    folder = disk_path_factory.mktemp("needs")
    (folder / "edges.csv").write_text("src,dst,w\na,b,1\nb,c=2,2\nc=2,a,3\na,c=2,1\n")
    table = pyarrow.csv.read_csv(folder / "edges.csv")
    pq.write_table(table, folder / "edges.parquet")
    every_knob.build(folder / "edges.parquet", folder / "g.zarr", directed=True, duplicates="sum", weight_column="w")
    return folder / "g.zarr"


@pytest.mark.parametrize(
    ("options", "wanted", "weight"),
    [
        ([], None, "w"),
        (["--unweighted"], None, None),
        (["--weight", "weight"], None, "w"),
        (["--personalize", "a"], {"a": 1}, "w"),
        (["--personalize", "c=2", "--personalize", "b=0.5"], {"c=2": 1, "b": 0.5}, "w"),
        (["--personalize", "c=2=3", "--personalize", "b=1", "--personalize", "b"], {"c=2": 3, "b": 2}, "w"),
    ],
)
def test_weights_and_personalization(run, needs, options, wanted, weight):
    assert open_graph(needs).attributes.weighted
    said = run("pagerank", needs, *options, "--tol", 1e-12, "--max-iter", 500, "--json").json
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 1), ("b", "c=2", 2), ("c=2", "a", 3), ("a", "c=2", 1)], weight="w")
    expected = nx.pagerank(graph, weight=weight, personalization=wanted, tol=1e-12, max_iter=500)
    assert {one["vertex"]: one["rank"] for one in said["top"]} == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--damping", "1"], ["damping is 1.0", "less than 1"]),
        (["--max-iter", "0"], ["--max-iter is 0"]),
        (["--max-iter", "2", "--tol", "1e-15"], ["has not converged", "after 2 iterations", "--max-iter"]),
        (["--personalize", "4096"], ["vertex 4096 is not in"]),
        (["--personalize", "3=much"], ["'much' is no number"]),
        (["--personalize", "3=-1"], ["must be finite and not negative"]),
        (["--weight", "cost"], ["'cost' is no numeric edge column"]),
        (["--weight", "cost", "--unweighted"], ["exclude each other"]),
        (["--memory", "1M"], ["set --memory"]),
        (["--out", "ranks.txt"], ["unknown extension"]),
    ],
)
def test_bad_input_is_one_message(refused, kron, options, words):
    refused("pagerank", kron, *options, words=words)


def test_checkpoint(run, refused, kron, tmp_path):
    refused("pagerank", kron, "--max-iter", 3, "--tol", 1e-9, "--checkpoint", tmp_path / "c", words=["the checkpoint goes on from here"])
    said = run("pagerank", kron, "--tol", 1e-9, "--checkpoint", tmp_path / "c", "--json").json
    assert said["steps"][0]["iteration"] == 4
    assert remains(tmp_path / "c") == ["pagerank.state"]
    refused("pagerank", kron, "--damping", 0.5, "--checkpoint", tmp_path / "c", words=["of another run", "damping", "--checkpoint"])


def test_ranks_are_made_in_place(run, kron):
    said = run("pagerank", kron, "--schedule", "in-place", "--tol", 1e-9, "--json").json
    assert said["top"] == [{"vertex": v, "rank": rank} for v, rank in pagerank(kron, schedule="in-place", tol=1e-9).top()]
    assert said["iterations"] < run("pagerank", kron, "--tol", 1e-9, "--json").json["iterations"]


@pytest.mark.capped
@pytest.mark.parametrize("schedule", ["auto", "in-place"])
def test_measured_peak_is_within_the_budget(run, tmp_path, schedule):
    """Under a cap that leaves 15 % for mapped libraries and page cache; most edges are read in every iteration."""
    store = tmp_path / "kron18.zarr"
    assert run("generate", "kronecker", store, "--scale", 18).code == 0
    options = ("--tol", 0, "--max-iter", 5, "--schedule", schedule)
    whole = run("pagerank", store, *options, "--json").json  # kernels compiled: a compiler needs more than the cap
    arguments = ("pagerank", store, *options, "--memory", "144M", "--json")
    done = run_capped(170 << 20, command(*arguments), env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert 50 << 20 < said["peak_host_bytes"] <= said["memory_budget"] == 144 << 20
    assert said["top"] == whole["top"]
