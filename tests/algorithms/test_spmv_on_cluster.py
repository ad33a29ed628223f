"""A graph or a matrix times a vector on a cluster: what one process makes of it, worker by worker, and what is told when one cannot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

from oocgraph import BudgetError, ClusterError, CorruptStoreError, OocGraphError, build_csr, generate_kronecker, open_graph, spmv
from oocgraph.clients import workers_of
from oocgraph.cluster import product as cluster_product
from oocgraph.cluster import session
from oocgraph.cluster.product import find_workers
from oocgraph.kernels.semirings import SEMIRINGS
from oocgraph.memory import host_bytes
from oocgraph.store.fingerprint import graph_fingerprint
from tests.algorithms.test_spmv import vector_for
from tests.cluster.clusters import Cluster, wait_until
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build
from tests.sparse.matrices import CASES, FORMATS, in_format, of_rows
from tests.stores import random_edges, rewrite

EXACT = ("or_and", "min_plus")


def check(y, expected, name):
    """Compare with what one process has made."""
    assert y.dtype == expected.dtype
    if name in EXACT:
        np.testing.assert_array_equal(y, expected)
    else:
        np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


def test_worker_processes_make_what_one_process_makes(client, tmp_path):
    """Weighted, directed, both ways, with pieces of 4 KiB: every row that is cut is cut by a worker or by a piece."""
    src, dst = random_edges(5, 3000)
    source = ArraySource(src, dst, {"w": np.random.default_rng(0).integers(-5, 9, src.size).astype(np.float32)}, weight="w")
    store = build_csr(source, tmp_path / "g", directed=True, duplicates="sum")
    for name in SEMIRINGS:
        x = vector_for(store.attributes.num_input_vertices, name)
        for transpose in (False, True):
            y = spmv(store, x, semiring=name, transpose=transpose, client=client)
            check(y, spmv(str(tmp_path / "g"), x, semiring=name, transpose=transpose), name)


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51))), ([3, 4], [3, 5])])
def test_tiny_graphs(threads_client, tmp_path, edges, codec):
    """No edge, one, a star whose hub is in both parts, a self-loop; more workers than nonzeros."""
    reference_build(*edges, tmp_path / "g", implied=(0, 60), keep_self_loops=True)
    store = rewrite(tmp_path / "g", tmp_path / "z", codec=codec)
    x = np.arange(60.0)
    for name in ("plus_times", "min_plus"):
        check(spmv(store, x, semiring=name, client=threads_client), spmv(store, x, semiring=name), name)


@pytest.mark.parametrize("form", FORMATS)
def test_parts_of_a_matrix_are_sent(threads_client, form):
    """Rows are put in their place; vectors of columns are added by tasks."""
    for case in ("one huge row", "huge row among others", "empty rows everywhere", "no nonzeros", "one"):
        matrix = in_format(CASES[case], form)
        for name in ("plus_times", "min_plus", "or_and"):
            for transpose in (False, True):
                x = vector_for(matrix.shape[0 if transpose else 1], name)
                y = spmv(matrix, x, semiring=name, transpose=transpose, client=threads_client)
                check(y, spmv(matrix, x, semiring=name, transpose=transpose), name)


def test_matrices_go_to_processes(client):
    matrix = of_rows([30, 0, 500, 1, 1, 7] * 9)
    for form in ("csr", "csc"):
        x = vector_for(50, "plus_times")
        x.flags.writeable = False
        check(spmv(in_format(matrix, form), x, client=client), matrix @ x, "plus_times")
    client.run(wait_until, lambda worker: not worker.data, ())


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(12, tmp_path_factory.mktemp("kron") / "k.zarr", seed=2)


def test_five_workers(tmp_path, kron):
    """A tree over an odd number of workers; parts in the order of the workers."""
    matrix = kron.to_scipy(dtype=np.float64).tocsc()
    x = vector_for(matrix.shape[1], "plus_times")
    with Cluster(tmp_path, workers=5) as cluster:
        expected = matrix @ x
        check(spmv(matrix, x, client=cluster.client), expected, "plus_times")
        check(spmv(kron, x, client=cluster.client), expected, "plus_times")
        with session.ClusterSession(cluster.client) as opened:
            addresses, nodes, sharers = find_workers(opened, kron.url, graph_fingerprint(kron))
        assert addresses == cluster.workers()
        assert sharers == 5
        assert sorted(worker for node in nodes for worker in node.workers) == list(range(5))


def test_current_client_is_taken_of_graphs(thread_cluster, kron, monkeypatch):
    """As `bfs` does; a matrix in memory stays where it is."""
    x = np.ones(kron.attributes.num_input_vertices)
    expected = spmv(kron, x)
    made = []
    init = cluster_product.ClusterProduct.__init__
    monkeypatch.setattr(cluster_product.ClusterProduct, "__init__", lambda self, *options: made.append(1) or init(self, *options))
    with Client(thread_cluster):
        check(spmv(kron, x), expected, "plus_times")
        assert made == [1]
        spmv(kron.to_scipy(), x)
        assert made == [1]


class TestRefusals:
    def test_arguments_are_refused_as_in_process(self, threads_client, kron):
        with pytest.raises(OocGraphError, match="x has 4 elements"):
            spmv(kron, np.ones(4), client=threads_client)
        with pytest.raises(TypeError, match=r"client is 3; give a distributed\.Client"):
            spmv(kron, np.ones(kron.attributes.num_input_vertices), client=3)

    @pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "or_and"])
    def test_nan_among_weights_is_named(self, threads_client, tmp_path, semiring):
        values = np.array([1, 2, np.nan, 4])
        source = ArraySource(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), {"w": values}, weight="w")
        store = build_csr(source, tmp_path / "w", directed=True, duplicates="keep")
        at = int(np.flatnonzero(np.isnan(store.read("out/weight")))[0])
        x = np.ones(4, bool if semiring == "or_and" else float)
        with pytest.raises(OocGraphError, match=f"weight {at} of w of .* is NaN; give every edge a number"):
            spmv(store, x, semiring=semiring, client=threads_client)
        matrix = of_rows([3, 4, 5])
        matrix.data[7] = np.nan
        with pytest.raises(OocGraphError, match="weight 7 of the matrix is NaN"):
            spmv(matrix, np.ones(50, x.dtype), semiring=semiring, client=threads_client)

    def test_damaged_store(self, threads_client, tmp_path):
        reference_build([0, 1], [1, 2], tmp_path / "g", implied=(0, 5))
        store = open_graph(tmp_path / "g")
        (Path(store.url) / "out" / "indices" / "c" / "0").unlink()
        with pytest.raises(CorruptStoreError, match="out/indices is missing"):
            spmv(store, np.ones(5), client=threads_client)

    def test_budget_of_a_worker_is_told_with_its_name_before_anything_is_sent(self, client, kron, monkeypatch):
        x = np.ones(kron.attributes.num_input_vertices)
        monkeypatch.setattr(cluster_product.ClusterProduct, "multiply", None)
        least = min(client.run(host_bytes).values())
        for given in (kron, kron.to_scipy(dtype=np.float64)):
            with pytest.raises(BudgetError, match=r"worker tcp://[0-9.:]+: .*set memory_budget to at least \d+M") as refused:
                spmv(given, x, client=client, memory_budget=least + (1 << 16))
            assert re.search(r"worker (\S+):", str(refused.value))[1] in workers_of(client)


@pytest.mark.kill
def test_a_worker_that_is_lost_costs_an_attempt(tmp_path, kron, monkeypatch):
    """It goes when its share has been sent; the others multiply all of it then."""
    x = np.random.default_rng(0).random(kron.attributes.num_input_vertices)
    expected = spmv(kron, x)
    with Cluster(tmp_path, workers=3) as cluster:
        call, killed = session.ClusterSession.call, []

        def kill_first(self, address, task, *arguments, **options):
            if task.__name__ == "multiply_share" and not killed:
                killed.append(address)
                cluster.kill(address)
            return call(self, address, task, *arguments, **options)

        monkeypatch.setattr(session.ClusterSession, "call", kill_first)
        check(spmv(kron, x, client=cluster.client), expected, "plus_times")
        assert killed
        monkeypatch.setattr(session, "ATTEMPTS", 1)
        killed.clear()
        with pytest.raises(ClusterError, match=r"worker tcp://\S+ was lost"):
            spmv(kron, x, client=cluster.client)
