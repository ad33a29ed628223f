"""``oocgraph bench calls``: every function is called, and a call on a small graph costs little."""

from __future__ import annotations

import json

from click.testing import CliRunner

import oocgraph
from oocgraph.bench.calls import _calls, bench_calls
from oocgraph.cli import cli
from oocgraph.resources import CAPABILITIES
from oocgraph.types import ignore_progress

NOT_CALLED = {
    "run", "condensation", "topological_generations", "partition_graph", "open_runtime", "build_csr", "generate_kronecker",
    "generate_uniform", "generate_grid", "export_graph", "check_store", "verify_bfs", "verify_components", "verify_sssp", "verify_cores",
    "plan_bfs", "estimate", "append_edges", "merge_graphs",
}  # fmt: skip


def test_every_function_that_analyses_is_called():
    assert CAPABILITIES.keys() - NOT_CALLED <= _calls().keys()


def test_calls_are_timed():
    metrics = bench_calls(num_rounds=2, progress=ignore_progress).metrics
    least = {row["name"]: row["least_ms"] for row in metrics["calls"]}
    assert all(0 < row["least_ms"] <= row["median_ms"] for row in metrics["calls"])
    assert metrics["worst_ms"] == least[metrics["worst"]] == max(least.values())


def test_calls_find_what_they_are_asked_for():
    """Of a path of ten vertices with two cycles."""
    calls = _calls()
    assert calls["bfs"]().depth == 7
    assert calls["connected_components"]().num_components == 1
    assert calls["edges from strings"]().num_vertices == calls["edges from arrays"]().num_vertices
    assert isinstance(calls["sssp"](), oocgraph.SSSPResult)


def test_the_command_prints_each():
    shown = CliRunner().invoke(cli, ["bench", "calls", "--num-rounds", "1"])
    assert shown.exit_code == 0, shown.output
    assert "betweenness_centrality" in shown.output
    found = json.loads(CliRunner().invoke(cli, ["bench", "calls", "--num-rounds", "1", "--json"]).stdout)
    assert found["num_rounds"] == 1
