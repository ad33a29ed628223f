"""Personalized PageRank of many seeds: NetworkX's ranks for each, the same bits whatever the threads, and clear refusals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.errors import ArgumentError, BudgetError, ConvergenceError, VertexNotFoundError
from oocgraph.kernels import personalized as kernels
from oocgraph.memory import host_bytes
from oocgraph.sparse import edge_stream
from tests.graphs import hubs
from tests.stores import rewrite, string_store

NUM_IDS = 90
EXACT = {"tol": 1e-14, "max_iter": 1000}


def built(path, *, directed, weighted):
    """Return a store with isolated vertices, self-loops, and vertices that no edge leaves, and the same graph of NetworkX."""
    source, target = hubs(3, 80, 300)
    keep = np.unique(np.stack([source, target] if directed else np.sort([source, target], 0)), axis=1, return_index=True)[1]
    source, target = source[keep], target[keep]
    table = pd.DataFrame({"source": source, "target": target, "weight": 1.0 + (source * 7 + target * 13) % 5 * weighted})
    store = oocgraph.build_csr(
        table, path, weight="weight" if weighted else None, directed=directed, num_vertices=NUM_IDS, keep_self_loops=True
    )  # fmt: skip
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(NUM_IDS))
    graph.add_weighted_edges_from(table.itertuples(index=False))
    return store, graph


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("piece", [None, 16])
def test_ranks_are_networkxs_for_each_seed(tmp_path, monkeypatch, directed, weighted, piece):
    """Among the seeds an isolated vertex, and those that no edge leaves."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    store, graph = built(tmp_path / "g.zarr", directed=directed, weighted=weighted)
    leaves = [v for v in graph if directed and not graph.out_degree(v) and graph.in_degree(v)]
    seeds = [40, 0, 89, *leaves[:2], 17]
    for damping in (0.85, 0.3, 0.0):
        found = oocgraph.personalized_pagerank(store, seeds, damping=damping, **EXACT)
        assert found.rank.shape == (NUM_IDS, len(seeds))
        for c, seed in enumerate(seeds):
            expected = nx.pagerank(graph, damping, personalization={seed: 1}, **EXACT)
            np.testing.assert_allclose(found.rank[:, c], [expected[v] for v in range(NUM_IDS)], rtol=0, atol=1e-11)
    loose = oocgraph.personalized_pagerank(store, seeds)
    exact = oocgraph.personalized_pagerank(store, seeds, **EXACT)
    assert (np.abs(loose.rank - exact.rank).sum(axis=0) < NUM_IDS * 1e-6 * 0.85 / 0.15).all()


def test_no_bit_depends_on_threads_budget_runtime_or_other_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    graph = oocgraph.build_csr(hubs(5, 3000, 20000), tmp_path / "g.zarr", directed=True)
    seeds, options = list(range(0, 30, 3)), {"tol": 0, "max_iter": 12}
    first = oocgraph.personalized_pagerank(graph, seeds, resources=Resources(threads=1), **options)
    with pytest.raises(BudgetError, match="at least") as refused:
        oocgraph.personalized_pagerank(graph, seeds, memory_budget="20M", **options)
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.personalized_pagerank(graph, seeds, resources=Resources(threads=3), **options),
            oocgraph.personalized_pagerank(graph, seeds, runtime=runtime, **options),
            oocgraph.personalized_pagerank(graph, seeds, memory_budget=f"{least}M", **options),
        ]  # fmt: skip
    for other in others:
        np.testing.assert_array_equal(other.rank, first.rank)
    alone = oocgraph.personalized_pagerank(graph, seeds[3:4], **options)
    np.testing.assert_array_equal(alone.rank[:, 0], first.rank[:, 3])


def test_one_sweep_serves_all_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    graph = oocgraph.build_csr(hubs(5, 3000, 20000), tmp_path / "g.zarr", directed=True)
    one, many = (oocgraph.personalized_pagerank(graph, range(k), tol=0, max_iter=3).bytes_requested for k in (1, 25))
    assert one == many > 0


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c"], ["a", "c", "a"], others=["alone"])
    result = oocgraph.personalized_pagerank(graph, ["c", "alone"])
    assert result.seeds == ["c", "alone"]
    assert result.of("alone").tolist() == [0, 1]
    assert result.of(["c", "b"]).shape == (2, 2)
    assert result.of("c", seed="c") == result.of("c", "rank_0") == result.rank[3, 0]
    assert result.top(1, seed="alone") == [("alone", 1.0)]
    assert result.top(1) == [("c", result.rank_0[3])]
    assert list(result.to_pandas()) == ["vertex", "rank_0", "rank_1"]
    result.write(tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), result.to_pandas())
    result.write(tmp_path / "r.zarr")
    assert "4 vertices: 17 iterations, 2 seeds" in repr(result)
    assert result.summary()["seeds"] == ["c", "alone"]
    with pytest.raises(ArgumentError, match="'a' is no seed of this result; its seeds are 'c', 'alone'"):
        result.top(seed="a")
    for several in ([], ["c", "alone"]):
        with pytest.raises(ArgumentError, match="is no seed of this result"):
            result.of("c", seed=several)
    with pytest.raises(AttributeError, match="has no attribute 'rank_2'"):
        _ = result.rank_2


def test_a_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3)
    assert oocgraph.personalized_pagerank(graph, [2, 0]).rank.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_kernels_are_there_before_memory_is_counted(tmp_path):
    for directed in (False, True):
        store, _ = built(tmp_path / f"{directed}.zarr", directed=directed, weighted=True)
        for weight in (None, False):
            oocgraph.personalized_pagerank(store, [3, 5], weight=weight)
    for kernel in (kernels.spread, kernels.to_ranks, kernels.add_up_weights):
        assert not kernel.stats.cache_misses


def test_what_makes_no_sense_is_refused(tmp_path):
    store, _ = built(tmp_path / "g.zarr", directed=True, weighted=True)
    for seeds, error, said in (
        ([], ArgumentError, "seeds is empty"), ([1, 2, 1], ArgumentError, "seeds has 1 more than once"),
        ([1, 500], VertexNotFoundError, "500"), (["x"], VertexNotFoundError, "'x'"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            oocgraph.personalized_pagerank(store, seeds)
    for options, said in (({"damping": 1}, "damping is 1"), ({"max_iter": 0}, "max_iter is 0"), ({"weight": "w"}, "'w' is no numeric")):
        with pytest.raises(ArgumentError, match=said):
            oocgraph.personalized_pagerank(store, [1], **options)
    with pytest.raises(ConvergenceError, match="after 2 iterations the ranks of a seed still change"):
        oocgraph.personalized_pagerank(store, [1], max_iter=2)
    weights = store.read("out/weight").astype(float)
    for bad in (-1, np.nan, np.inf):
        weights[3] = bad
        with pytest.raises(ArgumentError, match="has negative or infinite weights, or NaN"):
            oocgraph.personalized_pagerank(rewrite(store.url, tmp_path / "bad.zarr", arrays={"out/weight": weights}), [1])


@pytest.mark.parametrize(("weight", "said"), [(1e-310, "sum to 1e-310, too little to divide by"), (1.7e308, "sum to more than")])
def test_sums_of_weights_that_cannot_be_divided_by_are_refused(weight, said):
    edges = pd.DataFrame({"source": [0, 1, 2, 3, 3], "target": [1, 2, 0, 4, 5], "weight": [1.0, 1, 1, weight, weight]})
    with pytest.raises(ArgumentError, match=said):
        oocgraph.personalized_pagerank(oocgraph.build_csr(edges.iloc[:4] if weight < 1 else edges, weight="weight"), [3])


def test_seeds_that_do_not_fit_are_refused_with_how_many_do(tmp_path):
    store = oocgraph.build_csr((np.arange(50_000), np.arange(1, 50_001)), tmp_path / "path.zarr")
    seeds, budget = range(600), host_bytes() + (200 << 20)
    with pytest.raises(BudgetError, match=r"or give at most [0-9,]+ of the 600 seeds at once \(800,016 bytes each\)") as refused:
        oocgraph.personalized_pagerank(store, seeds, memory_budget=budget)
    fitting = int(str(refused.value).rpartition("at most ")[2].partition(" ")[0].replace(",", ""))
    assert 100 < fitting < 250
    found = oocgraph.personalized_pagerank(store, seeds[: fitting - 20], memory_budget=budget, tol=0, max_iter=1)
    assert found.num_seeds == fitting - 20
