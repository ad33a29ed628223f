"""`oocgraph bench schedule`: what it reports, on a graph with hubs and one in locality order."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph.bench import distribution, schedule
from oocgraph.bench.distribution import PullRuntime
from oocgraph.cli import cli
from oocgraph.config import setting
from oocgraph.engine import cpu_engine
from oocgraph.engine.local import LocalRuntime


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


def test_the_distribution_of_work_is_measured(tmp_path, monkeypatch):
    """For each grain and kind: seconds, and who did and stole what; only where it is named."""
    monkeypatch.setattr(distribution, "NUM_ROUNDS", 3)
    monkeypatch.setattr(distribution, "SORT_SIZES", (1000, 50_000))
    monkeypatch.setattr(cpu_engine, "PROBE_SECONDS", 1.0)  # a pull of this graph is little work
    oocgraph.generate_kronecker(12, tmp_path / "g")
    found = report_of(tmp_path / "g", "--algorithm", "distribution", "--threads", 2, "--num-sources", 1)
    grains = found["distribution_grain_vertices"]
    assert grains == [1 << bits for bits in range(6, 19)]
    words = -(-oocgraph.open_graph(tmp_path / "g").num_rows // 64)
    for where in ("", "_beside_neighbour"):
        for kind in ("static", "dynamic"):
            name = f"distribution{where}_{kind}"
            assert found[f"{name}_pieces"][0] == words
            assert found[f"{name}_calls_median_ms"] > 0
            assert all(seconds > 0 for seconds in found[f"{name}_median_ms"] + found[f"{name}_ratio_to_calls"])
            assert all(0 <= share <= 1 for share in found[f"{name}_idle_share"])
        assert not any(found[f"distribution{where}_static_stolen"] + found[f"distribution{where}_static_missed"])
    assert found["distribution_sort_keys"] == [1000, 50_000]
    assert all(ratio > 0 for ratio in found["distribution_sort_ratio_to_numpy"])
    assert not any(name.startswith(("worklist", "core")) for name in found)


def test_pieces_are_pulled_as_whole_ranges_are(tmp_path):
    """What a pull finds does not depend on the grain or the kind, and a repeated pull leaves its state as it was."""
    with PullRuntime.open(oocgraph.generate_kronecker(12, tmp_path / "g"), threads=3) as runtime:
        runtime.search(np.zeros(1, np.int64), direction="pull")
        before, found = runtime._best.visited.copy(), []
        state = runtime._best
        for kind in ("static", "dynamic"):
            for grain in (1, 3, 64, 4096):
                runtime.pull_grain, runtime.team.asked = grain, kind
                left = LocalRuntime.pull_heads(runtime, state)
                found.append((left, state.visited.tobytes()))
                state.visited[:] = before
                runtime.repeat(kind, grain)
                assert np.array_equal(state.visited, before)
    assert len(set(found)) == 1
    assert found[0][1] != before.tobytes()


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
