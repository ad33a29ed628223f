"""A product on one or several GPUs: one host thread for each builds and multiplies its part, which comes in pieces through pinned memory.

In: devices, one part of a matrix for each (`oocgraph.sparse.partial`), in memory or in a store, and a vector. Out: ``y = plus(y, A x)``.
A device holds its share of x and y and a few pieces, so the matrix may be larger than its memory. While one piece is multiplied the next
is copied and others are read:

    reading threads  fill 0 | fill 1 | fill 2 | ...
    copy stream               copy 0 | copy 1 | ...
    compute stream                     pointers 0, product 0 | ...

Local pointers are made on the device, from the part's slice of the matrix's pointers, or from the coordinates. Rows go to their place in
``y``; of a row that two devices share the host adds both sums. Vectors of columns are brought to the host and added there.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, sections 3.3 and 4. Differs from the paper in:
parts are streamed; COO keeps its coordinates only until pointers are made of them; column partials are added by the host, not by a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.device_state import download, upload
from oocgraph.errors import BudgetError
from oocgraph.kernels.gpu_spmv import GpuProductKernels
from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import Budget, format_bytes
from oocgraph.products.product import is_by_row, put_rows
from oocgraph.sparse.balanced import cut
from oocgraph.sparse.partial import PartialCOO
from oocgraph.types import Array

PIECE_ENTRIES = 1 << 20
"""Nonzeros brought to a device at once: 12 MiB of float64 values and uint32 columns, long enough to hide what starting a copy costs."""

MIN_PIECE_ENTRIES = 1 << 12

NUM_SLOTS = 3
"""Pieces in work: one is read, one copied, one multiplied."""

TRANSFER_BYTES = 1 << 20
"""Pinned memory through which vectors pass."""

Read = Callable[[Any, dict[str, Array]], Any]
"""Called with a piece and pinned buffers by field; returns the piece with its arrays in memory, in these buffers where it can."""


def device_dtype(dtype: np.dtype[Any], semiring: Semiring) -> np.dtype[Any]:
    """Return the dtype in which a device computes; see `oocgraph.kernels.gpu_spmv`."""
    return np.dtype(np.float32) if semiring.is_boolean else np.dtype(dtype)


class DeviceShare:
    """One device's part of a matrix.

    Parameters
    ----------
    device
        Where it is multiplied.
    part
        By row or by column.
    dtype
        Of elements: float32 or float64.
    semiring
        How products are made and added.
    device_limit
        Bytes of the device's memory that may be held.
    read
        Brings a piece into memory; by default it is there.

    Raises
    ------
    BudgetError
        The device's memory does not do for the vectors and the smallest pieces.
    """

    def __init__(
        self, device: Device, part: Any, dtype: np.dtype[Any], semiring: Semiring, *, device_limit: int, read: Read | None = None
    ) -> None:
        self.device, self.part, self.semiring, self.dtype = device, part, semiring, np.dtype(dtype)
        self._read = read or (lambda piece, buffers: piece)
        self.by_row, uses_values = is_by_row(part), part.values is not None and semiring.uses_values
        self._fields = _fields(part) | ({"values": self.dtype} if uses_values else {})
        num_rows, num_columns = part.shape
        self.first_x: int = 0 if self.by_row else part.first_line
        self.num_x: int = num_columns if self.by_row else part.num_lines
        self.num_y: int = part.num_lines if self.by_row else num_rows
        vectors = (self.num_x + self.num_y) * self.dtype.itemsize
        self.pieces = _pieces(part, self._fields, device_limit - vectors)
        self.lengths = {name: max((_size(piece, name) for piece in self.pieces), default=0) for name in self._fields}
        self._num_offsets = max((piece.num_lines for piece in self.pieces), default=0) + 1
        self.num_slots = min(NUM_SLOTS, len(self.pieces))
        slot_bytes = sum(self.lengths[name] * kind.itemsize for name, kind in self._fields.items())
        self.device_bytes = vectors + self.num_slots * (slot_bytes + 8 * self._num_offsets)
        self.host_bytes = self.num_slots * slot_bytes + TRANSFER_BYTES
        if self.device_bytes > device_limit:
            raise BudgetError(
                f"a product on {device.name} needs {format_bytes(self.device_bytes)} of device memory (vectors {format_bytes(vectors)}, "
                f"{self.num_slots} pieces of the matrix) but may hold {format_bytes(device_limit)}; raise device_memory_budget "
                f"to at least {-(-self.device_bytes >> 20)}M, or use device='cpu'"
            )

    def multiply(self, x: Array) -> Array:
        """Return what the part makes of the whole vector, on the host: its rows, or by column a vector as long as the result.

        Parameters
        ----------
        x : (num_columns,) `dtype`

        Returns
        -------
        Like `x`; uint8 in ``or_and``.
        """
        device, kernels = self.device, GpuProductKernels(self.device, _index_dtype(self._fields), self.dtype)
        staging = device.pinned(TRANSFER_BYTES)
        on_device, y = device.empty(self.num_x, self.dtype), device.empty(self.num_y, self.dtype)
        upload(device, kernels.stream, x[self.first_x : self.first_x + self.num_x], on_device, staging)
        kernels.set_values(y, self.semiring.identity)
        _Pipeline(self, kernels, on_device, y).run()
        rows = download(device, kernels.stream, y, staging)
        return (rows > 0).view(np.uint8) if self.semiring.is_boolean else rows

    def slot(self) -> _Slot:
        """Allocate what one piece needs."""
        device, fields = self.device, self._fields.items()
        return _Slot(
            {name: device.pinned(self.lengths[name] * kind.itemsize).view(kind) for name, kind in fields},
            {name: device.empty(self.lengths[name], kind) for name, kind in fields},
            device.empty(self._num_offsets, np.int64),
            device.event(),
            device.event(),
        )

    def fill(self, piece: Any, pinned: dict[str, Array]) -> dict[str, Array]:
        """Read a piece, and return what of the pinned arrays it fills."""
        target = {name: array[: _size(piece, name)] for name, array in pinned.items()}
        loaded = self._read(piece, {name: array for name, array in target.items() if name != "values"})
        for name, array in target.items():
            content = getattr(loaded, name)
            if name == "values" and self.semiring.is_boolean:
                np.not_equal(content, 0, out=array, casting="unsafe")
            elif not np.may_share_memory(content, array):
                np.copyto(array, content.view(array.dtype) if content.dtype.itemsize == array.itemsize and name != "values" else content)
        return target


def add_piece(
    kernels: GpuProductKernels, piece: Any, arrays: dict[str, Array], offset: Array, semiring: Semiring, x: Array, y: Array
) -> None:  # fmt: skip
    """Multiply a piece that is in device memory; `x` and `y` are what its part has of the vectors.

    Parameters
    ----------
    arrays
        Of the piece, by field.
    offset : (num_lines + 1,) int64
        Overwritten with the local pointers.
    x, y
        By row: all of x, and the piece's rows. By column: the piece's elements, and all of y.
    """
    if isinstance(piece, PartialCOO):
        lines, others = ("rows", "columns") if piece.by == "row" else ("columns", "rows")
        kernels.line_pointers(arrays[lines], piece.first_line, piece.num_lines, offset)
        indices = arrays[others]
    else:
        kernels.local_pointers(arrays["pointers"], piece.start, piece.stop, offset)
        indices = arrays["indices"]
    multiply = kernels.multiply_rows if is_by_row(piece) else kernels.multiply_columns
    multiply(semiring, offset, indices, arrays.get("values"), x, y)


@dataclass(slots=True)
class _Slot:
    """Room for one piece: in pinned memory, on the device, and when the one was copied and the other multiplied."""

    pinned: dict[str, Array]
    arrays: dict[str, Array]
    offset: Array
    copied: Any
    multiplied: Any


class _Pipeline:
    """One product of a share: slots, streams, reading threads."""

    def __init__(self, share: DeviceShare, kernels: GpuProductKernels, x: Array, y: Array) -> None:
        self._share, self._kernels, self._x, self._y = share, kernels, x, y
        self._copies = share.device.stream()
        self._slots = [share.slot() for _ in range(share.num_slots)]
        self._filled: list[Future[dict[str, Array]]] = []

    def run(self) -> None:
        """Take all pieces through; the first failure is raised when nothing uses memory any more."""
        device, pieces = self._share.device, self._share.pieces
        with ThreadPoolExecutor(max(1, len(self._slots)), thread_name_prefix="oocgraph-fill") as pool:
            try:
                for i in range(len(self._slots)):
                    self._fill_ahead(i, pool)
                for i in range(len(pieces)):
                    self._enqueue(i, self._filled[i].result())
                    if i + len(self._slots) < len(pieces):
                        self._fill_ahead(i + len(self._slots), pool)
            finally:
                for one in self._filled:
                    one.cancel()
                wait(self._filled)
                for stream in (self._copies, self._kernels.stream):
                    device.synchronize(stream)

    def _fill_ahead(self, i: int, pool: ThreadPoolExecutor) -> None:
        slot, again = self._slots[i % len(self._slots)], i >= len(self._slots)

        def work() -> dict[str, Array]:
            if again:
                self._share.device.synchronize(slot.copied)
            return self._share.fill(self._share.pieces[i], slot.pinned)

        self._filled.append(pool.submit(work))

    def _enqueue(self, i: int, filled: dict[str, Array]) -> None:
        share, kernels, slot, piece = self._share, self._kernels, self._slots[i % len(self._slots)], self._share.pieces[i]
        device, part = share.device, share.part
        if i >= len(self._slots):
            device.wait(self._copies, slot.multiplied)
        arrays = {name: slot.arrays[name][: content.size] for name, content in filled.items()}
        for name, content in filled.items():
            device.copy(content, arrays[name], self._copies)
        device.record(slot.copied, self._copies)
        device.wait(kernels.stream, slot.copied)
        if piece.num_entries:
            own = slice(piece.first_line - part.first_line, piece.stop_line - part.first_line)
            x, y = (self._x, self._y[own]) if share.by_row else (self._x[own], self._y)
            add_piece(kernels, piece, arrays, slot.offset, share.semiring, x, y)
        device.record(slot.multiplied, kernels.stream)


def charge_host(shares: Sequence[DeviceShare], budget: Budget) -> None:
    """Reserve what `multiply_on_devices` holds on this side: pinned memory, and what devices return."""
    budget.reserve("pinned pieces", sum(share.host_bytes for share in shares))
    budget.reserve("what devices return", sum(share.num_y * share.dtype.itemsize for share in shares))


def multiply_on_devices(shares: Sequence[DeviceShare], x: Array, y: Array) -> None:
    """Add the product of a matrix and a vector to `y`, one host thread for each device.

    Parameters
    ----------
    shares
        All parts, in order.
    x : (num_columns,)
        Of the dtype in which devices compute.
    y : (num_rows,) like `x`; uint8 in ``or_and``
    """
    with ThreadPoolExecutor(max(1, len(shares)), thread_name_prefix="oocgraph-device") as pool:
        made = list(pool.map(lambda share: share.multiply(x), shares))
    for share, own in zip(shares, made, strict=True):
        if share.by_row:
            put_rows(share.part, own, y, share.semiring)
        else:
            share.semiring.add(y, own)


def _fields(part: Any) -> dict[str, np.dtype[Any]]:
    """Dtypes in which a device takes the arrays of a part, without its values: those of its indices are alike."""
    names = ("rows", "columns") if isinstance(part, PartialCOO) else ("indices",)
    wide = any(getattr(part, name).dtype.itemsize == 8 for name in names)
    found = {name: np.dtype(np.int64 if wide else np.uint32) for name in names}
    if not isinstance(part, PartialCOO):
        found["pointers"] = np.dtype(np.int64 if part.pointers.dtype.itemsize == 8 else np.uint32)
    return found


def _index_dtype(fields: dict[str, np.dtype[Any]]) -> np.dtype[Any]:
    return fields.get("indices", fields.get("rows", np.dtype(np.uint32)))


def _size(piece: Any, name: str) -> int:
    return int(piece.num_lines + 1 if name == "pointers" else piece.num_entries)


def _pieces(part: Any, fields: dict[str, np.dtype[Any]], room_bytes: int) -> list[Any]:
    """Cut a part into pieces, of which `NUM_SLOTS` fit beside their pointers where lines are not many more than nonzeros."""
    entry_bytes = sum(kind.itemsize for kind in fields.values()) + 8
    length = max(MIN_PIECE_ENTRIES, min(PIECE_ENTRIES, room_bytes // (NUM_SLOTS * entry_bytes)))
    bounds = [*range(part.start, part.stop, length), part.stop] if part.num_entries else []
    return cut(part, bounds) if bounds else []
