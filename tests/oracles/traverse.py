"""The kernels of a partitioned traversal as plain Python: the oracle that `oocgraph.kernels.traverse` must equal.

Same names and signatures. One thread, one edge after the other; bitmaps are turned into arrays of bool where that says it more plainly.
"""

from __future__ import annotations

import numpy as np

from oocgraph.types import Array


def _marked(words: Array) -> Array:
    """Return the positions marked in a bitmap, ascending."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def _wins(seen: Array, v: int) -> bool:
    """Mark a local vertex; whether it was not marked before."""
    bit = np.uint64(1) << np.uint64(v % 64)
    won = not seen[v // 64] & bit
    seen[v // 64] |= bit
    return won


def _append(queue: Array, found: Array, which: int, value: int) -> None:
    queue[found[which]] = value
    found[which] += 1


def expand(
    rows: Array, i0: int, i1: int, begin: Array, end: Array, by_row: bool, edges: Array, num_masters: int, seen: Array, global_id: Array,
    parent: Array, order: Array, place_of: Array, place_parent: Array, outbox: Array, found: Array,
) -> None:  # fmt: skip
    """See `oocgraph.kernels.traverse.expand`."""
    for i in range(i0, i1):
        u = int(rows[i])
        at = u if by_row else i
        for v in edges[begin[at] : end[at]].tolist():
            if not _wins(seen, v):
                continue
            if v < num_masters:
                parent[v] = global_id[u]
                _append(order, found, 0, v)
            else:
                place = int(place_of[v - num_masters])
                place_parent[place] = global_id[u]
                _append(outbox, found, 1, place)


def _peers(places: Array, first: Array) -> Array:
    return np.searchsorted(first[:-1], places, side="right") - 1


def count_places(places: Array, first: Array, counts: Array) -> None:
    """See `oocgraph.kernels.traverse.count_places`."""
    counts[:] = np.bincount(_peers(places, first), minlength=counts.size)


def pack_places(places: Array, first: Array, dense: Array, at: Array, packed: Array, words: Array) -> None:
    """See `oocgraph.kernels.traverse.pack_places`."""
    peers = _peers(places, first)
    for q in range(at.size):
        mine = places[peers == q]
        if dense[q]:
            for place in mine.tolist():
                _wins(words, place)
        else:
            packed[at[q] : at[q] + mine.size] = mine
            at[q] += mine.size


def apply_list(
    positions: Array, parents: Array, slot_of: Array, num_masters: int, num_rows: int, seen: Array, parent: Array, order: Array,
    found: Array,
) -> None:  # fmt: skip
    """See `oocgraph.kernels.traverse.apply_list`."""
    for s, p in zip(slot_of[positions].tolist(), parents.tolist(), strict=True):
        if _wins(seen, s if s < num_masters else s + num_rows - num_masters):
            parent[s] = p
            _append(order, found, 0, s)


def apply_bitmap(
    words: Array, parents: Array, slot_of: Array, num_masters: int, num_rows: int, seen: Array, parent: Array, order: Array, found: Array
) -> None:
    """See `oocgraph.kernels.traverse.apply_bitmap`."""
    apply_list(_marked(words), parents, slot_of, num_masters, num_rows, seen, parent, order, found)


def receive_list(positions: Array, row_of: Array, seen: Array, rows: Array, count: int) -> int:
    """See `oocgraph.kernels.traverse.receive_list`."""
    for row in row_of[positions].tolist():
        _wins(seen, row)
        rows[count] = row
        count += 1
    return count


def receive_bitmap(words: Array, row_of: Array, seen: Array, rows: Array, count: int) -> int:
    """See `oocgraph.kernels.traverse.receive_bitmap`."""
    return receive_list(_marked(words), row_of, seen, rows, count)


def spread(slots: Array, copy_first: Array, copy_place: Array, out: Array) -> int:
    """See `oocgraph.kernels.traverse.spread`."""
    copies = [copy_place[copy_first[s] : copy_first[s + 1]] for s in slots.tolist()]
    together = np.concatenate([np.empty(0, np.uint32), *copies])
    out[: together.size] = together
    return together.size


def own_rows(slots: Array, num_masters: int, indptr: Array, rows: Array, count: int) -> int:
    """See `oocgraph.kernels.traverse.own_rows`."""
    mine = [s for s in slots.tolist() if s < num_masters and indptr[s + 1] > indptr[s]]
    rows[count : count + len(mine)] = mine
    return count + len(mine)


def count_row_edges(rows: Array, indptr: Array) -> int:
    """See `oocgraph.kernels.traverse.count_row_edges`."""
    return int((indptr[rows.astype(np.int64) + 1] - indptr[rows]).sum())
