"""The arrays of a graph from its edges, all in memory: what a build on disk (`oocgraph.ingest.build_steps`) writes, bit for bit.

In: the ends of the edges as positions in ascending order of ids, and their columns. Out: arrays by name, as `oocgraph.store.layout` has
them, and the numbers of the attributes. The steps, their keys and their kernels are those of the build on disk, with one bin for all edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.kernels.build import (
    NO_RANK,
    add_degrees,
    compact_keys,
    deal_planes,
    edge_keys,
    memory_build_calls,
    rename_cols,
    rename_rows,
    split_rows,
)
from oocgraph.sorting import load_sorts, sort_keys
from oocgraph.store import layout
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.locality import rank_by_locality
from oocgraph.store.records import Payload, Records, clean_records, has_repeated, key_bits, sort_records
from oocgraph.team import team_of
from oocgraph.types import Array, AskedOrder, VertexOrder, ignore_progress, index_dtype

MANY_KEYS = 1 << 19
"""Keys from which on kernels are loaded to sort them, and a team renames them."""

RENAME_SECONDS = 5e-9
"""About what an edge takes to rename."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Edges as they were given, by positions of ids.

    Attributes
    ----------
    source, target : (num_edges,) int64
        Positions.
    columns : tuple of (num_edges,) array
        As `Payload.binned`.
    num_ids
        Number of positions.
    present : (num_ids,) bool, or None
        Whether each position is a vertex even without an edge; None: all are. Vertices of dropped self-loops are added.
    """

    source: Array
    target: Array
    columns: tuple[Array, ...]
    num_ids: int
    present: Array | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Arrays of a graph by name, those of ids apart.

    Attributes
    ----------
    used, ranked : (num_vertices,) int64
        Positions of vertices with an edge, ascending, and in store order.
    isolated : (num_isolated,) int64
        Positions of the other vertices, ascending.
    rank : (num_vertices,) uint32
        Store numbers of `used`.
    has_parallel
        Whether several edges have the same ends.
    vertex_order
        As asked, or what ``auto`` has chosen.
    """

    arrays: dict[str, Array]
    used: Array
    ranked: Array
    isolated: Array
    rank: Array
    num_edges: int
    has_parallel: bool
    num_planes: int
    vertex_order: VertexOrder


def build_arrays(
    edges: Edges, payload: Payload, *, directed: bool, vertex_order: AskedOrder, keep_self_loops: bool, threads: int = 1
) -> Built:
    """Build all arrays but those of ids; `threads` sort.

    Raises
    ------
    DuplicateRows
        An edge occurs twice and ``duplicates="error"``.
    InputError
        A sum of integer weights does not fit their dtype, or there are too many vertices.
    """
    load_kernels(memory_build_calls(column.dtype for column in edges.columns))
    bits = key_bits(edges.num_ids)
    keys = np.empty(edges.source.size, np.uint64)
    edge_keys(edges.source, edges.target, np.int64(0), np.uint64(edges.num_ids), np.uint64(bits), not directed, keys)
    clean, looped = _cleaned((keys, *edges.columns), payload, bits, drop_loops=not keep_self_loops, threads=threads)
    degree, has_out = np.zeros(edges.num_ids, np.uint32), np.zeros(edges.num_ids if directed else 0, np.uint8)
    add_degrees(clean[0], np.uint64(bits), not directed, degree, has_out)
    has_edge = degree > 0
    if directed:
        has_edge |= has_out > 0
    if edges.present is not None:
        edges.present[looped.astype(np.int64)] = True
    used, isolated = np.flatnonzero(has_edge), np.flatnonzero(~has_edge if edges.present is None else edges.present & ~has_edge)
    classes = _classes(degree[used])
    if vertex_order == "auto":
        vertex_order = "locality" if classes.are_even else "degree"
    if vertex_order == "locality":
        rank = np.empty(edges.num_ids, np.uint32)
        rank_by_locality(lambda visit: visit(clean[0]), bits, has_edge, rank, ignore_progress)
        ranked = used[np.argsort(rank[used])]
    else:
        ranked = used if vertex_order == "original" else used[np.argsort(~degree[used], kind="stable")]
        rank = np.full(edges.num_ids, NO_RANK, np.uint32)
        rank[ranked] = np.arange(ranked.size, dtype=np.uint32)
    num_planes = classes.num_planes() if vertex_order == "degree" else 0
    arrays: dict[str, Array] = {}
    for group, entries in _entries(clean, rank, bits, used.size, directed=directed, threads=threads).items():
        has_planes = group == layout.plane_group(directed) and vertex_order == "degree"
        arrays |= _group(
            group, entries, used.size, payload, classes=classes if has_planes else None, num_planes=num_planes, threads=threads
        )
    return Built(
        arrays=arrays, used=used, ranked=ranked, isolated=isolated, rank=rank[used], num_edges=clean[0].size,
        has_parallel=has_repeated(clean[0]), num_planes=num_planes, vertex_order=vertex_order,
    )  # fmt: skip


def _cleaned(records: Records, payload: Payload, bits: int, *, drop_loops: bool, threads: int) -> tuple[Records, Array]:
    """Sort edges, and drop what is to be dropped; returns the vertices of dropped self-loops too."""
    if len(records) > 1:
        return clean_records(records, payload, bits, drop_loops=drop_loops)
    keys = records[0]
    _sort(keys, threads)
    looped = np.empty(keys.size if drop_loops else 0, np.uint64)
    num_kept, num_looped = compact_keys(keys, np.uint64(bits), payload.duplicates != "keep", drop_loops, looped)
    return (keys[:num_kept],), looped[:num_looped]


def _sort(keys: Array, threads: int) -> None:
    if keys.size >= MANY_KEYS:
        load_sorts()
    sort_keys(keys, threads=threads)


def _classes(degree: Array) -> DegreeClasses:
    value, counts = np.unique(degree, return_counts=True)
    return DegreeClasses.of(value[::-1].astype(np.int64), counts[::-1])


def _entries(records: Records, rank: Array, bits: int, num_vertices: int, *, directed: bool, threads: int) -> dict[str, Records]:
    """Rename both ends of every edge: keys of the entries of each group, and their columns."""
    keys, *columns = records
    size, to_bits = keys.size, np.uint64(key_bits(num_vertices))
    both = np.empty(2 * size, np.uint64)
    half, back = both[:size], both[size:]

    def rename(start: int, stop: int) -> tuple[int, int]:
        part = half[start:stop]
        rename_rows(keys[start:stop], np.uint64(bits), rank, np.uint64(0), part)
        return start, rename_cols(part, rank, np.uint64(0), to_bits, not directed, part, back[start:stop])

    with team_of(threads if size >= MANY_KEYS else 1) as team:
        renamed = team.run_range(rename, size, RENAME_SECONDS * size)
    if directed:
        return {"out": (half, *columns), "in": (back, *columns)}
    num_back = 0
    for start, length in renamed:  # a self-loop has one entry only
        if start > num_back:
            back[num_back : num_back + length] = back[start : start + length]
        num_back += length
    straight = slice(None)
    if columns and num_back < size:
        straight = (half >> to_bits) != (half & ((np.uint64(1) << to_bits) - np.uint64(1)))
    return {"out": (both[: size + num_back], *(np.concatenate([values, values[straight]]) for values in columns))}


def _group(
    group: str, records: Records, num_vertices: int, payload: Payload, *, classes: DegreeClasses | None, num_planes: int, threads: int
) -> dict[str, Array]:
    """Sort the entries of a group into its rows; with degrees and planes where `classes` are given."""
    if len(records) > 1:
        records = sort_records(records)
    else:
        _sort(records[0], threads)
    keys, bits, dtype = records[0], np.uint64(key_bits(num_vertices)), index_dtype(num_vertices)
    indices, indptr = np.empty(keys.size, dtype), np.full(num_vertices + 1, keys.size)
    num_loops = split_rows(keys, bits, 0, 0, indices, indptr[:-1])
    arrays = {"indices": indices, "indptr": indptr, **dict(zip(payload.stored, records[1:], strict=True))}
    if classes is not None:
        arrays |= {"degrees/value": classes.value, "degrees/first_vertex": classes.first_vertex[:-1]}
        planes, offsets = np.empty(keys.size, dtype), np.zeros(num_planes + 1, np.int64)
        deal_planes(indices, np.diff(indptr), 0, offsets, planes)
        arrays |= {"planes/indices": planes[: offsets[-1]].copy(), "planes/offsets": offsets}
    named = {f"{group}/{name}": values for name, values in arrays.items()}
    if num_loops and group == "out":
        named[layout.SELF_LOOPS] = indices[(keys >> bits) == indices]
    return named
