"""PageRank in place: NetworkX's ranks, fewer sweeps, and the same bits whatever the threads, the budget and the interruptions."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms.pagerank_arguments import is_in_place
from oocgraph.config import setting
from oocgraph.errors import ArgumentError, BudgetError, ConvergenceError, OutputError
from oocgraph.kernels import pagerank as kernels
from oocgraph.sparse import edge_stream
from tests.graphs import hubs

NUM_IDS = 90
IN_PLACE = {"schedule": "in-place"}
EXACT = {"tol": 1e-14, "max_iter": 1000}


@pytest.fixture(autouse=True, params=[None, 60], ids=["one piece", "many pieces"])
def pieces(request, monkeypatch):
    """Rows of one piece, which is in place as a whole, or of many, which make up blocks."""
    if request.param:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", request.param)


def graphs(path, *, directed, weighted):
    """Return a store with isolated vertices, self-loops, and vertices that no edge leaves, and the same graph of NetworkX."""
    source, target = hubs(3, 80, 300)
    keep = np.unique(np.stack([source, target] if directed else np.sort([source, target], 0)), axis=1, return_index=True)[1]
    source, target = source[keep], target[keep]
    table = pd.DataFrame({"source": source, "target": target, "weight": 1 + (source * 7 + target * 13) % 5 * weighted})
    store = oocgraph.build_csr(
        table, path, weight="weight" if weighted else None, directed=directed, num_vertices=NUM_IDS, keep_self_loops=True
    )  # fmt: skip
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(NUM_IDS))
    graph.add_weighted_edges_from(table.itertuples(index=False))
    return store, graph


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_are_networkxs(tmp_path, directed, weighted):
    store, graph = graphs(tmp_path / "g.zarr", directed=directed, weighted=weighted)
    for options in ({}, {"damping": 0.5}, {"damping": 0.0}, {"personalization": {3: 1, 85: 2, 0: 0.5}}, {"personalization": {89: 1}}):
        result = oocgraph.pagerank(store, **EXACT, **IN_PLACE, **options)
        alpha, wanted = options.get("damping", 0.85), options.get("personalization")
        expected = nx.pagerank(graph, alpha, personalization=wanted, **EXACT)
        np.testing.assert_allclose(result.rank, [expected[v] for v in range(NUM_IDS)], rtol=0, atol=1e-11)
        assert result.converged
        assert result.rank.sum() == pytest.approx(1, abs=1e-12)
        loose = oocgraph.pagerank(store, **IN_PLACE, **options)
        assert np.abs(loose.rank - result.rank).sum() < NUM_IDS * 1e-6 * 0.85 / 0.15


def test_change_is_never_less_than_that_of_the_ranks(tmp_path):
    store, _ = graphs(tmp_path / "g.zarr", directed=True, weighted=True)
    for wanted in (None, {85: 1, 3: 2}):
        before = np.full(NUM_IDS, 1 / NUM_IDS)
        for sweeps in range(1, 6):
            result = oocgraph.pagerank(store, tol=0, max_iter=sweeps, personalization=wanted, **IN_PLACE)
            moved = np.abs(result.rank - before).sum()
            assert moved <= result.change * (1 + 1e-12)
            assert result.change < 4 * moved
            before = result.rank


@pytest.mark.parametrize("pieces", [None, 1 << 12], indirect=True)
def test_sweeps_are_fewer(tmp_path):
    for store in (
        oocgraph.generate_kronecker(10, tmp_path / "kronecker"), oocgraph.generate_grid((40, 40), tmp_path / "grid"),
        oocgraph.build_csr(np.random.default_rng(1).integers(0, 1000, (7000, 2)), tmp_path / "directed", directed=True),
    ):  # fmt: skip
        tol = 1e-5 / store.attributes.num_input_vertices
        plain, in_place = (oocgraph.pagerank(store, tol=tol, **options) for options in ({}, IN_PLACE))
        assert in_place.iterations < plain.iterations
        assert np.abs(in_place.rank - plain.rank).sum() < 1e-5 * 0.85 / 0.15


def test_no_bit_depends_on_threads_budget_runtime_or_interruptions(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    graph = oocgraph.build_csr(hubs(5, 3000, 20000), tmp_path / "g.zarr", directed=True, num_vertices=3200)
    wanted = {v: v for v in range(2000, 3100)}
    options = {"tol": 1e-9, "personalization": wanted, **IN_PLACE}
    first = oocgraph.pagerank(graph, resources=Resources(threads=1), **options)
    with pytest.raises(BudgetError, match="at least") as refused:
        oocgraph.pagerank(graph, memory_budget="20M", **options)
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with pytest.raises(ConvergenceError):
        oocgraph.pagerank(graph, max_iter=3, checkpoint=tmp_path / "c", **options)
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.pagerank(graph, resources=Resources(threads=3), **options), oocgraph.pagerank(graph, runtime=runtime, **options),
            oocgraph.pagerank(graph, memory_budget=f"{least}M", **options),
            oocgraph.pagerank(graph, checkpoint=tmp_path / "c", **options),
        ]  # fmt: skip
    for other in others:
        np.testing.assert_array_equal(other.rank, first.rank)
        assert other.iterations == first.iterations
    assert len(others[-1].steps) == first.iterations - 3
    with pytest.raises(OutputError, match="its schedule is 'in-place', not None"):
        oocgraph.pagerank(graph, checkpoint=tmp_path / "c", tol=1e-9, personalization=wanted)


def test_tiny_graphs(tmp_path):
    empty = oocgraph.build_csr(([], []), tmp_path / "empty.zarr", num_vertices=3)
    np.testing.assert_allclose(oocgraph.pagerank(empty, **IN_PLACE).rank, np.full(3, 1 / 3))
    path = oocgraph.build_csr(([0, 1], [1, 2]), tmp_path / "path.zarr", directed=True)
    expected = nx.pagerank(nx.DiGraph([(0, 1), (1, 2)]), **EXACT)
    np.testing.assert_allclose(oocgraph.pagerank(path, **EXACT, **IN_PLACE).rank, [expected[v] for v in range(3)], atol=1e-12)


def test_kernels_are_there_before_memory_is_counted(tmp_path):
    store, _ = graphs(tmp_path / "g.zarr", directed=True, weighted=True)
    for options in ({}, {"weight": False}, {"personalization": {3: 1}}):
        oocgraph.pagerank(store, **IN_PLACE, **options)
    for kernel in (kernels.update_ranks, kernels.rescale_ranks):
        assert not kernel.stats.cache_misses


def test_what_cannot_be_done_is_refused(tmp_path):
    store, _ = graphs(tmp_path / "g.zarr", directed=True, weighted=False)
    with pytest.raises(ArgumentError, match="schedule is 'async'; it must be one of auto, in-place"):
        oocgraph.pagerank(store, schedule="async")
    with setting("precision", "single"), pytest.raises(ArgumentError, match=r"gathers float64; set oocgraph\.precision"):
        oocgraph.pagerank(store, **IN_PLACE)
    with pytest.raises(ArgumentError, match=r"a cluster has auto alone, .* leave it out"):
        is_in_place("in-place", "auto", is_on_cluster=True)
    with pytest.raises(ConvergenceError, match="after 1 iterations"):
        oocgraph.pagerank(store, max_iter=1, tol=1e-9, **IN_PLACE)
