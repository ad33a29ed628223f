"""Messages between two parts of a partitioned traversal: some vertices of a list that both know, with parents or without.

In: places that were noted in any order (see `oocgraph.exchange.addresses`). Out: for each peer that is concerned a `Message`, whose
vertices are a list of positions or a bitmap, whichever is fewer bytes (`oocgraph.partition.message_size` has the formulas). A list keeps
the order in which its vertices were found: no other is needed, and a bitmap is chosen only where its scan is cheaper than the list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocgraph.kernels import traverse
from oocgraph.kernels.partition import take_marked
from oocgraph.partition.message_size import HEADER_BYTES, is_dense
from oocgraph.types import Array

NO_PARENTS = np.empty(0, np.uint32)
"""Parents of a message of the frontier."""


class Message(NamedTuple):
    """Vertices of a memoised list.

    Attributes
    ----------
    num_vertices
        How many.
    vertices
        (num_vertices,) uint32, positions; or (num_words,) uint64, a bitmap over the list.
    parents : (num_vertices,) index dtype of the graph
        Of candidates, in the order of the vertices (ascending in a bitmap); empty in a message of the frontier.
    """

    num_vertices: int
    vertices: Array
    parents: Array

    @property
    def num_bytes(self) -> int:
        """Bytes of the header, the positions and the parents."""
        return HEADER_BYTES + self.vertices.nbytes + self.parents.nbytes

    @property
    def dense(self) -> bool:
        """Whether `vertices` is a bitmap."""
        return self.vertices.dtype == np.uint64

    def to_bytes(self) -> Array:
        """Return the message as one buffer: (num_bytes,) uint8."""
        header = np.array([self.num_vertices, self.dense], np.uint32)
        first, last = (self.vertices, self.parents) if self.dense else (self.parents, self.vertices)  # the wider first: all are aligned
        return np.concatenate([one.view(np.uint8) for one in (header, first, last)])

    @classmethod
    def from_bytes(cls, raw: Array, dtype: np.dtype[np.generic] | None) -> Message:
        """Return the message that a buffer holds; `dtype` is that of parents, None where there are none."""
        count, dense = raw[:HEADER_BYTES].view(np.uint32).tolist()
        body, parent_bytes = raw[HEADER_BYTES:], count * (0 if dtype is None else dtype.itemsize)
        cut = body.size - parent_bytes if dense else parent_bytes
        vertices, parents = (body[:cut].view(np.uint64), body[cut:]) if dense else (body[cut:].view(np.uint32), body[:cut])
        return cls(count, vertices, NO_PARENTS if dtype is None else parents.view(dtype))


def pack_messages(places: Array, first: Array, length: Array, words: Array, values: Array | None) -> dict[int, Message]:
    """Make the messages that some places are for.

    Parameters
    ----------
    places : (n,) uint32
        Distinct, in any order.
    first, length : (num_parts + 1,), (num_parts,) int64
        Where the list of each peer begins among the places, and its length.
    words : (num_places / 64,) uint64
        Clear, before and after.
    values : (num_places,) index dtype, or None
        Parent of each place.

    Returns
    -------
    dict
        By peer; peers with no place have none.
    """
    if not places.size:
        return {}
    counts = np.empty(length.size, np.int64)
    traverse.count_places(places, first, counts)
    peers = counts.nonzero()[0].tolist()
    dense, at, num_listed = np.zeros(length.size, np.bool_), np.zeros(length.size, np.int64), 0
    for q in peers:
        count = int(counts[q])
        if is_dense(count, int(length[q])):
            dense[q] = True
        else:
            at[q] = num_listed
            num_listed += count
    packed = np.empty(num_listed, np.uint32)
    traverse.pack_places(places, first, dense, at, packed, words)
    messages = {}
    for q in peers:
        count, begin = int(counts[q]), int(first[q])
        if dense[q]:
            messages[q] = _take_bitmap(count, begin, int(length[q]), words, values)
        else:
            mine = packed[at[q] - count : at[q]]
            messages[q] = Message(count, mine - np.uint32(begin), NO_PARENTS if values is None else values[mine])
    return messages


def _take_bitmap(count: int, first: int, length: int, words: Array, values: Array | None) -> Message:
    """Take a peer's bitmap out of that over all places, and clear it there."""
    own = words[first >> 6 : (first + length + 63) >> 6]
    vertices = own.copy()
    own[:] = 0
    if values is None:
        return Message(count, vertices, NO_PARENTS)
    parents = np.empty(count, values.dtype)
    take_marked(vertices, values[first : first + length], parents)
    return Message(count, vertices, parents)
