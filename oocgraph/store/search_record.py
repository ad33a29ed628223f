"""One record of the log of a search: what a step has found among the vertices of a partition, as bytes and back.

In: a `Record`. Out: its bytes (`encode`), and a record again (`read_record`), which is not trusted. A record is a header of 64 bytes, then
five arrays without gaps, all little-endian::

    magic "OOCL", version uint16, flags uint8 (1: dense), bytes of an index uint8, step int64, level int64,
    num_early, num_found, num_parents int64, crc32c of the vertices, crc32c of the parents, 4 bytes of nothing, crc32c of the header
    vertices: found, early_vertex, early_level
    parents:  parent, early_parent

The parents are most of the bytes and stand last, with a checksum of their own, so that a reader without need of them seeks over them.
The arrays descend in the size of their elements, so that views of one buffer are aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import google_crc32c
import numpy as np

from oocgraph.store.files import read_into
from oocgraph.types import Array

_HEADER = struct.Struct("<4sHBBqqqqqIIxxxxI")
_MAGIC, _VERSION, _DENSE = b"OOCL", 1, 1
_INDEX_DTYPES: dict[int, np.dtype[Any]] = {4: np.dtype("<u4"), 8: np.dtype("<i8")}
_WORD: np.dtype[Any] = np.dtype("<u8")
_LEVEL: np.dtype[Any] = np.dtype("<i4")
_LAST_LEVEL = np.iinfo(_LEVEL).max - 1
_Part: TypeAlias = tuple[int, np.dtype[Any]]  # length and dtype of an array within a record


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What one step has found among the vertices of one partition.

    Attributes
    ----------
    step
        0, 1, 2, ...
    level
        Level of the vertices of `found`: the one that the search has reached after this step.
    early_vertex : (num_early,) index dtype
        Local positions of vertices found in the tiny levels before, which every worker took alike.
    early_parent : (num_early,) index dtype
        Their parents, store numbers.
    early_level : (num_early,) int32
        Their levels.
    dense
        Whether `found` is a bitmap.
    found : (num_found,) index dtype, or (num_words,) uint64
        Local positions, ascending; dense: a bitmap over local positions.
    parent : (num_found,) index dtype
        Parents of what was found, store numbers, in ascending order of the vertex. Empty, as `early_parent`, when read without parents;
        a dense record may be written without (they can be found again, by a pull).
    """

    step: int
    level: int
    early_vertex: Array
    early_parent: Array
    early_level: Array
    dense: bool
    found: Array
    parent: Array


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a record of a partition can name. A log is input like any other file: right checksums are no reason to trust it.

    Attributes
    ----------
    num_owned
        Vertices of the partition.
    num_vertices
        Of the graph.
    """

    num_owned: int
    num_vertices: int

    @property
    def num_words(self) -> int:
        """Words of a bitmap over the partition's vertices."""
        return max(1, -(-self.num_owned // 64))


class WrongRecordError(Exception):
    """A record is not as it was written; the message continues "the record at byte n ..."."""


def encode(record: Record) -> list[Array]:
    """Return the header and the arrays of a record as bytes; only the header is made again."""
    index = record.parent.dtype.newbyteorder("<")
    if _INDEX_DTYPES.get(index.itemsize) != index:
        raise ValueError(f"parents are {index}; an index dtype is uint32 or int64")
    num_early, num_parents = record.early_vertex.size, record.parent.size
    if record.early_parent.size != num_early or record.early_level.size != num_early:
        raise ValueError(f"{num_early} early vertices, but {record.early_parent.size} parents and {record.early_level.size} levels")
    if not record.dense and record.found.size != num_parents:
        raise ValueError(f"{record.found.size} vertices found, but {num_parents} parents")
    vertices = [
        _raw(record.found, _WORD if record.dense else index, "found"),
        _raw(record.early_vertex, index, "early_vertex"),
        _raw(record.early_level, _LEVEL, "early_level"),
    ]
    parents = [_raw(record.parent, index, "parent"), _raw(record.early_parent, index, "early_parent")]
    flags = _DENSE if record.dense else 0
    counts = num_early, record.found.size, num_parents
    checksums = _crc32c(*vertices), _crc32c(*parents)
    header = np.frombuffer(
        bytearray(_HEADER.pack(_MAGIC, _VERSION, flags, index.itemsize, record.step, record.level, *counts, *checksums, 0)), np.uint8
    )
    header[-4:].view("<u4")[0] = _crc32c(header[:-4])
    return [header, *vertices, *parents]


def _raw(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype} with {array.ndim} dimensions instead of {dtype} with one")
    return np.ascontiguousarray(array).view(np.uint8)


def _crc32c(*pieces: Array) -> int:
    checksum = 0
    for piece in pieces:
        checksum = google_crc32c.extend(checksum, piece)
    return checksum


def read_record(fd: int, offset: int, num_bytes: int, bounds: Bounds, *, parents: bool) -> tuple[Record, int]:
    """Return the record at `offset` of a file of `num_bytes`, and where it ends."""
    raw = _read(fd, offset, _HEADER.size, num_bytes)
    magic, version, flags, itemsize, step, level, *counts, vertex_crc, parent_crc, header_crc = _HEADER.unpack(raw.data)
    if magic != _MAGIC or header_crc != _crc32c(raw[:-4]):
        raise WrongRecordError("has a damaged header")
    if version != _VERSION or itemsize not in _INDEX_DTYPES or min(counts) < 0:
        raise WrongRecordError(f"is of version {version} or has impossible sizes")
    index, dense = _INDEX_DTYPES[itemsize], bool(flags & _DENSE)
    num_early, num_found, num_parents = counts
    most = max(bounds.num_words, bounds.num_owned) if dense else bounds.num_owned
    if not 0 <= level <= min(bounds.num_vertices, _LAST_LEVEL) or max(counts) > most:
        raise WrongRecordError(f"has level {level} and lists of {counts}, too many for {bounds}")
    if not dense and num_parents != num_found:
        raise WrongRecordError(f"has {num_parents} parents of {num_found} vertices")
    vertex_parts: list[_Part] = [(num_found, _WORD if dense else index), (num_early, index), (num_early, _LEVEL)]
    parent_parts: list[_Part] = [(num_parents, index), (num_early, index)]
    vertices_at = offset + _HEADER.size
    parents_at = vertices_at + _size(vertex_parts)
    end = parents_at + _size(parent_parts)
    if end > num_bytes:
        raise WrongRecordError(f"is torn: it needs bytes up to {end}, but the file has {num_bytes}")
    raw = _read(fd, vertices_at, parents_at - vertices_at, num_bytes)
    if _crc32c(raw) != vertex_crc:
        raise WrongRecordError("has vertices that differ from their checksum")
    found, early_vertex, early_level = _split(raw, vertex_parts)
    _check_vertices(found, early_vertex, early_level, level, bounds, dense=dense)
    parent = early_parent = np.empty(0, index)
    if parents:
        raw = _read(fd, parents_at, end - parents_at, num_bytes)
        if _crc32c(raw) != parent_crc:
            raise WrongRecordError("has parents that differ from their checksum")
        parent, early_parent = _split(raw, parent_parts)
        if any(_is_outside(one, bounds.num_vertices) for one in (parent, early_parent)):
            raise WrongRecordError(f"names a parent that is none of {bounds.num_vertices:,} vertices")
    return Record(step, level, early_vertex, early_parent, early_level, dense, found, parent), end


def _check_vertices(found: Array, early_vertex: Array, early_level: Array, level: int, bounds: Bounds, *, dense: bool) -> None:
    """Refuse vertices that the partition does not have, and levels that the search has not reached."""
    if dense:
        rest = bounds.num_words * 64 - bounds.num_owned
        outside = found.size != bounds.num_words or (rest > 0 and int(found[-1]) >> (64 - rest) != 0)
    else:
        outside = _is_outside(found, bounds.num_owned)
    if outside or _is_outside(early_vertex, bounds.num_owned):
        raise WrongRecordError(f"names a vertex that is none of the partition's {bounds.num_owned:,}")
    if _is_outside(early_level, level + 1):
        raise WrongRecordError(f"has vertices found early at a level beyond its own, {level}")


def _is_outside(numbers: Array, stop: int) -> bool:
    """Whether any of some numbers is not in ``0 .. stop - 1``."""
    return bool(numbers.size) and not (int(numbers.min()) >= 0 and int(numbers.max()) < stop)


def _size(parts: Sequence[_Part]) -> int:
    return sum(count * dtype.itemsize for count, dtype in parts)


def _split(raw: Array, parts: Sequence[_Part]) -> list[Array]:
    arrays, start = [], 0
    for count, dtype in parts:
        stop = start + count * dtype.itemsize
        arrays.append(raw[start:stop].view(dtype))
        start = stop
    return arrays


def _read(fd: int, offset: int, wanted: int, num_bytes: int) -> Array:
    """Return `wanted` bytes at `offset`."""
    if offset + wanted > num_bytes:
        raise WrongRecordError(f"is torn: it needs bytes up to {offset + wanted}, but the file has {num_bytes}")
    raw = np.empty(wanted, np.uint8)
    if (end := read_into(fd, [raw], offset)) < offset + wanted:
        raise WrongRecordError(f"is torn: the file ends at byte {end}")
    return raw
