"""Arguments that make no sense are refused by name, before anything is read or allocated."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import oocgraph
from oocgraph import (
    ArgumentError,
    OocGraphError,
    Resources,
    StoreError,
    VertexNotFoundError,
    balanced_partition,
    bfs,
    build_csr,
    connected_components,
    export_graph,
    generate_kronecker,
    multi_source_bfs,
    open_runtime,
    partition_graph,
    personalized_pagerank,
    spmv,
    sssp,
    verify_bfs,
    verify_components,
)

PAIRS = np.array([0, 1, 2]), np.array([1, 2, 3])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return build_csr(PAIRS, tmp_path_factory.mktemp("graph") / "g.zarr")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", 10**30])
def test_numbers_of_threads_are_judged_alike(graph, tmp_path, threads):
    for call in (
        lambda: bfs(graph, 0, resources=Resources(threads=threads)),
        lambda: spmv(graph, np.ones(4), resources=Resources(threads=threads)),
        lambda: build_csr(PAIRS, tmp_path / "g.zarr", resources=Resources(threads=threads)),
        lambda: export_graph(graph, tmp_path / "g.npz", resources=Resources(threads=threads)),
    ):
        with pytest.raises(OocGraphError, match=r"threads is .*; it must be 1 to 4096, or None for all cores"):
            call()
    assert not list(tmp_path.iterdir())


def test_a_depth_limit_above_every_level_is_none(graph):
    assert bfs(graph, 0, depth_limit=10**30).depth == 3


@pytest.mark.parametrize("search", [bfs, multi_source_bfs])
def test_a_bool_is_no_depth_limit(graph, search):
    with pytest.raises(ArgumentError, match="depth_limit is True; it must be a whole number, 0 or more"):
        search(graph, [0], depth_limit=True)


def test_other_things_than_asked_for_are_named(graph, tmp_path):
    with pytest.raises(OocGraphError, match="runtime is True; give what open_runtime returns"):
        bfs(graph, 0, runtime=True)
    for wrong in ({"scale": None}, {"scale": 1.5}, {"scale": 3, "edge_factor": 1.5}, {"scale": 3, "edge_factor": None}):
        with pytest.raises(OocGraphError, match="give a whole number"):
            generate_kronecker(path=tmp_path / "k.zarr", **wrong)
    for columns in ("cost", ("a",), ("a", 3), ("a", "b", None), 7):
        with pytest.raises(ArgumentError, match=r"columns is .*; give the names of the columns of sources and targets"):
            build_csr(PAIRS, tmp_path / "g.zarr", columns=columns)
    with pytest.raises(OocGraphError, match="parts is 1000000000000000000000000000000"):
        balanced_partition(sp.csr_array(np.ones((2, 2))), 10**30)
    assert not list(tmp_path.iterdir())


def test_what_is_asked_of_results_and_parts_is_named(graph, tmp_path):
    strings = build_csr((["a", "b"], ["b", "c"]), tmp_path / "h.zarr")
    result, parts = bfs(graph, 0), partition_graph(graph, 2, policy="CVC", path=tmp_path / "parts")
    for call, error, message in (
        (lambda: result.path([1, 2]), ArgumentError, r"target is \[1, 2\]; give one vertex"),
        (lambda: result.write(5), TypeError, "path is 5; give a path"),
        (lambda: build_csr("g.zarr", pd.DataFrame({"a": [1], "b": [2]})), TypeError, "path is of type DataFrame; give a path"),
        (lambda: sssp(graph, 0, weight="w"), ArgumentError, "no numeric edge column; it has none: name the column of weights when"),
        (lambda: verify_bfs(strings, result), ArgumentError, r"the result is of .*g\.zarr, not of .*h\.zarr; give that graph"),
        (lambda: verify_bfs(graph, 5), TypeError, "result is 5; give what oocgraph.bfs returns"),
        (lambda: verify_components(graph, result), TypeError, "give what connected_components returns"),
        (lambda: verify_components(strings, connected_components(graph)), ArgumentError, r"the result is of .*g\.zarr, not of"),
        (lambda: parts["0"], TypeError, "part '0' of .*: parts go by number, 0 to 1"),
        (lambda: parts[2], IndexError, "part 2 of .*: it has parts 0 to 1"),
        (lambda: bfs(graph, 0, partition=4), TypeError, "partition is 4; give '1d', '2d', what partition_graph returns, or its path"),
        (lambda: bfs(graph, 0, partition="3d"), StoreError, "partition is neither '1d' nor '2d', and .*3d: no such file or folder"),
        (lambda: bfs(graph, b"a"), VertexNotFoundError, "b'a' is not a vertex of"),
        (lambda: bfs(strings, b"a"), VertexNotFoundError, "b'a' is not a vertex of"),
        (lambda: graph.array("neighbours"), ArgumentError, "has no array 'neighbours'; it has out/"),
        (lambda: graph.ids_of([0, 4]), VertexNotFoundError, "vertex numbers must be 0 to 3, not 0 to 4"),
        (lambda: graph.ids_of([0.5]), VertexNotFoundError, "vertex numbers are integers"),
        (lambda: spmv(graph, pd.Series(np.ones(4), index=[3, 2, 1, 0])), ArgumentError, "x is a Series with an index of its own"),
    ):
        with pytest.raises(error, match=message):
            call()
    copy = shutil.copytree(graph.url, tmp_path / "copy.zarr")
    verify_bfs(str(copy), result)
    np.testing.assert_array_equal(spmv(graph, pd.Series(np.ones(4))), spmv(graph, np.ones(4)))
    assert sorted(graph.ids_of([3, 0, 3]).tolist()) == sorted([*graph.ids_of(0).tolist(), *graph.ids_of([3, 3]).tolist()])


def test_a_runtime_that_is_closed_is_not_entered_again(graph):
    runtime = open_runtime(graph)
    runtime.close()
    with pytest.raises(ArgumentError, match="is closed; open another one"), runtime:
        pass


@pytest.mark.parametrize("wrong", [[[1, 2], [3]], [[1, 2], [2, 3]], [1, [2, 3]], ([1], [2, 3]), [np.array([1, 2]), np.array([3])], [{1}]])
def test_collections_of_collections_are_no_ids(graph, wrong):
    asked = {
        "bfs": lambda: bfs(graph, wrong), "target": lambda: bfs(graph, 0, target=wrong), "degree": lambda: graph.degree(wrong),
        "neighbors": lambda: graph.neighbors(wrong), "subgraph": lambda: graph.subgraph(wrong), "of": lambda: bfs(graph, 0).of(wrong),
        "random walk": lambda: graph.random_walk(wrong, 2), "sampled": lambda: graph.sample_neighbors(wrong, [2]),
        "several": lambda: multi_source_bfs(graph, wrong), "seeds": lambda: personalized_pagerank(graph, wrong),
    }  # fmt: skip
    for name, ask in asked.items():
        with pytest.raises(ArgumentError, match="is given as one vertex id; give a plain list of ids"):
            pytest.fail(f"{name}: {ask()}")


@pytest.mark.parametrize(
    "collect", [iter, dict.fromkeys, lambda ids: (one for one in ids), pa.array, lambda ids: list(map(pa.scalar, ids))]
)
def test_any_collection_of_ids(tmp_path, collect):
    """Numbers and strings of different lengths."""
    for ids, edges in (([1, 3], PAIRS), (["a", "ccc"], (["a", "ccc"], ["bb", "a"]))):
        graph = build_csr(edges)
        levels = bfs(graph, collect(ids))
        assert levels.of(collect(ids)).tolist() == [0, 0]
        assert graph.degree(collect(ids)).tolist() == [graph.degree(one) for one in ids]
        assert personalized_pagerank(graph, collect(ids)).num_seeds == 2


@pytest.mark.skipif(sys.platform != "linux", reason="how long names may be depends on the system")
def test_names_that_are_too_long_for_the_file_system_are_refused(tmp_path, graph):
    name = tmp_path / ("y" * 300)
    asked = {
        "opened": lambda: oocgraph.open_graph(name), "built": lambda: build_csr(PAIRS, name),
        "parts": lambda: oocgraph.open_partitions(name), "written": lambda: bfs(graph, 0).write(f"{name}.csv"),
        "exported": lambda: oocgraph.export_graph(graph, f"{name}.csv"),
        "checkpoint": lambda: oocgraph.pagerank(graph, checkpoint=name), "estimated": lambda: oocgraph.estimate(name),
    }  # fmt: skip
    for what, ask in asked.items():
        with pytest.raises(ArgumentError, match="this name is too long for the file system; choose a shorter one"):
            pytest.fail(f"{what}: {ask()}")


@pytest.mark.parametrize("table", [pa.table({"a": [1, 3]}), pa.record_batch({"a": [1, 3]}), pd.DataFrame({"a": [1, 3]})])
def test_a_table_is_no_collection_of_ids(graph, table):
    for ask in (
        lambda: bfs(graph, table),
        lambda: bfs(graph, 1, target=table),
        lambda: graph.degree(table),
        lambda: bfs(graph, 1).of(table),
    ):
        with pytest.raises(ArgumentError, match="is given as ids; give one of its columns"):
            ask()


def test_an_array_without_dimensions_is_one_id(graph):
    found = bfs(graph, np.array(1))
    assert found.source == [1]
    assert type(found.source[0]) is int
    assert found.of(np.array(2)) == 1


def test_a_mapping_is_a_collection_of_its_keys(graph):
    """A result, too, and what it has reached: not of the values, which might be ids."""
    found = bfs(graph, 2, depth_limit=1)
    near = sorted(found.reached())
    assert near == [1, 2, 3]
    for given in (found.reached(), dict(found.reached())):
        assert sorted(graph.subgraph(given)) == near
        assert graph.degree(given).tolist() == [graph.degree(one) for one in given]
        assert sorted(multi_source_bfs(graph, given).sources) == near
    assert graph.degree(found).tolist() == [1, 2, 2, 1]
