"""Searches from 64 vertices at a time, and what is made of distances, equal NetworkX, whatever is read, kept, pushed or pulled."""

from __future__ import annotations

from functools import partial

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import listed_front, lone_sources, source_words
from oocgraph.engine import sweeps
from oocgraph.engine.opened import Unopened
from oocgraph.errors import ArgumentError, BudgetError, CorruptStoreError, VertexNotFoundError
from oocgraph.memory import Budget
from oocgraph.sparse import edge_stream
from tests.graphs import hubs
from tests.stores import rewrite, string_store

NUM_IDS = 130


LISTED = {
    "words alone": (0, 1, 16, 0), "some are listed": (9, 2, 16, 0), "all are listed": (1 << 12, 1 << 10, 16, 0),
    "each source alone": (1 << 12, 1 << 10, 1, 1 << 16), "now and then alone": (1 << 12, 3, 1, 64 * 16),
}  # fmt: skip
"""Vertices and edges of a level that is listed, levels in a call, levels until sources go on alone, room for these; graphs are small."""


@pytest.fixture(params=LISTED, autouse=True)
def listing(request, monkeypatch):
    """Find levels by looking through the words of all vertices, from lists, for each source alone, or now in this and now in that way."""
    most, levels, checked, room = LISTED[request.param]
    monkeypatch.setattr(listed_front, "most_listed", lambda _: most)
    monkeypatch.setattr(listed_front, "LISTED_LEVELS", levels)
    monkeypatch.setattr(source_words, "CHECKED_LEVELS", checked)
    monkeypatch.setattr(source_words, "LONE_LEVELS", 2 * levels)
    monkeypatch.setattr(source_words, "FEW", 2)
    monkeypatch.setattr(source_words, "SHARED", 64.0 * bool(room))
    monkeypatch.setattr(lone_sources, "LEAST_ROOM", room)


def built(path, seed, *, directed, num_edges=240, **options):
    """Return a store with isolated vertices and several components, and the same graph of NetworkX."""
    source, target = hubs(seed, NUM_IDS - 20, num_edges)
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(NUM_IDS))
    graph.add_edges_from((u, v) for u, v in zip(source.tolist(), target.tolist(), strict=True) if u != v)
    return oocgraph.build_csr((source, target), path, directed=directed, num_vertices=NUM_IDS, **options), graph


def connected(path, graph):
    """Return a store of a connected graph, and the graph under integers."""
    graph = nx.convert_node_labels_to_integers(graph)
    return oocgraph.build_csr(tuple(np.array(graph.edges).T), path, directed=graph.is_directed(), overwrite=True), graph


def levels_of(graph, sources, *, reverse=False, limit=None):
    """Levels as NetworkX finds them."""
    searched = graph.reverse() if reverse and graph.is_directed() else graph
    out = np.full((graph.number_of_nodes(), len(sources)), -1)
    for i, source in enumerate(sources):
        for v, level in nx.single_source_shortest_path_length(searched, source, cutoff=limit).items():
            out[v, i] = level
    return out


def in_order(values):
    return np.array([values[v] for v in sorted(values)])


def check_figures(result, levels):
    """Figures of each source are those of its column."""
    reached = np.where(levels > 0, levels, 0)
    np.testing.assert_array_equal(result.num_reached, (levels >= 0).sum(axis=0))
    np.testing.assert_array_equal(result.depth, levels.max(axis=0))
    np.testing.assert_array_equal(result.sum_distances, reached.sum(axis=0))
    inverse = np.divide(1, reached, out=np.zeros(reached.shape), where=reached > 0).sum(axis=0)
    np.testing.assert_allclose(result.sum_inverse_distances, inverse, rtol=1e-12)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("push_cost", [0.0, 2.0, 1e9])
@pytest.mark.parametrize("piece", [None, 16, 200])
def test_levels_are_networkxs(tmp_path, monkeypatch, directed, push_cost, piece):
    """By pushes alone, by pulls alone (but where little is to be done), and by both; more sources than a word has, isolated ones too."""
    monkeypatch.setattr(source_words, "PUSH_COST", push_cost)
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    graph, peer = built(tmp_path / "g.zarr", 3, directed=directed)
    sources = np.random.default_rng(1).permutation(NUM_IDS)
    for reverse in (False, True):
        expected = levels_of(peer, sources.tolist(), reverse=reverse)
        result = oocgraph.multi_source_bfs(graph, sources, distances=True, reverse=reverse, resources=Resources(threads=3))
        np.testing.assert_array_equal(result.levels, expected)
        check_figures(result, expected)
        figures = oocgraph.multi_source_bfs(graph, sources, reverse=reverse)
        check_figures(figures, expected)
    result = oocgraph.multi_source_bfs(graph, [5, 5, 129], distances=True, depth_limit=2)
    np.testing.assert_array_equal(result.levels, levels_of(peer, [5, 5, 129], limit=2))
    check_figures(result, result.levels)
    assert oocgraph.multi_source_bfs(graph, range(3), depth_limit=0).num_reached.tolist() == [1, 1, 1]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("order", ["original", "degree", "locality"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_levels_of_stores_of_other_forms(tmp_path, monkeypatch, order, codec):
    """With self-loops and duplicates, too; levels above 127 need more than a byte."""
    import dask

    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 64)
    source = np.concatenate([np.arange(200), [3, 3, 7]])
    target = np.concatenate([np.arange(1, 201), [4, 3, 7]])
    peer = nx.Graph(list(zip(source.tolist(), target.tolist(), strict=True)))
    with dask.config.set({"oocgraph.vertex-order": order, "oocgraph.codec": codec}):
        graph = oocgraph.build_csr((source, target), tmp_path / "g.zarr", keep_self_loops=True)
    result = oocgraph.multi_source_bfs(graph, [0, 199, 100], distances=True)
    np.testing.assert_array_equal(result.levels, levels_of(peer, [0, 199, 100]))
    assert result.levels.dtype == np.int16
    assert oocgraph.multi_source_bfs(graph, [0], distances=True, depth_limit=127).levels.dtype == np.int8
    assert oocgraph.diameter(graph).diameter == 200


def test_no_bit_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    """And with edges that do not fit, rows that are not needed stay on disk."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 14)
    graph = oocgraph.build_csr(hubs(5, 30000, 400000), tmp_path / "g.zarr", directed=True)
    compressed = rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd")
    sources = graph.ids_of(np.arange(0, 20000, 250))
    options = {"k": 80, "seed": 5}
    first = oocgraph.closeness_centrality(graph, **options, resources=Resources(threads=1))
    found = oocgraph.multi_source_bfs(graph, sources, resources=Resources(threads=1))
    with pytest.raises(BudgetError, match="set memory_budget to at least") as refused:
        oocgraph.closeness_centrality(graph, **options, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 8  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.closeness_centrality(graph, **options, resources=Resources(threads=3)),
            oocgraph.closeness_centrality(graph, **options, memory_budget=f"{least}M"),
            oocgraph.closeness_centrality(graph, **options, runtime=runtime),
            oocgraph.closeness_centrality(graph, **options, runtime=runtime),
            oocgraph.closeness_centrality(compressed, **options),
        ]  # fmt: skip
        again = oocgraph.multi_source_bfs(graph, sources, runtime=runtime)
    for other in others:
        np.testing.assert_array_equal(other.closeness, first.closeness)
    np.testing.assert_array_equal(again.sum_distances, found.sum_distances)
    assert others[3].bytes_requested == again.bytes_requested == 0


def test_what_few_rows_need_is_read_alone(tmp_path, monkeypatch):
    """Along a path, of whose edges none are kept, a level needs the rows of two vertices, not their pieces."""
    import dask

    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 14)
    monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    with dask.config.set({"oocgraph.vertex-order": "original"}):
        graph = oocgraph.build_csr((np.arange(40000), np.arange(1, 40001)), tmp_path / "g.zarr")
    result = oocgraph.multi_source_bfs(graph, [20000], depth_limit=50)
    assert result.num_reached.tolist() == [101]
    assert 0 < result.bytes_requested < 50 * 1000


def test_selections_have_all_rows_that_are_needed(tmp_path, monkeypatch):
    """Of pieces that are read, as ranges or as a whole; the others are left out, and rows come once, in order."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    graph = oocgraph.build_csr(hubs(8, 20000, 60000), tmp_path / "g.zarr")
    n, indptr = graph.num_rows, graph.read("out/indptr")
    rng = np.random.default_rng(3)
    needs = source_words.words_needs(graph, {}, 0, [])
    open_edges = partial(sweeps.stream_edges, opened=Unopened(1 << 40), threads=2)
    with sweeps.open_sweeps(graph, needs, Budget(1 << 40), open_edges, threads=2, pieces=0) as swept:
        for chosen in ([], [0], [n - 1], range(n), rng.choice(n, 5), rng.choice(n, 300), rng.choice(n, n // 2), [7, 8, 9, n // 2]):
            words = np.zeros(n, np.uint64)
            words[list(chosen)] = 4
            for rows in (sweeps.Rows(words), sweeps.Rows(~words, np.uint64(4), np.uint64(2**64 - 1))):
                selection = swept.select(rows, lists="out")
                calls = swept.pull(lambda first, pointers, *others: (first, pointers.copy()), only=selection)
                given = np.concatenate([[0], *(np.arange(first, first + pointers.size - 1) for first, pointers in calls)]).astype(int)[1:]
                assert set(np.flatnonzero(words)) <= set(given)
                assert (np.diff(given) > 0).all()
                for first, pointers in calls:
                    np.testing.assert_array_equal(pointers, indptr[first : first + pointers.size])
                if len(chosen) < 6:
                    assert len(given) < n // 10
                    assert selection.num_read < indptr[-1] // 4


@pytest.mark.parametrize("directed", [False, True])
def test_centralities_are_networkxs(tmp_path, directed):
    graph, peer = built(tmp_path / "g.zarr", 4, directed=directed)
    closeness, harmonic = in_order(nx.closeness_centrality(peer)), in_order(nx.harmonic_centrality(peer))
    for given in ({}, {"k": NUM_IDS}):
        found = oocgraph.closeness_centrality(graph, **given)
        np.testing.assert_allclose(found.closeness, closeness, rtol=1e-13)
        assert not found.is_estimate
        plain = oocgraph.closeness_centrality(graph, wf_improved=False, **given)
        np.testing.assert_allclose(plain.closeness, in_order(nx.closeness_centrality(peer, wf_improved=False)), rtol=1e-13)
        np.testing.assert_allclose(oocgraph.harmonic_centrality(graph, **given).harmonic, harmonic, rtol=1e-12)
    some = [7, 3, 128, 60]
    for found, expected in (
        (oocgraph.closeness_centrality(graph, some), closeness), (oocgraph.harmonic_centrality(graph, some), harmonic),
    ):  # fmt: skip
        np.testing.assert_allclose(found.of(some), expected[some], rtol=1e-12)
        column = getattr(found, next(iter(found.columns)))
        asked = np.isin(np.arange(NUM_IDS), some) | (in_order(dict(peer.degree)) == 0)
        np.testing.assert_array_equal(np.isnan(column), ~asked)
        assert found.top(1)[0][0] in some
        found.plot()


@pytest.mark.parametrize("directed", [False, True])
def test_estimates_are_near_and_right_on_average(tmp_path, directed):
    """Of a connected graph; vertices that were chosen have exact values, if it is undirected."""
    source, target = hubs(6, 400, 4000)
    around = np.arange(400)
    edges = np.concatenate([source, around]), np.concatenate([target, (around + 1) % 400])
    graph = oocgraph.build_csr(edges, tmp_path / "g.zarr", directed=directed)
    exact = oocgraph.closeness_centrality(graph).closeness
    harmonic = oocgraph.harmonic_centrality(graph).harmonic
    runs = [oocgraph.closeness_centrality(graph, k=70, seed=seed) for seed in range(12)]
    for one in runs:
        assert one.is_estimate
        np.testing.assert_allclose(one.closeness, exact, rtol=0.25)
        assert (one.closeness == exact).sum() >= 70 * (not directed)
    assert len({one.closeness.tobytes() for one in runs}) == len(runs)
    np.testing.assert_allclose(np.mean([1 / one.closeness for one in runs], axis=0), 1 / exact, rtol=0.08)
    mean = np.mean([oocgraph.harmonic_centrality(graph, k=70, seed=seed).harmonic for seed in range(12)], axis=0)
    np.testing.assert_allclose(mean, harmonic, rtol=0.08)


SHAPES = {
    "path": nx.path_graph(50), "cycle": nx.cycle_graph(41), "even cycle": nx.cycle_graph(40), "star": nx.star_graph(70),
    "clique": nx.complete_graph(70), "grid": nx.grid_2d_graph(7, 11), "tree": nx.balanced_tree(2, 6), "edge": nx.path_graph(2),
    "small world": nx.connected_watts_strogatz_graph(300, 4, 0.1, seed=1), "hubs": nx.barabasi_albert_graph(300, 2, seed=2),
    "lollipop": nx.lollipop_graph(20, 15),
}  # fmt: skip


@pytest.mark.one_in(8)
@pytest.mark.parametrize("shape", SHAPES)
def test_eccentricity_and_diameter_are_networkxs(tmp_path, monkeypatch, shape):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 64)
    graph, peer = connected(tmp_path / "g.zarr", SHAPES[shape])
    np.testing.assert_array_equal(oocgraph.eccentricity(graph).eccentricity, in_order(nx.eccentricity(peer)))
    found = oocgraph.diameter(graph, resources=Resources(threads=3))
    assert (found.diameter, found.lower, found.upper, found.is_exact) == (nx.diameter(peer),) * 3 + (True,)
    assert nx.shortest_path_length(peer, *found.ends) == found.diameter
    bounds = oocgraph.diameter(graph, max_searches=1)
    assert bounds.lower <= found.diameter <= bounds.upper
    assert nx.shortest_path_length(peer, *bounds.ends) == bounds.lower
    assert bounds.num_searches <= found.num_searches


def test_the_diameter_of_a_grid_takes_few_searches(tmp_path):
    """From the middle between all corners, not from a corner that lies halfway between two others."""
    graph = oocgraph.generate_grid((45, 45), tmp_path / "g.zarr")
    found = oocgraph.diameter(graph)
    assert found.diameter == 88
    assert found.num_searches < 20


def test_the_diameter_of_a_grid_of_three_dimensions_takes_few_searches(tmp_path):
    graph, _ = connected(tmp_path / "g.zarr", nx.grid_graph((9, 10, 11)))
    found = oocgraph.diameter(graph)
    assert found.diameter == 27
    assert found.num_searches < 40


def test_lists_that_are_not_symmetric_are_refused(tmp_path):
    """Neighbours have changed places in the file: each is a vertex, but edges lead in one direction only, and one distance shows it."""
    graph = oocgraph.build_csr((np.arange(5000), np.arange(1, 5001)), tmp_path / "g.zarr")
    (path,) = (tmp_path / "g.zarr" / "out" / "indices" / "c").iterdir()
    entries, rng = np.fromfile(path, "<u4"), np.random.default_rng(3)
    start = rng.integers(100, entries.size - 100)
    entries[start : start + 40] = rng.permutation(entries[start : start + 40])
    entries.tofile(path)
    with pytest.raises(CorruptStoreError, match="is not the same in both directions; run `oocgraph check`"):
        oocgraph.diameter(graph)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("seed", range(3))
def test_who_is_near_to_less_eccentric_vertices_is_left_out(tmp_path, seed):
    """Where nearly all vertices are as eccentric as each other."""
    random = nx.gnm_random_graph(1500, 6000, seed=seed)
    graph, peer = connected(tmp_path / "g.zarr", random.subgraph(max(nx.connected_components(random), key=len)))
    found = oocgraph.diameter(graph)
    assert found.diameter == nx.diameter(peer, usebounds=True)
    assert found.num_searches < peer.number_of_nodes() / 2


def test_bounds_that_differ_are_no_diameter(tmp_path):
    graph, _ = connected(tmp_path / "g.zarr", nx.cycle_graph(41))
    bounds = oocgraph.diameter(graph, max_searches=1)
    assert (bounds.lower, bounds.upper) == (20, 40)
    assert "from 20 to 40" in repr(bounds)
    with pytest.raises(ArgumentError, match="the diameter is from 20 to 40: max_searches was too few"):
        _ = bounds.diameter


def test_eccentricity_of_some_and_of_a_directed_graph(tmp_path):
    graph, _ = connected(tmp_path / "g.zarr", nx.cycle_graph(9, create_using=nx.DiGraph))
    assert oocgraph.eccentricity(graph).eccentricity.tolist() == [8] * 9
    some = oocgraph.eccentricity(graph, [2, 5])
    assert some.of([5, 2]).tolist() == [8, 8]
    assert (some.eccentricity == -1).sum() == 7
    with pytest.raises(ArgumentError, match=r"is directed, and diameter takes undirected graphs; the largest value of eccentricity"):
        oocgraph.diameter(graph)


def test_infinite_distances_are_refused(tmp_path):
    two = oocgraph.build_csr(([0, 1, 5], [1, 2, 6]), tmp_path / "two.zarr")
    isolated = oocgraph.build_csr(([0, 1], [1, 2]), tmp_path / "isolated.zarr", num_vertices=5)
    one_way = oocgraph.build_csr(([0, 1], [1, 2]), tmp_path / "way.zarr", directed=True)
    for function in (oocgraph.eccentricity, oocgraph.diameter):
        with pytest.raises(ArgumentError, match=r"is not connected, so distances are infinite: .* reaches . of 5 vertices; take one comp"):
            function(two)
        with pytest.raises(ArgumentError, match="is not connected, so distances are infinite: 2 vertices have no edges"):
            function(isolated)
    with pytest.raises(ArgumentError, match=r"is not strongly connected, .*: vertex \d reaches \d of 3 vertices"):
        oocgraph.eccentricity(one_way)
    assert oocgraph.multi_source_bfs(two, [0, 5]).depth.tolist() == [2, 1]


def test_graphs_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3)
    found = oocgraph.multi_source_bfs(graph, [2, 0], distances=True)
    assert found.levels.tolist() == [[-1, 0], [-1, -1], [0, -1]]
    assert found.num_reached.tolist() == [1, 1]
    assert oocgraph.closeness_centrality(graph).closeness.tolist() == [0, 0, 0]
    assert oocgraph.harmonic_centrality(graph, k=2).harmonic.tolist() == [0, 0, 0]
    with pytest.raises(ArgumentError, match="3 vertices have no edges"):
        oocgraph.diameter(graph)
    alone = oocgraph.build_csr(([], []), tmp_path / "one.zarr", num_vertices=1)
    assert (oocgraph.diameter(alone).diameter, oocgraph.diameter(alone).ends) == (0, (0, 0))
    assert oocgraph.eccentricity(alone).eccentricity.tolist() == [0]
    nothing = oocgraph.build_csr(([], []), tmp_path / "none.zarr")
    assert oocgraph.closeness_centrality(nothing).closeness.size == 0
    assert oocgraph.eccentricity(nothing).eccentricity.size == 0
    with pytest.raises(ArgumentError, match="has no vertices, so it has no diameter"):
        oocgraph.diameter(nothing)


def test_a_result_is_read_and_written_under_the_users_ids(tmp_path):
    import pyarrow.parquet as pq

    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c"], ["a", "c", "d"], others=["alone"])
    result = oocgraph.multi_source_bfs(graph, ["a", "alone"], distances=True)
    assert result.vertices.tolist() == ["a", "alone", "b", "c", "d"]
    assert result.levels.tolist() == [[0, -1], [-1, 0], [1, -1], [2, -1], [3, -1]]
    assert result.sources == ["a", "alone"]
    assert result.of("d") == 3
    assert result.of(["alone", "b"], "level_1").tolist() == [0, -1]
    assert set(result.to_pandas()) == {"vertex", "level_0", "level_1"}
    result.write(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet")["level_0"].to_pylist() == [0, -1, 1, 2, 3]
    assert "MultiSourceResult: 2 sources, 5 vertices" in repr(result)
    peer = nx.Graph(["ba", "bc", "cd"])
    peer.add_node("alone")
    assert oocgraph.closeness_centrality(graph, "b").of("b") == pytest.approx(nx.closeness_centrality(peer, "b"))
    figures = oocgraph.multi_source_bfs(graph, "a")
    assert figures.depth.tolist() == [3]
    for use in (figures.to_pandas, lambda: figures.levels, lambda: figures.of("a"), lambda: figures.write(tmp_path / "f.csv")):
        with pytest.raises(ArgumentError, match=r"has no levels of vertices; ask for them by multi_source_bfs\(\.\.\., distances=True\)"):
            use()


def test_what_makes_no_sense_is_refused(tmp_path):
    graph = oocgraph.build_csr(hubs(6, 50, 300), tmp_path / "g.zarr")
    num_ids = graph.attributes.num_input_vertices
    for call, said in (
        (lambda: oocgraph.multi_source_bfs(graph, []), "sources is empty"),
        (lambda: oocgraph.multi_source_bfs(graph, [1], depth_limit=-1), "depth_limit is -1; it must be a whole number, 0 or more"),
        (lambda: oocgraph.closeness_centrality(graph, k=num_ids + 1), f"k is {num_ids + 1}; it must be a whole number from 2 to {num_ids}"),
        (lambda: oocgraph.harmonic_centrality(graph, k=1), "k is 1"), (lambda: oocgraph.harmonic_centrality(graph, k=2.5), "k is 2.5"),
        (lambda: oocgraph.closeness_centrality(graph, k=3, seed=-1), "seed is -1; it must be 0 or more"),
        (lambda: oocgraph.multi_source_bfs(graph, [[1, 2]]), r"\[1, 2\] is given as one vertex id; give a plain list of ids"),
        (lambda: oocgraph.closeness_centrality(graph, [1], k=3), "vertices and k are given"),
        (lambda: oocgraph.diameter(graph, max_searches=0), "max_searches is 0; it must be a whole number, 1 or more"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=said):
            call()
    for function in (oocgraph.multi_source_bfs, oocgraph.closeness_centrality, oocgraph.harmonic_centrality, oocgraph.eccentricity):
        with pytest.raises(VertexNotFoundError, match="5000 is not in"):
            function(graph, [1, 5000])
    with pytest.raises(TypeError, match="distances is 1; give True or False"):
        oocgraph.multi_source_bfs(graph, [1], distances=1)
    with pytest.raises(BudgetError, match=r"words of sources .*, levels 1\.\d GiB.*set memory_budget to at least"):
        oocgraph.multi_source_bfs(oocgraph.generate_uniform(15, tmp_path / "u.zarr"), range(25_000), distances=True, memory_budget="1G")


@pytest.mark.parametrize("num_edges", [60, 400])
def test_landmarks_bound_distances(tmp_path, num_edges):
    """In one component and between several; isolated vertices, too."""
    source, target = hubs(12, 90, num_edges)
    graph = oocgraph.build_csr((source, target), tmp_path / "g.zarr", num_vertices=95)
    peer = nx.Graph(zip(source.tolist(), target.tolist(), strict=True))
    peer.add_nodes_from(range(95))
    landmarks = oocgraph.multi_source_bfs(graph, [*graph.ids_of(np.arange(6)).tolist(), 94], distances=True)
    first, second = np.divmod(np.arange(95 * 95), 95)
    lower, upper = landmarks.bounds(first, second)
    exact = np.full((95, 95), np.inf)
    for u, found in nx.all_pairs_shortest_path_length(peer):
        exact[u, list(found)] = list(found.values())
    exact = exact.ravel()
    assert (lower <= exact).all()
    assert (exact <= upper).all()
    assert (lower == exact).mean() > 0.2
    assert (upper[np.isfinite(upper)] < 2 * 95).all()
    assert [one.tolist() for one in landmarks.bounds(94, 3)] == [[np.inf], [np.inf]]
    assert [one.tolist() for one in landmarks.bounds(3, 3)] == [[0], [0]]


def test_bounds_that_cannot_be_had_are_refused(tmp_path):
    graph = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "g.zarr")
    with pytest.raises(ArgumentError, match="has no levels of vertices"):
        oocgraph.multi_source_bfs(graph, [1]).bounds(1, 2)
    found = oocgraph.multi_source_bfs(graph, [1], distances=True)
    with pytest.raises(ArgumentError, match="first has 2 ids and second 1"):
        found.bounds([1, 2], [3])
    with pytest.raises(oocgraph.VertexNotFoundError):
        found.bounds(1, 9)
    directed = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "d.zarr", directed=True)
    with pytest.raises(ArgumentError, match="is directed, and bounds are of undirected graphs"):
        oocgraph.multi_source_bfs(directed, [1], distances=True).bounds(1, 2)
