"""What a worker would hold of a 1D or 2D partition that is not there yet: the charges of a real one, of sizes that were counted.

In: `oocgraph.parts.traffic_counts.TrafficCounts`. Out: bytes of the part that needs most, with all its edges or with none of them in
memory. The formulas are those by which the real parts are charged (`oocgraph.parts.local_parts`). Masters are taken to have a row each:
those that have none take a few bytes less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.exchange.addresses import MirrorCounts
from oocgraph.parts.loaded_part import row_bytes, search_bytes
from oocgraph.parts.local_edges import staging_bytes
from oocgraph.parts.local_parts import READ_AHEAD
from oocgraph.parts.traffic_counts import TrafficCounts
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_gatherer import held_window_bytes
from oocgraph.types import Array, index_dtype

RESULT_BYTES = 48 << 20
"""What a search over partitions holds beside what is counted: compiled kernels, threads, what the result is written with."""

WORKER_BYTES = 160 << 20
"""A worker with its imports and kernels before it has loaded anything: 145 MiB (`oocgraph.cluster.start`) and what it runs."""


@dataclass(frozen=True, slots=True)
class SizedPart:
    """A part that is nothing but its sizes; see `oocgraph.store.partitions.Part`."""

    index: int
    num_masters: int
    num_mirrors: int
    num_edges: int
    num_isolated: int = 0

    @property
    def num_vertices(self) -> int:
        """Rows."""
        return self.num_masters + self.num_mirrors


@dataclass(frozen=True, slots=True)
class WorkerBytes:
    """Bytes of the worker that needs most.

    Attributes
    ----------
    resident
        With all edges in memory.
    least
        With as good as none: they are read from disk in each search.
    """

    resident: int
    least: int


def mirror_counts(counts: TrafficCounts, columns: int) -> MirrorCounts:
    """Return the lengths of all lists of a grid."""
    rows = counts.set_vertices.size
    mirrors, broadcasts = np.zeros((2, rows * columns, rows * columns), np.int64)
    sets = np.arange(rows)
    owners = sets * columns + sets % columns
    i, k = np.nonzero(~np.eye(rows, dtype=np.bool_))
    mirrors[i * columns + k % columns, owners[k]] = counts.candidates.lengths.reshape(rows, rows)[i, k]
    if columns > 1:
        number = np.arange(rows * columns)
        mirrored = counts.broadcasts[columns].lengths
        mirrors[number, owners[number // columns]] += mirrored
        broadcasts[number, owners[number // columns]] = mirrored
    return MirrorCounts(mirrors, broadcasts)


def sized_parts(counts: TrafficCounts, columns: int, mirrors: MirrorCounts) -> list[SizedPart]:
    """Return the parts of a grid."""
    rows = counts.set_vertices.size
    masters = np.zeros(rows * columns, np.int64)
    sets = np.arange(rows)
    masters[sets * columns + sets % columns] = counts.set_vertices
    sizes: Array = np.stack([masters, mirrors.mirrors.sum(axis=1), counts.edges[columns].ravel()], axis=1)
    return [SizedPart(p, *size) for p, size in enumerate(sizes.tolist())]


def worker_bytes(counts: TrafficCounts, columns: int, *, dtype: np.dtype[Any], threads: int, io_threads: int) -> WorkerBytes:
    """Return what the worker of the largest part needs, if each has one.

    Parameters
    ----------
    dtype
        Index dtype of the graph.
    threads, io_threads
        Of a worker.
    """
    mirrors = mirror_counts(counts, columns)
    parts: Any = sized_parts(counts, columns, mirrors)
    largest = {max(range(len(parts)), key=lambda p: getattr(parts[p], name)) for name in ("num_edges", "num_mirrors", "num_vertices")}
    both = [_part_bytes(parts, p, mirrors, dtype, threads, io_threads) for p in largest]
    return WorkerBytes(WORKER_BYTES + max(one for one, _ in both), WORKER_BYTES + max(one for _, one in both))


def most_search_bytes(store: CSRStore, num_partitions: int, *, threads: int, io_threads: int) -> int:
    """Return what a search over any `num_partitions` partitions of `store`, in one process, takes at the most.

    Every part has a proxy of every vertex, or of both ends of each of its edges; one may have all masters.
    """
    n, m, itemsize = store.num_rows, store.attributes.num_stored_edges, store.index_dtype.itemsize
    share = -(-n // num_partitions)
    mirrors = min(n - share, -(-2 * m // num_partitions)) if num_partitions > 1 else 0
    each = np.full((num_partitions, num_partitions), -(-mirrors // max(1, num_partitions - 1)), np.int64)
    np.fill_diagonal(each, 0)
    counts = MirrorCounts(each, each)
    parts: Any = [SizedPart(p, share, mirrors, -(-m // num_partitions), num_isolated=share) for p in range(num_partitions)]
    held = sum(
        row_bytes(part, itemsize) + counts.address_bytes(part) + search_bytes(part, counts.num_copies(p), num_partitions, itemsize)
        for p, part in enumerate(parts)
    )
    making = 8 * n + 21 * n + max(48 * n, 24 * num_partitions * mirrors + 16 * n)
    windows = max(held_window_bytes(store.array(f"{group}/indices")) for group in store.attributes.stored_groups)
    reading = (threads + READ_AHEAD + 1) * staging_bytes(8) + io_threads * (BUFFER_BYTES + windows)
    return held + max(making, reading) + reading + (itemsize + 4) * n + RESULT_BYTES


def _part_bytes(parts: Any, p: int, counts: MirrorCounts, dtype: np.dtype[Any], threads: int, io_threads: int) -> tuple[int, int]:
    """Bytes with all edges, and with none."""
    part, itemsize = parts[p], dtype.itemsize
    ids = 8 * (part.num_vertices + part.num_isolated)
    state = row_bytes(part, itemsize) + counts.address_bytes(part) + search_bytes(part, counts.num_copies(p), len(parts), itemsize) + ids
    local = index_dtype(part.num_vertices).itemsize
    edges = part.num_edges * local
    reading = (threads + READ_AHEAD + 1) * staging_bytes(local) + io_threads * BUFFER_BYTES
    making = counts.making_bytes(parts, p) - ids
    return state + max(edges, making), state + max(min(edges, reading), making)
