"""Any range of the ascending ids equals the same range of the stream."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.store import id_order
from oocgraph.store.columns import IntColumn, as_numpy, id_bytes
from oocgraph.store.graph import open_graph
from oocgraph.store.layout import ISOLATED_ID, SORTED_ID, VERTEX_ID
from oocgraph.store.vertices import VertexIds
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store


def dense(path):
    """No isolated id."""
    reference_build([5, 9, 700], [9, 700, -3], path)
    return open_graph(path)


def sparse(path):
    """Ids over 64 bits; a third of them have a self-loop only, so they are listed as isolated."""
    rng = np.random.default_rng(1)
    ids = np.unique(rng.integers(-(2**62), 2**62, 3000))
    src, dst = ids[rng.integers(0, ids.size, 2000)], ids[rng.integers(0, ids.size, 2000)]
    reference_build(np.concatenate([src, ids[:1000], ids[-50:]]), np.concatenate([dst, ids[:1000], ids[-50:]]), path)
    return open_graph(path)


def implied(path):
    """Gaps before, between and after the ids with edges."""
    src, dst = random_edges(3, num_ids=3000, num_edges=2500)
    reference_build(src * 2, dst * 2, path, implied=(-40, 7000))
    return open_graph(path)


def names(path):
    """Empty, long, beyond the basic plane; isolated ones at both ends and between."""
    src = ["libc6", "zlib", "é", "a" * 50, "b", "\U0001f600", "zlib"]
    dst = ["zlib", "a", "libc6", "libc6", "zlib", "\ufffd", "libc6"]
    return string_store(path, src, dst, others=["", "alone", "zz", "\uffff", "\U0001f601"])


def many_names(path):
    """Several pages of strings."""
    src, dst = ([f"{'n' * (i % 7)}{i}" for i in side] for side in random_edges(8, num_ids=3000, num_edges=3000))
    return string_store(path, src, dst, others=[f"n{i}x" for i in range(700)])


def long_names(path):
    """Ids of which some are two hundred times as long as others, and lie together."""
    src, dst = ([f"n{i}" if i > 300 else "m" * 500 + str(i) for i in side] for side in random_edges(9, num_ids=3000, num_edges=3000))
    return string_store(
        path, src, dst, others=[*(f"n{i}x" for i in range(700)), *("m" * 700 + str(i) for i in range(100)), "z" * 9000, "zz"]
    )


def no_edges(path):
    """Every id is isolated."""
    reference_build([7, 8], [7, 8], path)
    return open_graph(path)


def nothing(path):
    """No id at all."""
    reference_build([], [], path, implied=(0, 0))
    return open_graph(path)


GRAPHS = [dense, sparse, implied, names, many_names, long_names, no_edges, nothing]


def whole(ids):
    """Ids and numbers of the stream, joined."""
    blocks = list(ids.blocks(701)) or [(np.empty(0, np.int64), np.empty(0, np.int64))]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
@pytest.mark.parametrize("num_blocks", [1, 3, 11])
def test_blocks_of_any_cut_make_the_stream(tmp_path, graph, num_blocks):
    """Each block by itself, joined: every id once, with its number."""
    ids = VertexIds(graph(tmp_path / "g.zarr"))
    wanted, numbers = whole(ids)
    cuts = np.linspace(0, ids.num_ids, num_blocks + 1).astype(int)
    blocks = [ids.stored_block(int(a), int(z)) for a, z in pairwise(cuts)]
    assert [len(block) for block, _ in blocks] == np.diff(cuts).tolist()
    assert np.concatenate([as_numpy(block) for block, _ in blocks]).tolist() == wanted.tolist()
    found = np.concatenate([vertices for _, vertices in blocks])
    np.testing.assert_array_equal(found, numbers)
    assert found.dtype == np.int64


@pytest.mark.parametrize("graph", [names, many_names, long_names], ids=lambda graph: graph.__name__)
@pytest.mark.parametrize("block_size", [1, 7, 150, 10_000])
def test_blocks_of_long_ids_have_fewer(tmp_path, graph, block_size):
    """A block of the stream takes about as many bytes as others would, and the blocks are the ids in their order, each with its number."""
    store = graph(tmp_path / "g.zarr")
    blocks = list(VertexIds(store).stored_blocks(block_size))
    texts = [one for block, _ in blocks for one in as_numpy(block).tolist()]
    number = {one: v for v, one in enumerate(as_numpy(id_order.id_column(store, VERTEX_ID).read(0, store.num_rows)).tolist())}
    assert texts == sorted(texts, key=str.encode)
    assert set(number) < set(texts)
    assert len(set(texts)) == store.attributes.num_input_vertices
    assert np.concatenate([numbers for _, numbers in blocks]).tolist() == [number.get(one, -1) for one in texts]
    assert max(len(block) for block, _ in blocks) <= block_size
    fitting = 2 * block_size * sum(id_order.READ_OFFSETS + id_bytes(store, name) for name in (SORTED_ID, ISOLATED_ID))
    assert all(block.nbytes <= fitting or len(block) <= 2 for block, _ in blocks)


@pytest.mark.parametrize("graph", [sparse, implied, many_names], ids=lambda graph: graph.__name__)
def test_any_range_is_a_part_of_the_stream(tmp_path, graph):
    """Also empty ranges, and those that end beyond the last id."""
    ids = VertexIds(graph(tmp_path / "g.zarr"))
    wanted, numbers = whole(ids)
    rng = np.random.default_rng(5)
    for start, stop in [(0, 0), (ids.num_ids, ids.num_ids + 9), *np.sort(rng.integers(0, ids.num_ids + 5, (60, 2)), axis=1).tolist()]:
        block, vertices = ids.stored_block(start, stop)
        assert as_numpy(block).tolist() == wanted[start:stop].tolist()
        np.testing.assert_array_equal(vertices, numbers[start:stop])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(linked=st.lists(st.integers(-9, 9), max_size=12), alone=st.lists(st.integers(-9, 9), max_size=12), cut=st.integers(0, 24))
def test_any_two_columns_split_anywhere(tmp_path, linked, alone, cut):
    """Ids with edges and isolated ones in any order."""
    reference_build([*linked, *alone], [*reversed(linked), *alone], tmp_path / "g.zarr")
    ids = VertexIds(open_graph(tmp_path / "g.zarr"))
    wanted, numbers = whole(ids)
    parts = ids.stored_block(0, min(cut, ids.num_ids)), ids.stored_block(min(cut, ids.num_ids), ids.num_ids)
    assert np.concatenate([block for block, _ in parts]).tolist() == wanted.tolist()
    assert np.concatenate([vertices for _, vertices in parts]).tolist() == numbers.tolist()


@pytest.mark.parametrize("graph", [sparse, implied, many_names], ids=lambda graph: graph.__name__)
def test_compressed_stores_answer_alike(tmp_path, graph):
    plain = graph(tmp_path / "g.zarr")
    packed = VertexIds(rewrite(plain.url, tmp_path / "packed.zarr", codec="zstd"))
    one, other = packed.stored_block(100, 900), VertexIds(plain).stored_block(100, 900)
    assert as_numpy(one[0]).tolist() == as_numpy(other[0]).tolist()
    np.testing.assert_array_equal(one[1], other[1])


def test_a_range_reads_little_beyond_itself(tmp_path, monkeypatch):
    """A handful of pages to find it, and the range: not what stands before it."""
    reference_build(np.arange(0, 120_000, 2), np.arange(0, 120_000, 2) + 2, tmp_path / "g.zarr", implied=(0, 150_000))
    ids = VertexIds(open_graph(tmp_path / "g.zarr"))
    read = []
    plain = IntColumn.read
    monkeypatch.setattr(IntColumn, "read", lambda self, start, stop: read.append(stop - start) or plain(self, start, stop))
    ids.stored_block(100_000, 100_100)
    assert read[-1] == 50
    assert len(read) <= 2 * 9 + 1
    assert max(read) <= id_order._PAGE_IDS


def clustered(path):
    """Declare ids of which those with edges lie together: where an even spread would have them there is none."""
    src, dst = random_edges(5, num_ids=4000, num_edges=20_000)
    reference_build(src + 1_000_000, dst + 1_000_000, path, implied=(0, 2_000_000))
    return open_graph(path)


@pytest.mark.parametrize("graph", [*GRAPHS, clustered], ids=lambda graph: graph.__name__)
def test_how_many_ids_are_below_one_is_found_in_few_pages(tmp_path, graph, monkeypatch):
    """Each id, what lies between, and what lies outside; the pages are at most those of a bisection, twice."""
    store, numbers = graph(tmp_path / "g.zarr"), []
    read = type(id_order.id_column(store, SORTED_ID)).read
    everything = as_numpy(id_order.id_column(store, SORTED_ID).read(0, id_order.id_column(store, SORTED_ID).length))
    is_text = store.attributes.id_kind == "string"
    some = list(everything[:: max(1, everything.size // 60)]) + list(everything[-2:])
    others = [f"{one}0" for one in some] + ["", "\U0010ffff"] if is_text else [int(one) + 1 for one in some] + [-(2**63), 2**63 - 1]
    asked = [*some, *others]
    monkeypatch.setattr(id_order, "_PAGE_IDS", 64)
    monkeypatch.setattr(type(id_order.id_column(store, SORTED_ID)), "read", lambda self, *of: numbers.append(of) or read(self, *of))
    for one in asked:
        numbers.clear()
        pages = id_order.IdPages(store, SORTED_ID)
        assert pages.below(one) == np.searchsorted(everything, one)
        assert len(numbers) <= 2 * pages.num_reads
