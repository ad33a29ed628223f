"""What a worker with a device holds: within both of its budgets, given up for others, named where it fails."""

from __future__ import annotations

import gc
import re
from dataclasses import replace

import pytest

import oocgraph
from oocgraph.arrays import DeviceChoice, drivers
from oocgraph.cluster import worker_device
from oocgraph.cluster.specs import StateLostError
from oocgraph.cluster.worker_memory import device_bytes
from oocgraph.errors import BudgetError, DeviceError
from oocgraph.memory import host_bytes
from oocgraph.partition.vertex_partition import partition_vertices
from tests.cluster.holders import NOTHING, Steps, graph_spec, levels_in_process, worker
from tests.engine.device_parts import opened, use_shim

MEGABYTES = 1 << 20

pytestmark = pytest.mark.shim


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return a graph of 8 MiB of edges."""
    return oocgraph.generate_kronecker(16, tmp_path_factory.mktemp("graph") / "g.zarr", seed=1)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a graph of 4,096 vertices."""
    return oocgraph.generate_kronecker(12, tmp_path_factory.mktemp("graph") / "g.zarr", seed=1)


@pytest.fixture
def shim():
    """Let workers have shims; returns a function that says how they are."""
    before = worker_device.open_device
    opened.clear()
    use_shim()
    yield use_shim
    worker_device.open_device = before
    opened.clear()


def held_on_device(holder):
    return sum(device_bytes(part.residency) for part in holder._parts.values())


def test_steps_on_two_workers_with_devices(small, tmp_path, shim):
    """They say which devices they have, tell what crossed the link, and keep nothing afterwards, on either side."""
    spec, workers = graph_spec(small, 2, device_memory_budget="64M"), [worker(), worker()]
    for p, holder in enumerate(workers):
        (figures,) = holder.acquire("lease", spec, [p])
        assert (figures["device"], figures["device_memory_budget"]) == ("CPU (shim)", 64 * MEGABYTES)
        assert figures["device_bytes"] == held_on_device(holder)
        assert opened[p].peak_bytes <= figures["device_bytes"] <= 64 * MEGABYTES
        assert opened[p].peak_pinned_bytes <= figures["resident_bytes"]
    steps = Steps(tmp_path, workers, spec, direction="pull")
    allocations = [device.num_allocations for device in opened]
    figures = steps.finish()
    assert [device.num_allocations for device in opened] == allocations
    assert steps.levels(partition_vertices(small, 2)).tolist() == levels_in_process(small).tolist()
    assert sum(one["num_reached"] for one in figures) == (levels_in_process(small) >= 0).sum()
    assert all(len(row) == 8 for reports in steps.reports for row in reports[0]["iterations"])
    assert all(device.launched["pull_planes<unsigned int>"] for device in opened)
    for holder in workers:
        holder.forget(steps.name)
        holder.release("lease")
        assert holder.inventory() == NOTHING
    assert [(device.allocated_bytes, device.pinned_bytes) for device in opened] == [(0, 0)] * 2


def test_a_partition_that_moves_here_gets_its_share_of_the_device(graph, tmp_path, shim):
    """The one that was here is loaded again with less, in the middle of a search, and both keep to the budget."""
    spec = graph_spec(graph, 2, device_memory_budget="18M")
    first, second = worker(), worker()
    first.acquire("lease", spec, [0])
    second.acquire("lease", spec, [1])
    steps = Steps(tmp_path, [first, second], spec, direction="pull")
    steps.step()
    before = held_on_device(first)
    first.acquire("lease", spec, [1])
    assert held_on_device(first) <= 18 * MEGABYTES
    assert [part.load for part in first._parts.values()] == [2, 3]
    assert device_bytes(first._parts[*spec.graph, 0].residency) < before
    while steps.step():
        continue
    for p, holder in enumerate(steps.workers):
        holder.finish(steps.name, steps.graph, p)
    assert steps.levels(partition_vertices(graph, 2)).tolist() == levels_in_process(graph).tolist()
    assert opened[0].peak_bytes <= 18 * MEGABYTES


@pytest.mark.parametrize("partitions", [[0], [0, 1, 2]])
def test_the_smallest_device_budget_that_is_named_works(graph, partitions, shim):
    """For one partition and for several; what was refused is not here."""
    holder, spec = worker(), graph_spec(graph, 3, device_memory_budget="3M")
    with pytest.raises(BudgetError, match=r"worker tcp://worker:1 cannot take partition .*device_memory_budget") as caught:
        holder.acquire("lease", spec, partitions)
    assert holder.inventory() == NOTHING
    named = int(re.search(r"device_memory_budget to at least (\d+)M", str(caught.value))[1])
    holder.acquire("lease", replace(spec, device_memory_budget=f"{named}M"), partitions)
    assert opened[0].peak_bytes <= named * MEGABYTES
    holder.release("lease")
    holder.acquire("again", replace(spec, device_memory_budget=f"{named}M"), partitions)
    with pytest.raises(BudgetError, match="device_memory_budget"):
        worker().acquire("lease", replace(spec, device_memory_budget=f"{named - 1}M"), partitions)


@pytest.mark.usefixtures("steady_memory")
def test_the_smallest_host_budget_that_is_named_works(graph, shim):
    """Page-locked memory is charged to the worker's own budget."""
    holder, spec = worker(), graph_spec(graph, 2, device_memory_budget="32M")
    holder.acquire("lease", spec, [0, 1])
    holder.release("lease")
    spec = replace(spec, memory_budget=host_bytes() + 8 * MEGABYTES)
    with pytest.raises(BudgetError, match="cannot take partition 0, 1 of 2") as caught:
        holder.acquire("other", spec, [0, 1])
    named = int(re.search(r"memory_budget to at least (\d+)M", str(caught.value))[1]) + 2
    opened[0].peak_pinned_bytes = 0
    holder.acquire("other", replace(spec, memory_budget=f"{named}M"), [0, 1])
    assert holder.ledger.baseline_bytes + holder.inventory()["reserved_bytes"] <= named * MEGABYTES
    assert opened[0].peak_pinned_bytes <= holder.inventory()["reserved_bytes"]


def test_a_device_budget_that_is_not_free_is_refused(small, shim):
    """What this worker holds counts as free; what others hold does not."""
    holder = worker()
    holder.acquire("a", graph_spec(small, 2, device_memory_budget="1G"), [0])
    holder.acquire("b", graph_spec(small, 2, device_memory_budget="1G"), [1])
    shim(total_bytes=16 * MEGABYTES)
    with pytest.raises(BudgetError, match=r"worker tcp://worker:1 .*1\.0 GiB, but 16\.0 MiB of 16\.0 MiB are free on CPU"):
        worker().acquire("a", graph_spec(small, device_memory_budget="1G"), [0])


def test_workers_that_share_a_device_leave_room_for_each_other(small, shim):
    """Without a budget each takes most of an equal part."""
    (figures,) = worker().acquire("a", graph_spec(small, device_sharers=4), [0])
    assert figures["device_memory_budget"] == pytest.approx(0.9 * (1 << 30) / 4, rel=0.01)


def test_a_worker_without_a_gpu(small, monkeypatch):
    """`cuda` is refused in its name, `auto` takes the processor and says why; what is held for either is apart."""
    monkeypatch.setattr(drivers, "DRIVER_LIBRARY", "libcuda-that-is-not-there.so.1")
    holder = worker()
    with pytest.raises(DeviceError, match="worker tcp://worker:1: no NVIDIA driver is found"):
        holder.acquire("a", graph_spec(small, device="cuda"), [0])
    assert holder.inventory() == NOTHING
    (figures,) = holder.acquire("b", graph_spec(small), [0])
    assert (figures["device"], figures["device_bytes"], figures["device_memory_budget"]) == ("cpu", 0, 0)
    assert "no NVIDIA driver is found" in figures["device_reason"]
    (figures,) = holder.acquire("c", graph_spec(small, device="cpu"), [0])
    assert figures["device_reason"] == "the processor was asked for"
    assert len(holder.inventory()["parts"]) == 2


def test_processor_and_device_search_the_same_graph_side_by_side(small, tmp_path, shim):
    """A client that asks for the processor does not get what is on the device."""
    holder = worker()
    specs = [graph_spec(small, device=device) for device in ("cpu", "cuda")]
    for spec in specs:
        holder.acquire(spec.device, spec, [0])
    searches = [Steps(tmp_path, [holder], spec, spec.device) for spec in specs]
    for steps in searches:
        steps.finish()
        assert steps.levels(partition_vertices(small, 1)).tolist() == levels_in_process(small).tolist()
    assert opened[0].launched.total() > 0


def test_two_searches_of_two_clients_interleave(small, tmp_path, shim):
    """One goes on while the device has the arrays of the other; the one that leaves is not waited for."""
    holder, spec = worker(), graph_spec(small)
    searches = []
    for lease, source in (("a", 3), ("b", 300), ("c", 7)):
        holder.acquire(lease, spec, [0])
        searches.append(Steps(tmp_path, [holder], spec, lease, sources=[source], direction="pull"))
    for steps in searches * 2:
        steps.step()
    holder.release("c")
    for steps, source in zip(searches[:2], (3, 300), strict=True):
        steps.finish()
        assert steps.levels(partition_vertices(small, 1)).tolist() == levels_in_process(small, source).tolist()


def test_a_device_that_is_lost(small, tmp_path, shim):
    """The step names worker, partition and level; who asks next gets the partition on a device that is opened again."""
    holder, spec = worker(), graph_spec(small)
    for lease in ("a", "b"):
        holder.acquire(lease, spec, [0])
    steps, other = (Steps(tmp_path, [holder], spec, lease, direction="pull") for lease in ("a", "b"))
    steps.step()
    other.step()
    opened[0].fail_after = 1
    with pytest.raises(DeviceError, match=r"worker tcp://worker:1: partition 0, level 2: CPU \(shim\): the device was lost"):
        steps.step()
    holder.acquire("c", spec, [0])
    with pytest.raises(StateLostError, match="has lost what its device had noted"):
        other.step()
    last = Steps(tmp_path, [holder], spec, "c")
    last.finish()
    assert last.levels(partition_vertices(small, 1)).tolist() == levels_in_process(small).tolist()
    assert len(opened) == 2
    gc.collect()
    assert opened[0].allocated_bytes == 0


def test_a_device_that_gives_less_than_it_says(small, shim, monkeypatch):
    """Another process has taken memory meanwhile: an error in the worker's name, and nothing is held."""
    holder, spec = worker(), graph_spec(small, device_memory_budget="64M")
    holder.acquire("a", spec, [0])
    holder.release("a")
    monkeypatch.setattr(type(opened[0]), "free_bytes", lambda self: max(64 * MEGABYTES, self.total_bytes - self.allocated_bytes))
    opened[0].total_bytes = 2 * MEGABYTES
    opened[0].fail_after = opened[0].calls.total() + 20
    with pytest.raises(DeviceError, match="worker tcp://worker:1: partition 0, as it was loaded: "):
        holder.acquire("b", spec, [0])
    holder.release("b")
    assert holder.inventory() == NOTHING
    assert isinstance(holder.device.choose(spec), DeviceChoice)
