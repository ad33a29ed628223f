"""What a worker holds: within its budget whoever comes and goes, and nothing of those that have left."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph.algorithms.bfs import search
from oocgraph.errors import BudgetError, ClusterError, CorruptStoreError
from oocgraph.kernels import warm
from oocgraph.memory import host_bytes
from oocgraph.partition.dealing import deal
from oocgraph.runtime import worker as tasks
from oocgraph.runtime.local import LocalRuntime
from oocgraph.runtime.part_load import PartPlan
from oocgraph.runtime.worker import StateLostError, residency_bytes
from oocgraph.store.graph import open_graph
from tests.reference_build import reference_build
from tests.runtime.holders import Steps, graph_spec, worker

NOTHING = {"parts": [], "searches": [], "reserved_bytes": 0}
MEGABYTES = 1 << 20


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return two graphs of 20,000 vertices and 800,000 stored entries (3 MiB) each."""
    folder = tmp_path_factory.mktemp("graphs")
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        reference_build((20_000 * rng.random(400_000) ** 2).astype(np.int64), rng.integers(0, 20_000, 400_000), folder / f"{seed}.zarr")
    return [open_graph(folder / f"{seed}.zarr") for seed in (1, 2)]


@pytest.fixture(autouse=True)
def few_readers():
    """Staging for 4 reading threads, so that a partition needs 17 MiB at least."""
    with dask.config.set({"oocgraph.io-threads": 4}):
        yield


def levels_in_process(store, source=0):
    with LocalRuntime.open(store) as runtime:
        level = search(runtime, np.array([source])).level
    return np.where(level == 255, -1, level.astype(np.int64))


def budget(megabytes):
    """Return a budget that leaves some megabytes beside what this process holds."""
    warm.load_search_kernels("uint32", parts=True)
    return host_bytes() + megabytes * MEGABYTES


def test_steps_on_two_workers(graphs, tmp_path):
    """They tell what they do, and keep nothing afterwards."""
    store = graphs[0]
    spec, workers = graph_spec(store, 2), [worker(), worker()]
    for p, holder in enumerate(workers):
        (figures,) = holder.acquire("lease", spec, [p])
        assert (figures["partition"], figures["worker"], figures["num_owned"]) == (p, "tcp://worker:1", deal(store, 2).num_owned[p])
    steps = Steps(tmp_path, workers, spec, direction="auto")
    figures = steps.finish()
    assert steps.levels(deal(store, 2)).tolist() == levels_in_process(store).tolist()
    assert sum(one["num_reached"] for one in figures) == (levels_in_process(store) >= 0).sum()
    events = workers[1].worker.events
    assert [one["step"] for one in events] == list(range(steps.index + 1))
    assert {(one["search"], one["partition"], one["epoch"]) for one in events} == {(steps.name, 1, 0)}
    for holder in workers:
        assert [key[2] for key in holder.inventory()["parts"]] == [workers.index(holder)]
        holder.forget(steps.name)
        holder.release("lease")
        assert holder.inventory() == NOTHING
        assert holder.leases() == []


def test_no_file_stays_open(graphs, tmp_path, monkeypatch):
    """Neither of the graph nor of a log."""
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(PartPlan, "residency", on_disk(PartPlan.residency))
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps = Steps(tmp_path, [holder], spec)
    steps.step()
    assert len(os.listdir("/proc/self/fd")) > before
    holder.release("lease")
    assert len(os.listdir("/proc/self/fd")) == before
    assert holder.inventory() == NOTHING


def on_disk(planned, num_planes=6):
    """Replace `PartPlan.residency`: a few planes in memory, no row, and much room for tails that are kept."""

    def residency(plan, **options):
        return replace(planned(plan, **options), num_planes=num_planes, num_resident=(0,), cache_slots=64, num_kept=1 << 20)

    return residency


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_a_search_goes_on_when_its_graph_is_loaded_anew_with_less(graphs, tmp_path, monkeypatch, stop):
    """The tails that it kept began after more planes than there are now."""
    monkeypatch.setattr(PartPlan, "residency", on_disk(PartPlan.residency))
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps = Steps(tmp_path, [holder], spec, sources=[15_000])
    for _ in range(stop + 1):
        steps.step()
    ((key, part),) = holder._parts.items()
    kept = holder._searches[steps.name, 0].state.num_kept
    assert kept > 0
    holder._shrink({key: replace(part.residency, num_planes=1, plane_bytes=0)})
    steps.finish()
    assert steps.levels(deal(graphs[0], 1)).tolist() == levels_in_process(graphs[0], 15_000).tolist()
    holder.release("lease")


def reserved(holder):
    return holder._baseline + holder.inventory()["reserved_bytes"]


def test_two_graphs_share_the_budget(tmp_path):
    """The first gives up planes and edges for the second, in the middle of a search; it does not get them back by itself."""
    graphs = [oocgraph.generate_kronecker(17, tmp_path / f"{seed}.zarr", seed=seed) for seed in (1, 2)]  # 15 MiB each
    limit = budget(54)
    holder, specs = worker(), [graph_spec(store, memory_budget=limit) for store in graphs]
    holder.acquire("a", specs[0], [0])
    steps = Steps(tmp_path, [holder], specs[0], "a")
    steps.step()
    before = {key: residency_bytes(part.residency) for key, part in holder._parts.items()}
    assert reserved(holder) <= limit
    holder.acquire("b", specs[1], [0])
    assert reserved(holder) <= limit
    assert all(residency_bytes(holder._parts[key].residency) < size for key, size in before.items())
    others = Steps(tmp_path, [holder], specs[1], "b")
    assert others.step()
    steps.finish()
    others.finish()
    for one, store in zip((steps, others), graphs, strict=True):
        assert one.levels(deal(store, 1)).tolist() == levels_in_process(store).tolist()
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
    with pytest.raises(BudgetError, match=r"worker tcp://worker:1 cannot take partition .*--worker-memory") as caught:
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


def test_tasks_that_come_late_find_the_door_shut(graphs, tmp_path):
    """A step, a load or a result of a client that has left: they had been on their way."""
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps, late = (Steps(tmp_path, [holder], spec) for _ in range(2))
    steps.step()
    holder.forget(late.name)
    with pytest.raises(StateLostError, match=rf"{late.name} has left"):
        late.step()
    holder.forget(steps.name)
    for call in (steps.step, lambda: holder.finish(steps.name, steps.graph, 0)):
        with pytest.raises(StateLostError):
            call()
    holder.release("lease")
    for call in (Steps(tmp_path, [holder], spec).step, lambda: holder.acquire("lease", spec, [0])):
        with pytest.raises(StateLostError):
            call()
    assert holder.inventory() == NOTHING
    assert not (late.store.path / "log").exists()


def test_steps_out_of_order_are_refused(graphs, tmp_path):
    """A state that is not at the step before would take a wrong one."""
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps = Steps(tmp_path, [holder], spec)
    steps.step()
    for index in (1, -1):
        steps.index += index
        with pytest.raises(StateLostError, match="is not at step"):
            steps.step()
    holder.release("lease")


@pytest.mark.parametrize("leave", ["forget", "release"])
@pytest.mark.parametrize("phase", ["kernel", "transfer"])
def test_who_leaves_waits_for_the_step_that_runs_and_ends_it(graphs, tmp_path, monkeypatch, leave, phase):
    """It ends at its next phase; nothing of it stays, and nobody waits for ever."""
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps = Steps(tmp_path, [holder], spec)
    reached, go = threading.Event(), threading.Event()

    def hook(name, *_):
        if name == phase:
            reached.set()
            assert go.wait(60)

    monkeypatch.setattr(tasks, "phase_hook", hook)
    with ThreadPoolExecutor(2) as pool:
        step = pool.submit(steps.step)
        assert reached.wait(60)
        left = pool.submit(getattr(holder, leave), steps.name if leave == "forget" else "lease")
        while not holder._left:
            assert not left.done()
        go.set()
        left.result(timeout=60)
        if phase == "kernel" and leave == "forget":
            with pytest.raises(StateLostError):
                step.result(timeout=60)
    assert holder.inventory()["searches"] == []
    holder.release("lease")
    assert holder.inventory() == NOTHING


def test_a_load_that_fails_leaves_nothing(graphs, monkeypatch):
    """Nor does it take what others hold."""
    holder, specs = worker(), [graph_spec(store, 2) for store in graphs]
    holder.acquire("a", specs[0], [0])
    before = holder.inventory()
    load = PartPlan.load
    monkeypatch.setattr(PartPlan, "load", lambda plan, *sizes: load(plan, *sizes) if plan.partition == 0 else damaged())
    with pytest.raises(CorruptStoreError, match="damaged"):
        holder.acquire("b", specs[1], [0, 1])
    holder.release("b")
    assert holder.inventory() == before
    holder.release("a")
    assert holder.inventory() == NOTHING


def damaged():
    raise CorruptStoreError("damaged")


def test_a_graph_that_cannot_be_loaded_anew_is_not_held(graphs, tmp_path, monkeypatch):
    """Its searches are told that their state is lost, and whoever asks for it gets it again."""
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps = Steps(tmp_path, [holder], spec)
    steps.step()
    ((key, part),) = holder._parts.items()
    with monkeypatch.context() as patch:
        patch.setattr(PartPlan, "load", lambda *_: damaged())
        with pytest.raises(CorruptStoreError):
            holder._shrink({key: part.residency})
    with pytest.raises(StateLostError):
        steps.step()
    holder.acquire("lease", spec, [0])
    assert [key[2] for key in holder.inventory()["parts"]] == [0]
    holder.release("lease")
    assert holder.inventory() == NOTHING


def test_another_graph_under_the_same_path_is_refused(graphs):
    """It may have been built anew since the client asked."""
    holder = worker()
    with pytest.raises(ClusterError, match="sees another graph at"):
        holder.acquire("lease", replace(graph_spec(graphs[0]), fingerprint="another"), [0])
    assert holder.inventory() == NOTHING
