"""What a build and a search will take, before either starts: disk, memory and time, from a sample of the edges.

In: an edge list, or a graph store. Out: an `Estimate`. The number of edges comes from the source's description (Parquet's footer, an
array's header) or, of text, from its size and the lines of its beginning. Blocks from all over it tell how long names are and how
many vertices there are: where blocks have few vertices in common, these grow with the edges; where integer ids lie in a range, that is
the most there can be. Memory follows from the formulas that builds and searches charge their budgets with.
"""

from __future__ import annotations

import gzip
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.arguments import known_keywords
from oocgraph.config import settings
from oocgraph.engine.afterwards import least_bytes_afterwards
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.resident import graph_sizes
from oocgraph.errors import InputError
from oocgraph.ingest.build import checked_columns, opened_edges
from oocgraph.ingest.build_job import LEAST_THREADS, BuildOptions, ample_build_bytes, least_build_bytes
from oocgraph.ingest.edges import EdgeSource, read_streams
from oocgraph.ingest.payload import choose_payload
from oocgraph.machine import available_bytes
from oocgraph.memory import host_bytes
from oocgraph.plan.residency import GraphSizes, least_search_bytes, whole_search_bytes
from oocgraph.resources import Resources, resources_of
from oocgraph.results.estimate import Estimate
from oocgraph.store.columns import distinct, id_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import PLANE_SHARE, SORTED_ID, plane_group
from oocgraph.types import PAGE_BYTES, Array, IdKind, index_dtype

SAMPLE_BLOCKS, SAMPLE_ROWS = 16, 1 << 16
"""Blocks that are read of an edge list, and edges of each: a million, in a second."""

OVERLAP = 0.9
"""Vertices of all blocks together, as a share of the sum of those of each, from which on they are taken for different ones."""

KERNEL_BYTES = 80 << 20
"""Compiled code and libraries that are loaded before a build or a search; measured 45 to 65 MiB."""

ID_BYTES = 8 + 8 + 4
"""Of each vertex in a store: its id twice, in the store's order and sorted, and its position."""

KEY_BYTES = 8
"""Of each edge in temporary files at the most, beside what is written of the store: these files shrink as the store grows."""

BUILD_SECONDS = 0.5
"""Of any build."""

EDGE_SECONDS, TEXT_SECONDS, ENTRY_SECONDS = 2.2e-7, 2.0e-6, 1.5e-9
"""Of one thread: to build an edge with integer ids, with strings; and to search, for each entry of a row, of which a search sees few."""

SORT_SECONDS = 1.2e-2
"""Of a sort of `SORT_KEYS` on the machine on which those were measured."""

SORT_KEYS = 1 << 18

DISK_BYTES = 1 << 30
"""Bytes a second that a disk is taken to read."""


@known_keywords
def estimate(
    source: Any,
    *,
    directed: bool | None = None,
    columns: Sequence[str | None] | None = None,
    weight: str | None = None,
    num_vertices: int | None = None,
    id_kind: IdKind | None = None,
    path: str | os.PathLike[str] = ".",
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
) -> Estimate:
    """Estimate disk, memory and time of a build and of a breadth-first search, without doing either.

    Parameters
    ----------
    source
        An edge list, as `oocgraph.build_csr` takes it, or a graph store: then of a search alone.
    directed, columns, weight, num_vertices, id_kind
        As for `oocgraph.build_csr`.
    path
        Path of the store that would be built: the free space of its disk is compared.
    resources
        Threads and memory of the build and the search; see `oocgraph.Resources`.
    memory_budget
        Memory that they are compared with; by default what is free.

    Returns
    -------
    Estimate
        Nothing in it is refused: compare ``store_bytes + temporary_bytes`` with ``free_disk_bytes``, and memory with ``free_memory_bytes``.

    Raises
    ------
    InputError
        The source cannot be read, or only once, or how many rows it has is known only when it was read.

    Notes
    -----
    It reads up to a million edges, and holds them: 40 MiB, more of strings. Edges that occur twice are not told from others unless all are
    read, so the store may be smaller. Times are good to a factor of three.

    Examples
    --------
    >>> import numpy as np
    >>> found = estimate((np.array([0, 1, 2]), np.array([1, 2, 0])))
    >>> found.num_edges, found.num_vertices, found.store_bytes < 1 << 20
    (3, 3, True)
    """
    held = host_bytes() + KERNEL_BYTES
    asked = resources_of("estimate", resources, memory_budget=memory_budget)
    num_threads, memory = asked.num_threads, available_bytes() if asked.memory_budget is None else asked.limit_bytes
    free = {"free_disk_bytes": _free_bytes(path), "free_memory_bytes": memory}
    if isinstance(source, CSRStore) or (isinstance(source, str | os.PathLike) and _is_store(source)):
        return _of_store(open_graph(source), num_threads, held, free)
    source_column, target_column, *kept = checked_columns(columns)
    options = BuildOptions(
        directed=directed, weight_column=weight, edge_columns=kept, source_column=source_column, target_column=target_column,
        num_vertices=num_vertices, id_kind=id_kind,
    )  # fmt: skip
    if hasattr(type(source), "__next__"):
        raise InputError(f"{type(source).__name__}: it can be read only once, by the build; give a file, or a table of some of the edges")
    edges = opened_edges(source, options)
    return _of_edges(edges, source, options, num_threads, held, free)


def _is_store(source: str | os.PathLike[str]) -> bool:
    return os.fspath(source).rstrip("/").endswith(".zarr") or Path(source, "zarr.json").exists()


def _free_bytes(path: str | os.PathLike[str]) -> int:
    folder = Path(path).absolute()
    return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def _of_store(store: CSRStore, threads: int, held: int, free: dict[str, int]) -> Estimate:
    attributes = store.attributes
    groups = [plane_group(attributes.directed)]
    arrays = [store.array(f"{group}/indices") for group in (["out", "in"] if attributes.directed else ["out"])]
    lookups: dict[str, Any] = {groups[0]: None} if attributes.vertex_order == "degree" else {}
    return Estimate(
        num_edges=attributes.num_edges,
        num_vertices=attributes.num_input_vertices,
        is_exact=True,
        **_of_search(graph_sizes(store, arrays, lookups), threads, held, id_bytes(store, SORTED_ID)),
        **free,
    )


def _of_search(sizes: GraphSizes, threads: int, held: int, id_bytes: float) -> dict[str, Any]:
    entries = sum(sizes.num_edges)
    afterwards = least_bytes_afterwards(sizes.num_vertices, sizes.itemsize, int(id_bytes))
    seconds = (entries * ENTRY_SECONDS + sizes.num_vertices * 2 * ENTRY_SECONDS) / threads * _slowness()
    return {
        "search_least_bytes": held + max(afterwards, least_search_bytes(sizes, settings().io_threads, BUFFER_BYTES)),
        "search_ample_bytes": held + max(afterwards, whole_search_bytes(sizes)),
        "search_seconds": seconds,
        "search_seconds_from_disk": seconds + entries * sizes.itemsize / DISK_BYTES,
    }


def _of_edges(edges: EdgeSource, source: Any, options: BuildOptions, threads: int, held: int, free: dict[str, int]) -> Estimate:
    payload = choose_payload(edges, options.duplicates)
    sample = _Sample(edges)
    num_rows = edges.num_rows
    if num_rows is None:
        num_rows = sample.num_rows if sample.is_all else edges.likely_rows
    if num_rows is None:
        num_rows = _text_rows(edges)
    num_vertices = sample.num_vertices(num_rows, edges)
    directed = bool(edges.directed) if options.directed is None else options.directed
    num_edges = sample.num_edges(directed=directed) if sample.is_all else num_rows
    itemsize = index_dtype(num_vertices).itemsize
    groups = 2 if directed else 1
    entries = num_edges if directed else 2 * num_edges
    planes = int(PLANE_SHARE * entries)
    columns = sum(dtype.itemsize for dtype in payload.stored.values())
    pages = groups * entries * itemsize // PAGE_BYTES
    sizes = GraphSizes(
        num_vertices=num_vertices, itemsize=itemsize, num_edges=(entries,) * groups, indptr_bytes=8 * (num_vertices + 1) * (groups - 1),
        plane_edges=(0, planes), skew=1.0, checksum_bytes=4 * pages,
    )  # fmt: skip
    ids = 2 * sample.id_bytes + 4 if edges.id_kind == "string" else ID_BYTES
    binned = payload.binned_bytes
    per_edge = KEY_BYTES + binned + (2 * sample.id_bytes + 2 * KEY_BYTES if edges.id_kind == "string" else 0)
    seconds = num_rows * (TEXT_SECONDS if edges.id_kind == "string" else EDGE_SECONDS) * (1 + binned / 16)
    return Estimate(
        num_edges=num_edges,
        num_vertices=num_vertices,
        is_exact=sample.is_all,
        store_bytes=int(entries * groups * (itemsize + columns) + planes * itemsize + num_vertices * (ids + 8 * groups)),
        temporary_bytes=int(num_rows * per_edge),
        build_least_bytes=held + least_build_bytes(min(threads, LEAST_THREADS), binned),
        build_ample_bytes=held + ample_build_bytes(threads, binned, num_vertices),
        build_seconds=(BUILD_SECONDS + seconds / threads) * _slowness(),
        **_of_search(sizes, threads, held, sample.id_bytes or 8),
        **free,
    )


class _Sample:
    """Blocks from all over an edge list, and what they say of the rest.

    Attributes
    ----------
    num_rows
        Edges that were read.
    is_all
        Whether these are all edges.
    id_bytes
        Mean bytes of a name, 0 of integers.
    """

    def __init__(self, edges: EdgeSource) -> None:
        streams = read_streams(edges, SAMPLE_ROWS)
        chosen = np.unique(np.linspace(0, len(streams) - 1, min(len(streams), SAMPLE_BLOCKS)).astype(int))
        per_stream = -(-SAMPLE_BLOCKS // max(1, chosen.size))
        self._blocks: list[tuple[Array, Array]] = []
        lengths, self.is_all = [0.0], chosen.size == len(streams)
        for index in chosen:
            blocks = streams[index]()
            for _ in range(per_stream):
                if (block := next(blocks, None)) is None:
                    break
                ends = [_as_integers(ids) for ids in (block.source, block.target)]
                self._blocks.append((ends[0][0], ends[1][0]))
                lengths += [ends[0][1], ends[1][1]]
            else:
                self.is_all = self.is_all and next(blocks, None) is None
        self.num_rows = sum(source.size for source, _ in self._blocks)
        self.id_bytes = sum(lengths) / max(1, len(lengths) - 1)
        self._seen, self._times = np.unique(self._all_ends(), return_counts=True)

    def _all_ends(self) -> Array:
        return np.concatenate([np.empty(0, np.int64), *(end for block in self._blocks for end in block)])

    def num_edges(self, *, directed: bool) -> int:
        """Return the number of different edges that were read, without those from a vertex to itself."""
        if not self._blocks:
            return 0
        source, target = (np.searchsorted(self._seen, np.concatenate(ends)) for ends in zip(*self._blocks, strict=True))
        low, high = (source, target) if directed else (np.minimum(source, target), np.maximum(source, target))
        return int(distinct((low * self._seen.size + high)[low != high]).size)

    def num_vertices(self, num_rows: int, edges: EdgeSource) -> int:
        """Return the number of vertices of so many edges."""
        if self.is_all or not self.num_rows:
            return int(self._seen.size)
        in_blocks = sum(distinct(np.concatenate(block)).size for block in self._blocks)
        growing = self._seen.size * num_rows / self.num_rows
        if edges.id_kind == "int64":
            low, high = edges.id_bounds or (int(self._seen[0]), int(self._seen[-1]))
            return int(min(growing, high - low + 1))
        if self._seen.size > OVERLAP * in_blocks:
            return int(growing)
        once, twice = (int(np.count_nonzero(self._times == times)) for times in (1, 2))
        return int(min(growing, self._seen.size + once**2 / (2 * max(1, twice))))


def _as_integers(ids: Any) -> tuple[Array, float]:
    """Return numbers that stand for ids, and the mean length of these if they are strings."""
    if isinstance(ids, np.ndarray):
        return ids, 0.0
    from oocgraph.store.strings import Placed

    return Placed.of([ids]).hashes(1).view(np.int64), ids.nbytes / max(1, len(ids)) - 8


def _text_rows(edges: EdgeSource) -> int:
    """Return about how many lines text files have, by the length of those at the beginning of the largest."""
    files = [one.path for one in getattr(edges, "files", ())]
    if not files:
        raise InputError(f"{edges.description}: how many edges it has is known only when all are read; give a table of some of them")
    size, largest = sum(one.stat().st_size for one in files), max(files, key=lambda one: one.stat().st_size)
    with largest.open("rb") as raw:
        zipped = largest.suffix == ".gz"
        begin = (gzip.GzipFile(fileobj=raw) if zipped else raw).read(1 << 20)
        consumed = raw.tell() if zipped else len(begin)
    lines = begin.count(b"\n")
    return int(lines * size / max(1, consumed)) or edges.num_rows or 1


def _slowness() -> float:
    """Return what this machine takes for a sort, in times of what the one took on which the constants were measured."""
    keys = np.random.default_rng(1).integers(0, 1 << 60, SORT_KEYS)
    best = np.inf
    for _ in range(3):
        drawn, began = keys.copy(), time.thread_time()
        drawn.sort()
        best = min(best, time.thread_time() - began)
    return float(best / SORT_SECONDS)
