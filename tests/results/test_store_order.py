"""An array in store order over the parts of a search answers as the NumPy array would."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oocgraph import open_graph, verify_bfs
from oocgraph.algorithms.bfs import bfs
from oocgraph.errors import CorruptStoreError
from oocgraph.partition.vertex_partition import VertexPartition, partition_vertices
from oocgraph.results import store_order
from oocgraph.results.store_order import StoreOrder
from oocgraph.store.search_store import SearchStore
from oocgraph.verify import verify_search
from tests.reference_build import reference_build

N, P = 1000, 3


def partition_of(sizes, owner, num_partitions):
    """Make a vertex_partition of blocks of these sizes."""
    sizes, owner = np.asarray(sizes, np.int64), np.asarray(owner, np.int32)
    num_owned, local = np.zeros(num_partitions, np.int64), np.empty(sizes.size, np.int64)
    for i, (size, p) in enumerate(zip(sizes.tolist(), owner.tolist(), strict=True)):
        local[i] = num_owned[p]
        num_owned[p] += size
    first = np.append(0, np.cumsum(sizes))
    return VertexPartition(int(first[-1]), num_partitions, first, owner, local, num_owned, num_owned)


def own_vertices(vertex_partition, partition):
    first, stop, _ = vertex_partition.blocks_of(partition)
    return np.concatenate([np.empty(0, np.int64), *(np.arange(a, b) for a, b in zip(first.tolist(), stop.tolist(), strict=True))])


def write(path, vertex_partition, level, parent):
    store = SearchStore.create(path, {"num_partitions": vertex_partition.num_partitions})
    for p in range(vertex_partition.num_partitions):
        own = own_vertices(vertex_partition, p)
        store.write_part(p, [(level[own], parent[own])])
    store.finish()
    return store


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Blocks of 1 to 40 vertices among three partitions; gives the store, the vertex_partition, and parents in store order."""
    rng = np.random.default_rng(5)
    sizes = []
    while sum(sizes) < N:
        sizes.append(min(int(rng.integers(1, 40)), N - sum(sizes)))
    vertex_partition = partition_of(sizes, np.arange(len(sizes)) % P, P)
    parent = rng.permutation(N).astype(np.uint32)
    return write(tmp_path_factory.mktemp("s") / "r.zarr", vertex_partition, (parent % 7).astype(np.uint8), parent), vertex_partition, parent


@pytest.fixture(params=[store_order.PIECE_VERTICES, 64], ids=["one piece", "many pieces"])
def order(example, request, monkeypatch):
    """Parents by `StoreOrder`, beside NumPy's array of them."""
    monkeypatch.setattr(store_order, "PIECE_VERTICES", request.param)
    store, vertex_partition, parent = example
    return StoreOrder(store, vertex_partition, "parent"), parent


PLAIN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PLAIN
@given(st.data())
def test_arrays_of_integers_index_as_in_numpy(order, data):
    """Any order, any number of dimensions, duplicates, negative ones."""
    lazy, parent = order
    dtype = data.draw(st.sampled_from([np.int64, np.int32, np.uint32, np.uint64, np.int16]))
    lowest = 0 if np.dtype(dtype).kind == "u" else -N
    shape = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=200)
    key = data.draw(hnp.arrays(dtype, shape, elements=st.integers(lowest, N - 1)))
    got = lazy[key]
    assert got.dtype == parent.dtype
    np.testing.assert_array_equal(got, parent[key])


@PLAIN
@given(st.slices(N))
def test_slices_index_as_in_numpy(order, key):
    lazy, parent = order
    np.testing.assert_array_equal(lazy[key], parent[key])


@PLAIN
@given(st.integers(-N, N - 1))
def test_integers_index_as_in_numpy(order, key):
    lazy, parent = order
    for form in (key, np.int64(key), np.array(key)):
        assert lazy[form] == parent[key]
        assert isinstance(lazy[form], np.uint32)


@pytest.mark.parametrize("key", [[5, 5, 3], [], (slice(3, 9),), ([1, 2],), slice(None), slice(None, None, -7), np.arange(N) % 3 == 0])
def test_other_forms_index_as_in_numpy(order, key):
    """Dask asks for a tuple of slices."""
    lazy, parent = order
    np.testing.assert_array_equal(lazy[key], parent[key])


@pytest.mark.parametrize("key", [N, -N - 1, [0, N], np.array([-N - 1]), "level", 1.5, None, (1, 2), np.zeros(3, bool), np.zeros(0)])
def test_what_numpy_refuses_is_refused(order, key):
    with pytest.raises(IndexError):
        order[0][key]


def test_it_looks_like_an_array(order):
    lazy, parent = order
    assert (lazy.shape, lazy.size, lazy.ndim, lazy.dtype, len(lazy)) == (parent.shape, N, 1, parent.dtype, N)
    np.testing.assert_array_equal(np.asarray(lazy), parent)
    assert np.asarray(lazy, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(lazy, copy=False)
    np.testing.assert_array_equal(np.array(lazy, copy=True), parent)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy))[::3], parent[::3])


def test_partitions_without_vertices_and_graphs_without_edges(tmp_path):
    vertex_partition = partition_of([2], [1], 3)
    store = write(tmp_path / "a", vertex_partition, np.array([0, 1], np.uint8), np.array([0, 0], np.uint32))
    assert StoreOrder(store, vertex_partition, "level")[[1, 0]].tolist() == [1, 0]
    empty = VertexPartition(
        0, 1, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    )
    nothing = StoreOrder(write(tmp_path / "b", empty, np.empty(0, np.uint8), np.empty(0, np.uint32)), empty, "level")
    assert nothing[:].size == nothing[[]].size == nothing[np.empty(0, np.int64)].size == np.asarray(nothing).size == 0
    with pytest.raises(IndexError):
        nothing[0]


def test_levels_of_one_byte_beside_wide_ones_become_wide(tmp_path):
    vertex_partition = partition_of([2, 2], [0, 1], 2)
    store = SearchStore.create(tmp_path / "r", {"num_partitions": 2})
    store.write_part(0, [(np.array([3, 255], np.uint8), np.zeros(2, np.uint32))])
    store.write_part(1, [(np.array([300, -1], np.int32), np.zeros(2, np.uint32))])
    level = StoreOrder(store, vertex_partition, "level")
    assert level.dtype == np.int32
    assert level[:].tolist() == [3, -1, 300, -1]
    assert level[1] == -1


@pytest.mark.parametrize("wrong", [4, -1])
def test_a_parent_that_is_no_vertex_is_refused(tmp_path, wrong):
    """Ids are looked up by it."""
    vertex_partition = partition_of([2, 2], [0, 1], 2)
    store = write(tmp_path / "r", vertex_partition, np.zeros(4, np.uint8), np.array([0, 1, wrong, 2**63 - 1]))
    with pytest.raises(CorruptStoreError, match="parts/1/parent: names a parent that is none of 4 vertices"):
        StoreOrder(store, vertex_partition, "parent")[:]


def test_another_dealing_is_refused(example):
    store, vertex_partition, _ = example
    with pytest.raises(CorruptStoreError, match=r"partition 0 has .* but was assigned"):
        StoreOrder(store, partition_of([N // 3, N // 3, N - 2 * (N // 3)], [0, 1, 2], P), "parent")
    assert vertex_partition.num_vertices == N


def test_memory_of_a_request_does_not_grow_with_the_graph(tmp_path):
    """4 M vertices of 16 MB: a thousand of them, or a slice of a quarter, hold what a piece needs and their result."""
    n = 4 << 20
    vertex_partition = partition_of(np.full(n >> 12, 4096), np.arange(n >> 12) % 2, 2)
    parent = np.arange(n, dtype=np.uint32)[::-1].copy()
    lazy = StoreOrder(write(tmp_path / "r", vertex_partition, np.zeros(n, np.uint8), parent), vertex_partition, "parent")
    few = np.random.default_rng(1).integers(0, n, 1000)
    for key, most in ((few, 6 << 20), (slice(n // 4, n // 2), 34 << 20)):
        tracemalloc.start()
        got = lazy[key]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        np.testing.assert_array_equal(got, parent[key])
        assert peak < most


def test_search_in_store_order_is_valid_and_joins_with_ids(tmp_path):
    """What a finished search keeps in parts passes the verifier, and gives the ids' levels and parents as arrays in memory do."""
    rng = np.random.default_rng(2)
    reference_build(rng.integers(0, 900, 1200), rng.integers(0, 900, 1200), tmp_path / "g", implied=(0, 900))
    graph = open_graph(tmp_path / "g")
    result = bfs(graph, 7)
    vertex_partition = partition_vertices(graph, 4)
    store = write(tmp_path / "r", vertex_partition, result.search.level, result.search.parent)
    level, parent = StoreOrder(store, vertex_partition, "level"), StoreOrder(store, vertex_partition, "parent")
    verify_search(graph, result.search.sources, np.asarray(parent), np.asarray(level))
    kept = replace(result, search=replace(result.search, level=level, parent=parent))
    np.testing.assert_array_equal(kept.level, result.level)
    np.testing.assert_array_equal(kept.parent, result.parent)
    target = int(result.vertices[result.level > 2][0])
    np.testing.assert_array_equal(kept.path(target), result.path(target))
    verify_bfs(graph, replace(kept, search=replace(kept.search, level=np.asarray(level), parent=np.asarray(parent))))


def test_damaged_levels_are_refused(tmp_path):
    """A level beyond the depth of the search is none of its levels; parents are checked likewise."""
    partition = partition_of([5], [0], 1)
    levels = np.array([0, 1, 2, 2, -1], np.int32)
    store = SearchStore.create(tmp_path / "r.zarr", {"num_partitions": 1})
    store.write_part(0, [(levels, np.zeros(5, np.uint32))])
    store.finish(depth=2)
    assert StoreOrder(store, partition, "level")[:].tolist() == levels.tolist()
    file = tmp_path / "r.zarr" / "parts" / "0" / "level" / "c" / "0"
    file.write_bytes(np.array([0, 1, 50_529_027, 2, -1], np.int32).tobytes())
    with pytest.raises(CorruptStoreError, match="level: names a level beyond its depth; remove the result store"):
        StoreOrder(store, partition, "level")[:]
