"""``oocgraph bench spmv --device``: what can be counted is exact on devices that are the CPU, and times are left out there."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from oocgraph import arrays, generate_kronecker, open_graph
from oocgraph.bench import spmv_on_devices as module
from oocgraph.bench.spmv_on_devices import bench_spmv_on_devices
from oocgraph.cli import cli
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.memory import host_bytes
from oocgraph.types import ignore_progress
from tests.cuda_on_cpu.device import CpuDevice
from tests.reference_build import reference_build

pytestmark = pytest.mark.shim

SMALL = {"num_rounds": 1, "progress": ignore_progress}


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(9, tmp_path_factory.mktemp("bench") / "kron9.zarr")


@pytest.fixture
def on_shims(monkeypatch):
    """Let the command find two devices."""
    monkeypatch.setattr(arrays, "devices_choice", lambda _kind: ((CpuDevice(), CpuDevice(seed=1)), "of the test"))


def test_what_is_counted(kron, on_shims):
    done = CliRunner().invoke(cli, ["bench", "spmv", kron.url, "--device", "--rounds", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["is_executed_on_cpu"] is True
    assert found["peer"] is found["link_bytes_per_second"] is None
    one, two = found["num_devices"]
    n, edges = kron.num_rows, kron.attributes.num_stored_edges
    assert (one["devices"], two["devices"]) == (1, 2)
    assert one["resident_share"] == two["resident_share"] == 1
    assert one["link_bytes"] == 16 * n
    assert 24 * n <= two["link_bytes"] <= 24 * n + 8
    assert one["streamed_link_bytes"] >= 4 * edges
    assert one["balance"] == 1 <= two["balance"] <= 1.001 < two["equal_rows_balance"] <= 2
    assert not any("second" in name or "ratio" in name for name in (*one, *two))


def test_tables_for_people(kron, on_shims, monkeypatch):
    """With times, as a GPU would have them."""
    monkeypatch.setattr(module, "CudaDevice", CpuDevice)
    monkeypatch.setattr(module, "cusparse_product", lambda _device, matrix, x: (lambda: None, lambda: matrix @ x))
    done = CliRunner().invoke(cli, ["bench", "spmv", kron.url, "--device", "--rounds", "1"])
    assert done.exit_code == 0, done.output
    for text in ("equal rows balance", "columns merge", "ratio to peer", "device copy", "held"):
        assert text in done.stdout


def test_product_that_differs_is_named(kron, monkeypatch):
    multiply = module.DeviceMatrix.multiply
    monkeypatch.setattr(module.DeviceMatrix, "multiply", lambda self, ring: multiply(self, ring) + (not self.by_row))
    report = bench_spmv_on_devices(kron, [CpuDevice()], **SMALL)
    assert [text.partition(" differs")[0] for text in report.invalid] == ["the product (columns, 1 devices)"]


def test_what_cannot_be_measured_is_refused(kron, tmp_path, on_shims):
    with pytest.raises(BudgetError, match="the matrix in memory"):
        bench_spmv_on_devices(kron, [CpuDevice()], memory_budget=host_bytes() // 2, **SMALL)
    with pytest.raises(BudgetError, match="raise device_memory_budget"):
        bench_spmv_on_devices(kron, [CpuDevice()], device_memory_budget=10_000, **SMALL)
    reference_build([], [], tmp_path / "g", implied=(0, 3))
    with pytest.raises(OocGraphError, match="has no edge"):
        bench_spmv_on_devices(open_graph(tmp_path / "g"), [CpuDevice()], **SMALL)
    for options, message in ((["--device-memory", "1G"], "without --device"), (["--device", "--peer", "scipy"], "the peer is cuSPARSE")):
        done = CliRunner().invoke(cli, ["bench", "spmv", kron.url, *options])
        assert done.exit_code == 2
        assert message in done.stderr
