"""Page-locked memory of results: it is a result's for as long as anybody has an array of it, and then a later one's."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import oocgraph
from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.result_memory import ResultMemory
from oocgraph.errors import DeviceError
from oocgraph.plan.device_residency import HOST_SHARE, host_least_bytes, plan_device_residency
from oocgraph.plan.residency import GraphSizes
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice

pytestmark = needs_shim

NUM_BYTES = 80


@pytest.fixture(params=[False, True], ids=["at once", "deferred"])
def device(request):
    return CpuDevice(0, deferred=request.param)


def there(device, stream, values):
    """Bring an array to the device."""
    pinned, target = device.pinned(values.nbytes).view(values.dtype), device.empty(values.size, values.dtype)
    pinned[:] = values
    device.copy(pinned, target, stream)
    device.synchronize(stream)
    return target


def test_results_stay_and_their_memory_is_used_again(device):
    stream = device.stream()
    memory = ResultMemory(device, 2, NUM_BYTES)
    sources = [there(device, stream, np.arange(10 * k, 10 * k + 10, dtype=np.int64)) for k in range(4)]
    first, second = (memory.download(stream, source)[0] for source in sources[:2])
    assert memory.download(stream, sources[2]) is None
    address, part = first.ctypes.data, first[2:4]
    del first
    gc.collect()
    assert memory.download(stream, sources[2]) is None, "a view is left"
    assert part.tolist() == [2, 3]
    del part
    gc.collect()
    (third,) = memory.download(stream, sources[3])
    assert third.ctypes.data == address
    assert (second.tolist(), third.tolist()) == (list(range(10, 20)), list(range(30, 40)))
    assert third.flags.writeable


def test_several_arrays_and_sizes(device):
    stream = device.stream()
    memory = ResultMemory(device, 1, NUM_BYTES)
    long, short = np.arange(7, dtype=np.uint32), np.arange(7, dtype=np.uint8)
    parent, level = memory.download(stream, there(device, stream, long), there(device, stream, short))
    assert (parent.dtype, level.dtype) == (np.uint32, np.uint8)
    np.testing.assert_array_equal(parent, long)
    np.testing.assert_array_equal(level, short)
    assert ResultMemory(device, 1, 27).download(stream, there(device, stream, long)) is None
    assert ResultMemory(device, 0, NUM_BYTES).download(stream, there(device, stream, long)) is None


def test_what_nobody_has_is_let_go_of_at_the_end(device):
    stream = device.stream()
    memory = ResultMemory(device, 2, NUM_BYTES)
    source = there(device, stream, np.arange(10))
    gc.collect()
    before = device.pinned_bytes
    (found,) = memory.download(stream, source)
    memory.close()
    del memory
    assert device.pinned_bytes == before - NUM_BYTES
    assert found.tolist() == list(range(10))
    del found
    gc.collect()
    assert device.pinned_bytes == before - 2 * NUM_BYTES


def test_memory_into_which_a_lost_device_may_still_write_is_no_result_s():
    device = CpuDevice(0, deferred=True)
    stream = device.stream()
    memory, source = ResultMemory(device, 1, NUM_BYTES), there(device, stream, np.arange(10))
    device.fail_after = device.calls.total() + 1
    with pytest.raises(DeviceError, match="lost"):
        memory.download(stream, source)
    assert memory.download(stream, source) is None


def test_searches_of_a_runtime(tmp_path):
    """Results that are kept are right when later searches are over, when there is no memory for them, and when the runtime is closed."""
    store = oocgraph.generate_kronecker(8, tmp_path / "g.zarr", seed=1)
    sources = range(5)
    expected = [np.array(oocgraph.bfs(store, source).level) for source in sources]
    with DeviceRuntime.open(store, device=CpuDevice()) as runtime:
        found = [oocgraph.bfs(store, source, runtime=runtime) for source in sources]
    gc.collect()
    for result, level in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result.level, level)
        oocgraph.verify_bfs(store, result)


@pytest.mark.parametrize(("host", "num_results"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (10**6, 2)])
def test_results_take_a_share_of_what_the_host_has(host, num_results):
    sizes = GraphSizes(num_vertices=1000, itemsize=4, num_edges=(9000,), lookup_bytes=24, plane_edges=(0,), skew=9.0)
    assert HOST_SHARE == 1 / 4
    host_bytes = host_least_bytes(sizes) + host * 5000
    found = plan_device_residency(
        sizes, available_bytes=1 << 30, limit_bytes=1 << 30, host_available_bytes=host_bytes, host_limit_bytes=1 << 30
    )
    assert (found.num_results, found.result_bytes) == (num_results, 5000)
    assert found.host_bytes <= host_bytes
