"""Compiled steps of a join by 64-bit keys: look them up in an ascending table, by cells of equal width.

The cells of a table are as many as its keys, so a key that is spread evenly is found within a few entries; elsewhere its cell is bisected.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.load import Call
from oocgraph.kernels.build import edge_keys
from oocgraph.kernels.packed_rows import column_calls

FEW = 8
"""Entries that are looked through one after the other."""


@nb.njit(nogil=True, cache=True)
def cut_cells(keys: Any, shift: Any, starts: Any) -> None:
    """Write where each cell begins among ascending keys: cell c has those with ``(key - keys[0]) >> shift == c``.

    ``starts : (num_cells + 1,) int64`` is overwritten.
    """
    cell = np.uint64(0)
    for i in range(keys.size):
        own = (keys[i] - keys[0]) >> shift
        while cell <= own:
            starts[cell] = i
            cell += np.uint64(1)
    while cell < starts.size:
        starts[cell] = keys.size
        cell += np.uint64(1)


@nb.njit(nogil=True, cache=True)
def find_keys(keys: Any, shift: Any, starts: Any, wanted: Any, found: Any) -> None:
    """Write the number of keys that are below each wanted key; `starts` is as `cut_cells` writes it.

    ``keys : (n,) uint64`` ascend, n > 0; ``found : (m,) int64``.
    """
    first, last = keys[0], keys[-1]
    for i in range(wanted.size):
        key = wanted[i]
        if key <= first or key > last:
            found[i] = keys.size if key > first else 0
            continue
        cell = (key - first) >> shift
        low, high = starts[cell], starts[cell + np.uint64(1)]
        while high - low > FEW:
            middle = (low + high) >> 1
            if keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        while low < high and keys[low] < key:
            low += 1
        found[i] = low


@nb.njit(nogil=True, cache=True)
def table_of_hashes(hashes: Any, numbers: Any, shift: Any, starts: Any, keys: Any, values: Any) -> Any:
    """Bring hashes, and a number of each, into ascending order; return whether no two are equal.

    ``starts : (num_cells + 1,) int64`` is written as by `cut_cells`; hashes are spread evenly over the cells, so that each has few.
    """
    first = hashes[0] if hashes.size else np.uint64(0)
    for key in hashes:
        first = min(first, key)
    starts[:] = 0
    for key in hashes:
        starts[((key - first) >> shift) + np.uint64(1)] += 1
    for cell in range(starts.size - 1):
        starts[cell + 1] += starts[cell]
    for i in range(hashes.size):
        cell = (hashes[i] - first) >> shift
        keys[starts[cell]], values[starts[cell]] = hashes[i], numbers[i]
        starts[cell] += 1
    for cell in range(starts.size - 1, 0, -1):
        starts[cell] = starts[cell - 1]
    starts[0] = 0
    is_strict = True
    for i in range(1, keys.size):
        key, value, j = keys[i], values[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], values[j] = keys[j - 1], values[j - 1]
            j -= 1
        keys[j], values[j] = key, value
        is_strict &= j == 0 or keys[j - 1] < key
    return is_strict


def join_calls() -> list[Call]:
    """Return what a join calls."""
    numbers, keys, positions = np.empty(0, np.int64), np.zeros(1, np.uint64), np.empty(0, np.uint32)
    return [
        (cut_cells, (keys, np.uint64(0), numbers)),
        (find_keys, (keys, np.uint64(0), numbers, keys, numbers)),
        (edge_keys, (positions, positions, np.int64(0), np.uint64(1), np.uint64(1), True, keys)),
        *column_calls(positions.dtype),
    ]


def hash_join_calls() -> list[Call]:
    """Return what a join by hashes calls besides."""
    numbers, keys, shift = np.empty(0, np.int64), np.zeros(1, np.uint64), np.uint64(0)
    both = [np.empty(0, np.uint32), np.empty(0, np.uint64)]
    return [*join_calls(), *((table_of_hashes, (keys, positions, shift, numbers, keys, positions)) for positions in both)]
