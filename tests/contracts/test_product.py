"""Every place where products are made keeps to the contract."""

from __future__ import annotations

import pytest

from oocgraph import Resources
from oocgraph.algorithms import devices as devices_module
from oocgraph.products import device_product
from oocgraph.sparse import edge_stream
from tests.contracts.product import ProductContract
from tests.cuda_on_cpu.device import CpuDevice


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Cut rows many times, even of small graphs."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 60)
    monkeypatch.setattr(device_product, "PIECE_ENTRIES", 7)
    monkeypatch.setattr(device_product, "MIN_PIECE_ENTRIES", 5)


class TestInProcess(ProductContract):
    @pytest.fixture
    def options(self):
        return {"resources": Resources(threads=3, device="cpu")}


@pytest.mark.shim
class TestOnDevices(ProductContract):
    @pytest.fixture
    def options(self, monkeypatch):
        devices = tuple(CpuDevice(seed=i, deferred=True) for i in range(3))
        monkeypatch.setattr(devices_module, "devices_choice", lambda _kind, **_: (devices, "shims"))
        return {}


class TestOnCluster(ProductContract):
    @pytest.fixture
    def options(self, threads_client):
        return {"client": threads_client}
