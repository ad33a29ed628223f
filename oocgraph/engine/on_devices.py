"""What computations keep on devices for the next one, by name: matrices that are there, room for vectors.

In: functions that bring something there. Out: `KeptOnDevices`, which calls each once, counts what is held, and gives it back. What is held
counts against a budget; what is free of a device still contains room that is only set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from oocgraph.errors import DeviceError


class OnDevices(Protocol):
    """What a computation keeps on devices for the next one.

    Attributes
    ----------
    host_bytes : int
        Pinned memory that it holds.
    device_bytes : dict
        Memory that it holds on each device, by its number.
    is_allocated : bool
        Whether that memory is allocated, not set aside for what a computation allocates.
    """

    @property
    def host_bytes(self) -> int: ...  # noqa: D102

    @property
    def device_bytes(self) -> Mapping[int, int]: ...  # noqa: D102

    @property
    def is_allocated(self) -> bool: ...  # noqa: D102

    def close(self) -> None:
        """Give it back."""
        ...


Kept = TypeVar("Kept", bound=OnDevices)


class KeptOnDevices:
    """Things on devices, each made once."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, OnDevices] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    @contextmanager
    def lend(self, key: Hashable, make: Callable[[], Kept], *, keep: bool) -> Iterator[Kept]:
        """Yield what `make` has made at the first call with this key; `keep`: for the next one, too, unless a device fails."""
        if key not in self._kept:
            self._kept[key] = make()
        found: Any = self._kept[key]
        try:
            yield found
        except DeviceError:  # perhaps between two allocations
            keep = False
            raise
        finally:
            if not keep:
                self._kept.pop(key).close()

    @property
    def host_bytes(self) -> int:
        """Pinned memory that they hold."""
        return sum(one.host_bytes for one in self._kept.values())

    def bytes_on(self, number: int) -> int:
        """Bytes that they hold on a device."""
        return sum(one.device_bytes.get(number, 0) for one in self._kept.values())

    def allocated_on(self, number: int) -> int:
        """Bytes of a device that they have allocated."""
        return sum(one.device_bytes.get(number, 0) for one in self._kept.values() if one.is_allocated)

    def give_back(self) -> None:
        """Close all of them."""
        while self._kept:
            self._kept.popitem()[1].close()


class HoldsOnDevices:
    """What has `KeptOnDevices` for the computations of a graph or a matrix."""

    _on_devices: KeptOnDevices

    def held_on_device(self, number: int) -> int:
        """Bytes of a device's memory that are held: 0 is the one that searches."""
        return self._searching_on(number) + self._on_devices.bytes_on(number)

    def allocated_on_device(self, number: int) -> int:
        """Bytes of these that are allocated, and so no longer free."""
        return self._searching_on(number) + self._on_devices.allocated_on(number)

    def _searching_on(self, _number: int) -> int:
        """Bytes of a device's memory that searches have."""
        return 0
