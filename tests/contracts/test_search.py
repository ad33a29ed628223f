"""Every way to search keeps to the contract: on the processor, on a device, in parts, from memory and from disk, on a cluster."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import oocgraph
from oocgraph import Resources, open_graph
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.engine.in_process import open_in_process
from oocgraph.engine.shard_plan import ShardPlan
from tests import every_knob
from tests.algorithms.test_bfs import cramped as cramped_plan
from tests.contracts.search import RuntimeContract, SearchContract
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.device_graphs import cramped as cramped_on_device
from tests.engine.parts import cramped

__all__ = ["cramped_on_device", "cramped_plan"]


class TestInMemory(RuntimeContract):
    @pytest.fixture
    def open_runtime(self):
        return lambda store: oocgraph.open_runtime(store, resources=Resources(device="cpu", threads=2))


class TestFromDisk(RuntimeContract):
    @pytest.fixture
    def open_runtime(self, cramped_plan):
        cramped_plan(4)
        return lambda store: open_in_process(open_graph(store), Resources(device="cpu", threads=2), io_threads=2)


@pytest.mark.shim
class TestOnDevice(RuntimeContract):
    directions = ("auto", "push")  # a processor executes kernels slowly

    @pytest.fixture
    def open_runtime(self):
        return lambda store: open_in_process(open_graph(store), Resources(threads=2), device=CpuDevice(seed=1))


@pytest.mark.shim
class TestOnDeviceFromElsewhere(RuntimeContract):
    directions = ("pull",)

    @pytest.fixture
    def open_runtime(self, cramped_on_device):
        cramped_on_device(24)  # a third of the edges on the device, most of them on the host, the rest in files
        device = CpuDevice(seed=2, deferred=True)
        return lambda store: open_in_process(open_graph(store), Resources(threads=2), device=device, io_threads=2)


class TestOnCluster(RuntimeContract):
    @pytest.fixture
    def open_runtime(self, threads_client, monkeypatch):
        monkeypatch.setattr(ShardPlan, "residency", cramped(ShardPlan.residency, 7))

        def opened(store):
            return ClusterRuntime.open(store, client=threads_client, num_partitions=min(3, max(1, store.num_rows)))

        return opened


class OverPartsContract(SearchContract):
    """Over partitions that were made before; of a graph without edges there are none."""

    directions = ("auto", "push")
    policy = "2d"

    @pytest.fixture
    def options(self):
        """Where it runs."""
        return {}

    @pytest.fixture
    def opened(self, options, tmp_path):
        @contextmanager
        def opened(store):
            parts = self.policy
            if store.num_rows:
                parts = every_knob.partition(store, min(4, store.num_rows), self.policy, tmp_path / "parts", compiled=False)
            yield lambda source, **more: oocgraph.bfs(store, source, partition=parts, **options, **more)

        return opened


class TestOver2DParts(OverPartsContract):
    pass


class TestOver1DParts(OverPartsContract):
    policy = "1d"


class TestOverPartsOnCluster(OverPartsContract):
    @pytest.fixture
    def options(self, threads_client):
        return {"client": threads_client}
