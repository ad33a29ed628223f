"""The benchmark of a held-up worker: every number is there, results are valid, and the neighbour is gone in the end."""

from __future__ import annotations

import json

import psutil
from click.testing import CliRunner

import oocgraph
from oocgraph.cli import cli


def test_metrics(tmp_path):
    """Of two workers, quiet and busy, for two shares."""
    store = oocgraph.generate_kronecker(14, tmp_path / "graph.zarr")
    (tmp_path / "scratch").mkdir()
    options = ["--workers", "2", "--threads-per-worker", "1", "--num-sources", "2", "--share", "0.1", "--share", "1", "--direction", "pull"]
    found = CliRunner().invoke(cli, ["bench", "imbalance", store.url, *options, "--scratch", str(tmp_path / "scratch"), "--json"])
    assert found.exit_code == 0, found.output
    metrics = json.loads(found.stdout)
    assert metrics["exchange"] == "windows in shared memory: workers of one host"
    assert (metrics["num_workers"], metrics["shares"]) == (2, [0.1, 1.0])
    for phase in ("quiet", "busy"):
        assert len(metrics[f"{phase}_median_seconds"]) == 3
        assert metrics[f"{phase}_median_taken_vertices"][0] == metrics[f"{phase}_median_helped_seconds"][0] == 0
        for share in ("0.1", "1"):
            low, high = metrics[f"{phase}_ratio_{share}_quartiles"]
            assert 0 < low <= metrics[f"{phase}_ratio_{share}"] <= high
    assert not list((tmp_path / "scratch").iterdir())
    assert not [one for one in psutil.Process().children() if "while True: pass" in " ".join(one.cmdline())]


def test_one_worker_is_refused(tmp_path):
    """No other one could take anything over."""
    store = oocgraph.generate_kronecker(10, tmp_path / "graph.zarr")
    found = CliRunner().invoke(cli, ["bench", "imbalance", store.url, "--workers", "1", "--threads-per-worker", "1", "--num-sources", "1"])
    assert found.exit_code == 2
    assert "nothing can be taken over: 1 worker, windows in shared memory: one worker; use two workers or more" in found.stderr
