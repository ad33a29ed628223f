"""Where a GPU is attached, and whether it reaches the memory of another one."""

from __future__ import annotations

import pytest

from oocgraph.arrays.cuda import ERROR_PEER_ENABLED, CudaDevice
from oocgraph.errors import DeviceError
from tests.arrays.fake_cupy import CUDARuntimeError, FakeCupy


@pytest.fixture
def cupy():
    """Two GPUs that reach each other, as CUDA counts them."""
    module = FakeCupy(count=2)
    module.enabled = []
    module.runtime.deviceCanAccessPeer = lambda _device, _peer: 1
    module.runtime.deviceEnablePeerAccess = module.enabled.append
    return module


def test_address_on_the_bus(cupy):
    assert CudaDevice(cupy, 0).bus_id is None
    properties = cupy.runtime.getDeviceProperties(0) | {"pciDomainID": 0, "pciBusID": 0x3B, "pciDeviceID": 0}
    cupy.runtime.getDeviceProperties = lambda _ordinal: properties
    assert CudaDevice(cupy, 0).bus_id == "0000:3b:00.0"


def test_access_is_turned_on_where_it_can_be(cupy):
    one, other = CudaDevice(cupy, 0), CudaDevice(cupy, 1)
    assert one.reaches(one)
    assert not cupy.enabled
    assert one.reaches(other)
    assert cupy.enabled == [1]
    cupy.runtime.deviceCanAccessPeer = lambda _device, _peer: 0
    assert not one.reaches(other)
    assert not one.reaches(object())


@pytest.mark.parametrize(("status", "told"), [(ERROR_PEER_ENABLED, None), (1, "cudaError1")])
def test_access_that_is_on_already_is_no_error(cupy, status, told):
    def fail(_peer):
        raise CUDARuntimeError(status)

    cupy.runtime.deviceEnablePeerAccess = fail
    one, other = CudaDevice(cupy, 0), CudaDevice(cupy, 1)
    if told is None:
        assert one.reaches(other)
    else:
        with pytest.raises(DeviceError, match=told):
            one.reaches(other)
