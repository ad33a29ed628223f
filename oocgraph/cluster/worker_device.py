"""The device of one worker: opened once, shared by all that the worker holds, opened again after it has failed.

In: what a client asks for (`WorkSpec.device`). Out: a device, or None for the processor, and why; and one account of its memory, by which
partitions, matrices and parts leave room for each other. With dask-cuda a worker has a GPU of its own, which is the first that it sees;
other workers of a machine share what is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from oocgraph.arrays import Device, DeviceChoice, device_choice
from oocgraph.cluster.specs import WorkSpec
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.errors import DeviceError, MissingDependencyError
from oocgraph.kernels.gpu import search_source

open_device = device_choice
"""Opens the device of a worker; tests put others here."""


def asked_for(spec: WorkSpec) -> dict[str, Any]:
    """Return what was asked for, as `oocgraph.engine.fallback.processor_instead` takes it."""
    return {"kind": spec.device, "device_memory_budget": spec.device_memory_budget, "beside_searches": spec.beside_searches}


class WorkerDevice:
    """What one worker has to search on.

    Parameters
    ----------
    address
        Of the worker, for messages.

    Attributes
    ----------
    reclaim
        Gives back what is kept on the device and not in use; under the lock of the worker's ledger.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._opened: DeviceChoice | None = None
        self._warm: set[str] = set()
        self._accounts: list[Callable[[], int]] = []
        self._noted: dict[int, int] = {}
        self.reclaim: Callable[[], object] = lambda: None

    def add(self, held: Callable[[], int]) -> None:
        """Open an account that says itself how many bytes of the device's memory are held in it."""
        self._accounts.append(held)

    @property
    def held_bytes(self) -> int:
        """Bytes of the device's memory in all accounts."""
        return sum(held() for held in self._accounts) + sum(list(self._noted.values()))

    def note(self, holder: object, num_bytes: int) -> None:
        """Note that something without an account holds so many bytes of the device's memory, until `forget`."""
        self._noted[id(holder)] = num_bytes

    def forget(self, holder: object) -> None:
        """Forget what was noted."""
        self._noted.pop(id(holder), None)

    def choose(self, spec: WorkSpec) -> DeviceChoice:
        """Return the device on which a graph is to be held, or None for the processor; and why.

        Raises
        ------
        DeviceError, MissingDependencyError
            ``cuda`` was asked for, and no GPU can be used here; the message names the worker.
        """
        if spec.device == "cpu":
            return DeviceChoice(None, "the processor was asked for")
        with self._lock, self.naming():
            if self._opened is None:
                found = open_device(spec.device)
                if found.device is None:
                    return found
                self._opened = found
            return self._opened

    def warm(self, device: Device, dtype: np.dtype[np.generic]) -> None:
        """Compile the kernels, whose compiler's memory then counts as what the process has held before it loads anything."""
        with self._lock, self.naming():
            if dtype.name not in self._warm:
                device.module(*search_source(dtype))
                self._warm.add(dtype.name)

    def limit_bytes(self, spec: WorkSpec, device: Device) -> int:
        """Bytes of device memory that this worker may hold in all, with what it holds already.

        Raises
        ------
        BudgetError
            More was asked for than is free.
        """
        requested = spec.device_memory_budget if spec.device_memory_budget is not None else spec.settings.device_memory_budget
        return device_limit_bytes(device, requested, held_bytes=self.held_bytes, sharers=spec.device_sharers)

    def room_bytes(self, spec: WorkSpec, device: Device) -> int:
        """Bytes of device memory that are left of what this worker may hold.

        Raises
        ------
        BudgetError
            More was asked for than is free.
        """
        return self.limit_bytes(spec, device) - self.held_bytes

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the worker in what goes wrong with its device, which is then opened again for who comes next."""
        try:
            yield
        except (DeviceError, MissingDependencyError) as error:
            self._opened = None
            raise type(error)(f"worker {self._address}: {error}") from error
