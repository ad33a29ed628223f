"""Bytes in the messages of a partitioned traversal, for senders and forecasts alike.

In: how many vertices of a memoised list a message names, and the list's length. Out: bytes, and which form is shorter. Two parts p and q
know, from the set-up on, the vertices that p mirrors and q owns, ascending (`oocgraph.exchange.addresses`), so a vertex is named by its
position in that list. A message is a header (number of vertices, form), the positions, and of a candidate its parent's number in the graph:

* candidates, p to q: at most once for each mirror in a whole search;
* new frontier, q to p: once for each mirror that has out-edges at p.

The positions are a list, or a bitmap over the memoised list where that is fewer bytes. No vertices, no message. Kinds of
messages are named by what their parts form: `GATHER` of candidates at the parts that own the vertices and `BROADCAST` of the new
frontier; where masters own all their out-edges (one dimension) there is no broadcast, and candidates go `ALL_TO_ALL`.
What a transport adds (TCP, Dask's framing) is not counted.
"""

from __future__ import annotations

from typing import TypeVar

from oocgraph.types import Array

HEADER_BYTES = 8
"""Number of vertices, and whether they are a bitmap: two uint32."""

POSITION_BYTES = 4
"""A position in a memoised list (uint32)."""

WORD_VERTICES, WORD_BYTES = 64, 8
"""Bitmaps are whole words."""

GATHER, BROADCAST, ALL_TO_ALL = "gather", "broadcast", "all-to-all"
"""Kinds of messages."""

_Length = TypeVar("_Length", int, Array)


def bitmap_bytes(length: _Length) -> _Length:
    """Bytes of a bitmap over a list, or over each of several.

    Examples
    --------
    >>> bitmap_bytes(64), bitmap_bytes(65)
    (8, 16)
    """
    return WORD_BYTES * -(-length // WORD_VERTICES)


def is_dense(count: int, length: int) -> bool:
    """Whether `count` vertices of a list of `length` are fewer bytes as a bitmap.

    Examples
    --------
    >>> is_dense(2, 64), is_dense(3, 64)
    (False, True)
    """
    return bitmap_bytes(length) < POSITION_BYTES * count
