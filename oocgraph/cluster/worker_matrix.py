"""A worker's part of a matrix on its GPU, which keeps it from one product to the next where a runtime is open.

In: a part of a matrix (`oocgraph.sparse.partial`), of a store or in memory, and a vector. Out: what the part makes of it. What does not fit
in device memory is brought to it for each product (`oocgraph.products.device_matrix`). What others hold of the
device (`WorkerDevice.held_bytes`) is left to them; what is kept here gives way to what finds no room.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import WorkSpec
from oocgraph.cluster.worker_device import WorkerDevice
from oocgraph.errors import BudgetError
from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import Budget
from oocgraph.products.device_matrix import DeviceMatrix
from oocgraph.products.device_product import device_dtype
from oocgraph.products.product import is_by_row
from oocgraph.products.product_checks import checked_piece
from oocgraph.types import Array


@dataclass(slots=True)
class KeptMatrix:
    """A matrix on the device, what it holds of the host, and whether a computation is using it."""

    matrix: DeviceMatrix
    budget: Budget
    device_bytes: int
    in_use: bool = True
    has_left: bool = False


class DeviceMatrices:
    """The matrices on one worker's device. Under the lock of the ledger they are opened, taken and given back."""

    def __init__(self, ledger: WorkerLedger, device: WorkerDevice) -> None:
        self._ledger, self._device = ledger, device
        self._held: dict[tuple[str, Any], KeptMatrix] = {}
        device.add(lambda: sum(one.device_bytes for one in list(self._held.values())))
        device.reclaim = self.give_back

    def leases(self) -> set[str]:
        """Those that matrices are kept for."""
        return {lease for lease, _ in list(self._held) if lease}

    def inventory(self) -> list[tuple[str, int]]:
        """Of each matrix its lease and the device memory that it holds."""
        return [(lease, one.device_bytes) for (lease, _), one in list(self._held.items())]

    @contextmanager
    def opened(
        self, lease: str | None, key: Any, device: Device, spec: WorkSpec, part: Any, dtype: np.dtype[Any], ring: Semiring, name: str
    ) -> Iterator[DeviceMatrix]:  # fmt: skip
        """Yield a part of a matrix on the device; under a lease it stays there for the next call with the same key.

        Parameters
        ----------
        name
            Of the values, for messages.

        Raises
        ------
        BudgetError
            There is too little memory on the device, or on the host; the message names the worker.
        """
        kept = self.take(lease, key, device, spec, part, dtype, ring, name)
        try:
            yield kept.matrix
        finally:
            self.put_back(kept)

    def take(
        self, lease: str | None, key: Any, device: Device, spec: WorkSpec, part: Any, dtype: np.dtype[Any], ring: Semiring, name: str
    ) -> KeptMatrix:  # fmt: skip
        """As `opened`, until it is put back."""
        with self._ledger.lock, self._ledger.naming(), self._device.naming():
            place = (lease or "", key)
            found = self._held.get(place)
            if lease is not None and found is not None and not found.in_use:
                found.in_use = True
                return found
            if found is not None:
                place = (lease or "", (key, object()))
            try:
                kept = self._open(device, spec, part, dtype, ring, name, keep=lease is not None)
            except BudgetError:
                if not self.give_back():
                    raise
                kept = self._open(device, spec, part, dtype, ring, name, keep=lease is not None)
            kept.has_left = lease is None or found is not None  # what another computation has is kept for the next, not its copies
            self._held[place] = kept
            return kept

    def _open(
        self, device: Device, spec: WorkSpec, part: Any, dtype: np.dtype[Any], ring: Semiring, name: str, *, keep: bool
    ) -> KeptMatrix:  # fmt: skip
        room = self._device.room_bytes(spec, device)

        def read(piece: Any, buffers: dict[str, Array]) -> Any:
            return checked_piece(piece.load(buffers) if hasattr(piece, "load") else piece, ring, name)

        matrix = DeviceMatrix(
            [device], part, device_dtype(dtype, ring), ring, device_limits=[room], device_held=[self._device.held_bytes], read=read,
            keep=keep,
        )  # fmt: skip
        with self._ledger.opening(spec.requested_memory) as budget:
            with budget.all_or_none():
                matrix.charge(budget)
            matrix.open()
        return KeptMatrix(matrix, budget, sum(matrix.device_bytes.values()))

    def put_back(self, kept: KeptMatrix) -> None:
        """Keep a matrix for the next computation, if its lease has not left."""
        with self._ledger.lock:
            kept.in_use = False
            if kept.has_left:
                self._close(kept)

    def release(self, lease: str) -> None:
        """Close the matrices of a lease; one that is in use, when it is put back."""
        with self._ledger.lock:
            for (owner, _), one in list(self._held.items()):
                if owner == lease:
                    one.has_left = True
                    if not one.in_use:
                        self._close(one)

    def give_back(self) -> bool:
        """Close what is not in use; whether anything was."""
        with self._ledger.lock:
            idle = [one for one in self._held.values() if not one.in_use]
            for one in idle:
                self._close(one)
            return bool(idle)

    def _close(self, kept: KeptMatrix) -> None:
        self._held = {key: one for key, one in self._held.items() if one is not kept}
        kept.matrix.close()
        self._ledger.close(kept.budget)


def multiply(matrix: DeviceMatrix, part: Any, x: Array, ring: Semiring, dtype: np.dtype[Any]) -> Array:
    """Return what a part that is on a device makes of the whole vector: its rows, or by column a vector as long as the result.

    Of a row that was begun by an earlier part it is only this part's share.
    """
    np.copyto(matrix.x[:, 0], x, casting="unsafe")
    by_row = is_by_row(part)
    own = slice(part.first_line, part.stop_line) if by_row else slice(None)
    if by_row and part.first_line_partial:
        matrix.y[part.first_line] = 0 if ring.is_boolean else ring.identity
    sums = matrix.multiply(ring)[own, 0]
    found: Array = (sums > 0).view(np.uint8) if ring.is_boolean else sums.astype(dtype)
    return found
