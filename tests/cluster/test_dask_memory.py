"""Memory of workers, client and scheduler: within the budget, whoever else searches; and not as much as there are vertices."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources
from oocgraph.cluster.events import SHARES, STEPS
from oocgraph.cluster.parts import PartitionedClusterRuntime
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.cluster.worker import inventory
from oocgraph.config import setting
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import BudgetError
from oocgraph.memory import PeakSampler, host_bytes
from oocgraph.store.vertices import VertexIds
from oocgraph.verify import verify_search
from tests import every_knob
from tests.cluster.conftest import QUIET
from tests.processes import PATIENCE_SECONDS

MEGABYTES = 1 << 20


@pytest.fixture(scope="module")
def process_cluster():
    """Two workers that hold as much as each other: budgets here are by what they hold before, and other tests leave them unequal."""
    with LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def graphs(kron, tmp_path_factory):
    """Return two graphs of 30 MiB of edges."""
    other = oocgraph.generate_kronecker(18, tmp_path_factory.mktemp("other") / "graph.zarr", seed=4)
    return [kron[0], other]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a graph of a million ids and 120 MiB of edges."""
    return oocgraph.generate_kronecker(20, tmp_path_factory.mktemp("large") / "graph.zarr", seed=3)


def sources_of(store):
    """Ids of three vertices of the large component: one of high degree, two of lower."""
    return VertexIds(store).ids_of(np.array([0, 5000, 50_000])).tolist()


def expected(store, source):
    """Levels of a search in this process."""
    with LocalRuntime.open(store) as runtime:
        return oocgraph.bfs(store, source, runtime=runtime).search.level


def begin_watch(dask_worker=None):
    """Run on a worker: sample its memory."""
    dask_worker.sampler = PeakSampler()
    dask_worker.sampler.__enter__()


def end_watch(dask_worker=None):
    """Run on a worker: return the peak of its memory."""
    dask_worker.sampler.__exit__(None, None, None)
    return dask_worker.sampler.peak_bytes


class Budget:
    """Some megabytes for each worker beside what it holds now; no worker may hold more until the end."""

    def __init__(self, client, megabytes):
        self.client = client
        self.bytes = max(client.run(host_bytes).values()) + megabytes * MEGABYTES

    def __enter__(self):
        self.client.run(begin_watch)
        return self

    def __exit__(self, *_):
        self.peaks = self.client.run(end_watch)
        assert max(self.peaks.values()) <= self.bytes, (self.peaks, self.bytes)


@pytest.fixture(autouse=True)
def warm(client, tmp_path):
    """Workers have loaded the kernels: that is part of what they hold before."""
    store = oocgraph.generate_kronecker(8, tmp_path / "small.zarr", seed=1)
    oocgraph.bfs(store, 1, client=client, direction="alpha-beta")


def test_workers_stay_within_their_budget(graphs, client):
    """Most edges are on disk, and are read; searches one after the other take no more than the first."""
    store = graphs[0]
    with Budget(client, 45) as budget, ClusterRuntime.open(store, client=client, memory_budget=budget.bytes) as runtime:
        assert not any(part["in_memory"] for part in runtime.parts)
        assert runtime.memory_budget == 2 * budget.bytes
        for source in sources_of(store):
            for direction in ("auto", "pull", "push"):
                result = oocgraph.bfs(store, source, runtime=runtime, direction=direction)
                assert result.bytes_requested > 0
    assert (np.asarray(result.search.level) == expected(store, source)).all()


def test_a_large_graph_grows_neither_client_nor_scheduler(large, client):
    """They share this process here. What the scheduler keeps of a search is its last events."""
    budget = Budget(client, 90)
    source = sources_of(large)[1]
    wanted = expected(large, source)
    before = host_bytes()
    with PeakSampler() as sampler, budget:
        result = oocgraph.bfs(large, source, client=client, memory_budget=budget.bytes)
        assert result.bytes_requested > 0
    assert sampler.peak_bytes - before < 50 * MEGABYTES
    assert (np.asarray(result.search.level) == wanted).all()

    def kept(dask_scheduler=None):
        events = [event for event in dask_scheduler.get_events("oocgraph") if event[1]["search"]]
        return len(dask_scheduler.tasks), len(events), [name for name in dask_scheduler.get_events() if name.startswith("oocgraph")], events

    num_tasks, num_events, topics, events = client.run_on_scheduler(kept)
    assert num_tasks == 0
    assert {STEPS} <= set(topics) <= {STEPS, SHARES}  # the cluster may have dealt shares before
    assert len(cloudpickle.dumps(events)) / num_events < 2000


def everything(store, parts, client, memory_budget=None):
    """Compute all there is on a cluster, while it holds a graph and parts of it; all is compared with this process."""
    where = {"client": client, "memory_budget": memory_budget}
    x = np.ones(store.attributes.num_input_vertices)
    with (
        ClusterRuntime.open(store, **where) as runtime,
        PartitionedClusterRuntime(parts, store, Resources(client=client, memory_budget=memory_budget)) as other,
    ):
        oocgraph.verify_bfs(store, oocgraph.bfs(store, 1, runtime=runtime, direction="alpha-beta"))
        found = other.search_here(np.array([0]))
        verify_search(store, found.sources, found.parent, found.level)
        np.testing.assert_allclose(oocgraph.spmv(store, x, **where), oocgraph.spmv(store, x))
        np.testing.assert_allclose(oocgraph.pagerank(store, **where).rank, oocgraph.pagerank(store).rank, rtol=0, atol=1e-12)
        oocgraph.verify_components(store, oocgraph.connected_components(store, **where))
        assert min(runtime.memory_budget, other.memory_budget) == 2 * (memory_budget or runtime.memory_budget // 2)


def test_all_computations_together_stay_within_the_budget(graphs, client, tmp_path):
    """Each knows what the others have reserved: a worker that holds a graph and its parts multiplies, ranks and links beside them."""
    small = oocgraph.generate_kronecker(9, tmp_path / "small-9.zarr", seed=1)
    for i, store in enumerate((small, graphs[0])):
        parts = every_knob.partition(store, 4, "2d", tmp_path / f"parts-{i}")
        if store is small:
            everything(store, parts, client)  # kernels are loaded: that is part of what workers hold before
    with Budget(client, 150) as budget:
        everything(graphs[0], parts, client, budget.bytes)


@pytest.mark.parametrize("partitions", [2, 4])
def test_a_budget_that_is_too_small_names_a_worker(graphs, client, partitions, tmp_path):
    """Nothing has run then, and nothing is left."""
    few = Resources(num_partitions=partitions, memory_budget=Budget(client, 12).bytes)
    with pytest.raises(BudgetError, match=r"^worker tcp://\S+ cannot take partition .*at least \d+M; or use more workers"):
        oocgraph.bfs(graphs[0], 1, client=client, resources=few, result_store=tmp_path / "r.zarr")
    assert not (tmp_path / "r.zarr").exists()
    assert all(not any(said.values()) for said in client.run(inventory).values())


def searches(client, store, budget, results, **options):
    """Search some times, each with a runtime of its own."""
    for source in sources_of(store):
        results.append((store, source, oocgraph.bfs(store, source, client=client, memory_budget=budget.bytes, **options)))


@pytest.mark.parametrize("num_clients", [1, 2])
@pytest.mark.parametrize("num_graphs", [1, 2])
def test_two_traversals_at_once_share_workers(graphs, client, process_cluster, num_clients, num_graphs):
    """Of one graph or of two, by threads of one client or by two clients: right answers, and the sum stays in the budget."""
    results = []
    with Client(process_cluster, set_as_default=False) as other, Budget(client, 100) as budget, ThreadPoolExecutor(2) as pool:
        clients, stores = [client, other if num_clients == 2 else client], [graphs[0], graphs[num_graphs - 1]]
        runs = [pool.submit(searches, *pair, budget, results) for pair in zip(clients, stores, strict=True)]
        for run in runs:
            run.result(timeout=PATIENCE_SECONDS)
    assert len(results) == 6
    for store, source, result in results:
        assert (np.asarray(result.search.level) == expected(store, source)).all()


def test_a_graph_that_comes_shrinks_the_first_in_the_middle_of_its_search(graphs, client):
    """Both stay in the budget, and the first search goes on with less."""
    first, second = graphs
    began, shrunk = threading.Event(), threading.Event()

    def progress(kind, *_):
        if kind == "level":
            began.set()
            assert shrunk.wait(PATIENCE_SECONDS)

    with (
        Budget(client, 75) as budget,
        ThreadPoolExecutor(1) as pool,
        ClusterRuntime.open(first, client=client, memory_budget=budget.bytes) as runtime,
    ):
        held = runtime.parts[0]["resident_bytes"]
        running = pool.submit(oocgraph.bfs, first, sources_of(first)[1], runtime=runtime, direction="alpha-beta", progress=progress)
        assert began.wait(PATIENCE_SECONDS)
        try:
            with ClusterRuntime.open(second, client=client, memory_budget=budget.bytes) as other:
                assert other.parts[0]["resident_bytes"] < held
                assert all(len(said["parts"]) == 2 for said in client.run(inventory).values())
                shrunk.set()
                results = [running.result(timeout=PATIENCE_SECONDS), oocgraph.bfs(second, sources_of(second)[1], runtime=other)]
        finally:
            shrunk.set()
    for store, result in zip(graphs, results, strict=True):
        assert result.num_reached > 100_000
        assert (np.asarray(result.search.level) == expected(store, sources_of(store)[1])).all()


@pytest.mark.parametrize("algorithm", ["sssp", "core_numbers"])
def test_shares_of_blocks_stay_within_the_smallest_budget(tmp_path, client, algorithm):
    """That which a refusal names: few blocks are held, and all else is there."""
    store = oocgraph.generate_kronecker(16, tmp_path / "graph.zarr", seed=3, weights=(1, 255))

    def compute(**where):
        return oocgraph.core_numbers(store, **where) if algorithm == "core_numbers" else oocgraph.sssp(store, 3, **where)

    compute(client=client)
    budget = Budget(client, 1)
    with pytest.raises(BudgetError, match=r"at least \d+M") as refused:
        compute(client=client, memory_budget=budget.bytes)
    budget.bytes = (int(re.search(r"at least (\d+)M", str(refused.value))[1]) + 4) * MEGABYTES  # workers are not alike
    with budget:
        found = compute(client=client, memory_budget=budget.bytes)
    assert found.num_blocks_read >= found.num_blocks
    np.testing.assert_array_equal(found.to_pandas(), compute(resources=Resources(client=False)).to_pandas())


@pytest.mark.parametrize("exchange", ["windows", "messages"])
def test_trees_stay_within_the_smallest_budget(tmp_path, client, exchange):
    """That which a refusal names, of a graph with more vertices than anything else: of trees in common, and of each worker's own."""
    store = oocgraph.generate_grid((1000, 2000), tmp_path / "graph.zarr")
    with setting("exchange", exchange):
        oocgraph.connected_components(store, client=client)
        budget = Budget(client, 1)
        with pytest.raises(BudgetError, match=r"at least \d+M") as refused:
            oocgraph.connected_components(store, client=client, memory_budget=budget.bytes)
        budget.bytes = (int(re.search(r"at least (\d+)M", str(refused.value))[1]) + 4) * MEGABYTES  # workers are not alike
        with budget:
            found = oocgraph.connected_components(store, client=client, memory_budget=budget.bytes)
    assert found.num_components == 1
