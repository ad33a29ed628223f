"""`oocgraph betweenness`: what it prints and writes, what it refuses, and that it holds what it promises."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


def test_values_are_those_of_the_function(run, kron, tmp_path):
    out = tmp_path / "b.parquet"
    said = run("betweenness", kron, "--samples", 20, "--seed", 4, "--absolute", "--endpoints", "--top", 3, "--out", out, "--json").json
    result = oocgraph.betweenness_centrality(kron, 20, seed=4, normalized=False, endpoints=True)
    assert (said["num_sources"], said["depth"]) == (20, result.depth)
    assert [(one["vertex"], one["centrality"]) for one in said["top"]] == result.top(3)
    assert pq.read_table(out)["centrality"].to_pylist() == result.centrality.tolist()
    assert "BetweennessResult" in run("betweenness", kron, "--samples", 1).stdout


def test_what_cannot_be_done_is_refused(refused, kron, tmp_path):
    refused("betweenness", tmp_path / "no.zarr", words=["no.zarr"])
    refused("betweenness", kron, "--samples", 10**9, words=["--samples is 1000000000; it must be a whole number from 1 to", "leave it out"])
    refused("betweenness", kron, "--memory", "20M", words=["numbers of paths", "set --memory to at least"])


@pytest.mark.capped
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path):
    """At the smallest budget that works."""
    store, options = tmp_path / "g.zarr", ["--samples", "16"]
    oocgraph.generate_kronecker(18, store)
    assert run("betweenness", store, "--samples", 1).code == 0  # kernels are compiled, too
    said = run_capped(512 << 20, command("betweenness", store, "--memory", "20M", *options)).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    found = capped_json(int(least * 1.18), "betweenness", store, "--memory", str(least), *options, "--out", tmp_path / "b.parquet")
    assert 50 << 20 < found["peak_host_bytes"] <= found["memory_budget"] == least
    assert found["edge_bytes"] < found["bytes_requested"] < 2 * (2 * found["depth"] + 1) * found["edge_bytes"]  # two batches
