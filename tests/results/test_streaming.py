"""Results are joined with ids by threads, in blocks; neither threads nor memory change what comes out."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.sparse import coo_array

import oocgraph
from oocgraph.config import setting
from oocgraph.results import base, streaming, writer
from oocgraph.results.streaming import Room, stream_result
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from tests.capped import run_capped
from tests.reference_build import reference_build
from tests.stores import random_edges, string_store

BOUNDLESS = 1 << 40

AT_ONCE = 7
"""Vertices of a block, so that there are many."""


def implied(path):
    """Return a directed graph of an implied range of ids, a third of them isolated."""
    src, dst = random_edges(3, num_ids=300, num_edges=250)
    reference_build(src + 5, dst + 5, path, implied=(2, 400), directed=True)
    return open_graph(path), [int(src[0]) + 5, 399]


def listed(path):
    """Return a graph of ids far apart."""
    src, dst = random_edges(4, num_ids=200, num_edges=220)
    reference_build(src * 10**14, dst * 10**14, path, vertex_order="original")
    return open_graph(path), int(src[0]) * 10**14


def named(path):
    """Return a graph of strings, one that is empty and isolated ones among them; one of these is a source."""
    src, dst = ([f"{'é' * (i % 5)}{i}" for i in side] for side in random_edges(8, num_ids=200, num_edges=220))
    return string_store(path, src, dst, others=["", "z1", "z2"]), [src[0], "z1"]


@pytest.fixture(params=[implied, listed, named])
def searched(request, tmp_path):
    store, source = request.param(tmp_path / "g.zarr")
    return oocgraph.bfs(store, source)


@pytest.fixture
def in_blocks(monkeypatch):
    monkeypatch.setattr(base, "BLOCK_VERTICES", AT_ONCE)
    monkeypatch.setattr(writer, "MIN_ROWS", 4)
    monkeypatch.setattr(writer, "TEXT_ROWS", 3)


def parents_of(result):
    """Return parents by lookup in dicts of all ids and of all edges of the tree."""
    ids = VertexIds(result.ids.store)
    name = dict(enumerate(ids.ids_of(np.arange(ids.store.num_rows)).tolist()))
    absent = None if ids.kind == "string" else -1
    parents = {name[v]: name[int(p)] for v, p in enumerate(result.search.parent.tolist()) if p in name}
    alone = set(result.isolated_ids.tolist())
    return [one if one in alone else parents.get(one, absent) for block, _ in ids.blocks() for one in block.tolist()]


@pytest.mark.parametrize("held_bytes", [0, 100, 1500, 1 << 20])
@pytest.mark.parametrize("num_threads", [0, 3])
@pytest.mark.parametrize("reads_ahead", [False, True])
def test_ids_that_are_held_are_those_that_are_read(searched, held_bytes, num_threads, reads_ahead):
    """Of none, some and all vertices; blocks come in order, whichever thread makes them."""
    room = Room(num_threads, held_bytes, reads_ahead)
    blocks = stream_result(searched, ("parent",), AT_ONCE, lambda start, _, values: (start, values["parent"].tolist()), room=room)
    found = list(blocks)
    assert [start for start, _ in found] == list(range(0, searched.ids.num_ids, AT_ONCE))
    assert [one for _, part in found for one in pa.array(part).to_pylist()] == parents_of(searched)


def test_only_what_fits_is_held(searched):
    ids, num_vertices = searched.ids, searched.ids.store.num_rows
    assert len(ids.holding(-1).first) == len(ids.holding(0).first) == len(ids.first) == 0
    assert len(ids.holding(1 << 20).first) == num_vertices
    some = ids.holding(400).first
    assert 0 < len(some) < num_vertices
    num_bytes = some.nbytes if ids.kind == "int64" else 16 * len(some) + sum(len(one.as_py().encode()) for one in some)
    assert num_bytes <= 400
    assert some.tolist() == ids.ids_of(np.arange(len(some))).tolist()


@pytest.mark.parametrize("name", ["r.parquet", "r.csv", "r.zarr"])
def test_files_depend_on_neither_memory_nor_threads(searched, in_blocks, tmp_path, name):
    """Those of a result with next to no budget, which one thread writes, and of one with all memory and four threads."""
    found = []
    for budget, threads in ((0, 1), (BOUNDLESS, 4)):
        object.__setattr__(searched, "memory_budget", budget)
        path = tmp_path / str(threads) / name
        path.parent.mkdir()
        with setting("threads", threads):
            searched.write(path)
        files = [path] if path.is_file() else sorted(one for one in path.rglob("c/*"))
        found.append([(one.name, one.read_bytes()) for one in files])
    assert found[0] == found[1]


def test_files_are_those_of_the_library_that_writes_them(searched, in_blocks, tmp_path):
    object.__setattr__(searched, "memory_budget", BOUNDLESS)
    table = searched.to_arrow().read_all()
    searched.write(tmp_path / "r.csv")
    pa.csv.write_csv(table, tmp_path / "theirs.csv")
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "theirs.csv").read_bytes()
    searched.write(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").equals(table)
    groups = pq.read_metadata(tmp_path / "r.parquet")
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert len(sizes) > 1
    assert set(sizes[:-1]) == {writer.rows_in(searched)}


@pytest.fixture
def named_after_long_ids(tmp_path):
    """Return a graph of short ids, in components of 100, each named after an id of 300 bytes."""
    hubs = [f"a{k}" + "é" * 150 for k in range(4)]
    return oocgraph.build_csr(([hubs[i % 4] for i in range(400)], [f"n{i}" for i in range(400)]), tmp_path / "long.zarr")


@pytest.mark.parametrize("form", ["zarr", "parquet", "csv"])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_are_cut_where_vertices_are_named_after_long_ids(named_after_long_ids, monkeypatch, tmp_path, form, threads):
    """No block has more bytes of them than it may, or one; what is written is the same."""
    result, sizes = oocgraph.connected_components(named_after_long_ids, memory_budget="4G"), []
    result.write(tmp_path / f"expected.{form}")
    expected = [(block.vertices.to_pylist(), block.component.to_pylist()) for block in result.blocks()]
    assert len(expected) == 1
    monkeypatch.setattr(streaming, "LEAST_BYTES", 1000 * streaming.NAMED_SHARE)
    monkeypatch.setattr(streaming, "ROW_BYTES", 0)
    monkeypatch.setattr(streaming, "ID_COPIES", 1)
    blocks = [(block.vertices.to_pylist(), block.component.to_pylist()) for block in result.blocks(100)]
    sizes = [sum(len(name.encode()) for name in names) for _, names in blocks]
    assert len(sizes) > 4
    assert max(sizes) <= 2000
    for k in range(2):
        assert [one for block in blocks for one in block[k]] == expected[0][k]
    with setting("threads", threads):
        result.write(tmp_path / f"g.{form}")
    one, other = tmp_path / f"expected.{form}", tmp_path / f"g.{form}"
    if form == "zarr":
        assert all((other / file.relative_to(one)).read_bytes() == file.read_bytes() for file in one.rglob("*") if file.is_file())
    elif form == "csv":
        assert one.read_bytes() == other.read_bytes()
    else:
        assert pq.read_table(one).equals(pq.read_table(other))


@pytest.mark.one_in(2)
@pytest.mark.capped
@pytest.mark.parametrize("command", ["components", "export"])
def test_many_vertices_named_after_few_long_ids_are_written_within_the_budget(tmp_path, command):
    """Blocks had as many rows as of ids of average length: 100,000 of 5 kB, and the process was killed."""
    edges = ([f"a{i % 50}" + "y" * 5000 for i in range(50)] * 1200, [f"n{i}" for i in range(60_000)])
    oocgraph.build_csr(edges, tmp_path / "g")
    oocgraph.connected_components(tmp_path / "g")  # kernels compiled
    words = [sys.executable, "-m", "oocgraph", command, tmp_path / "g"]
    words += ["--out", tmp_path / "r.parquet", "--memory"] if command == "components" else [tmp_path / "r.parquet", "--memory"]
    refused = run_capped(400 << 20, [*words, "1M"])
    named = int(refused.stderr.rpartition("at least ")[2].split("M")[0])
    ran = run_capped(int((named << 20) / 0.85), [*words, f"{named}M"])
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert pq.read_metadata(tmp_path / "r.parquet").num_rows == (60_050 if command == "components" else 60_000)


def test_what_fails_in_a_thread_is_raised(searched, in_blocks, monkeypatch):
    """And ends the others."""

    def failing(self, columns, vertices, numbers, start):
        if start >= 4 * AT_ONCE:
            raise ValueError(start)
        return {"level": numbers}

    object.__setattr__(searched, "memory_budget", BOUNDLESS)
    monkeypatch.setattr(type(searched), "values_of", failing)
    with setting("threads", 3), pytest.raises(ValueError, match=f"^{4 * AT_ONCE}$"):
        searched.level  # noqa: B018 - is made


@pytest.mark.parametrize("algorithm", [oocgraph.sssp, oocgraph.connected_components, oocgraph.label_propagation, oocgraph.pagerank])
def test_columns_of_a_table_are_those_of_the_result(tmp_path, in_blocks, algorithm):
    """Of all kinds of results, joined together or one by one."""
    src, dst = random_edges(5, num_ids=200, num_edges=150)
    weighted = coo_array((np.arange(src.size) % 7 + 1.0, (src, dst)), shape=(250, 250))
    store = oocgraph.build_csr(weighted, tmp_path / "g.zarr")
    result = algorithm(store, int(src[0])) if algorithm is oocgraph.sssp else algorithm(store)
    frame = result.to_pandas()
    values = result.ids.vertices_of(frame["vertex"].tolist())
    for name, wanted in result.values_of(tuple(result.columns), frame["vertex"].to_numpy(), values, 0).items():
        assert frame[name].tolist() == np.asarray(wanted).tolist() == result._joined(name).tolist()


@pytest.mark.capped
def test_results_of_long_ids_are_written_within_the_budget(tmp_path):
    """Blocks are of fewer rows where ids are long: of 5,000 characters a block of 32,768 rows took 1.3 GB, with three vertices too."""
    ids = [f"{i:05}" + 4000 * "x" for i in range(12_000)]
    oocgraph.build_csr((ids[:-1], ids[1:]), tmp_path / "many")
    few = oocgraph.build_csr((ids[:2], ids[1:3]), tmp_path / "few")
    for found in (oocgraph.bfs(few, ids[0]), oocgraph.connected_components(few)):  # kernels compiled: a compiler needs more than the cap
        found.write(tmp_path / f"{found.algorithm}.parquet")
    code = """
import sys
import oocgraph

for name, budget in (("few", "160M"), ("many", "300M")):
    graph = oocgraph.open_graph(f"{sys.argv[1]}/{name}")
    searched = oocgraph.bfs(graph, "00000" + 4000 * "x", memory_budget=budget)
    for found in (searched, oocgraph.connected_components(graph, memory_budget=budget)):
        for form in ("parquet", "csv", "zarr"):
            found.write(f"{sys.argv[1]}/r.{form}", overwrite=True)
        assert sum(len(vertex) for vertex, _ in found.items()) == 4005 * len(found)
"""
    ran = run_capped(600 << 20, [sys.executable, "-c", code, tmp_path], timeout=300)
    assert ran.returncode == 0, ran.stderr[-2000:]
