"""Memory that a worker promises: below its limit, shared by graphs and searches, and refused with a number that works."""

from __future__ import annotations

import re
from dataclasses import replace

import dask
import pytest

import oocgraph
from oocgraph.errors import BudgetError
from oocgraph.kernels import warm
from oocgraph.memory import host_bytes
from oocgraph.partition.vertex_partition import partition_vertices
from tests.cluster.holders import NOTHING, Steps, graph_spec, levels_in_process, two_graphs, worker

MEGABYTES = 1 << 20


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return two graphs of 20,000 vertices and 3 MiB of edges."""
    return two_graphs(tmp_path_factory.mktemp("graphs"))


@pytest.fixture(autouse=True)
def few_readers(steady_memory):
    """Staging for 4 reading threads, so that a partition needs 17 MiB at least."""
    with dask.config.set({"oocgraph.io-threads": 4}):
        yield


def budget(megabytes):
    """Return a budget that leaves some megabytes beside what this process holds."""
    warm.load_search_kernels("uint32", parts=True)
    return host_bytes() + megabytes * MEGABYTES


def reserved(holder):
    return holder.ledger.baseline_bytes + holder.inventory()["reserved_bytes"]


def test_two_graphs_share_the_budget(tmp_path):
    """The first gives up planes and edges for the second, in the middle of a search; it does not get them back by itself."""
    graphs = [oocgraph.generate_kronecker(17, tmp_path / f"{seed}.zarr", seed=seed) for seed in (1, 2)]  # 15 MiB each
    limit = budget(54)
    holder, specs = worker(), [graph_spec(store, memory_budget=limit) for store in graphs]
    holder.acquire("a", specs[0], [0])
    steps = Steps(tmp_path, [holder], specs[0], "a")
    steps.step()
    before = {key: part.residency.num_bytes for key, part in holder._parts.items()}
    assert reserved(holder) <= limit
    holder.acquire("b", specs[1], [0])
    assert reserved(holder) <= limit
    assert all(holder._parts[key].residency.num_bytes < size for key, size in before.items())
    others = Steps(tmp_path, [holder], specs[1], "b")
    assert others.step()
    steps.finish()
    others.finish()
    for one, store in zip((steps, others), graphs, strict=True):
        assert one.levels(partition_vertices(store, 1)).tolist() == levels_in_process(store).tolist()
    holder.release("a")
    assert [key[0] for key in holder.inventory()["parts"]] == [specs[1].fingerprint]
    holder.release("b")
    assert holder.inventory() == NOTHING


def test_a_second_search_of_a_graph_counts_too(graphs):
    """Leases share what is loaded, but each reserves the state of a search; the graph shrinks for it, or it is refused."""
    limit = budget(28)
    holder, spec = worker(), graph_spec(graphs[0], memory_budget=limit)
    holder.acquire("first", spec, [0])
    sizes = [holder.inventory()["reserved_bytes"]]

    def more():
        for i in range(10):
            holder.acquire(f"lease-{i}", spec, [0])
            sizes.append(holder.inventory()["reserved_bytes"])
            assert reserved(holder) <= limit

    with pytest.raises(BudgetError, match="worker tcp://worker:1 cannot take partition 0 of 1"):
        more()
    assert len(sizes) > 1
    assert holder.inventory()["reserved_bytes"] == sizes[-1]
    for lease in holder.leases():
        holder.release(lease)
    assert holder.inventory() == NOTHING


@pytest.mark.parametrize("partitions", [[0], [0, 1, 2]])
def test_the_smallest_budget_that_is_named_works(graphs, partitions):
    """For one partition and for several; what was refused is not here."""
    holder, spec = worker(), graph_spec(graphs[0], 3, memory_budget=host_bytes() + 8 * MEGABYTES)
    with pytest.raises(BudgetError, match=r"worker tcp://worker:1 cannot take partition .*or use more workers, or more memory") as caught:
        holder.acquire("lease", spec, partitions)
    assert holder.inventory() == NOTHING
    named = int(re.search(r"at least (\d+)M", str(caught.value))[1])
    slack = 2  # this process has grown by the message meanwhile
    holder.acquire("lease", replace(spec, memory_budget=f"{named + slack}M"), partitions)
    assert reserved(holder) <= (named + slack) * MEGABYTES
    holder.release("lease")


@pytest.mark.parametrize(
    ("limit", "requested", "configured", "expected"),
    [(1000 << 20, None, 0.7, 650), (1000 << 20, "100M", 0.7, 100), (1000 << 20, "900M", 0.5, 450), (1000 << 20, None, False, 650)],
)
def test_the_limit_is_below_what_dask_spills_at(graphs, limit, requested, configured, expected):
    """Or what was asked for, if that is less."""
    with dask.config.set({"distributed.worker.memory.spill": configured}):
        found = worker(limit=limit).limit_bytes(graph_spec(graphs[0], memory_budget=requested))
    assert found == pytest.approx(expected * MEGABYTES)
