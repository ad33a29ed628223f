"""With device ``auto`` products, and searches over partitions, start GPUs only where that pays."""

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
from oocgraph.engine import in_process
from oocgraph.errors import DeviceError
from oocgraph.kernels.gpu_spmv import product_source
from oocgraph.kernels.semirings import semiring_of
from tests.arrays.fake_cupy import FakeCupy
from tests.stores import wide_indices

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


def test_threads_of_the_call_decide_not_those_configured(started, monkeypatch):
    """Ten seconds by one thread; by very many hardly any."""
    monkeypatch.setattr(spmv_module, "ENTRY_SECONDS", 10.0)
    with oocgraph.config.setting("threads", 1000):
        assert oocgraph.spmv(csr_array(DENSE), np.ones(3), resources=Resources(threads=1)).tolist() == [2, 7]
    assert started == [None]


def test_a_small_matrix_that_is_open_stays_on_the_processor(started, monkeypatch):
    """The start of a GPU has to pay for all products for which it was opened."""
    matrix = csr_array(DENSE)
    with oocgraph.open_runtime(matrix, resources=Resources(threads=1)) as runtime:
        assert oocgraph.spmv(matrix, np.ones(3), runtime=runtime).tolist() == [2, 7]
        assert started == []
        monkeypatch.setattr(spmv_module, "ENTRY_SECONDS", 10.0 / in_process.MANY_SEARCHES)
        assert oocgraph.spmv(matrix, np.ones(3), runtime=runtime).tolist() == [2, 7]
        assert started == [None]


def test_partitions_of_a_small_graph_stay_on_the_processor(started, monkeypatch, tmp_path):
    """One search has to pay for the start, or all for which they were opened."""
    graph, options = oocgraph.build_csr(([0, 1], [1, 2]), tmp_path / "g.zarr"), {"partition": "1d", "resources": Resources(threads=1)}
    assert oocgraph.bfs(graph, 0, **options).depth == 2
    oocgraph.open_runtime(graph, **options).close()
    assert started == []
    monkeypatch.setattr(in_process, "EDGE_SECONDS", 4.0 / in_process.MANY_SEARCHES)
    assert oocgraph.bfs(graph, 0, **options).depth == 2
    assert started == []
    oocgraph.open_runtime(graph, **options).close()
    assert started == [None]


@pytest.mark.parametrize(("semiring", "entry_bytes"), [("plus_times", 4 + 8), ("or_and", 4 + 1), ("plus_second", 4)])
def test_what_crosses_the_link_is_what_a_device_takes(semiring, entry_bytes):
    """And the kernels are those of the dtypes in which it computes."""
    ring = semiring_of(semiring)
    x = np.ones(3, np.bool_ if ring.is_boolean else np.float64)
    operand = matrix_operand(csr_array(DENSE), x, ring, transpose=False)
    work = spmv_module.product_work(operand, threads=1)
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
    work = spmv_module.product_work(graph_operand(graph, np.ones(3), ring, transpose=False, weight=None), threads=1)
    assert work.link_bytes == 2 * 8
    assert work.sources == (product_source(np.dtype(np.int64), np.dtype(np.float64)),)
