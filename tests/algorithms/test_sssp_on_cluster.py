"""Shortest paths on a cluster: those of one process, whatever the graph and the shares; budgets; errors of workers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources, sssp
from oocgraph.cluster import supersteps, worker_paths
from oocgraph.config import setting
from oocgraph.engine import blocks
from oocgraph.engine.blocks import new_values
from oocgraph.kernels.relax import SHORTEST
from oocgraph.memory import host_bytes
from oocgraph.store.graph import open_graph
from oocgraph.types import no_parent
from tests.stores import rewrite


def table(seed, *, whole=True, least=1):
    """Return edges between 300 ids, some of them far away."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, 300, (2, 1500))
    weight = rng.integers(least, 50, 1500) if whole else rng.random(1500)
    return pd.DataFrame({"source": source, "target": target, "weight": weight})


@pytest.fixture
def small_blocks(monkeypatch):
    """Have workers of this process take blocks of 4 entries, so that a group of them is a share."""
    monkeypatch.setattr(blocks, "SHIFT", 2)


@pytest.fixture(params=["shared", "paused", "messages"])
def way(request, monkeypatch):
    """Have workers share memory, work for a moment alone in each step, or exchange messages."""
    if request.param == "paused":
        monkeypatch.setattr(supersteps, "HOP_SECONDS", 0.0)
    with setting("exchange", "messages" if request.param == "messages" else "windows"):
        yield request.param


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("small_blocks", "way")
@pytest.mark.parametrize(("partitions", "directed", "whole"), [(1, True, True), (2, False, False), (4, False, True), (4, True, False)])
def test_paths_are_those_of_one_process(threads_client, tmp_path, partitions, directed, whole):
    """Distances and parents, with a limit and a target, too."""
    store = oocgraph.build_csr(table(partitions, whole=whole), tmp_path / "g", weight="weight", directed=directed)
    where = {"client": threads_client, "resources": Resources(num_partitions=partitions)}
    assert blocks.num_shares(store, partitions) == partitions
    limit = 20 if whole else 0.7
    for source, options in ((0, {}), (7, {"distance_limit": limit}), (9, {"target": 100}), (3, {"delta": 0.01}), ([5, 9, 200], {})):
        here, found = sssp(store, source, resources=Resources(client=False), **options), sssp(store, source, **where, **options)
        np.testing.assert_array_equal(found.distance, here.distance)
        np.testing.assert_array_equal(found.parent, here.parent)
        oocgraph.verify_sssp(store, found)
        assert found.num_blocks == here.num_blocks


@pytest.mark.usefixtures("small_blocks", "way")
def test_edges_without_length(threads_client, tmp_path):
    """Parents of vertices that are as far as these lead back to the source."""
    store = oocgraph.build_csr(table(1, least=0).assign(weight=lambda t: t.weight // 25), tmp_path / "g", weight="weight")
    found = sssp(store, 0, client=threads_client, resources=Resources(num_partitions=4))
    oocgraph.verify_sssp(store, found)
    np.testing.assert_array_equal(found.distance, sssp(store, 0, resources=Resources(client=False)).distance)
    for vertex in found.vertices[np.asarray(found.distance) >= 0][:50].tolist():
        assert found.path(vertex)[0] == 0


@pytest.mark.usefixtures("small_blocks")
def test_few_distances_are_sent_at_once(threads_client, tmp_path, monkeypatch):
    """What is not sent in one step is in the next ones; nothing is over before."""
    monkeypatch.setattr(worker_paths, "most_sent", lambda *_: 3)
    store = oocgraph.build_csr(table(5), tmp_path / "g", weight="weight")
    with setting("exchange", "messages"):
        found = sssp(store, 0, client=threads_client, resources=Resources(num_partitions=3))
    np.testing.assert_array_equal(found.distance, sssp(store, 0, resources=Resources(client=False)).distance)


@pytest.mark.usefixtures("small_blocks")
def test_edges_without_length_of_which_few_are_sent_at_once(threads_client, tmp_path, monkeypatch):
    """No share hears of a vertex before it hears of the parent that is as far, and makes the parent the vertex's child."""
    monkeypatch.setattr(worker_paths, "most_sent", lambda *_: 8)
    rng = np.random.default_rng(33)
    source, target = rng.integers(0, 100, (2, 400))
    store = oocgraph.build_csr((source, target, rng.choice([0, 0, 1, 2], 400)), tmp_path / "g", weight="weight", directed=False)
    with setting("exchange", "messages"):
        for vertex in source[:3].tolist():
            oocgraph.verify_sssp(store, sssp(store, vertex, client=threads_client, resources=Resources(num_partitions=2)))


def test_what_hangs_on_a_vertex_that_a_lost_worker_had_locked_is_found_again():
    """Along edges of weight 0: one of them may else be found to be the parent of the vertex that it comes from."""
    none, unreached = no_parent(np.dtype(np.uint32)), SHORTEST["narrow"][1]
    values = new_values(np.array([0, 7, 7, 7, 9], np.int32), np.array([0, 0, 1, 2, 3], np.uint32), unreached)
    values.parent[1] = values.busy
    share = object.__new__(worker_paths.PathsShare)
    share._values, share._unreached = values, unreached
    found = share.table()
    assert found.distance.tolist() == [0, unreached, unreached, unreached, 9]
    assert found.parent.tolist() == [0, none, none, none, 3]


@pytest.mark.usefixtures("way")
def test_distances_of_63_bits_and_those_that_do_not_fit(threads_client, tmp_path):
    long = pd.DataFrame({"source": [1, 2, 3], "target": [2, 3, 4], "weight": [2**31, 2**31, 5]})
    store = oocgraph.build_csr(long, tmp_path / "g", weight="weight")
    assert sssp(store, 1, client=threads_client).distance.tolist() == [0, 2**31, 2**32, 2**32 + 5]
    store = oocgraph.build_csr(long.assign(weight=[2**62, 2**62, 5]), tmp_path / "h", weight="weight")
    with pytest.raises(ArgumentError, match="distances do not fit into 62 bits"):
        sssp(store, 1, client=threads_client)


@pytest.mark.usefixtures("way")
def test_what_is_wrong_is_said_as_in_one_process(threads_client, tmp_path):
    store = oocgraph.build_csr(table(2).assign(weight=-1), tmp_path / "g", weight="weight")
    with pytest.raises(ArgumentError, match=r"weight of the edge from .* is negative"):
        sssp(store, 0, client=threads_client)
    with pytest.raises(ArgumentError, match="schedule is 'buckets'; a cluster has async alone"):
        sssp(store, 0, client=threads_client, schedule="buckets")


def test_processes_of_a_runtime_and_compressed_chunks(client, tmp_path):
    """With a vertex that has no edges as the source, too."""
    oocgraph.generate_kronecker(13, tmp_path / "g", weights=(1, 255))
    store = open_graph(rewrite(tmp_path / "g", tmp_path / "z", codec="zstd"))
    source = int(store.ids_of(0)[0])
    with oocgraph.open_runtime(store, client=client) as runtime:
        found = sssp(store, source, runtime=runtime)
    here = sssp(store, source, resources=Resources(client=False))
    np.testing.assert_array_equal(found.distance, here.distance)
    np.testing.assert_array_equal(found.parent, here.parent)
    alone = next(v for v in range(store.attributes.num_input_vertices) if v not in set(np.asarray(store.ids_of(range(store.num_rows)))))
    assert sssp(store, alone, client=client).num_reached == 1


def test_a_worker_without_memory_is_named_and_what_it_names_works(client, tmp_path):
    store = oocgraph.generate_kronecker(12, tmp_path / "g.zarr", seed=1, weights=(1, 255))
    source = int(store.ids_of(0)[0])
    with pytest.raises(BudgetError, match=r"worker tcp://\S+ .* at least \d+M") as refused:
        sssp(store, source, client=client, memory_budget=max(client.run(host_bytes).values()) + (1 << 16))
    enough = re.search(r"at least (\d+M)", str(refused.value))[1]
    oocgraph.verify_sssp(store, sssp(store, source, client=client, memory_budget=enough))
