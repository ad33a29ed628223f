"""What sweeps have left of a graph, loaded into memory: vertices, and the edges between them, for one thread that follows chains.

In: sweeps, and bits of each vertex that say which are left (`oocgraph.kernels.rest`). Out: `Rest`, if there is room for it, and its
strongly connected components in an order in which edges lead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import rest as kernels
from oocgraph.kernels.rest import WALK_BYTES, WALK_NUMBERS, Rest, Walk
from oocgraph.memory import format_bytes
from oocgraph.store.arrays import REMEDY
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, no_parent

logger = logging.getLogger(__name__)

MANY_SWEEPS = 30
"""Sweeps after which it is worth a warning, once or twice, that a rest does not fit: graphs without long chains take 5 to 15."""


def whole_bytes(store: CSRStore) -> int:
    """Return what a rest takes that is all of a graph."""
    return rest_bytes(store, store.num_rows, store.attributes.num_stored_edges)


def rest_bytes(store: CSRStore, num_slots: int, num_entries: int) -> int:
    """Return what a rest takes, and the walk of its vertices."""
    itemsize = store.index_dtype.itemsize
    return num_slots * (WALK_BYTES + WALK_NUMBERS * itemsize) + num_entries * itemsize


def example(dtype: np.dtype[Any]) -> tuple[Rest, Walk]:
    """Return an empty rest, to load kernels."""
    numbers, positions = np.empty(0, dtype), np.empty(0, np.int64)
    return Rest(positions, numbers, positions, positions, numbers, numbers), Walk(positions, numbers, numbers, numbers, numbers)


def walk_calls(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return the kernels that are called here, with arguments, to load them."""
    dtype = store.index_dtype
    return [
        (kernels.walk_rest, *example(dtype), dtype.type(no_parent(dtype))),
        (kernels.count_rest, np.empty(0, np.uint8), 0, np.empty(0, np.int64)),
    ]


def count_rest(sweeps: Sweeps, own: Array) -> tuple[int, int]:
    """Count the vertices that are left, and all their in-neighbours."""
    counts = [kernels.count_rest(own, first, degree) for first, degree in sweeps.degrees("in")]
    return sum(rows for rows, _ in counts), sum(entries for _, entries in counts)


def is_due(sweeps: Sweeps) -> bool:
    """Whether to look for room again: after 1, 2, 4, 8, ... sweeps."""
    return sweeps.num_sweeps & (sweeps.num_sweeps - 1) == 0


def has_room(sweeps: Sweeps, size: tuple[int, int]) -> bool:
    """Whether so many vertices and edges find room; where they do not, after many sweeps, a warning says what would be enough."""
    missing = rest_bytes(sweeps.store, *size) - sweeps.room_bytes
    if missing > 0 and MANY_SWEEPS < sweeps.num_sweeps <= 2 * MANY_SWEEPS:
        logger.warning(
            "%s: %d sweeps have left %d vertices, and chains take many more; with memory_budget raised by %s they would fit into memory",
            sweeps.store.url, sweeps.num_sweeps, size[0], format_bytes(2 * missing),
        )  # fmt: skip
    return missing <= 0


def load_rest(
    sweeps: Sweeps, size: tuple[int, int], number: Array, kernel: Any, whole: list[Array], only: Callable[[int, int], bool]
) -> tuple[Rest, Walk]:  # fmt: skip
    """Load what is left, and walk through it.

    Parameters
    ----------
    size
        Vertices, and edges at most.
    number : (num_vertices,) index dtype
        Changed.
    kernel, whole
        What a sweep calls: it takes these arrays, and the rest, which `oocgraph.kernels.rest.gather` fills.
    only
        As for `Sweeps.pull`.

    Raises
    ------
    CorruptStoreError
        The store is not the same each time it is read.
    """
    dtype, (num_slots, num_entries) = sweeps.store.index_dtype, size
    begin, end, cursor = (np.empty(num_slots, np.int64) for _ in range(3))
    vertex, seen, path, order = (np.empty(num_slots, dtype) for _ in range(4))
    rest = Rest(np.zeros(2, np.int64), vertex, begin, end, np.empty(num_entries, dtype), number)
    walk = Walk(cursor, seen, np.zeros(num_slots, dtype), path, order)
    sweeps.pull(kernel, whole, scalars=[rest], only=only)
    if rest.used[0] != num_slots or rest.used[1] > num_entries:
        raise CorruptStoreError(f"{sweeps.store.url}: lists of neighbours have changed while they were read; {REMEDY}")
    kernels.walk_rest(rest, walk, dtype.type(no_parent(dtype)))
    return rest, walk
