"""Text of METIS as edges: each line has the neighbours of a vertex, perhaps with weights. It is read byte by byte, wherever it is cut.

In: bytes. Out: each edge once, from the smaller end. The words of a state, (NUM_WORDS,) int64, say how far the text has been read.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.check import mix

(LINE, ROW, FIELD, NUMBER, DIGITS, IS_COMMENT, NEIGHBOUR, NUM_ENTRIES, BALANCE, NUM_WORDS) = range(10)
"""Line of the file; vertex that it is of, -1 in the header; numbers in it so far; the number that has begun, and its digits; whether the
line is a comment; the neighbour whose weight is next; neighbours so far; hashes of edges
at their smaller ends, less those at the larger ones."""

STRANGE, LARGE, OUTSIDE, LOOP, UNWEIGHTED, BEYOND, SHORT = range(-1, -8, -1)
"""What is wrong: a character; a number; a neighbour that is no vertex, or the vertex itself; one without a weight; a line too many, or one
with too few numbers."""

MOST_DIGITS = 18
NEW_LINE, SPACE, PERCENT, ZERO = ord("\n"), ord(" "), ord("%"), ord("0")


@nb.njit(nogil=True, cache=True)
def _hashed(low: Any, high: Any, weight: Any) -> Any:
    return mix(np.uint64(low) + mix(np.uint64(high) + mix(np.uint64(weight))))


@nb.njit(nogil=True, cache=True)
def read_lists(text: Any, num_vertices: Any, num_skipped: Any, state: Any, source: Any, target: Any, weight: Any) -> Any:
    """Read text until it ends, or as many edges are found as there is room for.

    Parameters
    ----------
    text : (num_bytes,) uint8
        Ends with the end of a line, where it is the last of a file.
    num_skipped
        Numbers of a line before its neighbours.
    source, target : (num_edges,) int64
        Written: numbers of vertices, from 0 on.
    weight : (num_edges,) int64, or (0,) where edges have none

    Returns
    -------
    (num_bytes, num_edges): what was read; of something wrong what it is, in place of the number of edges.
    """
    line, row, field, number, digits, is_comment, neighbour, num_entries, balance = state
    num, i = 0, 0
    while i < text.size and num < source.size:
        c = np.int64(text[i])
        i += 1
        if c != NEW_LINE and (is_comment or (c == PERCENT and field == 0 and digits == 0)):
            is_comment = 1
            continue
        if ZERO <= c <= ZERO + 9:
            number, digits = 10 * number + c - ZERO, digits + 1
            if digits > MOST_DIGITS:
                num = LARGE
                break
            continue
        if c > SPACE or (c < SPACE and not 9 <= c <= 13):
            num = STRANGE
            break
        if digits:
            if row >= 0 and field >= num_skipped:
                if row >= num_vertices:
                    num = BEYOND
                    break
                weighs = neighbour >= 0
                if not weighs:
                    if number == row + 1 or not 1 <= number <= num_vertices:
                        num = LOOP if number == row + 1 else OUTSIDE
                        break
                    neighbour = number - 1
                    num_entries += 1
                if weighs or weight.size == 0:
                    own = number if weighs else 1
                    hashed = np.int64(_hashed(min(row, neighbour), max(row, neighbour), own))
                    balance += hashed if neighbour > row else -hashed
                    if neighbour > row:
                        source[num], target[num] = row, neighbour
                        if weighs:
                            weight[num] = own
                        num += 1
                    neighbour = np.int64(-1)
            field, number, digits = field + 1, 0, 0
        if c == NEW_LINE:
            if neighbour >= 0:
                num = UNWEIGHTED
                break
            if 0 <= row < num_vertices and field < num_skipped and not is_comment:
                num = SHORT
                break
            row += not is_comment and (row >= 0 or field > 0)
            line, field, is_comment = line + 1, 0, 0
    state[:] = line, row, field, number, digits, is_comment, neighbour, num_entries, balance
    return i, num


def metis_calls() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return calls of all kernels, to load them."""
    numbers = np.empty(0, np.int64)
    return [(read_lists, (np.empty(0, np.uint8), 0, 0, numbers, numbers, numbers, numbers))]
