"""A stream of edges: every edge once, whatever the threads, the range and what is kept; errors end it."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import BudgetError, CorruptStoreError
from oocgraph.memory import Budget
from oocgraph.sparse import edge_stream
from oocgraph.sparse.edge_stream import EdgeStream
from tests.ingest.helpers_build import ArraySource
from tests.stores import random_edges


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 200)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Build a directed graph with weights."""
    src, dst = random_edges(1, num_ids=300, num_edges=2_000)
    url = tmp_path_factory.mktemp("stream") / "g.zarr"
    build_csr(ArraySource(src, dst, {"weight": np.arange(2_000.0)}, weight="weight"), url, directed=True)
    return open_graph(url)


def stream(store, budget=None, **options):
    return EdgeStream(store, budget or Budget(1 << 40), **{"transpose": False, "column": None, "threads": 2, **options})


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("keep_edges", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_every_edge_comes_once_each_time(store, threads, keep_edges, transpose):
    edges = stream(store, threads=threads, keep_edges=keep_edges, transpose=transpose, column="weight")
    group = "in" if transpose else "out"
    assert len(edges.parts) > 5
    for _ in range(3):
        pieces = edges.each(lambda piece: (piece.indices.copy(), piece.values.copy()))
        np.testing.assert_array_equal(np.concatenate([one for one, _ in pieces]), store.read(f"{group}/indices"))
        np.testing.assert_array_equal(np.concatenate([one for _, one in pieces]), store.read(f"{group}/weight"))
    assert edges.num_kept == (len(edges.parts) if keep_edges else 0)


@pytest.mark.usefixtures("small_pieces")
def test_a_range_of_edges(store):
    edges = stream(store, entries=(13, 1_234))
    np.testing.assert_array_equal(np.concatenate(edges.each(lambda piece: piece.indices.copy())), store.read("out/indices")[13:1_234])
    assert edges.bytes_requested < store.array("out/indices").length * 8


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("num_kept", [0, 1, 7])
@pytest.mark.parametrize("direct", [False, True])
def test_what_is_kept_is_read_once(store, num_kept, direct):
    alone = Budget(1 << 40, baseline_bytes=0)
    parts = stream(store, alone).parts
    kept_bytes = sum(part.entry_bytes + part.pointers.nbytes for part in parts[:num_kept])
    edges = stream(store, Budget(alone.reserved_bytes + kept_bytes, baseline_bytes=0), keep_edges=True)
    edges.read_directly(0 if direct else 1 << 40)
    assert edges.num_kept == num_kept
    first = edges.each(lambda piece: int(piece.indices.sum()))
    read = edges.bytes_requested
    assert edges.each(lambda piece: int(piece.indices.sum())) == first
    assert edges.bytes_requested == 2 * read - kept_bytes


def test_pieces_in_work_that_do_not_fit_are_refused(store):
    with pytest.raises(BudgetError, match="pieces of edges"):
        stream(store, Budget(1 << 10, baseline_bytes=0))


@pytest.mark.usefixtures("small_pieces")
def test_an_error_ends_it_and_the_next_time_goes_on(store):
    edges, seen = stream(store), []

    def use(piece):
        seen.append(piece.start)
        if piece.start == edges.parts[3].start:
            raise OSError("disk")
        return 1

    with pytest.raises(OSError, match="disk"):
        edges.each(use)
    assert edges.each(lambda _piece: 1) == [1] * len(edges.parts)


def test_a_neighbour_that_is_no_vertex(store, tmp_path):
    shutil.copytree(store.url, tmp_path / "g.zarr")
    damaged = open_graph(tmp_path / "g.zarr")
    indices = damaged.array("out/indices")
    with open(indices.chunk_path(0), "r+b") as chunk:
        chunk.seek(40)
        chunk.write(b"\xff\xff\xff\x7f")
    with pytest.raises(CorruptStoreError, match="out/indices"):
        stream(damaged).each(lambda _piece: None)
