"""Neighbours of one vertex and of several, against lists made from the edges."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import ArgumentError, ArgumentTypeError, BudgetError, CorruptStoreError, VertexNotFoundError
from oocgraph.memory import Budget, host_bytes
from oocgraph.store.arrays import PlainArray
from oocgraph.store.row_places import row_ends
from oocgraph.store.scattered import RangeReader
from oocgraph.types import PAGE_BYTES
from tests.store.asked_graphs import same, strings, undirected, weigh
from tests.store.reading import note_reads
from tests.stores import rewrite

DIRECTIONS = ["out", "in"]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_neighbours_of_one_vertex_are_those_of_its_edges(asked, direction):
    expected = asked.lists(direction)
    for v in asked.vertices[::37]:
        found = asked.graph.neighbors(v, direction=direction)
        assert isinstance(found, np.ndarray)
        assert found.dtype == (object if isinstance(v, str) else np.int64)
        assert same(found.tolist(), expected[v])


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("step", [1, 7])
def test_neighbours_of_several_are_a_list_for_each_in_their_order(asked, direction, step):
    """Also of vertices that are given twice, and in any order."""
    expected, ids = asked.lists(direction), asked.vertices[::-step] + asked.vertices[:3]
    found = asked.graph.neighbors(ids, direction=direction)
    assert isinstance(found, pa.LargeListArray)
    assert len(found) == len(ids)
    assert all(same(one, expected[v]) for v, one in zip(ids, found.to_pylist(), strict=True))


def test_neighbours_of_none_are_no_lists(asked):
    assert asked.graph.neighbors([]).to_pylist() == []


@pytest.mark.parametrize("collection", [set, tuple, iter, np.array, pa.array, dict.fromkeys])
def test_any_collection_of_ids_will_do(tmp_path, collection):
    graph = build_csr(([0, 0], [1, 2]), tmp_path / "g.zarr")
    found = graph.neighbors(collection([0, 2]))
    assert sorted(map(sorted, found.to_pylist())) == [[0], [1, 2]]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_columns_come_with_the_edges_as_a_table(asked, direction):
    if not asked.graph.attributes.columns:
        pytest.skip("a graph without columns")
    ids, near = asked.vertices[::5], asked.lists(direction)
    table = asked.graph.neighbors(ids, direction=direction, columns=["weight", "kind"])
    assert table.column_names == ["source", "target", "weight", "kind"]
    edges = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    expected = [(v, u) if direction == "out" else (u, v) for v in ids for u in near[v]]
    assert same([edge[:2] for edge in edges], expected)
    assert all(edge[2:] == (weigh(*edge[:2]), f"kind {int(weigh(*edge[:2])) % 3}") for edge in edges)


def test_columns_of_one_vertex_are_a_table_too(tmp_path):
    asked = strings(tmp_path / "g.zarr")
    v = asked.vertices[0]
    table = asked.graph.neighbors(v, columns=("weight",))
    assert same(zip(table["target"].to_pylist(), table["weight"].to_pylist(), strict=True), [(u, weigh(u, v)) for u in asked.lists()[v]])
    assert asked.graph.neighbors("alone", columns=("weight",)).num_rows == 0


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda g: g.neighbors(900), VertexNotFoundError, "vertex 900 is not in"),
        (lambda g: g.neighbors([1, "x"]), VertexNotFoundError, "'x' is not a vertex"),
        (lambda g: g.neighbors(1, direction="up"), ArgumentError, "direction is 'up'; it must be"),
        (lambda g: g.neighbors(1, columns=["time"]), ArgumentError, r"no edge column 'time'; give columns= of kind, weight"),
        (lambda g: g.neighbors(1, columns=None), ArgumentTypeError, "columns is None; give a list"),
        (lambda g: g.neighbors(1, columns="kind"), ArgumentTypeError, "columns is 'kind'; give a list"),
        (lambda g: g.neighbors(1, columns=["kind", "kind"]), ArgumentError, "twice"),
        (lambda g: g.neighbors(1, depth=2), ArgumentTypeError, r"neighbors\(\) has no parameter 'depth'; it takes ids"),
    ],
)
def test_bad_questions_are_refused(tmp_path, ask, error, message):
    with pytest.raises(error, match=message):
        ask(undirected(tmp_path / "g.zarr").graph)


def test_what_does_not_fit_is_refused_before_an_edge_is_read(tmp_path, monkeypatch):
    graph = build_csr(([0] * 60_000, range(1, 60_001)), tmp_path / "g.zarr")
    note_reads(monkeypatch, fail=True)
    graph.degree(0)  # what is loaded at first is counted as the process's own
    with pytest.raises(BudgetError, match=r"neighbours 1\.4 MiB.* need .*set memory_budget to at least \d+M"):
        graph.neighbors(0, memory_budget=host_bytes() + (1 << 20))


def test_only_the_pages_of_the_rows_are_read(tmp_path):
    """Of short rows far apart one page each; pages that rows share once; and neighbouring pages not twice."""
    rng = np.random.default_rng(3)
    graph = build_csr((rng.integers(0, 60_000, 400_000), rng.integers(0, 60_000, 400_000)), tmp_path / "g.zarr")
    for numbers in (np.arange(0, graph.num_rows, 997), np.arange(30_000, 33_000), np.sort(rng.choice(graph.num_rows, 4000, replace=False))):
        begin, end = row_ends(graph, "out", numbers)
        pages = np.unique(np.concatenate([np.arange(a, z + 1) for a, z in zip(begin // 1024, (end - 1) // 1024, strict=True)]))
        with RangeReader(graph, Budget(1 << 40)) as reader:
            reader.read("out/indices", begin, end)
            assert 0 < reader.bytes_read["out/indices"] <= 1.2 * PAGE_BYTES * pages.size


def test_a_damaged_page_is_told(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    indices = graph.read("out/indices").copy()
    indices[5] = graph.num_rows
    path = rewrite(tmp_path / "g.zarr", tmp_path / "bad.zarr", arrays={"out/indices": indices}).url
    for ids in (graph.ids_of([0])[0], graph.ids_of(np.arange(100))):
        with pytest.raises(CorruptStoreError, match="out/indices"):
            open_graph(path).neighbors(ids)


def test_a_changed_page_differs_from_its_checksum(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    array = graph.array("out/indices")
    assert isinstance(array, PlainArray)
    file = array.chunk_path(0)
    raw = bytearray(file.read_bytes())
    raw[40] ^= 1
    file.write_bytes(raw)
    for ids in (graph.ids_of([0])[0], graph.ids_of(np.arange(100))):
        with pytest.raises(CorruptStoreError, match="differs from its checksum"):
            open_graph(tmp_path / "g.zarr", check_pages=True).neighbors(ids)
