"""CSR rows as edges: which row each stored entry belongs to, for any range of entries."""

from __future__ import annotations

import numpy as np

from oocgraph.types import Array


def rows_of_entries(indptr: Array, first_row: int, low: int, high: int) -> Array:
    """Row of each of the entries ``low .. high``.

    Parameters
    ----------
    indptr : (num_rows + 1,) int64
        Offsets of consecutive rows, of which the first is row `first_row`; they cover the entries asked for.

    Returns
    -------
    (high - low,) int64

    Examples
    --------
    >>> rows_of_entries(np.array([0, 2, 2, 5]), 10, 1, 4).tolist()
    [10, 12, 12]
    """
    begin = int(np.searchsorted(indptr, low, side="right")) - 1
    end = int(np.searchsorted(indptr, high, side="left"))
    lengths = np.diff(np.clip(indptr[begin : end + 1], low, high))
    return np.repeat(np.arange(first_row + begin, first_row + begin + lengths.size, dtype=np.int64), lengths)
