"""The kernels of a search as plain NumPy: the oracle that `kernels.cpu` and the CUDA kernels must equal, same names and signatures.

Nothing here is quick: whole rows are read one after the other, and bitmaps are turned into lists. A pull takes the first
neighbour in the frontier, as `cpu` does; after a push only the set of found vertices is determined, parents are any valid ones.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from oocgraph.kernels.rows import ChunkFiles, LongRows, Marks, Planes, RowLookup, Tails
from oocgraph.types import Array


def vertices_of(rows: Array, w0: int = 0, w1: int | None = None, step: int = 1) -> Array:
    """Vertices marked in words ``w0, w0 + step, ... < w1`` of a bitmap, ascending: int64."""
    stop = rows.size if w1 is None else w1
    words = np.arange(w0, stop, step)
    bits = np.unpackbits(rows[words].view(np.uint8), bitorder="little").reshape(words.size, 64)
    word, bit = np.nonzero(bits)
    return np.asarray(words[word] * 64 + bit)


def row_of(lookup: RowLookup, v: int) -> tuple[int, int]:
    """First edge of vertex `v` and the edge after its last one."""
    indptr, first, edge, value = lookup
    if indptr.size:
        return int(indptr[v]), int(indptr[v + 1])
    c = int(np.searchsorted(first, v, side="right")) - 1
    begin = int(edge[c] + (v - first[c]) * value[c])
    return begin, begin + int(value[c])


def is_marked(rows: Array, vertices: Array) -> Array:
    """Whether each of `vertices` is marked in a bitmap: bool."""
    v = np.asarray(vertices, np.int64)
    return np.asarray((rows[v >> 6] >> (v & 63).astype(np.uint64)) & np.uint64(1), np.bool_)


def mark(rows: Array, v: int) -> None:
    """Mark a vertex in a bitmap."""
    rows[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


def find(v: int, x: int, visited: Array, marks: Marks) -> None:
    """Visit `v` from parent `x`."""
    mark(visited, v)
    note(v, x, marks)


def note(v: int, x: int, marks: Marks) -> None:
    """Set parent and level at position `v`."""
    marks.parent[v] = x
    (marks.level32 if marks.wide else marks.level8)[v] = marks.level


def pull_heads(
    w0: int, w1: int, num_vertices: int, lookup: RowLookup, planes: Planes, resident: Array, base: int, frontier: Array, visited: Array,
    undecided: Array, marks: Marks, long_rows: LongRows | None = None,
) -> tuple[int, int]:  # fmt: skip
    """See `oocgraph.kernels.cpu.pull_heads`; nothing is put off."""
    found = left = 0
    candidates = vertices_of(~visited, w0, w1)
    undecided[w0:w1] = 0
    for v in candidates[candidates < num_vertices].tolist():
        x, _, goes_on = _look_up(v, lookup, planes, resident, base, frontier)
        if x is not None:
            found += 1
            find(v, x, visited, marks)
        elif goes_on:
            left += 1
            mark(undecided, v)
    return found, left


def sample_heads(
    step: int, num_vertices: int, lookup: RowLookup, planes: Planes, resident: Array, frontier: Array, visited: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """See `oocgraph.kernels.cpu.sample_heads`."""
    candidates = vertices_of(~visited, step=step)
    looks = [_look_up(v, lookup, planes, resident, 0, frontier) for v in candidates[candidates < num_vertices].tolist()]
    found = sum(x is not None for x, _, _ in looks)
    return len(looks), sum(probes for _, probes, _ in looks), found, sum(x is None and goes_on for x, _, goes_on in looks)


def _look_up(v: int, lookup: RowLookup, planes: Planes, resident: Array, base: int, frontier: Array) -> tuple[int | None, int, bool]:
    """First neighbour of `v` in memory that is in `frontier`; neighbours looked at; whether the list goes on outside of memory."""
    num_planes = planes.length.size - 1
    begin, end = row_of(lookup, v)
    head = [planes.edges[planes.offset[k] + v] for k in range(num_planes) if v < planes.length[k]]
    start = max(begin + num_planes, base)
    stop = max(start, min(end, base + resident.size))
    neighbours = np.array([*head, *resident[start - base : stop - base]], np.int64)
    hits = np.flatnonzero(is_marked(frontier, neighbours))
    if hits.size:
        return int(neighbours[hits[0]]), int(hits[0]) + 1, False
    return None, neighbours.size, v < planes.length[num_planes] and stop < end


def count_rows(
    cuts: Array, num_vertices: int, lookup: RowLookup, num_planes: int, num_resident: int, page_shift: int, rows: Array,
    first_pages_only: Any, out: Array,
) -> None:  # fmt: skip
    """See `oocgraph.kernels.cpu.count_rows`."""
    for i in range(cuts.size - 1):
        spans = [row_of(lookup, v) for v in vertices_of(rows, cuts[i], cuts[i + 1]).tolist()]
        pages: set[int] = set()
        for begin, end in spans:
            start = max(begin + num_planes, num_resident)
            if start < end:
                last = start if first_pages_only else end - 1
                pages |= set(range(start >> page_shift, (last >> page_shift) + 1))
        v = int(cuts[i]) * 64
        begin = row_of(lookup, v)[0] if v < num_vertices else 0
        out[i] = len(spans), sum(end - begin for begin, end in spans), len(pages), begin


def pull_tails(
    w0: int, w1: int, lookup: RowLookup, num_planes: int, num_resident: int, files: ChunkFiles, gap_pages: int, buffer: Array,
    indices: Array, tails: Tails, kept: Array, frontier: Array, visited: Array, undecided: Array, marks: Marks,
    long_rows: LongRows | None = None,
) -> tuple[int, int, int]:  # fmt: skip
    """See `oocgraph.kernels.cpu.pull_tails`; reads every tail whole, keeps none, and puts none off."""
    found = total = 0
    for v in vertices_of(undecided, w0, w1).tolist():
        begin, end = row_of(lookup, v)
        tail = read_edges(files, indices.dtype, max(begin + num_planes, num_resident), end)
        total += tail.nbytes
        hits = np.flatnonzero(is_marked(frontier, tail))
        if hits.size:
            found += 1
            find(v, int(tail[hits[0]]), visited, marks)
    return found, total, 0


def pull_kept(tails: Tails, entry0: int, entry1: int, frontier: Array, visited: Array, undecided: Array, marks: Marks) -> int:
    """See `oocgraph.kernels.cpu.pull_kept`."""
    decided = 0
    for i in range(entry0, entry1):
        v = int(tails.vertex[i])
        if is_marked(undecided, np.array([v]))[0]:
            decided += 1
            undecided[v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))
            tail = tails.edges[tails.begin[i, 0] : tails.begin[i, 1]]
            hits = np.flatnonzero(is_marked(frontier, tail))
            if hits.size:
                find(v, int(tail[hits[0]]), visited, marks)
    return decided


def push_rows(
    e0: int, e1: int, lookup: RowLookup, planes: Planes, resident: Array, base: int, files: ChunkFiles, gap_pages: int, buffer: Array,
    indices: Array, frontier: Array, visited: Array, owned: Array | None, rank: Array | None, marks: Marks,
) -> tuple[int, int, int]:  # fmt: skip
    """See `oocgraph.kernels.cpu.push_rows`; needs planes neither for what it finds nor for speed, and reads from disk instead."""
    found = total = 0
    for v in vertices_of(frontier).tolist():
        begin, end = row_of(lookup, v)
        for e in range(max(begin, e0), min(end, e1)):
            if base <= e < base + resident.size:
                x = int(resident[e - base])
            elif e - begin < planes.length.size - 1:
                x = int(planes.edges[planes.offset[e - begin] + v])
            else:
                x = int(read_edges(files, indices.dtype, e, e + 1)[0])
                total += indices.dtype.itemsize
            if not is_marked(visited, np.array([x]))[0]:
                mark(visited, x)
                at = x if owned is None else int(np.searchsorted(vertices_of(owned), x))
                note(at, v, marks)
                found += 1
    return found, total, 0


def count_edges(w0: int, w1: int, lookup: RowLookup, rows: Array) -> tuple[int, int]:
    """See `oocgraph.kernels.cpu.count_edges`."""
    vertices = vertices_of(rows, w0, w1)
    return vertices.size, sum(end - begin for begin, end in (row_of(lookup, v) for v in vertices.tolist()))


def difference(w0: int, w1: int, visited: Array, before: Array, out: Array) -> None:
    """See `oocgraph.kernels.cpu.difference`."""
    out[w0:w1] = visited[w0:w1] & ~before[w0:w1]


def list_vertices(rows: Array, out: Array) -> int:
    """See `oocgraph.kernels.cpu.list_vertices`."""
    vertices = vertices_of(rows)
    out[: vertices.size] = vertices
    return int(vertices.size)


def mark_vertices(vertices: Array, count: int, rows: Array) -> None:
    """See `oocgraph.kernels.cpu.mark_vertices`."""
    rows[:] = 0
    for v in vertices[:count].tolist():
        mark(rows, v)


def add_vertices(vertices: Array, rows: Array) -> None:
    """See `oocgraph.kernels.cpu.add_vertices`."""
    for v in vertices.tolist():
        mark(rows, v)


def widen_levels(level8: Array, level32: Array, num_vertices: int) -> None:
    """See `oocgraph.kernels.cpu.widen_levels`."""
    level32[:num_vertices] = level8[:num_vertices].astype(np.int32)


def finish_search(w0: int, w1: int, num_vertices: int, visited: Array, none: int, marks: Marks) -> None:
    """See `oocgraph.kernels.cpu.finish_search`."""
    open_ = vertices_of(~visited, w0, w1)
    open_ = open_[open_ < num_vertices]
    marks.parent[open_] = none
    if marks.wide:
        marks.level32[open_] = -1
    else:
        marks.level8[open_] = 255


def read_edges(files: ChunkFiles, dtype: np.dtype[Any], start: int, stop: int) -> Array:
    """Edges ``start .. stop - 1`` from the open chunk files."""
    chunk_length = files.chunk_pages * 4096 // dtype.itemsize
    parts = [np.empty(0, dtype)]
    while start < stop:
        chunk = start // chunk_length
        end = min(stop, (chunk + 1) * chunk_length)
        raw = os.pread(int(files.fds[chunk]), (end - start) * dtype.itemsize, (start - chunk * chunk_length) * dtype.itemsize)
        parts.append(np.frombuffer(raw, dtype))
        start = end
    return np.concatenate(parts)
