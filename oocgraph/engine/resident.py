"""What is read of a store before searches begin: row lookups and ranges of arrays, by several threads; and what a plan must know of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.kernels.rows import RowLookup, explicit_rows
from oocgraph.memory import host_bytes, page_cache_bytes
from oocgraph.plan.residency import GraphSizes
from oocgraph.pool import Pool
from oocgraph.store.arrays import StoredArray, aligned
from oocgraph.store.degrees import plane_lengths
from oocgraph.store.gather import checksum_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

LOAD_BYTES = 4 << 20
"""One piece that a thread reads while loading."""

LOAD_THREADS = 8
"""Threads that read: so many keep a disk busy."""


def for_loading(store: CSRStore) -> CSRStore:
    """Return the store as what stays in memory is read from it: compared with its checksums.

    That costs a few percent of loading it, and each search uses it. (A compressed chunk would have to be read once more.)
    """
    return store.checked(store.check_pages or store.attributes.codec == "none")


def graph_sizes(store: CSRStore, indices: list[StoredArray], lookups: dict[str, Any]) -> GraphSizes:
    """Return what the residency plan needs to know of a graph; `lookups` names the group that has no explicit row starts."""
    n, is_held = store.num_rows, all(array.is_held for array in indices)
    plane_edges: tuple[int, ...] = (0,)
    skew = 0.0
    if lookups:
        degree, first = store.degree_classes
        counts = np.diff(np.append(first, n)).astype(np.float64)
        mean = float((counts * degree).sum()) / max(1, n)
        skew = float((counts * degree.astype(np.float64) ** 2).sum()) / max(1, n) / mean**2 - 1 if mean else 0.0
        lengths = plane_lengths(degree, first, n, store.attributes.num_planes)
        plane_edges = (0, *(int(x) for x in np.cumsum(lengths[:-1])))
    return GraphSizes(
        num_vertices=n,
        itemsize=store.index_dtype.itemsize,
        is_held=is_held,
        is_view=any(array.mask is not None for array in indices),
        num_edges=tuple(array.length for array in indices),
        indptr_bytes=0 if is_held else 8 * (n + 1) * (len(indices) - len(lookups)),
        plane_edges=plane_edges,
        skew=skew,
        checksum_bytes=sum(checksum_bytes(array) for array in indices),
    )


def explicit_lookup(store: CSRStore, group: str, pool: Pool) -> RowLookup:
    """Read the row lookup of a group whose row starts are explicit."""
    array = store.array(f"{group}/indptr")
    return explicit_rows(read_parallel(array, 0, array.length, pool))


def read_parallel(array: StoredArray, start: int, stop: int, pool: Pool) -> Array:
    """Read elements ``start .. stop - 1`` with several threads into one array; those in memory are where they are."""
    if stop <= array.held.size:
        return array.held[start:stop]
    out = aligned(stop - start, array.dtype.newbyteorder("="))
    read_into(array, start, out, pool, LOAD_BYTES)
    return out


def read_into(array: StoredArray, start: int, out: Array, pool: Pool, read_bytes: int) -> None:
    """Read elements from `start` on with several threads, about `read_bytes` at once.

    It comes through the page cache, where the next load finds it in half of the time, if there is room for it twice; else what is not
    there does not go there.
    """
    is_tight = out.nbytes > page_cache_bytes(host_bytes() + out.nbytes)
    step = max(array.unit, read_bytes // array.dtype.itemsize)

    def read(a: int) -> None:
        piece = out[a : a + step]
        array.read_into(start + a, piece, direct=is_tight and not array.is_cached(start + a, start + a + piece.size))

    for _ in pool.map(read, range(0, out.size, step)):
        continue
