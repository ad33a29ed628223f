import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph import bfs, build_csr, open_runtime
from oocgraph.errors import ArgumentTypeError, VertexNotFoundError
from oocgraph.store import columns, id_order, layout, vertices
from oocgraph.store.columns import StringColumn
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store


@pytest.fixture
def sparse(tmp_path):
    """Ids spread over 64 bits, negative ones too; self-loops make some isolated."""
    rng = np.random.default_rng(1)
    ids = np.unique(rng.integers(-(2**62), 2**62, 3000))
    src, dst = ids[rng.integers(0, ids.size, 2000)], ids[rng.integers(0, ids.size, 2000)]
    loops = ids[:300]
    reference_build(np.concatenate([src, loops]), np.concatenate([dst, loops]), tmp_path / "g.zarr")
    return open_graph(tmp_path / "g.zarr"), np.unique(np.concatenate([src, dst, loops]))


@pytest.fixture
def named(tmp_path):
    src = ["libc6", "zlib", "é", "a" * 50, "", "\U0001f600", "zlib"]
    dst = ["zlib", "a", "libc6", "libc6", "zlib", "\ufffd", "libc6"]
    others = ["alone", "zz", "\uffff"]
    return string_store(tmp_path / "s.zarr", src, dst, others=others), sorted({*src, *dst, *others}, key=str.encode)


def truth(store):
    """Store number of every input id, from whole arrays."""
    ids = VertexIds(store)
    return dict(zip(ids.ids_of(np.arange(store.num_rows)).tolist(), range(store.num_rows), strict=True))


def test_ids_there_and_back(sparse):
    """ids_of and vertices_of are inverse."""
    store, _ = sparse
    numbers = np.random.default_rng(2).permutation(store.num_rows)
    ids = VertexIds(store).ids_of(numbers)
    assert ids.dtype == np.int64
    np.testing.assert_array_equal(ids, store.read(layout.VERTEX_ID)[numbers])
    np.testing.assert_array_equal(VertexIds(store).vertices_of(ids), numbers)


@pytest.mark.parametrize("block_size", [1, 7, 1000, 10**6])
def test_blocks_hold_every_input_id_ascending(sparse, block_size):
    """Isolated ids are merged in, with -1."""
    store, ids = sparse
    blocks = list(VertexIds(store).blocks(block_size))
    assert max(len(block) for block, _ in blocks) <= block_size
    np.testing.assert_array_equal(np.concatenate([block for block, _ in blocks]), ids)
    number = truth(store)
    assert np.concatenate([v for _, v in blocks]).tolist() == [number.get(one, -1) for one in ids.tolist()]
    assert store.attributes.num_isolated > 0


@pytest.mark.parametrize("implied", [(0, 50), (0, 21), (-5, 30)])
@pytest.mark.parametrize("block_size", [3, 1000])
def test_an_implied_range_supplies_the_isolated_ids(tmp_path, implied, block_size):
    reference_build([1, 2, 20, 7], [2, 3, 1, 7], tmp_path / "g.zarr", implied=implied)
    ids = VertexIds(open_graph(tmp_path / "g.zarr"))
    blocks = list(ids.blocks(block_size))
    np.testing.assert_array_equal(np.concatenate([block for block, _ in blocks]), np.arange(*implied))
    numbers = np.concatenate([v for _, v in blocks])
    assert (np.arange(*implied)[numbers >= 0]).tolist() == [1, 2, 3, 20]
    np.testing.assert_array_equal(ids.vertices_of(np.arange(*implied)), numbers)


@pytest.mark.parametrize("block_size", [1, 4, 1000])
def test_string_blocks_ascend_bytewise(named, block_size):
    """Strings come back as str, isolated ones among them, in the order of their UTF-8 bytes."""
    store, names = named
    blocks = list(VertexIds(store).blocks(block_size))
    found = np.concatenate([block for block, _ in blocks])
    assert found.dtype == object
    assert found.tolist() == names
    number = truth(store)
    assert np.concatenate([v for _, v in blocks]).tolist() == [number.get(one, -1) for one in names]
    np.testing.assert_array_equal(VertexIds(store).vertices_of(found), np.concatenate([v for _, v in blocks]))


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_compressed_stores_answer_alike(sparse, tmp_path, codec):
    store, ids = sparse
    packed = rewrite(store.url, tmp_path / "packed.zarr", codec=codec)
    np.testing.assert_array_equal(VertexIds(packed).vertices_of(ids), VertexIds(store).vertices_of(ids))
    np.testing.assert_array_equal(VertexIds(packed).ids_of([5, 1, 5]), VertexIds(store).ids_of([5, 1, 5]))


@pytest.mark.parametrize("seek", [1, 10**9])
def test_bisection_and_streaming_agree(tmp_path, monkeypatch, seek):
    """Both ways of looking ids up, with several pages and blocks."""
    src, dst = random_edges(3, num_ids=5000, num_edges=9000)
    reference_build(src * 3, dst * 3, tmp_path / "g.zarr")
    store = open_graph(tmp_path / "g.zarr")
    monkeypatch.setattr(vertices, "_SEEK_IDS", seek)
    monkeypatch.setattr(vertices, "BLOCK_VERTICES", 700)
    ids = store.read(layout.SORTED_ID)
    some = np.random.default_rng(4).choice(ids, 60)
    np.testing.assert_array_equal(VertexIds(store).vertices_of(some), store.read(layout.ORDER)[np.searchsorted(ids, some)])


@pytest.mark.parametrize("given", [17, np.int32(17), "17", " +17", [17], np.array([17], np.uint64)])
def test_integers_come_in_many_forms(tmp_path, given):
    reference_build([17, 5], [5, 6], tmp_path / "g.zarr")
    ids = VertexIds(open_graph(tmp_path / "g.zarr"))
    assert ids.ids_of(ids.vertices_of(given)).tolist() == [17]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (18, r"vertex 18 is not in .*ids are int64, 5 to 40; the nearest are 17 and 40"),
        (1000, "the nearest is 40"),
        (-3, "the nearest is 5"),
        ([17, 1, 2, 3, 4], "vertex 1, 2, 3 and 1 more"),
        ("abc", "'abc' is not a vertex of .*: its ids are integers, 5 to 40"),
        (1.5, "its ids are integers"),
        (True, "its ids are integers"),
        (2**70, "not a 64-bit integer"),
        (np.array([2**63], np.uint64), "not a 64-bit integer"),
    ],
)
def test_an_absent_id_is_named(tmp_path, given, message):
    reference_build([17, 5], [5, 40], tmp_path / "g.zarr")
    with pytest.raises(VertexNotFoundError, match=message):
        VertexIds(open_graph(tmp_path / "g.zarr")).vertices_of(given)


def test_ids_near_an_absent_one_may_have_no_edges(tmp_path):
    graph = build_csr(([1, 2, 50], [2, 3, 50]), tmp_path / "g.zarr")
    with pytest.raises(VertexNotFoundError, match=r"ids are int64, 1 to 50; the nearest are 3 and 50"):
        VertexIds(graph).vertices_of(30)


def test_an_id_outside_the_implied_range_is_named(tmp_path):
    reference_build([1], [2], tmp_path / "g.zarr", implied=(0, 10))
    with pytest.raises(VertexNotFoundError, match=r"vertex 10 is not in .*0 to 9"):
        VertexIds(open_graph(tmp_path / "g.zarr")).vertices_of([3, 10])


def test_string_graphs_take_only_their_strings(named):
    ids = VertexIds(named[0])
    with pytest.raises(VertexNotFoundError, match=r"vertex 'libc7' is not in .*nearest are 'libc6' and 'zlib'"):
        ids.vertices_of("libc7")
    with pytest.raises(VertexNotFoundError, match="its ids are strings"):
        ids.vertices_of(3)
    assert ids.vertices_of("zz").tolist() == [-1]


def test_numbers_outside_the_store_are_refused(named):
    with pytest.raises(VertexNotFoundError, match="vertex numbers must be 0 to"):
        VertexIds(named[0]).ids_of([0, 99])


@pytest.mark.parametrize("implied", [None, (0, 1), (0, 0)])
def test_a_graph_without_edges(tmp_path, implied):
    """Every id is isolated, or there is none."""
    src = [] if implied == (0, 0) else [0]
    reference_build(src, src, tmp_path / "g.zarr", implied=implied)
    ids = VertexIds(open_graph(tmp_path / "g.zarr"))
    assert [block.tolist() for block, _ in ids.blocks()] == ([[0]] if src else [])
    with pytest.raises(VertexNotFoundError):
        ids.vertices_of(4)
    assert ids.vertices_of(src).tolist() == [-1] * len(src)
    assert ids.ids_of([]).tolist() == []


def test_scattered_reads_equal_indexing(tmp_path):
    """Positions near and far apart."""
    from oocgraph.store.columns import read_at

    reference_build(np.arange(30000), np.arange(30000) + 1, tmp_path / "g.zarr")
    store = open_graph(tmp_path / "g.zarr")
    positions = np.array([0, 1, 5, 9000, 9001, 29999, 30000])
    np.testing.assert_array_equal(read_at(store.array(layout.VERTEX_ID), positions), store.read(layout.VERTEX_ID)[positions])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=12), block_size=st.integers(1, 9))
def test_any_strings_are_ids(tmp_path, edges, block_size):
    """Empty strings, NULs, emoji: whatever is text is an id."""
    src, dst = [a for a, _ in edges], [b for _, b in edges]
    store = string_store(tmp_path / "s.zarr", src, dst)
    ids = VertexIds(store)
    blocks = [block for block, _ in ids.blocks(block_size)]
    assert [one for block in blocks for one in block] == sorted({*src, *dst}, key=str.encode)
    number = truth(store)
    assert ids.vertices_of(src).tolist() == [number.get(one, -1) for one in src]


def test_long_ids_are_looked_up_in_few_bytes(tmp_path, monkeypatch):
    """Those of many vertices by a stream of blocks, each of few of them; of few by pages, likewise."""
    names = [f"{i:04d}" + "z" * (9000 if i % 7 == 0 else 3) for i in range(900)]
    store = string_store(tmp_path / "s.zarr", names, names[1:] + names[:1])
    ids, number = VertexIds(store), truth(store)
    read, plain = [], StringColumn.read
    monkeypatch.setattr(StringColumn, "read", lambda self, *where: read.append(plain(self, *where)) or read[-1])
    monkeypatch.setattr(vertices, "TEXT_BYTES", 1 << 16)
    monkeypatch.setattr(id_order, "_MOST_BYTES", 1 << 14)
    monkeypatch.setattr(columns, "RANGE_BYTES", 1 << 16)
    for seek in (0, 1 << 20):  # by bisection, and by a stream
        monkeypatch.setattr(vertices, "_SEEK_IDS", seek)
        for wanted in (names, names[::50], names[:1]):
            found = ids.vertices_of(wanted)
            assert found.tolist() == [number[one] for one in wanted]
            assert ids.ids_of(found).tolist() == wanted
    assert max(one.nbytes for one in read) < 128 << 10


def test_a_vertex_is_in_its_graph(sparse, named):
    """Isolated ones too; whatever is no id is not there."""
    store, ids = sparse
    assert int(ids[0]) in store
    assert ids[-1] in store
    absent = int(ids[0]) + 1
    assert (absent in store) == (absent in ids)
    assert all(one not in store for one in (2**70, 1.5, None, "indices", "out/indices", str(ids[0]), str(ids[0]).encode()))
    store, words = named
    assert all(word in store for word in words)
    assert 4 not in store
    assert "out/indices" not in store


def test_a_graph_is_asked_for_its_arrays_by_a_name_of_their_own(sparse):
    store, _ = sparse
    assert store.has_array("out/indices")
    assert not store.has_array("out/none")


@pytest.mark.parametrize("given", [4, None, [1, 2]])
def test_what_is_no_graph_is_refused_with_one_message(given):
    with pytest.raises(ArgumentTypeError, match="a graph is a store or its path, not"):
        open_graph(given)


def test_a_runtime_in_place_of_a_graph_is_refused_with_what_to_write(sparse):
    store, _ = sparse
    with open_runtime(store) as runtime, pytest.raises(ArgumentTypeError, match="not OpenedGraph; give its store, and it as runtime="):
        bfs(runtime, 1)
