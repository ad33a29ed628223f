"""Kernels of strongly connected components: marks and colours that spread along the in-lists of vertices that are left.

`own` has bits of each vertex, which the call that has its row sets; `other` has a mark of each vertex, which any call may set, and which
none takes away during a sweep. What a call finds others use at once, and the end is the same whenever they do: marks only spread. Each call
goes through its rows forwards, and, if that has changed anything, backwards, so that chains in either order are followed in memory.

`component` has the component of each vertex that is settled, and of any other the class that it is in: only vertices of one class may be in
one component. Colours are numbers of vertices, multiplied by an odd number: a vertex takes the smallest, which is that of any at random.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.rest import CORE, DONE, gather

AFTER = 1
"""A path leads from the pivot to it."""

BEFORE = 2
"""A path leads from it to the pivot."""

PUSHED = 4
"""Its in-neighbours have its mark."""


@nb.njit(nogil=True, cache=True)
def begin(own: Any, component: Any, out_degree: Any, first: int, in_degree: Any) -> tuple[int, int, int]:
    """Settle vertices from `first` on without in- or out-neighbours.

    Returns
    -------
    The largest product of in- and out-degree, its vertex, and how many were settled.
    """
    best, pivot, settled = 0, -1, 0
    for i in range(in_degree.size):
        v = first + i
        product = np.int64(in_degree[i]) * np.int64(out_degree[v])
        if product == 0:
            component[v] = v
            own[v] = DONE
            settled += 1
            continue
        component[v] = 0
        if product > best:
            best, pivot = product, v
    return best, pivot, settled


@nb.njit(nogil=True, cache=True)
def search(first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, other: Any) -> int:
    """Spread from the pivot: `AFTER` to rows from their in-neighbours, marks from rows to these. Returns how often that was done."""
    changed, num_rows = 0, pointers.size - 1
    for turn in range(2):
        for i in range(num_rows):
            r = i if turn == 0 else num_rows - 1 - i
            v = first + r
            bits = own[v]
            if bits & DONE or (bits & AFTER and (not other[v] or bits & PUSHED)):
                continue
            low, high = np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)
            if not bits & AFTER:
                for e in range(low, high):
                    if own[np.int64(indices[e])] & AFTER:
                        bits |= AFTER
                        changed += 1
                        break
            if other[v] and not bits & PUSHED:
                for e in range(low, high):
                    if not other[np.int64(indices[e])]:
                        other[np.int64(indices[e])] = 1
                bits |= PUSHED
                changed += 1
            own[v] = bits
        if not changed:
            break
    return changed


@nb.njit(nogil=True, cache=True)
def has_to_search(own: Any, other: Any, start: int, stop: int, gathers: bool) -> bool:
    """Whether `search`, or `gather`, may find anything in some rows."""
    for v in range(start, stop):
        bits = own[v]
        if bits & DONE:
            continue
        if not bits & AFTER or (other[v] and not bits & PUSHED) or (gathers and not bits & CORE):
            return True
    return False


@nb.njit(nogil=True, cache=True)
def keep_core(own: Any, other: Any, component: Any, pivot: int, bits: int, start: int, stop: int) -> int:
    """Give vertices before and after the pivot these bits, and its component; returns how many are left beside."""
    left = 0
    for v in range(start, stop):
        if own[v] & DONE:
            continue
        if own[v] & AFTER and other[v]:
            own[v] |= bits
            component[v] = pivot
        else:
            left += 1
    return left


@nb.njit(nogil=True, cache=True)
def end_search(own: Any, other: Any, start: int, stop: int) -> None:
    """Keep the marks as bits: an edge between vertices with different ones is in no component."""
    for v in range(start, stop):
        own[v] = (own[v] & ~PUSHED) | (BEFORE if other[v] else 0)
        other[v] = 0


@nb.njit(nogil=True, cache=True)
def are_joined(own: Any, component: Any, u: int, v: int) -> bool:
    """Whether an edge between two vertices that are left may be in a component."""
    return u != v and not own[u] & DONE and (own[u] ^ own[v]) & (AFTER | BEFORE) == 0 and component[u] == component[v]


@nb.njit(nogil=True, cache=True)
def trim(first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, other: Any, component: Any) -> int:
    """Settle rows without an in-neighbour that they may be joined with, and mark those neighbours; returns the edges that are left."""
    edges, num_rows = 0, pointers.size - 1
    for turn in range(2):
        edges = 0
        for i in range(num_rows):
            r = i if turn == 0 else num_rows - 1 - i
            v = first + r
            if own[v] & DONE:
                continue
            found = 0
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                u = np.int64(indices[e])
                edges += not own[u] & DONE
                if are_joined(own, component, u, v):
                    other[u] = 1
                    found += 1
            if found == 0:
                component[v] = v
                own[v] |= DONE
    return edges


@nb.njit(nogil=True, cache=True)
def end_trim(own: Any, other: Any, component: Any, start: int, stop: int) -> int:
    """Settle vertices without a mark, which no row that is left has for a neighbour; returns how many are left."""
    left = 0
    for v in range(start, stop):
        if not own[v] & DONE:
            if other[v]:
                left += 1
            else:
                component[v] = v
                own[v] |= DONE
        other[v] = 0
    return left


@nb.njit(nogil=True, cache=True)
def begin_colours(colour: Any, factor: Any, start: int, stop: int) -> None:
    """Give each vertex its own number for a colour, multiplied by an odd one (uint64)."""
    for v in range(start, stop):
        colour[v] = np.uint64(v) * factor


@nb.njit(nogil=True, cache=True)
def spread_colours(first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, component: Any, colour: Any) -> int:
    """Give rows the smallest colour of themselves and the in-neighbours that they may be joined with; returns how many changed."""
    changed, num_rows = 0, pointers.size - 1
    for turn in range(2):
        for i in range(num_rows):
            r = i if turn == 0 else num_rows - 1 - i
            v = first + r
            if own[v] & DONE:
                continue
            least = colour[v]
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                u = np.int64(indices[e])
                if colour[u] < least and are_joined(own, component, u, v):
                    least = colour[u]
            if least != colour[v]:
                colour[v] = least
                changed += 1
        if not changed:
            break
    return changed


@nb.njit(nogil=True, cache=True)
def mark_roots(own: Any, other: Any, colour: Any, inverse: Any, start: int, stop: int) -> None:
    """Turn colours into numbers of vertices, by the inverse of their factor, and mark the vertices that they come from."""
    for v in range(start, stop):
        colour[v] = np.uint64(colour[v]) * inverse
        other[v] = np.int64(colour[v]) == v and not own[v] & DONE


@nb.njit(nogil=True, cache=True)
def mark_back(first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, other: Any, colour: Any) -> int:
    """Mark the in-neighbours of marked rows that have their colour; returns how many rows there were to do so."""
    changed, num_rows = 0, pointers.size - 1
    for turn in range(2):
        for i in range(num_rows):
            r = i if turn == 0 else num_rows - 1 - i
            v = first + r
            if not other[v] or own[v] & (DONE | PUSHED):
                continue
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                u = np.int64(indices[e])
                if colour[u] == colour[v] and not own[u] & DONE:
                    other[u] = 1
            own[v] |= PUSHED
            changed += 1
        if not changed:
            break
    return changed


@nb.njit(nogil=True, cache=True)
def has_to_mark(own: Any, other: Any, start: int, stop: int) -> bool:
    """Whether `mark_back` finds a row to work on."""
    v = start
    while v < stop and (not other[v] or own[v] & (DONE | PUSHED)):
        v += 1
    return v < stop


@nb.njit(nogil=True, cache=True)
def end_colours(own: Any, other: Any, component: Any, colour: Any, start: int, stop: int) -> int:
    """Settle marked vertices: components of their colours, which are classes of the others; returns how many are left."""
    left = 0
    for v in range(start, stop):
        if own[v] & DONE:
            continue
        own[v] &= ~PUSHED
        component[v] = colour[v]
        if other[v]:
            own[v] |= DONE
            other[v] = 0
        else:
            left += 1
    return left


@nb.njit(nogil=True, cache=True)
def gather_after_search(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, other: Any, rest: Any
) -> int:  # fmt: skip
    """Load rows that are left into the rest, after a last `search` of these and of the core."""
    changed = search(first, pointers, start, indices, values, own, other)
    gather(first, pointers, start, indices, own, rest)
    return int(changed)


@nb.njit(nogil=True, cache=True)
def end_rest(rest: Any, walk: Any, own: Any, other: Any, component: Any, pivot: int) -> None:
    """Settle the rest: components that paths lead to from the pivot, and back, are its own; without a pivot (-1) there is none."""
    seen, order, num_slots = walk.seen, walk.order, rest.used[0]
    high = num_slots
    while high > 0 and pivot >= 0:  # from in-neighbours to those after them
        low, root, found = high, seen[order[high - 1]], False
        while low > 0 and seen[order[low - 1]] == root:
            low -= 1
            found = found or is_after(rest, own, np.int64(order[low]))
        for i in range(low, high if found else low):
            own[np.int64(rest.vertex[order[i]])] |= AFTER
        high = low
    low = 0
    while low < num_slots:  # and back
        high, root, is_before = low, seen[order[low]], False
        while high < num_slots and seen[order[high]] == root:
            is_before = is_before or (pivot >= 0 and other[np.int64(rest.vertex[order[high]])] != 0)
            high += 1
        for i in range(low, high):
            slot = np.int64(order[i])
            v = np.int64(rest.vertex[slot])
            component[v] = pivot if is_before and own[v] & AFTER else np.int64(rest.vertex[root])
            own[v] |= DONE
            if is_before:
                for e in range(rest.begin[slot], rest.end[slot]):
                    other[np.int64(rest.entries[e])] = 1
        low = high


@nb.njit(nogil=True, cache=True)
def is_after(rest: Any, own: Any, slot: int) -> bool:
    """Whether a vertex of the rest, or an in-neighbour there, is known to be after the pivot."""
    is_known = own[np.int64(rest.vertex[slot])] & AFTER != 0
    for e in range(rest.begin[slot], rest.end[slot]):
        is_known = is_known or own[np.int64(rest.entries[e])] & AFTER != 0
    return bool(is_known)


@nb.njit(nogil=True, cache=True)
def count_roots(component: Any, start: int, stop: int) -> int:
    """Count the vertices that components are named after."""
    count = 0
    for v in range(start, stop):
        count += np.int64(component[v]) == v
    return count


@nb.njit(nogil=True, cache=True)
def largest_group(component: Any, size: Any) -> int:
    """Count the vertices of the largest component; `size` is work space, (num_vertices,)."""
    size[:] = 0
    largest = 0
    for v in range(component.size):
        root = np.int64(component[v])
        size[root] += 1
        largest = max(largest, np.int64(size[root]))
    return largest
