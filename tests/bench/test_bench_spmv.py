"""``oocgraph bench spmv``: figures that agree with each other, on a small graph; a result that differs is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from oocgraph import generate_kronecker, open_graph
from oocgraph.bench import spmv as module
from oocgraph.bench.spmv import bench_spmv
from oocgraph.cli import cli
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.memory import host_bytes
from oocgraph.types import ignore_progress
from tests.reference_build import reference_build
from tests.stores import rewrite

SMALL = {"num_rounds": 2, "num_parts": 8, "threads": 2, "progress": ignore_progress}


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(12, tmp_path_factory.mktemp("bench") / "kron12.zarr")


def test_figures_of_a_run(kron):
    """Each time is positive, ratios follow from times, nothing is copied when the matrix is cut."""
    done = CliRunner().invoke(cli, ["bench", "spmv", kron.url, "--peer", "scipy", "--rounds", "3", "--threads", "2", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["num_stored_edges"] == kron.attributes.num_stored_edges
    assert all(found[name] > 0 for name in found if name.endswith("seconds"))
    assert 0 < found["ratio_to_peer"] < 100
    assert found["pattern_ratio_to_peer"] > 0
    assert 1 <= found["balance"] <= 1.001
    assert found["conversion_byte_fraction"] < 0.01
    assert found["local_pointer_bytes"] >= 8 * kron.num_rows
    read = kron.array("out/indices").length * 4
    assert found["streamed_bytes_read"] >= read
    assert found["streamed_to_sequential"] > 0
    assert found["peak_host_bytes"] > found["num_stored_edges"] * 12


def test_without_a_peer_nothing_is_compared(kron):
    figures = bench_spmv(kron, **SMALL).metrics
    assert figures["peer"] is figures["ratio_to_peer"] is figures["peer_median_seconds"] is None
    assert figures["median_seconds"] > 0


def test_compressed_graph_has_no_sequential_rate(kron, tmp_path):
    figures = bench_spmv(rewrite(kron.url, tmp_path / "z", codec="zstd"), **SMALL).metrics
    assert figures["sequential_bytes_per_second"] is figures["streamed_to_sequential"] is None
    assert figures["streamed_bytes_per_second"] > 0


def test_generated_graph_and_text(tmp_path):
    done = CliRunner().invoke(cli, ["bench", "spmv", "--scale", "8", "--rounds", "1", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "ratio to peer" in done.stdout
    assert not list(tmp_path.iterdir())


def test_product_that_differs_is_exit_code_1(kron, monkeypatch):
    monkeypatch.setattr(module, "spmv", lambda matrix, x, **_: np.zeros_like(x))
    done = CliRunner().invoke(cli, ["bench", "spmv", kron.url, "--peer", "scipy", "--rounds", "1"])
    assert done.exit_code == 1
    assert "the product (public) differs from scipy's by" in done.stderr


def test_what_cannot_be_measured_is_refused(kron, tmp_path):
    with pytest.raises(OocGraphError, match="--peer mkl: unknown; choose scipy"):
        bench_spmv(kron, peer="mkl", **SMALL)
    with pytest.raises(BudgetError, match=r"set memory_budget to at least"):
        bench_spmv(kron, memory_budget=host_bytes(), **SMALL)
    reference_build([], [], tmp_path / "g", implied=(0, 3))
    with pytest.raises(OocGraphError, match="has no edge"):
        bench_spmv(open_graph(tmp_path / "g"), **SMALL)
