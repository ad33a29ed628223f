"""Provisional ids: the position of a vertex in ascending order of the user's ids.

Integer ids that fill a range well enough need no table: the position is ``id - first``, with gaps that turn out to
be no vertices. Sparse integers and strings are found externally (``sparse_ids``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.types import Array


@dataclass(frozen=True, slots=True)
class IdSpace:
    """Integer ids by range.

    Attributes
    ----------
    first
        The id of position 0.
    num_ids
        Number of positions.
    implied : (first, stop) or None
        When every id of that range is a vertex, used or not.
    """

    first: int
    num_ids: int
    implied: tuple[int, int] | None

    def read(self, start: int, stop: int) -> Array:
        """Ids of the positions ``start .. stop - 1``: (n,) int64."""
        return np.arange(self.first + start, self.first + stop, dtype=np.int64)
