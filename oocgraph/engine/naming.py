"""Groups of vertices, each named after its vertex with the smallest id, so that no name depends on how the group was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import components as kernels
from oocgraph.store.arrays import REMEDY, StoredArray
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import ORDER
from oocgraph.types import Array, no_parent

READ_BYTES = 1 << 20
"""Read at once."""


def name_groups(
    store: CSRStore, group: Array, most: int, in_ranges: Callable[[Callable[[int, int], Any]], list[Any]],
    read: Callable[[StoredArray, int, int], Array] | None = None,
) -> int:  # fmt: skip
    """Have all vertices of a group name its vertex with the smallest id.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Of each vertex the store number of any vertex, the same within a group. Changed.
    most
        Groups that there are, or more.
    in_ranges
        Calls for ranges of all vertices, and returns what the calls return.
    read
        Reads elements of an array of the store, by default into new memory.

    Returns
    -------
    Groups that there are.

    Raises
    ------
    CorruptStoreError
        The store's order of ids is no order of its vertices.
    """
    order = store.array(ORDER)  # store numbers by ascending id
    if most == 1:
        first = order.read(0, 1)[0]
        in_ranges(lambda start, stop: group[start:stop].fill(first))
        return 1
    none = no_parent(store.index_dtype)
    named, count = np.full(group.size, none, group.dtype), 0
    step = READ_BYTES // order.dtype.itemsize
    for start in range(0, group.size, step):
        if count == most:
            break
        stop = min(start + step, group.size)
        numbers = order.read(start, stop) if read is None else read(order, start, stop)
        count += int(kernels.name_components(group, numbers.astype(group.dtype, copy=False), named, int(none), most - count))
    if not all(in_ranges(lambda start, stop: kernels.rename(group, named, int(none), start, stop))):
        raise CorruptStoreError(f"{store.url}: {ORDER} names some vertices twice, and others not at all; {REMEDY}")
    return count
