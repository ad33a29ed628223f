"""``--where``, ``--reverse``, several ``--target``, `oocgraph path`: what they print, what is refused, what is held for a condition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import oocgraph
from tests.capped import run_capped
from tests.commands.test_capped_commands import capped_json, command


@pytest.fixture(scope="module")
def trips(disk_path_factory):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "source": rng.integers(0, 300, 900), "target": rng.integers(0, 300, 900), "year": rng.integers(1990, 2020, 900),
        "weight": rng.integers(0, 9, 900),
    })  # fmt: skip
    path = disk_path_factory.mktemp("trips") / "g.zarr"
    oocgraph.build_csr(frame, path, directed=True, columns=["source", "target", "year"], weight="weight")
    return path


def test_conditions_of_searches(run, trips):
    where = "year < 2010"
    said = run("bfs", trips, "--source", 7, "--where", where, "--reverse", "--validate", "--json").json
    assert (said["where"], said["reverse"], said["valid"]) == (where, True, True)
    assert said["num_reached"] == oocgraph.bfs(trips, 7, where=where, reverse=True).num_reached
    said = run("sssp", trips, "--source", 7, "--where", where, "--reverse", "--validate", "--json").json
    assert said["num_reached"] == oocgraph.sssp(trips, 7, where=where, reverse=True).num_reached
    said = run("components", trips, "--where", where, "--validate", "--json").json
    assert (said["num_components"], said["where"]) == (oocgraph.connected_components(trips, where=where).num_components, where)


def test_the_search_ends_at_its_targets(run, trips):
    whole = oocgraph.bfs(trips, 7)
    near = sorted((level, vertex) for vertex, level in zip(whole.vertices.tolist(), whole.level.tolist(), strict=True) if level >= 0)
    (_, first), (depth, second) = near[2], near[len(near) // 4]
    assert run("bfs", trips, "--source", 7, "--target", first, "--target", second, "--json").json["depth"] == depth


def test_a_path(run, refused, trips):
    end = int(oocgraph.bfs(trips, 7).vertices[oocgraph.bfs(trips, 7).level == 3][0])
    said = run("path", trips, 7, end, "--json").json
    assert (said["num_edges"], said["path"][0], said["path"][-1]) == (3, 7, end)
    assert run("path", trips, 7, end).stdout.startswith("7 -> ")
    heavy = run("path", trips, 7, end, "--weight", "weight", "--where", "year >= 1990", "--json").json
    assert heavy["path"] == oocgraph.sssp(trips, 7, weight="weight").path(end).tolist()
    refused("path", trips, 7, end, "--where", "year < 0", words=["there is no path"])
    refused("path", trips, 7, 12345, words=["12345"])


@pytest.mark.parametrize("name", ["bfs", "sssp", "components"])
def test_what_is_no_condition_or_runs_elsewhere_is_refused(refused, trips, name):
    source = [] if name == "components" else ["--source", 7]
    refused(name, trips, *source, "--where", "yaer < 3", words=["there is no edge column 'yaer'; there are year", "weight"])
    refused(name, trips, *source, "--where", "__import__('os')", words=["a call is no condition"])


@pytest.mark.one_in(3)
@pytest.mark.capped
@pytest.mark.parametrize("name", ["bfs", "sssp", "components"])
def test_what_a_condition_takes_is_in_the_budget(run, tmp_path, name):
    """The smallest budget that is named works under a cap, and finds what a large one does."""
    store = tmp_path / "g.zarr"
    oocgraph.generate_kronecker(17, store, weights=(1, 255))
    arguments = [name, store, *([] if name == "components" else ["--source", int(oocgraph.open_graph(store).read("vertices/id")[5])])]
    arguments += ["--where", "weight < 100"]
    whole = run(*arguments, "--json").json  # kernels are compiled, too
    said = run_capped(400 << 20, command(*arguments, "--memory", "30M")).stderr
    least = int(said.rpartition("at least ")[2].strip().removesuffix("M")) << 20
    found = capped_json(least + (30 << 20), *arguments, "--memory", str(least))
    assert 50 << 20 < found["peak_host_bytes"] <= least
    key = "num_components" if name == "components" else "num_reached"
    assert found[key] == whole[key]
