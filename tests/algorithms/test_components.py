"""Connected components equal SciPy's on any graph, at any budget and with any number of threads, and read little."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms.components import connected_components
from oocgraph.engine import forest as module
from oocgraph.errors import ArgumentError, BudgetError, CorruptStoreError, OocGraphError, ValidationError
from oocgraph.memory import host_bytes
from oocgraph.store import edge_masks
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.verify_results import verify_components
from tests.reference_build import reference_build
from tests.stores import rewrite


def expected(vertices, source, target):
    """Return of each vertex the smallest of its component, and the number of components, by SciPy."""
    at = [np.searchsorted(vertices, ends) for ends in (source, target)]
    matrix = sp.coo_matrix((np.ones(at[0].size), at), shape=(vertices.size, vertices.size))
    count, label = csgraph.connected_components(matrix, directed=True, connection="weak")
    _, first = np.unique(label, return_index=True)
    return vertices[first[label]], count


def check(store, source, target, **options):
    """Find the components of a store, and compare them with SciPy's and the verifier's."""
    result = connected_components(store, **options)
    component, count = expected(result.vertices, np.array(source), np.array(target))
    np.testing.assert_array_equal(result.component, component)
    assert result.num_components == count
    verify_components(store, result)
    return result


ENDS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


@settings(deadline=None)
@given(edges=ENDS, directed=st.booleans(), by_degree=st.booleans(), threads=st.integers(1, 3), small=st.booleans())
def test_any_small_graph(tmp_path_factory, edges, directed, by_degree, threads, small):
    """Self-loops, duplicates, isolated vertices; reads of one entry, and of the whole graph."""
    source, target = [u for u, _ in edges], [v for _, v in edges]
    path = tmp_path_factory.mktemp("g") / "g.zarr"
    reference_build(source, target, path, directed=directed, vertex_order="degree" if by_degree else "original")
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(module, "PIECE_BYTES", 8)
            patch.setattr(module, "GAP_BYTES", 0)
            patch.setattr(module, "MAX_RANGES", 2)
            patch.setattr(module, "BLOCK_ROWS", 4)
        check(open_graph(path), source, target, resources=Resources(threads=threads))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("below", [1, 10, 40, 128, 255, 256])
@pytest.mark.parametrize("halves", [False, True])
def test_edges_that_count_connect_what_they_would_alone(tmp_path, monkeypatch, directed, below, halves):
    """Graphs with hubs, by a condition that few or most edges meet; and of two halves of one size that one edge joins."""
    rng = np.random.default_rng(below)
    n = 3000
    source, target = (rng.random((2, 30_000)) ** 3 * n).astype(np.int64)
    if halves:
        source, target = np.concatenate([source, source + n]), np.concatenate([target, target + n])
    source, target = np.append(source, n - 1), np.append(target, 2 * n - 1 if halves else 0)
    weight = np.append(rng.integers(0, 256, source.size - 1), 0).astype(np.uint8)
    edges = pa.table({"source": source, "target": target, "weight": weight})
    graph = oocgraph.build_csr(edges, tmp_path / "g", directed=directed, weight="weight")
    monkeypatch.setattr(module, "PIECE_BYTES", 4096)
    monkeypatch.setattr(module, "GAP_BYTES", 64)
    found = connected_components(graph, where=f"weight < {below}")
    counts = weight < below
    component, count = expected(found.vertices, source[counts], target[counts])
    np.testing.assert_array_equal(found.component, component)
    assert found.num_components == count


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Return a graph with hubs, its edges, and their weights, 0 to 255."""
    rng = np.random.default_rng(4)
    source, target = (rng.random((2, 40_000)) ** 3 * 5000).astype(np.int64)
    source, target = np.unique(np.sort([source, target], axis=0), axis=1)
    weight = rng.integers(0, 256, source.size).astype(np.uint8)
    edges = pa.table({"source": source, "target": target, "weight": weight})
    return oocgraph.build_csr(edges, tmp_path_factory.mktemp("weighted") / "g", directed=False, weight="weight"), source, target, weight


@pytest.mark.parametrize("below", [1, 6, 60, 250])
@pytest.mark.parametrize("kind", ["zstd", "original", "in memory", "opened"])
def test_edges_that_count_wherever_they_are(weighted, tmp_path, monkeypatch, kind, below):
    """Compressed, without planes, in memory, or opened within a budget that keeps some of the edges."""
    store, source, target, weight = weighted
    monkeypatch.setattr(module, "PIECE_BYTES", 8192)
    monkeypatch.setattr(module, "LISTED_ROWS", 500)
    options = {"zstd": {"codec": "zstd"}, "original": {"vertex_order": "original", "num_planes": 0}}
    where = f"weight < {below}"
    if kind == "opened":
        with oocgraph.open_runtime(store, where=where, resources=Resources(device="cpu", client=False)) as runtime:
            found = connected_components(store, where=where, runtime=runtime)
    else:
        if kind == "in memory":
            store = oocgraph.build_csr(pa.table({"source": source, "target": target, "weight": weight}), directed=False, weight="weight")
        else:
            store = rewrite(store.url, tmp_path / "h", **options[kind])
        found = connected_components(store, where=where)
    component, count = expected(found.vertices, source[weight < below], target[weight < below])
    np.testing.assert_array_equal(found.component, component)
    assert found.num_components == count


def test_a_condition_is_not_evaluated_for_hubs(weighted, monkeypatch):
    """Of vertices with long lists, which others join, only the lists of those that none joins are read."""
    store, *_, weight = weighted
    evaluated = []
    evaluate = edge_masks._GroupBits._evaluate
    monkeypatch.setattr(
        edge_masks._GroupBits, "_evaluate", lambda self, start, stop: evaluated.append(stop - start) or evaluate(self, start, stop)
    )
    monkeypatch.setattr(edge_masks, "GRAIN_EDGES", 1 << 8)
    monkeypatch.setattr(module, "SHORT_LISTS", 2)
    monkeypatch.setattr(module, "LEAST_EVALUATED", 1 << 8)
    connected_components(store, where="weight < 128")
    assert 0 < sum(evaluated) < 0.75 * 2 * weight.size  # each edge is in two lists


def cycles(num_cycles, length):
    """Return the edges of some cycles, whose vertices are dealt so that neighbours are far apart."""
    first = np.arange(num_cycles * length)
    ring, at = first // length, first % length
    return at * num_cycles + ring, (at + 1) % length * num_cycles + ring


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_many_components_of_one_size(tmp_path, directed, codec):
    """None is much larger than the others, so that nearly all lists are read, on both sides of a directed edge."""
    source, target = cycles(300, 20)
    store = oocgraph.build_csr((source, target), tmp_path / "g.zarr", directed=directed)
    if codec != "none":
        store = open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec=codec))
    assert check(store, source, target).num_components == 300


@pytest.mark.usefixtures("steady_memory")
def test_hubs_take_planes_alone(tmp_path):
    """Of a Kronecker graph hardly anything but planes is read, and the same is found within the smallest budget that is named."""
    store = oocgraph.generate_kronecker(14, tmp_path / "g.zarr", seed=1)
    result = connected_components(store)
    verify_components(store, result)
    assert result.bytes_requested - result.plane_bytes < 0.01 * result.edge_bytes
    with pytest.raises(BudgetError, match=r"at least \d+M") as refused:
        connected_components(store, memory_budget=host_bytes() + (1 << 20))
    smallest = str(refused.value).rpartition("at least ")[2]
    again = connected_components(store, memory_budget=smallest, resources=Resources(threads=3))
    np.testing.assert_array_equal(again.stored_component, result.stored_component)
    assert again.num_components == result.num_components


def test_strings_and_what_a_result_offers(tmp_path):
    """Components are named after the smallest id, by its order as a string; files have the same."""
    source, target = np.array(["pear", "fig", "kiwi"]), np.array(["apple", "nut", "fig"])
    result = connected_components(oocgraph.build_csr((source, target), tmp_path / "g.zarr"))
    assert result.vertices.tolist() == ["apple", "fig", "kiwi", "nut", "pear"]
    assert result.component.tolist() == ["apple", "fig", "fig", "fig", "apple"]
    assert result.component_of("pear") == "apple"
    assert result.component_of(["nut", "kiwi"]).tolist() == ["fig", "fig"]
    assert "2 components of 5 vertices" in repr(result)
    assert result.to_pandas().component.tolist() == result.component.tolist()
    result.write(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().splitlines()[1].replace('"', "") == "apple,apple"


def test_a_graph_without_edges(tmp_path):
    """Every vertex is a component of its own."""
    store = oocgraph.build_csr((np.array([], np.int64), np.array([], np.int64)), tmp_path / "g.zarr")
    result = connected_components(store)
    assert (result.num_components, result.component.tolist()) == (0, [])
    verify_components(store, result)


def test_a_damaged_order_is_found(tmp_path):
    """It names one vertex twice: a component would have no name."""
    reference_build([0, 2], [1, 3], tmp_path / "g.zarr")
    store = open_graph(tmp_path / "g.zarr")
    (chunk,) = [path for path in (tmp_path / "g.zarr" / "vertices" / "order").rglob("*") if path.is_file() and path.name != "zarr.json"]
    order = np.frombuffer(chunk.read_bytes(), store.index_dtype).copy()
    order[:] = order[0]
    chunk.write_bytes(order.tobytes())
    with pytest.raises(CorruptStoreError, match="vertices/order"):
        connected_components(store)


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_invalid_threads_are_refused(tmp_path, threads):
    store = oocgraph.build_csr(([0], [1]), tmp_path / "g.zarr")
    with pytest.raises(OocGraphError, match="threads is"):
        connected_components(store, resources=Resources(threads=threads))


class TestVerifier:
    """Each rule is found broken, with the vertices."""

    @pytest.fixture
    def store(self, tmp_path):
        return oocgraph.build_csr(([10, 20, 40], [20, 30, 50]), tmp_path / "g.zarr")

    @pytest.fixture
    def component(self, store):
        return connected_components(store).stored_component.copy()

    def test_two_components_for_one(self, store, component):
        (v,) = store_numbers(store, [30])
        component[v] = v
        with pytest.raises(ValidationError, match=r"an edge leads from one component to another: (20 and 30|30 and 20)"):
            verify_components(store, component)

    def test_one_component_for_two(self, store, component):
        a, b, c = store_numbers(store, [10, 40, 50])
        component[[b, c]] = a
        with pytest.raises(ValidationError, match="no path of edges joins"):
            verify_components(store, component)

    def test_a_name_of_another_component(self, store, component):
        b, c, other = store_numbers(store, [40, 50, 20])
        component[[b, c]] = other
        with pytest.raises(ValidationError, match="named after a vertex of another"):
            verify_components(store, component)

    def test_a_name_that_is_no_vertex(self, store, component):
        component[store_numbers(store, [40, 50])] = 99
        with pytest.raises(ValidationError, match="is 99, which is no vertex"):
            verify_components(store, component)

    @pytest.mark.parametrize("wrong", [np.zeros(2, np.int64), np.zeros(5)])
    def test_another_shape_or_dtype(self, store, wrong):
        with pytest.raises(ArgumentError, match="has 5 vertices" if wrong.dtype == np.int64 else "an array of integers"):
            verify_components(store, wrong)


def store_numbers(store, ids):
    """Return the store numbers of ids."""
    return VertexIds(store).vertices_of(ids)
