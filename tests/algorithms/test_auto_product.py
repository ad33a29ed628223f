"""A product with device ``auto`` starts GPUs only where that pays."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import spmv as spmv_module
from oocgraph.algorithms import spmv_on_device
from oocgraph.algorithms.operands import graph_operand, matrix_operand
from oocgraph.arrays import cuda, drivers
from oocgraph.errors import DeviceError
from oocgraph.kernels.gpu_spmv import product_source
from oocgraph.kernels.semirings import semiring_of
from oocgraph.types import wide_indices
from tests.arrays.fake_cupy import FakeCupy

DENSE = np.array([[0, 2.0, 0], [3.0, 0, 4.0]])


@pytest.fixture
def started(monkeypatch):
    """Let a driver be found; return the attempts to use a GPU."""
    found = []

    def refuse(ordinal):
        found.append(ordinal)
        raise DeviceError("of the test")

    monkeypatch.setattr(drivers, "driver_version", lambda: 13000)
    monkeypatch.setattr(cuda, "usable_cupy", refuse)
    return found


@pytest.mark.parametrize("kind", [csr_array, csc_array, coo_array])
def test_small_matrices_stay_on_the_processor(started, monkeypatch, kind):
    resources = Resources(device="auto")
    assert oocgraph.spmv(kind(DENSE), np.ones(3), resources=resources).tolist() == [2, 7]
    assert started == []
    with pytest.raises(DeviceError, match="of the test"):
        oocgraph.spmv(kind(DENSE), np.ones(3), resources=Resources(device="cuda"))
    monkeypatch.setattr(spmv_module, "ENTRY_SECONDS", 10.0)
    assert oocgraph.spmv(kind(DENSE), np.ones(3), resources=resources).tolist() == [2, 7]
    assert started == [None, None]


@pytest.mark.parametrize(("semiring", "entry_bytes"), [("plus_times", 4 + 8), ("or_and", 4 + 1), ("plus_second", 4)])
def test_what_crosses_the_link_is_what_a_device_takes(semiring, entry_bytes):
    """And the kernels are those of the dtypes in which it computes."""
    ring = semiring_of(semiring)
    x = np.ones(3, np.bool_ if ring.is_boolean else np.float64)
    operand = matrix_operand(csr_array(DENSE), x, ring, transpose=False)
    work = spmv_module.product_work(operand)
    assert (operand.num_entries, work.link_bytes) == (3, 3 * entry_bytes)
    value = np.dtype(np.float32 if ring.is_boolean else np.float64)
    assert work.sources == (product_source(np.dtype(np.uint32), value),)


def test_cupy_computes_on_the_device_of_its_matrix(monkeypatch):
    """Whichever is current for the user, and that stays."""
    cupy, there = FakeCupy(count=2), []
    values = type("ndarray", (), {"__module__": "cupy", "device": SimpleNamespace(id=1)})()
    monkeypatch.setattr(cuda, "usable_cupy", lambda ordinal: (cupy, ordinal))
    monkeypatch.setattr(cuda.CudaDevice, "asarray", lambda _self, x: x)
    monkeypatch.setattr(spmv_on_device, "multiply_where_it_is", lambda *_, **__: there.append(cupy.runtime.getDevice()))
    oocgraph.spmv(SimpleNamespace(data=values, shape=(2, 3)), values)
    assert (there, cupy.runtime.getDevice()) == ([1], 0)


def test_a_graph_of_int64_needs_other_kernels(tmp_path):
    ring = semiring_of("plus_second")
    with wide_indices():
        graph = oocgraph.build_csr(([0, 1], [1, 2]), tmp_path / "g.zarr", directed=True)
    work = spmv_module.product_work(graph_operand(graph, np.ones(3), ring, transpose=False, weight=None))
    assert work.link_bytes == 2 * 8
    assert work.sources == (product_source(np.dtype(np.int64), np.dtype(np.float64)),)
