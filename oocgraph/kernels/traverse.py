"""Kernels of a traversal over one part of a partitioned graph: expand rows, pack and unpack messages, apply candidates.

A *local vertex* is a row of the part's CSR (masters, then mirrors) or, behind the rows, a master without a row; `seen` has a bit for
each. A *slot* is a master: those with rows first, then those without, so slot s is local vertex s, or ``s + num_rows - num_masters``.
A *place* is a vertex of the memoised list of some peer: the lists of all peers one after the other, each from a multiple of 64 on
(``first[q] .. first[q + 1] - 1``), so that the bitmap of one peer is whole words of the bitmap over all places.

What blocks in the processor's cache save (Kronecker graph of scale 22, a frontier of 1.1 M rows and 115 M edges; one thread, best of 15):

- Finds are collected in blocks of 1,024 and appended at once: 126 ms, one at a time 143 ms; with two threads 103 and 123 ms. Blocks of
  64 and of 16,384 differ by less than 3 %.
- The frontier ascends, so that ids, row pointers and edges are read in order and lines of them are used as a whole: 128 ms; in the
  order in which it was found 466 ms.
- Row pointers and ids of 64, 512 or 4,096 rows copied to a block of their own before their edges are followed save nothing: 134, 153
  and 151 ms. The source found the same of its scattered offsets, and left them where they are. So do these kernels; edges are
  streamed by the processor's own prefetcher, and a copy of a block of them would be one more pass.

Several threads may expand and apply at a time: a bit of `seen` is won by one of them, which alone writes the parent and appends
the vertex. Which parent a vertex gets depends on who is first; levels do not.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add, atomic_or, trailing_zeros
from oocgraph.kernels.rows import find_class

STAGED = 1024
"""Vertices that a thread collects before it appends them: one atomic addition instead of so many (4 KiB of a first-level cache)."""


@nb.njit(nogil=True, cache=True)
def expand(
    rows: Any, i0: Any, i1: Any, begin: Any, end: Any, by_row: Any, edges: Any,
    num_masters: Any, seen: Any, global_id: Any, parent: Any, order: Any, place_of: Any, place_parent: Any, outbox: Any, found: Any,
) -> None:  # fmt: skip
    """Follow the edges of ``rows[i0:i1]``; of each local vertex not seen so far note the parent and append it to one of two queues.

    Parameters
    ----------
    rows : (num_frontier,) uint32
        Rows of the frontier.
    begin, end : int64
        Where the edges of ``rows[i]`` are in `edges`: at index ``rows[i]`` if `by_row`, else at index i.
    edges : index dtype
        Local vertices.
    seen : (num_words,) uint64
    global_id : (num_rows,) index dtype of the graph
    parent : (num_slots,) like `global_id`
        Set of each master found.
    order : (num_slots,) uint32
        Masters found are appended (slots).
    place_of : (num_mirrors,) uint32
    place_parent : (num_places,) like `global_id`
        Set of each mirror found.
    outbox : (num_mirrors,) uint32
        Mirrors found are appended (places).
    found : (2,) int64
        Lengths of `order` and `outbox`, changed atomically.
    """
    masters, places = np.empty(STAGED, np.uint32), np.empty(STAGED, np.uint32)
    num_m, num_p = 0, 0
    one = np.uint64(1)
    for i in range(i0, i1):
        u = np.int64(rows[i])
        at = u if by_row else i
        mine = global_id[u]
        for e in range(begin[at], end[at]):
            v = np.int64(edges[e])
            bit = one << np.uint64(v & 63)
            if seen[v >> 6] & bit:
                continue
            if atomic_or(seen, v >> 6, bit) & bit:
                continue
            if v < num_masters:
                parent[v] = mine
                masters[num_m] = v
                num_m += 1
                if num_m == STAGED:
                    _append(masters, num_m, order, found, 0)
                    num_m = 0
            else:
                place = place_of[v - num_masters]
                place_parent[place] = mine
                places[num_p] = place
                num_p += 1
                if num_p == STAGED:
                    _append(places, num_p, outbox, found, 1)
                    num_p = 0
    _append(masters, num_m, order, found, 0)
    _append(places, num_p, outbox, found, 1)


@nb.njit(nogil=True, cache=True)
def _append(values: Any, count: Any, queue: Any, found: Any, which: Any) -> None:
    if count:
        at = atomic_add(found, which, count)
        queue[at : at + count] = values[:count]


@nb.njit(nogil=True, cache=True)
def count_places(places: Any, first: Any, counts: Any) -> None:
    """Fill ``counts[q]`` with the number of places that are in peer q's list.

    Parameters
    ----------
    places : (n,) uint32
    first : (num_peers + 1,) int64
    counts : (num_peers,) int64
    """
    counts[:] = 0
    begins = first[:-1]  # of equal ones, those of empty lists, the last is found
    for i in range(places.size):
        counts[find_class(begins, np.int64(places[i]))] += 1


@nb.njit(nogil=True, cache=True)
def pack_places(places: Any, first: Any, dense: Any, at: Any, packed: Any, words: Any) -> None:
    """Sort places by peer: into lists one after the other, or where ``dense[q]`` into the bitmap over all places.

    Parameters
    ----------
    places : (n,) uint32
    first : (num_peers + 1,) int64
    dense : (num_peers,) bool
    at : (num_peers,) int64
        Where each list begins in `packed`; its end afterwards.
    packed : uint32
        Places, in the order they come.
    words : (num_words,) uint64
        Clear where it is going to be used.
    """
    one, begins = np.uint64(1), first[:-1]
    for i in range(places.size):
        place = np.int64(places[i])
        q = find_class(begins, place)
        if dense[q]:
            words[place >> 6] |= one << np.uint64(place & 63)
        else:
            packed[at[q]] = place
            at[q] += 1


@nb.njit(nogil=True, cache=True)
def apply_list(
    positions: Any, parents: Any, slot_of: Any, num_masters: Any, num_rows: Any, seen: Any, parent: Any, order: Any, found: Any
) -> None:
    """Take candidates at their master: drop the visited; set the parent of the others and append them to `order`.

    Parameters
    ----------
    positions : (n,) uint32
        In the sender's list.
    parents : (n,) index dtype of the graph
    slot_of : (length,) uint32
        Master of each position.
    """
    for i in range(positions.size):
        _apply(np.int64(slot_of[positions[i]]), parents[i], num_masters, num_rows, seen, parent, order, found)


@nb.njit(nogil=True, cache=True)
def apply_bitmap(
    words: Any, parents: Any, slot_of: Any, num_masters: Any, num_rows: Any, seen: Any, parent: Any, order: Any, found: Any
) -> None:
    """As `apply_list`, of positions marked in a bitmap; `parents` are in ascending order of those."""
    i = 0
    for w in range(words.size):
        bits = words[w]
        while bits:
            position = w * 64 + np.int64(trailing_zeros(bits))
            _apply(np.int64(slot_of[position]), parents[i], num_masters, num_rows, seen, parent, order, found)
            i += 1
            bits &= bits - np.uint64(1)


@nb.njit(nogil=True, cache=True)
def _apply(s: Any, p: Any, num_masters: Any, num_rows: Any, seen: Any, parent: Any, order: Any, found: Any) -> None:
    v = s if s < num_masters else s + num_rows - num_masters
    bit = np.uint64(1) << np.uint64(v & 63)
    if not seen[v >> 6] & bit and not atomic_or(seen, v >> 6, bit) & bit:
        parent[s] = p
        order[atomic_add(found, 0, 1)] = s


@nb.njit(nogil=True, cache=True)
def receive_list(positions: Any, row_of: Any, seen: Any, rows: Any, count: Any) -> Any:
    """Take a new frontier at its mirrors: append their rows to `rows`, from ``rows[count]`` on, and mark them seen; returns the new count.

    Parameters
    ----------
    positions : (n,) uint32
        In the list of mirrors with out-edges whose masters the sender has.
    row_of : (length,) uint32
        Row of each position.
    """
    for i in range(positions.size):
        count = _receive(row_of[positions[i]], seen, rows, count)
    return count


@nb.njit(nogil=True, cache=True)
def receive_bitmap(words: Any, row_of: Any, seen: Any, rows: Any, count: Any) -> Any:
    """As `receive_list`, of positions marked in a bitmap."""
    for w in range(words.size):
        bits = words[w]
        while bits:
            count = _receive(row_of[w * 64 + np.int64(trailing_zeros(bits))], seen, rows, count)
            bits &= bits - np.uint64(1)
    return count


@nb.njit(nogil=True, cache=True)
def _receive(row: Any, seen: Any, rows: Any, count: Any) -> Any:
    seen[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    rows[count] = row
    return count + 1


@nb.njit(nogil=True, cache=True)
def spread(slots: Any, copy_first: Any, copy_place: Any, out: Any) -> Any:
    """List the places of all mirrors with out-edges of some masters in `out`; returns how many.

    Parameters
    ----------
    slots : (n,) uint32
    copy_first : (num_slots + 1,) int64
        Where the mirrors of each slot begin in `copy_place`.
    copy_place : (num_copies,) uint32
    """
    count = 0
    for i in range(slots.size):
        s = np.int64(slots[i])
        for k in range(copy_first[s], copy_first[s + 1]):
            out[count] = copy_place[k]
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def own_rows(slots: Any, num_masters: Any, indptr: Any, rows: Any, count: Any) -> Any:
    """Append to `rows`, from ``rows[count]`` on, the slots that are rows with edges; returns the new count."""
    for i in range(slots.size):
        s = np.int64(slots[i])
        if s < num_masters and indptr[s + 1] > indptr[s]:
            rows[count] = s
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def count_row_edges(rows: Any, indptr: Any) -> Any:
    """Return the number of edges of some rows."""
    total = 0
    for i in range(rows.size):
        u = np.int64(rows[i])
        total += indptr[u + 1] - indptr[u]
    return total
