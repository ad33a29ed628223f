"""``oocgraph bench analysis``: time, bytes, and peers that find the same as we do."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph.bench.analysis import ANALYSES, bench_analysis
from oocgraph.cli import cli
from oocgraph.commands.bench_analyses import NAMES
from oocgraph.types import ignore_progress

GAPBS = """#!/bin/sh
test -f "$2" && test "$3 $4 $5" = "-n 3 -a" || exit 3
echo "{count} triangles"
echo "Trial Time:          0.08"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return oocgraph.generate_kronecker(9, tmp_path_factory.mktemp("bench") / "k.zarr")


@pytest.fixture(scope="module")
def directed(tmp_path_factory):
    rng = np.random.default_rng(1)
    return oocgraph.build_csr(
        (rng.integers(0, 300, 900), rng.integers(0, 300, 900)), tmp_path_factory.mktemp("d") / "d.zarr", directed=True
    )


def measured(store, name, **options):
    return bench_analysis(store, name, num_rounds=2, progress=ignore_progress, threads=2, **options)


def test_the_command_has_all_of_them():
    """Components have a command of their own."""
    assert {*NAMES, "components"} == set(ANALYSES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("triangles", "networkx"), ("spanning-forest", "scipy"), ("hits", "networkx"), ("eigenvector", "networkx"),
        ("coloring", "networkx"), ("betweenness", "networkx"), ("louvain", "networkx"), ("label-propagation", None),
    ],
)  # fmt: skip
def test_a_peer_finds_the_same(store, name, peer):
    report = measured(store, name, peer=peer)
    assert report.invalid == ()
    assert report.metrics["median_seconds"] > 0
    assert report.metrics["read_fraction"] >= 1
    assert peer is None or report.metrics["ratio_to_peer_1"] > 0


def test_strong_components_are_scipys(directed):
    report = measured(directed, "scc", peer="scipy")
    assert report.invalid == ()
    peer = nx.DiGraph(directed.to_scipy().toarray() != 0)
    assert report.metrics["num_components"] == report.metrics["peer_1_num_components"] == nx.number_strongly_connected_components(peer)


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_peer_that_counts_otherwise_makes_the_result_invalid(store, tmp_path, wrong):
    count = oocgraph.triangles(store).num_triangles
    program = tmp_path / "tc"
    program.write_text(GAPBS.format(count=count + wrong))
    program.chmod(0o755)
    report = measured(store, "triangles", peer=f"gapbs:{program}", scratch=str(tmp_path))
    assert report.metrics["peer_1_median_seconds"] == pytest.approx(0.08)
    assert len(report.invalid) == 2 * wrong
    if wrong:
        assert f"finds num_triangles {count + 1:,}, not {count:,}" in report.invalid[0]


def test_the_command_prints_one_object(store):
    done = CliRunner().invoke(cli, ["bench", "analysis", "triangles", store.url, "--num-rounds", "1", "--json"], catch_exceptions=False)
    said = json.loads(done.stdout)
    assert said["num_triangles"] == oocgraph.triangles(store).num_triangles
    done = CliRunner().invoke(cli, ["bench", "analysis", "triangles", store.url, "--peer", "scipy"])
    assert done.exit_code == 2
    assert "unknown; choose networkx or gapbs:PATH" in done.output
