"""`oocgraph core`: what it prints and writes, what it refuses, and that it holds what it promises."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


def test_core_numbers_are_validated_and_written(run, kron, tmp_path):
    said = run("core", kron, "--validate", "--memory", "1G", "--out", tmp_path / "c.parquet", "--json").json
    result = oocgraph.core_numbers(kron)
    assert said["degeneracy"] == result.degeneracy
    assert said["validation_seconds"] > 0
    table = pq.read_table(tmp_path / "c.parquet")
    assert table.column_names == ["vertex", "core_number"]
    assert table["core_number"].to_pylist() == result.core_number.tolist()
    assert "largest core number" in run("core", kron, "--schedule", "rounds").stdout


def test_what_cannot_be_done_is_refused(run, refused, kron, tmp_path):
    refused("core", tmp_path / "no.zarr", words=["no.zarr"])
    refused("core", kron, "--out", tmp_path / "c.txt", words=["c.txt"])
    message = refused("core", kron, "--validate", "--memory", "30M", words=["at least"])
    assert run("core", kron, "--validate", "--memory", message.rpartition("at least ")[2].strip()).code == 0


@pytest.mark.capped
@pytest.mark.parametrize("shape", ["hubs", "streets", "directed"])
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path, shape):
    """And a budget that holds no more than it must still gives the right numbers."""
    store = tmp_path / "g.zarr"
    if shape == "streets":
        oocgraph.generate_grid((1000, 1000), store, keep=0.8)
    elif shape == "hubs":
        oocgraph.generate_kronecker(17, store)
    else:
        assert run("generate", "kronecker", "--scale", 17, "--edges", tmp_path / "e.parquet").code == 0
        assert run("build", tmp_path / "e.parquet", store, "--directed").code == 0
    whole = run("core", store, "--validate", "--json").json  # kernels are compiled, too
    said = run_capped(400 << 20, command("core", store, "--memory", "30M")).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    found = capped_json(least + (30 << 20), "core", store, "--memory", str(least))
    assert 50 << 20 < found["peak_host_bytes"] <= least
    assert found["degeneracy"] == whole["degeneracy"]
    assert found["num_blocks_read"] >= whole["num_blocks_read"]
