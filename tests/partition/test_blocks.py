"""Blocks cover every row once, in order, within their limits, and are shared out by weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.partition import blocks as module
from oocgraph.partition.blocks import cut_blocks
from oocgraph.store.graph import open_graph
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite


class Rows:
    """As much of a store as blocks need."""

    url = "rows"

    def __init__(self, lengths):
        self.indptr = np.append(0, np.cumsum(np.asarray(lengths, np.int64)))
        self.num_rows = len(lengths)

    def array(self, name):
        return Stored(self.indptr if name == "out/indptr" else np.empty(int(self.indptr[-1]), np.uint32), name)


class Stored:
    """A stored array that is in memory."""

    def __init__(self, values, name):
        self._values, self.name, self.dtype, self.length, self.chunk_length = values, name, values.dtype, values.size, 1 << 20

    rule = None
    held = np.empty(0)

    def read(self, start, stop):
        return self._values[start:stop].copy()

    def without_rule(self):
        return self


def cut(store, readers=1, **options):
    return cut_blocks(store, "out", readers, **{"vertex_weight": 0.0, "edge_weight": 1.0, "max_rows": 1 << 30, **options})


LENGTHS = st.lists(st.sampled_from([0, 0, 1, 2, 7, 40]), min_size=1, max_size=50)


@given(LENGTHS, st.integers(1, 6), st.integers(1, 9), st.integers(1, 30), st.sampled_from([None, 1, 4, 100]), st.sampled_from([3, 1 << 19]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_row_is_in_one_block(monkeypatch, lengths, readers, max_rows, max_entries, round_vertices, piece_rows):
    monkeypatch.setattr(module, "PIECE_ROWS", piece_rows)
    store = Rows(lengths)
    found = cut(store, readers, max_rows=max_rows, max_entries=max_entries, round_vertices=round_vertices)
    rows = np.diff(found.first_row)
    assert (found.first_row[0], found.first_row[-1], found.first_entry[0]) == (0, len(lengths), 0)
    np.testing.assert_array_equal(found.first_entry, store.indptr[found.first_row])
    assert (rows > 0).all()
    assert found.max_rows == rows.max() <= max_rows
    assert all(entries <= max_entries or count == 1 for entries, count in zip(np.diff(found.first_entry), rows, strict=True))
    assert (np.diff(found.reader) >= 0).all()
    assert found.reader.max() < readers
    assert [b for r in range(readers) for b in found.of(r)] == list(range(len(found)))
    if round_vertices is None:
        assert found.num_rounds == 1
        np.testing.assert_array_equal(found.first_row, cut(store, max_rows=max_rows, max_entries=max_entries).first_row)
        return
    for r in range(readers):
        mine = [found.of(r, k) for k in range(found.num_rounds)]
        assert [b for one in mine for b in one] == list(found.of(r))
        sizes = [int(found.first_row[one.stop] - found.first_row[one.start]) for one in mine if len(one)]
        assert sizes[:-1] == [round_vertices] * (len(sizes) - 1)
        assert all(size <= round_vertices for size in sizes)


@pytest.mark.parametrize(("edge_weight", "vertex_weight"), [(1.0, 0.0), (0.0, 1.0), (1.0, 10.0)])
def test_readers_get_equal_weight(edge_weight, vertex_weight):
    """As near as blocks of at most 8 entries or 4 rows allow."""
    lengths = np.random.default_rng(1).integers(0, 5, 1000)
    for readers in (2, 3, 7):
        found = cut(Rows(lengths), readers, edge_weight=edge_weight, vertex_weight=vertex_weight, max_rows=4, max_entries=8)
        weight = edge_weight * np.diff(found.first_entry) + vertex_weight * np.diff(found.first_row)
        shares = [weight[found.reader == r].sum() for r in range(readers)]
        assert max(shares) - min(shares) <= 2 * weight.max() + edge_weight + vertex_weight


def test_more_readers_than_vertices():
    found = cut(Rows([1, 1]), 5, round_vertices=10)
    assert sorted(len(found.of(r)) for r in range(5)) == [0, 0, 0, 1, 1]


def test_graph_without_vertices():
    found = cut(Rows([]))
    assert (len(found), found.num_rounds, found.max_rows, found.max_entries) == (0, 0, 0, 0)
    assert found.of(0) == range(0)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_of_a_stored_graph(tmp_path, codec):
    reference_build(*random_edges(1), tmp_path / "g", directed=True)
    store = open_graph(tmp_path / "g") if codec == "none" else rewrite(tmp_path / "g", tmp_path / "z", codec=codec)
    for group in ("out", "in"):
        found = cut_blocks(store, group, 2, vertex_weight=0.0, edge_weight=1.0, max_rows=1 << 30, max_entries=20)
        np.testing.assert_array_equal(store.read(f"{group}/indptr")[found.first_row], found.first_entry)
