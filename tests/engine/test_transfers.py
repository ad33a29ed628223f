"""Copies between host and device: whatever the sizes and the order of streams and threads, and what the host waits for."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.engine import transfers
from oocgraph.engine.transfers import NUM_SLOTS, Transfers
from oocgraph.errors import DeviceError
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice
from tests.processes import own_threads

pytestmark = needs_shim

SLOT = 4096


@pytest.fixture(autouse=True)
def small_slots(monkeypatch):
    monkeypatch.setattr(transfers, "SLOT_BYTES", SLOT)


def values(size, dtype=np.uint32, seed=0):
    return np.random.default_rng(seed).integers(0, 200, size).astype(dtype)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("deferred", [False, True])
def test_arrays_come_back_as_they_went(seed, deferred):
    """Several of several types, of no, one and many pieces, up and down again and again; the host's array may change at once."""
    device = CpuDevice(seed=seed, deferred=deferred)
    stream = device.stream()
    moving = Transfers(device, stream)
    sizes = (0, 1, SLOT // 4, SLOT // 4 + 1, 9 * SLOT // 4 + 3)
    for turn in range(3):
        sources = [
            values(size, dtype, turn) for size, dtype in zip(sizes, (np.uint8, np.int64, np.uint32, np.uint8, np.uint32), strict=True)
        ]
        targets = [device.empty(source.size, source.dtype) for source in sources]
        for source, target in zip(sources, targets, strict=True):
            given = source.copy()
            moving.upload(given, target)
            given[:] = 0
        for source, back in zip(sources, moving.download(*targets), strict=True):
            np.testing.assert_array_equal(back, source)
    moving.close()
    assert not own_threads()


def test_what_the_host_waits_for():
    """An upload waits for a slot, never for the stream; a download waits for the event of each piece, in threads."""
    device = CpuDevice(deferred=True)
    moving = Transfers(device, device.stream())
    source = values(10 * SLOT // 4)
    target = device.empty(source.size, source.dtype)
    moving.upload(source[: NUM_SLOTS * SLOT // 4], target[: NUM_SLOTS * SLOT // 4])
    assert not device.waits, "there is a slot for each piece"
    moving.upload(source, target)
    assert device.waits == {"event": 10}
    moving.download(target)
    assert device.waits["stream"] == 0
    moving.close()


def test_a_download_has_several_pieces_under_way():
    """While threads copy pieces to where they belong, as many others are on the link as there are slots."""
    device = CpuDevice(deferred=True)
    moving = Transfers(device, device.stream())
    target = device.empty(100 * SLOT, np.uint8)
    taken, ahead = moving._take, []

    def take(slot, piece, out):
        ahead.append(device.copied_bytes["to_host"] // SLOT - len(ahead))
        taken(slot, piece, out)

    moving._take = take
    moving.download(target)
    moving.close()
    assert len(ahead) == 100
    assert max(ahead) <= NUM_SLOTS + 1


def to_and_fro(moving, source, target):
    while True:
        moving.upload(source, target)
        moving.download(target)


@pytest.mark.parametrize("deferred", [False, True])
def test_a_device_that_fails_ends_every_copy(deferred):
    """At any call: the error, no thread that waits for ever, and closing works."""
    for k in range(1, 60, 3):
        device = CpuDevice(deferred=deferred)
        moving = Transfers(device, device.stream())
        source = values(9 * SLOT // 4)
        target = device.empty(source.size, source.dtype)
        device.fail_after = device.calls.total() + k
        with pytest.raises(DeviceError, match="lost"):
            to_and_fro(moving, source, target)
        moving.close()
    assert not own_threads()
