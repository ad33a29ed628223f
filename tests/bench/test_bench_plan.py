"""``oocgraph bench plan`` and the calibration: ratios of what was predicted to what real searches do."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph.algorithms.calibrate import NUM_PARTS, Calibration
from oocgraph.cli import cli
from oocgraph.cluster.start import local_cluster


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    """Kronecker graph of scale 12."""
    path = tmp_path_factory.mktemp("g") / "kron.zarr"
    oocgraph.generate_kronecker(12, path)
    return path


def test_bytes_and_messages_are_those_of_real_searches(kron):
    """Every ratio is 1 where all vertices are looked at; without a cluster nothing is timed."""
    outcome = CliRunner().invoke(cli, ["bench", "plan", str(kron), "--workers", "4,6", "--not-timed", "--json"])
    assert outcome.exit_code == 0, outcome.output
    told = json.loads(outcome.stdout)
    assert [(case["dimension"], case["num_workers"]) for case in told["cases"]] == [("1d", 4), ("2d", 4), ("1d", 6), ("2d", 6)]
    assert {(case["bytes_ratio"], case["messages_ratio"], case["seconds_ratio"]) for case in told["cases"]} == {(1.0, 1.0, None)}
    text = CliRunner().invoke(cli, ["bench", "plan", str(kron), "--workers", "4", "--not-timed"])
    assert "predicted bytes" in text.stdout


@pytest.mark.slow
def test_two_workers_are_measured(kron):
    """Constants come out of real searches, none below 0; they and a search's time are measured in turn."""
    with local_cluster(workers=2, threads_per_worker=1) as client, Calibration(client, scale=10) as calibration:
        calibration.measure()
        calibration.measure()
        found = calibration.constants()
    assert min(getattr(found, name) for name in found.__slots__) >= 0
    assert found.message_seconds > 0
    assert 1e-4 < found.hop(NUM_PARTS[0]) < 10
