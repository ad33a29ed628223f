"""PageRank: NetworkX's values on every kind of graph, under the user's ids, within the budget, and clear refusals."""

from __future__ import annotations

import errno
import gc
import os
import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from oocgraph import (
    ArgumentError,
    BudgetError,
    ConvergenceError,
    CorruptStoreError,
    OocGraphError,
    OutputError,
    PageRankResult,
    VertexNotFoundError,
    build_csr,
    open_graph,
)
from oocgraph.algorithms import pagerank as module
from oocgraph.memory import Budget, PeakSampler, host_bytes
from oocgraph.products import ranking
from oocgraph.sparse import edge_stream
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.store.arrays import PlainArray, aligned
from oocgraph.text import format_number
from tests.every_knob import rank as pagerank
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Rows are cut many times, even of small graphs."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 60)


def networkx_graph(store):
    """Return the graph as NetworkX has it, with every input id; parallel edges are kept."""
    matrix = store.to_scipy(dtype=np.float64).tocoo()
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(matrix.shape[0]))
    graph.add_weighted_edges_from(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.astype(float).tolist(), strict=True))
    return graph


def expected_of(store, *, weights=None, **options):
    """Ranks by input id."""
    graph = networkx_graph(store)
    ranks = nx.pagerank(graph, weight=None if weights is False else "weight", **options)
    return np.array([ranks[i] for i in range(len(graph))])


EXACT = {"tol": 1e-12, "max_iter": 1000}


@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("implied", [None, (0, 230)], ids=["listed", "range"])
@pytest.mark.parametrize("threads", [1, 3])
def test_equals_networkx_under_the_users_ids(tmp_path, order, directed, implied, threads):
    """Self-loops, and vertices that no edge leaves; ids without edges inside and behind."""
    src, dst = random_edges(4)
    reference_build(src, dst, tmp_path / "g", directed=directed, vertex_order=order, implied=implied, keep_self_loops=True)
    store = open_graph(tmp_path / "g")
    for options, bound in (({}, 1e-10), (EXACT, 1e-13), ({"damping": 0.5}, 1e-10), ({"damping": 0.0}, 1e-13)):
        result = pagerank(store, threads=threads, **options)
        theirs = {"alpha": options["damping"]} if "damping" in options else options
        np.testing.assert_allclose(result.rank, expected_of(store, **theirs), rtol=0, atol=bound)
        assert result.converged
        assert result.rank.sum() == pytest.approx(1)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16, np.bool_])
def test_weights(tmp_path, directed, codec, kind):
    """The graph's weight by default; zeros, and vertices all of whose edges weigh nothing."""
    src, dst = random_edges(6)
    values = np.random.default_rng(0).integers(0, 4, src.size).astype(kind)
    values[src == src[0]] = 0
    build_csr(ArraySource(src, dst, {"w": values}, weight="w"), tmp_path / "g", directed=directed, duplicates="max")
    store = rewrite(tmp_path / "g", tmp_path / "h", codec=codec)
    column = next(iter(store.attributes.columns))
    for weights in (None, True, column, False):
        result = pagerank(str(tmp_path / "h"), weight=weights, **EXACT)
        expected = expected_of(store, **EXACT) if weights is not False else expected_of(store, weights=False, **EXACT)
        np.testing.assert_allclose(result.rank, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_parallel_edges_that_were_kept_count_each(tmp_path, directed):
    source = ArraySource(np.array([0, 0, 0, 1]), np.array([1, 1, 2, 2]))
    store = build_csr(source, tmp_path / "g", directed=directed, duplicates="keep")
    graph = (nx.MultiDiGraph if directed else nx.MultiGraph)([(0, 1), (0, 1), (0, 2), (1, 2)])
    np.testing.assert_allclose(pagerank(store, **EXACT).rank, [nx.pagerank(graph, **EXACT)[i] for i in range(3)], atol=1e-13)


@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51))), ([3, 4], [3, 5])])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("personalization", [None, {3: 1, 59: 2}])
def test_tiny_graphs(tmp_path, edges, directed, personalization):
    """No edge, one, a star, a self-loop; ids without edges before, between and behind."""
    reference_build(*edges, tmp_path / "g", implied=(0, 60), directed=directed, keep_self_loops=True)
    store = open_graph(tmp_path / "g")
    result = pagerank(store, personalization=personalization, **EXACT)
    np.testing.assert_allclose(result.rank, expected_of(store, personalization=personalization, **EXACT), atol=1e-12)


def test_graph_without_vertices(tmp_path):
    reference_build([], [], tmp_path / "g", implied=(0, 0))
    result = pagerank(tmp_path / "g")
    assert result.rank.tolist() == []
    assert result.vertices.tolist() == []
    assert result.top() == []


edge_lists = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=edge_lists,
    directed=st.booleans(),
    damping=st.floats(0, 0.95),
    wanted=st.none() | st.lists(st.integers(0, 9), min_size=15, max_size=15).filter(any),
    precision=st.sampled_from(["auto", "single", "double"]),
)
def test_any_small_graph(tmp_path_factory, edges, directed, damping, wanted, precision):
    """Values and number of iterations are NetworkX's; float32, whose rounding moves the end by a few iterations, comes near."""
    folder = tmp_path_factory.mktemp("any") / "g"
    src, dst = ([edge[end] for edge in edges] for end in (0, 1))
    reference_build(src, dst, folder, implied=(0, 15), directed=directed, keep_self_loops=True)
    store = open_graph(folder)
    personalization = None if wanted is None else dict(enumerate(wanted))
    if precision == "single":
        damping, tol, bound = min(damping, 0.85), 1e-7, 1e-5  # with more damping float32 can go round above this tolerance for ever
    else:
        tol, bound = 1.0123e-8, 1e-12  # no round number, which a change could equal but for rounding
    result = pagerank(store, damping=damping, personalization=wanted, precision=precision, tol=tol, max_iter=2000)
    expected = expected_of(store, alpha=damping, personalization=personalization, tol=tol, max_iter=2000)
    np.testing.assert_allclose(result.rank, expected, rtol=0, atol=bound)


def test_ids_that_are_strings(tmp_path):
    names, edges = ["a", "aa", "b", "c", "d", "z", "ä"], [("b", "c"), ("c", "a"), ("b", "d"), ("ä", "b")]
    store = string_store(tmp_path / "g", *zip(*edges, strict=True), others=["aa", "z"], directed=True)
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edges)
    for wanted in (None, {"z": 1, "b": 3}, {"ä": 2}):
        result = pagerank(store, personalization=wanted, **EXACT)
        expected = nx.pagerank(graph, personalization=wanted, **EXACT)
        assert result.vertices.tolist() == names
        np.testing.assert_allclose(result.rank, [expected[name] for name in names], atol=1e-12)
        assert result.rank_of("z") == pytest.approx(expected["z"])
        np.testing.assert_allclose(result.rank_of(["ä", "a", "aa"]), [expected[name] for name in ("ä", "a", "aa")])
        assert [vertex for vertex, _ in result.top(7)] == sorted(names, key=lambda name: (-result.rank_of(name), name.encode()))


class TestPersonalization:
    @pytest.fixture
    def store(self, tmp_path):
        src, dst = random_edges(5)
        reference_build(src, dst, tmp_path / "g", implied=(10, 250), directed=True)
        return open_graph(tmp_path / "g")

    def test_dictionary_and_vector_mean_the_same(self, store):
        """Isolated vertices are asked for too."""
        numbers = np.random.default_rng(0).integers(0, 3, 240)
        by_id = pagerank(store, personalization=numbers, **EXACT)
        by_name = pagerank(store, personalization={10 + i: float(n) for i, n in enumerate(numbers)}, **EXACT)
        np.testing.assert_array_equal(by_id.rank, by_name.rank)
        np.testing.assert_allclose(by_id.rank, expected_of(store, personalization=dict(enumerate(numbers.tolist())), **EXACT), atol=1e-12)

    def test_a_series_means_its_index(self, store):
        given = {13: 2.0, 11: 1.0}
        ranks = [pagerank(store, personalization=one, **EXACT).rank for one in (given, pd.Series(given))]
        np.testing.assert_array_equal(*ranks)

    def test_one_isolated_vertex_may_have_it_all(self, store):
        alone = int(store.read("vertices/isolated_id")[0]) if store.has_array("vertices/isolated_id") else 249
        result = pagerank(store, personalization={alone: 2.0}, **EXACT)
        assert result.top(1) == [(alone, pytest.approx(1))]
        assert result.rank_of(alone) == pytest.approx(1)
        np.testing.assert_allclose(result.rank_of([alone, 10]), [1, 0], atol=1e-9)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (np.ones(239), "personalization has 239 numbers but .* has 240 vertices, isolated ones included"),
            (np.ones((2, 120)), "personalization has 2 dimensions"),
            (np.zeros(240), "sums up to 0"),
            ({10: 0}, "sums up to 0"),
            ({}, "sums up to 0"),
            ({12: -1, 13: 5}, "personalization of 12 is -1.0; it must be finite and not negative"),
            (np.where(np.arange(240) == 2, -1.0, 1.0), "position 2 is -1.0; it must be finite and not negative"),
            ({12: np.nan}, "of 12 is nan"),
            (pd.Series({13: 1.0, 12: np.nan}), "of 12 is nan"),
            ({12: np.inf}, "of 12 is inf"),
            ({12: "much"}, "personalization must be numbers"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, store, given, message):
        with pytest.raises(OocGraphError, match=message):
            pagerank(store, personalization=given)

    def test_unknown_id_is_named(self, store):
        with pytest.raises(VertexNotFoundError, match="vertex 9 is not in"):
            pagerank(store, personalization={9: 1.0})


class TestResult:
    @pytest.fixture
    def result(self, tmp_path):
        src, dst = random_edges(7)
        reference_build(src, dst, tmp_path / "g", implied=(0, 230))
        return pagerank(open_graph(tmp_path / "g"))

    def test_says_what_it_is(self, result):
        best = result.vertices[np.argsort(-result.rank, kind="stable")]
        assert [vertex for vertex, _ in result.top(5)] == best[:5].tolist()
        assert repr(result).startswith(f"<PageRankResult of 230 vertices, highest: {best[0]} (")
        assert repr(result).endswith(f"; {result.iterations} iterations, converged, {format_number(result.seconds)} s>")
        assert result.top(1000)[-1][1] == result.rank.min()

    def test_figures(self, result):
        summary = result.summary()
        assert summary["iterations"] == len(result.steps) == len(summary["steps"])
        assert summary["bytes_read"] >= summary["bytes_requested"] > 0
        assert summary["edge_bytes"] == result.edge_bytes == summary["kept_bytes"]
        assert result.seconds > 0
        assert result.steps[-1].change == result.change < 230 * 1e-6
        assert result.steps[0].bytes_requested > 0
        assert result.steps[-1].bytes_requested == 0, "all edges stayed"

    def test_is_written(self, result, tmp_path):
        import pyarrow.csv
        import pyarrow.parquet as pq

        for name, read in (("r.parquet", pq.read_table), ("r.csv", pyarrow.csv.read_csv)):
            result.write(tmp_path / name)
            table = read(tmp_path / name)
            assert table.column_names == ["vertex", "rank"]
            assert table["vertex"].to_pylist() == result.vertices.tolist()
            np.testing.assert_allclose(table["rank"].to_numpy(), result.rank, rtol=1e-15)
        result.write(tmp_path / "r.zarr")
        import zarr

        group = zarr.open_group(tmp_path / "r.zarr", mode="r")
        np.testing.assert_array_equal(group["rank"][:], result.rank)
        assert group.attrs["oocgraph_result"]["algorithm"] == "pagerank"
        with pytest.raises(OutputError, match="exists already"):
            result.write(tmp_path / "r.csv")
        with pytest.raises(OutputError, match="unknown extension"):
            result.write(tmp_path / "r.txt")
        frame = result.to_pandas()
        assert frame.columns.tolist() == ["vertex", "rank"]


class TestEnd:
    @pytest.fixture
    def store(self, tmp_path):
        src, dst = random_edges(8)
        reference_build(src, dst, tmp_path / "g", directed=True)
        return open_graph(tmp_path / "g")

    def test_a_run_that_does_not_converge_says_how_far_it_came(self, store):
        with pytest.raises(ConvergenceError, match=r"after 3 iterations .*N \* tol\); raise max_iter or tol"):
            pagerank(store, max_iter=3, tol=1e-9)

    def test_tolerance_0_runs_to_the_end(self, store):
        result = pagerank(store, max_iter=7, tol=0)
        assert (result.iterations, result.converged, len(result.steps)) == (7, False, 7)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"damping": 1}, "damping is 1; it must be a number, at least 0 and less than 1"),
            ({"damping": -0.1}, "damping is -0.1"),
            ({"damping": float("nan")}, "damping is nan"),
            ({"damping": "0.5"}, "damping is '0.5'"),
            ({"tol": -1e-9}, "tol is -1e-09"),
            ({"max_iter": 0}, "max_iter is 0; it must be a whole number, 1 or more"),
            ({"max_iter": 2.5}, "max_iter is 2.5"),
            ({"threads": 0}, "threads is 0"),
            ({"checkpoint_every": 0}, "checkpoint-every is 0"),
            ({"weight": "cost"}, "'cost' is no numeric edge column"),
            ({"weight": True}, "weight is True, but .* has no weight"),
            ({"weight": 3}, "weight is 3"),
            ({"precision": "half"}, "precision is 'half'"),
            ({"memory_budget": "lots"}, "'lots' is not a size"),
        ],
    )
    def test_arguments_are_refused(self, store, options, message):
        with pytest.raises(OocGraphError, match=message):
            pagerank(store, **options)

    @pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
    @pytest.mark.parametrize("directed", [False, True])
    def test_weight_that_cannot_be_meant_is_named(self, tmp_path, value, directed):
        source = ArraySource(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), {"w": np.array([1, 2, value, 4])}, weight="w")
        store = build_csr(source, tmp_path / "w", directed=directed, duplicates="keep")
        values = store.read("out/weight")
        at = int(np.flatnonzero(~((values >= 0) & (values < np.inf)))[0])
        with pytest.raises(OocGraphError, match=f"weight {at} of w of .* is {value}.*weight=False"):
            pagerank(store)
        assert pagerank(store, weight=False).converged

    def test_neighbour_that_is_no_vertex_is_found(self, store, tmp_path):
        wrong = store.read("in/indices")
        wrong[-1] = store.num_rows
        damaged = rewrite(store.url, tmp_path / "d", arrays={"in/indices": wrong})
        with pytest.raises(CorruptStoreError, match=r"must be at least 0 and below 196.*oocgraph check"):
            pagerank(damaged)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """20 MB of neighbours and weights, far more than the pieces in work."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("memory")
    source = ArraySource(rng.integers(0, 50_000, 900_000), rng.integers(0, 50_000, 900_000), {"w": rng.random(900_000)}, weight="w")
    return build_csr(source, folder / "g", directed=True, duplicates="sum")


class TestMemory:
    @pytest.fixture(autouse=True)
    def pieces(self, monkeypatch):
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", 256 << 10)

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    @pytest.mark.parametrize("kept", [0, 0.5, 1])
    def test_peak_is_what_was_promised(self, store, tmp_path, monkeypatch, codec, kept):
        """Measured while it runs, with imports and kernels behind it; whatever stays, ranks are the same to the last bit."""
        store = store if codec == "none" else rewrite(store.url, tmp_path / "z", codec=codec)
        promised = []

        class Noted(Budget):
            def reserve(self, name, num_bytes):
                super().reserve(name, num_bytes)
                promised.append(self.promised_bytes)

        def keep(self, budget):
            num_kept = int(kept * len(self.parts))
            budget.reserve("resident edges", sum(part.entry_bytes + part.pointers.nbytes for part in self.parts[:num_kept]))
            return num_kept

        first = pagerank(store, threads=2, tol=0, max_iter=5)
        monkeypatch.setattr(EdgeStream, "_keep", keep)
        monkeypatch.setattr(module, "Budget", Noted)
        gc.collect()
        with PeakSampler() as sampler:
            result = pagerank(store, threads=2, tol=0, max_iter=5)
        np.testing.assert_array_equal(result.rank, first.rank)
        assert sampler.peak_bytes <= promised[-1]
        again, read = result.steps[-1].bytes_requested, result.steps[0].bytes_requested
        assert again / read == pytest.approx(1 - kept, abs=0.1)
        assert result.kept_bytes / result.edge_bytes == pytest.approx(kept, abs=0.1)

    @pytest.mark.usefixtures("steady_memory")
    @pytest.mark.parametrize("options", [{}, {"weight": False}, {"weight": False, "personalization": {5: 1.0}}])
    def test_the_budget_that_is_named_does_and_less_is_refused(self, store, options):
        """All that is needed is in one message, with something to spare, because this process breathes."""
        pagerank(store, threads=2, tol=0, max_iter=1, **options)
        gc.collect()
        with pytest.raises(BudgetError, match=r"ranks .*, pieces of edges .* need ") as refused:
            pagerank(store, memory_budget=host_bytes() + (1 << 20), threads=2, **options)
        smallest = int(re.search(r"at least (\d+)M", str(refused.value))[1])
        assert pagerank(store, memory_budget=f"{smallest}M", threads=2, tol=0, max_iter=1, **options).iterations == 1
        with pytest.raises(BudgetError):
            pagerank(store, memory_budget=f"{smallest - 24}M", threads=2, **options)

    @pytest.mark.parametrize("options", [{}, {"weight": False, "personalization": {5: 1.0}, "damping": 0}])
    @pytest.mark.parametrize("precision", ["auto", "single", "double"])
    def test_every_kernel_is_there_before_memory_is_counted(self, store, monkeypatch, precision, options):
        """A compiler would leave 100 MB in the process: a run makes no overload that `load_kernels` did not bring."""
        monkeypatch.setattr(ranking, "SINGLE_VERTICES", 100)
        monkeypatch.setattr(ranking, "SINGLE_CHANGE", 1e-3)
        loaded = []

        def load_kernels(*arguments, **keywords):
            ranking.load_kernels(*arguments, **keywords)
            loaded.append(num_overloads())

        def num_overloads():
            kernels = (ranking.kernels.pull_ranks, ranking.kernels.finish_rows, ranking.kernels.divide, ranking.kernels.add_weights)
            return [len(kernel.overloads) for kernel in kernels]

        monkeypatch.setattr(module, "load_kernels", load_kernels)
        result = pagerank(store, precision=precision, tol=0, max_iter=30, **options)
        assert loaded == [num_overloads()]
        assert {one.precision for one in result.steps} == ({"single", "double"} if precision == "auto" else {precision})

    @pytest.mark.usefixtures("steady_memory")
    def test_too_small_a_budget_is_refused_before_anything_is_read(self, store, monkeypatch):
        monkeypatch.setattr(EdgeStream, "_read", None)
        with pytest.raises(BudgetError, match=r"set memory_budget to at least"):
            pagerank(store, weight=False, memory_budget=host_bytes() + (1 << 20))


@pytest.mark.parametrize("precision", ["auto", "single", "double"])
def test_precision(tmp_path, monkeypatch, precision):
    """Large graphs begin in float32 and end in float64; the ranks are the same far below what is asked."""
    src, dst = random_edges(9, 2000, 9000)
    reference_build(src, dst, tmp_path / "g", directed=True)
    store = open_graph(tmp_path / "g")
    exact = pagerank(store, precision="double", **EXACT)
    monkeypatch.setattr(ranking, "SINGLE_VERTICES", 100)
    result = (
        pagerank(store, precision=precision, tol=1e-12, max_iter=300)
        if precision != "single"
        else pagerank(store, precision=precision, tol=1e-9)
    )
    used = [one.precision for one in result.steps]
    assert (used[0], used[-1]) == {"auto": ("single", "double")}.get(precision, (precision, precision))
    np.testing.assert_allclose(result.rank, exact.rank, atol={"auto": 1e-12, "double": 0}.get(precision, 1e-8), rtol=0)
    assert isinstance(result, PageRankResult)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("scale", [1e-300, 1e-45, 1e-32, 1e-28, 1e18, 1e22, 1e45, 1e300])
@pytest.mark.parametrize("mixed", [False, True])
def test_weights_of_any_size(tmp_path, monkeypatch, scale, mixed):
    """Shares are ranks divided by weights: as float32 they would be 0, or infinite."""
    monkeypatch.setattr(ranking, "SINGLE_VERTICES", 100)
    src, dst = random_edges(9, 2000, 9000)
    weights = 1.0 + (3 * src + dst) % 5
    sizes = np.where(src % 2, scale, 1.0) if mixed else scale
    stores = [
        build_csr(pd.DataFrame({"source": src, "target": dst, "weight": one}), tmp_path / str(i), weight="weight", directed=True)
        for i, one in enumerate((weights, weights * sizes))
    ]
    expected, found = (pagerank(store, tol=1e-12, max_iter=300) for store in stores)
    np.testing.assert_allclose(found.rank, expected.rank, rtol=1e-7)
    assert expected.steps[0].precision == "single"
    if 1e-30 < scale < 1e20:
        assert found.steps[0].precision == "single"
        return
    assert {one.precision for one in found.steps} == {"double"}
    with pytest.raises(ArgumentError, match=r"precision is single, but the weights of vertices sum to .* set it to auto or double"):
        pagerank(stores[1], precision="single")


@pytest.mark.parametrize("schedule", ["auto", "in-place"])
@pytest.mark.parametrize(("weight", "said"), [(1e-310, "sum to 1e-310, too little to divide by"), (1.7e308, "sum to more than")])
def test_sums_of_weights_that_cannot_be_divided_by_are_refused(weight, said, schedule):
    edges = pd.DataFrame({"source": [0, 1, 2, 3, 3], "target": [1, 2, 0, 4, 5], "weight": [1.0, 1, 1, weight, weight]})
    with pytest.raises(ArgumentError, match=said):
        pagerank(build_csr(edges.iloc[:4] if weight < 1 else edges, weight="weight"), schedule=schedule)


@pytest.mark.parametrize("damping", [0.99, 0.999])
def test_ranks_that_float32_would_go_round_with_end_in_float64(tmp_path, monkeypatch, damping):
    """With few vertices and a damping near 1 the change of float32 stays at some 1e-6 for ever."""
    monkeypatch.setattr(ranking, "SINGLE_VERTICES", 0)
    rng = np.random.default_rng(5)
    ends, weights = rng.integers(0, 5, (2, 20)), rng.random(20)
    store = build_csr(ArraySource(*ends, {"weight": weights}, weight="weight", directed=True), tmp_path / "g", duplicates="min")
    with pytest.raises(ConvergenceError, match=r"raise max_iter .*, or set oocgraph.precision to double: float32 may go round with"):
        pagerank(store, damping=damping, precision="single", tol=1e-9, max_iter=round(10 / (1 - damping)))
    result = pagerank(store, damping=damping, tol=1e-9, max_iter=40_000)
    assert (result.steps[0].precision, result.steps[-1].precision) == ("single", "double")
    np.testing.assert_allclose(result.rank, pagerank(store, damping=damping, precision="double", tol=1e-9, max_iter=40_000).rank, atol=1e-6)


class TestDirectReads:
    """Where the page cache cannot hold what is read again and again."""

    @pytest.fixture(autouse=True)
    def small_cache(self, monkeypatch):
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", 256 << 10)
        monkeypatch.setattr(EdgeStream, "_keep", lambda _self, _budget: 0)
        monkeypatch.setattr(ranking, "page_cache_bytes", lambda _budget_bytes: 1 << 20)

    @pytest.mark.parametrize("supported", [True, False])
    def test_ranks_are_the_same(self, store, monkeypatch, supported):
        """Also on a file system that has none; row starts come through the cache, wherever their buffers begin."""
        monkeypatch.setattr(edge_stream, "np", SimpleNamespace(**{**vars(np), "empty": lambda n, dtype: aligned(n, np.dtype(dtype))}))
        opened = []
        whole = PlainArray.open_chunk

        def open_chunk(self, chunk, flags=0):
            opened.append((self.name, flags))
            if flags and not supported:
                raise OSError(errno.EINVAL, "Invalid argument")
            return whole(self, chunk, flags)

        monkeypatch.setattr(PlainArray, "open_chunk", open_chunk)
        found = pagerank(store, tol=0, max_iter=3)
        assert {name for name, flags in opened if flags & os.O_DIRECT} == {"in/indices", "in/weight"}
        monkeypatch.setattr(ranking, "page_cache_bytes", lambda _budget_bytes: 1 << 40)
        opened.clear()
        np.testing.assert_array_equal(found.rank, pagerank(store, tol=0, max_iter=3).rank)
        assert not any(flags for _, flags in opened)
