"""Arrays on their way between the host and a device, piece by piece through pinned memory, several pieces at a time.

In: arrays of the host, or of the device. Out: copies on the other side. A piece goes through a slot of pinned memory; while one is on the
link, threads copy others from their slots to the host's arrays, which takes several times as long: a new array's pages are made as they are
written. A slot is used again when its last piece is through, so that the host waits for a device only where all slots are in use, and at
the end of a download.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.errors import DeviceError
from oocgraph.pool import Call, Pool, wait_for
from oocgraph.types import Array

SLOT_BYTES = 1 << 20
"""One piece: 20 microseconds on a link of 50 GB/s, a few times what it takes to start a copy."""

NUM_SLOTS = 4
"""Pieces under way at once. A thread copies 5 to 10 GB/s, so that four keep about half of such a link busy."""

TRANSFER_BYTES = NUM_SLOTS * SLOT_BYTES
"""Pinned memory of a `Transfers`."""


class Transfers:
    """Slots and threads for copies on one stream; one thread at a time calls the methods.

    Parameters
    ----------
    stream
        Where copies take their turn.
    """

    def __init__(self, device: Device, stream: Any) -> None:
        self._device, self._stream = device, stream
        self._slots = [device.pinned(SLOT_BYTES) for _ in range(NUM_SLOTS)]
        self._copied = [device.event(blocking=True) for _ in range(NUM_SLOTS)]
        self._pending: list[Call[None] | None] = [None] * NUM_SLOTS
        self._is_used = [False] * NUM_SLOTS
        self._next = 0
        self._pool = Pool(NUM_SLOTS, "oocgraph-transfer")

    def upload(self, source: Array, target: Array) -> None:
        """Bring a host array to a device array of the same size, in the stream's turn; `source` may be changed when this returns."""
        for a, z, slot in self._pieces(source):
            piece = self._piece(slot, source, z - a)
            piece[:] = source[a:z]
            self._device.copy(piece, target[a:z], self._stream)
            self._device.record(self._copied[slot], self._stream)

    def download(self, *sources: Array) -> list[Array]:
        """Return device arrays on the host, as they are when the stream's work so far is done."""
        out = [np.empty(source.size, source.dtype) for source in sources]
        try:
            for source, target in zip(sources, out, strict=True):
                for a, z, slot in self._pieces(source):
                    piece = self._piece(slot, source, z - a)
                    self._device.copy(source[a:z], piece, self._stream)
                    self._device.record(self._copied[slot], self._stream)
                    self._pending[slot] = self._pool.submit(self._take, slot, piece, target[a:z])
        finally:
            pending = [one for one in self._pending if one is not None]
            self._pending = [None] * NUM_SLOTS
            wait_for(pending)
        for one in pending:
            one.result()
        return out

    def close(self) -> None:
        """Wait for what is under way, end the threads and let go of the slots."""
        with suppress(DeviceError):  # of a device that has failed; what has failed has been reported
            self._device.synchronize(self._stream)
        self._pool.close()
        self._slots = []

    def _pieces(self, source: Array) -> Iterator[tuple[int, int, int]]:
        """Cut an array into pieces; each comes with a slot that is free."""
        step = SLOT_BYTES // source.dtype.itemsize
        for a in range(0, source.size, step):
            slot, self._next = self._next, (self._next + 1) % NUM_SLOTS
            pending, self._pending[slot] = self._pending[slot], None
            if pending is not None:
                pending.result()
            elif self._is_used[slot]:
                self._device.synchronize(self._copied[slot])
            self._is_used[slot] = True
            yield a, min(source.size, a + step), slot

    def _piece(self, slot: int, source: Array, size: int) -> Array:
        return self._slots[slot][: size * source.dtype.itemsize].view(source.dtype)

    def _take(self, slot: int, piece: Array, target: Array) -> None:
        """Copy a piece to where it belongs, when it has come."""
        self._device.synchronize(self._copied[slot])
        target[:] = piece
