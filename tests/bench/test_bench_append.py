"""``oocgraph bench append``: both stores are the same, and a store that is not is reported."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from oocgraph.bench import append as bench
from oocgraph.cli import cli
from oocgraph.errors import ArgumentError, InputError
from oocgraph.types import ignore_progress

OPTIONS = {"scale": 10, "percent": 1, "num_rounds": 1, "directed": False, "folder": None, "memory_budget": None, "threads": 1}


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_append_writes_less_than_a_build(directed):
    report = bench.bench_append(None, **{**OPTIONS, "directed": directed}, progress=ignore_progress)
    found = report.metrics
    assert report.invalid == ()
    assert found["new_edges"] == found["edges"] // 100
    assert 0 < found["append_median_written_bytes"] < found["build_median_written_bytes"]
    assert found["ratio"] > 0


def test_stores_that_differ_are_invalid(monkeypatch):
    """Here because some of the new edges are not appended."""
    real = bench.append_with_report

    def fewer(graph, edges, options):
        return real(graph, ([0], [1]), replace(options))

    monkeypatch.setattr(bench, "append_with_report", fewer)
    assert bench.bench_append(None, **OPTIONS, progress=ignore_progress).invalid


def test_the_command(tmp_path):
    done = CliRunner().invoke(
        cli, ["bench", "append", "--scale", "8", "--num-rounds", "1", "--folder", str(tmp_path), "--json"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert json.loads(done.stdout)["store_bytes"] > 0
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_edge_list_is_refused(tmp_path):
    (tmp_path / "e.parquet").write_text("no")
    with pytest.raises(InputError, match=r"is no Parquet file .*; give one"):
        bench.bench_append(str(tmp_path / "e.parquet"), **OPTIONS, progress=ignore_progress)
    with pytest.raises(ArgumentError, match="percent is 100"):
        bench.bench_append(None, **{**OPTIONS, "percent": 100}, progress=ignore_progress)
