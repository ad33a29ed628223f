"""What the parts of a partitioned traversal send, from counts: bytes and messages of each iteration. Pure.

In: `PairCounts`, how many vertices each pair of parts exchanges at each level. Out: `Traffic`, by the formula of real messages
(`oocgraph.partition.message_size`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from oocgraph.partition.message_size import HEADER_BYTES, POSITION_BYTES, bitmap_bytes
from oocgraph.types import Array


class PairCounts(NamedTuple):
    """Counts of the messages of one kind.

    Attributes
    ----------
    counts : (num_levels, num_pairs) int64
        Vertices that a pair of parts exchanges when the frontier is that level.
    lengths : (num_pairs,) int64
        Memoised list of each pair.
    """

    counts: Array
    lengths: Array


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Messages of one kind.

    Attributes
    ----------
    num_vertices, num_bytes, num_messages : (num_levels,) int64
        Vertices named, bytes, messages when the frontier is that level, of all parts.
    """

    num_vertices: Array
    num_bytes: Array
    num_messages: Array


def traffic_of(pairs: PairCounts, *, parent_bytes: int) -> Traffic:
    """Return what is sent.

    Parameters
    ----------
    parent_bytes
        Bytes of each parent in a message: the index dtype's in one of candidates, 0 in one of the frontier.

    Examples
    --------
    Two pairs, of which one sends 3 vertices of 640, the other nothing:

    >>> found = traffic_of(PairCounts(np.array([[3, 0]]), np.array([640, 9])), parent_bytes=4)
    >>> found.num_vertices.tolist(), found.num_bytes.tolist(), found.num_messages.tolist()
    ([3], [32], [1])
    """
    vertices, messages = pairs.counts.sum(axis=1), np.count_nonzero(pairs.counts, axis=1)
    bitmaps = bitmap_bytes(pairs.lengths)
    positions = np.array([np.minimum(POSITION_BYTES * row, bitmaps).sum() for row in pairs.counts], np.int64)
    return Traffic(vertices, HEADER_BYTES * messages + positions + parent_bytes * vertices, messages)
