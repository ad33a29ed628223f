"""What is read of a store before searches begin: row lookups and ranges of arrays, by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from oocgraph.kernels.rows import RowLookup, explicit_rows
from oocgraph.memory import host_bytes, page_cache_bytes
from oocgraph.store.arrays import StoredArray, aligned
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


def explicit_lookup(store: CSRStore, group: str, pool: ThreadPoolExecutor) -> RowLookup:
    """Read the row lookup of a group whose row starts are explicit."""
    array = store.array(f"{group}/indptr")
    return explicit_rows(read_parallel(array, 0, array.length, pool))


def read_parallel(array: StoredArray, start: int, stop: int, pool: ThreadPoolExecutor) -> Array:
    """Read elements ``start .. stop - 1`` with several threads into one array; those in memory are where they are."""
    if stop <= array.held.size:
        return array.held[start:stop]
    out = aligned(stop - start, array.dtype.newbyteorder("="))
    read_into(array, start, out, pool, LOAD_BYTES)
    return out


def read_into(array: StoredArray, start: int, out: Array, pool: ThreadPoolExecutor, read_bytes: int) -> None:
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
