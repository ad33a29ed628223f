"""`oocgraph sssp`: what it prints and writes, what it refuses, and that it holds what it promises."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


@pytest.fixture(scope="module")
def streets(disk_path_factory):
    path = disk_path_factory.mktemp("streets") / "streets.zarr"
    oocgraph.generate_grid((50, 50), path, keep=0.8, weights=(1, 9))
    return path


def test_distances_are_validated_and_written(run, streets, tmp_path):
    said = run("sssp", streets, "--source", 7, "--validate", "--memory", "1G", "--out", tmp_path / "d.parquet", "--json").json
    result = oocgraph.sssp(streets, 7)
    assert (said["num_reached"], said["eccentricity"], said["source"]) == (result.num_reached, result.eccentricity, 7)
    assert said["validation_seconds"] > 0
    table = pq.read_table(tmp_path / "d.parquet")
    assert table.column_names == ["vertex", "distance", "parent"]
    assert table["distance"].to_pylist() == result.distance.tolist()
    assert "vertices reached" in run("sssp", streets, "--source", 7).stdout


def test_a_target_a_limit_and_schedules(run, streets):
    result = oocgraph.sssp(streets, 7)
    for schedule in ("async", "buckets", "rounds"):
        said = run("sssp", streets, "--source", 7, "--distance-limit", 30, "--schedule", schedule, "--delta", 5, "--json").json
        assert said["eccentricity"] <= 30
        assert (said["schedule"], said["delta"]) == (schedule, 5)
        assert said["num_reached"] == int((result.distance <= 30).sum() - (result.distance < 0).sum())
    said = run("sssp", streets, "--source", 7, "--target", 8, "--json").json
    assert said["eccentricity"] == result.distance_of(8)


def test_the_budget_that_is_named_does_for_the_check_too(run, refused, streets):
    message = refused("sssp", streets, "--source", 7, "--validate", "--memory", "30M", words=["at least"])
    assert run("sssp", streets, "--source", 7, "--validate", "--memory", message.rpartition("at least ")[2].strip()).code == 0


def test_what_cannot_be_done_is_refused(refused, kron, streets, tmp_path):
    refused("sssp", tmp_path / "no.zarr", "--source", 7, words=["no.zarr"])
    refused("sssp", kron, "--source", 7, words=["has no weights", "--weight"])
    refused("sssp", streets, "--source", 99999, words=["99999"])
    refused("sssp", streets, "--source", 7, "--delta", 0, words=["--delta"])
    refused("sssp", streets, "--source", 7, "--out", tmp_path / "c.txt", words=["c.txt"])


@pytest.mark.capped
@pytest.mark.parametrize("shape", ["hubs", "streets"])
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path, shape):
    """And a budget that holds no more than it must still gives the right distances."""
    store = tmp_path / "g.zarr"
    if shape == "hubs":
        oocgraph.generate_kronecker(17, store, weights=(1, 255))
    else:
        oocgraph.generate_grid((700, 700), store, keep=0.8, weights=(1, 255))
    source = int(oocgraph.open_graph(store).read("vertices/id")[5])
    whole = run("sssp", store, "--source", source, "--validate", "--json").json  # kernels are compiled, too
    said = run_capped(400 << 20, command("sssp", store, "--source", source, "--memory", "30M")).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    found = capped_json(least + (30 << 20), "sssp", store, "--source", source, "--memory", str(least))
    assert 50 << 20 < found["peak_host_bytes"] <= least
    assert (found["num_reached"], found["eccentricity"]) == (whole["num_reached"], whole["eccentricity"])
    assert found["num_blocks_read"] >= whole["num_blocks_read"]
