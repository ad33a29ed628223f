"""A result on a cluster gives what the same search gives in process, from files in partition order."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cloudpickle
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from oocgraph.config import setting
from oocgraph.errors import BudgetError, OocGraphError, OutputError, StoreError, VertexNotFoundError
from oocgraph.partition.vertex_partition import partition_vertices
from oocgraph.results import dask as dask_result
from oocgraph.results.bfs import BFSResult
from oocgraph.results.dask import DaskBFSResult, TemporaryStore
from oocgraph.results.store_order import StoreOrder
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import open_graph
from oocgraph.store.search_store import SearchStore
from oocgraph.verify import verify_bfs
from tests.cluster.conftest import QUIET
from tests.processes import program
from tests.reference_build import reference_build
from tests.results.test_bfs import result_of
from tests.stores import random_edges, string_store


def on_cluster(store, result, folder, *, num_partitions=3, **options):
    """Cut a result into the parts that workers would have written, and hand back what the client would."""
    vertex_partition = partition_vertices(store, num_partitions)
    search = SearchStore.create(
        str(folder),
        {
            "graph": store.url,
            "graph_fingerprint": graph_fingerprint(store),
            "num_partitions": num_partitions,
            "isolated_sources": list(result.isolated_sources),
        },
    )
    for partition in range(num_partitions):
        first, stop, _ = vertex_partition.blocks_of(partition)
        own = np.concatenate([np.empty(0, np.int64), *(np.arange(a, z) for a, z in zip(first, stop, strict=True))])
        search.write_part(partition, [(result.search.level[own], result.search.parent[own])])
    search.finish()
    columns = {name: StoreOrder(search, vertex_partition, name) for name in ("level", "parent")}
    figures = {name: getattr(result, name) for name in ("ids", "source", "isolated_sources", "edge_bytes")}
    return DaskBFSResult(search=replace(result.search, **columns), result_store=str(folder), **figures, **options)


def integers(path):
    """Ids of an implied range, a third of them isolated."""
    src, dst = random_edges(3, num_ids=2000, num_edges=1500)
    reference_build(src, dst, path, implied=(0, 2500))
    return open_graph(path), [int(src[0]), 2400]


def sparse(path):
    """Ids far apart, isolated ones listed; original order."""
    src, dst = random_edges(4, num_ids=1500, num_edges=1500)
    loops = np.arange(1500, 1900)
    src, dst = np.concatenate([src, loops]) * 10**14, np.concatenate([dst, loops]) * 10**14
    reference_build(src, dst, path, vertex_order="original")
    return open_graph(path), int(src[0])


def strings(path):
    """Strings, isolated ones among them; one is a source."""
    src, dst = ([f"{'n' * (i % 9)}{i}" for i in side] for side in random_edges(8, num_ids=1500, num_edges=1500))
    return string_store(path, src, dst, others=["", *(f"n{i}x" for i in range(300))]), [src[0], "n7x"]


@pytest.fixture(params=[integers, sparse, strings], ids=lambda graph: graph.__name__)
def pair(request, tmp_path):
    """Make the same search in process and on a cluster."""
    store, source = request.param(tmp_path / "g.zarr")
    here = result_of(store, source)
    return here, on_cluster(store, here, tmp_path / "result.zarr")


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **QUIET) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def columns(result):
    return {name: getattr(result, name) for name in ("vertices", "level", "parent")}


def test_arrays_equal_those_in_process(pair, monkeypatch):
    """Whole, and in blocks; dtypes and unreached vertices as in process."""
    here, there = pair
    monkeypatch.setattr(dask_result, "ARRAY_BLOCK_VERTICES", 97)
    for name, wanted in columns(here).items():
        array = getattr(there, name)
        assert isinstance(array, da.Array)
        assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype)
        assert len(array.chunks[0]) > 10
        assert array.compute(scheduler="sync").tolist() == wanted.tolist()
    assert (np.asarray(there.level) == here.level).all()
    assert there.level is there.level


def test_arrays_are_computed_on_workers(pair, client, monkeypatch):
    """On a real scheduler, where the client is not Dask's current one; tasks have readable names."""
    here, there = pair
    monkeypatch.setattr(dask_result, "ARRAY_BLOCK_VERTICES", 400)
    found = client.gather(client.compute(list(columns(there).values())))
    for got, wanted in zip(found, columns(here).values(), strict=True):
        assert got.tolist() == wanted.tolist()
    assert {array.name.rpartition("-")[0] for array in columns(there).values()} == {"bfs-vertices", "bfs-level", "bfs-parent"}
    reached = client.compute((there.level >= 0).sum()).result()
    assert reached == here.num_reached


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_single_vertices_and_paths(tmp_path, dtype):
    """Both forms of levels; nothing is joined for a look-up."""
    store, source = integers(tmp_path / "g.zarr")
    here = result_of(store, source, dtype=dtype)
    there = on_cluster(store, here, tmp_path / "result.zarr")
    some = [*np.flatnonzero(here.level >= 0)[::50].tolist(), 2400, 2401]
    assert there.level_of(some).tolist() == here.level[some].tolist()
    assert there.parent_of(some).tolist() == here.parent[some].tolist()
    assert isinstance(there.level_of(some[0]), int)
    deepest = int(here.level.argmax())
    path = there.path(deepest)
    assert len(path) == here.depth + 1
    assert [there.level_of(int(one)) for one in path] == list(range(here.depth + 1))
    assert there.path(2400).tolist() == [2400]
    with pytest.raises(OocGraphError, match="no path to 2401"):
        there.path(2401)
    with pytest.raises(VertexNotFoundError):
        there.level_of(2500)
    assert there.vertices_per_level().tolist() == here.vertices_per_level().tolist()
    assert there._repr_html_().count("<tr>") == here._repr_html_().count("<tr>") + 1  # where the result store is
    assert not {"vertices", "level", "parent"} & set(vars(there))


def test_figures_and_verification(pair):
    """Counts need no files; the verifier reads them as arrays."""
    here, there = pair
    assert (there.num_reached, there.depth, there.teps) == (here.num_reached, here.depth, here.teps)
    assert repr(there) == repr(here)
    assert there.summary() == here.summary() | {"result_store": there.result_store}
    store = there.ids.store
    exact = verify_bfs(store, replace(here, search=replace(here.search, num_reached_edges=edges_reached(store, here))))
    judged = verify_bfs(store, replace(there, search=replace(there.search, num_reached_edges=edges_reached(store, here))))
    assert (judged.num_reached, judged.depth) == (exact.num_reached, exact.depth)


def edges_reached(store, result):
    """Edges of an undirected graph between reached vertices."""
    indptr, unreached = store.read("out/indptr"), 255 if result.search.level.dtype == np.uint8 else -1
    return int(np.diff(indptr)[result.search.level != unreached].sum()) // 2


@pytest.mark.parametrize("memory", ["8G", "1M"])
@pytest.mark.parametrize("name", ["r.parquet", "r.csv", "r.zarr"])
def test_files_equal_those_in_process(pair, tmp_path, name, memory):
    """Streamed by the client, block by block, whether it has room for levels and parents or not."""
    with setting("memory-budget", memory):
        assert type(pair[1].streamed()) is (BFSResult if memory == "8G" else DaskBFSResult)
        assert written(pair[1], tmp_path / "there" / name) == written(pair[0], tmp_path / "here" / name)


def test_workers_write_the_arrays_of_a_file(pair, client, tmp_path, monkeypatch):
    """Those of integers, a block each; where not all of them see the folder, the client does."""
    here, there = pair[0], replace(pair[1], client=client)
    blocks, submit = [], client.submit
    monkeypatch.setattr(dask_result, "ARRAY_BLOCK_VERTICES", 400)
    monkeypatch.setattr(client, "submit", lambda *task, **options: blocks.append(task[-2:]) or submit(*task, **options))
    wanted = written(here, tmp_path / "here" / "r.zarr")
    assert written(there, tmp_path / "there" / "r.zarr") == wanted
    starts = list(range(0, here.ids.num_ids, 400)) if here.ids.kind == "int64" else []
    assert sorted(start for start, _ in blocks) == starts
    blocks.clear()
    monkeypatch.setattr(client, "run", lambda function, folder: {"a": True, "b": False})
    assert written(there, tmp_path / "again" / "r.zarr") == wanted
    assert not blocks


def written(result, path):
    """Write a result; return the bytes of its files, without metadata, in which the figures of a run stand."""
    path.parent.mkdir()
    result.write(path)
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file() and one.name != "zarr.json")
    assert files
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in files}


def test_pandas_frame(pair, client):
    """Computed on the client's cluster."""
    here, there = pair
    for result in (there, replace(there, client=client)):
        pd.testing.assert_frame_equal(result.to_pandas(), here.to_pandas())


def test_it_is_the_mapping_that_a_result_in_process_is(pair):
    """Streamed from the files of the workers; no Dask array is made for it."""
    here, there = pair
    assert there == here
    assert dict(there) == dict(zip(here.vertices.tolist(), here.level.tolist(), strict=True))
    assert there.reached("parent") == here.reached("parent") == dict(here.reached("parent"))
    assert np.asarray(there).tolist() == here.level.tolist()
    assert not {"vertices", "level", "parent"} & set(vars(there))


def test_xarray_keeps_dask_arrays(pair):
    """Vertices are in memory, as the coordinate of a dataset must be; levels and parents are made when they are used."""
    here, there = pair
    found = there.to_xarray()
    assert isinstance(found.level.data, da.Array)
    assert found.compute(scheduler="threads").identical(here.to_xarray())


def test_graphs_of_arrays_are_small(tmp_path):
    """They hold two paths and sizes, whatever the result holds; no more than 64 blocks or so."""
    src = np.arange(200_000)
    reference_build(src, src + 1, tmp_path / "g.zarr", implied=(0, 300_000))
    store = open_graph(tmp_path / "g.zarr")
    there = on_cluster(store, result_of(store, [0, *range(250_000, 260_000)], dtype=np.int32), tmp_path / "result.zarr")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_result, "ARRAY_BLOCK_VERTICES", 1)
        patch.setattr(dask_result, "MAX_BLOCKS", 64)
        for array in columns(there).values():
            assert array.npartitions == 64
            assert len(cloudpickle.dumps(array.dask)) < 8000
    assert int(there.level.max().compute()) == 200_000


def test_empty_graphs_have_empty_arrays(tmp_path):
    reference_build([], [], tmp_path / "g.zarr", implied=(0, 2))
    store = open_graph(tmp_path / "g.zarr")
    there = on_cluster(store, result_of(store, 1), tmp_path / "result.zarr", num_partitions=1)
    assert (np.asarray(there.level).tolist(), np.asarray(there.parent).tolist()) == ([-1, 0], [-1, 1])


def temporary(tmp_path, name="result.zarr", **options):
    """Make a result whose folder is its own."""
    store, source = integers(tmp_path / "g.zarr")
    return on_cluster(store, result_of(store, source), tmp_path / name, owned=True, **options), tmp_path / name


def test_a_temporary_folder_goes_with_its_result(tmp_path):
    """Asked or not; a copy with other figures keeps it too."""
    result, folder = temporary(tmp_path)
    assert result.summary()["result_store"] is None
    other = replace(result, peak_host_bytes=7)
    del result
    gc.collect()
    assert folder.exists()
    assert other.level_of(2400) == 0
    del other
    gc.collect()
    assert not folder.exists()


def test_an_array_keeps_the_folder_of_a_result_that_is_gone(tmp_path):
    """Also an array made from it; sending it elsewhere does not."""
    result, folder = temporary(tmp_path)
    expected = result.num_reached
    reached = (result.level >= 0).sum()
    del result
    gc.collect()
    sent = pickle.loads(cloudpickle.dumps(reached))
    assert int(reached.compute()) == expected
    assert int(sent.compute()) == expected
    del reached
    gc.collect()
    assert not folder.exists()
    with pytest.raises(StoreError, match="lives as long as the result"):
        sent.compute()


def test_a_pickle_says_where_the_result_store_is(pair, client):
    """It has no client; the arrays are made here, or by another client's workers."""
    here, there = pair
    text = pickle.dumps(replace(there, client=client))
    assert len(text) < 20_000
    found = pickle.loads(text)
    assert (found.client, found.result_store) == (None, there.result_store)
    assert found == here
    assert found.summary() == there.summary()
    for name, wanted in columns(here).items():
        assert isinstance(getattr(found, name), da.Array)
        assert np.asarray(getattr(found, name)).tolist() == wanted.tolist()


def test_a_pickle_of_a_result_by_a_relative_path_is_read_elsewhere(tmp_path, monkeypatch):
    store, source = integers(tmp_path / "g.zarr")
    here = result_of(store, source)
    there = on_cluster(store, here, tmp_path / "result.zarr")
    monkeypatch.chdir(tmp_path)
    text = pickle.dumps(replace(there, result_store="result.zarr"))
    monkeypatch.chdir("/")
    assert np.asarray(pickle.loads(text).level).tolist() == here.level.tolist()


def test_a_pickle_of_a_temporary_result_has_its_values(tmp_path, client):
    """And is read when the folder has gone."""
    result, folder = temporary(tmp_path, client=client)
    expected = dict(result)
    text = pickle.dumps(result)
    del result
    gc.collect()
    assert not folder.exists()
    found = pickle.loads(text)
    assert type(found) is BFSResult
    assert dict(found) == expected


def test_a_temporary_result_that_does_not_fit_is_not_pickled(tmp_path):
    """The error names what to do, and a copy in this process needs no memory."""
    result, _ = temporary(tmp_path)
    with setting("memory_budget", "1K"):
        with pytest.raises(BudgetError, match=r"levels and parents: .* KiB, but oocgraph\.memory-budget leaves 0 B; .*result_store="):
            pickle.dumps(result)
        assert copy.copy(result).result_store == result.result_store


MAKES_AND_WAITS = """
import os, sys, time
from pathlib import Path
from oocgraph.results.dask import TemporaryStore
keep = TemporaryStore.make(Path(sys.argv[1]))
os.mkdir(keep.path)
print(keep.path, flush=True)
time.sleep(600)
"""


def test_what_a_killed_client_leaves_is_removed_by_the_next(tmp_path):
    """Not while it lives."""
    with program([sys.executable, "-c", MAKES_AND_WAITS, tmp_path], stdout=subprocess.PIPE, text=True) as client:
        left = Path(client.stdout.readline().strip())
        first = TemporaryStore.make(tmp_path)
        assert left.is_dir()
        client.kill()
        client.wait()
        second = TemporaryStore.make(tmp_path)
        assert not left.exists()
        assert {entry.name for entry in tmp_path.iterdir()} == {Path(one.path).parent.name for one in (first, second)}
    del first, second
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=re.escape(str(tmp_path / "file"))):
        TemporaryStore.make(tmp_path / "file")


def test_a_named_folder_stays(tmp_path):
    store, source = integers(tmp_path / "g.zarr")
    result = on_cluster(store, result_of(store, source), tmp_path / "result.zarr")
    del result
    gc.collect()
    assert (tmp_path / "result.zarr").exists()


def test_a_graph_built_anew_is_noticed(tmp_path):
    """Its numbers would mean other vertices."""
    store, source = integers(tmp_path / "g.zarr")
    result = on_cluster(store, result_of(store, source), tmp_path / "result.zarr")
    shutil.rmtree(tmp_path / "g.zarr")
    reference_build([1, 2], [2, 3], tmp_path / "g.zarr", implied=(0, 2500))
    with pytest.raises(StoreError, match="built again; search again"):
        result.level.compute()


def test_paths_are_absolute_for_workers(tmp_path, monkeypatch):
    """Workers have working directories of their own."""
    store, source = integers(tmp_path / "g.zarr")
    monkeypatch.chdir(tmp_path)
    result = on_cluster(open_graph("g.zarr"), result_of(store, source), Path("result.zarr"))
    result = replace(result, ids=type(result.ids)(open_graph("g.zarr")))
    level = result.level
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert int(level.max().compute()) == result.depth
