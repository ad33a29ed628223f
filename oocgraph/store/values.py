"""Which values an array of a store may hold, where something else is indexed by them.

In: a range of an array as it was read. Out: the first element that breaks the rule, with the reason. A store is input, and kernels do not
check their indices, so no array reaches one without passing its rule (`oocgraph.store.arrays`): one pass over values just read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from oocgraph.types import Array

BLOCK = 1 << 18
"""Elements compared at once, so that what a comparison allocates does not grow with the array."""


@dataclass(frozen=True, slots=True)
class Below:
    """Numbers from 0 to ``stop - 1``: of vertices, partitions or categories."""

    stop: int
    ordered = False

    def broken(self, values: Array, start: int, length: int, before: int | None) -> tuple[int, str] | None:
        """Return the position in `values` of the first one that breaks the rule, and what it should be; None where all keep to it.

        Parameters
        ----------
        values : (n,) integers
            Elements ``start .. start + n - 1``, at least one.
        length
            Elements of the array.
        before
            Element ``start - 1``, where there is one and the rule is `ordered`.
        """
        unsigned = values.view(f"u{values.dtype.itemsize}")  # what is negative is large
        if int(unsigned.max()) < self.stop:
            return None
        return int(np.argmax(unsigned >= self.stop)), f"must be at least 0 and below {self.stop:,}"


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where the rows of another array begin: from 0 to its length, never descending."""

    stop: int
    ordered = True

    def broken(self, values: Array, start: int, length: int, before: int | None) -> tuple[int, str] | None:
        """See `Below.broken`."""
        if start == 0 and values[0] != 0:
            return 0, "must be 0"
        if values[0] < 0:  # as the element before it may be, which was not read
            return 0, "must not be negative"
        if start + values.size == length and values[-1] != self.stop:
            return values.size - 1, f"must be {self.stop:,}, the length of what it divides"
        at = _first_descent(values, before, strict=False)
        if at is not None:
            return at, "must not be below the element before it"
        # ascending: the last one is the largest
        return None if values[-1] <= self.stop else (int(np.argmax(values > self.stop)), f"must be at most {self.stop:,}")


@dataclass(frozen=True, slots=True)
class Ascending:
    """Distinct ids in ascending order, from `first` to ``stop - 1``."""

    first: int
    stop: int
    ordered = True

    def broken(self, values: Array, start: int, length: int, before: int | None) -> tuple[int, str] | None:
        """See `Below.broken`."""
        if values[0] < self.first:
            return 0, f"must be at least {self.first}"
        at = _first_descent(values, before, strict=True)
        if at is not None:
            return at, "must be above the element before it"
        return None if values[-1] < self.stop else (int(np.argmax(values >= self.stop)), f"must be below {self.stop}")


Rule: TypeAlias = Below | Offsets | Ascending
"""What the values of an array must keep to; where it is `ordered`, a value is compared with the one before it."""


def _first_descent(values: Array, before: int | None, *, strict: bool) -> int | None:
    """Position of the first value below the one before it (`strict`: or equal to it)."""
    wrong = np.less_equal if strict else np.less
    if before is not None and wrong(values[0], before):
        return 0
    for a in range(0, values.size - 1, BLOCK):
        z = min(values.size - 1, a + BLOCK)
        found = wrong(values[a + 1 : z + 1], values[a:z])
        if found.any():
            return a + 1 + int(np.argmax(found))
    return None
