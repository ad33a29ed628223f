"""`oocgraph multi-source-bfs`, `closeness`, `harmonic`, `eccentricity`, `diameter`: what they print, refuse and hold."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.conftest import ROOT
from tests.commands.conftest import command as shell
from tests.commands.test_capped_commands import capped_json


@pytest.fixture(scope="module")
def grid(disk_path_factory):
    """Build a connected graph, whose diameter is known."""
    path = disk_path_factory.mktemp("grid") / "g.zarr"
    oocgraph.generate_grid((9, 12), path)
    return path


def test_searches_are_shown_and_written(run, grid, tmp_path):
    out = tmp_path / "levels.parquet"
    said = run("multi-source-bfs", grid, "--source", 0, "--source", 107, "--out", out, "--json").json
    result = oocgraph.multi_source_bfs(grid, [0, 107], distances=True)
    assert [one["depth"] for one in said["searches"]] == [19, 19]
    assert [one["sum_distances"] for one in said["searches"]] == result.sum_distances.tolist()
    assert pq.read_table(out)["level_1"].to_pylist() == result.levels[:, 1].tolist()
    assert "MultiSourceResult: 2 sources, 108 vertices" in run("multi-source-bfs", grid, "--source", 0, "--source", 107).stdout


def test_values_are_shown_and_written(run, grid, tmp_path):
    for command, function, column in (
        ("closeness", oocgraph.closeness_centrality, "closeness"), ("harmonic", oocgraph.harmonic_centrality, "harmonic"),
    ):  # fmt: skip
        result = function(grid)
        said = run(command, grid, "--json", "--out", tmp_path / f"{command}.parquet").json
        assert [one["vertex"] for one in said["top"]] == [vertex for vertex, _ in result.top(10)]
        np.testing.assert_array_equal(pq.read_table(tmp_path / f"{command}.parquet")[column], getattr(result, column))
        assert len(run(command, grid, "--vertex", 3, "--vertex", 7, "--json").json["top"]) == 2
        assert run(command, grid, "--samples", 20, "--json").json["is_estimate"]
    assert run("eccentricity", grid, "--json").json["top"][0]["eccentricity"] == 19


def test_the_diameter_is_shown(run, grid):
    said = run("diameter", grid, "--json").json
    assert (said["lower"], said["upper"], said["is_exact"]) == (19, 19, True)
    assert set(said["ends"]) in ({0, 107}, {11, 96})
    assert "DiameterResult: 19" in run("diameter", grid).stdout


def test_what_cannot_be_done_is_refused(run, refused, kron, grid):
    refused("diameter", kron, words=["is not connected", "multi_source_bfs"])
    refused("multi-source-bfs", grid, "--source", 5000, words=["5000 is not in"])
    refused("closeness", grid, "--samples", 5, "--vertex", 3, words=["leave one of them out"])
    message = refused("harmonic", grid, "--samples", 5, "--memory", "30M", words=["at least"])
    assert run("harmonic", grid, "--samples", 5, "--memory", message.rpartition("at least ")[2].strip()).code == 0


@pytest.mark.one_in(3)
@pytest.mark.capped
@pytest.mark.parametrize(
    "command",
    [
        ("closeness", "--samples", 64),
        ("multi-source-bfs", "--source", 3, "--source", 5, "--out", "levels.csv"),
        ("diameter", "--max-searches", 99),
    ],
)
def test_what_is_held_is_what_was_promised_under_a_cap(run, tmp_path, command):
    """With no more than it must have: edges do not fit, and are read again."""
    store = tmp_path / "g.zarr"
    oocgraph.generate_uniform(18, store)
    arguments = [tmp_path / one if one == "levels.csv" else one for one in command]
    assert run(arguments[0], store, *arguments[1:]).code == 0  # kernels compiled: a compiler needs more than the cap
    whole = (arguments[0], store, *arguments[1:], *(["--overwrite"] * ("levels.csv" in command)), "--json", "--memory")
    refusal = run_capped(200 << 20, shell(*whole, "60M"), env={"PYTHONPATH": str(ROOT)}).stderr
    least = int(refusal.rpartition("at least ")[2].strip().rstrip("M"))
    said = capped_json((least + 30) << 20, *whole, f"{least}M")
    assert 50 << 20 < said["peak_host_bytes"] <= said["memory_budget"] == least << 20
    assert said["bytes_requested"] > said["edge_bytes"]
