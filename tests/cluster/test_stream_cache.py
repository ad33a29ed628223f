"""Edges that a worker keeps between products and ranks of one runtime: read once, in the books, and given back when memory is needed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import oocgraph
from oocgraph import BudgetError, Resources, open_runtime, pagerank, spmv
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.stream_cache import StreamCache
from oocgraph.cluster.worker import inventory
from oocgraph.memory import host_bytes

MEGABYTES = 1 << 20

OPTIONS = {"transpose": False, "column": None, "threads": 1}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return a graph of 7 MB of edges."""
    return oocgraph.generate_kronecker(16, tmp_path_factory.mktemp("graph") / "g.zarr")


def streams(client):
    """Return what workers keep: leases, bytes held, bytes requested."""
    return sorted(tuple(one) for said in client.run(inventory).values() for one in said.get("streams", []))


def test_products_and_ranks_of_a_runtime_read_edges_once(client, graph):
    x = np.arange(graph.attributes.num_input_vertices, dtype=np.float64)
    expected, ranks = spmv(graph, x, resources=Resources(client=False)), pagerank(graph, resources=Resources(client=False)).rank
    with open_runtime(graph, client=client) as runtime:
        np.testing.assert_allclose(spmv(graph, x, runtime=runtime), expected)
        once = streams(client)
        assert len(once) == 2  # one for each worker
        assert {lease for lease, _, _ in once} == {runtime.lease}
        assert sum(num_bytes for _, num_bytes, _ in once) >= graph.edge_bytes
        np.testing.assert_allclose(spmv(graph, 2 * x, runtime=runtime), 2 * expected)
        assert streams(client) == once
        first, second = (pagerank(graph, tol=0, max_iter=2, runtime=runtime) for _ in range(2))
        assert first.steps[0].bytes_requested >= graph.edge_bytes
        assert [step.bytes_requested for step in (*first.steps[1:], *second.steps)] == [0, 0, 0]
        np.testing.assert_allclose(pagerank(graph, runtime=runtime).rank, ranks, atol=1e-10)
        assert len(streams(client)) == 4
        spmv(graph, x, client=client)
        assert len(streams(client)) == 4  # a call without the runtime keeps nothing
    assert streams(client) == []


def test_a_search_that_is_loaded_later_gets_the_memory(client, graph):
    """Another runtime's search has what streams held given back; the next product reads the edges again."""
    x = np.ones(graph.attributes.num_input_vertices)
    with open_runtime(graph, client=client) as runtime:
        expected = spmv(graph, x, runtime=runtime)
        assert streams(client)
        with open_runtime(graph, client=client, resources=Resources(num_partitions=3)) as other:
            assert streams(client) == []
            oocgraph.bfs(graph, int(oocgraph.store.vertices.VertexIds(graph).ids_of([0])[0]), depth_limit=1, runtime=other)
        np.testing.assert_array_equal(spmv(graph, x, runtime=runtime), expected)
        assert len(streams(client)) == 2


class TestBooks:
    @pytest.fixture
    def ledger(self):
        return WorkerLedger(SimpleNamespace(address="tcp://worker:1", memory_manager=SimpleNamespace(memory_limit=0)))

    def taken(self, cache, ledger, graph, lease="lease", limit=200 * MEGABYTES, **options):
        """Take a stream, as a computation does whose budget leaves so many bytes."""
        with ledger.opening(host_bytes() + ledger.untouched_bytes + limit) as budget:
            stream = cache.take(lease, graph, budget, **{**OPTIONS, "entries": None, **options})
        ledger.close(budget)
        return stream, budget

    def test_what_is_kept_is_in_the_books_and_found_again(self, ledger, graph):
        cache = StreamCache(ledger)
        stream, budget = self.taken(cache, ledger, graph)
        assert budget.reserved_bytes == 0
        assert ledger.reserved_bytes == cache.reserved_bytes() > graph.edge_bytes
        assert budget.promised_bytes <= budget.limit_bytes
        other, charged = self.taken(cache, ledger, graph)  # while the first is in use: one of its own, which nobody keeps
        assert other is not stream
        assert charged.reserved_bytes > 0
        cache.put_back(other)
        cache.put_back(stream)
        assert self.taken(cache, ledger, graph)[0] is stream
        assert self.taken(cache, ledger, graph, entries=(0, 9))[0] is not stream
        assert cache.leases() == {"lease"}

    def test_what_is_in_use_stays_and_goes_when_it_is_put_back(self, ledger, graph):
        cache = StreamCache(ledger)
        stream, _ = self.taken(cache, ledger, graph)
        assert cache.give_back(1 << 40) == 0
        cache.release("lease")
        assert len(cache.inventory()) == 1
        cache.put_back(stream)
        assert cache.inventory() == []
        assert ledger.reserved_bytes == 0

    def test_no_more_is_given_back_than_is_needed(self, ledger, graph):
        """The one that was not used for longest goes first."""
        cache = StreamCache(ledger)
        half = graph.attributes.num_stored_edges // 2
        one, _ = self.taken(cache, ledger, graph, entries=(0, half))
        two, _ = self.taken(cache, ledger, graph, entries=(half, 2 * half))
        cache.put_back(two)
        cache.put_back(one)
        with ledger.opening(host_bytes() + ledger.untouched_bytes + MEGABYTES) as budget:
            budget.reserve("more", budget.available_bytes + 1)
            assert [one.stream for one in cache._kept.values()] == [one]
            with budget.all_or_none():
                budget.reserve("much more", budget.available_bytes + 1)
            assert cache.inventory() == []
            with pytest.raises(BudgetError, match="too much needs"):
                budget.reserve("too much", 1 << 40)
        ledger.close(budget)

    def test_a_failure_puts_back_what_was_taken(self, ledger, graph):
        cache = StreamCache(ledger)

        def fail():
            with cache.putting_back() as taken:
                taken.append(self.taken(cache, ledger, graph)[0])
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert [one.in_use for one in cache._kept.values()] == [False]
