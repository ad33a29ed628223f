"""Biconnected components, articulation points and bridges are NetworkX's, whatever the order of the edges, the pieces and the threads."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, CorruptStoreError, Resources, config
from oocgraph.kernels import biconnected as kernels
from oocgraph.sparse import edge_stream
from oocgraph.types import no_parent
from tests.stores import rewrite, string_store


def sparse_edges(seed, num_ids=60, num_edges=75):
    """Return edges of many small components, parallel ones and self-loops among them."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, num_ids, (2, int(rng.integers(1, num_edges))))


def peer_of(edges, ids):
    graph = nx.MultiGraph()
    graph.add_nodes_from(ids)
    graph.add_edges_from((u, v) for u, v in zip(*(end.tolist() for end in edges), strict=True) if u != v)
    return graph


def sets_of(result):
    """Return the components as sets: the vertices below each, and the one above."""
    found = {}
    for vertex, component, parent in zip(result.vertices.tolist(), result.component.tolist(), result.parent.tolist(), strict=True):
        if parent != vertex:
            found.setdefault(component, {parent}).add(vertex)
    return found


def check(result, peer):
    """Everything that a result says is what NetworkX says, and the forest is rooted and named as documented."""
    found = sets_of(result)
    sets = list(nx.biconnected_components(peer))
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, sets))
    assert (result.num_components, result.largest) == (len(sets), max(map(len, sets), default=0))
    points = sorted(nx.articulation_points(peer))
    assert result.articulation_points().tolist() == points
    assert result.num_articulation_points == len(points)
    bridges = result.bridges()
    pairs = {frozenset(pair) for pair in zip(bridges["source"].tolist(), bridges["target"].tolist(), strict=True)}
    assert pairs == set(map(frozenset, nx.bridges(peer)))
    assert result.num_bridges == len(pairs) == len(bridges["source"])
    often = {vertex: sum(vertex in one for one in sets) for vertex in peer}
    assert dict(zip(result.vertices.tolist(), result.components.tolist(), strict=True)) == often
    parent, component = (dict(zip(result.vertices.tolist(), column.tolist(), strict=True)) for column in (result.parent, result.component))
    for name, members in found.items():
        assert name == min(vertex for vertex in members if component[vertex] == name)
    roots = {vertex for vertex in parent if parent[vertex] == vertex}
    assert roots == {min(one) for one in nx.connected_components(peer)}
    assert result.component[np.isin(result.vertices, list(roots))].tolist() == sorted(roots)


@pytest.mark.parametrize("piece", [None, 16])
@pytest.mark.parametrize("duplicates", ["drop", "keep"])
@pytest.mark.parametrize("seed", range(12))
def test_small_graphs(tmp_path, monkeypatch, seed, duplicates, piece):
    """Parallel edges make no bridge; self-loops and vertices without edges make nothing."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    edges = sparse_edges(seed)
    if duplicates == "drop":
        edges = np.unique(np.sort(edges, axis=0), axis=1)
    options = {"num_vertices": 66, "keep_self_loops": True, "duplicates": duplicates}
    store = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr", **options)
    check(oocgraph.biconnected_components(store), peer_of(edges, range(66)))


@pytest.mark.parametrize("order", ["degree", "original", "locality"])
def test_any_order_of_the_vertices(tmp_path, order):
    """Names and roots are those of ids."""
    edges = sparse_edges(31, 200, 260)
    with config.setting("vertex-order", order):
        store = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr", num_vertices=200)
    check(oocgraph.biconnected_components(store), peer_of(np.unique(np.sort(edges, axis=0), axis=1), range(200)))


def shapes():
    """Yield shapes whose forests are deep, flat, or of one component, in an order of their vertices that is not that of the edges."""
    path, rng = np.arange(3000), np.random.default_rng(5)
    grid = np.arange(900).reshape(30, 30)
    shuffled = rng.permutation(3000)
    chain = np.concatenate([np.stack([path[:-1], path[1:]]), np.stack([path[:-1:3], np.minimum(path[:-1:3] + 2, 2999)])], 1)
    yield "path", np.stack([path[:-1], path[1:]])
    yield "shuffled path", shuffled[np.stack([path[:-1], path[1:]])]
    yield "ring", shuffled[np.stack([path, np.roll(path, 1)])]
    yield "star", np.stack([np.zeros(2999, int), path[1:]])
    yield "shuffled triangles and edges in a chain", shuffled[np.unique(np.sort(chain, axis=0), axis=1)]
    across, down = (grid[:, :-1].ravel(), grid[:, 1:].ravel()), (grid[:-1].ravel(), grid[1:].ravel())
    yield "grid", np.concatenate([np.stack(across), np.stack(down)], 1)
    yield "tree", np.stack([path[1:], rng.integers(0, path[1:])])


@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize(("name", "edges"), [pytest.param(*one, id=one[0]) for one in shapes()])
def test_shapes(tmp_path, name, edges, order):
    with config.setting("vertex-order", order):
        store = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr")
    check(oocgraph.biconnected_components(store), peer_of(edges, np.unique(edges).tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_threads_and_pieces_change_nothing(tmp_path, monkeypatch, seed):
    """Threads turn trees round while others look at them."""
    edges = np.random.default_rng(seed).integers(0, 20_000, (2, 24_000 + 3_000 * seed))
    edges = np.concatenate([edges, edges[:, ::5]], axis=1)
    store = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr", duplicates="keep")
    alone = oocgraph.biconnected_components(store, resources=Resources(threads=1))
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    for _ in range(5):
        found = oocgraph.biconnected_components(store, resources=Resources(threads=8))
        for column in found.columns:
            assert np.array_equal(getattr(found, column), getattr(alone, column)), column
        assert found.details == alone.details


def test_strings_and_what_tables_have(tmp_path):
    """Names, roots and parents are ids, as users have them; a result is written as all are."""
    store = string_store(tmp_path / "g.zarr", ["b", "c", "d", "d"], ["c", "d", "b", "a"], others=["e"])
    result = oocgraph.biconnected_components(store)
    table = result.to_pandas().set_index("vertex")
    assert table["component"].to_dict() == {"a": "a", "b": "b", "c": "b", "d": "d", "e": "e"}
    assert table["parent"].to_dict() == {"a": "a", "b": "d", "c": "d", "d": "a", "e": "e"}
    assert table["components"].to_dict() == {"a": 1, "b": 1, "c": 1, "d": 2, "e": 0}
    assert table["bridge"].to_dict() == {"a": False, "b": False, "c": False, "d": True, "e": False}
    assert [one.tolist() for one in result.bridges().values()] == [["a"], ["d"]]
    assert result.articulation_points().tolist() == ["d"]
    assert "2 components, 1 articulation point, 1 bridge, largest 3" in repr(result)
    assert dict(zip(result.histogram().edges.tolist(), result.histogram().counts.tolist(), strict=False)) == {2: 1, 3: 1}
    assert result.top(1, "bridge") == [("d", True)]
    assert result.top(1, "components") == [("d", 2)]
    result.write(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().splitlines()[4] == '"d","d","a",2,true'


def test_runtimes_keep_edges(tmp_path):
    store = oocgraph.build_csr(tuple(sparse_edges(3)), tmp_path / "g.zarr")
    with oocgraph.open_runtime(store, resources=Resources(client=False)) as runtime:
        oocgraph.biconnected_components(store, runtime=runtime)
        found = oocgraph.biconnected_components(store, runtime=runtime)
    assert found.bytes_requested == 0
    assert found.details == oocgraph.biconnected_components(store).details


def test_what_is_refused(tmp_path):
    directed = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "d.zarr", directed=True)
    with pytest.raises(ArgumentError, match="is directed, and biconnected_components takes undirected graphs"):
        oocgraph.biconnected_components(directed)
    store = oocgraph.build_csr(([1, 2, 3], [2, 3, 4]), tmp_path / "g.zarr")
    with pytest.raises(BudgetError, match="set memory_budget to at least"):
        oocgraph.biconnected_components(store, memory_budget="1M")


@pytest.mark.parametrize(
    ("order", "message"), [([0, 1, 2, 9], "must be at least 0 and below 4"), ([0, 1, 1, 1], "twice"), ([3, 3, 3, 3], "twice")]
)
def test_an_order_that_is_none_is_an_error(tmp_path, order, message):
    with config.setting("vertex-order", "original"):
        store = oocgraph.build_csr(([1, 2, 3], [2, 3, 4]), tmp_path / "g.zarr")
    odd = rewrite(store.url, tmp_path / "o.zarr", arrays={"vertices/order": np.array(order, store.array("vertices/order").dtype)})
    with pytest.raises(CorruptStoreError, match=message):
        oocgraph.biconnected_components(odd)


def test_a_forest_of_wide_indices():
    """Signed and unsigned indices have other words for no parent."""
    for dtype in (np.dtype(np.uint32), np.dtype(np.int64)):
        forest, scratch = kernels.new_forest(4, dtype), np.zeros(2 * kernels.BATCH, np.int64)
        none = no_parent(dtype)
        pointers, indices = np.array([0, 2, 4, 7, 8]), np.array([1, 2, 0, 2, 0, 1, 3, 2], dtype)
        kernels.add_rows(0, pointers, 0, indices, None, forest, none, scratch)
        assert int((forest.up == none).sum()) == 1
        assert kernels.end_joining(forest, none, 0, 4) == 2
        assert not (forest.marks & kernels.VISITED).any()
