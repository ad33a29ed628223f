"""Groups of vertices are named after their vertices with the smallest ids.

In: of each vertex any one of its group, the same for all of it. Out: of each the one whose id is the smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import components as kernels
from oocgraph.store.arrays import REMEDY, StoredArray, decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import ORDER
from oocgraph.types import Array, no_parent

PIECE_BYTES = 1 << 20
"""What is read at once."""


def naming_bytes(store: CSRStore) -> int:
    """Return what `name_by_smallest_id` holds beside arrays of all vertices."""
    return 2 * PIECE_BYTES + decoded_bytes(store.array(ORDER))


def naming_calls(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return the kernels that are called here, with arguments, to load them."""
    vertices = np.empty(0, store.index_dtype)
    return [(kernels.name_components, vertices, vertices, vertices, 0, 0), (kernels.rename, vertices, vertices, 0, 0, 0)]


def name_by_smallest_id(
    store: CSRStore, group: Array, named: Array, num_groups: int, in_parts: Callable[[Callable[[int, int], Any]], list[Any]],
    read: Callable[[StoredArray, int, int], Array] = lambda array, start, stop: array.read(start, stop),
) -> int:  # fmt: skip
    """Name each group after its vertex with the smallest id; returns how many groups there are.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        A vertex of the group of each, changed.
    named : (num_vertices,) index dtype
        Work space; of a single group none is needed.
    num_groups
        How many there are, or more.
    in_parts
        Calls for ranges of all vertices, in any number of threads.
    read
        Reads elements of an array.

    Raises
    ------
    CorruptStoreError
        The store does not list every vertex once.
    """
    order = store.array(ORDER)  # store numbers by ascending id
    if num_groups == 1:
        first = read(order, 0, 1)[0]
        in_parts(lambda start, stop: group[start:stop].fill(first))
        return 1
    none, count, step = no_parent(store.index_dtype), 0, PIECE_BYTES // order.dtype.itemsize
    in_parts(lambda start, stop: named[start:stop].fill(none))
    for start in range(0, group.size, step):
        if count == num_groups:
            break
        numbers = read(order, start, min(start + step, group.size)).astype(group.dtype, copy=False)
        count += int(kernels.name_components(group, numbers, named, int(none), num_groups - count))
    if not all(in_parts(lambda start, stop: kernels.rename(group, named, int(none), start, stop))):
        raise CorruptStoreError(f"{store.url}: {ORDER} names some vertices twice, and others not at all; {REMEDY}")
    return count
