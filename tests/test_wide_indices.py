"""Graphs whose neighbours are int64, as those of more than 2**32 - 2 vertices are, give what others give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import append_edges, build_csr, merge_graphs
from tests.ingest.helpers_build import assert_same_store
from tests.stores import wide_indices

KINDS = ["integers", "strings"]


def edges(seed, kind, num_edges=4000, num_ids=900):
    rng = np.random.default_rng(seed)
    ends = [(num_ids * rng.random(num_edges) ** 2).astype(np.int64) for _ in range(2)]
    columns = {"weight": rng.integers(1, 100, num_edges).astype(np.float32), "day": rng.integers(0, 5, num_edges).astype(np.int16)}
    if kind == "strings":
        ends = [pa.array([f"v{one}" for one in end.tolist()], pa.large_string()) for end in ends]
    return pa.table({"source": ends[0], "target": ends[1], **columns})


def built(path, table, *, directed):
    return build_csr(table, path, directed=directed, weight="weight", columns=("source", "target", "day"))


@pytest.fixture(scope="module", params=[(kind, directed) for kind in KINDS for directed in (False, True)], ids=str)
def graphs(request, tmp_path_factory):
    """Build the same edges with neighbours of either dtype, on disk."""
    kind, directed = request.param
    folder, table = tmp_path_factory.mktemp("wide"), edges(1, kind)
    narrow = built(folder / "narrow", table, directed=directed)
    with wide_indices():
        wide = built(folder / "wide", table, directed=directed)
    assert (narrow.index_dtype, wide.index_dtype) == (np.uint32, np.int64)
    return narrow, wide


def first_of(graph):
    return graph.ids_of([0]).tolist()[0]


def test_the_arrays_are_the_same_numbers(graphs):
    """And checks, which share no code with the build, find nothing."""
    narrow, wide = graphs
    for name in narrow.array_names():
        assert np.array_equal(narrow.read(name), wide.read(name)), name
    oocgraph.check_store(wide)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("memory", ["ample", "out of core"])
def test_searches(graphs, memory):
    """Levels and distances, judged by the verifiers too."""
    narrow, wide = graphs
    source, budget = first_of(narrow), None
    if memory == "out of core":
        oocgraph.bfs(wide, source)  # what is loaded at first is not measured
        with pytest.raises(oocgraph.OocGraphError) as caught:
            oocgraph.bfs(wide, source, memory_budget="1M")
        budget = f"{int(str(caught.value).rpartition('at least ')[2].partition('M')[0]) + 1}M"
    found = oocgraph.bfs(wide, source, memory_budget=budget)
    assert np.array_equal(found.level, oocgraph.bfs(narrow, source).level)
    oocgraph.verify_bfs(wide, found)
    paths = oocgraph.sssp(wide, source)
    assert np.array_equal(paths.distance, oocgraph.sssp(narrow, source).distance)
    oocgraph.verify_sssp(wide, paths)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("where", [None, "day < 3"])
def test_searches_of_views(graphs, where):
    """Edges that a condition leaves out lead to their own vertex, in either dtype."""
    narrow, wide = graphs
    source = first_of(narrow)
    assert np.array_equal(oocgraph.bfs(wide, source, where=where).level, oocgraph.bfs(narrow, source, where=where).level)


@pytest.mark.one_in(2)
def test_values_of_all_vertices(graphs):
    """Components, ranks, products and core numbers."""
    narrow, wide = graphs
    assert oocgraph.connected_components(wide).component.tolist() == oocgraph.connected_components(narrow).component.tolist()
    np.testing.assert_allclose(oocgraph.pagerank(wide).rank, oocgraph.pagerank(narrow).rank, rtol=1e-5)
    x = np.random.default_rng(3).random(narrow.num_vertices)
    np.testing.assert_allclose(oocgraph.spmv(wide, x), oocgraph.spmv(narrow, x), rtol=1e-5)
    if not narrow.attributes.directed:
        assert np.array_equal(oocgraph.core_numbers(wide).core_number, oocgraph.core_numbers(narrow).core_number)


def test_questions(graphs):
    """Neighbours, degrees and samples."""
    narrow, wide = graphs
    ids = narrow.ids_of(np.arange(20))
    assert [one.tolist() for one in map(np.asarray, wide.neighbors(ids).to_pylist())] == narrow.neighbors(ids).to_pylist()
    assert np.array_equal(wide.degree(ids), narrow.degree(ids))
    one, other = (graph.sample_neighbors(ids, [3, 2], seed=1) for graph in (wide, narrow))
    assert np.array_equal(one.source, other.source)
    assert np.array_equal(one.target, other.target)


def test_exports_and_results(graphs, tmp_path):
    """Files of both are the same."""
    narrow, wide = graphs
    for name in ("e.csv", "e.parquet"):
        for graph, label in ((narrow, "narrow"), (wide, "wide")):
            oocgraph.export_graph(graph, tmp_path / f"{label}-{name}")
        assert (tmp_path / f"narrow-{name}").read_bytes() == (tmp_path / f"wide-{name}").read_bytes()
    result = oocgraph.bfs(wide, first_of(wide))
    for name in ("r.csv", "r.parquet", "r.zarr"):
        result.write(tmp_path / name)
    assert result.to_pandas()["level"].tolist() == oocgraph.bfs(narrow, first_of(narrow)).to_pandas()["level"].tolist()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", ["EEC", "CVC", "1d", "2d"])
def test_partitions(graphs, tmp_path, policy):
    """Cut, checked by a search over them."""
    narrow, wide = graphs
    parts = oocgraph.partition_graph(wide, 4, policy=policy, path=tmp_path / "parts")
    source = first_of(wide)
    if policy in ("1d", "2d", "EEC"):
        assert np.array_equal(oocgraph.bfs(wide, source, partition=parts).level, oocgraph.bfs(narrow, source).level)
    with wide_indices():
        parts = oocgraph.partition_graph(wide, 4, policy=policy, path=tmp_path / "wide parts")
    assert np.array_equal(oocgraph.bfs(wide, source, partition=parts).level, oocgraph.bfs(narrow, source).level)


@pytest.mark.one_in(2)
def test_edges_are_appended_and_graphs_merged(graphs, tmp_path):
    """The bytes of one build."""
    narrow, _ = graphs
    directed, kind = narrow.attributes.directed, "strings" if narrow.attributes.id_kind == "string" else "integers"
    old, new = edges(1, kind), edges(2, kind, 300, 1200)
    with wide_indices():
        built(tmp_path / "whole", pa.concat_tables([old, new]), directed=directed)
        grown = append_edges(built(tmp_path / "grown", old, directed=directed), new, weight="weight")
        merge_graphs(narrow, built(tmp_path / "new", new, directed=directed), tmp_path / "merged")
    assert grown.index_dtype == np.int64
    assert_same_store(tmp_path / "whole", tmp_path / "grown")
    assert_same_store(tmp_path / "whole", tmp_path / "merged")


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_compressed(tmp_path, codec):
    """Chunks of int64."""
    from oocgraph.config import setting

    table = edges(4, "integers")
    with setting("codec", codec), wide_indices():
        wide = built(tmp_path / "wide", table, directed=False)
    narrow = built(tmp_path / "narrow", table, directed=False)
    source = first_of(narrow)
    assert np.array_equal(oocgraph.bfs(wide, source).level, oocgraph.bfs(narrow, source).level)
    oocgraph.check_store(wide)
