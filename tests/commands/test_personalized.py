"""``oocgraph personalized-pagerank``: what it prints and writes, what it refuses, and that it holds what it promises."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


def test_ranks_are_shown_and_written(run, kron, tmp_path):
    said = run("personalized-pagerank", kron, "--seed-vertex", 5, "--seed-vertex", 7, "--out", tmp_path / "r.parquet", "--json").json
    result = oocgraph.personalized_pagerank(kron, [5, 7])
    assert said["seeds"] == [5, 7]
    assert [(one["vertex"], one["rank_0"]) for one in said["top"]] == result.top(seed=5)
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column_names == ["vertex", "rank_0", "rank_1"]
    assert table["rank_1"].to_pylist() == result.rank[:, 1].tolist()


def test_what_cannot_be_done_is_refused(refused, kron):
    refused("personalized-pagerank", kron, words=["--seed-vertex"])
    refused("personalized-pagerank", kron, "--seed-vertex", 1 << 40, words=[str(1 << 40)])
    refused("personalized-pagerank", kron, "--seed-vertex", 5, "--memory", "30M", words=["at least"])


@pytest.mark.capped
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path):
    store = tmp_path / "g.zarr"
    oocgraph.generate_kronecker(17, store, weights=(1, 255))
    seeds = [word for v in oocgraph.pagerank(store).top(24) for word in ("--seed-vertex", v[0])]
    whole = run("personalized-pagerank", store, *seeds, "--json").json  # kernels are compiled, too
    said = run_capped(400 << 20, command("personalized-pagerank", store, *seeds, "--memory", "30M")).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    found = capped_json(
        least + (30 << 20), "personalized-pagerank", store, *seeds, "--memory", str(least), "--out", tmp_path / "r.parquet"
    )  # fmt: skip
    assert 50 << 20 < found["peak_host_bytes"] <= least
    assert found["top"] == whole["top"]
