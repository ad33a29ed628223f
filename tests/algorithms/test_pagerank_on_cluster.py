"""PageRank on a cluster: the ranks of one process, whatever the graph; workers that are lost; budgets and checkpoints."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from oocgraph import (
    BudgetError,
    ClusterError,
    ConvergenceError,
    OocGraphError,
    VertexNotFoundError,
    build_csr,
    generate_kronecker,
)
from oocgraph.cluster.ranks import PowerIteration
from oocgraph.cluster.worker_ranks import cut_rows
from oocgraph.memory import host_bytes
from oocgraph.products import ranking
from tests import every_knob
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.cluster.conftest import QUIET
from tests.every_knob import rank as pagerank
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite

EXACT = 1e-12
"""Ranks are about 1 / N: the order of a few sums is all that differs."""


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(12, tmp_path_factory.mktemp("kron") / "k.zarr", seed=2)


def check(found, expected):
    """Compare a run with that of one process."""
    np.testing.assert_allclose(found.rank, expected.rank, rtol=0, atol=EXACT)
    assert (found.iterations, found.converged, found.vertices.tolist()) == (
        expected.iterations,
        expected.converged,
        expected.vertices.tolist(),
    )
    assert [one.precision for one in found.steps] == [one.precision for one in expected.steps]
    assert found.change == pytest.approx(expected.change, rel=1e-6)
    assert found.edge_bytes == expected.edge_bytes


def directed(folder, **options):
    """Build a directed graph with weights, dangling and isolated vertices, and rows without in-edges."""
    src, dst = random_edges(5, 3000)
    source = ArraySource(src, dst % 700, {"w": np.random.default_rng(0).random(src.size)}, weight="w", num_vertices=4000)
    return every_knob.build(source, folder / "g", directed=True, duplicates="sum", **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"weight": False}, {"personalization": {0: 2.0, 7: 1.0}}, {"precision": "single", "tol": 1e-4}, {"tol": 0, "max_iter": 3}],
    ids=["weights", "unweighted", "personalization", "single", "exactly"],
)
@pytest.mark.parametrize("order", ["degree", "original"])
def test_ranks_are_those_of_one_process(threads_client, tmp_path, order, options):
    """Weighted or not, with vertices that dangle, that nothing leads to, or that are isolated."""
    store = directed(tmp_path, vertex_order=order)
    check(pagerank(store, client=threads_client, **options), pagerank(store, **options))


@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51))), ([3, 4], [3, 5])])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_tiny_graphs(threads_client, tmp_path, edges, codec):
    """No edge, one, a star, a self-loop; more workers than edges."""
    reference_build(*edges, tmp_path / "g", implied=(0, 60), keep_self_loops=True)
    store = rewrite(tmp_path / "g", tmp_path / "z", codec=codec)
    check(pagerank(store, client=threads_client), pagerank(store))


@pytest.mark.parametrize("num_ranges", [1, 2, 3, 7, 40])
def test_ranges_cover_every_vertex_and_edge_once(tmp_path, num_ranges):
    """Rows are whole; also those without in-edges, at the ends and between."""
    store = directed(tmp_path)
    entries, ranges = cut_rows(store, num_ranges)
    indptr = store.read("in/indptr")
    for cuts, end in ((entries, indptr[-1]), (ranges, store.num_rows)):
        assert [a for a, _ in cuts] + [end] == [0] + [z for _, z in cuts]
    assert [(indptr[a], indptr[z]) for a, z in ranges] == entries


def test_worker_processes_and_float32_of_large_graphs(client, kron, monkeypatch):
    """Processes; and the change from float32 to float64 comes in the same iteration."""
    check(pagerank(kron, client=client, tol=1e-9), pagerank(kron, tol=1e-9))
    monkeypatch.setattr(ranking, "SINGLE_VERTICES", 1)
    client.run(setattr, ranking, "SINGLE_VERTICES", 1)
    try:
        found = pagerank(kron, client=client, tol=1e-13)
        check(found, pagerank(kron, tol=1e-13))
        assert {one.precision for one in found.steps} == {"single", "double"}
    finally:
        client.run(setattr, ranking, "SINGLE_VERTICES", 1 << 17)


def test_float32_does_not_hold_shares_of_any_weights(threads_client, tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "SINGLE_VERTICES", 1)
    edges = pd.DataFrame({"source": np.arange(50), "target": np.arange(50) * 7 % 50, "weight": 1e45 * (1 + np.arange(50) % 3)})
    store = build_csr(edges, tmp_path / "g", weight="weight", directed=True)
    found = pagerank(store, client=threads_client, tol=1e-12)
    check(found, pagerank(store, tol=1e-12))
    assert {one.precision for one in found.steps} == {"double"}


def test_checkpoints_are_those_of_one_process(threads_client, kron, tmp_path):
    """A run that was stopped on a cluster goes on there, or in one process; one that has ended is not made again."""
    expected = pagerank(kron, tol=1e-10)
    for first, second in ((threads_client, threads_client), (threads_client, None), (None, threads_client)):
        folder = tmp_path / f"{first is None}-{second is None}"
        with pytest.raises(ConvergenceError, match="the checkpoint goes on from here"):
            pagerank(kron, tol=1e-10, max_iter=4, client=first, checkpoint=folder)
        found = pagerank(kron, tol=1e-10, client=second, checkpoint=folder, checkpoint_every=3)
        np.testing.assert_allclose(found.rank, expected.rank, rtol=0, atol=EXACT)
        assert (found.iterations, [one.iteration for one in found.steps]) == (expected.iterations, list(range(5, expected.iterations + 1)))
        again = pagerank(kron, tol=1e-10, client=second, checkpoint=folder)
        assert (again.steps, again.rank.tolist()) == ((), found.rank.tolist())


def test_progress_is_told(threads_client, kron):
    told = []
    found = pagerank(kron, client=threads_client, progress=lambda *what: told.append(what))
    assert told == [("iterations", i + 1, 100) for i in range(found.iterations)]


class TestRefusals:
    def test_arguments(self, threads_client, kron):
        with pytest.raises(TypeError, match=r"client is 3; give a distributed\.Client"):
            pagerank(kron, client=3)
        with pytest.raises(VertexNotFoundError):
            pagerank(kron, client=threads_client, personalization={-1: 1.0})
        with pytest.raises(ConvergenceError, match="after 2 iterations"):
            pagerank(kron, client=threads_client, max_iter=2, tol=1e-12)

    def test_weights_that_are_negative(self, threads_client, tmp_path):
        source = ArraySource(np.array([0, 1, 2]), np.array([1, 2, 0]), {"w": np.array([1.0, -2.0, 3.0])}, weight="w")
        store = build_csr(source, tmp_path / "g", directed=True)
        with pytest.raises(OocGraphError, match=r"weight 1 of w of .* is -2\.0"):
            pagerank(store, client=threads_client)

    def test_a_worker_without_memory_is_named_and_what_it_names_works(self, client, kron):
        least = min(client.run(host_bytes).values())
        with pytest.raises(BudgetError, match=r"worker tcp://\S+ cannot take 1 of 2 parts: .* at least \d+M.*or use more workers"):
            pagerank(kron, client=client, memory_budget=least + (1 << 16))
        with pytest.raises(BudgetError) as refused:
            pagerank(kron, client=client, memory_budget=max(client.run(host_bytes).values()) + (1 << 16))
        check(pagerank(kron, client=client, memory_budget=re.search(r"at least (\d+M)", str(refused.value))[1]), pagerank(kron))

    def test_a_closed_client(self, thread_cluster, kron):
        with Client(thread_cluster, set_as_default=False) as gone:
            pass
        with pytest.raises(ClusterError, match="closed"):
            pagerank(kron, client=gone)


@pytest.mark.kill
@pytest.mark.parametrize("phase", ["receive", "compute", "transfer"])
def test_a_lost_worker_costs_an_iteration_or_two(tmp_path, kron, phase):
    """The run goes on from the last ranks that are left; not from the beginning."""
    expected = pagerank(kron, tol=1e-10)
    with Cluster(tmp_path, workers=3) as cluster, Trap(cluster.client, phase, 5) as trap:
        begun, begin = [], PowerIteration.begin
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PowerIteration, "begin", lambda self: begun.append(begin(self)) or begun[-1])
            found = trap.watch(in_background(pagerank, kron, tol=1e-10, client=cluster.client))
            trap.kill()
            check(found.result(timeout=PATIENCE), expected)
        first, second = begun
        assert first.number == -1
        assert second.number in (3, 4)  # as others had begun iteration 5, or not yet


@pytest.mark.kill
def test_all_workers_lost(tmp_path, kron):
    """One clear error; the checkpoint goes on in another cluster."""
    with Cluster(tmp_path, workers=2) as cluster, Trap(cluster.client, "compute", 7) as trap:
        found = trap.watch(in_background(pagerank, kron, tol=1e-10, client=cluster.client, checkpoint=tmp_path / "c", checkpoint_every=2))
        caught = trap.wait()
        for pid in [cluster.pid(address) for address in cluster.workers() if address != caught["worker"]] + [caught["pid"]]:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match="no worker is left"):
            found.result(timeout=PATIENCE)
    with LocalCluster(n_workers=2, processes=False, **QUIET) as other, Client(other, set_as_default=False) as client:
        found = pagerank(kron, tol=1e-10, client=client, checkpoint=tmp_path / "c")
    np.testing.assert_allclose(found.rank, pagerank(kron, tol=1e-10).rank, rtol=0, atol=EXACT)
    assert 4 <= found.steps[0].iteration <= 8
