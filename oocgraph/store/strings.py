"""Strings in Arrow's layout, as two NumPy arrays, and where they are in memory, for kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.kernels.strings import copy_strings, distinct_strings, hash_strings, sort_strings
from oocgraph.types import Array

logger = logging.getLogger(__name__)


def string_buffers(strings: Any) -> tuple[Array, Array]:
    """Return uint8 bytes and int64 offsets (from 0) of a pyarrow.LargeStringArray without nulls.

    Examples
    --------
    >>> import pyarrow as pa
    >>> string_buffers(pa.array(["ab", "", "c"], pa.large_string()))[1].tolist()
    [0, 2, 2, 3]
    """
    if not len(strings):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = strings.buffers()
    bounds = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return raw[bounds[0] : bounds[-1]], bounds - bounds[0]


MAX_ATTEMPTS = 8
"""Seeds tried: two of 100 million strings share a hash once in 4,000 builds."""

Result = TypeVar("Result")


class HashCollisionError(Exception):
    """Two different strings have the same hash under a seed."""


def with_a_seed(function: Callable[[int, int], Result], description: str) -> Result:
    """Return the result of a function of a seed and of the number of the attempt, with another seed where strings have the same hash.

    Raises
    ------
    OocGraphError
        They have under `MAX_ATTEMPTS` seeds.
    """
    for attempt in range(MAX_ATTEMPTS):
        try:
            return function(0x9E3779B97F4A7C15 * (2 * attempt + 1) % 2**64, attempt)
        except HashCollisionError:
            logger.info("two strings have the same hash; trying again with another seed")
    raise OocGraphError(f"{description}: strings collide under {MAX_ATTEMPTS} hash seeds; please report this input")


@dataclass(frozen=True, slots=True)
class Placed:
    """Strings where they are in memory, for kernels.

    Attributes
    ----------
    place, length : (n,) int64
        Address and bytes of each.
    owners
        What holds the memory.
    """

    place: Array
    length: Array
    owners: Any

    @classmethod
    def of(cls, arrays: Sequence[Any]) -> Placed:
        """Strings of pyarrow large string or binary arrays, together."""
        parts = [string_buffers(array) for array in arrays]
        place = [raw.ctypes.data + offsets[:-1] for raw, offsets in parts]
        none = np.empty(0, np.int64)
        return cls(np.concatenate([none, *place]), np.concatenate([none, *(np.diff(offsets) for _, offsets in parts)]), parts)

    def __len__(self) -> int:
        return int(self.place.size)

    def hashes(self, seed: int) -> Array:
        """64-bit hash of each string: (n,) uint64."""
        out = np.empty(len(self), np.uint64)
        hash_strings(self.place, self.length, np.uint64(seed), out)
        return out

    def distinct(self, hashes: Array) -> tuple[Array, Array]:
        """Tell strings apart.

        Returns
        -------
        first : (num_distinct,) int64
            Position of the first one of each distinct string.
        number : (n,) int32
            Where in `first` each string is.

        Raises
        ------
        HashCollisionError
            Two have the same hash.
        """
        slots, first, number = np.empty(2 << len(self).bit_length(), np.int32), np.empty(len(self), np.int64), np.empty(len(self), np.int32)
        count = distinct_strings(self.place, self.length, hashes, slots, first, number)
        if count < 0:
            raise HashCollisionError
        return first[:count], number

    def ascending(self, order: Array) -> Array:
        """Return the positions of distinct strings in order of their bytes."""
        ordered = order.copy()
        sort_strings(self.place, self.length, ordered, np.empty(ordered.size, np.uint64))
        return ordered

    def chosen(self, order: Array) -> Placed:
        """Return some of the strings, where they are."""
        return Placed(self.place[order], self.length[order], self.owners)

    def copied(self, order: Array) -> Any:
        """Return some of the strings as a large_binary array."""
        length = self.length[order]
        data = np.empty(int(length.sum()), np.uint8)
        copy_strings(self.place, self.length, order, data)
        return from_buffers(length, data)


def from_buffers(lengths: Array, data: Array) -> Any:
    """Make a large_binary array of lengths and bytes."""
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    import pyarrow as pa

    return pa.Array.from_buffers(pa.large_binary(), lengths.size, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
