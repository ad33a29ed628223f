"""Breadth-first searches from up to 64 sources, each alone: of the word that a vertex has for all (`oocgraph.kernels.words`), one bit.

In: fronts of few vertices, a queue for each source, words in which each vertex notes by which sources it was seen. Out: the next levels.
Eight sources share a byte of a word, so that as many threads may search at the same time, and none meets another.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import trailing_zeros
from oocgraph.kernels.piece_rows import piece_of, row_of

LANES = 8
"""Sources that share a byte."""


@nb.njit(nogil=True, cache=True)
def split(vertices: Any, words: Any, queue: Any, ends: Any) -> Any:
    """Begin with a front that is listed: put each of its vertices into the queues of the sources that found it.

    Parameters
    ----------
    vertices, words : (num,)
    queue : (64, room)
    ends : (64, most_levels + 2) int64
        Of each source, the front is ``ends[0] .. ends[1] - 1``.

    Returns
    -------
    Whether there was room.
    """
    ends[:, :2] = 0
    for i in range(vertices.size):
        word = words[i]
        while word:
            b = np.int64(trailing_zeros(word))
            if ends[b, 1] == queue.shape[1]:
                return False
            queue[b, ends[b, 1]] = vertices[i]
            ends[b, 1] += 1
            word &= word - np.uint64(1)
    return True


@nb.njit(nogil=True, cache=True)
def search(pieces: Any, seen: Any, byte: Any, queue: Any, room: Any, ends: Any, counts: Any, reached: Any, num_levels: Any) -> Any:
    """Find levels of the sources that share a byte, one source after the other.

    Parameters
    ----------
    pieces : oocgraph.kernels.piece_rows.Pieces
    seen : (num_vertices, 8) uint8
        Updated.
    byte : int
        Which of the bytes.
    queue : (64, most)
        Vertices in the order in which each source finds them, its front first.
    room : int
        How many a source may have, at most `most`.
    ends : (64, most_levels + 2) int64
        Level i, from 0 on, of a source is ``ends[i + 1] .. ends[i + 2] - 1``; the front before.
    counts : (most_levels, 64) int64
        Out: vertices that each source finds on each level; 0 before.
    reached : (64,) int64
        Out: levels that are complete; all, where a source has ended.
    num_levels : int
        Levels to find, of those for which there is room.

    Returns
    -------
    A piece that is not in memory, or -1.
    """
    missing = -1
    for lane in range(LANES * byte, LANES * (byte + 1)):
        bit, own = np.uint8(1 << (lane & (LANES - 1))), queue[lane]
        begin, end, level, stops = ends[lane, 0], ends[lane, 1], 0, False
        while level < num_levels and begin < end:
            top = end
            for i in range(begin, end):
                v = np.int64(own[i])
                piece = piece_of(pieces, v)
                if pieces.places[piece, 0] == 0:
                    missing, stops = piece, True
                    break
                low, high, indices = row_of(pieces, v, piece)
                if high - low > room - top:
                    stops = True
                    break
                for e in range(low, high):
                    u = np.int64(indices[e])
                    if not seen[u, byte] & bit:
                        seen[u, byte] |= bit
                        own[top] = u
                        top += 1
            if stops:
                _forget(own[end:top], seen, byte, bit)
                break
            counts[level, lane] = top - end
            level += 1
            ends[lane, level + 1] = top
            begin, end = end, top
        reached[lane] = level if stops else num_levels
        ends[lane, level + 2 : num_levels + 2] = ends[lane, level + 1]
    return missing


@nb.njit(nogil=True, cache=True)
def forget_levels(seen: Any, byte: Any, queue: Any, ends: Any, num: Any, num_levels: Any) -> None:
    """Have the sources that share a byte know the first `num` only of the `num_levels` levels that `search` was asked for."""
    for lane in range(LANES * byte, LANES * (byte + 1)):
        _forget(queue[lane, ends[lane, num + 1] : ends[lane, num_levels + 1]], seen, byte, np.uint8(1 << (lane & (LANES - 1))))


@nb.njit(nogil=True, cache=True)
def list_levels(queue: Any, ends: Any, num: Any, found: Any, vertices: Any, words: Any, out: Any) -> None:
    """List what all sources have found on the first `num` levels, each vertex of a level once.

    Parameters
    ----------
    queue, ends
        Of `search`.
    found : (num_vertices,) uint64
        0 before and afterwards.
    vertices, words, out
        Out: as of `oocgraph.kernels.words.push_listed`, without a frontier.
    """
    top = 0
    out[:2] = 0
    for level in range(num):
        begin = top
        for lane in range(queue.shape[0]):
            for i in range(ends[lane, level + 1], ends[lane, level + 2]):
                u = np.int64(queue[lane, i])
                if not found[u]:
                    vertices[top] = u
                    top += 1
                found[u] |= np.uint64(1) << np.uint64(lane)
        for i in range(begin, top):
            words[i] = found[vertices[i]]
            found[vertices[i]] = 0
        out[level + 2] = top


@nb.njit(nogil=True, cache=True)
def keep_front(queue: Any, ends: Any, num: Any) -> None:
    """Have what each source has found on the last of `num` levels be its front."""
    for lane in range(queue.shape[0]):
        begin, size = ends[lane, num], ends[lane, num + 1] - ends[lane, num]
        for i in range(size):
            queue[lane, i] = queue[lane, begin + i]
        ends[lane, 0], ends[lane, 1] = 0, size


@nb.njit(nogil=True, cache=True)
def join(queue: Any, ends: Any, frontier: Any) -> None:
    """Put the fronts of all sources into words."""
    for lane in range(queue.shape[0]):
        for i in range(ends[lane, 0], ends[lane, 1]):
            frontier[np.int64(queue[lane, i])] |= np.uint64(1) << np.uint64(lane)


@nb.njit(nogil=True, cache=True, inline="always")
def _forget(vertices: Any, seen: Any, byte: Any, bit: Any) -> None:
    for i in range(vertices.size):
        seen[np.int64(vertices[i]), byte] &= ~bit
