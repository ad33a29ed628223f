"""Records of bins in rows of bytes (`oocgraph.external_sort.bins`): the key, less its bin's first one, then each column.

Numbers are little-endian and lie anywhere. A row is dealt column by column, for dtypes are known to compiled code: who calls takes so few
records at a time that the rows which they are dealt to stay in a cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import load_four, load_number, store_four, store_number
from oocgraph.compiled.load import Call

LEAST_KEY_BYTES = 4


@nb.njit(nogil=True, cache=True)
def find_places(bin_of: Any, cursor: Any, places: Any) -> None:
    """Write the row of each record, bin after bin; ``cursor : (num_bins,) int64`` holds each bin's first row and is advanced."""
    for i in range(bin_of.size):
        chosen = bin_of[i]
        places[i] = cursor[chosen]
        cursor[chosen] += 1


@nb.njit(nogil=True, cache=True)
def put_keys(keys: Any, bin_of: Any, firsts: Any, places: Any, row_bytes: Any, key_bytes: Any, rows: Any) -> None:
    """Write keys to their rows, less the first key of their bin, in `LEAST_KEY_BYTES` to 8 bytes."""
    for i in range(keys.size):
        key = keys[i] - firsts[bin_of[i]]
        at = np.int64(places[i]) * row_bytes
        if key_bytes == 8:
            store_number(rows, at, key)
            continue
        store_four(rows, at, np.uint32(key & np.uint64(0xFFFFFFFF)))
        for byte in range(4, key_bytes):
            rows[at + byte] = np.uint8((key >> np.uint64(8 * byte)) & np.uint64(255))


@nb.njit(nogil=True, cache=True)
def put_column(values: Any, places: Any, row_bytes: Any, offset: Any, rows: Any) -> None:
    """Write unsigned integers to their rows, `offset` bytes behind where these begin."""
    for i in range(values.size):
        store_number(rows, np.int64(places[i]) * row_bytes + offset, values[i])


@nb.njit(nogil=True, cache=True)
def take_keys(rows: Any, first: Any, row_bytes: Any, key_bytes: Any, keys: Any) -> None:
    """Read keys from consecutive rows, with 4 bytes behind them; `first` is that of their bin."""
    if key_bytes == 8:
        for i in range(keys.size):
            keys[i] = first + load_number(rows, i * row_bytes, keys)
        return
    mask = (np.uint64(1) << np.uint64(8 * (key_bytes - 4))) - np.uint64(1)
    for i in range(keys.size):
        high = np.uint64(load_four(rows, i * row_bytes + 4)) & mask
        keys[i] = first + (np.uint64(load_four(rows, i * row_bytes)) | (high << np.uint64(32)))


@nb.njit(nogil=True, cache=True)
def take_column(rows: Any, row_bytes: Any, offset: Any, values: Any) -> None:
    """Read unsigned integers from consecutive rows."""
    for i in range(values.size):
        values[i] = load_number(rows, i * row_bytes + offset, values)


def row_calls(dtypes: Iterable[np.dtype[Any]] = ()) -> list[Call]:
    """Return what deals rows of some columns, and reads them, calls."""
    keys, small, ids, places = np.zeros(1, np.uint64), np.zeros(1, np.uint16), np.zeros(1, np.int64), np.zeros(1, np.uint32)
    rows = np.zeros(16, np.uint8)
    return [
        (find_places, (small, ids, places)),
        (put_keys, (keys, small, keys, places, 8, 8, rows)),
        (take_keys, (rows, np.uint64(0), 8, 8, keys)),
        *(call for dtype in {np.dtype(f"u{dtype.itemsize}") for dtype in dtypes} | {keys.dtype} for call in column_calls(dtype)),
    ]


def column_calls(dtype: np.dtype[Any]) -> list[Call]:
    """Return what deals a column of some unsigned integers, and reads it, calls."""
    values, places, rows = np.zeros(1, dtype), np.zeros(1, np.uint32), np.zeros(8, np.uint8)
    return [(put_column, (values, places, 8, 0, rows)), (take_column, (rows, 8, 0, values))]
