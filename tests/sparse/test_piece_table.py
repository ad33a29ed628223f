"""A table of pieces: the rows of those that stay, and for a while rows of others; what is forgotten is never looked at."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import oocgraph
from oocgraph.algorithms import listed_front
from oocgraph.errors import CorruptStoreError
from oocgraph.memory import Budget
from oocgraph.sparse import edge_stream, piece_table
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.sparse.piece_table import PieceTable
from tests.stores import rewrite

NUM_ROWS, WIDTH = 20_000, 6


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Build a ring, of which each vertex is a neighbour of the next `WIDTH`, in the order of their ids but where they begin to be."""
    ends = (
        np.repeat(np.arange(NUM_ROWS), WIDTH),
        (np.repeat(np.arange(NUM_ROWS), WIDTH) + np.tile(np.arange(1, WIDTH + 1), NUM_ROWS)) % NUM_ROWS,
    )
    return oocgraph.build_csr(ends, tmp_path_factory.mktemp("table") / "g.zarr")


@pytest.fixture(params=[0, 3])
def edges(request, store, small):
    """Make a stream of which no pieces stay, or some."""
    return stream(store, request.param)


@pytest.fixture
def small(monkeypatch):
    """Have small pieces, and leaves."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(piece_table, "LEAF_BYTES", 1 << 11)


def stream(store, num_kept=0):
    options = {"transpose": False, "column": None, "threads": 2, "whole_rows": True}
    alone = Budget(1 << 40, baseline_bytes=0)
    parts = EdgeStream(store, alone, **options).parts
    kept_bytes = sum(part.entry_bytes + part.pointers.nbytes for part in parts[:num_kept])
    made = EdgeStream(store, Budget(alone.reserved_bytes + kept_bytes, baseline_bytes=0), keep_edges=True, **options)
    assert made.num_kept == num_kept
    return made


def rows_here(table):
    """Return the rows that are in memory, as kernels find them."""
    firsts, _, places, kind = table.pieces
    found = {}
    for i in np.flatnonzero(places[:, 0]).tolist():
        count = int(firsts[i + 1] - firsts[i])
        pointers = np.ctypeslib.as_array((ctypes.c_int64 * (count + 1)).from_address(places.item(i, 0))) - places[i, 2]
        edges = (ctypes.c_byte * int(pointers[-1] * kind.itemsize)).from_address(places.item(i, 1))
        indices = np.frombuffer(edges, kind.dtype)
        found |= {int(firsts[i]) + r: indices[pointers[r] : pointers[r + 1]].tolist() for r in range(count)}
    return found


def test_rows_are_those_of_the_store(store, edges):
    """Whatever was brought before: slots are filled again and again."""
    table, indptr, indices = PieceTable(edges), store.read("out/indptr"), store.read("out/indices")
    num_pieces = len(table.pieces.places)
    assert num_pieces > len(edges.parts)
    seen = set()
    for i in np.random.default_rng(1).permutation(num_pieces).tolist():
        assert table.bring(i)
        table.found(NUM_ROWS)
        here = rows_here(table)
        seen |= here.keys()
        assert here.keys() >= set(range(int(table.pieces.firsts[i]), int(table.pieces.firsts[i + 1])))
        assert all(row == indices[indptr[v] : indptr[v + 1]].tolist() for v, row in here.items())
    assert seen == set(range(NUM_ROWS))
    assert len(rows_here(table)) < NUM_ROWS
    assert all(table.bring(i) for i in range(edges.num_kept))


@pytest.mark.parametrize("end", ["piece", "table"])
def test_memory_that_is_taken_back_has_no_rows(edges, end):
    """By a sweep, or by another table."""
    table, i = PieceTable(edges), edges.num_kept
    assert table.bring(i)
    before = rows_here(table)
    assert before
    if end == "piece":
        edges.each(lambda part: part.num_lines)
    else:
        other = PieceTable(edges)
        assert other.bring(i + 1)
    assert not rows_here(table)
    assert table.bring(i)
    assert rows_here(table) == before
    assert end == "piece" or not rows_here(other)


def test_what_is_never_found_is_not_brought_for_ever(edges):
    """Nor what a level needs that has more rows than there is room for."""
    table, i = PieceTable(edges), edges.num_kept
    brought = 0
    while table.bring(i + brought % 2):
        brought += 1
    assert brought == min(len(table._slots), piece_table.MOST_CREDIT // piece_table.LEAF_COST)
    for _ in range(2 * piece_table.MOST_CREDIT):
        brought += table.bring(i)
    assert brought < piece_table.MOST_CREDIT
    table.found(NUM_ROWS)
    assert table.bring(i)


@pytest.mark.usefixtures("small")
def test_rows_that_have_no_room_are_not_brought(tmp_path):
    """A hub among vertices that have few neighbours; those are."""
    ids = np.arange(NUM_ROWS)
    source = np.r_[ids, np.full(NUM_ROWS // 2, NUM_ROWS - 1)]
    target = np.r_[(ids + 1) % NUM_ROWS, ids[::2]]
    hub = oocgraph.build_csr((source, target), tmp_path / "g.zarr")
    table = PieceTable(stream(hub))
    brought = [table.bring(i) for i in range(20)]
    assert brought.count(False) == 1
    assert table.bring(brought.index(False)) is False
    assert len(rows_here(table)) >= 19 * piece_table.LEAST_LEAF_ROWS // 2


def test_damaged_offsets_are_refused(store, tmp_path):
    """That ascend within what is read, but not from what is before."""
    indptr = store.read("out/indptr")
    damaged = indptr.copy()
    damaged[5_000:5_200] -= indptr[4_000]
    edges = stream(rewrite(store.url, tmp_path / "g.zarr", arrays={"out/indptr": damaged}))
    (part,) = [i for i, part in enumerate(edges.parts) if part.first_line <= 5_000 and part.stop_line >= 5_100]
    with pytest.raises(CorruptStoreError, match="out/indptr"):
        edges.read_rows(part, 5_000, 5_100, edges.lend_buffers()[0])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["multi_source_bfs", "betweenness_centrality", "closeness_centrality", "eccentricity", "diameter"])
def test_fronts_that_stay_near_read_few_rows_by_themselves(store, monkeypatch, name):
    """Of thousands of levels hardly one is read row by row, and answers are those in memory."""
    options = {"k": 4, "seed": 1} if "centrality" in name else {"max_searches": 4} if name == "diameter" else {}
    given = ([0, 5_000],) if name in ("multi_source_bfs", "eccentricity") else ()
    wanted = getattr(oocgraph, name)(store, *given, **options)
    by_rows, push = [], listed_front.ListedFront._push_by_rows
    monkeypatch.setattr(listed_front.ListedFront, "_push_by_rows", lambda *of: by_rows.append(1) or push(*of))
    monkeypatch.setattr(edge_stream.EdgeStream, "_keep", lambda self, budget: 0)
    found = getattr(oocgraph, name)(store, *given, **options)
    assert len(by_rows) < 100
    for column in ("centrality", "depth", "sum_distances", "eccentricity", "lower", "upper"):
        if hasattr(wanted, column):
            np.testing.assert_array_equal(getattr(found, column), getattr(wanted, column))
