"""``oocgraph bench results``: files and arrays of a result beside those of libraries."""

from __future__ import annotations

import json

from click.testing import CliRunner

from oocgraph import generate_kronecker
from oocgraph.bench import results
from oocgraph.bench.results import bench_results
from oocgraph.cli import cli
from oocgraph.types import ignore_progress
from tests.stores import string_store


def test_each_has_its_peer(tmp_path):
    store = generate_kronecker(10, tmp_path / "k.zarr")
    report = bench_results(store, num_rounds=2, seed=1, progress=ignore_progress)
    found = report.metrics
    assert report.invalid == ()
    assert all(found[f"{name}_ratio"] > 0 for name in results.PEERS)
    assert found["csv_file_bytes"] == found["pyarrow-csv_file_bytes"] > 1 << 10
    assert found["zarr_file_bytes"] >= found["num_ids"] * 20
    assert found["parquet_median_peak_bytes"] > 50 << 20


def test_the_command_measures_strings_too(tmp_path):
    store = string_store(tmp_path / "s.zarr", ["b", "x"], ["é", "y"], others=["alone"])
    done = CliRunner().invoke(cli, ["bench", "results", store.url, "--num-rounds", "1", "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert found["num_ids"] == 5
    assert {"parquet_ratio", "csv_ratio"} == {name for name in found if name.endswith("_ratio")}


def test_another_file_is_invalid(tmp_path, monkeypatch):
    store = generate_kronecker(8, tmp_path / "k.zarr")
    monkeypatch.setattr("oocgraph.results.writer.table_text", lambda table, header=False: b"no table")
    report = bench_results(store, num_rounds=1, seed=1, progress=ignore_progress)
    assert report.invalid == ("the csv file is not the one that pyarrow writes",)
