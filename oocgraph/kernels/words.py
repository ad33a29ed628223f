"""Breadth-first search from up to 64 sources at once: each vertex has a word, in which a bit is a source.

In: whole rows (`oocgraph.engine.sweeps`), or a range of vertices, and the words of all vertices: `seen` by which sources, `frontier` (found
at the last level), `found` (at this one). Out: words, and how many vertices each source has found.

A frontier of few vertices is listed (`push_listed`): as many levels as are small are found in one call, by one thread, and what a level
takes does not depend on the number of vertices. It goes from row to row (`oocgraph.kernels.piece_rows`).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, atomic_or, count_ones, prefetch, trailing_zeros
from oocgraph.kernels.piece_rows import DONE, FULL, GROWN, MISSING, piece_of, row_of, work_of

_NUM_PLANES = 40
"""Bits of the counts of one call, which are kept a bit plane each: rows of a call are fewer than 2^40."""

NO_ROOM = -1
"""Where a list ends for which there is no room."""

_NONE, _ONE = np.uint64(0), np.uint64(1)


@nb.njit(nogil=True, cache=True, inline="always")
def _count(planes: Any, word: Any) -> None:
    """Add 1 to the count of each bit of a word: bit b of ``planes[i]`` is bit i of the count of b."""
    i = 0
    while word != _NONE:
        carry = planes[i] & word
        planes[i] ^= word
        word = carry
        i += 1


@nb.njit(nogil=True, cache=True)
def _counts(planes: Any) -> Any:
    counts = np.zeros(64, np.int64)
    for i in range(planes.size):
        for b in range(64):
            counts[b] += np.int64((planes[i] >> np.uint64(b)) & _ONE) << i
    return counts


@nb.njit(nogil=True, cache=True)
def pull(first: Any, pointers: Any, start: Any, indices: Any, values: Any, frontier: Any, seen: Any, found: Any, union: Any) -> Any:
    """Find, of the rows of a piece, the sources that reach a neighbour at the last level and did not reach the row before.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    frontier : (num_vertices,) uint64
    seen, found : (num_rows,) uint64
        Updated; 0 before, where nothing is found.
    union : uint64
        All sources that found anything at the last level.

    Returns
    -------
    (64,) int64: how many rows each source has found.
    """
    planes = np.zeros(_NUM_PLANES, np.uint64)
    last = np.int64(indices.size - 1)
    for r in range(found.size):
        missing = union & ~seen[r]
        if missing == _NONE:
            continue
        word = _NONE
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(frontier, np.int64(indices[min(e + AHEAD, last)]))
            word |= frontier[np.int64(indices[e])]
            if missing & ~word == _NONE:
                break
        word &= missing
        if word != _NONE:
            found[r] = word
            seen[r] |= word
            _count(planes, word)
    return _counts(planes)


@nb.njit(nogil=True, cache=True)
def push(first: Any, pointers: Any, start: Any, indices: Any, values: Any, seen: Any, found: Any, frontier: Any) -> Any:
    """Give the sources that reached a row at the last level to its neighbours that they did not reach before.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    seen, found : (num_vertices,) uint64
        Read; updated, in single steps.
    frontier : (num_rows,) uint64
    """
    last = np.int64(indices.size - 1)
    for r in range(frontier.size):
        word = frontier[r]
        if word == _NONE:
            continue
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(seen, np.int64(indices[min(e + AHEAD, last)]))
            u = np.int64(indices[e])
            new = word & ~seen[u] & ~found[u]
            if new != _NONE:
                atomic_or(found, u, new)


@nb.njit(nogil=True, cache=True)
def push_listed(pieces: Any, seen: Any, found: Any, vertices: Any, words: Any, ends: Any, counts: Any, most: Any, num_levels: Any) -> Any:
    """Find levels of few vertices from a frontier that is listed, one after the other.

    Parameters
    ----------
    pieces : oocgraph.kernels.piece_rows.Pieces
    seen, found : (num_vertices,) uint64
        `seen` is updated; `found` is 0 before and afterwards.
    vertices, words : (room,)
        Vertices, and the sources that found them: the frontier first, then what is found.
    ends : (num + 2,) int64
        The frontier is the first ``ends[1]`` of them; level i of those that are found, from 0 on, is ``ends[i + 1] .. ends[i + 2] - 1``.
    counts : (num, 64) int64
        Out: how many vertices each source has found at each level.
    most : int
        Vertices and edges of a level that is left to others.
    num_levels : int
        Levels to find, at most `num`.

    Returns
    -------
    (num_found, why, piece): levels that are complete, why there are no more, and which piece is missing.
    """
    level = 0
    while level < num_levels:
        begin, stop = ends[level], ends[level + 1]
        work, missing = work_of(pieces, vertices[begin:stop], most)
        if missing >= 0:
            return level, MISSING, missing
        if work > most:
            return level, GROWN, 0
        top = stop
        for i in range(begin, stop):
            v = np.int64(vertices[i])
            low, high, indices = row_of(pieces, v, piece_of(pieces, v))
            if high - low > vertices.size - top:
                for j in range(stop, top):
                    found[vertices[j]] = _NONE
                return level, FULL if level else GROWN, 0
            top = _give(words[i], indices, low, high, seen, found, vertices, top)
        settle_listed(seen, found, vertices, words, stop, top, counts[level])
        level += 1
        ends[level + 1] = top
        if top == stop:
            return level, DONE, 0
    return level, FULL, 0


@nb.njit(nogil=True, cache=True, inline="always")
def _give(word: Any, indices: Any, low: Any, high: Any, seen: Any, found: Any, vertices: Any, top: Any) -> Any:
    """Give the sources of a row to its neighbours, and list those from `top` on that have none so far; returns where the list ends."""
    for e in range(low, high):
        u = np.int64(indices[e])
        new = word & ~seen[u] & ~found[u]
        if new != _NONE:
            if found[u] == _NONE:
                vertices[top] = u
                top += 1
            found[u] |= new
    return top


@nb.njit(nogil=True, cache=True)
def settle_listed(seen: Any, found: Any, vertices: Any, words: Any, begin: Any, stop: Any, counts: Any) -> None:
    """Have listed vertices be seen by the sources that found them; out: `counts`, (64,) int64, how many each has found."""
    counts[:] = 0
    for i in range(begin, stop):
        u = np.int64(vertices[i])
        word = found[u]
        found[u] = _NONE
        words[i] = word
        seen[u] |= word
        while word != _NONE:
            counts[np.int64(trailing_zeros(word))] += 1
            word &= word - _ONE


@nb.njit(nogil=True, cache=True)
def push_here(pieces: Any, seen: Any, found: Any, vertices: Any, words: Any, begin: Any, stop: Any, top: Any, missing: Any) -> Any:
    """Give the sources of some vertices that are listed to their neighbours, where the rows are in memory.

    Parameters
    ----------
    pieces, seen, found, vertices, words
        As of `push_listed`; `found` is what the level has found so far.
    begin, stop, top : int
        Which vertices; where the list of what is found ends.
    missing : (num,) int64
        Out: places of those whose rows are not in memory.

    Returns
    -------
    (top, num_missing); a `top` of `NO_ROOM`: what is listed so far is to be forgotten.
    """
    num = 0
    for i in range(begin, stop):
        v = np.int64(vertices[i])
        piece = piece_of(pieces, v)
        if pieces.places[piece, 0] == 0:
            missing[num] = i
            num += 1
            continue
        low, high, indices = row_of(pieces, v, piece)
        if high - low > vertices.size - top:
            return NO_ROOM, num
        top = _give(words[i], indices, low, high, seen, found, vertices, top)
    return top, num


@nb.njit(nogil=True, cache=True)
def push_read(places: Any, offset: Any, indices: Any, seen: Any, found: Any, vertices: Any, words: Any, top: Any) -> Any:
    """Give the sources of vertices that are listed at `places` to their neighbours, which are ``indices[offset[i]:offset[i + 1]]``.

    The rest is as of `push_here`, of which it does the rows that are missing; returns where the list ends, or `NO_ROOM`.
    """
    if indices.size > vertices.size - top:
        return NO_ROOM
    for i in range(places.size):
        top = _give(words[places[i]], indices, offset[i], offset[i + 1], seen, found, vertices, top)
    return top


@nb.njit(nogil=True, cache=True)
def list_words(found: Any, vertices: Any, words: Any) -> Any:
    """List the vertices that have a word, in order, and set it to 0; returns how many they are, at most as many as there is room for."""
    count = 0
    for v in range(found.size):
        if found[v] != _NONE:
            vertices[count], words[count] = v, found[v]
            found[v] = _NONE
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def add_figures(counts: Any, level: Any, depth: Any, num: Any, total: Any, inverse: Any) -> None:
    """Add what sources have found at levels from `level` on to their figures, one level after the other.

    Parameters
    ----------
    counts : (num_levels, num_sources) int64
    level : int
    depth, num, total : (num_sources,) int64
        The last level at which a source found anything; how many vertices it has found, and the sum of their distances.
    inverse : (num_sources,) float64
        Sum of 1 / these.
    """
    for i in range(counts.shape[0]):
        for b in range(counts.shape[1]):
            if counts[i, b]:
                depth[b] = level + i
                num[b] += counts[i, b]
                total[b] += counts[i, b] * (level + i)
                inverse[b] += counts[i, b] / (level + i)


@nb.njit(nogil=True, cache=True)
def settle(seen: Any, found: Any, start: Any, stop: Any) -> Any:
    """Have the vertices of a range seen by the sources that found them; returns how many each has found, (64,) int64."""
    planes = np.zeros(_NUM_PLANES, np.uint64)
    for v in range(start, stop):
        if found[v] != _NONE:
            seen[v] |= found[v]
            _count(planes, found[v])
    return _counts(planes)


@nb.njit(nogil=True, cache=True)
def clear(words: Any, start: Any, stop: Any) -> None:
    """Set the words of a range of vertices to 0."""
    words[start:stop] = _NONE


@nb.njit(nogil=True, cache=True)
def write_levels(found: Any, level: Any, levels: Any, start: Any, stop: Any) -> None:
    """Set ``levels[b, v] = level`` for each bit b that a vertex of a range has; levels : (num_sources, num_vertices) integers."""
    for v in range(start, stop):
        word = found[v]
        while word != _NONE:
            levels[np.int64(trailing_zeros(word)), v] = level
            word &= word - _ONE


@nb.njit(nogil=True, cache=True)
def write_listed(vertices: Any, words: Any, ends: Any, level: Any, levels: Any) -> None:
    """Set the levels of vertices that `push_listed` has found, from `level` on; `levels` as of `write_levels`."""
    for i in range(ends.size - 2):
        for j in range(ends[i + 1], ends[i + 2]):
            word = words[j]
            while word != _NONE:
                levels[np.int64(trailing_zeros(word)), np.int64(vertices[j])] = level + i
                word &= word - _ONE


@nb.njit(nogil=True, cache=True)
def add_listed(vertices: Any, words: Any, ends: Any, level: Any, num: Any, total: Any, is_inverse: Any) -> None:
    """Add as `add_up` does, of vertices that `push_listed` has found, from `level` on."""
    for i in range(ends.size - 2):
        distance = 1.0 / (level + i) if is_inverse else np.float64(level + i)
        for j in range(ends[i + 1], ends[i + 2]):
            more = np.int64(count_ones(words[j]))
            num[vertices[j]] += more
            total[vertices[j]] += more * distance


@nb.njit(nogil=True, cache=True)
def add_up(found: Any, level: Any, num: Any, total: Any, is_inverse: Any, start: Any, stop: Any) -> None:
    """Add the sources that found the vertices of a range at a level to their numbers, and the distances, or 1 / these, to their sums.

    Parameters
    ----------
    found : (num_vertices,) uint64
    level : int
    num : (num_vertices,) int32
    total : (num_vertices,) float64
    is_inverse : bool
    start, stop : int
    """
    distance = 1.0 / level if is_inverse else np.float64(level)
    for v in range(start, stop):
        if found[v] != _NONE:
            more = np.int64(count_ones(found[v]))
            num[v] += more
            total[v] += more * distance


@nb.njit(nogil=True, cache=True)
def closeness(num: Any, total: Any, num_others: Any) -> None:
    """Replace sums of distances by the closeness that they estimate.

    Parameters
    ----------
    num : (num_vertices,) int32
        Samples that reach a vertex.
    total : (num_vertices,) float64
        Sum of their distances.
    num_others : int
        Samples other than the vertex, by whose share that reaches it its closeness is multiplied; 0: it is not.
    """
    for v in range(num.size):
        if total[v] > 0:
            total[v] = num[v] / total[v] * (num[v] / num_others if num_others else 1.0)


@nb.njit(nogil=True, cache=True)
def vertices_at(levels: Any, level: Any, start: Any, out: Any) -> Any:
    """Find vertices of a level from `start` on, as many as `out` has room for; returns how many, and where to go on."""
    count, v = 0, start
    while v < levels.size and count < out.size:
        if levels[v] == level:
            out[count] = v
            count += 1
        v += 1
    return count, v


@nb.njit(nogil=True, cache=True)
def cover(found: Any, level: Any, levels: Any, start: Any, stop: Any) -> None:
    """Set ``levels[v] = -1`` for each vertex of a range that is found."""
    for v in range(start, stop):
        if found[v] != _NONE:
            levels[v] = -1


@nb.njit(nogil=True, cache=True)
def cover_listed(vertices: Any, words: Any, ends: Any, level: Any, levels: Any) -> None:
    """Do as `cover` with vertices that `push_listed` has found."""
    for i in range(ends[1], ends[ends.size - 1]):
        levels[np.int64(vertices[i])] = -1


@nb.njit(nogil=True, cache=True)
def raise_least(level: Any, depth: Any, least: Any) -> None:
    """Raise what vertices are eccentric at the least, by their levels in a search of a depth."""
    for v in range(level.size):
        least[v] = max(least[v], level[v], np.int32(depth) - level[v])
