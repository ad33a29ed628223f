"""The order by locality: the same graph, the same store whatever the budget, neighbours in few blocks, and searches by blocks."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources
from oocgraph.config import setting
from oocgraph.engine.block_runtime import BlockRuntime
from oocgraph.engine.local import LocalRuntime
from oocgraph.kernels import locality as kernels
from oocgraph.store.locality import order_cells

ARRAYS = ("out/indices", "out/indptr", "vertices/id", "vertices/order")


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    """Return a grid of shuffled ids in locality order, and in degree order."""
    folder = tmp_path_factory.mktemp("streets")
    stores = []
    for order in ("locality", "degree"):
        with setting("vertex-order", order):
            stores.append(oocgraph.generate_grid((300, 200), folder / order, keep=0.8, shuffle=True, weights=(1, 9)))
    return stores


def smallest_budget(edges, path, threads=2):
    """Return what a refusal of now names: each build leaves this process larger."""
    with pytest.raises(BudgetError) as caught:
        oocgraph.build_csr(edges, path, resources=Resources(threads=threads, memory_budget="40M"))
    return re.search(r"at least (\d+M)", str(caught.value))[1]


def spread(store):
    """Return the median distance between the numbers of two neighbours."""
    indptr, indices = store.read("out/indptr").astype(np.int64), store.read("out/indices").astype(np.int64)
    return np.median(np.abs(np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) - indices))


def test_neighbours_are_near_each_other(streets):
    locality, degree = streets
    assert locality.attributes.vertex_order == "locality"
    assert locality.num_edges == degree.num_edges
    assert spread(locality) < 100
    assert spread(degree) > 5000
    oocgraph.check_store(locality)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("source", ["undirected", "directed", "strings", "tiny", "weights", "paths"])
def test_it_is_the_same_graph(tmp_path, source):
    """Of any kind, with components so small that none of their vertices begins a cell at first, isolated vertices and loops."""
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 3000, (2, 4000)) if source != "tiny" else np.arange(2000).reshape(1000, 2).T
    if source == "paths":
        ends = np.stack([np.arange(5000), np.arange(1, 5001)])
    edges = tuple(np.array([f"v{i:04}" for i in one], object) for one in ends) if source == "strings" else tuple(ends)
    options = {"directed": source == "directed"}
    stores = []
    for order in ("locality", "degree"):
        with setting("vertex-order", order):
            stores.append(oocgraph.build_csr(edges, tmp_path / order, **options))
    one, other = (nx.from_scipy_sparse_array(store.to_scipy(), create_using=nx.DiGraph) for store in stores)
    assert nx.utils.graphs_equal(one, other)
    oocgraph.check_store(stores[0])
    np.testing.assert_array_equal(oocgraph.connected_components(stores[0]).component, oocgraph.connected_components(stores[1]).component)
    start = stores[0].ids_of(0)[0] if source != "strings" else str(stores[0].ids_of(0)[0])
    np.testing.assert_array_equal(oocgraph.bfs(stores[0], start).level, oocgraph.bfs(stores[1], start).level)
    np.testing.assert_allclose(oocgraph.pagerank(stores[0]).rank, oocgraph.pagerank(stores[1]).rank, atol=1e-9)


def test_the_store_does_not_depend_on_budget_threads_or_order(tmp_path, streets):
    rows, columns = np.divmod(np.arange(60 * 70), 70)
    source = np.concatenate([np.arange(60 * 70)[columns < 69], np.arange(60 * 70)[rows < 59]])
    target = np.concatenate([np.arange(60 * 70)[columns < 69] + 1, np.arange(60 * 70)[rows < 59] + 70])
    mixed = np.random.default_rng(1).permutation(source.size)
    with setting("vertex-order", "locality"):
        first = oocgraph.build_csr((source, target), tmp_path / "a", resources=Resources(threads=1))
        other = target[mixed], source[mixed]
        least = smallest_budget(other, tmp_path / "b", 4)
        second = oocgraph.build_csr(other, tmp_path / "b", resources=Resources(threads=4, memory_budget=least))
    for name in ARRAYS:
        np.testing.assert_array_equal(first.read(name), second.read(name))


def test_ids_with_gaps_have_one_order(tmp_path):
    """A range with gaps is used as it is, or its ids are numbered: builds in memory and on disk choose by themselves."""
    ids = np.sort(np.random.default_rng(1).choice(1 << 16, 300, replace=False))
    source, target = ids[np.arange(299)], ids[np.arange(1, 300)]
    with setting("vertex-order", "locality"):
        stored, held = oocgraph.build_csr((source, target), tmp_path / "gaps"), oocgraph.build_csr((source, target))
        numbered = oocgraph.build_csr((np.arange(299), np.arange(1, 300)), tmp_path / "numbered")
    for store in (held, numbered):
        np.testing.assert_array_equal(store.read("out/indices"), stored.read("out/indices"))


@pytest.mark.parametrize(("edges", "chosen"), [("grid", "locality"), ("star", "degree"), ("dense", "degree"), ("none", "degree")])
def test_auto_takes_it_where_degrees_are_low_and_alike(tmp_path, edges, chosen):
    ends = {
        "grid": (np.arange(900), np.arange(1, 901)), "star": (np.zeros(900, np.int64), np.arange(1, 901)),
        "dense": tuple(np.random.default_rng(1).integers(0, 100, (2, 4000))), "none": (np.empty(0, np.int64), np.empty(0, np.int64)),
    }[edges]  # fmt: skip
    with setting("vertex-order", "auto"):
        assert oocgraph.build_csr(ends, tmp_path / "g").attributes.vertex_order == chosen


def test_what_has_no_room_is_refused_with_a_budget_that_works(tmp_path, steady_memory):
    edges = np.arange(3_000_000), np.arange(1, 3_000_001)
    few = smallest_budget(edges, tmp_path / "g")
    with setting("vertex-order", "locality"):
        with pytest.raises(BudgetError, match=r"by locality needs .* set memory_budget to at least") as caught:
            oocgraph.build_csr(edges, tmp_path / "g", memory_budget=few)
        least = str(caught.value).rpartition("at least ")[2].partition(",")[0]
        store = oocgraph.build_csr(edges, tmp_path / "g", memory_budget=least)
        assert store.attributes.vertex_order == "locality"
    few = smallest_budget(edges, tmp_path / "h")
    with setting("vertex-order", "auto"):
        store = oocgraph.build_csr(edges, tmp_path / "h", memory_budget=few)
    assert store.attributes.vertex_order == "degree"


def test_cells_without_neighbours_have_an_order():
    none = np.full(500 * kernels.SLOTS, kernels.NO_CELL, np.int32)
    assert np.array_equal(np.sort(order_cells(none)), np.arange(500))
    assert order_cells(none[:0]).size == 0


def test_cells_around_one_have_an_order():
    """Each knows the one in the middle, which knows few: one group of cells joins at a time, and that thousands of times."""
    star = np.full((40_000, kernels.SLOTS), kernels.NO_CELL, np.int32)
    star[1:, 0], star[0] = 0, np.arange(1, kernels.SLOTS + 1)
    assert np.array_equal(np.sort(order_cells(star.ravel())), np.arange(40_000))


class TestSearchesByBlocks:
    """Where the budget does not hold all edges of a graph in locality order."""

    @pytest.fixture
    def by_blocks(self, monkeypatch):
        monkeypatch.setattr(LocalRuntime, "holds_all", classmethod(lambda cls, *_, **__: False))

    @pytest.mark.usefixtures("by_blocks")
    @pytest.mark.parametrize("depth_limit", [None, 0, 40])
    def test_levels_are_exact(self, streets, depth_limit):
        locality, degree = streets
        sources = [int(locality.ids_of(0)[0]), int(locality.ids_of(30_000)[0])]
        for source in (sources[0], sources):
            found = oocgraph.bfs(locality, source, depth_limit=depth_limit, resources=Resources(threads=3))
            same = oocgraph.bfs(degree, source, depth_limit=depth_limit)
            np.testing.assert_array_equal(found.level, same.level)
            assert (found.num_reached, found.num_reached_edges, found.depth) == (same.num_reached, same.num_reached_edges, same.depth)
            oocgraph.verify_bfs(locality, found)
            if depth_limit != 0:
                assert "by blocks of edges" in found.iterations[0].reason

    @pytest.mark.usefixtures("by_blocks")
    def test_loops_of_the_same_types_are_not_taken_for_each_other(self, streets):
        """Weights of one byte, and none: two loops that may come from the cache on disk, compiled by other processes."""
        source = int(streets[0].ids_of(0)[0])
        for _ in range(2):
            oocgraph.verify_bfs(streets[0], oocgraph.bfs(streets[0], source))
            oocgraph.verify_sssp(streets[0], oocgraph.sssp(streets[0], source))

    @pytest.mark.usefixtures("by_blocks")
    def test_directed_graphs_opened_graphs_and_directions(self, tmp_path):
        rng = np.random.default_rng(2)
        edges = tuple(rng.integers(0, 2000, (2, 5000)))
        with setting("vertex-order", "locality"):
            store = oocgraph.build_csr(edges, tmp_path / "g", directed=True, keep_self_loops=True)
        with oocgraph.open_runtime(store) as runtime:
            assert isinstance(runtime._loaded, BlockRuntime)
            found = oocgraph.bfs(store, int(edges[0][0]), runtime=runtime)
            oocgraph.verify_bfs(store, found)
            again = oocgraph.bfs(store, int(edges[0][0]), runtime=runtime)
            assert (again.search.bytes_requested, again.num_reached) == (0, found.num_reached)
            with pytest.raises(ArgumentError, match=r"direction is 'pull', but .* is in locality order"):
                oocgraph.bfs(store, int(edges[0][0]), direction="pull", runtime=runtime)
            assert oocgraph.pagerank(store, runtime=runtime).top(1)

    def test_a_budget_decides(self, tmp_path):
        """Rows are long, so that edges take several times what the least budget keeps for the result, whatever the process holds."""
        size, reach = 200_000, 30
        begin = np.repeat(np.arange(size), reach)
        with setting("vertex-order", "locality"):
            store = oocgraph.build_csr((begin, (begin + np.tile(np.arange(1, reach + 1), size)) % size), tmp_path / "g")
        source = int(store.ids_of(100_000)[0])
        whole = oocgraph.bfs(store, source)
        assert "by blocks" not in whole.iterations[0].reason
        with pytest.raises(BudgetError) as caught:
            oocgraph.bfs(store, source, memory_budget="40M")
        least = str(caught.value).rpartition("at least ")[2]
        found = oocgraph.bfs(store, source, memory_budget=least)
        assert "by blocks" in found.iterations[0].reason
        np.testing.assert_array_equal(found.level, whole.level)
        assert found.search.bytes_requested < 8 * store.edge_bytes
