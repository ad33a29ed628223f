"""Nothing on a device is let go of while a stream has work on it: what is allocated next would get its memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import oocgraph
from oocgraph.algorithms import devices as devices_module
from oocgraph.cluster.worker_device import WorkerDevice
from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.device_graph import Uploader
from oocgraph.kernels.gpu import GpuKernels
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice
from tests.cuda_on_cpu.memory import POISON, Uses
from tests.engine.device_graphs import cramped  # noqa: F401
from tests.engine.device_parts import open_device_parts
from tests.engine.parts import run_parts

pytestmark = needs_shim

LATEST = 0
"""The order in which streams do only what the host waits for, and that as late as they may."""


@pytest.fixture
def dropped():
    """Return what has been let go of too early so far."""
    gc.collect()
    Uses.dropped.clear()
    yield Uses.dropped
    Uses.dropped.clear()


@pytest.fixture
def device():
    return CpuDevice(LATEST, deferred=True)


@pytest.fixture
def graph(tmp_path):
    return oocgraph.generate_kronecker(6, tmp_path / "g.zarr", seed=1)


def test_memory_that_a_stream_has_work_on_is_poisoned(device, dropped):
    """What this file relies on: with one copy under way, and with none."""
    stream, source = device.stream(), device.pinned(64)
    for waits in (True, False):
        array = device.empty(64, np.uint8)
        device.copy(source, array, stream)
        (window,) = [operation for operation in stream.queue][-1:]
        if waits:
            device.synchronize(stream)
        del array
        assert len(dropped) == (not waits)
    assert dropped == ["device memory of 64 bytes, before 1 operations on it"]
    with pytest.raises(RuntimeError, match="freed before the operation"):
        window.run()
    assert POISON != 0


def test_kernels_that_are_made_and_not_used(device, dropped):
    """A worker compiles its kernels so, and another graph is loaded next."""
    for dtype in (np.uint32, np.int64):
        GpuKernels(device, np.dtype(dtype))
        worker = WorkerDevice("tcp://here")
        worker.warm(device, np.dtype(dtype))
    gc.collect()
    assert dropped == []


def test_a_search_and_its_end(device, dropped, graph, cramped):  # noqa: F811
    """With all edges on the device, and with few."""
    for seed in (None, 1, 2, 3):
        if seed is not None:
            cramped(seed)
        with DeviceRuntime.open(graph, device=device) as runtime:
            runtime.search(np.array([0]))
        del runtime
        gc.collect()
        assert dropped == []


def test_partitions_and_their_end(device, dropped, graph):
    parts = open_device_parts(graph, 2, device, cramp=3)
    run_parts(parts, [2], direction="auto")
    for part in parts:
        part.close()
    del parts, part
    gc.collect()
    assert dropped == []


def test_a_loading_that_fails(device, dropped, graph, monkeypatch):
    """While copies of what was read before are under way."""
    uploads = []

    def fail(self, array, start, target):
        uploads.append(1)
        if len(uploads) > 1:
            raise OSError("of the test")
        return stored(self, array, start, target)

    stored = Uploader.stored
    monkeypatch.setattr(Uploader, "stored", fail)
    with pytest.raises(OSError, match="of the test"):
        DeviceRuntime.open(graph, device=device)
    gc.collect()
    assert (len(uploads), dropped) == (2, [])


def test_a_product(device, dropped, graph, monkeypatch):
    monkeypatch.setattr(devices_module, "devices_choice", lambda _kind, **_: ((device,), "of the test"))
    oocgraph.spmv(graph, np.ones(graph.num_vertices))
    gc.collect()
    assert dropped == []
