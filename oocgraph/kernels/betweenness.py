"""Shortest paths from several sources at once, counted level by level, and what depends on them, level by level back (Brandes 2001).

A source is a lane. A vertex has a row of `LANES` float64, one for each lane, and words with a bit for each: in `front` there are those in
which it is on the level that a sweep reads. Of a neighbour's row only these are used, so that its others may be written at the same time.
A neighbour that occurs twice, which is next to itself, counts once.

Float64 cannot hold every number of paths, so a level with a huge one is scaled, and so are its dependencies on the way back: only ratios
of numbers of paths on adjacent levels matter.

A level of few vertices is listed, and many such levels are passed in one call, by one thread, from row to row
(`oocgraph.kernels.piece_rows`). A row adds its neighbours up as in a sweep, so that no bit of a result depends on what is listed.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import add_rows, prefetch
from oocgraph.kernels.piece_rows import DONE, FULL, GROWN, MISSING, piece_of, row_of, work_of

LANES = 8
"""Sources at once: a row is a cache line, and a word a byte. On a Kronecker graph of scale 20, 2 threads, 16 took 0.9 of the time of a
source, 32 and 64 took 1.2 to 1.4, and all of them more memory."""

WORD = np.uint8
"""Type of a word."""

HUGE, STEP, TINY = 2.0**900, 2.0**-64, 2.0**-900
"""Number of paths above which a level is scaled, the factor, and the smallest number that scaling may leave. Scaling by a power of two is
exact, so it changes no bit of a result. From one level to the next a number grows at most by the length of the longest list."""

HELD = 512
"""Neighbours that are looked at before the rows of those that matter are added: the list of these stays in the first-level cache."""


@nb.njit(nogil=True, cache=True)
def count_paths(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, front: Any, paths: Any, new: Any, unseen: Any, level: Any, depth: Any
) -> Any:
    """Find the vertices of the next level, and by how many shortest paths each is reached.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows, lists ``in``: see `oocgraph.engine.sweeps`.
    front : (num_vertices,) uint8
        Lanes in which a vertex is on the level before.
    paths : (num_vertices, LANES) float64
        Numbers of paths; read where `front` has a bit, set in these rows where they are found.
    new, unseen : (num_rows,) uint8
        Before, 0 where a row need not be looked at; set to the lanes in which it is found. Those in which it has not been found yet, of
        which these are taken away.
    level : (LANES, num_vertices) uint16
        Set where a row is found.
    depth : int
        Of the next level.

    Returns
    -------
    (num_found, num_edges, are_small): rows that are found, and their entries; whether no number of paths is `HUGE`.
    """
    num_found, num_edges, are_small = 0, 0, True
    sums, rows = np.zeros(LANES), np.empty(HELD, indices.dtype)
    for r in range(unseen.size):
        if not new[r]:
            continue
        lanes = _add_neighbours(pointers[r] - start, pointers[r + 1] - start, indices, front, unseen[r], paths, sums, rows)
        new[r] = lanes
        if not lanes:
            continue
        num_found += 1
        num_edges += np.int64(pointers[r + 1] - pointers[r])
        unseen[r] &= ~lanes
        are_small &= _note_found(first + r, lanes, sums, paths, level, depth)
    return num_found, num_edges, are_small


@nb.njit(nogil=True, cache=True)
def list_front(front: Any, vertices: Any) -> Any:
    """List the vertices that have a lane in `front`, in order; returns how many they are, at most as many as there is room for."""
    count = 0
    for v in range(front.size):
        if front[v]:
            vertices[count] = v
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def count_listed(
    out_pieces: Any, in_pieces: Any, front: Any, paths: Any, new: Any, unseen: Any, level: Any, depth: Any, vertices: Any,
    num_vertices: Any, sizes: Any, num_levels: Any,
) -> Any:  # fmt: skip
    """Find levels of few vertices, as `count_paths` does, from a front that is listed, one after the other.

    Parameters
    ----------
    out_pieces, in_pieces : oocgraph.kernels.piece_rows.Pieces
        Lists ``out``, which tell who may be found, and ``in``.
    front, new : (num_vertices,) uint8
        Lanes of the level before, which is updated with each that is found, the last one that has any vertices in the end; 0, before and
        afterwards.
    paths, unseen, level, depth
        Of `count_paths`, all vertices; `depth` of the first level.
    vertices : (2, most) int64
        The front, in ``vertices[0]``, before and afterwards. At most so many vertices and edges has a level that is not left to others.
    num_vertices : int
        Length of the front.
    sizes : (num_levels, 2) int64
        Out: how many vertices are found on each level, and entries of their rows.
    num_levels : int
        Levels to find at most.

    Returns
    -------
    (num, why, is_out, piece, are_small, num_vertices): levels that are found, and why there are no more; of which lists which piece is
    missing; whether no number of paths of the last one is `HUGE`, else there may be more; length of the front.
    """
    num, most = 0, vertices.shape[1]
    sums, rows = np.zeros(LANES), np.empty(HELD, out_pieces.kind.dtype)
    here, there = vertices[0], vertices[1]
    why, is_out, piece, are_small = FULL, False, 0, True
    while num < num_levels and are_small:
        work, missing = work_of(out_pieces, here[:num_vertices], most)
        if missing >= 0 or work > most:
            why, is_out, piece = MISSING if missing >= 0 else GROWN, True, missing
            break
        top = 0
        for i in range(num_vertices):
            v = here[i]
            piece = piece_of(out_pieces, v)
            low, high, indices = row_of(out_pieces, v, piece)
            for e in range(low, high):
                w = np.int64(indices[e])
                lanes = front[v] & unseen[w]
                if lanes:
                    there[top] = w
                    top += new[w] == 0
                    new[w] |= lanes
        work, missing = work_of(in_pieces, there[:top], most)
        if missing >= 0 or work > most:
            for i in range(top):
                new[there[i]] = 0
            why, piece = MISSING if missing >= 0 else GROWN, missing
            break
        found = 0
        for i in range(top):
            w = there[i]
            piece = piece_of(in_pieces, w)
            low, high, indices = row_of(in_pieces, w, piece)
            lanes = _add_neighbours(low, high, indices, front, unseen[w], paths, sums, rows)
            new[w] = lanes
            if lanes:
                unseen[w] &= ~lanes
                are_small &= _note_found(w, lanes, sums, paths, level, depth + num)
                there[found] = w
                found += 1
        if not found:
            why = DONE
            break
        for i in range(num_vertices):
            front[here[i]] = 0
        for i in range(found):
            front[there[i]] = new[there[i]]
            new[there[i]] = 0
        sizes[num, 0], sizes[num, 1] = found, work - top
        num += 1
        num_vertices = found
        here, there = there, here
    if num & 1:
        vertices[0, :num_vertices] = here[:num_vertices]
    return num, why, is_out, piece, are_small, num_vertices


@nb.njit(nogil=True, cache=True)
def mark_read(vertices: Any, offset: Any, indices: Any, front: Any, unseen: Any, new: Any, there: Any, top: Any) -> Any:
    """List, from `top` on, who may be found from vertices whose rows were read (``indices[offset[i]:offset[i + 1]]``).

    Returns where the list ends; the rest is as of `count_listed`.
    """
    for i in range(vertices.size):
        for e in range(offset[i], offset[i + 1]):
            w = np.int64(indices[e])
            lanes = front[vertices[i]] & unseen[w]
            if lanes:
                there[top] = w
                top += new[w] == 0
                new[w] |= lanes
    return top


@nb.njit(nogil=True, cache=True)
def count_read(vertices: Any, offset: Any, indices: Any, front: Any, paths: Any, new: Any, unseen: Any, level: Any, depth: Any) -> Any:
    """Find which vertices whose rows were read (`mark_read`; lists ``in``) are on a level, as `count_paths` does.

    Returns
    -------
    (num_edges, are_small): entries of the rows of those that are; whether no number of paths is `HUGE`.
    """
    num_edges, are_small = 0, True
    sums, rows = np.zeros(LANES), np.empty(HELD, indices.dtype)
    for i in range(vertices.size):
        w = vertices[i]
        lanes = _add_neighbours(offset[i], offset[i + 1], indices, front, unseen[w], paths, sums, rows)
        new[w] = lanes
        if lanes:
            unseen[w] &= ~lanes
            are_small &= _note_found(w, lanes, sums, paths, level, depth)
            num_edges += offset[i + 1] - offset[i]
    return num_edges, are_small


@nb.njit(nogil=True, cache=True)
def add_read(vertices: Any, words: Any, offset: Any, indices: Any, front: Any, paths: Any, centrality: Any) -> None:
    """Find how much depends on vertices whose rows were read (`mark_read`), as `add_dependencies` does; `words` are their lanes."""
    sums, rows = np.zeros(LANES), np.empty(HELD, indices.dtype)
    for i in range(vertices.size):
        v = vertices[i]
        _add_neighbours(offset[i], offset[i + 1], indices, front, words[i], paths, sums, rows)
        centrality[v] = _depend(centrality[v], v, words[i], sums, paths)


@nb.njit(nogil=True, cache=True)
def mark_neighbours(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, unseen: Any, new: Any, front: Any
) -> None:  # fmt: skip
    """Set `new` to `unseen` in the neighbours of rows that have a lane in `front`; lists ``out``. Where calls meet they set the same."""
    for r in range(front.size):
        if front[r]:
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                w = np.int64(indices[e])
                new[w] = unseen[w]


@nb.njit(nogil=True, cache=True)
def find_level(level: Any, depth: Any, new: Any, start: Any, stop: Any) -> None:
    """Set ``new[start:stop]``, uint8, to the lanes in which these vertices are on a level."""
    wanted, found = np.uint16(depth), new[start:stop]
    found[:] = 0
    for b in range(LANES):
        here, bit = level[b, start:stop], WORD(1 << b)
        for i in range(found.size):
            found[i] |= bit if here[i] == wanted else WORD(0)


@nb.njit(nogil=True, cache=True)
def add_dependencies(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, front: Any, paths: Any, now: Any, centrality: Any
) -> None:
    """Find how much depends on the vertices of a level, from those on the next one.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows, lists ``out``.
    front : (num_vertices,) uint8
        Lanes in which a vertex is on the next level.
    paths : (num_vertices, LANES) float64
        There, ``(1 + dependency) / number of paths``, which replaces the number of paths in these rows, where they are on this level.
    now : (num_rows,) uint8
        Lanes in which a row is on this level.
    centrality : (num_rows,) float64
        The dependencies are added to it.
    """
    sums, rows = np.zeros(LANES), np.empty(HELD, indices.dtype)
    for r in range(now.size):
        if not now[r]:
            continue
        _add_neighbours(pointers[r] - start, pointers[r + 1] - start, indices, front, now[r], paths, sums, rows)
        centrality[r] = _depend(centrality[r], first + r, now[r], sums, paths)


@nb.njit(nogil=True, cache=True)
def list_levels(level: Any, lowest: Any, vertices: Any, words: Any, ends: Any) -> None:
    """List the vertices of levels, one after the other.

    Parameters
    ----------
    level : (LANES, num_vertices) uint16
    lowest : int
        The first of the levels.
    vertices, words : (room,)
        Out: vertices, and the lanes in which each is on the level. There is room for all.
    ends : (num_levels + 1,) int64
        Level i, from 0 on, is ``ends[i] .. ends[i + 1] - 1``.
    """
    num, at, first, hits = ends.size - 1, ends[:-1].copy(), np.uint16(lowest), np.empty(HELD, WORD)
    for start in range(0, level.shape[1], HELD):
        size = min(HELD, level.shape[1] - start)
        hits[:] = 0
        for b in range(LANES):
            here, bit = level[b, start : start + size], WORD(1 << b)
            for j in range(size):
                hits[j] |= bit if np.uint16(here[j] - first) < np.uint16(num) else WORD(0)
        for j in range(size):
            for b in range(LANES):
                if hits[j] >> b & 1:
                    v, i = start + j, np.int64(np.uint16(level[b, start + j] - first))
                    if at[i] > ends[i] and vertices[at[i] - 1] == v:
                        words[at[i] - 1] |= WORD(1 << b)
                    elif at[i] < ends[i + 1]:
                        vertices[at[i]], words[at[i]] = v, WORD(1 << b)
                        at[i] += 1


@nb.njit(nogil=True, cache=True)
def add_listed(pieces: Any, front: Any, paths: Any, now: Any, centrality: Any, vertices: Any, words: Any, ends: Any, most: Any) -> Any:
    """Find how much depends on the vertices of levels, as `add_dependencies` does, from those on the level behind the last one.

    Parameters
    ----------
    pieces : oocgraph.kernels.piece_rows.Pieces
        Lists ``out``.
    front, now : (num_vertices,) uint8
        Lanes of the level behind; 0 before, afterwards lanes of the lowest level that is done, if any is.
    paths, centrality
        Of `add_dependencies`, all vertices.
    vertices, words, ends
        The levels: see `list_levels`.
    most : int
        Vertices and edges of a level that is left to others.

    Returns
    -------
    (num, why, piece): levels that are done, from the last one on; why there are no more; which piece is missing.
    """
    num_levels, reading = ends.size - 1, front
    sums, rows = np.zeros(LANES), np.empty(HELD, pieces.kind.dtype)
    for num in range(num_levels):
        begin, stop = ends[num_levels - num - 1], ends[num_levels - num]
        work, missing = work_of(pieces, vertices[begin:stop], most)
        if missing >= 0:
            return num, MISSING, missing
        if work > most:
            return num, GROWN, 0
        for i in range(begin, stop):
            v = vertices[i]
            piece = piece_of(pieces, v)
            low, high, indices = row_of(pieces, v, piece)
            _add_neighbours(low, high, indices, reading, words[i], paths, sums, rows)
            centrality[v] = _depend(centrality[v], v, words[i], sums, paths)
        if num:
            for i in range(stop, ends[num_levels - num + 1]):
                now[vertices[i]] = 0
        for i in range(begin, stop):
            now[vertices[i]] = words[i]
        reading = now
    return num_levels, DONE, 0


@nb.njit(nogil=True, cache=True)
def invert_last(front: Any, paths: Any, start: Any, stop: Any) -> None:
    """Set `paths` to what `add_dependencies` reads, in vertices of ``start .. stop - 1`` on the last level: nothing depends on these."""
    for v in range(start, stop):
        for b in range(LANES):
            if front[v] >> b & 1:
                paths[v, b] = 1 / paths[v, b]


@nb.njit(nogil=True, cache=True)
def find_huge(front: Any, paths: Any, start: Any, stop: Any) -> Any:
    """Return the lanes of the front in which a vertex of ``start .. stop - 1`` has more than `HUGE` paths."""
    lanes = WORD(0)
    for v in range(start, stop):
        for b in range(LANES):
            if front[v] >> b & 1 and paths[v, b] > HUGE:
                lanes |= WORD(1 << b)
    return lanes


@nb.njit(nogil=True, cache=True)
def scale_down(front: Any, paths: Any, lanes: Any, start: Any, stop: Any) -> Any:
    """Multiply `paths` by `STEP` in these lanes of the front, ``start .. stop - 1``; returns whether all results are at least `TINY`."""
    are_large = True
    for v in range(start, stop):
        here = front[v] & lanes
        if here:
            for b in range(LANES):
                if here >> b & 1:
                    paths[v, b] *= STEP
                    are_large &= paths[v, b] >= TINY
    return are_large


@nb.njit(nogil=True, cache=True)
def count_ends(unseen: Any, used: Any, centrality: Any, start: Any, stop: Any) -> Any:
    """Add to ``centrality[start:stop]`` the paths that end there, one for each lane used; returns (LANES,) int64, how many in each."""
    counts = np.zeros(LANES, np.int64)
    for v in range(start, stop):
        for b in range(LANES):
            reached = np.int64((used & ~unseen[v]) >> b & 1)
            counts[b] += reached
            centrality[v] += reached
    return counts


@nb.njit(nogil=True, cache=True)
def rescale(centrality: Any, factor: Any, start: Any, stop: Any) -> None:
    """Multiply ``centrality[start:stop]`` by a factor."""
    for v in range(start, stop):
        centrality[v] *= factor


@nb.njit(nogil=True, cache=True)
def _add_neighbours(low: Any, high: Any, indices: Any, front: Any, wanted: Any, paths: Any, sums: Any, rows: Any) -> Any:
    """Set `sums` to the sum of the neighbours' rows, each in the lanes that it has in `front` and that are wanted; returns all of these.

    Rows that matter are asked for when they are found: so a Kronecker graph took 0.9, a uniform one 0.85 of the time.
    """
    sums[:] = 0
    lanes, before = WORD(0), np.int64(-1)
    stop: Any = np.int64(high)
    for begin in range(np.int64(low), stop, HELD):
        held = 0
        for e in range(begin, min(begin + HELD, stop)):
            w = np.int64(indices[e])
            rows[held] = w
            hit = np.int64((front[w] & wanted) != 0) & np.int64(w != before)
            prefetch(paths, np.uint64(w * hit * LANES))
            held += hit
            before = w
        if held:
            lanes |= add_rows(sums, paths, rows, held, front, wanted)
    return lanes


@nb.njit(nogil=True, cache=True, inline="always")
def _note_found(v: Any, lanes: Any, sums: Any, paths: Any, level: Any, depth: Any) -> Any:
    """Note by how many paths a vertex is reached, and on which level it is; returns whether none of these numbers is `HUGE`."""
    are_small = True
    for b in range(LANES):
        if lanes >> b & 1:
            paths[v, b] = sums[b]
            level[b, v] = depth
            are_small &= sums[b] <= HUGE
    return are_small


@nb.njit(nogil=True, cache=True, inline="always")
def _depend(total: Any, v: Any, lanes: Any, sums: Any, paths: Any) -> Any:
    """Add to a total what depends on a vertex, and note what those before it read; returns the total."""
    for b in range(LANES):
        if lanes >> b & 1:
            dependency = paths[v, b] * sums[b]
            total += dependency
            paths[v, b] = (1 + dependency) / paths[v, b]
    return total
