"""Directed graphs of undirected sources have each edge in both directions, and one from a vertex to itself once."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.io

from oocgraph import append_edges, build_csr, export_graph
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources import open_source
from oocgraph.ingest.sources.both_directions import both_directions
from oocgraph.ingest.sources.source import Source, range_streams
from tests.ingest.helpers import check
from tests.ingest.helpers_build import assert_same_store

EDGES = [(1, 0, 5), (2, 0, 6), (3, 3, 7), (5, 4, 8)]
BOTH = sorted([*EDGES, *((v, u, w) for u, v, w in EDGES if u != v)])


def edges_of(graph):
    """Every edge of a graph, with its weight."""
    return sorted(row for batch in graph.edges() for row in zip(*batch.to_pydict().values(), strict=True))


def undirected(kind, folder):
    """Make an undirected source of `EDGES`, and of a vertex without any, and what names its weight."""
    if kind.startswith("nx"):
        graph = nx.MultiGraph() if kind == "nx-multi" else nx.Graph()
        graph.add_nodes_from(range(7))
        graph.add_weighted_edges_from(EDGES)
        return graph, {"weight": "weight"}
    if kind == ".mtx":
        lines = [f"{u + 1} {v + 1} {w}" for u, v, w in EDGES]
        (folder / "g.mtx").write_text("\n".join(["%%MatrixMarket matrix coordinate integer symmetric", f"7 7 {len(lines)}", *lines, ""]))
        return folder / "g.mtx", {}
    frame = pa.table(dict(zip(("source", "target", "weight"), zip(*EDGES, strict=True), strict=True)))
    export_graph(build_csr(frame, weight="weight", num_vertices=7, keep_self_loops=True), folder / "g.wsg")
    return folder / "g.wsg", {}


@pytest.mark.parametrize("kind", ["nx", "nx-multi", ".mtx", ".wsg"])
@pytest.mark.parametrize("duplicates", [None, "keep", "first"])
def test_a_directed_graph_of_an_undirected_source(tmp_path, kind, duplicates):
    """In memory and on disk, with the columns and with the vertices that have no edge."""
    source, options = undirected(kind, tmp_path)
    options |= {"directed": True, "keep_self_loops": True, "duplicates": duplicates}
    graph = build_csr(source, **options)
    assert (edges_of(graph), graph.num_edges, graph.num_vertices) == (BOTH, len(BOTH), 7)
    build_csr(source, tmp_path / "g.zarr", **options)
    graph.save(tmp_path / "saved.zarr")
    assert_same_store(tmp_path / "saved.zarr", tmp_path / "g.zarr")
    undirected_graph = build_csr(source, **options | {"directed": None})
    assert (undirected_graph.is_directed(), undirected_graph.num_edges) == (False, len(EDGES))


@pytest.mark.parametrize("kind", ["nx", ".mtx", ".wsg"])
def test_edges_that_are_added_to_a_directed_graph(tmp_path, kind):
    source, options = undirected(kind, tmp_path)
    frame = pa.table({"source": [6], "target": [4], "weight": pa.array([1], pa.int32() if kind == ".wsg" else pa.int64())})
    build_csr(frame, tmp_path / "g.zarr", weight="weight", directed=True)
    assert edges_of(append_edges(tmp_path / "g.zarr", source, keep_self_loops=True, **options)) == sorted([*BOTH, (6, 4, 1)])


def test_exports_of_one_graph_agree_when_they_are_read_as_directed(tmp_path):
    source, options = undirected("nx", tmp_path)
    graph = build_csr(source, **options, keep_self_loops=True)
    for name in ("g.npz", "g.mtx", "g.wsg"):
        export_graph(graph, tmp_path / name)
        assert edges_of(build_csr(tmp_path / name, directed=True, keep_self_loops=True)) == BOTH
    full = scipy.io.mmread(tmp_path / "g.mtx", spmatrix=False)
    assert sorted(zip(full.row.tolist(), full.col.tolist(), full.data.tolist(), strict=True)) == BOTH


@pytest.mark.parametrize("as_ids", [np.array, lambda ids: pa.array(map(str, ids), pa.large_string())])
def test_a_reverse_follows_its_edge_in_blocks_of_any_size(as_ids):
    source, target, names = [1, 2, 3, 1], [2, 2, 1, 2], ["a", "b", "c", "d"]

    def block(low, high):
        return EdgeBlock(as_ids(source[low:high]), as_ids(target[low:high]), {"name": pa.array(names[low:high], pa.large_string())}, low)

    kind = "int64" if as_ids is np.array else "string"
    edges = Source("edges", kind, range_streams(4, block), num_rows=4, directed=False, columns={"name": "string"})
    expected = [1, 2, 2, 3, 1, 1, 2], [2, 1, 2, 1, 3, 2, 1]
    if kind == "string":
        expected = [list(map(str, ids)) for ids in expected]
    check(both_directions(edges), expected, {"name": ["a", "a", "b", "c", "c", "d", "d"]}, directed=True, num_rows=None, likely_rows=8)


def test_the_number_of_edges_is_known_where_the_format_has_both_directions(tmp_path):
    from oocgraph.ingest.build_job import BuildOptions
    from oocgraph.ingest.sources import open_requested

    for kind in ("nx", ".wsg"):
        opened = open_requested(undirected(kind, tmp_path)[0], BuildOptions(directed=True))
        assert (opened.num_rows, opened.directed) == (len(BOTH), True)
    assert open_source(undirected("nx", tmp_path)[0]).num_rows == len(EDGES)
