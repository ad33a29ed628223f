"""``oocgraph spanning-forest``: what it prints and writes, what it refuses, and that it holds what it promises."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


def test_a_forest_is_written(run, kron, tmp_path):
    said = run("spanning-forest", kron, "--out", tmp_path / "f.parquet", "--json").json
    result = oocgraph.minimum_spanning_forest(kron)
    assert {name: said[name] for name in result.details} == result.details
    table = pq.read_table(tmp_path / "f.parquet")
    assert table.column_names == ["vertex", "parent", "weight"]
    assert table["parent"].to_pylist() == result.parent.tolist()
    largest = run("spanning-forest", kron, "--maximum", "--json").json
    assert largest["total_weight"] == oocgraph.minimum_spanning_forest(kron, maximum=True).total_weight >= said["total_weight"]
    assert "  trees " in run("spanning-forest", kron, "--unweighted").stdout


def test_what_cannot_be_done_is_refused(refused, kron, tmp_path):
    directed = oocgraph.build_csr(([1], [2]), tmp_path / "d.zarr", directed=True)
    refused("spanning-forest", directed.url, words=["directed"])
    refused("spanning-forest", kron, "--weight", "w", words=["'w' is no numeric edge column"])
    refused("spanning-forest", kron, "--memory", "30M", words=["at least"])


@pytest.mark.capped
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path):
    store = tmp_path / "g.zarr"
    oocgraph.generate_kronecker(17, store, weights=(1, 255))
    whole = run("spanning-forest", store, "--json").json
    said = run_capped(400 << 20, command("spanning-forest", store, "--memory", "30M")).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    within = ("spanning-forest", store, "--memory", str(least), "--out")
    capped_json(2 << 30, *within, tmp_path / "first.csv")  # kernels are compiled, too, those of ids that are not held as well
    found = capped_json(least + (30 << 20), *within, tmp_path / "f.csv")
    assert 50 << 20 < found["peak_host_bytes"] <= least
    assert found["total_weight"] == whole["total_weight"]
    assert (tmp_path / "f.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
