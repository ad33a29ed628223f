"""``oocgraph bench gpu``: what is measured where, that figures agree with each other, that budgets hold; on the CPU, and on a GPU."""

from __future__ import annotations

import json
import os
import statistics

import numpy as np
import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph import generate_kronecker
from oocgraph.bench import disk, gpu_rates, gpu_sweep
from oocgraph.bench.disk import measure_disk
from oocgraph.bench.gpu import bench_gpu
from oocgraph.bench.gpu_cases import Case, Resources, cases_of, measure_case
from oocgraph.bench.gpu_kernels import METHODS, measure_methods, measure_preparation, power_law
from oocgraph.bench.gpu_rates import measure_device
from oocgraph.bench.gpu_sweep import SweepRuntime
from oocgraph.bench.gpu_targets import NO_DEVICE, TARGETS, verdicts
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.cli import cli
from oocgraph.commands import bench_gpu as command
from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.device_graph import UPLOAD_BYTES
from oocgraph.errors import DeviceError, OocGraphError, ValidationError
from oocgraph.kernels.gpu import GpuKernels
from oocgraph.store.fetched import ZarrArray
from oocgraph.types import ignore_progress
from oocgraph.verify import verify_bfs
from tests.bench.gpu_figures import planned_as_large
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.test_part import make_store

NUM_SOURCES = 3
SMALL = {"num_sources": NUM_SOURCES, "seed": 1, "progress": ignore_progress, "prepared_vertices": 5000}
STATE = 1 << 19
"""Bytes for what does not grow with the graph: queues, log, counters."""


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(12, tmp_path_factory.mktemp("bench") / "kron12.zarr")


@pytest.fixture(scope="module")
def on_cpu(kron):
    """One run on the CPU: edges all on the device, the rest of two budgets in host memory and on disk."""
    device = CpuDevice(total_bytes=64 << 20)
    with planned_as_large(FIXED_BYTES=STATE):
        report = bench_gpu([kron], device=device, budgets=("230%", "800K"), emulated=True, **SMALL)
    return device, report, report.metrics


def cases(figures):
    return {(case["edges"], case["budget_share"]): case for case in figures["graphs"][0]["cases"]}


@pytest.mark.shim
def test_one_run_has_every_case(on_cpu):
    """All resident, and each budget with the rest in host memory and on disk; one JSON object."""
    device, _, figures = on_cpu
    assert figures["device"] == "CPU (shim)"
    assert list(cases(figures)) == [("device", None), ("host", 2.3), ("disk", 2.3), ("host", None), ("disk", None)]
    assert all(case["refused"] is None for case in cases(figures).values())
    assert all(figures[name] > 0 for name in ("device_copy_bytes_per_second", "link_bytes_per_second"))
    assert figures["graphs"][0]["disk_bytes_per_second"] > 0
    assert json.loads(json.dumps(figures)) == figures
    assert device.allocated_bytes == 0, "nothing stays on the device"


@pytest.mark.shim
def test_every_search_is_validated(on_cpu):
    """Those of the device and those of the processor beside."""
    _, report, figures = on_cpu
    assert report.invalid == ()
    assert figures["num_invalid"] == 0
    for case in cases(figures).values():
        assert case["num_sources"] == len(case["searches"]) == NUM_SOURCES
        assert all(one["valid"] for one in case["searches"])
    cpu = cases(figures)["device", None]["cpu"]
    assert len(cpu["seconds"]) == NUM_SOURCES
    assert cpu["num_invalid"] == 0
    assert all("cpu" not in case for place, case in cases(figures).items() if place != ("device", None))


@pytest.mark.shim
def test_all_cases_search_alike(on_cpu):
    """The same sources reach the same vertices, wherever the edges are."""
    reached = {tuple((one["source"], one["num_reached"], one["depth"]) for one in case["searches"]) for case in cases(on_cpu[2]).values()}
    assert len(reached) == 1


@pytest.mark.shim
def test_sums_are_those_of_the_levels(on_cpu):
    """Bytes over the link, batches, pieces and bytes read of a search are the sums over its levels; medians are those of the searches."""
    for case in cases(on_cpu[2]).values():
        for one in case["searches"]:
            on_device = [level["device"] for level in one["levels"] if level["device"] is not None]
            for name in ("link_bytes", "num_batches", "num_pieces", "idle_seconds"):
                assert one[name] == sum(level[name] for level in on_device)
            assert one["bytes_read"] >= sum(level["bytes_read"] for level in one["levels"])
            assert 0 <= one["overlap_seconds"] <= one["span_seconds"] + 1e-9
        fractions = [one["link_fraction"] for one in case["searches"]]
        assert case["median_link_fraction"] == statistics.median(fractions)
        assert case["worst_link_fraction"] == max(fractions)


@pytest.mark.shim
def test_sweeps_beside(kron, capsys):
    """Whole partitions in turn find the same, and move all edges in every iteration; refused where host memory lacks edges."""
    with planned_as_large(FIXED_BYTES=STATE):
        report = bench_gpu([kron], device=CpuDevice(total_bytes=64 << 20), budgets=("230%",), baseline="sweep", emulated=True, **SMALL)
    assert not report.invalid
    of = cases(report.metrics)
    assert [place for place, case in of.items() if "sweep" in case] == [("host", 2.3)]
    case = of["host", 2.3]
    sweep = case["sweep"]
    assert (len(sweep["searches"]), sweep["num_invalid"]) == (NUM_SOURCES, 0)
    assert sweep["num_partitions"] == -(-kron.edge_bytes // sweep["partition_bytes"]) > 1
    for one, theirs in zip(case["searches"], sweep["searches"], strict=True):
        assert theirs["link_bytes"] == kron.edge_bytes * len(one["levels"])
    assert case["link_to_sweep"] == statistics.median(
        one["link_bytes"] / theirs["link_bytes"] for one, theirs in zip(case["searches"], sweep["searches"], strict=True)
    )
    assert case["sweep_to_gpu"] > 0
    command.print_report(report.metrics)
    table = next(lines for lines in capsys.readouterr().out.split("edges ") if "sweep bytes" in lines)
    assert "230 %, rest in host memory" in table
    assert f"{sweep['num_partitions']}" in table


@pytest.mark.one_in(4)
@pytest.mark.shim
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["degree", "original"])
def test_sweeps_of_any_graph(tmp_path, directed, order, monkeypatch):
    """In-edges of directed graphs, rows cut by partitions anywhere, streams that run late: levels are those of the processor."""
    monkeypatch.setattr(gpu_sweep, "MIN_PARTITION_BYTES", 20)
    store = make_store(tmp_path / "g.zarr", 4, directed=directed, vertex_order=order)
    seed = 2 * directed + (order == "degree")
    with planned_as_large(MIN_BUFFER_BYTES=16), DeviceRuntime.open(store, device=CpuDevice(seed=seed, deferred=True)) as opened:
        least = opened.device_bytes - opened.graph.residency.resident_bytes - opened.graph.residency.plane_bytes
    with (
        planned_as_large(MIN_BUFFER_BYTES=16),
        DeviceRuntime.open(store, device=CpuDevice(seed=seed, deferred=True), device_memory_budget=least, max_planes=0) as runtime,
    ):
        sweep = SweepRuntime(runtime)
        assert sweep.num_partitions > 3
        for source in (1, 5):
            found = oocgraph.bfs(store, source, runtime=sweep, direction="pull")
            expected = oocgraph.bfs(store, source, resources=oocgraph.Resources(device="cpu"))
            np.testing.assert_array_equal(found.level, expected.level)
            verify_bfs(store, found)


@pytest.mark.shim
def test_a_sweep_that_is_wrong_is_reported(kron, monkeypatch):
    """Its results are validated as ours are."""
    take = SweepRuntime.pull_tails

    def skip_the_first(sweep, state):
        sweep.graph.pull.host[: sweep.partition_edges] = 0
        return take(sweep, state)

    monkeypatch.setattr(SweepRuntime, "pull_tails", skip_the_first)
    with planned_as_large(FIXED_BYTES=STATE):
        report = bench_gpu([kron], device=CpuDevice(total_bytes=64 << 20), budgets=("230%",), baseline="sweep", emulated=True, **SMALL)
    assert any("sweep: " in wrong for wrong in report.invalid)


@pytest.mark.shim
def test_a_sweep_needs_all_edges_in_host_memory(kron):
    with (
        planned_as_large(FIXED_BYTES=STATE),
        DeviceRuntime.open(kron, device=CpuDevice(), device_memory_budget="800K", max_host_edges=0) as runtime,
        pytest.raises(OocGraphError, match="swept from host memory"),
    ):
        SweepRuntime(runtime)


@pytest.mark.shim
def test_what_crosses_the_link_of_a_graph_that_does_not_fit(tmp_path):
    """With a device budget of 10 % at most 2 % of the edge bytes, and a fifth of what sweeps move: all edges in every iteration."""
    store = generate_kronecker(18, tmp_path / "kron18.zarr")
    with planned_as_large(), DeviceRuntime.open(store, device=CpuDevice(), device_memory_budget=store.edge_bytes // 10) as runtime:
        assert runtime.graph.push.in_host_memory
        moved = [oocgraph.bfs(store, source, runtime=runtime) for source in source_ids(store, draw_sources(store, 5, 2).tolist())]
    assert 0 < statistics.median(one.link_bytes for one in moved) <= 0.02 * store.edge_bytes
    for one in moved:
        assert one.link_bytes <= 0.2 * store.edge_bytes * len(one.iterations)


@pytest.mark.shim
def test_edges_come_from_where_the_case_says(on_cpu):
    """No byte over the link when all are resident; none from disk when they are in host memory; none pinned when they are on disk."""
    of = cases(on_cpu[2])
    assert of["device", None]["worst_link_fraction"] == 0
    assert of["device", None]["median_slowest_tier_ratio"] is None
    for budget in (2.3, None):
        host, disk = of["host", budget], of["disk", budget]
        assert all(level["bytes_read"] == 0 for one in host["searches"] for level in one["levels"])
        assert sum(one["link_bytes"] for one in disk["searches"]) > 0
        assert sum(one["num_pieces"] for one in disk["searches"]) > 0
        assert all(one["slowest_tier_ratio"] > 0 for one in disk["searches"] if one["link_bytes"])
        assert host["pinned_bytes"] > disk["pinned_bytes"]


@pytest.mark.shim
def test_budgets_hold(on_cpu, kron):
    """What was taken of the device is within the budget."""
    for (_, share), case in cases(on_cpu[2]).items():
        if share is not None:
            assert case["device_memory_budget"] == int(share * kron.edge_bytes)
        assert 0 < case["peak_device_bytes"] <= case["device_bytes"] <= case["device_memory_budget"]


@pytest.mark.shim
def test_peak_of_a_case_is_within_its_budget(kron, tmp_path):
    """Seen by the device itself, at any moment of loading and searching."""
    device, budget = CpuDevice(), 900 << 10
    sources = source_ids(kron, draw_sources(kron, 2, 1))
    with planned_as_large(FIXED_BYTES=STATE):
        resources = Resources(device=device, memory_budget="1G", threads=1, progress=ignore_progress)
        run = measure_case(Case(edges="disk", device_memory_budget=budget), kron, sources, resources, folder=tmp_path, beside_cpu=False)
    assert run.refused is None
    assert run.held["peak_device_bytes"] <= device.peak_bytes <= budget
    assert device.peak_pinned_bytes <= run.held["pinned_bytes"] + 2 * UPLOAD_BYTES
    assert run.invalid == [None, None]
    assert run.case.name == "900.0 KiB, rest on disk"


@pytest.mark.shim
def test_what_does_not_fit_is_told(kron):
    """A budget below the state, edges beyond device memory: the numbers, no failure; the processor is beside what can run."""
    device = CpuDevice(total_bytes=900 << 10)
    with planned_as_large(FIXED_BYTES=STATE):
        figures = bench_gpu([kron], device=device, budgets=("10%", "780K"), memory_budget="2G", emulated=True, **SMALL).metrics
    of = cases(figures)
    assert "device memory" in of["device", None]["refused"]
    assert "the state of" in of["host", 0.1]["refused"]
    assert "device memory budget" in of["disk", 0.1]["refused"]
    assert of["disk", None]["refused"] is None
    assert figures["graphs"][0]["unmeasured"] == "the edges do not fit in device memory"
    assert figures["graphs"][0]["methods"] == []
    assert sum("cpu" in case for case in of.values()) == 1
    (link,) = (row for row in figures["targets"] if "bytes over the link / edge bytes" in row["what"])
    assert link["verdict"].startswith("not measured: refused: ")


@pytest.mark.shim
def test_invalid_results_are_told(kron, monkeypatch):
    """Each with its graph, case and source."""
    calls = []

    def verify(_store, _result, **_budget):
        calls.append(1)
        if len(calls) == 2:
            raise ValidationError("vertex 5 is deeper than its parent")

    monkeypatch.setattr("oocgraph.bench.results_on_disk.verify_bfs", verify)
    report = bench_gpu([kron], device=CpuDevice(), budgets=(), emulated=True, **SMALL)
    assert len(calls) == 2 * NUM_SOURCES
    assert len(report.invalid) == report.metrics["num_invalid"] == 1
    assert "kron12.zarr, all on the device, source" in report.invalid[0]


@pytest.mark.shim
def test_methods_find_the_same(kron):
    """Each way to gather finds the next level of the largest frontiers, from the same state, and takes time."""
    (vertex,) = draw_sources(kron, 1, 1)
    with DeviceRuntime.open(kron, device=CpuDevice(), memory_budget="1G") as runtime:
        rows = measure_methods(runtime, source_ids(kron, [vertex])[0], int(vertex))
        assert rows
        for row in rows:
            assert row["wrong"] == []
            assert row["frontier_edges"] >= row["frontier"] > 0
            assert all(row[f"{name}_seconds"] > 0 for name in METHODS)
            assert row["serial_to_hybrid"] == row["serial_seconds"] / row["hybrid_seconds"]
        assert max(row["frontier"] for row in rows) == rows[0]["frontier"]


@pytest.mark.shim
@pytest.mark.parametrize("num_vertices", [1, 70, 20000])
def test_preparation_counts_rows_and_edges(num_vertices):
    """A tenth of the vertices, and the sum of their degrees."""
    device = CpuDevice()
    made = measure_preparation(device, GpuKernels(device, np.dtype(np.uint32)), num_vertices)
    active = np.random.default_rng(1).integers(0, 10, num_vertices, np.uint8) == 0
    if not active.any():
        assert made is None
        return
    _, first, edge, value = power_law(num_vertices)
    degrees = np.repeat(value, np.diff(np.append(first, num_vertices)))
    assert edge[-1] + (num_vertices - first[-1]) * value[-1] == degrees.sum()
    assert made["num_rows"] == made["num_active"] == np.count_nonzero(active)
    assert made["num_edges"] == degrees[active].sum()
    assert 0 < made["kernel_seconds"] <= made["seconds"]


def test_preparation_without_room_is_not_measured():
    """A device of a few KiB."""
    device = CpuDevice(total_bytes=4096)

    class Kernels:
        dtype = np.dtype(np.uint32)

    assert measure_preparation(device, Kernels(), 1 << 20) is None


def test_rates_are_those_of_the_events(monkeypatch):
    """Bytes read and written within the device, bytes once over the link; nothing stays allocated."""
    device = CpuDevice(total_bytes=1 << 22)
    monkeypatch.setattr(device, "seconds", lambda _start, _stop: 0.5)
    rates = measure_device(device, link_bytes=1 << 18)
    assert rates.device_copy == 2 * (1 << 20) / 0.5
    assert rates.link == (1 << 18) / 0.5
    assert device.allocated_bytes == device.pinned_bytes == 0
    assert device.copied_bytes["on_device"] == (gpu_rates.COPIES + 1) << 20


def test_disk_is_read_whole(kron, monkeypatch):
    """Every byte of the chunks once, past the page cache where the file system has that."""
    array, reads = kron.array("out/indices"), []
    preadv = os.preadv
    monkeypatch.setattr(disk.os, "preadv", lambda *args: reads.append(preadv(*args)) or reads[-1])
    monkeypatch.setattr(disk, "READ_BYTES", 4096)
    rate = measure_disk([array])
    assert rate.bytes_per_second > 0
    assert sum(reads) == array.num_chunks * array.chunk_length * array.dtype.itemsize
    assert "page cache" in rate.how


def test_disk_under_a_compressed_graph_has_no_figure():
    """Its bytes are not those of the edges."""
    rate = measure_disk([object.__new__(ZarrArray)])
    assert rate.bytes_per_second is None
    assert "plain files" in rate.how


def test_targets_are_verdicts():
    """Met, missed, or why not measured; bounds that need no device are judged without one."""
    graph = {
        "graph": "kron26.zarr",
        "cases": [
            {"edges": "device", "budget_share": None, "refused": None, "median_device_teps": 120e9, "median_results_ratio": 2.5},
            {
                "edges": "host",
                "budget_share": 0.1,
                "refused": None,
                "median_each_edge_once_ratio": 0.3,
                "median_link_fraction": 0.016,
                "link_to_sweep": 0.1,
            },
            {"edges": "disk", "budget_share": 0.1, "refused": "too small", "case": "10 %, rest on disk"},
        ],
        "methods": [{"serial_to_hybrid": 5.0, "best_other_to_hybrid": 1.2}, {"serial_to_hybrid": 2.0, "best_other_to_hybrid": 1.1}],
        "plane_scan": {"device_copy_fraction": 0.8},
        "unmeasured": None,
    }
    rows = verdicts([graph], {"seconds": 0.0003}, emulated=False)
    told = [row["verdict"] for row in rows]
    assert told == ["met", "met", "missed", "met", "met", "not measured: refused: 10 %, rest on disk", "met", "missed", "met", "met"]
    assert [row["must_reach"] for row in rows][:4] == [">= 100", "<= 3", "<= 0.25", "<= 0.02"]
    emulated = [row["verdict"] for row in verdicts([graph], None, emulated=True)]
    assert emulated == [NO_DEVICE if target.needs_device else "met" for target in TARGETS] + [NO_DEVICE]


@pytest.mark.parametrize("budget", ["0%", "x%", "nan%", "much"])
def test_budget_that_is_no_size_is_refused(kron, budget):
    """Before anything is measured."""
    with pytest.raises(OocGraphError, match="is not a s"):
        cases_of(kron, (budget,))


def test_command_without_a_gpu_says_why(kron, monkeypatch):
    """The device's message, exit code 2, no figures."""

    def refuse(_kind, _ordinal=None):
        raise DeviceError("no NVIDIA driver was found")

    monkeypatch.setattr("oocgraph.arrays.device_choice", refuse)
    outcome = CliRunner().invoke(cli, ["bench", "gpu", kron.url, "--json"])
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert "no NVIDIA driver was found" in outcome.stderr


@pytest.mark.shim
@pytest.mark.parametrize("as_json", [False, True])
def test_command_generates_a_graph(monkeypatch, tmp_path, as_json):
    """Without an argument a Kronecker graph, in --folder, where nothing stays; tables or one JSON object."""
    monkeypatch.setattr("oocgraph.arrays.device_choice", lambda _kind: type("Choice", (), {"device": CpuDevice()}))
    monkeypatch.setitem(bench_gpu.__kwdefaults__, "prepared_vertices", 1000)
    arguments = [
        "bench",
        "gpu",
        "--scale",
        "8",
        "--sources",
        "2",
        "--folder",
        str(tmp_path),
        "--device-memory",
        "10%",
        "--baseline",
        "sweep",
    ]
    outcome = CliRunner().invoke(cli, [*arguments, *(["--json"] if as_json else [])])
    assert outcome.exit_code == 0, outcome.output
    assert not list(tmp_path.iterdir())
    if as_json:
        assert len(json.loads(outcome.stdout)["targets"]) == len(TARGETS) + 1
    else:
        assert "kron8.zarr" in outcome.stdout
        assert "10 %, rest on disk: not measured: the device memory budget" in outcome.stdout


@pytest.mark.shim
def test_tables_hold_every_case(on_cpu, capsys):
    """One line of each table for each case that was measured."""
    command.print_report(on_cpu[2])
    shown = capsys.readouterr().out
    assert shown.count("all on the device") == 3
    assert shown.count("800.0 KiB, rest on disk") == 3
    assert "ways to gather neighbours" in shown
    assert NO_DEVICE in shown


@pytest.mark.gpu
def test_on_a_gpu(cuda_device, tmp_path):
    """Every case of a graph with room for its state, judged by the device's times."""
    store = generate_kronecker(18, tmp_path / "kron18.zarr")
    report = bench_gpu([store], device=cuda_device, budgets=("60%",), **SMALL)
    figures = report.metrics
    assert report.invalid == ()
    assert all(case["refused"] is None for case in cases(figures).values())
    assert NO_DEVICE not in {row["verdict"] for row in figures["targets"]}
    for case in cases(figures).values():
        assert case["peak_device_bytes"] <= case["device_memory_budget"] + (256 << 20), "kernels, and what the driver rounds up"
