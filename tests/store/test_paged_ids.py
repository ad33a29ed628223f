"""Ids looked up by pages are those that are streamed, whatever the ids are."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import VertexNotFoundError
from oocgraph.memory import Budget
from oocgraph.store import paged_ids
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.scattered import RangeReader
from oocgraph.store.vertices import VertexIds
from oocgraph.types import PAGE_BYTES
from tests.stores import rewrite

SIZE = 20_000


def evenly(rng):
    return np.arange(SIZE)


def by_chance(rng):
    return rng.choice(2**62, SIZE, replace=False)


def doubling(rng):
    """Ids that crowd at the low end: where they would be if they were spread evenly is always too far."""
    return np.unique((2 ** (62 * rng.random(2 * SIZE))).astype(np.int64))[:SIZE]


def in_clusters(rng):
    return np.unique(rng.integers(0, 40, 2 * SIZE) * 10**15 + rng.integers(0, 3000, 2 * SIZE))[:SIZE]


@pytest.fixture(params=[evenly, by_chance, doubling, in_clusters], scope="module")
def graph(request, tmp_path_factory):
    """Every fourth id has no edge but one to itself."""
    rng = np.random.default_rng(1)
    ids = np.sort(request.param(rng))
    ends = rng.permutation(ids[np.arange(ids.size) % 4 > 0])
    u, v = np.concatenate([ends, ids]), np.concatenate([np.roll(ends, 1), ids])
    return build_csr((u, v), tmp_path_factory.mktemp("ids") / "g.zarr")


def ask(graph):
    return RangeReader(graph, Budget(1 << 40))


@pytest.mark.parametrize("size", [1, 7, 8, 200, 5000])
def test_numbers_are_those_of_a_stream(graph, size, monkeypatch):
    """Of few ids and of many, with and without edges, in blocks of any size."""
    monkeypatch.setattr(paged_ids, "STREAMED_PAGES", 1e-3)
    monkeypatch.setattr(paged_ids, "BLOCK", 150)
    ids = np.random.default_rng(size).choice(np.array(list(graph)), size)
    expected = VertexIds(graph).vertices_of(ids)
    with ask(graph) as reader:
        np.testing.assert_array_equal(PagedIds(reader).vertices_of(ids), expected)
        numbers = expected[expected >= 0]
        np.testing.assert_array_equal(PagedIds(reader).ids_of(numbers), ids[expected >= 0])


def test_absent_ids_are_told(graph, monkeypatch):
    monkeypatch.setattr(paged_ids, "STREAMED_PAGES", 1e-3)
    known = np.array(list(graph))
    absent = np.setdiff1d(np.concatenate([known[::100] + 1, [2**62 + 5]]), known)
    with ask(graph) as reader, pytest.raises(VertexNotFoundError, match=rf"vertex {absent[0]}\b.* is not in"):
        PagedIds(reader).vertices_of(np.concatenate([known[:20], absent]))


def test_few_pages_are_read_where_ids_are_spread_evenly(tmp_path):
    ids = np.random.default_rng(2).choice(2**40, 400_000, replace=False)
    graph = build_csr((ids, np.roll(ids, 1)), tmp_path / "g.zarr")
    with ask(graph) as reader:
        PagedIds(reader).vertices_of(ids[:40])
        assert 0 < reader.bytes_read["vertices/sorted_id"] <= 3 * 40 * PAGE_BYTES
        assert 0 < reader.bytes_read["vertices/order"] <= 40 * PAGE_BYTES


def test_a_column_in_disorder_ends_the_search(tmp_path, monkeypatch):
    """What is not found where it should be is absent."""
    monkeypatch.setattr(paged_ids, "STREAMED_PAGES", 1e-3)
    ids = np.arange(0, 40_000, 2)
    graph = build_csr((ids, np.roll(ids, 1)), tmp_path / "g.zarr")
    bad = rewrite(graph.url, tmp_path / "bad.zarr", arrays={"vertices/sorted_id": np.random.default_rng(3).permutation(ids)}).url
    with ask(open_graph(bad)) as reader:
        positions = PagedIds(reader)._positions(ids[::50])
    assert ((positions >= -1) & (positions < ids.size)).all()
