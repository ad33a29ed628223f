"""Who owns which vertices: every vertex once, shares alike, the same each time, and little read to know it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.errors import OocGraphError
from oocgraph.partition.balance import imbalance
from oocgraph.partition.vertex_partition import local_lookup, partition_vertices
from oocgraph.store.arrays import PlainArray
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.graph import open_graph
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite


def store_of(path, src, dst, **options):
    reference_build(src, dst, path, **options)
    return open_graph(path)


def owned_vertices(vertex_partition, partition):
    """Store numbers of a partition's vertices; entry i has local position i."""
    first, stop, local = vertex_partition.blocks_of(partition)
    owned = np.concatenate([np.empty(0, np.int64), *[np.arange(a, z) for a, z in zip(first, stop, strict=True)]])
    np.testing.assert_array_equal(owned[local], first)
    return owned


def check(vertex_partition, indptr):
    """Every vertex has one owner and one position there; what the vertex_partition says of blocks and shares is so."""
    n, num_partitions = indptr.size - 1, vertex_partition.num_partitions
    everyone = [owned_vertices(vertex_partition, p) for p in range(num_partitions)]
    np.testing.assert_array_equal(np.sort(np.concatenate(everyone)), np.arange(n))
    owner, local = vertex_partition.locate(np.arange(n))
    assert (owner.dtype, local.dtype) == (np.int32, np.int64)
    for p, owned in enumerate(everyone):
        assert (np.diff(owned) > 0).all()
        assert (owner[owned] == p).all()
        np.testing.assert_array_equal(local[owned], np.arange(owned.size))
        assert vertex_partition.num_owned[p] == owned.size
        assert vertex_partition.num_edges[p] == (indptr[owned + 1] - indptr[owned]).sum()
    assert (vertex_partition.num_vertices, vertex_partition.first[0], vertex_partition.first[-1]) == (n, 0, n)
    assert (np.diff(vertex_partition.first) > 0).all()
    assert (np.diff(vertex_partition.owner) != 0).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    num_partitions=st.integers(1, 9),
    directed=st.booleans(),
    vertex_order=st.sampled_from(["degree", "original"]),
)
@settings(deadline=None, max_examples=60)
def test_every_vertex_has_one_owner_and_its_row(seed, num_partitions, directed, vertex_order, tmp_path_factory):
    """Random graphs: shares add up, each partition has a vertex, and a partition's lookup finds each of its rows."""
    path = tmp_path_factory.mktemp("g") / "g.zarr"
    store = store_of(path, *random_edges(seed, 20 + seed % 300, 30 + seed % 3000), directed=directed, vertex_order=vertex_order)
    num_partitions = min(num_partitions, store.num_rows)
    indptr = store.read(f"{store.pull_group}/indptr")
    vertex_partition = partition_vertices(store, num_partitions)
    check(vertex_partition, indptr)
    assert (vertex_partition.num_owned > 0).all()
    if vertex_order == "original":
        assert vertex_partition.owner.size == num_partitions
        return
    value, first = store.degree_classes
    for p in range(num_partitions):
        piece_first, edge, piece_value = local_lookup(vertex_partition, p, first, indptr[first], value)
        assert piece_first.dtype == edge.dtype == piece_value.dtype == np.int64
        owned = owned_vertices(vertex_partition, p)
        c = np.searchsorted(piece_first, np.arange(owned.size), side="right") - 1
        np.testing.assert_array_equal(edge[c] + (np.arange(owned.size) - piece_first[c]) * piece_value[c], indptr[owned])
        np.testing.assert_array_equal(piece_value[c], indptr[owned + 1] - indptr[owned])
        assert piece_first[0] == 0
        assert (np.diff(piece_first) > 0).all()
        goes_on = (np.diff(piece_value) == 0) & (np.diff(edge) == np.diff(piece_first) * piece_value[:-1])
        assert not goes_on.any()


def test_one_partition_has_the_lookup_of_the_graph(tmp_path):
    """Adjacent blocks are one block, and their pieces in a degree class are one piece."""
    store = store_of(tmp_path / "g.zarr", *random_edges(3, 300, 3000))
    value, first = store.degree_classes
    edge = store.read("out/indptr")[first]
    vertex_partition = partition_vertices(store, 1)
    assert vertex_partition.owner.size == 1
    for mine, whole in zip(local_lookup(vertex_partition, 0, first, edge, value), (first, edge, value), strict=True):
        np.testing.assert_array_equal(mine, whole)


@pytest.mark.parametrize("vertex_order", ["degree", "original"])
def test_an_empty_graph_has_one_partition_without_vertices(tmp_path, vertex_order):
    """Nothing is owned, nothing located, and the lookup has its one entry."""
    store = store_of(tmp_path / "g.zarr", [], [], implied=(0, 5), vertex_order=vertex_order)
    vertex_partition = partition_vertices(store, 1)
    assert imbalance(vertex_partition.num_edges) == imbalance(vertex_partition.num_owned) == 1.0
    assert [array.size for array in (*vertex_partition.blocks_of(0), *vertex_partition.locate(np.empty(0, np.int64)))] == [0] * 5
    none = np.empty(0, np.int64)
    assert [array.tolist() for array in local_lookup(vertex_partition, 0, none, none, none)] == [[0], [0], [0]]
    with pytest.raises(OocGraphError, match="num_partitions is 2"):
        partition_vertices(store, 2)


@pytest.mark.parametrize("vertex_order", ["degree", "original"])
@pytest.mark.parametrize("num_partitions", [-1, 0, 6])
def test_a_number_of_partitions_out_of_range_is_refused(tmp_path, num_partitions, vertex_order):
    """The message says the numbers and the range; as many partitions as vertices are allowed."""
    store = store_of(tmp_path / "g.zarr", [0, 1, 2, 3], [1, 2, 3, 4], vertex_order=vertex_order)
    with pytest.raises(OocGraphError, match=f"num_partitions is {num_partitions}, .* 5 vertices .* 1 to 5 partitions"):
        partition_vertices(store, num_partitions)
    assert partition_vertices(store, 5).num_owned.tolist() == [1] * 5


@pytest.mark.parametrize("num_partitions", [1, 2, 7, 8])
def test_a_star_is_dealt_though_its_hub_has_half_of_the_edges(tmp_path, num_partitions):
    """The hub is a block alone, and the leaves are shared alike."""
    store = store_of(tmp_path / "g.zarr", np.zeros(5000, np.int64), np.arange(1, 5001))
    vertex_partition = partition_vertices(store, num_partitions)
    check(vertex_partition, store.read("out/indptr"))
    assert imbalance(vertex_partition.num_owned) <= 1.05
    if num_partitions > 1:
        assert vertex_partition.first[1] == 1


def test_vertices_without_in_edges_are_dealt_alike(tmp_path):
    """A directed graph in which only one vertex in ten has lists that a pull walks."""
    rng = np.random.default_rng(1)
    store = store_of(tmp_path / "g.zarr", rng.integers(0, 20_000, 60_000), rng.integers(0, 2_000, 60_000), directed=True)
    vertex_partition = partition_vertices(store, 4)
    check(vertex_partition, store.read("in/indptr"))
    assert max(imbalance(vertex_partition.num_edges), imbalance(vertex_partition.num_owned)) <= 1.05


@pytest.mark.parametrize("vertex_order", ["degree", "original"])
def test_a_dealing_is_the_same_each_time(tmp_path, vertex_order):
    """Each process may make its own."""
    store = store_of(tmp_path / "g.zarr", *random_edges(5, 2000, 9000), vertex_order=vertex_order)
    one, other = (partition_vertices(open_graph(store.url), 3) for _ in range(2))
    for name in ("first", "owner", "local", "num_owned", "num_edges"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.num_bytes == other.num_bytes > 0


def test_ranges_of_the_original_order_have_equal_edges(tmp_path):
    """Degrees differ a hundredfold along the vertices; ranges follow the edges, not the vertices."""
    rng = np.random.default_rng(2)
    target = (20_000 * rng.random(100_000) ** 3).astype(np.int64)
    store = store_of(tmp_path / "g.zarr", rng.integers(0, 20_000, 100_000), target, vertex_order="original", directed=True)
    for num_partitions in (2, 4, 8):
        vertex_partition = partition_vertices(store, num_partitions)
        assert imbalance(vertex_partition.num_edges) <= 1.02
        assert imbalance(vertex_partition.num_owned) > 1.2


@given(
    seed=st.integers(0, 2**32 - 1),
    shares=st.lists(st.integers(1, 40), min_size=1, max_size=9),
    vertex_order=st.sampled_from(["degree", "original"]),
)
@settings(deadline=None, max_examples=60)
def test_unequal_shares_are_partitions(seed, shares, vertex_order, tmp_path_factory):
    """Whatever the shares, also of graphs with fewer blocks than a turn has places: one owner for each vertex, and none without one."""
    store = store_of(tmp_path_factory.mktemp("g") / "g.zarr", *random_edges(seed, 20 + seed % 300, 30 + seed % 3000),
                     directed=bool(seed % 2), vertex_order=vertex_order)  # fmt: skip
    shares = shares[: store.num_rows]
    vertex_partition = partition_vertices(store, len(shares), shares)
    check(vertex_partition, store.read(f"{store.pull_group}/indptr"))
    assert vertex_partition.num_owned.min() > 0


@pytest.mark.one_in(4)
@pytest.mark.parametrize("vertex_order", ["degree", "original"])
@pytest.mark.parametrize("shares", [[24, 8], [1, 31], [16, 40, 8], [3, 3], [10, 20, 30, 4]])
def test_edges_follow_the_shares(tmp_path, shares, vertex_order):
    """Within 5 % of the mean share, vertices too where they are in degree order; shares that are alike are those of no shares."""
    store = store_of(tmp_path / "g.zarr", *random_edges(7, 20_000, 200_000), vertex_order=vertex_order)
    dealt = partition_vertices(store, len(shares), shares)
    check(dealt, store.read(f"{store.pull_group}/indptr"))
    wanted = np.array(shares) / sum(shares)
    for owned in (dealt.num_edges, dealt.num_owned) if vertex_order == "degree" else (dealt.num_edges,):
        assert np.abs(owned / owned.sum() - wanted).max() < 0.05 / len(shares)
    if len(set(shares)) == 1:
        np.testing.assert_array_equal(partition_vertices(store, len(shares), [1] * len(shares)).first,
                                      partition_vertices(store, len(shares)).first)  # fmt: skip


@pytest.mark.parametrize("shares", [[1], [1, 2, 3], [0, 4], []])
def test_shares_that_are_none_are_refused(tmp_path, shares):
    """One for each partition, and no partition without."""
    store = store_of(tmp_path / "g.zarr", [0, 1, 2, 3], [1, 2, 3, 4])
    with pytest.raises(OocGraphError, match=r"shares is .*; give a whole number from 1 on for each of 2 partitions"):
        partition_vertices(store, 2, shares)


@pytest.mark.parametrize("end", ["first", "last"])
def test_each_range_has_a_vertex_beside_a_hub(tmp_path, end):
    """The hub has half of the edges, so that several cuts fall on it."""
    hub, leaves = (0, np.arange(1, 12)) if end == "first" else (11, np.arange(11))
    store = store_of(tmp_path / "g.zarr", np.full(11, hub), leaves, vertex_order="original")
    for num_partitions in range(1, 13):
        vertex_partition = partition_vertices(store, num_partitions)
        check(vertex_partition, store.read("out/indptr"))
        assert vertex_partition.num_owned.min() >= 1


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_bisection_reads_few_pages_of_indptr(tmp_path, monkeypatch, codec):
    """A page at a time where ranges can be read, else a chunk: one decoded for each of few."""
    n = 100_000
    store = store_of(tmp_path / "plain.zarr", np.arange(n), (np.arange(n) + 1) % n, vertex_order="original")
    if codec != "none":
        store = rewrite(store.url, tmp_path / "packed.zarr", codec=codec)
    read: list[tuple[str, int]] = []
    for kind in (PlainArray, ZarrArray):
        plain = kind.read
        monkeypatch.setattr(kind, "read", lambda self, a, z, plain=plain: (read.append((self.name, z - a)), plain(self, a, z))[1])
    vertex_partition = partition_vertices(store, 8)
    assert vertex_partition.num_edges.tolist() == [2 * n // 8] * 8
    assert {name for name, _ in read} == {"out/indptr"}
    if codec == "none":
        assert max(size for _, size in read) <= 512
        assert len({size for _, size in read}) <= 2
        assert sum(size for _, size in read) < 0.7 * n
    else:
        assert len(read) <= 2
