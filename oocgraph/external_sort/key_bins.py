"""Ranges of keys, chosen so that each holds about the same number of entries.

In: how many entries lie below each of some keys (exactly, or guessed from a sample). Out: `KeyBins`, a table from a
key's cell (see ``kernels/build.py``) to its bin, and the first key of each bin. Bins ascend: whatever sorts each bin sorts all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from oocgraph.kernels.build import CELL_BITS, KEY_BITS, count_bins
from oocgraph.kernels.packed_rows import LEAST_KEY_BYTES
from oocgraph.types import Array

Weights = Callable[[Array], Array]
"""Maps ascending keys (uint64) to the number of entries below each (any unit, float64)."""


@dataclass(frozen=True, slots=True)
class KeyBins:
    """Consecutive ranges of uint64 keys.

    Attributes
    ----------
    low, high
        All keys are in ``low .. high - 1``.
    drop_bits
        Low bits that the choice of a bin ignores (only when the range is beyond 2**52).
    table : (num_cells,) uint16
        Bin of each cell.
    starts : (num_bins + 1,) int
        First key of each bin; the last is ``high``.
    """

    low: int
    high: int
    drop_bits: int
    table: Array
    starts: tuple[int, ...]

    @property
    def num_bins(self) -> int:
        """Number of ranges."""
        return len(self.starts) - 1

    @property
    def key_bytes(self) -> int:
        """Bytes in which a key is stored, less its bin's first key: 4, 5, 6 or 8, for the disk is slower than packing (1 ns)."""
        bits = max((stop - start - 1).bit_length() for start, stop in pairwise(self.starts))
        return max(LEAST_KEY_BYTES, -(-bits // 8)) if bits <= 48 else 8

    def assign(self, keys: Array, bin_of: Array) -> Array:
        """Write the bin of each key to ``bin_of : (n,) uint16``; return the size of each bin: (num_bins,) int64."""
        counts = np.zeros(self.num_bins, np.int64)
        count_bins(keys, np.uint64(self.low), np.uint64(self.drop_bits), self.table, bin_of, counts)
        return counts


@dataclass(frozen=True, slots=True)
class SplitterBins:
    """Ranges of uint64 keys cut anywhere; a bin is found by bisection (12 ns a key, a table takes 2 ns).

    Attributes
    ----------
    splitters : (num_bins - 1,) uint64
        First key of every bin but the first, ascending.
    """

    splitters: Array
    key_bytes = 8

    @property
    def num_bins(self) -> int:
        """Number of ranges."""
        return self.splitters.size + 1

    @property
    def starts(self) -> tuple[int, ...]:
        """First key of each bin, and the end of all."""
        return (0, *self.splitters.tolist(), 1 << 64)

    def assign(self, keys: Array, bin_of: Array) -> Array:
        """Write the bin of each key to ``bin_of : (n,) uint16``; return the size of each bin: (num_bins,) int64."""
        bin_of[:] = np.searchsorted(self.splitters, keys, side="right")
        return np.bincount(bin_of, minlength=self.num_bins).astype(np.int64, copy=False)


def dropped_bits(low: int, high: int) -> int:
    """Low bits to ignore so that an offset into the range is a whole number below 2**52."""
    return max(0, (high - low).bit_length() - KEY_BITS)


def cell_starts(low: int, high: int) -> list[int]:
    """First key of each cell of ``low .. high - 1``, and ``high``."""
    drop = dropped_bits(low, high)
    one = np.float64(1).view(np.uint64) >> np.uint64(KEY_BITS - CELL_BITS)
    last = np.float64(((high - 1 - low) >> drop) + 1).view(np.uint64) >> np.uint64(KEY_BITS - CELL_BITS)
    codes = np.arange(one, last + np.uint64(1), dtype=np.uint64) << np.uint64(KEY_BITS - CELL_BITS)
    offsets = (np.ceil(codes.view(np.float64)).astype(np.uint64) - np.uint64(1)) << np.uint64(drop)
    inside = offsets[offsets <= np.uint64(high - 1 - low)]  # `high` may be 2**64, which no array holds
    starts: list[int] = (inside + np.uint64(low)).tolist()
    return starts + [high] * (offsets.size - inside.size + 1)


def balanced_bins(low: int, high: int, num_bins: int, weights: Weights) -> KeyBins:
    """Cut ``low .. high - 1`` into at most `num_bins` ranges of about equal weight.

    A range is never narrower than a cell; an empty range of keys gives one bin.
    """
    high = max(high, low + 1)
    starts = cell_starts(low, high)
    below = np.asarray(weights(np.array(starts, np.uint64)), np.float64) if high < 2**64 else _below_all(starts, weights)
    return bins_of_cells(low, high, num_bins, starts, below)


def bins_of_cells(low: int, high: int, num_bins: int, starts: list[int], below: Array) -> KeyBins:
    """`balanced_bins` where the weight below the start of each cell, and below `high`, is known: float64."""
    below = below - below[0]
    total = below[-1] if below[-1] > 0 else 1.0
    middle = (below[:-1] + below[1:]) / 2
    wanted = np.minimum(num_bins - 1, np.floor(middle * num_bins / total)).astype(np.int64)
    chosen, table = np.unique(wanted, return_inverse=True)
    first_cell = np.searchsorted(wanted, chosen)
    return KeyBins(low, high, dropped_bits(low, high), table.astype(np.uint16), (*(starts[c] for c in first_cell.tolist()), high))


def _below_all(starts: list[int], weights: Weights) -> Array:
    """Weights when the range ends at 2**64, which is not a uint64."""
    below = np.asarray(weights(np.array(starts[:-1], np.uint64)), np.float64)
    return np.append(below, max(below[-1] + 1, np.asarray(weights(np.array([2**64 - 1], np.uint64)), np.float64)[0]))


def uniform_bins(low: int, high: int, num_bins: int) -> KeyBins:
    """Ranges of about equal width: for permutations and hashes."""
    return balanced_bins(low, high, num_bins, lambda keys: keys.astype(np.float64))


def sampled_bins(low: int, high: int, num_bins: int, sample: Array) -> KeyBins:
    """Ranges by a sample of the keys, half trusted.

    The other half of the weight is uniform, so that an odd sample costs a factor of two at most where it says nothing.
    """
    ordered = np.sort(np.asarray(sample, np.uint64))
    width = float(high - low)

    def weights(keys: Array) -> Array:
        uniform = (keys.astype(np.float64) - float(low)) / width
        if not ordered.size:
            return uniform
        return uniform + np.searchsorted(ordered, keys) / ordered.size

    return balanced_bins(low, high, num_bins, weights)


def one_bin(high: int) -> KeyBins:
    """Return a single range ``0 .. high - 1``: a plain sequence of records."""
    return uniform_bins(0, high, 1)
