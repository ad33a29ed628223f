"""`oocgraph bench schedule`: what it reports, on a graph with hubs and one in locality order."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph.bench import schedule
from oocgraph.cli import cli
from oocgraph.config import setting


def report_of(*arguments):
    done = CliRunner().invoke(cli, ["bench", "schedule", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_paths_and_cores_are_compared(tmp_path):
    oocgraph.generate_kronecker(10, tmp_path / "g", weights=(1, 255))
    found = report_of(tmp_path / "g", "--num-sources", 2, "--schedule", "async", "--schedule", "rounds", "--peer", "scipy")
    assert found["sssp_memory_read_fraction"] == 0
    assert found["sssp_async_read_fraction"] > 0
    assert found["sssp_bytes_by_rounds"] > 0
    assert found["sssp_ratio_to_peer"] > 0
    assert found["core_seconds_by_rounds"] > 0
    assert "core_peer" not in found
    assert not any(name.startswith("bfs") for name in found)


def test_searches_of_a_graph_in_locality_order(tmp_path):
    with setting("vertex-order", "locality"):
        oocgraph.generate_grid((40, 40), tmp_path / "g")
    found = report_of(tmp_path / "g", "--num-sources", 1)
    assert {"bfs_memory_median_seconds", "bfs_async_median_seconds", "core_async_median_seconds"} <= set(found)
    assert "sssp_async_median_seconds" not in found


def test_work_lists_are_measured(tmp_path):
    oocgraph.generate_kronecker(8, tmp_path / "g")
    found = report_of(tmp_path / "g", "--algorithm", "worklist", "--threads", 2)
    assert found["worklist_items"] == (1 << 20) - 1
    assert 0 <= found["worklist_inversion_share"] <= 1
    assert found["worklist_push_and_pop_ns"] > 0
    assert "core_async_median_seconds" not in found


def test_a_result_that_differs_is_reported(tmp_path, monkeypatch):
    oocgraph.generate_kronecker(8, tmp_path / "g")
    monkeypatch.setattr(schedule, "_invalid", lambda *_: ["core, rounds, run 0: another result than in memory"])
    done = CliRunner().invoke(cli, ["bench", "schedule", str(tmp_path / "g"), "--num-sources", "1"])
    assert done.exit_code == 1
    assert "another result" in done.stdout + done.stderr


@pytest.mark.parametrize("peer", ["nobody", "gapbs:/no/such/program"])
def test_a_peer_that_is_none_is_refused(tmp_path, peer):
    oocgraph.generate_kronecker(8, tmp_path / "g", weights=(1, 9))
    done = CliRunner().invoke(cli, ["bench", "schedule", str(tmp_path / "g"), "--peer", peer])
    assert done.exit_code != 0
    assert not done.stdout
