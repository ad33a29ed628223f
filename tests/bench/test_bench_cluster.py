"""Benchmarks on a cluster: what is compared, what is counted, and that both sides may live apart."""

from __future__ import annotations

import json
import statistics
import sys
from contextlib import nullcontext

import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

from oocgraph import generate_kronecker
from oocgraph.bench.child import Child
from oocgraph.bench.cluster import bench_cluster
from oocgraph.bench.in_process import InProcessPeer
from oocgraph.bench.worker_sampler import WorkerSamplers
from oocgraph.cli import cli
from oocgraph.cluster.worker import inventory
from oocgraph.errors import OocGraphError, ValidationError
from oocgraph.store.vertices import VertexIds
from oocgraph.types import ignore_progress
from tests.capped import run_capped

NUM_SOURCES = 3


@pytest.fixture(scope="module")
def kron(disk_path_factory):
    return generate_kronecker(13, disk_path_factory.mktemp("bench") / "kron13.zarr")


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread, each a process."""
    scheduler = {"dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None, scheduler_kwargs=scheduler) as cluster,
        Client(cluster) as client,
    ):
        yield client


def bench(store, client, **options):
    asked = {"num_sources": NUM_SOURCES, "seed": 1, "progress": ignore_progress, **options}
    return bench_cluster(store, open_client=lambda: nullcontext(client), **asked)


@pytest.fixture(scope="module")
def figures(kron, client, disk_path_factory):
    """Figures of a run whose scratch folder and workers are empty when it ends."""
    scratch = disk_path_factory.mktemp("scratch")
    figures = bench(kron, client, scratch=str(scratch)).metrics
    assert not list(scratch.iterdir())
    assert all(not held["parts"] and not held["searches"] for held in client.run(inventory).values())
    return json.loads(json.dumps(figures))


def test_both_sides_search_the_same_sources(figures):
    """The same threads, planes and memory; each result is valid, and reaches as many vertices."""
    assert figures["num_invalid"] == 0
    assert figures["threads"] == figures["num_workers"] == figures["num_partitions"] == 2
    assert figures["planes_resident"] == figures["in_process_planes_resident"] > 0
    assert figures["memory_budget"] == figures["in_process_memory_budget"] == sum(one["memory_budget"] for one in figures["workers"])
    assert len(figures["searches"]) == NUM_SOURCES
    for one in figures["searches"]:
        assert one["valid"]
        for name in ("source", "num_reached", "depth", "num_reached_edges"):
            assert one["result"].get(name) == one["in_process"].get(name)


def test_overhead_is_the_difference_by_the_iterations(figures):
    """Ratio and overhead follow from the seconds of each source; the median is over the sources."""
    searches = figures["searches"]
    for one in searches:
        seconds, other = one["result"]["seconds"], one["in_process"]["seconds"]
        assert one["ratio"] == pytest.approx(seconds / other)
        assert one["overhead_ms_per_iteration"] == pytest.approx(1000 * (seconds - other) / len(one["result"]["iterations"]))
        assert one["call_seconds"] > one["seconds"] + one["result_seconds"]
    assert figures["median_ratio"] == statistics.median(one["ratio"] for one in searches)
    assert figures["worst_overhead_ms_per_iteration"] == max(one["overhead_ms_per_iteration"] for one in searches)


def test_hops_and_bytes_are_counted(figures):
    """One hop for each exchanged level at most; what is sent is within the bound, and Dask has sent at least that."""
    for one in figures["searches"]:
        assert 1 <= one["num_hops"] <= one["num_steps"] <= one["num_iterations"] + 1
        assert one["num_epochs"] == 1
        assert one["sent_bytes"] <= one["bound_bytes"]
    assert figures["worst_sent_to_bound"] <= 1
    assert figures["transferred_bytes_per_iteration"] + figures["put_bytes_per_iteration"] >= figures["sent_bytes_per_iteration"] > 0


def test_workers_tell_of_themselves(figures):
    """Share of the graph, peak of the process, seconds on steps."""
    workers = figures["workers"]
    assert sum(one["num_edges"] for one in workers) > sum(one["num_owned"] for one in workers) > 0
    assert max(one["num_edges"] for one in workers) == pytest.approx(
        figures["edges_imbalance"] * statistics.mean(one["num_edges"] for one in workers)
    )
    for one in workers:
        assert one["peak_host_bytes"] > 40 << 20
        assert one["busy_seconds"] == pytest.approx(sum(search["busy_seconds"][one["worker"]] for search in figures["searches"]))
    assert figures["in_process_peak_host_bytes"] > 40 << 20
    assert 0 <= figures["client_growth_bytes"] < 200 << 20
    assert 0 < figures["busy_fraction"] <= 1


def test_apart_starts_the_process_when_the_workers_hold_nothing(kron, client, monkeypatch):
    """Neither the graph nor a search is left on the workers by then; the figures are the same ones."""
    held = []
    enter = InProcessPeer.__enter__

    def watched(peer):
        held.append([(one["parts"], one["searches"]) for one in client.run(inventory).values()])
        return enter(peer)

    monkeypatch.setattr(InProcessPeer, "__enter__", watched)
    report = bench(kron, client, apart=True, num_partitions=3)
    assert held == [[([], []), ([], [])]]
    assert report.metrics["apart"]
    assert not report.invalid
    assert report.metrics["num_partitions"] == 3
    assert sorted(p for one in report.metrics["workers"] for p in one["partitions"]) == [0, 1, 2]


def test_direction_is_that_of_both_sides(kron, client):
    """With a rule that takes every level by itself, each level is a step, and the last finds that there is nothing left."""
    report = bench(kron, client, direction="alpha-beta", num_sources=1)
    (search,) = report.metrics["searches"]
    assert not report.invalid
    assert search["num_steps"] >= search["num_iterations"]
    ours, theirs = ([one["direction"] for one in search[side]["iterations"]] for side in ("result", "in_process"))
    assert ours == theirs


def test_source_may_be_chosen(kron, client):
    """All searches start there."""
    (source,) = VertexIds(kron).ids_of([5]).tolist()
    report = bench(kron, client, source=str(source), num_sources=2)
    assert [one["source"] for one in report.metrics["searches"]] == [source, source]
    assert report.metrics["seed"] is None


def test_isolated_source_is_refused(kron, client):
    """There would be nothing to measure."""
    ids = VertexIds(kron)
    isolated = next(i for i in range(1 << 13) if ids.vertices_of(i)[0] < 0)
    with pytest.raises(OocGraphError, match=f"{isolated} is an isolated vertex"):
        bench(kron, client, source=isolated)


def test_one_invalid_result_is_exit_code_1(kron, client, monkeypatch):
    """Of either side; the rules that are broken are told with the source, and the figures are printed all the same."""
    calls = []

    def verify(_store, result, **_budget):
        calls.append(result)
        if len(calls) == 2:
            raise ValidationError("vertex 5 is deeper than its parent")

    monkeypatch.setattr("oocgraph.bench.results_on_disk.verify_bfs", verify)
    monkeypatch.setattr(InProcessPeer, "validate", lambda _peer: ["vertex 7 has two levels", None])
    arguments = ["bench", "cluster", kron.url, "--scheduler", client.scheduler.address, "--num-sources", "2", "--json"]
    outcome = CliRunner().invoke(cli, arguments)
    assert outcome.exit_code == 1
    figures = json.loads(outcome.stdout)
    assert figures["num_invalid"] == 2
    assert [one["valid"] for one in figures["searches"]] == [False, False]
    assert f"2 results are invalid; the first: source {figures['searches'][0]['source']}, in process: vertex 7" in outcome.stderr


def test_text_has_a_table_of_workers_and_one_of_sources(kron, client):
    """Without --json."""
    outcome = CliRunner().invoke(cli, ["bench", "cluster", kron.url, "--scheduler", client.scheduler.address, "--num-sources", "1"])
    assert outcome.exit_code == 0, outcome.output
    for text in ("median overhead ms per iteration", "peak host bytes", "tcp://127.0.0.1", "imbalance", "yes"):
        assert text in outcome.stdout


def test_worker_that_was_restarted_has_no_peak():
    """Its new process knows nothing of the old one: no figure rather than a wrong one."""

    class Restarted:
        status = "running"

        def run(self, call, *_arguments, **_options):
            return {"tcp://a": (10, 100), "tcp://b": None} if call.__name__ == "stop" else {}

    with WorkerSamplers(Restarted()) as samplers:
        pass
    assert list(samplers.workers) == ["tcp://a"]


def test_child_that_ends_is_an_error(tmp_path, monkeypatch):
    """Its exit code is in the message, whether it ends while it loads or afterwards; asking it again gives the same."""
    with pytest.raises(OocGraphError, match="the peer: its process ended with code 1"), Child("oocgraph.no_such_module", who="the peer"):
        pass
    (tmp_path / "brief.py").write_text("print('{}', flush=True)\nraise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    with Child("brief", who="the peer") as child:
        for _ in range(2):
            with pytest.raises(OocGraphError, match="the peer: its process ended with code 3"):
                child.ask("anything")


def test_error_of_the_process_is_told(tmp_path):
    """Its message, not its traceback."""
    peer = InProcessPeer(str(tmp_path / "no.zarr"), threads=1, memory_budget=1 << 30, max_planes=1, direction="auto", folder=tmp_path)
    with pytest.raises(OocGraphError, match=r"no\.zarr"), peer:
        pass


@pytest.mark.capped
def test_all_of_it_fits_under_one_cap(kron):
    """Client, scheduler and two workers, then the process alone: under a cap that both would not fit under is what --apart is for."""
    limit = 900 << 20
    options = ["--workers", 2, "--threads-per-worker", 1, "--worker-memory", "300M", "--num-sources", 2, "--apart", "--json"]
    done = run_capped(limit, [sys.executable, "-m", "oocgraph", "bench", "cluster", kron.url, *options])
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["num_invalid"] == 0
    assert figures["max_worker_peak_host_bytes"] <= figures["workers"][0]["memory_budget"]
