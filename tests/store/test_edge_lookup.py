"""Whether pairs of vertices are edges."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import ArgumentError, CorruptStoreError, VertexNotFoundError
from oocgraph.types import PAGE_BYTES
from tests.store.asked_graphs import undirected
from tests.store.reading import note_reads
from tests.stores import rewrite


def test_pairs_are_edges_where_the_input_has_them(asked):
    """Those of the input, the same turned around, and random ones; isolated vertices among them."""
    rng = np.random.default_rng(1)
    ends = rng.integers(0, len(asked.vertices), (500, 2))
    pairs = [*asked.pairs[::3], *((v, u) for u, v in asked.pairs[::5]), *((asked.vertices[a], asked.vertices[b]) for a, b in ends)]
    known = set(asked.pairs) | (set() if asked.directed else {(v, u) for u, v in asked.pairs})
    found = asked.graph.has_edge([u for u, _ in pairs], [v for _, v in pairs])
    assert found.dtype == np.bool_
    assert found.tolist() == [pair in known for pair in pairs]
    assert asked.graph.has_edge(*pairs[0]) is (pairs[0] in known)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """One vertex with 50,000 edges to the even numbers."""
    leaves = np.arange(2, 100_002, 2)
    return build_csr(
        (np.zeros(leaves.size, np.int64), leaves), tmp_path_factory.mktemp("hub") / "g.zarr", directed=True, num_vertices=100_002
    )


def test_long_rows_are_searched_through(hub):
    targets = np.arange(1, 100_002)
    np.testing.assert_array_equal(hub.has_edge(np.zeros(targets.size, np.int64), targets), targets % 2 == 0)


def test_a_few_pages_of_a_long_row_are_read(hub, monkeypatch):
    """Of 49 pages: those in the middle of the middle, and one to the end."""
    asked = note_reads(monkeypatch)
    assert hub.has_edge(0, 77_778)
    assert len(asked) <= 7
    assert sum(asked) * 4 <= 2 * PAGE_BYTES


def test_bad_questions_are_refused(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    with pytest.raises(VertexNotFoundError, match="vertex 900 is not in"):
        graph.has_edge(0, 900)
    with pytest.raises(ArgumentError, match="3 sources and 2 targets; give"):
        graph.has_edge([0, 1, 2], [1, 2])
    with pytest.raises(ArgumentError, match="give two ids"):
        graph.has_edge(0, [1])
    with pytest.raises(ArgumentError, match=r"an id is missing \(masked\)"):
        graph.has_edge(np.ma.masked_equal([0, 1], 1), [2, 3])
    with pytest.raises(VertexNotFoundError, match="vertex of more than 128 bits is not in"):
        graph.has_edge(10**5000, 1)


def test_damaged_neighbours_are_told(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    indices = graph.read("out/indices").copy()
    indices[:] = graph.num_rows
    path = rewrite(tmp_path / "g.zarr", tmp_path / "bad.zarr", arrays={"out/indices": indices}).url
    with pytest.raises(CorruptStoreError, match="out/indices"):
        open_graph(path).has_edge(*graph.ids_of([0, 1]).tolist())
