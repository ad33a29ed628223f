"""Rows that a pull puts off are found as if one thread had looked through them: in memory, on disk, and partly both."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import oocgraph
from oocgraph.engine import cpu_engine, shard_plan
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.long_rows import look_through

N = 1 << 18


@pytest.fixture(scope="module")
def hubs(tmp_path_factory):
    """Three vertices with 2^18, 2^17 and 2^16 neighbours, which a long path reaches at last, and edges at random between those."""
    rng = np.random.default_rng(0)
    stars = [(np.full(N >> k, N + k), rng.permutation(N)[: N >> k]) for k in range(3)]
    path = np.concatenate([[int(stars[2][1][-1])], np.arange(N + 3, N + 60)])
    edges = [*stars, (path[:-1], path[1:]), (rng.integers(0, N, N // 4), rng.integers(0, N, N // 4))]
    source, target = (np.concatenate(one) for one in zip(*edges, strict=True))
    return oocgraph.build_csr((source, target), tmp_path_factory.mktemp("hubs") / "graph.zarr"), N + 59


@pytest.fixture
def looked(monkeypatch):
    """Numbers of rows that each pull has put off."""
    rows = []

    def counting(state, adjacency, long_rows, *arguments):
        rows.append(int(long_rows.count[0]))
        return look_through(state, adjacency, long_rows, *arguments)

    monkeypatch.setattr(cpu_engine, "look_through", counting)
    return rows


def search(store, source, direction):
    with LocalRuntime.open(store, threads=2) as runtime:
        found = oocgraph.bfs(store, source, runtime=runtime, direction=direction)
        held = runtime.graph.pull.resident.size
    return found, held


@pytest.mark.parametrize("direction", ["pull", "auto"])
@pytest.mark.parametrize("limit", [100, 5000, 1 << 16])
def test_parents_as_by_one_thread(hubs, looked, monkeypatch, direction, limit):
    store, source = hubs
    with LocalRuntime.open(store, threads=1) as runtime:
        alone = oocgraph.bfs(store, source, runtime=runtime, direction=direction)
    monkeypatch.setattr(cpu_engine, "LONG_ROW", limit)
    found, _ = search(store, source, direction)
    np.testing.assert_array_equal(found.level, alone.level)
    np.testing.assert_array_equal(found.parent, alone.parent)
    assert direction == "auto" or max(looked) > 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("most", [0, 1, 4096])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_on_disk(hubs, looked, monkeypatch, most, share):
    """Where no edge is held, or some are; also where there is room for one such row alone, or none."""
    store, source = hubs
    whole, _ = search(store, source, "pull")
    original = shard_plan.plan_residency

    def plan(sizes, **options):
        held = tuple(int(share * m) for m in sizes.num_edges)
        return dataclasses.replace(original(sizes, **options), num_planes=0, num_resident=held, num_kept=0)

    monkeypatch.setattr(shard_plan, "plan_residency", plan)
    monkeypatch.setattr(cpu_engine, "LONG_ROW", 2000)
    monkeypatch.setattr(cpu_engine, "MOST_LONG_ROWS", most)
    looked.clear()
    found, held = search(store, source, "pull")
    assert held == int(share * store.attributes.num_stored_edges)
    np.testing.assert_array_equal(found.level, whole.level)
    oocgraph.verify_bfs(store, found)
    assert (max(looked) > 0) == (most > 0)
