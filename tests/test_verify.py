import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

from oocgraph import verify
from oocgraph.errors import CorruptStoreError, ValidationError
from oocgraph.results.bfs import BFSResult
from oocgraph.results.search import Search
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.types import no_parent
from oocgraph.verify import verify_bfs, verify_search
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store


def plain_bfs(store, sources, limit=10**9, dtype=np.uint8):
    """Parent and level by queue, in Python."""
    indptr, indices = store.read("out/indptr"), store.read("out/indices")
    parent = np.full(store.num_rows, no_parent(store.index_dtype), store.index_dtype)
    level = np.full(store.num_rows, 255 if dtype == np.uint8 else -1, dtype)
    unreached = level.copy()
    queue = list(dict.fromkeys(sources))
    parent[queue], level[queue] = queue, 0
    for u in queue:
        for w in indices[indptr[u] : indptr[u + 1]]:
            if level[w] == unreached[w] and level[u] < limit:
                level[w], parent[w] = level[u] + 1, u
                queue.append(int(w))
    return parent, level


def store_of(path, src, dst, **options):
    reference_build(src, dst, path, **options)
    return open_graph(path)


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def graph(request, tmp_path):
    """Two components: a path 0-1-2-3-4 with the chord 0-2 (by user id), and 10-11."""
    return store_of(tmp_path / "g.zarr", [0, 1, 2, 3, 0, 10], [1, 2, 3, 4, 2, 11], directed=request.param)


@pytest.fixture
def tree(graph):
    number = {int(one): v for v, one in enumerate(VertexIds(graph).ids_of(np.arange(graph.num_rows)))}
    parent, level = plain_bfs(graph, [number[0]])
    return graph, number, parent, level


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_valid_trees_pass(tmp_path, monkeypatch, directed, keep, dtype, num_threads):
    """Several components, duplicates and self-loops kept, rows cut by blocks; counts equal SciPy's."""
    monkeypatch.setattr(verify, "BLOCK_BYTES", 40)
    monkeypatch.setattr(verify, "_VERTICES", 7)
    src, dst = random_edges(5)
    options = {"keep_self_loops": keep, "duplicates": "keep" if keep else "drop"}
    store = store_of(tmp_path / "g.zarr", src, dst, directed=directed, **options)
    for sources in ([0], [store.num_rows - 1], [3, 3, 9]):
        parent, level = plain_bfs(store, sources, dtype=dtype)
        report = verify_search(store, sources, parent, level, threads=num_threads)
        reached = parent != no_parent(parent.dtype)
        assert report.num_reached == np.count_nonzero(reached)
        assert report.depth == level[reached].max()
        rows = np.repeat(np.arange(store.num_rows), np.diff(store.read("out/indptr")))
        of_tree, loops = reached[rows], rows == store.read("out/indices")
        assert report.num_edges_checked == of_tree.sum()
        assert report.num_reached_edges == (of_tree.sum() if directed else (of_tree.sum() + (of_tree & loops).sum()) // 2)


def test_wrong_parent_level_is_caught(tree):
    store, number, parent, level = tree
    level[number[4]] = 1
    with pytest.raises(ValidationError, match=r"one level below its parent, but vertex \d+ \(id 4, level 1"):
        verify_search(store, [number[0]], parent, level)


def test_level_without_parent_is_caught(tree):
    store, number, parent, level = tree
    level[number[10]] = 3
    with pytest.raises(ValidationError, match=r"if and only if it has a parent, but vertex \d+ \(id 10, level 3, parent none"):
        verify_search(store, [number[0]], parent, level)


def test_parent_without_level_is_caught(tree):
    store, number, parent, level = tree
    parent[number[10]] = number[11]
    with pytest.raises(ValidationError, match="if and only if"):
        verify_search(store, [number[0]], parent, level)


def test_parent_out_of_range_is_caught(tree):
    store, number, parent, level = tree
    parent[number[4]] = store.num_rows
    with pytest.raises(ValidationError, match="a parent is a vertex"):
        verify_search(store, [number[0]], parent, level)


def test_source_that_is_not_its_own_parent_is_caught(tree):
    store, number, parent, level = tree
    parent[number[0]] = number[1]
    with pytest.raises(ValidationError, match=r"a source is at level 0 .* \(id 0"):
        verify_search(store, [number[0]], parent, level)


def test_second_root_is_caught(tree):
    """Another component declared reached from itself."""
    store, number, parent, level = tree
    v = number[11]
    parent[v], level[v] = v, 0
    with pytest.raises(ValidationError, match=r"only sources are at level 0, but vertex \d+ \(id 11"):
        verify_search(store, [number[0]], parent, level)


def test_root_with_foreign_parent_is_caught(tree):
    store, number, parent, level = tree
    parent[number[11]], level[number[11]] = number[0], 0
    with pytest.raises(ValidationError, match="a vertex at level 0 is a source"):
        verify_search(store, [number[0]], parent, level)


def test_source_out_of_range_is_caught(tree):
    store, _, parent, level = tree
    with pytest.raises(ValidationError, match="source 99 is not one of"):
        verify_search(store, [99], parent, level)


def test_cycle_is_caught(tree):
    """Two vertices that are each other's parents cannot both be one level below."""
    store, number, parent, level = tree
    parent[number[10]], parent[number[11]] = number[11], number[10]
    level[[number[10], number[11]]] = 4, 5
    with pytest.raises(ValidationError, match="one level below its parent"):
        verify_search(store, [number[0]], parent, level)


def test_tree_edge_that_does_not_exist_is_caught(tmp_path):
    """A plausible parent, one level up, but no neighbour."""
    store = store_of(tmp_path / "g.zarr", [0, 0, 1, 2], [1, 2, 3, 4])
    number = {int(one): v for v, one in enumerate(VertexIds(store).ids_of(np.arange(5)))}
    parent, level = plain_bfs(store, [number[0]])
    parent[number[3]] = number[2]
    with pytest.raises(ValidationError, match=r"a tree edge is an edge .*\(id 2,.* no edge to its child .*\(id 3"):
        verify_search(store, [number[0]], parent, level)


def test_tree_edge_against_its_direction_is_caught(tmp_path):
    store = store_of(tmp_path / "g.zarr", [0, 2], [1, 1], directed=True)
    number = {int(one): v for v, one in enumerate(VertexIds(store).ids_of(np.arange(3)))}
    parent, level = plain_bfs(store, [number[0]])
    parent[number[2]], level[number[2]] = number[1], 2
    with pytest.raises(ValidationError, match="a tree edge is an edge"):
        verify_search(store, [number[0]], parent, level)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_level_that_is_too_deep_is_caught(tmp_path, dtype):
    """A valid spanning tree, but not of shortest paths."""
    store = store_of(tmp_path / "g.zarr", [0, 1, 2, 0], [1, 2, 3, 3], directed=True)
    number = {int(one): v for v, one in enumerate(VertexIds(store).ids_of(np.arange(4)))}
    parent, level = plain_bfs(store, [number[0]], dtype=dtype)
    parent[number[3]], level[number[3]] = number[2], 3
    with pytest.raises(ValidationError, match=r"spans at most one level, but the edge vertex \d+ \(id 0.* -> vertex \d+ \(id 3, level 3"):
        verify_search(store, [number[0]], parent, level)


def test_incomplete_component_is_caught(tree):
    """The last vertex of the path was forgotten."""
    store, number, parent, level = tree
    parent[number[4]], level[number[4]] = no_parent(parent.dtype), 255
    with pytest.raises(ValidationError, match=r"spans at most one level.*\(id 4, level none"):
        verify_search(store, [number[0]], parent, level)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
@pytest.mark.parametrize("backwards", [False, True])
def test_search_that_ends_where_a_byte_does_is_caught(tmp_path, directed, dtype, backwards):
    """Level 254 is the last that a byte holds; the next number says that a vertex is unreached."""
    ends = np.arange(299), np.arange(1, 300)
    if backwards:
        ends = 299 - ends[0], 299 - ends[1]
    store = store_of(tmp_path / "g.zarr", *ends, directed=directed)
    source = VertexIds(store).vertices_of(ends[0][:1]).tolist()
    cut = plain_bfs(store, source, limit=254, dtype=dtype)
    assert verify_search(store, source, *cut, depth_limit=254).depth == 254
    with pytest.raises(ValidationError, match=r"spans at most one level.*, level 254.*, level none"):
        verify_search(store, source, *cut)


def test_depth_limit_is_respected(tree):
    """Beyond the limit vertices are unreached; before it they must not be; deeper ones are an error."""
    store, number, parent, level = tree
    source = [number[0]]
    limited = plain_bfs(store, source, limit=2)
    report = verify_search(store, source, *limited, depth_limit=2)
    assert report.depth == 2
    with pytest.raises(ValidationError, match="spans at most one level"):
        verify_search(store, source, *limited)
    with pytest.raises(ValidationError, match="spans at most one level"):
        verify_search(store, source, *limited, depth_limit=3)
    with pytest.raises(ValidationError, match="the depth limit is 2"):
        verify_search(store, source, parent, level, depth_limit=2)
    assert verify_search(store, source, *plain_bfs(store, source, limit=0), depth_limit=0).num_reached == 1


def test_arrays_of_the_wrong_form_are_caught(tree):
    store, number, parent, level = tree
    with pytest.raises(ValidationError, match="must have one entry for each"):
        verify_search(store, [number[0]], parent[:-1], level)
    with pytest.raises(ValidationError, match="level uint8 or int32"):
        verify_search(store, [number[0]], parent, level.astype(np.int64))


def test_damaged_stores_are_named(tree, tmp_path):
    """A neighbour out of range and a descending indptr never reach memory that is not theirs."""
    store, number, parent, level = tree
    indices, indptr = store.read("out/indices"), store.read("out/indptr")
    indices[int(indptr[number[0] + 1]) - 1] = 10**6
    bad = rewrite(store.url, tmp_path / "bad.zarr", arrays={"out/indices": indices})
    with pytest.raises(CorruptStoreError, match="of out/indices is 1000000, but must be at least 0 and below"):
        verify_search(bad, [number[0]], parent, level)
    if not store.attributes.directed:
        row, indices = int(indptr[number[2]]), store.read("out/indices")
        indices[row : row + 2] = indices[row : row + 2][::-1]
        bad = rewrite(store.url, tmp_path / "bad.zarr", arrays={"out/indices": indices})
        with pytest.raises(CorruptStoreError, match="does not ascend"):
            verify_search(bad, [number[0]], parent, level)
    indptr[2] = 10**9
    bad = rewrite(store.url, tmp_path / "bad.zarr", arrays={"out/indptr": indptr})
    with pytest.raises(CorruptStoreError, match=r"of out/indptr is .*, but must"):
        verify_search(bad, [number[0]], parent, level)


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_compressed_stores_are_judged_too(tree, tmp_path, codec):
    store, number, parent, level = tree
    packed = rewrite(store.url, tmp_path / "packed.zarr", codec=codec)
    assert verify_search(packed, [number[0]], parent, level).num_reached == 5


def test_graph_without_edges(tmp_path):
    store = store_of(tmp_path / "g.zarr", [], [], implied=(0, 3))
    report = verify_search(store, [], np.empty(0, np.uint32), np.empty(0, np.uint8))
    assert (report.num_reached, report.depth) == (0, 0)


def search_of(store, sources, **changed):
    parent, level = plain_bfs(store, sources)
    report = verify_search(store, sources, parent, level)
    fields = {"num_reached": report.num_reached, "num_reached_edges": report.num_reached_edges, "depth": report.depth} | changed
    return Search(np.array(sources), parent, level, seconds=0.1, bytes_requested=0, bytes_read=0, iterations=(), **fields)


def test_a_result_is_judged_under_user_ids(tmp_path):
    """Sources are looked up again, isolated ones too, and the counts are counted again."""
    store = string_store(tmp_path / "g.zarr", ["a", "b"], ["b", "c"], others=["x", "y"])
    ids = VertexIds(store)
    source = ["b", "x"]
    start = [int(ids.vertices_of("b")[0])]
    good = BFSResult(search=search_of(store, start), ids=ids, source=source, isolated_sources=["x"])
    assert verify_bfs(store, good).num_reached == 3
    assert verify_bfs(store.url, good).num_reached_edges == 2
    wrong = {
        "started from": BFSResult(search=search_of(store, start), ids=ids, source=["a", "x"], isolated_sources=["x"]),
        "isolated sources are": BFSResult(search=search_of(store, start), ids=ids, source=source, isolated_sources=["y"]),
        "num_reached 7": BFSResult(search=search_of(store, start, num_reached=7), ids=ids, source="b"),
        "num_reached_edges 1,": BFSResult(search=search_of(store, start, num_reached_edges=1), ids=ids, source="b"),
        "depth 2": BFSResult(search=search_of(store, start, depth=2), ids=ids, source="b"),
    }
    for message, result in wrong.items():
        with pytest.raises(ValidationError, match=message):
            verify_bfs(store, result)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40),
    directed=st.booleans(),
    data=st.data(),
)
def test_random_graphs_agree_with_scipy(tmp_path, edges, directed, data):
    """A tree with SciPy's levels passes; with one level changed it does not."""
    src, dst = zip(*edges, strict=True)
    store = store_of(tmp_path / "g.zarr", src, dst, directed=directed)
    n = store.num_rows
    if n == 0:
        return
    indices, indptr = (store.read(f"out/{name}").astype(np.int32) for name in ("indices", "indptr"))  # all that older SciPy takes
    matrix = sp.csr_array((np.ones(indices.size), indices, indptr), shape=(n, n))
    source = data.draw(st.integers(0, n - 1))
    distance = csgraph.shortest_path(matrix, unweighted=True, indices=source)
    parent, level = plain_bfs(store, [source], dtype=np.int32)
    np.testing.assert_array_equal(level, np.where(np.isinf(distance), -1, distance))
    verify_search(store, [source], parent, level)
    v = data.draw(st.integers(0, n - 1))
    level[v] += data.draw(st.sampled_from([-1, 1, 2]))
    with pytest.raises(ValidationError):
        verify_search(store, [source], parent, level)
