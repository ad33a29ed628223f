"""``oocgraph bench where``: what it measures adds up."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from oocgraph import generate_kronecker
from oocgraph.bench.where import bench_where
from oocgraph.cli import cli
from oocgraph.errors import ArgumentError
from oocgraph.types import ignore_progress


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return generate_kronecker(12, tmp_path_factory.mktemp("bench") / "k.zarr", weights=(1, 255))


def test_times_and_bytes_are_those_of_three_subjects(store):
    report = bench_where(store, "weight < 100", num_sources=2, seed=1, progress=ignore_progress, threads=1)
    found = report.metrics
    assert report.invalid == ()
    assert found["column_median_bytes"] >= store.array("out/weight").length
    assert found["filtered_median_bytes"] >= found["whole_median_bytes"] > store.edge_bytes
    assert 0 < found["byte_ratio"] < 2
    assert found["ratio"] > 0


def test_the_command(store):
    done = CliRunner().invoke(
        cli, ["bench", "where", store.url, "--where", "weight < 9", "--num-rounds", "1", "--json"], catch_exceptions=False
    )
    assert json.loads(done.stdout)["num_rounds"] == 1


def test_a_condition_that_is_none_is_refused(store):
    with pytest.raises(ArgumentError, match="no edge column 'year'"):
        bench_where(store, "year < 3", num_sources=1, seed=1, progress=ignore_progress)
