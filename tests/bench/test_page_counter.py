"""Pages that either direction would read, counted beside searches that they do not change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from oocgraph.bench.page_counter import CountingRuntime, counting_bytes
from oocgraph.engine import shard_plan
from oocgraph.engine.levels import search
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import BudgetError
from oocgraph.memory import host_bytes
from oocgraph.store.graph import open_graph
from oocgraph.verify import verify_search
from tests.reference_build import reference_build


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """Graph with hubs, of which one plane and a few edges are in memory."""
    rng, original = np.random.default_rng(8), shard_plan.plan_residency
    reference_build((rng.random(200_000) ** 3 * 9000).astype(int), rng.integers(0, 9000, 200_000), tmp_path / "g")

    def plan(sizes, **options):
        few = {"num_planes": 1, "num_resident": tuple(m // 50 for m in sizes.num_edges), "cache_slots": 7, "num_kept": 300}
        return dataclasses.replace(original(sizes, **options), **few)

    monkeypatch.setattr(shard_plan, "plan_residency", plan)
    return tmp_path / "g"


def test_counts_of_both_directions_do_not_depend_on_the_one_taken(graph):
    """A search that chooses reads little more than the better of both in each iteration."""
    found = {}
    with CountingRuntime.open(graph) as runtime:
        for direction in ("push", "pull", "auto"):
            found[direction] = search(runtime, np.array([40]), direction=direction), runtime.pages
    for one, pages in found.values():
        verify_search(open_graph(graph), one.sources, one.parent, one.level)
        assert len(pages) == len(one.iterations)
        assert pages == found["push"][1]
    chosen, pages = found["auto"]
    best = sum(map(min, pages))
    assert best > 0
    assert chosen.bytes_requested / 4096 <= 2.5 * best + 50
    for i, (_, pull_pages) in zip(found["pull"][0].iterations, pages, strict=True):
        assert i.bytes_read == 0 if not pull_pages else i.bytes_read >= 4096 * pull_pages - 4096


def test_counting_is_taken_off_and_changes_no_iteration(graph):
    """Directions, frontiers and bytes are those of a search without it; so are the bytes read in all."""
    with LocalRuntime.open(graph) as runtime:
        plain = search(runtime, np.array([40]))
    with CountingRuntime.open(graph) as runtime:
        counted = search(runtime, np.array([40]))
        found = runtime.without_counting(counted)
        search(runtime, np.array([40]), depth_limit=1)
        assert len(runtime.pages) == 2
    assert [(i.frontier, i.direction) for i in found.iterations] == [(i.frontier, i.direction) for i in plain.iterations]
    assert found.bytes_requested == counted.bytes_requested
    assert found.bytes_requested <= found.bytes_read <= counted.bytes_read
    assert 0 < found.seconds < counted.seconds


@pytest.mark.usefixtures("steady_memory")
def test_counting_is_charged(graph):
    """Scratch arrays and windows are part of the budget."""
    assert counting_bytes(open_graph(graph)) > 8 << 20
    with pytest.raises(BudgetError, match="counting pages"):
        CountingRuntime.open(graph, memory_budget=host_bytes() + (9 << 20))
