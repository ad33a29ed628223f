"""`oocgraph components`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import pyarrow.parquet as pq

import oocgraph


def test_components_are_counted_validated_and_written(run, kron, tmp_path):
    said = run("components", kron, "--validate", "--memory", "1G", "--out", tmp_path / "c.parquet", "--json").json
    result = oocgraph.connected_components(kron)
    assert said["num_components"] == result.num_components
    assert said["validation_seconds"] > 0
    table = pq.read_table(tmp_path / "c.parquet")
    assert table.column_names == ["vertex", "component"]
    assert table["component"].to_pylist() == result.component.tolist()


def test_metrics_are_printed_for_people(run, kron):
    assert "components of" in run("components", kron).stdout


def test_the_budget_that_is_named_does_for_the_check_too(run, refused, kron):
    """Which takes more than finding the components: the refusal comes before either."""
    told = refused("components", kron, "--validate", "--memory", "30M", words=["at least"])
    assert run("components", kron, "--validate", "--memory", told.rpartition("at least ")[2].strip()).code == 0


def test_what_cannot_be_done_is_refused(refused, kron, tmp_path):
    refused("components", tmp_path / "no.zarr", words=["no.zarr"])
    refused("components", kron, "--out", tmp_path / "c.txt", words=["c.txt"])
    refused("components", kron, "--memory", "30M", words=["at least"])
