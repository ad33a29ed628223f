"""Searches that pay for what they reach: a queue and a table of what is in it hold them (`oocgraph.kernels.few`).

In: rows in memory. Out: a `Search`, or None where too much is found. A small graph in memory is searched so in any case
(`oocgraph.engine.small`). In a large one a search begins so, and is made again by the steps of large levels once it has come to its limits:
what it cost then is a few percent of those at the most.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from oocgraph.compiled.load import load_kernel
from oocgraph.kernels import few as kernels
from oocgraph.results.few import levels_and_parents
from oocgraph.results.search import Iteration, Search
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

SMALL_ROWS, SMALL_EDGES = 1 << 16, 1 << 17
"""Vertices and stored edges up to which a graph is small: its search takes 2 ms at the most, by one thread."""

FOUND_BYTES = 48
"""What a search holds for each vertex that it has room for: while its tables grow, and as a result."""

FEW_ROOM, FEW_EDGES, SHARE_OF_EDGES = 1 << 15, 1 << 16, 1 / 1024
"""Vertices that there is room for in a large graph, edges that are followed at the most, and which share of all edges at the most."""

_NOBODY = np.empty(0, np.int64)


class Reached(NamedTuple):
    """What a search has found, by level.

    Attributes
    ----------
    vertices, parents : (num_reached,) int64
    begins : (num_levels,) int64
        Where each level begins, that of the last frontier included, which may be empty.
    num_edges : int
        Sum of the degrees.
    measured : list
        Nanoseconds and bytes read of each level that was followed.
    """

    vertices: Array
    parents: Array
    begins: Array
    num_edges: int
    measured: list[tuple[int, int]]


def is_small(store: CSRStore) -> bool:
    """Whether a graph is in memory, with all of its edges, and small."""
    attributes = store.attributes
    return (
        not store.stored.is_shared
        and store.where is None
        and attributes.num_vertices <= SMALL_ROWS
        and attributes.num_stored_edges <= SMALL_EDGES
    )


def few_limits(store: CSRStore, last_level: int) -> tuple[int, int, int]:
    """Return the limits up to which a search of a large graph is one of few vertices."""
    return last_level, FEW_ROOM, min(FEW_EDGES, int(SHARE_OF_EDGES * store.attributes.num_stored_edges))


def search_few(
    store: CSRStore, lookup: Any, near: Array, sources: Array, targets: Array | None, limits: tuple[int, int, int], *, dense: bool
) -> Search | None:  # fmt: skip
    """Search from some vertices, whose rows are all in memory, unless that finds too much: then None.

    Parameters
    ----------
    store
        The graph, or a view of it.
    lookup, near, sources, targets, limits
        See `oocgraph.kernels.few.search_few`.
    dense
        Whether parent and level are arrays as long as the graph.
    """
    called = lookup, near, store.num_rows, sources, _NOBODY if targets is None else targets, np.array(limits, np.int64)
    load_few(near, called)
    began = time.perf_counter()
    status, begin, edges, vertices, parents, log = kernels.search_few(*called)
    if status == kernels.GIVEN_UP:
        return None
    measured = [(nanoseconds, 0) for nanoseconds in log[:, 2].tolist()]
    reached = Reached(vertices, parents, np.append(log[:, 0], begin), int(log[:, 1].sum()) + edges, measured)
    return searched(store, sources, reached, began, dense=dense)


def searched(
    store: CSRStore, sources: Array, found: Reached, began: float, *, dense: bool = False, device_bytes: int = 0
) -> Search:  # fmt: skip
    """Return what a search has found that began at a time, and read so many bytes from devices."""
    bounds = np.append(found.begins, found.vertices.size)
    level, parent = levels_and_parents(found.vertices, found.parents, bounds, store.num_rows, store.index_dtype, dense=dense)
    num_edges = found.num_edges
    if not store.attributes.directed:
        num_edges = (num_edges + store.count_self_loops(lambda some: np.isin(some, found.vertices))) // 2
    sizes = np.diff(bounds).tolist()
    num_bytes = sum(one[1] for one in found.measured)
    return Search(
        sources=sources,
        parent=parent,
        level=level,
        num_reached=found.vertices.size,
        num_reached_edges=num_edges,
        depth=len(sizes) - 1 if sizes[-1] else max(0, len(sizes) - 2),
        seconds=time.perf_counter() - began,
        bytes_requested=num_bytes,
        bytes_read=max(num_bytes, device_bytes),
        iterations=tuple(
            Iteration(number + 1, "push", "few vertices, in a table", size, 0, nanoseconds / 1e9, read)
            for number, (size, (nanoseconds, read)) in enumerate(zip(sizes, found.measured, strict=False))
        ),
    )


def load_few(near: Array, arguments: tuple[Any, ...]) -> None:
    """Bring the kernel of these searches into memory."""
    if (key := (near.dtype, near.flags.writeable)) not in _loaded:
        load_kernel(kernels.search_few, arguments)
        _loaded.add(key)


_loaded: set[tuple[np.dtype[Any], bool]] = set()
