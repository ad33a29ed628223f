"""Searches on a cluster find what one process finds: every shape of graph, placement, direction and store."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client

import oocgraph
from oocgraph import Resources
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.config import setting
from oocgraph.engine import part
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.errors import CorruptStoreError, OocGraphError, VertexNotFoundError
from oocgraph.results.bfs import BFSResult
from oocgraph.results.dask import DaskBFSResult
from oocgraph.store.graph import open_graph
from oocgraph.store.search_store import SearchStore
from oocgraph.types import LEVEL_UNREACHED
from oocgraph.verify import verify_bfs
from tests.cluster import clusters
from tests.engine.parts import cramped
from tests.graphs import GRAPHS, compressed, directed_original, empty, hubs, path_graph, strings, undirected
from tests.reference_build import reference_build

DIRECTIONS = ["push", "pull", "half", "alpha-beta", "gemini"]


def judge(store, result, alone):
    """Check a result by Graph500's rules, and against that of one process."""
    verify_bfs(store, result)
    for name in ("num_reached", "depth", "num_reached_edges", "source", "depth_limit"):
        assert getattr(result, name) == getattr(alone, name), name
    assert plain(result.search.level).tolist() == plain(alone.search.level).tolist()


def plain(level):
    """Levels as they are in results: -1 where unreached."""
    level = np.asarray(level)
    return np.where(level == LEVEL_UNREACHED, -1, level.astype(np.int32)) if level.dtype == np.uint8 else level


def searches(sources, directions):
    """Options to try: each source plainly, the first in every direction, the last to some depths."""
    yield from ({"source": source} for source in sources)
    yield from ({"source": sources[0], "direction": direction} for direction in directions)
    yield from ({"source": sources[-1], "depth_limit": limit, "direction": DIRECTIONS[limit]} for limit in (0, 1, 3))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("partitions", [1, 2, 4])
@pytest.mark.parametrize("graph", GRAPHS)
def test_levels_are_those_of_one_process(graph, partitions, tmp_path, threads_client, monkeypatch):
    """Whatever the graph, with fewer and with more partitions than workers, when little of the edges is in memory."""
    sources = graph(tmp_path / "g.zarr")
    store = open_graph(tmp_path / "g.zarr")
    monkeypatch.setattr(ShardPlan, "residency", cramped(ShardPlan.residency, partitions))
    partitions = min(partitions, max(1, store.num_rows))
    with LocalRuntime.open(store) as local, ClusterRuntime.open(store, client=threads_client, num_partitions=partitions) as runtime:
        assert len(runtime.addresses) == partitions
        for options in searches(sources, DIRECTIONS if partitions == 4 and graph is not path_graph else ["pull"]):
            judge(store, oocgraph.bfs(store, runtime=runtime, **options), oocgraph.bfs(store, runtime=local, **options))
    gc.collect()
    assert not list(tmp_path.glob(".oocgraph-*"))


def test_a_search_is_resumed_with_a_runtime_that_another_has_used(kron, tmp_path, threads_client, monkeypatch):
    """To make its state again pages are read, which the search before has no say in."""
    store, _ = kron
    monkeypatch.setattr(ShardPlan, "residency", ShardPlan.residency)  # is put back
    clusters.cramp(0)
    source, path = int(store.ids_of(0)[0]), tmp_path / "search.zarr"
    monkeypatch.setattr(part, "QUEUE_CAPACITY", 40)
    monkeypatch.setattr(part, "FEW_VERTICES", 40)  # so that levels are in logs

    def stop(phase, done, total):
        if phase == "level" and done > 1:
            raise KeyboardInterrupt

    with setting("exchange", "messages"), ClusterRuntime.open(store, client=threads_client) as runtime:
        with pytest.raises(KeyboardInterrupt):
            oocgraph.bfs(store, source, runtime=runtime, result_store=path, progress=stop)
        oocgraph.bfs(store, source, runtime=runtime)
        verify_bfs(store, oocgraph.bfs(store, source, runtime=runtime, resume=path))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("graph", [undirected, directed_original, strings, compressed, empty])
@pytest.mark.parametrize("partitions", [None, 4])
def test_worker_processes_find_them_too(graph, partitions, tmp_path, client):
    """From user ids to dask arrays under user ids, without a runtime that was opened before."""
    sources = graph(tmp_path / "g.zarr")
    partitions = None if graph is empty else partitions
    for source in sources[:2]:
        alone = oocgraph.bfs(tmp_path / "g.zarr", source)
        result = oocgraph.bfs(tmp_path / "g.zarr", source, client=client, resources=Resources(num_partitions=partitions))
        judge(open_graph(tmp_path / "g.zarr"), result, alone)
        assert np.asarray(result.vertices).tolist() == alone.vertices.tolist()
        assert np.asarray(result.level).tolist() == alone.level.tolist()
        assert result.isolated_sources == alone.isolated_sources
        reached = list(result.reached())[::50]
        assert [result.path(one)[0] for one in reached] == [result.origin_of(one) for one in reached]
        assert [one in (-1, None) for one in result.origin.tolist()] == (np.asarray(result.level) < 0).tolist()


def test_the_client_given_the_current_one_or_none(tmp_path, process_cluster, client):
    """A client that is passed is taken; else the current one; without one the search runs in this process."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    assert type(oocgraph.bfs(tmp_path / "g.zarr", 0)) is BFSResult
    assert type(oocgraph.bfs(tmp_path / "g.zarr", 0, client=client)) is DaskBFSResult
    with Client(process_cluster) as current:
        result = oocgraph.bfs(tmp_path / "g.zarr", 0)
        assert result.client is current
        assert oocgraph.bfs(tmp_path / "g.zarr", 0, client=client).client is client
        with LocalRuntime.open(tmp_path / "g.zarr") as runtime:
            assert type(oocgraph.bfs(tmp_path / "g.zarr", 0, runtime=runtime)) is BFSResult
    assert type(oocgraph.bfs(tmp_path / "g.zarr", 0)) is BFSResult


def test_results_of_one_runtime_stand_by_themselves(tmp_path, client):
    """They outlive it, and one does not change another; a named store stays, a temporary one goes with its result."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    with ClusterRuntime.open(tmp_path / "g.zarr", client=client) as runtime:
        first = oocgraph.bfs(tmp_path / "g.zarr", 0, runtime=runtime)
        second = oocgraph.bfs(tmp_path / "g.zarr", 1999, runtime=runtime, result_store=tmp_path / "named.zarr")
    for result, source in ((first, 0), (second, 1999)):
        alone = oocgraph.bfs(tmp_path / "g.zarr", source)
        assert np.asarray(result.level).tolist() == alone.level.tolist()
        assert len(result.path(17)) == len(alone.path(17))
        result.write(tmp_path / "r.parquet")
        assert pq.read_table(tmp_path / "r.parquet")["level"].to_pylist() == alone.level.tolist()
        (tmp_path / "r.parquet").unlink()
    del result, first, second
    gc.collect()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.zarr", "named.zarr"]
    assert SearchStore.open(tmp_path / "named.zarr").complete


@pytest.mark.parametrize("limit", [1, 2])
def test_edges_of_the_last_level_are_counted_whoever_found_it(limit, tmp_path, threads_client):
    """Also where no step is submitted ahead, which would tell of it."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    with dask.config.set({"oocgraph.steps-ahead": 1}):
        result = oocgraph.bfs(tmp_path / "g.zarr", 1000, client=threads_client, depth_limit=limit, direction="pull")
    judge(open_graph(tmp_path / "g.zarr"), result, oocgraph.bfs(tmp_path / "g.zarr", 1000, depth_limit=limit))


def test_threads_that_share_a_runtime_take_turns(tmp_path, threads_client):
    """Each gets its own result."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    with ClusterRuntime.open(tmp_path / "g.zarr", client=threads_client) as runtime, ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda source: oocgraph.bfs(tmp_path / "g.zarr", source, runtime=runtime), range(4)))
        for source, result in enumerate(results):
            judge(open_graph(tmp_path / "g.zarr"), result, oocgraph.bfs(tmp_path / "g.zarr", source))


def test_relative_paths_mean_the_client_s_folder(tmp_path, client, monkeypatch):
    """Workers run in folders of their own."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    monkeypatch.chdir(tmp_path)
    result = oocgraph.bfs("g.zarr", 0, client=client, result_store="r.zarr")
    assert (np.asarray(result.level) == oocgraph.bfs("g.zarr", 0).level).all()
    assert SearchStore.open(tmp_path / "r.zarr").complete


def test_settings_are_those_of_the_client(tmp_path, threads_client):
    """The result folder, and what is sent to workers."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    (tmp_path / "results").mkdir()
    with dask.config.set({"oocgraph.result-folder": str(tmp_path / "results"), "oocgraph.io-threads": 3}):
        result = oocgraph.bfs(tmp_path / "g.zarr", 0, client=threads_client)
        with ClusterRuntime.open(tmp_path / "g.zarr", client=threads_client) as runtime:
            assert runtime.spec.settings.io_threads == 3
            assert [path.name for path in (tmp_path / "results").iterdir()] == [Path(result.result_store).parent.name]


def test_what_needs_a_cluster_says_so(tmp_path):
    """Partitions and result stores mean nothing in one process."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    for option in ({"resources": Resources(num_partitions=2)}, {"result_store": "r.zarr"}, {"resume": "r.zarr"}):
        with pytest.raises(OocGraphError, match="pass client"):
            oocgraph.bfs(tmp_path / "g.zarr", 0, **option)


def test_unknown_sources_are_told_before_anything_is_loaded(tmp_path, client):
    """Nothing is left behind (the fixture looks)."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    with pytest.raises(VertexNotFoundError, match="12345"):
        oocgraph.bfs(tmp_path / "g.zarr", [0, 12345], client=client)
    assert [path.name for path in tmp_path.iterdir()] == ["g.zarr"]


def test_a_damaged_page_is_told(tmp_path, client):
    """As in one process: the worker's error, which names the file; nothing is left behind."""
    reference_build(*hubs(1), tmp_path / "g.zarr")
    chunk = tmp_path / "g.zarr" / "out" / "indices" / "c" / "0"
    content = bytearray(chunk.read_bytes())
    content[5000] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(CorruptStoreError, match="out/indices"):
        oocgraph.bfs(oocgraph.open_graph(tmp_path / "g.zarr", check_pages=True), 0, client=client)
    assert [path.name for path in tmp_path.iterdir()] == ["g.zarr"]
