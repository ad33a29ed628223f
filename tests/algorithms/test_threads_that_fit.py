"""However many threads are asked for, the budget that is named is what one takes; as many work as a budget has room for."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import oocgraph
from oocgraph import BudgetError, Resources
from oocgraph.ingest.build_job import plan_sizes
from oocgraph.memory import Budget, with_threads_that_fit
from oocgraph.sparse import edge_stream
from tests.partition.cusp_cases import assert_same_bytes

MANY = 64
"""Threads whose buffers take hundreds of MiB."""

ONE, ALL = (Resources(threads=threads, device="cpu") for threads in (1, MANY))

CALLS = {
    "pagerank": oocgraph.pagerank,
    "pagerank, in place": lambda graph, **how: oocgraph.pagerank(graph, schedule="in-place", **how),
    "components": oocgraph.connected_components,
    "strong components": oocgraph.strongly_connected_components,
    "hits": oocgraph.hits,
    "closeness": lambda graph, **how: oocgraph.closeness_centrality(graph, [1, 2, 3], **how),
    "betweenness": lambda graph, **how: oocgraph.betweenness_centrality(graph, 4, seed=1, **how),
    "label propagation": lambda graph, **how: oocgraph.label_propagation(graph, seed=1, **how),
    "louvain": lambda graph, **how: oocgraph.louvain(graph, seed=1, **how),
    "triangles": oocgraph.triangles,
    "search over partitions": lambda graph, **how: oocgraph.bfs(graph, 1, partition="2d", **how),
}
"""Functions whose memory depends on the number of threads."""


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Make two graphs of some pieces, both ways and one way."""
    folder = tmp_path_factory.mktemp("graphs")
    ends = np.random.default_rng(1).integers(0, 1 << 13, (2, 1 << 17)) ** 2 >> 13
    return [oocgraph.build_csr(tuple(ends), folder / f"{directed}.zarr", directed=directed) for directed in (False, True)]


def named_by(call):
    """Return the budget that a refusal names."""
    with pytest.raises(BudgetError) as refused:
        call()
    return f"{int(str(refused.value).rpartition('at least ')[2].partition('M')[0])}M"


@pytest.mark.usefixtures("steady_memory")
@pytest.mark.parametrize("name", CALLS)
def test_the_budget_that_is_named_is_that_of_one_thread(graphs, name, monkeypatch):
    """It named one for 64 of them, of some hundred MiB more."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 14)
    graph, call = graphs[name == "strong components"], CALLS[name]
    expected = call(graph, resources=Resources(threads=2, device="cpu"))
    named = [named_by(lambda how=how: call(graph, memory_budget="1M", resources=how)) for how in (ONE, ALL)]
    assert named[0] == named[1]
    found = call(graph, memory_budget=named[1], resources=ALL)
    for column in expected.columns:
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))


@pytest.mark.usefixtures("steady_memory")
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz", ".mtx"])
def test_exports(graphs, tmp_path, suffix):
    """As are files."""
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    named = [named_by(lambda how=how: oocgraph.export_graph(graphs[0], first, memory_budget="1M", resources=how)) for how in (ONE, ALL)]
    assert named[0] == named[1]
    oocgraph.export_graph(graphs[0], first, memory_budget=named[1], resources=ALL)
    oocgraph.export_graph(graphs[0], second, resources=Resources(threads=2))
    assert pq.read_table(first) == pq.read_table(second) if suffix == ".parquet" else first.read_bytes() == second.read_bytes()


@pytest.mark.usefixtures("steady_memory")
def test_partitions(graphs, tmp_path):
    """As are partitions."""

    def cut(name, threads, budget=None):
        made = oocgraph.partition_graph(
            graphs[0], 2, policy="EEC", path=tmp_path / name, memory_budget=budget, resources=Resources(threads=threads)
        )
        return made.url

    named = [named_by(lambda threads=threads: cut("a", threads, "1M")) for threads in (1, MANY)]
    assert named[0] == named[1]
    assert_same_bytes(cut("a", MANY, named[1]), cut("b", 2))


def test_half_as_many_are_tried():
    tried = []

    def compute(threads, room=3):
        tried.append(threads)
        if threads > room:
            raise BudgetError(f"no room for {threads}")
        return threads

    assert with_threads_that_fit(compute, 13) == 3
    assert tried == [13, 6, 3]
    assert with_threads_that_fit(compute, 1) == 1
    with pytest.raises(BudgetError, match="no room for 1"):
        with_threads_that_fit(lambda threads: compute(threads, room=0), 4)
    assert tried[4:] == [4, 2, 1]


@pytest.mark.usefixtures("steady_memory")
def test_builds_and_merges(graphs, tmp_path):
    """Name what two threads take; more of them leave room for blocks, and the store is the same."""
    ends = tuple(np.random.default_rng(2).integers(0, 1 << 13, (2, 1 << 16)))
    calls = {
        "build": lambda name, **how: oocgraph.build_csr(ends, tmp_path / name, **how),
        "merge": lambda name, **how: oocgraph.merge_graphs(*[graphs[0]] * 2, tmp_path / name, **how),
    }
    for kind, call in calls.items():
        two = Resources(threads=2)
        named = [named_by(lambda how=how, call=call: call("g", memory_budget="1M", resources=how)) for how in (two, ALL)]
        assert named[0] == named[1]
        expected = call(f"{kind} by two", resources=two)
        for more in (0, 1 << 10):
            assert_same_bytes(call(f"{kind} {more}", memory_budget=f"{int(named[1][:-1]) + more}M", resources=ALL).url, expected.url)
    for available, threads in ((1 << 30, 32), (1100 << 20, 32)):
        with pytest.raises(BudgetError):
            plan_sizes(Budget(available, baseline_bytes=0), threads, 0)
    assert plan_sizes(Budget(1300 << 20, baseline_bytes=0), 32, 0).threads == 32
