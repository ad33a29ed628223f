"""``oocgraph bench components``: what is measured, beside peers that count components as we do."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from oocgraph import OocGraphError, build_csr, generate_kronecker
from oocgraph.bench.analysis import bench_analysis
from oocgraph.cli import cli
from oocgraph.types import ignore_progress

GAPBS = """#!/bin/sh
test -f "$2" && test "$3 $4 $5" = "-n 3 -a" || exit 3
case "$2" in *degree*) count={linked};; *) count={all};; esac
echo "There are $count components"
echo "Trial Time:          0.08"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a graph that has isolated vertices."""
    return generate_kronecker(10, tmp_path_factory.mktemp("bench") / "k.zarr")


def measured(store, **options):
    return bench_analysis(store, "components", num_rounds=2, progress=ignore_progress, threads=1, **options)


@pytest.mark.parametrize("directed", [False, True])
def test_scipy_finds_as_many(directed, tmp_path):
    report = measured(build_csr(([5, 1, 9, 2], [3, 5, 7, 2]), tmp_path / "g", directed=directed), peer="scipy")
    assert report.invalid == ()
    assert report.metrics["num_components"] == 3
    assert report.metrics["ratio_to_peer_1"] > 0


def test_the_command_tells_what_was_read(store):
    done = CliRunner().invoke(cli, ["bench", "components", store.url, "--num-rounds", "1", "--json"], catch_exceptions=False)
    figures = json.loads(done.stdout)
    assert figures["edge_bytes"] == store.edge_bytes
    assert 0 < figures["plane_bytes"] < store.edge_bytes
    assert 0 <= figures["list_fraction"] < 1


@pytest.mark.parametrize("wrong", [0, 1])
def test_gapbs_on_both_orders(store, tmp_path, wrong):
    """A program that answers as GAPBS does: in degree order there are no isolated vertices; another number is invalid."""
    from oocgraph import connected_components

    found = connected_components(store)
    assert found.num_linked < found.num_components
    program = tmp_path / "cc"
    program.write_text(GAPBS.format(all=found.num_components, linked=found.num_linked + wrong))
    program.chmod(0o755)
    report = measured(store, peer=f"gapbs:{program}", scratch=str(tmp_path))
    assert report.metrics["peer_1_median_seconds"] == pytest.approx(0.08)
    assert len(report.invalid) == wrong
    assert list(tmp_path.iterdir()) == [program], "exported graphs are gone"


def test_unknown_peer_is_refused(store):
    with pytest.raises(OocGraphError, match="unknown; choose scipy or gapbs:PATH"):
        measured(store, peer="nobody")
