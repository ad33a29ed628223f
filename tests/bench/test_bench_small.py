"""``oocgraph bench small``: figures that agree with each other, on a small graph; a wrong answer is reported."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from oocgraph import generate_kronecker, open_runtime
from oocgraph.bench import small as module
from oocgraph.cli import cli
from oocgraph.errors import ArgumentError
from oocgraph.types import ignore_progress

FEW = {"num_sources": 4, "depth_limit": 1, "seed": 1, "progress": ignore_progress}


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(10, tmp_path_factory.mktemp("bench") / "kron10.zarr")


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(module, "TINY_CALLS", 3)


def test_figures_of_a_run(kron):
    done = CliRunner().invoke(cli, ["bench", "small", kron.url, "--num-sources", "4", "--depth-limit", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["num_small"] == found["num_sources"] == 4
    assert 1 < found["median_reached"] <= found["worst_reached"] <= 1 + module.MOST_NEIGHBOURS
    assert 0 < found["median_seconds"] <= found["worst_seconds"]
    assert found["ratio_to_large_levels"] > 0
    assert min(found["tiny_bfs_seconds"], found["tiny_sssp_seconds"]) > 0


def test_another_number_of_vertices_is_told(kron, monkeypatch):
    class Wrong:
        def __init__(self, direction):
            self.num_reached = 1 if direction == "auto" else 2

    monkeypatch.setattr(module, "bfs", lambda *_, direction="auto", **__: Wrong(direction))
    with open_runtime(kron) as runtime:
        report = module.bench_small(kron, runtime, **FEW)
    assert len(report.invalid) == 4
    assert report.invalid[0].endswith("1 vertices are reached, but 2 by large levels")


def test_a_graph_without_small_surroundings_is_refused(kron, monkeypatch):
    monkeypatch.setattr(module, "MOST_REACHED", 1)
    with open_runtime(kron) as runtime, pytest.raises(ArgumentError, match="smaller depth limit"):
        module.bench_small(kron, runtime, **FEW)
