"""Groups of vertices are named after their vertices with the smallest ids.

In: of each vertex any one of its group, the same for all of it. Out: of each the one whose id is the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


Read = Callable[[StoredArray, int, int], Array]
"""Reads elements of an array."""


def _read(array: StoredArray, start: int, stop: int) -> Array:
    return array.read(start, stop)


def by_ascending_id(store: CSRStore, read: Read = _read) -> Iterator[Array]:
    """Read the store numbers of all vertices by ascending id, piece by piece; they are below `num_rows`."""
    order = store.array(ORDER)
    step = PIECE_BYTES // order.dtype.itemsize
    for start in range(0, store.num_rows, step):
        yield read(order, start, min(start + step, store.num_rows))


def naming_bytes(store: CSRStore) -> int:
    """Return what `name_by_smallest_id` holds beside arrays of all vertices."""
    return 2 * PIECE_BYTES + decoded_bytes(store.array(ORDER))


def naming_calls(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return the kernels that are called here, with arguments, to load them."""
    vertices = np.empty(0, store.index_dtype)
    return [(kernels.name_components, vertices, vertices, vertices, 0, 0), (kernels.rename, vertices, vertices, 0, 0, 0)]


def name_by_smallest_id(
    store: CSRStore, group: Array, named: Array, num_groups: int, in_parts: Callable[[Callable[[int, int], Any]], list[Any]],
    read: Read = _read,
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
    if num_groups == 1:
        first = read(store.array(ORDER), 0, 1)[0]
        in_parts(lambda start, stop: group[start:stop].fill(first))
        return 1
    none, count = no_parent(store.index_dtype), 0
    in_parts(lambda start, stop: named[start:stop].fill(none))
    for numbers in by_ascending_id(store, read):
        count += int(kernels.name_components(group, numbers.astype(group.dtype, copy=False), named, int(none), num_groups - count))
        if count == num_groups:
            break
    if not all(in_parts(lambda start, stop: kernels.rename(group, named, int(none), start, stop))):
        raise CorruptStoreError(f"{store.url}: {ORDER} names some vertices twice, and others not at all; {REMEDY}")
    return count
