"""``oocgraph bench access``: metrics that agree with each other, on a small graph; a wrong answer is reported."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from oocgraph import generate_kronecker
from oocgraph.bench import access as module
from oocgraph.bench.access import bench_access, pages_of
from oocgraph.cli import cli
from oocgraph.errors import ArgumentError
from oocgraph.types import ignore_progress
from tests.stores import rewrite

SMALL = {"num_ids": 200, "num_seeds": 20, "fanout": [3, 2], "num_rounds": 2, "seed": 1, "memory_budget": None, "progress": ignore_progress}


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(14, tmp_path_factory.mktemp("bench") / "kron14.zarr")


def test_figures_of_a_run(kron):
    """No page is asked for twice, and ratios follow from the figures of the batches."""
    options = ["--ids", "500", "--seeds", "30", "--fanout", "4,3", "--rounds", "3", "--json"]
    done = CliRunner().invoke(cli, ["bench", "access", kron.url, *options])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["num_ids"] == 500
    assert found["num_neighbours"] > 500
    assert 0 < found["neighbour_pages"] <= kron.array("out/indices").length // 1024 + 1
    assert 0 < found["neighbour_page_ratio"] <= 1.2
    assert 0 < found["sample_page_ratio"] <= 1.2
    assert len(found["batches"]) == 3
    assert all(0 < one["num_pages"] <= one["asked_pages"] <= 1.2 * one["num_pages"] for one in found["batches"])
    assert all(one["num_edges"] > 30 and one["seconds"] > 0 for one in found["batches"])
    assert found["random_reads_per_second"] > 0
    assert found["ratio_to_random_reads"] > 0
    assert found["peak_host_bytes"] > 50 << 20


def test_pages_are_those_of_a_set():
    rng = np.random.default_rng(1)
    begin = np.cumsum(rng.integers(0, 30, 200))
    end = np.minimum(begin + rng.integers(0, 40, 200), np.append(begin[1:], 10**6))
    assert pages_of(begin, end, 16) == len({i // 16 for a, z in zip(begin, end, strict=True) for i in range(a, z)})
    assert pages_of(begin, begin, 16) == 0


def test_an_edge_that_is_none_is_told(kron, monkeypatch):
    monkeypatch.setattr(type(kron), "has_edge", lambda self, source, target, **_: np.zeros(len(source), np.bool_))
    report = bench_access(kron, **SMALL)
    assert len(report.invalid) == 2
    assert report.invalid[0].endswith("is no edge")


def test_a_compressed_graph_has_no_pages(kron, tmp_path):
    store = rewrite(kron.url, tmp_path / "z", codec="zstd")
    with pytest.raises(ArgumentError, match="without a codec"):
        bench_access(store, **SMALL)


def test_random_reads_are_as_many_as_asked(kron):
    assert module.random_reads_per_second(kron, 10**9, seed=1) > 0
