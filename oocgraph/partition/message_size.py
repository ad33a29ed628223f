"""Bytes of the messages of a partitioned traversal: the one place that says, for those who send, who count and who predict.

In: how many vertices of a memoised list a message names, and the list's length. Out: bytes. Two members p and q know, from the set-up on,
the vertices that p mirrors and q owns, ascending (`oocgraph.exchange.addresses`), so a vertex is named by its position in that list. A
message is a header (number of vertices, form), the positions, and of a candidate its parent's number in the graph:

* candidates, p to q: at most once for each mirror in a whole search; ``message_bytes(count, length, parent_bytes=4)``;
* new frontier, q to p: once for each mirror that has out-edges at p; ``message_bytes(count, length_with_edges)``.

The positions are a list, or a bitmap over the memoised list where that is fewer bytes. No vertices, no message. Kinds of
messages are named by what their members form: `GATHER` of candidates at the members that own the vertices and `BROADCAST` of the new
frontier; where masters own all their out-edges (one dimension) there is no broadcast, and candidates go `ALL_TO_ALL`.
What a transport adds (TCP, Dask's framing) is not counted.
"""

from __future__ import annotations

HEADER_BYTES = 8
"""Number of vertices, and whether they are a bitmap: two uint32."""

POSITION_BYTES = 4
"""A position in a memoised list (uint32)."""

WORD_VERTICES, WORD_BYTES = 64, 8
"""Bitmaps are whole words."""

GATHER, BROADCAST, ALL_TO_ALL = "gather", "broadcast", "all-to-all"
"""Kinds of messages."""


def bitmap_bytes(length: float) -> float:
    """Bytes of a bitmap over a list.

    Examples
    --------
    >>> bitmap_bytes(64), bitmap_bytes(65)
    (8, 16)
    """
    return WORD_BYTES * -(-length // WORD_VERTICES)


def is_dense(count: float, length: float) -> bool:
    """Whether `count` vertices of a list of `length` are fewer bytes as a bitmap.

    Examples
    --------
    >>> is_dense(2, 64), is_dense(3, 64)
    (False, True)
    """
    return bitmap_bytes(length) < POSITION_BYTES * count


def message_bytes(count: float, length: float, *, parent_bytes: int = 0) -> float:
    """Bytes of a message: 0 where there is nothing to say.

    Parameters
    ----------
    count
        Vertices named; a model may give an expected number that is no whole one.
    length
        Of the memoised list.
    parent_bytes
        Of each parent: the index dtype's in a message of candidates, 0 in one of the frontier.

    Examples
    --------
    >>> message_bytes(0, 640), message_bytes(3, 640), message_bytes(600, 640), message_bytes(3, 640, parent_bytes=4)
    (0, 20, 88, 32)
    """
    if not count:
        return 0
    return HEADER_BYTES + min(POSITION_BYTES * count, bitmap_bytes(length)) + parent_bytes * count
