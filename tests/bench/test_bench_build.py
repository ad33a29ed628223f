"""``oocgraph bench build``: every subject builds from the same source, and what differs is found."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from oocgraph.bench import build as bench
from oocgraph.cli import cli
from oocgraph.errors import OocGraphError
from oocgraph.types import ignore_progress


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "names.tsv"
    path.write_text("".join(f"a{i % 7}\tb{i % 11}\n" for i in range(500)))
    return str(path)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "numbers.parquet"
    random = np.random.default_rng(1)
    pq.write_table(pa.table({"source": random.integers(0, 2**62, 900), "target": random.integers(0, 2**62, 900)}), path)
    return str(path)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("in_memory", [False, True])
def test_all_subjects_build_from_strings_and_from_sparse_ids(names, numbers, in_memory):
    report = bench.bench_build([names, numbers], peers=bench.PEERS, num_rounds=1, progress=ignore_progress, in_memory=in_memory, threads=1)
    builds = report.metrics["builds"]
    assert report.invalid == ()
    assert [one["subject"] for one in builds] == 2 * ["oocgraph", "duckdb", "pyarrow"]
    assert all(one["median_seconds"] > 0 and one["worst_peak_bytes"] > 0 and one["ratio"] > 0 for one in builds)
    assert (builds[0]["median_written_bytes"] > 10_000) == (not in_memory)
    assert all(one["median_read_bytes"] >= 3_000 for one in builds)


def test_other_numbers_of_ids_are_invalid(names, monkeypatch):
    monkeypatch.setattr(
        bench, "_build", lambda path, edges, name, *_, **__: dict.fromkeys((*bench.QUANTITIES, "peak_bytes"), 1) | {"num_ids": len(name)}
    )
    report = bench.bench_build([names], peers=["duckdb"], num_rounds=2, progress=ignore_progress)
    assert "duckdb and oocgraph found [6, 8] distinct ids" in report.invalid[0]


def test_gapbs_builds_a_graph_as_large(names, tmp_path, monkeypatch):
    program = tmp_path / "bfs"
    program.write_text('#!/bin/sh\necho "$@" > "$0.called"\necho "Build Time:          0.5"\n')
    program.chmod(0o755)
    with pytest.raises(OocGraphError, match="must be a Kronecker graph"):
        bench.bench_build([names], peers=[f"gapbs:{program}"], num_rounds=1, progress=ignore_progress)
    made = tmp_path / "k6.parquet"
    table = pa.table({"source": np.arange(64), "target": np.arange(64)[::-1].copy()})
    pq.write_table(table.replace_schema_metadata({"oocgraph.num_vertices": "64"}), made)
    report = bench.bench_build([str(made)], peers=[f"gapbs:{program}"], num_rounds=1, progress=ignore_progress, threads=1)
    assert (tmp_path / "bfs.called").read_text().split() == ["-g", "6", "-k", "1", "-n", "1"]
    assert report.metrics["builds"][1]["median_seconds"] == 0.5


@pytest.mark.parametrize(
    ("peer", "fault"), [("neo4j", "unknown; choose duckdb, pyarrow or gapbs:PATH"), ("gapbs:/nowhere/bfs", "is not a program")]
)
def test_peers_that_are_none_are_refused(names, peer, fault):
    with pytest.raises(OocGraphError, match=fault):
        bench.bench_build([names], peers=[peer], num_rounds=1, progress=ignore_progress)


def test_a_source_that_peers_do_not_read_is_refused(tmp_path):
    (tmp_path / "a.mtx").write_text("")
    with pytest.raises(OocGraphError, match="peers read files that end in"):
        bench.bench_build([str(tmp_path / "a.mtx")], peers=[], num_rounds=1, progress=ignore_progress)


def test_the_command(names):
    done = CliRunner().invoke(cli, ["bench", "build", names, "--peer", "pyarrow", "--num-rounds", "1", "--json"], catch_exceptions=False)
    assert [one["subject"] for one in json.loads(done.stdout)["builds"]] == ["oocgraph", "pyarrow"]
