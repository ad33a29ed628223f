"""What a worker holds: states and partitions of those that are there, nothing of those that have left."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from oocgraph.cluster.specs import StateLostError
from oocgraph.cluster.worker import OocGraphPlugin
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.errors import ClusterError, CorruptStoreError
from oocgraph.partition.vertex_partition import partition_vertices
from tests.cluster.holders import NOTHING, Steps, graph_spec, levels_in_process, two_graphs, worker
from tests.processes import PATIENCE_SECONDS, open_files


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return two graphs of 20,000 vertices and 3 MiB of edges."""
    return two_graphs(tmp_path_factory.mktemp("graphs"))


def test_steps_on_two_workers(graphs, tmp_path):
    """They tell what they do, and keep nothing afterwards."""
    store = graphs[0]
    spec, workers = graph_spec(store, 2), [worker(), worker()]
    for p, holder in enumerate(workers):
        (figures,) = holder.acquire("lease", spec, [p])
        assert (figures["partition"], figures["worker"], figures["num_owned"]) == (
            p,
            "tcp://worker:1",
            partition_vertices(store, 2).num_owned[p],
        )
    steps = Steps(tmp_path, workers, spec, direction="auto")
    figures = steps.finish()
    assert steps.levels(partition_vertices(store, 2)).tolist() == levels_in_process(store).tolist()
    assert sum(one["num_reached"] for one in figures) == (levels_in_process(store) >= 0).sum()
    assert len(steps.reports) == steps.index + 1
    found = sum(one["num_found"] + sum(one["num_found_early"]) for both in steps.reports for one in both)
    assert found == {both[1]["num_reached"] for both in steps.reports[-1:]}.pop()
    for holder in workers:
        assert [key[2] for key in holder.inventory()["parts"]] == [workers.index(holder)]
        holder.forget(steps.name)
        holder.release("lease")
        assert holder.inventory() == NOTHING
        assert holder.leases() == []


def test_no_file_stays_open(graphs, tmp_path, monkeypatch):
    """Neither of the graph nor of a log."""
    monkeypatch.setattr(ShardPlan, "residency", on_disk(ShardPlan.residency))
    holder, spec = worker(), graph_spec(graphs[0])
    holder.acquire("lease", spec, [0])
    steps = Steps(tmp_path, [holder], spec)
    steps.step()
    assert open_files(graphs[0].url)
    assert open_files(tmp_path)
    holder.release("lease")
    assert not open_files(graphs[0].url, tmp_path)
    assert holder.inventory() == NOTHING


def test_memory_is_given_back_without_a_collection_of_garbage(graphs, tmp_path):
    """Which takes 0.1 s in a process with Dask, and as long as a search of a small graph."""
    holder, spec = worker(), graph_spec(graphs[0])
    gc.disable()
    try:
        holder.acquire("lease", spec, [0])
        steps = Steps(tmp_path, [holder], spec)
        steps.finish()
        (part,) = holder._parts.values()
        graph = part.runtime.graph
        held = [weakref.ref(one) for one in (part.runtime, part.runtime.owned, graph.pull.resident, graph.push.resident)]
        del part, graph
        holder.release("lease")
        assert [one() is None for one in held] == [True] * len(held)
    finally:
        gc.enable()


def on_disk(planned, num_planes=6):
    """Replace `ShardPlan.residency`: a few planes in memory, no row, and much room for tails that are kept."""

    def residency(plan, **options):
        return replace(planned(plan, **options), num_planes=num_planes, num_resident=(0,), cache_slots=64, num_kept=1 << 20)

    return residency


@pytest.mark.parametrize("stop", [0, 1, 2])
def test_a_search_goes_on_when_its_graph_is_loaded_anew_with_less(graphs, tmp_path, monkeypatch, stop):
    """The tails that it kept began after more planes than there are now."""
    monkeypatch.setattr(ShardPlan, "residency", on_disk(ShardPlan.residency))
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
    assert steps.levels(partition_vertices(graphs[0], 1)).tolist() == levels_in_process(graphs[0], 15_000).tolist()
    holder.release("lease")


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
            assert go.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(OocGraphPlugin, "on_phase", hook)
    with ThreadPoolExecutor(2) as pool:
        step = pool.submit(steps.step)
        assert reached.wait(PATIENCE_SECONDS)
        left = pool.submit(getattr(holder, leave), steps.name if leave == "forget" else "lease")
        while not holder._left:
            assert not left.done()
        go.set()
        left.result(timeout=PATIENCE_SECONDS)
        if phase == "kernel":
            with pytest.raises(StateLostError):
                step.result(timeout=PATIENCE_SECONDS)
    assert holder.inventory()["searches"] == []
    holder.release("lease")
    assert holder.inventory() == NOTHING


def test_a_load_that_fails_leaves_nothing(graphs, monkeypatch):
    """Nor does it take what others hold."""
    holder, specs = worker(), [graph_spec(store, 2) for store in graphs]
    holder.acquire("a", specs[0], [0])
    before = holder.inventory()
    load = ShardPlan.load
    monkeypatch.setattr(ShardPlan, "load", lambda plan, *sizes: load(plan, *sizes) if plan.partition == 0 else damaged())
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
        patch.setattr(ShardPlan, "load", lambda *_: damaged())
        with pytest.raises(CorruptStoreError):
            holder._shrink({key: part.residency})
    with pytest.raises(StateLostError):
        steps.step()
    holder.acquire("lease", spec, [0])
    assert [key[2] for key in holder.inventory()["parts"]] == [0]
    holder.release("lease")
    assert holder.inventory() == NOTHING


def test_another_graph_under_the_same_path_is_refused(graphs):
    """It may have been built again since the client asked."""
    holder = worker()
    with pytest.raises(ClusterError, match="sees another graph at"):
        holder.acquire("lease", replace(graph_spec(graphs[0]), fingerprint="another"), [0])
    assert holder.inventory() == NOTHING
