"""Every computation on a cluster keeps to the contract."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph.cluster.parts import PartitionedClusterRuntime
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.worker_blocks import BlockShare
from oocgraph.cluster.worker_forest import Phase
from oocgraph.config import setting
from oocgraph.partition.check import check_partitions
from oocgraph.verify import verify_search
from tests import every_knob
from tests.cluster.contract import ClusterContract, cluster
from tests.cluster.kill_fifty import SOURCE

__all__ = ["cluster"]

EIGHT_ITERATIONS = {"tol": 0, "max_iter": 8}

_numbers = itertools.count()


def miss_memory_once():
    """Have a share find no file where the first one has its memory, once."""
    there = os.open

    def missing(path, *arguments, **options):
        if sys._getframe(2).f_code is BlockShare.work.__code__:
            os.open = there
            raise FileNotFoundError(2, "No such file or directory", path)
        return there(path, *arguments, **options)

    os.open = missing


@pytest.fixture
def messages():
    """Have workers share no memory."""
    with setting("exchange", "messages"):
        yield


class TestSearch(ClusterContract):
    place = ("kernel", 2)

    @contextmanager
    def opened(self, store, client, folder):
        with ClusterRuntime.open(store, client=client) as runtime:
            options = {"runtime": runtime, "direction": "alpha-beta"}
            yield lambda: oocgraph.bfs(store, SOURCE, result_store=folder / f"{next(_numbers)}.zarr", **options)

    def check(self, store, found):
        oocgraph.verify_bfs(store, found)


class TestTraversalOverParts(ClusterContract):
    place = ("compute", 2)

    @contextmanager
    def opened(self, store, client, folder):
        place = Path(store.url).parent / "parts"
        if not place.exists():
            every_knob.partition(store, 4, "2d", place)
        parts = oocgraph.open_partitions(place)
        with PartitionedClusterRuntime(parts, store, oocgraph.Resources(client=client)) as runtime:
            yield lambda: runtime.search_here(np.array([0]))

    def check(self, store, found):
        verify_search(store, found.sources, found.parent, found.level)


class TestPageRank(ClusterContract):
    place = ("compute", 3)

    @contextmanager
    def opened(self, store, client, folder):
        yield lambda: oocgraph.pagerank(store, tol=1e-9, client=client)

    def check(self, store, found):
        np.testing.assert_allclose(found.rank, oocgraph.pagerank(store, tol=1e-9).rank, rtol=0, atol=1e-10)


class TestSweeps(ClusterContract):
    """Of the lists in both directions."""

    place = ("compute", 3)

    @pytest.fixture
    def kron(self, tmp_path_factory):
        """Return a directed graph."""
        rng = np.random.default_rng(4)
        edges = (20_000 * rng.random(200_000) ** 2).astype(np.int64), rng.integers(0, 20_000, 200_000)
        return oocgraph.build_csr(edges, tmp_path_factory.mktemp("directed") / "graph.zarr", directed=True), None

    @contextmanager
    def opened(self, store, client, folder):
        with oocgraph.open_runtime(store, client=client) as runtime:
            yield lambda: oocgraph.hits(store, **EIGHT_ITERATIONS, runtime=runtime)

    def check(self, store, found):
        here = oocgraph.hits(store, **EIGHT_ITERATIONS, resources=oocgraph.Resources(client=False))
        np.testing.assert_allclose(found.hub, here.hub, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.authority, here.authority, rtol=0, atol=1e-12)


class TestSearchesFromMany(TestSweeps):
    """Whose words of all vertices change from level to level, in a call that opens the graph for itself."""

    place = ("compute", 2)

    @contextmanager
    def opened(self, store, client, folder):
        sources = store.ids_of(np.arange(0, store.num_rows, 211)).tolist()
        yield lambda: oocgraph.multi_source_bfs(store, sources, distances=True, client=client)

    def check(self, store, found):
        here = oocgraph.multi_source_bfs(store, found.sources, distances=True, resources=oocgraph.Resources(client=False))
        np.testing.assert_array_equal(found.levels, here.levels)
        np.testing.assert_array_equal(found.sum_distances, here.sum_distances)


class TestShortestPaths(ClusterContract):
    """In memory that workers share."""

    place = ("work", 1)

    @pytest.fixture
    def kron(self, tmp_path_factory):
        """Return a graph with weights."""
        return oocgraph.generate_kronecker(14, tmp_path_factory.mktemp("weighted") / "graph.zarr", seed=3, weights=(1, 255)), None

    @contextmanager
    def opened(self, store, client, folder):
        yield lambda: oocgraph.sssp(store, int(store.ids_of(5)[0]), client=client)

    def check(self, store, found):
        oocgraph.verify_sssp(store, found)
        here = oocgraph.sssp(store, found.source, resources=oocgraph.Resources(client=False))
        np.testing.assert_array_equal(found.distance, here.distance)
        np.testing.assert_array_equal(found.parent, here.parent)


@pytest.mark.usefixtures("messages")
class TestShortestPathsByMessages(TestShortestPaths):
    place = ("compute", 2)


class TestCores(ClusterContract):
    """In memory that workers share."""

    place = ("work", 1)

    @pytest.fixture
    def kron(self, tmp_path_factory):
        """Return ten graphs in which all vertices have as many neighbours: there are as many steps as such numbers."""
        rng, size, vertices = np.random.default_rng(3), 2_000, np.arange(2_000)
        edges = [
            (vertices * 10 + i, (vertices + offset) % size * 10 + i)
            for i in range(10) for offset in rng.choice(size // 2 - 1, i + 1, replace=False) + 1
        ]  # fmt: skip
        return oocgraph.build_csr(np.concatenate(edges, axis=1).T, tmp_path_factory.mktemp("small") / "graph.zarr"), None

    @contextmanager
    def opened(self, store, client, folder):
        yield lambda: oocgraph.core_numbers(store, client=client)

    def check(self, store, found):
        oocgraph.verify_cores(store, found)
        np.testing.assert_array_equal(
            found.core_number, oocgraph.core_numbers(store, resources=oocgraph.Resources(client=False)).core_number
        )

    def test_memory_is_gone_before_all_have_mapped_it(self, cluster, kron, tmp_path):
        """The process that has made it has ended, of which nobody knows yet."""
        with self.opened(kron[0], cluster.client, tmp_path) as compute:
            cluster.client.run(miss_memory_once)
            self.check(kron[0], compute())


@pytest.mark.usefixtures("messages")
class TestCoresByMessages(TestCores):
    place = ("compute", 5)


class TestComponents(ClusterContract):
    """In memory that workers share."""

    place = ("compute", int(Phase.LISTS))

    @contextmanager
    def opened(self, store, client, folder):
        yield lambda: oocgraph.connected_components(store, client=client)

    def check(self, store, found):
        oocgraph.verify_components(store, found)
        here = oocgraph.connected_components(store, resources=oocgraph.Resources(client=False))
        np.testing.assert_array_equal(found.stored_component, here.stored_component)


@pytest.mark.usefixtures("messages")
class TestComponentsByMessages(TestComponents):
    place = ("compute", 1)


class TestProduct(ClusterContract):
    place = ("compute", 0)

    @contextmanager
    def opened(self, store, client, folder):
        x = np.random.default_rng(0).random(store.attributes.num_input_vertices)
        yield lambda: oocgraph.spmv(store, x, client=client)

    def check(self, store, found):
        x = np.random.default_rng(0).random(store.attributes.num_input_vertices)
        np.testing.assert_allclose(found, oocgraph.spmv(store, x), rtol=1e-12)


class TestPartitioning(ClusterContract):
    place = ("compute", 2)

    @pytest.fixture
    def kron(self, tmp_path_factory):
        """Return a small graph: the policy runs as plain Python, which no worker that comes has to compile."""
        return oocgraph.generate_kronecker(11, tmp_path_factory.mktemp("small") / "graph.zarr", seed=3), None

    @contextmanager
    def opened(self, store, client, folder):
        def compute():
            out = folder / f"parts-{next(_numbers)}"
            return every_knob.partition(store, 3, "CVC", out, client, compiled=False)

        yield compute

    def check(self, store, found):
        check_partitions(found, store)
        shutil.rmtree(found.url)
