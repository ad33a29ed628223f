"""`oocgraph triangles`: what it prints and writes, what it refuses, and that it holds what it promises."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


def test_triangles_are_shown_and_written(run, kron, tmp_path):
    said = run("triangles", kron, "--top", 3, "--memory", "1G", "--out", tmp_path / "t.parquet", "--json").json
    result = oocgraph.triangles(kron)
    assert said["num_triangles"] == result.num_triangles > 0
    assert said["top"] == [{"vertex": vertex, "triangles": count} for vertex, count in result.top(3)]
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == ["vertex", "triangles", "clustering"]
    assert table["triangles"].to_pylist() == result.triangles.tolist()
    assert "  triangles " in run("triangles", kron).stdout


def test_what_cannot_be_done_is_refused(run, refused, kron, tmp_path):
    refused("triangles", tmp_path / "no.zarr", words=["no.zarr"])
    (tmp_path / "e.csv").write_text("1,2\n2,3\n1,2\n")
    assert run("build", tmp_path / "e.csv", tmp_path / "d.zarr", "--directed").code == 0
    refused("triangles", tmp_path / "d.zarr", words=["is directed", "build it with --undirected"])
    assert run("build", tmp_path / "e.csv", tmp_path / "k.zarr", "--duplicates", "keep").code == 0
    refused("triangles", tmp_path / "k.zarr", words=["duplicate edges", "build it with --duplicates drop"])
    message = refused("triangles", kron, "--memory", "30M", words=["at least"])
    assert run("triangles", kron, "--memory", message.rpartition("at least ")[2].strip()).code == 0


@pytest.mark.capped
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path):
    """And a budget that holds no more than it must still gives the right numbers, by more passes."""
    store = tmp_path / "g.zarr"
    oocgraph.generate_uniform(18, store, edge_factor=64)
    whole = run("triangles", store, "--json").json  # kernels are compiled, too
    said = run_capped(400 << 20, command("triangles", store, "--memory", "30M")).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    found = capped_json(least + (30 << 20), "triangles", store, "--memory", str(least))
    assert 50 << 20 < found["peak_host_bytes"] <= least
    assert found["num_triangles"] == whole["num_triangles"]
    assert found["num_passes"] > whole["num_passes"] == 1
    assert found["bytes_requested"] > found["num_passes"] * found["edge_bytes"]
