"""The compiled steps of a breadth-first search: nogil, over a range of words or edges, run by a thread pool.

Bitmaps are uint64 words, vertex ``v`` is bit ``v & 63`` of word ``v >> 6``. ``visited`` is the truth; ``parent`` and
``level`` of unvisited vertices are unset until `finish_search`. ``level8`` and ``level32`` are views of one buffer,
of which ``wide`` says which is in use. Row lookups and page reads: `oocgraph.kernels.rows`.

References: Beamer, Asanovic, Patterson, SC 2012 (push and pull); Sallinen et al. 2015 and Yasui et al. 2014 (degree order,
hub-first lists); Sabet, Zhao, Gupta, EuroSys 2020 (only the active rows' edges are moved).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.deques import OVER, next_piece
from oocgraph.compiled.intrinsics import (
    atomic_add,
    atomic_min,
    atomic_or,
    copy_chosen,
    count_ones,
    load_acquire,
    nanoseconds,
    set_chosen,
    trailing_zeros,
)
from oocgraph.kernels.rows import NO_HIT, find_class, next_class, read_pages, row_of, set_level, vertex_of_edge

BATCH = 4096
"""Rows looked at together when reads are coalesced: 512 short rows do not fill a read of 128 KiB."""

MANY = np.uint64(24)
"""Vertices of a word from which all 64 are looked at in a plane: that takes no branch for each."""

STATUS_DONE, STATUS_GROWN, STATUS_LOG_FULL, STATUS_MISSES = 0, 1, 2, 3
"""Why `push_levels` stopped: no frontier or the last level; frontier too large; log full; pages to fetch first."""


@nb.njit(nogil=True, cache=True)
def _put_off(long_rows: Any, v: Any, first: Any, stop: Any, end: Any) -> Any:
    """Note what is left of a long row; returns whether there was room."""
    count, place = long_rows.count, long_rows.place
    if count[0] >= place.shape[0]:
        return False
    i = atomic_add(count, 0, 1)
    if i >= place.shape[0]:
        return False
    place[i, 0], place[i, 1], place[i, 2], place[i, 3] = v, first, stop, end
    long_rows.hit[i] = NO_HIT
    return True


@nb.njit(nogil=True, cache=True)
def pull_part(
    i: Any, first: Any, stop: Any, resident: Any, files: Any, buffer: Any, indices: Any, frontier: Any, long_rows: Any,
) -> Any:  # fmt: skip
    """Look through a part of a long row, up to the first hit that any part has found; notes it.

    Returns
    -------
    (neighbour, bytes_read, error): that of a hit, or -1; error is 0, or what `read_pages` returned.
    """
    hit, page_shift, num_pages, total = long_rows.hit, files.page_shift, buffer.size >> 12, 0
    e, base, held = first, np.int64(0), min(stop, resident.size)
    while e < stop:
        if load_acquire(hit, i) < e:
            break
        if e >= resident.size:
            page = e >> page_shift
            last = min(page + num_pages, ((stop - 1) >> page_shift) + 1, (page // files.chunk_pages + 1) * files.chunk_pages)
            got = read_pages(files, buffer, page, last - page)
            if got < 0:
                return np.int64(-1), total, got
            total += got
            base, held = page << page_shift, min(stop, last << page_shift)
        until = min(held, e + BATCH) if e < resident.size else held
        while e < until:
            y = np.int64(resident[e]) if e < resident.size else np.int64(indices[e - base])
            if (frontier[y >> 6] >> np.uint64(y & 63)) & np.uint64(1):
                atomic_min(hit, i, e)
                return y, total, 0
            e += 1
    return np.int64(-1), total, 0


@nb.njit(nogil=True, cache=True)
def pull_heads(
    w0: Any, w1: Any, num_vertices: Any, lookup: Any, planes: Any, resident: Any, base: Any, frontier: Any, visited: Any, undecided: Any,
    marks: Any, long_rows: Any,
) -> Any:  # fmt: skip
    """Pull over what is in memory: planes first, then the resident part of each list.

    Looks at the unvisited vertices of words ``w0 .. w1 - 1``. A vertex with a neighbour in `frontier` is visited; one whose
    list goes on outside of memory is marked in `undecided` (whose words are overwritten). A word is taken through one plane
    after the other, without a branch per vertex, so the parents of unvisited vertices are left with any value.

    Parameters
    ----------
    resident : index dtype
        Edges ``base .. base + resident.size - 1`` of ``indices``: the first ones (base 0), or a window that was just read.
    long_rows : LongRows
        Gets what is put off, which is neither found nor undecided.

    Returns
    -------
    (num_found, num_undecided)
    """
    plane_edges, plane_offset, plane_length = planes
    parent, level8, level32, wide, level = marks
    one = np.uint64(1)
    num_planes = plane_length.size - 1
    num_tails = plane_length[num_planes]
    num_resident = base + resident.size
    found, left = 0, 0
    c = find_class(lookup.first, w0 * 64)
    for w in range(w0, w1):
        v0 = w * 64
        open_bits = ~visited[w]
        if v0 + 64 > num_vertices:
            open_bits &= (one << np.uint64(num_vertices - v0)) - one
        misses = np.uint64(0)
        rest = open_bits
        for k in range(num_planes):
            covered = plane_length[k] - v0
            asked = rest
            if covered < 64:
                if covered <= 0:
                    break
                asked &= (one << np.uint64(covered)) - one
            if not asked:
                break
            hits = np.uint64(0)
            at = plane_offset[k] + v0
            if covered >= 64 and count_ones(asked) >= MANY:
                for b in range(np.uint64(64)):  # unsigned: a negative index would count from the end
                    x = np.uint64(plane_edges[np.uint64(at) + b])
                    hits |= ((frontier[x >> np.uint64(6)] >> (x & np.uint64(63))) & one) << b
                hits &= asked
                copy_chosen(parent, v0, hits, plane_edges, at)
            else:
                while asked:
                    b = np.int64(trailing_zeros(asked))
                    asked &= asked - one
                    y = np.int64(plane_edges[at + b])
                    parent[v0 + b] = y
                    hits |= ((frontier[y >> 6] >> np.uint64(y & 63)) & one) << np.uint64(b)
            rest &= ~hits
        bits = rest
        if v0 + 64 > num_tails:
            bits = np.uint64(0) if v0 >= num_tails else bits & ((one << np.uint64(num_tails - v0)) - one)
        while bits:
            b = trailing_zeros(bits)
            bits &= bits - one
            v = v0 + np.int64(b)
            c = next_class(lookup, c, v)
            e, end = row_of(lookup, c, v)
            e = max(e + num_planes, base)
            stop = min(end, num_resident)
            hit, is_put_off = False, False
            short = min(stop, e + long_rows.limit)
            while True:
                while e < short:
                    y = np.int64(resident[e - base])
                    if (frontier[y >> 6] >> np.uint64(y & 63)) & one:
                        parent[v] = y
                        hit = True
                        break
                    e += 1
                if hit or short >= stop:
                    break
                is_put_off = _put_off(long_rows, v, e, stop, end)
                if is_put_off:
                    break
                short = stop
            if hit:
                rest &= ~(one << b)
            elif e < end and not is_put_off:
                misses |= one << b
                left += 1
        hits = open_bits & ~rest
        if hits:
            visited[w] |= hits
            found += np.int64(count_ones(hits))
            if v0 + 64 <= num_vertices and wide:
                set_chosen(level32, v0, hits, np.int32(level))
            elif v0 + 64 <= num_vertices:
                set_chosen(level8, v0, hits, np.uint8(level))
            else:
                while hits:
                    b = np.int64(trailing_zeros(hits))
                    hits &= hits - one
                    set_level(level8, level32, wide, v0 + b, level)
        undecided[w] = misses
    return found, left


@nb.njit(nogil=True, cache=True)
def pull_heads_in_pieces(
    member: Any, grain: Any, num_words: Any, num_vertices: Any, lookup: Any, planes: Any, resident: Any, frontier: Any, visited: Any,
    undecided: Any, marks: Any, long_rows: Any,
) -> Any:  # fmt: skip
    """Do as `pull_heads` with pieces of `grain` words, as many as this thread gets of ``0 .. num_words - 1``.

    Parameters
    ----------
    member : oocgraph.team.Member
        The thread, and the deques on which the numbers of pieces are.
    """
    found, left = 0, 0
    while True:
        i = next_piece(member.words, member.number, member.groups, member.steals, member.counts)
        if i == OVER:
            return found, left
        more_found, more_left = pull_heads(
            i * grain, min(num_words, (i + 1) * grain), num_vertices, lookup, planes, resident, np.int64(0), frontier, visited, undecided,
            marks, long_rows,
        )  # fmt: skip
        found += more_found
        left += more_left


@nb.njit(nogil=True, cache=True)
def sample_heads(step: Any, num_vertices: Any, lookup: Any, planes: Any, resident: Any, frontier: Any, visited: Any) -> Any:
    """Try what `pull_heads` would do for the unvisited vertices of every `step`-th word, changing nothing.

    Returns
    -------
    (num_sampled, num_probes, num_found, num_undecided): a probe is one neighbour looked up in `frontier`.
    """
    plane_edges, plane_offset, plane_length = planes
    one = np.uint64(1)
    num_planes = plane_length.size - 1
    sampled, probes, found, left = 0, 0, 0, 0
    c = 0
    for w in range(0, visited.size, step):
        bits = ~visited[w]
        while bits:
            v = w * 64 + np.int64(trailing_zeros(bits))
            bits &= bits - one
            if v >= num_vertices:
                break
            sampled += 1
            hit = False
            for k in range(num_planes):
                if v >= plane_length[k] or hit:
                    break
                y = np.int64(plane_edges[plane_offset[k] + v])
                probes += 1
                hit = ((frontier[y >> 6] >> np.uint64(y & 63)) & one) != 0
            if not hit and v < plane_length[num_planes]:
                c = next_class(lookup, c, v)
                e, end = row_of(lookup, c, v)
                e += num_planes
                stop = min(end, resident.size)
                while e < stop and not hit:
                    y = np.int64(resident[e])
                    probes += 1
                    hit = ((frontier[y >> 6] >> np.uint64(y & 63)) & one) != 0
                    e += 1
                left += not hit and e < end
            found += hit
    return sampled, probes, found, left


@nb.njit(nogil=True, cache=True)
def count_rows(
    cuts: Any, num_vertices: Any, lookup: Any, num_planes: Any, num_resident: Any, page_shift: Any, rows: Any, first_pages_only: Any,
    out: Any,
) -> None:  # fmt: skip
    """Count, for each slice of words, what reading the tails of the vertices marked in `rows` takes.

    ``cuts`` are word numbers; ``out[i] = (num_rows, num_edges, num_pages, first_edge)`` of words ``cuts[i] .. cuts[i + 1] - 1``.
    Edges are those of whole rows; pages are the distinct pages of ``indices`` that hold the part of a row behind the
    planes and outside of memory: all of them (push) or the first (pull).
    """
    for i in range(cuts.size - 1):
        num_rows, num_edges, num_pages, last = 0, 0, 0, np.int64(-1)
        v = cuts[i] * 64
        c = find_class(lookup.first, v)
        out[i, 3] = row_of(lookup, c, v)[0] if v < num_vertices else 0
        for w in range(cuts[i], cuts[i + 1]):
            bits = rows[w]
            while bits:
                v = w * 64 + np.int64(trailing_zeros(bits))
                bits &= bits - np.uint64(1)
                c = next_class(lookup, c, v)
                begin, end = row_of(lookup, c, v)
                num_rows += 1
                num_edges += end - begin
                start = max(begin + num_planes, num_resident)
                if start < end:
                    a = start >> page_shift
                    z = a if first_pages_only else (end - 1) >> page_shift
                    a = max(a, last + 1)
                    if z >= a:
                        num_pages += z - a + 1
                        last = z
        out[i, 0] = num_rows
        out[i, 1] = num_edges
        out[i, 2] = num_pages


@nb.njit(nogil=True, cache=True)
def pull_tails(
    w0: Any, w1: Any, lookup: Any, num_planes: Any, num_resident: Any, files: Any, gap_pages: Any, buffer: Any, indices: Any, tails: Any,
    kept: Any, frontier: Any, visited: Any, undecided: Any, marks: Any, long_rows: Any,
) -> Any:  # fmt: skip
    """Pull over tails on disk: page by page, stopping at the first hit.

    First pages of neighbouring rows that are at most `gap_pages` apart are read together, into the first half of `buffer`
    (uint8; `indices` is its view in index dtype); a row that goes on is read with growing reads into the second half.

    A vertex whose list holds no hit will be asked again. Its tail, if it lies in one read and there is room, is kept: entry i
    belongs to ``kept_vertex[i]`` and is ``kept_edges[kept_begin[i, 0] : kept_begin[i, 1]]``; ``kept`` counts entries and edges.
    A row that is longer than `long_rows` says is put off there after its first page.

    Returns
    -------
    (num_found, bytes_read, error): error is 0, or what `read_pages` returned.
    """
    chunk_pages, page_shift = files.chunk_pages, files.page_shift
    parent, level8, level32, wide, level = marks
    kept_vertex, kept_begin, kept_edges = tails
    one = np.uint64(1)
    half_pages = buffer.size // 8192
    half_items = half_pages << page_shift
    batch_v = np.empty(BATCH, np.int64)
    batch_start = np.empty(BATCH, np.int64)
    batch_end = np.empty(BATCH, np.int64)
    found, total = 0, 0
    w, bits = w0, np.uint64(0)
    if w0 < w1:
        bits = undecided[w0]
    c = find_class(lookup.first, w0 * 64)
    low, high = np.int64(-1), np.int64(-1)  # pages in the first half of the buffer
    while w < w1:
        size = 0
        while size < BATCH and w < w1:
            if not bits:
                w += 1
                if w < w1:
                    bits = undecided[w]
                continue
            v = w * 64 + np.int64(trailing_zeros(bits))
            bits &= bits - one
            c = next_class(lookup, c, v)
            begin, end = row_of(lookup, c, v)
            batch_v[size] = v
            batch_start[size] = max(begin + num_planes, num_resident)
            batch_end[size] = end
            size += 1
        for i in range(size):
            e, end = batch_start[i], batch_end[i]
            page = e >> page_shift
            if page < low or page >= high:
                limit = min(page + half_pages, (page // chunk_pages + 1) * chunk_pages)
                stop = page + 1
                for j in range(i + 1, size):
                    p = batch_start[j] >> page_shift
                    if p < stop:
                        continue
                    if p - stop > gap_pages or p >= limit:
                        break
                    stop = p + 1
                got = read_pages(files, buffer, page, stop - page)
                if got < 0:
                    return found, total, got
                total += got
                low, high = page, stop
            x = np.int64(-1)
            stop_edge = min(end, high << page_shift)
            base = low << page_shift
            while e < stop_edge:
                y = np.int64(indices[e - base])
                if (frontier[y >> 6] >> np.uint64(y & 63)) & one:
                    x = y
                    break
                e += 1
            if x < 0 and e == end:
                size_kept = end - batch_start[i]
                at = atomic_add(kept, 1, size_kept) if kept[1] + size_kept <= kept_edges.size else kept_edges.size
                if at + size_kept <= kept_edges.size:
                    entry = atomic_add(kept, 0, 1)
                    if entry < kept_vertex.size:
                        kept_vertex[entry] = batch_v[i]
                        kept_begin[entry, 0] = at
                        kept_begin[entry, 1] = at + size_kept
                        for j in range(size_kept):
                            kept_edges[at + j] = indices[batch_start[i] - base + j]
            ahead = 1
            if x < 0 and end - e > long_rows.limit and _put_off(long_rows, batch_v[i], e, end, end):
                continue
            while x < 0 and e < end:
                page = e >> page_shift
                last = min(page + min(ahead, half_pages), ((end - 1) >> page_shift) + 1)
                last = min(last, (page // chunk_pages + 1) * chunk_pages)
                got = read_pages(files, buffer[half_pages * 4096 :], page, last - page)
                if got < 0:
                    return found, total, got
                total += got
                base = (page << page_shift) - half_items
                stop_edge = min(end, last << page_shift)
                while e < stop_edge:
                    y = np.int64(indices[e - base])
                    if (frontier[y >> 6] >> np.uint64(y & 63)) & one:
                        x = y
                        break
                    e += 1
                ahead *= 2
            if x >= 0:
                v = batch_v[i]
                parent[v] = x
                set_level(level8, level32, wide, v, level)
                atomic_or(visited, v >> 6, one << np.uint64(v & 63))
                found += 1
    return found, total, 0


@nb.njit(nogil=True, cache=True)
def pull_kept(tails: Any, entry0: Any, entry1: Any, frontier: Any, visited: Any, undecided: Any, marks: Any) -> Any:
    """Pull the undecided vertices whose tails `pull_tails` kept, entries ``entry0 .. entry1 - 1``; none is undecided after that.

    Returns
    -------
    num_decided
    """
    parent, level8, level32, wide, level = marks
    kept_vertex, kept_begin, kept_edges = tails
    one = np.uint64(1)
    decided = 0
    for i in range(entry0, entry1):
        v = kept_vertex[i]
        bit = one << np.uint64(v & 63)
        if not undecided[v >> 6] & bit:
            continue
        undecided[v >> 6] &= ~bit
        decided += 1
        for j in range(kept_begin[i, 0], kept_begin[i, 1]):
            y = np.int64(kept_edges[j])
            if (frontier[y >> 6] >> np.uint64(y & 63)) & one:
                parent[v] = y
                set_level(level8, level32, wide, v, level)
                visited[v >> 6] |= bit
                break
    return decided


@nb.njit(nogil=True, cache=True)
def _push_stretch(v: Any, edges: Any, start: Any, stop: Any, visited: Any, owned: Any, rank: Any, marks: Any) -> Any:
    """Make `v` the parent of the unvisited vertices of ``edges[start:stop]``; returns how many.

    The loop is here, not in the callers: a call per edge passed four arrays and cost 20 ns (their reference counts), this 0.7 ns.
    """
    parent, level8, level32, wide, level = marks
    found = 0
    for i in range(start, stop):
        x = np.int64(edges[i])
        bit = np.uint64(1) << np.uint64(x & 63)
        if visited[x >> 6] & bit:
            continue
        if atomic_or(visited, x >> 6, bit) & bit:
            continue
        at = x
        if owned is not None:
            at = np.int64(rank[x >> 6]) + np.int64(count_ones(owned[x >> 6] & (bit - np.uint64(1))))
        parent[at] = v
        set_level(level8, level32, wide, at, level)
        found += 1
    return found


@nb.njit(nogil=True, cache=True)
def push_rows(
    e0: Any, e1: Any, lookup: Any, planes: Any, resident: Any, base: Any, files: Any, gap_pages: Any, buffer: Any, indices: Any,
    frontier: Any, visited: Any, owned: Any, rank: Any, marks: Any,
) -> Any:  # fmt: skip
    """Push the frontier's edges that lie in ``e0 .. e1 - 1`` of ``indices`` (a PartialCSR: cut anywhere in a row).

    Heads come from the planes, the rest from `resident` or from disk; pages at most `gap_pages` apart are read together.

    Parameters
    ----------
    owned, rank
        None in process. A partition passes the bitmap of the vertices it owns and, for each word, how many it owns before that word:
        parents and levels are then at local positions, and what it does not own is marked in `visited`.

    Returns
    -------
    (num_found, bytes_read, error): error is 0, or what `read_pages` returned.
    """
    plane_edges, plane_offset, plane_length = planes
    chunk_pages, page_shift = files.chunk_pages, files.page_shift
    one = np.uint64(1)
    num_planes = plane_length.size - 1
    num_resident = base + resident.size
    buffer_pages = buffer.size // 4096
    batch_v = np.empty(BATCH, np.int64)
    batch_start = np.empty(BATCH, np.int64)
    batch_end = np.empty(BATCH, np.int64)
    found, total = 0, 0
    v = vertex_of_edge(lookup, e0)
    c = find_class(lookup.first, v)
    num_words = frontier.size
    w = v >> 6
    bits = frontier[w] & ~((one << np.uint64(v & 63)) - one)
    low, high = np.int64(-1), np.int64(-1)
    while w < num_words:
        size = 0
        while size < BATCH and w < num_words:
            if not bits:
                w += 1
                if w < num_words:
                    bits = frontier[w]
                continue
            v = w * 64 + np.int64(trailing_zeros(bits))
            bits &= bits - one
            c = next_class(lookup, c, v)
            begin, end = row_of(lookup, c, v)
            if begin >= e1:
                w = num_words
                break
            stop = min(end, e1)
            start = max(begin, e0)
            head_stop = min(num_resident, stop)
            if start < head_stop:
                found += _push_stretch(v, resident, start - base, head_stop - base, visited, owned, rank, marks)
                start = head_stop
            head_stop = min(begin + num_planes, stop)
            while start < head_stop:
                at = plane_offset[start - begin] + v
                found += _push_stretch(v, plane_edges, at, at + 1, visited, owned, rank, marks)
                start += 1
            if start < stop:
                batch_v[size] = v
                batch_start[size] = start
                batch_end[size] = stop
                size += 1
        for i in range(size):
            e, end, v = batch_start[i], batch_end[i], batch_v[i]
            while e < end:
                page = e >> page_shift
                if page < low or page >= high:
                    limit = min(page + buffer_pages, (page // chunk_pages + 1) * chunk_pages)
                    stop = min(limit, ((end - 1) >> page_shift) + 1)
                    for j in range(i + 1, size):
                        p = batch_start[j] >> page_shift
                        if p - stop > gap_pages or p >= limit:
                            break
                        stop = max(stop, min(limit, ((batch_end[j] - 1) >> page_shift) + 1))
                    got = read_pages(files, buffer, page, stop - page)
                    if got < 0:
                        return found, total, got
                    total += got
                    low, high = page, stop
                stop_edge = min(end, high << page_shift)
                low_edge = low << page_shift
                found += _push_stretch(v, indices, e - low_edge, stop_edge - low_edge, visited, owned, rank, marks)
                e = stop_edge
    return found, total, 0


@nb.njit(nogil=True, cache=True)
def _queue_stretch(
    v: Any, edges: Any, start: Any, stop: Any, queue: Any, size: Any, visited: Any, owned: Any, rank: Any, marks: Any, level: Any
) -> Any:
    """`_push_stretch` for one thread, which also appends what it finds to `queue`; returns the queue's new size."""
    parent, level8, level32, wide, _ = marks
    for i in range(start, stop):
        x = np.int64(edges[i])
        bit = np.uint64(1) << np.uint64(x & 63)
        if visited[x >> 6] & bit:
            continue
        visited[x >> 6] |= bit
        queue[size] = x
        size += 1
        at = x
        if owned is not None:
            if not owned[x >> 6] & bit:
                continue
            at = np.int64(rank[x >> 6]) + np.int64(count_ones(owned[x >> 6] & (bit - np.uint64(1))))
        parent[at] = v
        set_level(level8, level32, wide, at, level)
    return size


@nb.njit(nogil=True, cache=True)
def push_levels(
    queues: Any, state: Any, limits: Any, lookup: Any, planes: Any, resident: Any, files: Any, cache_tag: Any, cache: Any,
    cache_indices: Any, missing: Any, visited: Any, owned: Any, rank: Any, marks: Any, targets: Any, log: Any,
) -> Any:  # fmt: skip
    """Push many levels in one call, for frontiers so small that a call per level would cost more than its work.

    One thread, a queue of vertices. Pages outside of memory go through a direct-mapped cache of 4 KiB pages.
    A partition (`owned` and `rank` as in `push_rows`) finds all vertices, and notes parent and level of its own.

    Parameters
    ----------
    queues : (4, capacity) int64
        The frontier (in any order) and room for the next one; behind them the degree classes of both.
    state : (7,) int64, changed
        0 frontier size, 1 its edges, 2 level it is on, 3 bytes read, 4 rows of `log` used, 5 pages in `missing`,
        6 which of `queues` holds the frontier.
    limits : (6,) int64
        0 last level to find, 1 edges above which a frontier is left to others, 2 misses above which the first level's pages
        are listed in `missing` instead of being read one after the other, 3 largest level (the one-byte form ends at 254),
        4 as 2, for the levels after the first, 5 vertices above which a frontier is left to others.
    targets : (num_targets,) int64
        Vertices: when all of them are visited, the search is done. None: it goes on.
    log : (capacity, 4) int64
        Per level: frontier size, edges, bytes read, nanoseconds.

    Returns
    -------
    (status, error)
    """
    plane_edges, plane_offset, plane_length = planes
    page_shift = files.page_shift
    parent, level8, level32, wide, _ = marks
    one = np.uint64(1)
    num_planes = plane_length.size - 1
    num_resident = resident.size
    slots = cache_tag.size
    page_items = np.int64(1) << page_shift
    clock = np.empty(2, np.int64)
    began = nanoseconds(clock)
    miss_limit = limits[2]
    found = 0  # so many of the targets
    for i in range(state[0]):
        queues[2 + state[6], i] = find_class(lookup.first, queues[state[6], i])
    while True:
        count, edges, level = state[0], state[1], state[2]
        queue, next_queue = queues[state[6]], queues[1 - state[6]]
        classes, next_classes = queues[2 + state[6]], queues[3 - state[6]]
        while found < targets.size and (visited[targets[found] >> 6] >> np.uint64(targets[found] & 63)) & one:
            found += 1
        if count == 0 or level >= limits[0] or (targets.size and found == targets.size):
            return STATUS_DONE, 0
        if edges > limits[1] or count > limits[5] or level >= limits[3]:
            return STATUS_GROWN, 0
        if state[4] == log.shape[0]:
            return STATUS_LOG_FULL, 0
        if slots and miss_limit < missing.size:
            misses = 0
            for i in range(count):
                v, c = queue[i], classes[i]
                begin, end = row_of(lookup, c, v)
                start = max(begin + num_planes, num_resident)
                if start < end:
                    for page in range(start >> page_shift, ((end - 1) >> page_shift) + 1):
                        if cache_tag[page % slots] != page and misses < missing.size:
                            missing[misses] = page
                            misses += 1
            if misses > miss_limit:
                state[5] = misses
                return STATUS_MISSES, 0
        miss_limit = limits[4]
        size, next_edges, total = 0, 0, 0
        new_level = level + 1
        for i in range(count):
            v, c = queue[i], classes[i]
            begin, end = row_of(lookup, c, v)
            old_size = size
            e = begin
            if e < num_resident:
                # `_queue_stretch`, written out and without a branch per edge: a call a row is half of the time on a grid
                stop = min(end, num_resident)
                while e < stop:
                    x = np.int64(resident[e])
                    e += 1
                    word = visited[x >> 6]
                    is_new = (~word >> np.uint64(x & 63)) & one
                    visited[x >> 6] = word | (one << np.uint64(x & 63))
                    next_queue[size] = x
                    size += np.int64(is_new)
                for j in range(old_size, size):
                    x = next_queue[j]
                    at = x
                    if owned is not None:
                        bit = one << np.uint64(x & 63)
                        if not owned[x >> 6] & bit:
                            continue
                        at = np.int64(rank[x >> 6]) + np.int64(count_ones(owned[x >> 6] & (bit - one)))
                    parent[at] = v
                    set_level(level8, level32, wide, at, new_level)
            while e < end:
                if e - begin < num_planes:
                    stop = e + 1
                    stretch, begins = plane_edges, plane_offset[e - begin] + v
                else:
                    page = e >> page_shift
                    slot = page % slots
                    if cache_tag[slot] != page:
                        cache_tag[slot] = -1
                        got = read_pages(files, cache[slot * 4096 :], page, np.int64(1))
                        if got < 0:
                            return STATUS_DONE, got
                        cache_tag[slot] = page
                        total += got
                    stop = min(end, (page + 1) << page_shift)
                    stretch, begins = cache_indices, slot * page_items + (e & (page_items - 1))
                size = _queue_stretch(v, stretch, begins, begins + stop - e, next_queue, size, visited, owned, rank, marks, new_level)
                e = stop
            for j in range(old_size, size):
                x = next_queue[j]
                if lookup.indptr.size:
                    next_edges += lookup.indptr[x + 1] - lookup.indptr[x]
                else:
                    next_classes[j] = find_class(lookup.first, x)
                    next_edges += lookup.value[next_classes[j]]
        ended = nanoseconds(clock)
        row = state[4]
        log[row, 0], log[row, 1], log[row, 2], log[row, 3] = count, edges, total, ended - began
        began = ended
        state[4] = row + 1
        state[3] += total
        state[0], state[1], state[2] = size, next_edges, new_level
        state[6] = 1 - state[6]


@nb.njit(nogil=True, cache=True)
def fill_cache(pages: Any, first_page: Any, last_page: Any, files: Any, cache_tag: Any, cache: Any) -> Any:
    """Read pages ``pages[first_page:last_page]`` into the direct-mapped cache. Returns (bytes_read, error)."""
    total = 0
    for i in range(first_page, last_page):
        slot = pages[i] % cache_tag.size
        cache_tag[slot] = -1
        got = read_pages(files, cache[slot * 4096 :], pages[i], np.int64(1))
        if got < 0:
            return total, got
        cache_tag[slot] = pages[i]
        total += got
    return total, 0


@nb.njit(nogil=True, cache=True)
def count_edges(w0: Any, w1: Any, lookup: Any, rows: Any) -> Any:
    """Vertices marked in words ``w0 .. w1 - 1`` of `rows`, and the sum of their degrees, exact: (num_rows, num_edges)."""
    indptr, first, _, value = lookup
    num_rows, num_edges = 0, 0
    c = find_class(first, w0 * 64)
    for w in range(w0, w1):
        bits = rows[w]
        if not bits:
            continue
        num_rows += np.int64(count_ones(bits))
        c = next_class(lookup, c, w * 64)
        if indptr.size == 0 and (c + 1 == first.size or w * 64 + 63 < first[c + 1]):
            num_edges += np.int64(count_ones(bits)) * value[c]
            continue
        while bits:
            v = w * 64 + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            if indptr.size:
                num_edges += indptr[v + 1] - indptr[v]
            else:
                c = next_class(lookup, c, v)
                num_edges += value[c]
    return num_rows, num_edges


@nb.njit(nogil=True, cache=True)
def difference(w0: Any, w1: Any, visited: Any, before: Any, out: Any) -> Any:
    """``out = visited & ~before`` over words ``w0 .. w1 - 1``; returns how many bits are set."""
    count = 0
    for w in range(w0, w1):
        new = visited[w] & ~before[w]
        out[w] = new
        count += np.int64(count_ones(new))
    return count


@nb.njit(nogil=True, cache=True)
def list_vertices(rows: Any, out: Any) -> Any:
    """Write the vertices marked in `rows` to `out` (int64), ascending; returns how many."""
    size = 0
    for w in range(rows.size):
        bits = rows[w]
        while bits:
            out[size] = w * 64 + np.int64(trailing_zeros(bits))
            size += 1
            bits &= bits - np.uint64(1)
    return size


@nb.njit(nogil=True, cache=True)
def mark_vertices(vertices: Any, count: Any, rows: Any) -> None:
    """Set the bits of ``vertices[:count]`` in `rows` after clearing it."""
    rows[:] = np.uint64(0)
    for i in range(count):
        v = vertices[i]
        rows[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@nb.njit(nogil=True, cache=True)
def add_vertices(vertices: Any, rows: Any) -> None:
    """Set the bits of `vertices` in `rows`."""
    for i in range(vertices.size):
        v = np.int64(vertices[i])
        rows[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@nb.njit(nogil=True, cache=True)
def widen_levels(level8: Any, level32: Any, num_vertices: Any) -> None:
    """Turn one-byte levels into int32 in place: `level8` and `level32` start at the same address."""
    for v in range(num_vertices - 1, -1, -1):
        level32[v] = level8[v]


@nb.njit(nogil=True, cache=True)
def finish_search(w0: Any, w1: Any, num_vertices: Any, visited: Any, none: Any, marks: Any) -> None:
    """Set parent and level of the unvisited vertices of words ``w0 .. w1 - 1`` to the sentinels, `none` and -1 (255 in one byte)."""
    parent, level8, level32, wide, _ = marks
    for w in range(w0, w1):
        open_bits = ~visited[w]
        if w * 64 + 64 > num_vertices:
            open_bits &= (np.uint64(1) << np.uint64(num_vertices - w * 64)) - np.uint64(1)
        while open_bits:
            v = w * 64 + np.int64(trailing_zeros(open_bits))
            open_bits &= open_bits - np.uint64(1)
            parent[v] = none
            set_level(level8, level32, wide, v, -1)  # 255 in one byte


@nb.njit(nogil=True, cache=True)
def touch_pages(
    lookup: Any, num_planes: Any, num_resident: Any, window: Any, base: Any, page_shift: Any, frontier: Any, undecided: Any,
    touched: Any,
) -> None:  # fmt: skip
    """Mark in `touched` the pages of a window of ``indices`` that a progressive pull of the `undecided` vertices would read.

    Vertices that find a parent in the window are cleared from `undecided`.
    """
    last = base + window.size
    v = vertex_of_edge(lookup, base)
    c = find_class(lookup.first, v)
    w = v >> 6
    while w < undecided.size:
        bits = undecided[w]
        while bits:
            v = w * 64 + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            while c > 0 and v < lookup.first[c]:
                c -= 1
            c = next_class(lookup, c, v)
            begin, end = row_of(lookup, c, v)
            e, end = max(begin + num_planes, num_resident, base), min(end, last)
            if e >= last:
                return
            while e < end:
                touched[e >> page_shift] = True
                y = np.int64(window[e - base])
                if (frontier[y >> 6] >> np.uint64(y & 63)) & np.uint64(1):
                    undecided[w] &= ~(np.uint64(1) << np.uint64(v & 63))
                    break
                e += 1
        w += 1
