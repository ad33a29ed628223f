"""Strings in Arrow's layout, as two NumPy arrays, and where they are in memory, for kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from oocgraph.allocator import passing_array
from oocgraph.errors import OocGraphError
from oocgraph.kernels.strings import are_same, copy_strings, distinct_hashes, group_hashes, hash_strings, sort_strings
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.team import Team

logger = logging.getLogger(__name__)


def bytes_at(strings: Any, places: Array) -> int:
    """Return the bytes of the values of a pyarrow.LargeStringArray at some places, each as often as it is there.

    Examples
    --------
    >>> import pyarrow as pa
    >>> bytes_at(pa.array(["ab", "", "c"], pa.large_string()), np.array([0, 0, 2]))
    5
    """
    if not places.size:
        return 0
    offsets = np.frombuffer(strings.buffers()[1], np.int64)[strings.offset :]
    return int(offsets[places + 1].sum() - offsets[places].sum())


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


GROUP_STRINGS, MOST_GROUP_BITS = 1 << 13, 10
"""Number of strings that share a hash table (192 KiB of hashes and slots), and largest number of such groups."""

HASH_SECONDS, COMPARE_SECONDS, SORT_SECONDS, COPY_SECONDS = 1e-8, 2e-8, 1.5e-7, 2e-8
"""Approximate seconds per string, by which little work is left to one thread."""

GROUP_SECONDS = 2e-8 * GROUP_STRINGS
"""About what a group takes."""

RANGES_PER_THREAD = 64
"""Ranges per thread into which strings are cut before threads sort them."""

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
        place, length = (passing_array(sum(offsets.size - 1 for _, offsets in parts), np.int64) for _ in range(2))
        start = 0
        for raw, offsets in parts:
            stop = start + offsets.size - 1
            np.add(offsets[:-1], raw.ctypes.data, out=place[start:stop])
            np.subtract(offsets[1:], offsets[:-1], out=length[start:stop])
            start = stop
        return cls(place, length, parts)

    def __len__(self) -> int:
        return int(self.place.size)

    def hashes(self, seed: int, team: Team | None = None) -> Array:
        """64-bit hash of each string: (n,) uint64; all threads of a team share the work, if one is given, as in other methods."""
        out = passing_array(len(self), np.uint64)

        def hash_range(start: int, stop: int) -> None:
            hash_strings(self.place[start:stop], self.length[start:stop], np.uint64(seed), out[start:stop])

        _in_ranges(hash_range, len(self), HASH_SECONDS, team)
        return out

    def distinct(self, hashes: Array, team: Team | None = None) -> tuple[Array, Array]:
        """Tell strings apart: those of groups by hash, so that the table of each is in a core's cache.

        Returns
        -------
        first : (num_distinct,) int64
            Position of the first one of each distinct string, ascending.
        same : (n,) int32
            Of each string the position of the first one that equals it.

        Raises
        ------
        HashCollisionError
            Two have the same hash.
        """
        bits = min(MOST_GROUP_BITS, max(1, (len(self) // GROUP_STRINGS).bit_length()))
        starts, grouped = np.empty((1 << bits) + 1, np.int64), passing_array(len(self), np.uint64)
        order, same = (passing_array(len(self), np.int32) for _ in range(2))
        group_hashes(hashes, np.uint64(64 - bits), starts, grouped, order)
        _in_ranges(lambda start, stop: distinct_hashes(grouped, order, starts, start, stop, same), 1 << bits, GROUP_SECONDS, team)

        def compare(start: int, stop: int) -> None:  # in the strings' own order: equal ones are often near each other
            if not are_same(self.place, self.length, same, start, stop):
                raise HashCollisionError

        _in_ranges(compare, len(self), COMPARE_SECONDS, team)
        return np.flatnonzero(same == np.arange(len(self), dtype=np.int32)), same

    def ascending(self, order: Array, team: Team | None = None) -> Array:
        """Return the positions of distinct strings in order of their bytes."""
        ordered, keys = order.copy(), np.empty(order.size, np.uint64)
        together = team is not None and team.distribution(order.size, SORT_SECONDS * order.size) != "alone"
        parts = RANGES_PER_THREAD * team.threads if team is not None and together else 0
        left, most = np.empty((parts, 4), np.int64), 4 * ordered.size // parts if parts else 0
        num_left = sort_strings(self.place, self.length, ordered, keys, 0, ordered.size, 0, 0, most, left)
        if team is not None and num_left:
            ranges = sorted(left[:num_left].tolist(), key=lambda one: one[0] - one[1])
            team.run(lambda one: sort_strings(self.place, self.length, ordered, keys, *one, 0, left[:0]), ranges)
        return ordered

    def chosen(self, order: Array) -> Placed:
        """Return some of the strings, where they are."""
        return Placed(self.place[order], self.length[order], self.owners)

    def copied(self, order: Array, team: Team | None = None) -> Any:
        """Return some of the strings as a large_binary array."""
        offsets = np.append(0, np.cumsum(self.length[order]))
        data = passing_array(int(offsets[-1]), np.uint8)

        def copy_range(start: int, stop: int) -> None:
            copy_strings(self.place, self.length, order[start:stop], data[offsets[start] : offsets[stop]])

        _in_ranges(copy_range, order.size, COPY_SECONDS, team)
        return _of_offsets(offsets, data)


def _in_ranges(call: Callable[[int, int], None], size: int, seconds: float, team: Team | None) -> None:
    """Call ``call(start, stop)`` for all of ``0 .. size - 1``, each of which takes so long: in parts if there is a team."""
    if team is None:
        call(0, size)
    else:
        team.run_range(call, size, seconds * size)


def from_buffers(lengths: Array, data: Array) -> Any:
    """Make a large_binary array of lengths and bytes."""
    return _of_offsets(np.append(0, np.cumsum(lengths, dtype=np.int64)), data)


def _of_offsets(offsets: Array, data: Array) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
