"""Bandwidths of a GPU's memory and link, with which the times of searches on it are compared.

In: a device. Out: bytes per second, by the device's own events.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oocgraph.arrays import Device
from oocgraph.machine import available_bytes
from oocgraph.types import PAGE_BYTES

COPY_BYTES = 1 << 30
"""One copy within the device, where it has room for both ends: beyond any cache."""

LINK_COPY_BYTES = 256 << 20
"""One copy over the link: 4 ms and more, so that what starting it takes does not count."""

COPIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """Bytes per second.

    Attributes
    ----------
    device_copy
        Within device memory, bytes read and bytes written.
    link
        From pinned host memory to the device.
    """

    device_copy: float
    link: float


def measure_device(device: Device, *, copy_bytes: int = COPY_BYTES, link_bytes: int = LINK_COPY_BYTES) -> DeviceRates:
    """Measure copies within the device and to it.

    Parameters
    ----------
    copy_bytes, link_bytes
        Of one copy, where there is room; less otherwise.
    """
    stream = device.stream()
    size = _rounded(min(copy_bytes, device.free_bytes() // 4))
    source, target = device.empty(size, np.uint8), device.empty(size, np.uint8)
    within = 2 * size / _median_seconds(device, stream, source, target)
    size = _rounded(min(link_bytes, size, available_bytes() // 8))
    pinned = device.pinned(size)
    pinned[:] = 1
    link = size / _median_seconds(device, stream, pinned, target[:size])
    del source, target, pinned
    device.close()
    return DeviceRates(device_copy=within, link=link)


def _rounded(num_bytes: int) -> int:
    return max(PAGE_BYTES, num_bytes // PAGE_BYTES * PAGE_BYTES)


def _median_seconds(device: Device, stream: object, source: np.ndarray, target: np.ndarray) -> float:
    seconds = [event_seconds(device, stream, lambda: device.copy(source, target, stream)) for _ in range(COPIES + 1)]
    return max(statistics.median(seconds[1:]), 1e-9)  # the first touches the memory


def event_seconds(device: Device, stream: object, work: Callable[[], None]) -> float:
    """Return the seconds, by the device's own events, of what `work` puts on a stream."""
    start, stop = device.event(), device.event()
    device.record(start, stream)
    work()
    device.record(stop, stream)
    device.synchronize(stop)
    return device.seconds(start, stop)
