"""One GPU's part of a matrix: as much of it as fits stays in device memory, the rest passes through pinned memory at each product.

In: a device and a part (`oocgraph.sparse.partial`), in memory or in a store. Out: a `DeviceShare`, which is open for many products. Its
vectors `x` and `y` are on the device; who brings them there is `oocgraph.products.device_matrix`.

A part is cut into pieces. The first ones that fit are loaded once, as one array, so that their product is one launch. Of the others as many
as its user gives host memory for are read once, too, into page-locked memory, from which they are copied at the speed of the link: reading
reaches a sixth of that. While one piece is multiplied the next is copied and others are read:

    reading threads  fill 0 | fill 1 | fill 2 | ...
    copy stream               copy 0 | copy 1 | ...
    compute stream                     pointers 0, product 0 | ...

Local pointers are made on the device, from the part's slice of the matrix's pointers, or from the coordinates.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, sections 3.3 and 4. Differs from the paper in:
what does not fit is streamed; COO keeps its coordinates only until pointers are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.errors import BudgetError, DeviceError
from oocgraph.kernels.gpu_spmv import GpuProductKernels
from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import format_bytes
from oocgraph.pool import Call, Pool, wait_for
from oocgraph.products.product import is_by_row
from oocgraph.sparse.balanced import cut
from oocgraph.sparse.partial import PartialCOO
from oocgraph.sparse.placement import stay_on
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.slices import StoredSlice
from oocgraph.types import Array

PIECE_ENTRIES = 1 << 20
"""Nonzeros brought to a device at once: 12 MiB of float64 values and uint32 columns, long enough to hide what starting a copy costs."""

MIN_PIECE_ENTRIES = 1 << 12

MAX_PIECES = 1 << 12
"""However little room there is, unless these would be larger: each takes tens of microseconds of this process, at each product."""

NUM_SLOTS = 3
"""Pieces in work: one is read, one copied, one multiplied."""

HELD_ALIGNMENT = 64
"""Bytes at whose multiples arrays of pieces begin in page-locked memory."""

SLOTS_SHARE = 8
"""Part of the room, 1 / this, that pieces in work may take where others stay."""

Read = Callable[[Any, dict[str, Array]], Any]
"""Called with a piece and pinned buffers by field; returns the piece with its arrays in memory, in these buffers where it can."""


def device_dtype(dtype: np.dtype[Any], semiring: Semiring) -> np.dtype[Any]:
    """Return the dtype in which a device computes; see `oocgraph.kernels.gpu_spmv`."""
    return np.dtype(np.float32) if semiring.is_boolean else np.dtype(dtype)


class DeviceShare:
    """One device's part of a matrix; `open` allocates and loads.

    Parameters
    ----------
    device
        Where it is multiplied.
    part
        By row or by column.
    dtype
        Of elements: float32 or float64.
    semiring
        Which values are needed: all of its like (boolean or not, with values or without) may be computed.
    device_limit
        Bytes of the device's memory that may be held.
    device_held
        Bytes of the device memory budget that are already held; `device_limit` is the rest. A refusal names a budget for both.
    read
        Brings a piece into memory; by default it is there.
    keep
        Whether pieces stay on the device, as many as fit.
    width
        Vectors that are multiplied at once; only for parts by row that have pointers.
    beside_bytes
        Device memory beside the vectors that its user allocates: what a sum of columns is received in.
    first_indices
        Indices of the first nonzeros of the matrix that are in this device's memory for another purpose, and stay there.
    host_indices
        Indices of the first nonzeros that are so in page-locked memory.
    cores
        Processors on which its threads run (`oocgraph.sparse.placement.cores_near`); None: any.

    Attributes
    ----------
    x, y : (num_x * width,), (num_y * width,)
        On the device, once it is open.
    kernels : GpuProductKernels
        With the stream on which `x` and `y` are used.
    num_resident : int
        Pieces that stay, from the first on.
    num_held : int
        Pieces behind these that stay in page-locked memory.
    bytes_requested : int
        Of the matrix, brought to the device so far.
    host_bytes : int
        Pinned memory of pieces that stay there and in work, and what reading them takes beside it.

    Raises
    ------
    BudgetError
        The device's memory does not do for the vectors and the smallest pieces.
    """

    x: Array
    y: Array
    kernels: GpuProductKernels

    def __init__(
        self, device: Device, part: Any, dtype: np.dtype[Any], semiring: Semiring, *, device_limit: int, device_held: int = 0,
        read: Read | None = None, keep: bool = False, width: int = 1, beside_bytes: int = 0, first_indices: Array | None = None,
        host_indices: Array | None = None, cores: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.device, self.part, self.dtype, self.width, self.bytes_requested = device, part, np.dtype(dtype), width, 0
        self._semiring, self._read, self._limit = semiring, read or (lambda piece, buffers: piece), device_limit
        self.by_row = is_by_row(part)
        self._fields = _fields(part) | ({"values": self.dtype} if part.values is not None and semiring.uses_values else {})
        num_rows, num_columns = part.shape
        self.first_x: int = 0 if self.by_row else part.first_line
        self.num_x: int = num_columns if self.by_row else part.num_lines
        self.num_y: int = part.num_lines if self.by_row else num_rows
        self._first_indices: Any = () if first_indices is None else first_indices
        self._host_indices: Any = () if host_indices is None else host_indices
        vectors = self.vector_bytes + beside_bytes
        room = device_limit - vectors
        length, least = _piece_lengths(part, self._fields, room // SLOTS_SHARE if keep else room)
        self._cut(length)
        while self._slots_bytes > room and length > least:  # lines are many more than nonzeros
            length = max(least, length // 2)
            self._cut(length)
        resident = [self._resident_bytes(n) for n in range(1, len(self.pieces) + 1)] if keep else []
        self.num_resident = sum(size <= room - self._slots_bytes for size in resident)
        self._fixed_bytes = beside_bytes + (resident[self.num_resident - 1] if self.num_resident else 0)
        self.host_bytes = self.num_slots * (self._slot_bytes + sum(self._reading_bytes(name) for name in self._fields))
        self.num_held = 0
        self._held: list[dict[str, Array]] = []
        self._segments: list[_Segment] = []
        self._slots: list[_Slot] = []
        self._worker = Pool(1, "oocgraph-device", partial(stay_on, cores))
        self._readers = Pool(max(1, self.num_slots), "oocgraph-fill", partial(stay_on, cores))
        if self.device_bytes > device_limit:
            beside = f" beside {format_bytes(device_held)} that are held" if device_held else ""
            raise BudgetError(
                f"a product on {device.name} needs {format_bytes(self.device_bytes)} of device memory (vectors {format_bytes(vectors)}, "
                f"{self.num_slots} pieces of the matrix){beside} but may hold {format_bytes(max(0, device_limit))}; raise "
                f"device_memory_budget to at least {-(-(self.device_bytes + device_held) >> 20)}M, or use device='cpu'"
            )

    def _cut(self, length: int) -> None:
        """Cut the part into pieces of so many nonzeros, and plan the slots that take the largest."""
        self.pieces = _pieces(self.part, length, len(self._first_indices))
        self._lengths = {name: max((_size(piece, name) for piece in self.pieces), default=0) for name in self._fields}
        self._num_offsets = max((piece.num_lines for piece in self.pieces), default=0) + 1
        self.num_slots = min(NUM_SLOTS, len(self.pieces))
        self._slot_bytes = sum(self._lengths[name] * kind.itemsize for name, kind in self._fields.items())
        self._slots_bytes = self.num_slots * (self._slot_bytes + 8 * self._num_offsets)

    @property
    def vector_bytes(self) -> int:
        """Device memory of `x` and `y`."""
        return (self.num_x + self.num_y) * self.width * self.dtype.itemsize

    @property
    def device_bytes(self) -> int:
        """Device memory that it holds, and its user beside it; pieces in work are given back when all have been loaded."""
        return self.vector_bytes + self._fixed_bytes + self._slots_bytes

    @property
    def is_resident(self) -> bool:
        """Whether a product reads nothing of the matrix."""
        return self.num_resident == len(self.pieces)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the nonzeros that stay on the device."""
        return sum(piece.entry_bytes for piece in self.pieces[: self.num_resident])

    @property
    def most_width(self) -> int:
        """Vectors that its memory has room for at once."""
        each = (self.num_x + self.num_y) * self.dtype.itemsize
        return self.width + (self._limit - self.device_bytes) // each if each else self.width

    def hold(self, num_bytes: int) -> int:
        """Plan to keep further pieces in page-locked memory, as many as fit; call it before `open`. Return the bytes they take."""
        held, room = 0, num_bytes
        for piece in self.pieces[self.num_resident :]:
            size = self._held_bytes(piece)
            if held + size > room:
                break
            held, self.num_held = held + size, self.num_held + 1
        self.host_bytes += held
        return held

    def submit(self, work: Callable[[], Any]) -> Call[Any]:
        """Let the thread that feeds this device do something."""
        return self._worker.submit(work)

    def open(self) -> None:
        """Allocate, and load what stays; in the device's thread, so that pinned pages are near to it."""
        device = self.device
        self.kernels = GpuProductKernels(device, _index_dtype(self._fields), self.dtype)
        self._copies = device.stream()
        self._allocate_vectors()
        self._slots = [self._slot() for _ in range(self.num_slots)]
        inside = sum(piece.stop <= len(self._first_indices) for piece in self.pieces[: self.num_resident])
        self._segments = [self._segment(a, z) for a, z in ((0, inside), (inside, self.num_resident)) if a < z]
        for segment in self._segments:
            self._run(segment.pieces, partial(_resident_arrays, segment), partial(self._add_pointers, segment), segment.read_fields)
        if self.is_resident:
            self._slots, self._slots_bytes, self.host_bytes = [], 0, 0
        self._held = self._read_held()
        if self.num_resident + self.num_held == len(self.pieces):
            self._readers.close()

    def close(self) -> None:
        """Give everything back, after what its streams still do."""
        self._worker.close()
        self._readers.close()
        for stream in (getattr(self, "_copies", None), getattr(getattr(self, "kernels", None), "stream", None)):
            if stream is not None:
                with suppress(DeviceError):  # of a device that has failed, which has been reported
                    self.device.synchronize(stream)
        self._segments, self._slots, self._held = [], [], []
        for name in ("x", "y"):
            self.__dict__.pop(name, None)

    def set_width(self, width: int) -> None:
        """Make room for this many vectors at once, at most `most_width`; nothing is allocated where it is as before."""
        if width != self.width:
            self.width = width
            del self.x, self.y
            self._allocate_vectors()

    def product(self, semiring: Semiring) -> None:
        """Set `y` to the product of the part and `x`; returns when it is asked for, and what was streamed is multiplied."""
        self.kernels.set_values(self.y, semiring.identity)
        for segment in self._segments:
            self._multiply(segment, segment.arrays, segment.offset, semiring)
        self._run(self.pieces[self.num_resident :], _slot_arrays, partial(self._multiply_piece, semiring), self._fields, self._held)

    def _allocate_vectors(self) -> None:
        self.x = self.device.empty(self.num_x * self.width, self.dtype)
        self.y = self.device.empty(self.num_y * self.width, self.dtype)

    def _resident_bytes(self, num_pieces: int) -> int:
        """Device memory of the first pieces, when they stay: their pointers, and what no other has there."""
        first, last = self.pieces[0], self.pieces[num_pieces - 1]
        held = max(0, min(last.stop, len(self._first_indices)) - first.start)
        values = (last.stop - first.start) * self.dtype.itemsize if "values" in self._fields else 0
        indices = (last.stop - first.start - held) * _index_dtype(self._fields).itemsize
        return int(values + indices + 8 * (last.stop_line - first.first_line + 3))  # of two segments that share a line

    def _reading_bytes(self, name: str) -> int:
        """Host memory that a read of a piece's field takes beside the pinned buffer: what is decoded, or has another dtype there."""
        slice_, length = getattr(self.part, name), self._lengths[name]
        if not isinstance(slice_, StoredSlice) or slice_.array.is_held:
            return 0
        is_converted = name == "values" and slice_.dtype != self.dtype
        return decoded_bytes(slice_.array, length) or is_converted * length * slice_.dtype.itemsize

    def _to_read(self, piece: Any) -> dict[str, int]:
        """Bytes of what has to be read of a piece that stays in page-locked memory, by field."""
        there = {_others(self.part)} if piece.stop <= len(self._host_indices) else set()
        return {name: _size(piece, name) * kind.itemsize for name, kind in self._fields.items() if name not in there}

    def _held_bytes(self, piece: Any) -> int:
        return sum(_aligned(size) for size in self._to_read(piece).values())

    def _read_held(self) -> list[dict[str, Array]]:
        """Read the pieces that stay in page-locked memory, which is allocated at once."""
        pieces = self.pieces[self.num_resident : self.num_resident + self.num_held]
        memory, at, held = self.device.pinned(sum(self._held_bytes(piece) for piece in pieces)), 0, []
        for piece in pieces:
            arrays = {}
            for name, size in self._to_read(piece).items():
                arrays[name] = memory[at : at + size].view(self._fields[name])
                at += _aligned(size)
            held.append(arrays)
        for _ in self._readers.map(lambda i: self._fill(pieces[i], held[i]), range(len(pieces))):
            continue
        others = _others(self.part)
        for piece, arrays in zip(pieces, held, strict=True):
            if others not in arrays:
                arrays[others] = self._host_indices[piece.start : piece.stop]
        return held

    def _slot(self) -> _Slot:
        device, fields = self.device, self._fields.items()
        return _Slot(
            {name: device.pinned(self._lengths[name] * kind.itemsize).view(kind) for name, kind in fields},
            {name: device.empty(self._lengths[name], kind) for name, kind in fields},
            device.empty(self._num_offsets, np.int64),
            device.event(),
            device.event(),
        )

    def _segment(self, a: int, z: int) -> _Segment:
        """Allocate what pieces ``a .. z - 1`` need to stay, as one array each."""
        pieces, others = self.pieces[a:z], _others(self.part)
        start, stop = pieces[0].start, pieces[-1].stop
        arrays, read_fields = {}, dict(self._fields)
        if stop <= len(self._first_indices):
            arrays[others] = self._first_indices[start:stop]
            del read_fields[others]
        for name in {others, "values"} & set(read_fields):
            arrays[name] = self.device.empty(stop - start, self._fields[name])
        lines = pieces[-1].stop_line - pieces[0].first_line
        return _Segment(pieces, arrays, self.device.empty(lines + 1, np.int64), read_fields)

    def _add_pointers(self, segment: _Segment, piece: Any, arrays: dict[str, Array], _slot: _Slot) -> None:
        """Make the local pointers of a piece that stays."""
        first = segment.first_line
        offset = segment.offset[piece.first_line - first : piece.stop_line - first + 1]
        _make_pointers(self.kernels, piece, arrays, offset, start=segment.start, stop=segment.stop)

    def _multiply_piece(self, semiring: Semiring, piece: Any, arrays: dict[str, Array], slot: _Slot) -> None:
        offset = slot.offset[: piece.num_lines + 1]
        _make_pointers(self.kernels, piece, arrays, offset, start=piece.start, stop=piece.stop)
        self._multiply(piece, arrays, offset, semiring)

    def _multiply(self, lines: Any, arrays: dict[str, Array], offset: Array, semiring: Semiring) -> None:
        """Multiply some lines that are on the device."""
        a, z = (line - self.part.first_line for line in (lines.first_line, lines.stop_line))
        indices, values = arrays[_others(self.part)], arrays.get("values") if semiring.uses_values else None
        if not self.by_row:
            self.kernels.multiply_columns(semiring, offset, indices, values, self.x[a:z], self.y)
        elif self.width == 1:
            self.kernels.multiply_rows(semiring, offset, indices, values, self.x, self.y[a:z])
        else:
            x, y = self.x.reshape(-1, self.width), self.y.reshape(-1, self.width)
            self.kernels.multiply_dense(semiring, offset, indices, values, x, y[a:z])

    def _run(
        self, pieces: Sequence[Any], arrays_of: _Arrays, use: _Use, fields: dict[str, Any], held: Sequence[dict[str, Array]] = ()
    ) -> None:
        """Take pieces through the slots, of which the first are `held`; the first failure is raised when nothing uses memory any more."""
        filled: list[Call[dict[str, Array]]] = []
        first, num_slots, failed = len(held), len(self._slots), True
        try:
            for i in range(first, min(first + num_slots, len(pieces))):
                filled.append(self._fill_ahead(i, pieces[i], fields, again=False))
            for i, piece in enumerate(pieces):
                self._enqueue(i, piece, held[i] if i < first else filled[i - first].result(), arrays_of, use)
                if i >= first and i + num_slots < len(pieces):
                    filled.append(self._fill_ahead(i + num_slots, pieces[i + num_slots], fields, again=True))
            failed = False
        finally:
            for one in filled:
                one.cancel()
            wait_for(filled)
            if pieces:
                with suppress(*([DeviceError] if failed else [])):  # which would hide the first
                    self.device.synchronize(self._copies)
                    self.device.synchronize(self.kernels.stream)

    def _fill_ahead(self, i: int, piece: Any, fields: dict[str, Any], *, again: bool) -> Call[dict[str, Array]]:
        slot = self._slots[i % len(self._slots)]

        def work() -> dict[str, Array]:
            if again:
                self.device.synchronize(slot.copied)
            return self._fill(piece, {name: slot.pinned[name] for name in fields})

        return self._readers.submit(work)

    def _fill(self, piece: Any, pinned: dict[str, Array]) -> dict[str, Array]:
        """Read a piece, and return what of the pinned arrays it fills."""
        target = {name: array[: _size(piece, name)] for name, array in pinned.items()}
        if (others := _others(piece)) not in target:
            piece = replace(piece, **{others: np.empty(0, self._fields[others])})
        loaded = self._read(piece, {name: array for name, array in target.items() if name != "values" or piece.values.dtype == array.dtype})
        for name, array in target.items():
            content = getattr(loaded, name)
            if name == "values" and self._semiring.is_boolean:
                np.not_equal(content, 0, out=array, casting="unsafe")
            elif not np.may_share_memory(content, array):
                np.copyto(array, content.view(array.dtype) if content.dtype.itemsize == array.itemsize and name != "values" else content)
        return target

    def _enqueue(self, i: int, piece: Any, filled: dict[str, Array], arrays_of: _Arrays, use: _Use) -> None:
        device, stream, slot = self.device, self.kernels.stream, self._slots[i % len(self._slots)]
        if i >= len(self._slots):
            device.wait(self._copies, slot.multiplied)
        arrays = arrays_of(piece, slot)
        for name, content in filled.items():
            device.copy(content, arrays[name], self._copies)
            self.bytes_requested += content.nbytes
        device.record(slot.copied, self._copies)
        device.wait(stream, slot.copied)
        use(piece, arrays, slot)
        device.record(slot.multiplied, stream)


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
    _make_pointers(kernels, piece, arrays, offset, start=piece.start, stop=piece.stop)
    multiply = kernels.multiply_rows if is_by_row(piece) else kernels.multiply_columns
    multiply(semiring, offset, arrays[_others(piece)], arrays.get("values"), x, y)


@dataclass(slots=True)
class _Slot:
    """Room for one piece: in pinned memory, on the device, and when the one was copied and the other multiplied."""

    pinned: dict[str, Array]
    arrays: dict[str, Array]
    offset: Array
    copied: Any
    multiplied: Any


@dataclass(slots=True)
class _Segment:
    """Pieces that stay, as one: indices and values, local pointers, and the fields that are read for them."""

    pieces: list[Any]
    arrays: dict[str, Array]
    offset: Array
    read_fields: dict[str, Any]
    start: int = field(init=False)
    stop: int = field(init=False)
    first_line: int = field(init=False)
    stop_line: int = field(init=False)

    def __post_init__(self) -> None:
        first, last = self.pieces[0], self.pieces[-1]
        self.start, self.stop, self.first_line, self.stop_line = first.start, last.stop, first.first_line, last.stop_line


_Arrays = Callable[[Any, _Slot], dict[str, Array]]
"""Called with a piece and its slot; returns where on the device its fields go."""

_Use = Callable[[Any, dict[str, Array], _Slot], None]
"""Called with a piece, its fields on the device, and its slot; launches what is to be done with them."""


def _slot_arrays(piece: Any, slot: _Slot) -> dict[str, Array]:
    return {name: array[: _size(piece, name)] for name, array in slot.arrays.items()}


def _resident_arrays(segment: _Segment, piece: Any, slot: _Slot) -> dict[str, Array]:
    """Of a piece that stays: its place in the segment, and room in a slot for what only pointers are made of."""
    own = slice(piece.start - segment.start, piece.stop - segment.start)
    return _slot_arrays(piece, slot) | {name: array[own] for name, array in segment.arrays.items()}


def _make_pointers(kernels: GpuProductKernels, piece: Any, arrays: dict[str, Array], offset: Array, *, start: int, stop: int) -> None:
    """Write the pointers of a piece, local to nonzeros ``start .. stop - 1`` of which it is one, to `offset`: (num_lines + 1,)."""
    if isinstance(piece, PartialCOO):
        lines = arrays["rows" if piece.by == "row" else "columns"]
        begun = piece.first_line_partial and piece.start > start
        kernels.line_pointers(lines, piece.first_line, piece.num_lines, offset, base=piece.start - start, begun=begun)
    else:
        kernels.local_pointers(arrays["pointers"], start, stop, offset)


def _others(part: Any) -> str:
    """Name of the field that says where on its line a nonzero is."""
    return ("columns" if part.by == "row" else "rows") if isinstance(part, PartialCOO) else "indices"


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


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // HELD_ALIGNMENT) * HELD_ALIGNMENT


def _size(piece: Any, name: str) -> int:
    return int(piece.num_lines + 1 if name == "pointers" else piece.num_entries)


def _piece_lengths(part: Any, fields: dict[str, np.dtype[Any]], room_bytes: int) -> tuple[int, int]:
    """Nonzeros of a piece, so that `NUM_SLOTS` fit beside their pointers where lines are not many more, and of the smallest pieces."""
    entry_bytes = sum(kind.itemsize for kind in fields.values()) + 8
    least = max(MIN_PIECE_ENTRIES, -(-part.num_entries // MAX_PIECES))
    return min(PIECE_ENTRIES, max(least, room_bytes // (NUM_SLOTS * entry_bytes))), least


def _pieces(part: Any, length: int, num_held: int) -> list[Any]:
    """Cut a part into pieces of `length` nonzeros; none begins before nonzero `num_held` and ends behind it."""
    bounds = [*range(part.start, part.stop, length), part.stop] if part.num_entries else []
    if bounds and part.start < num_held < part.stop:
        bounds = sorted({*bounds, num_held})
    return cut(part, bounds) if bounds else []
