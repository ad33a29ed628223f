"""Kernels of the levels of a graph without cycles: each vertex is one level above the highest of its in-neighbours.

`level` has the largest value of its dtype where there is none yet; `blocker` an in-neighbour that had none when the row was last looked at.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels.rest import DONE, gather


@nb.njit(nogil=True, cache=True)
def begin_levels(level: Any, blocker: Any, none: Any, start: int, stop: int) -> None:
    """Give no vertex a level."""
    level[start:stop] = none
    blocker[start:stop] = none


@nb.njit(nogil=True, cache=True)
def end_levels(own: Any, level: Any, none: Any, start: int, stop: int) -> int:
    """Note which vertices have their levels; returns how many have none."""
    left = 0
    for v in range(start, stop):
        own[v] = 0 if level[v] == none else DONE
        left += level[v] == none
    return left


@nb.njit(nogil=True, cache=True)
def lift(first: Any, pointers: Any, start: Any, indices: Any, values: Any, level: Any, blocker: Any, none: Any) -> int:
    """Give rows a level above all of their in-neighbours, if these have theirs, or else one that has none; returns how many got one."""
    changed, num_rows = 0, pointers.size - 1
    for turn in range(2):
        for i in range(num_rows):
            r = i if turn == 0 else num_rows - 1 - i
            v = first + r
            if level[v] != none or (blocker[v] != none and level[np.int64(blocker[v])] == none):
                continue
            most, blocked = np.int64(-1), none
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                found = level[np.int64(indices[e])]
                if found == none:
                    blocked = indices[e]
                    break
                most = max(most, np.int64(found))
            blocker[v] = blocked
            if blocked == none:
                level[v] = most + 1
                changed += 1
        if not changed:
            break
    return changed


@nb.njit(nogil=True, cache=True)
def gather_levels(first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, level: Any, rest: Any) -> int:
    """Load rows that are left into the rest, each with the level that its other in-neighbours demand."""
    for r in range(pointers.size - 1):
        if not own[first + r] & DONE:
            most = np.int64(-1)
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                u = np.int64(indices[e])
                if own[u] & DONE:
                    most = max(most, np.int64(level[u]))
            level[first + r] = most + 1
    gather(first, pointers, start, indices, own, rest)
    return 0


@nb.njit(nogil=True, cache=True)
def lift_rest(rest: Any, walk: Any, level: Any, none: Any) -> int:
    """Give the rest its levels, except for vertices in a cycle or after one; returns how many these are.

    `rest.number` has of each of them the first in-neighbour without a level.
    """
    seen, order, num_slots, left = walk.seen, walk.order, rest.used[0], 0
    for i in range(num_slots - 1, -1, -1):
        slot = np.int64(order[i])
        v = np.int64(rest.vertex[slot])
        is_free = seen[slot] == slot and (i == 0 or seen[order[i - 1]] != slot) and (i == num_slots - 1 or seen[order[i + 1]] != slot)
        most = np.int64(level[v])
        for e in range(rest.begin[slot], rest.end[slot]):
            u = np.int64(rest.entries[e])
            is_free = is_free and u != v and level[u] != none
            most = max(most, np.int64(level[u]) + 1)
        level[v] = most if is_free else none
        left += not is_free
    for slot in range(num_slots if left else 0):
        v = np.int64(rest.vertex[slot])
        if level[v] == none:
            for e in range(rest.end[slot] - 1, rest.begin[slot] - 1, -1):
                if level[np.int64(rest.entries[e])] == none:
                    rest.number[v] = rest.entries[e]
    return left


@nb.njit(nogil=True, cache=True)
def count_left(first: Any, pointers: Any, start: Any, indices: Any, values: Any, own: Any, level: Any, count: Any) -> int:
    """Give rows without a level the one that their other in-neighbours demand, and count those without one."""
    for r in range(pointers.size - 1):
        v = first + r
        if not own[v] & DONE:
            most, left = np.int64(-1), 0
            for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
                u = np.int64(indices[e])
                if own[u] & DONE:
                    most = max(most, np.int64(level[u]))
                else:
                    left += 1
            level[v], count[v] = most + 1, left
    return 0


@nb.njit(nogil=True, cache=True)
def first_ready(own: Any, count: Any, none: Any) -> Any:
    """Link the vertices that wait for no other, and are to be read, through `count`; returns the first, or `none`."""
    head = np.int64(none)
    for v in range(own.size):
        if not own[v] & DONE and count[v] == 0:
            own[v], count[v], head = DONE, head, v
    return head


@nb.njit(nogil=True, cache=True)
def take_ready(count: Any, head: Any, none: Any, ready: Any) -> tuple[Any, int]:
    """Take as many of the linked vertices as `ready` holds; returns the first of the others, or `none`, and how many were taken."""
    num = 0
    while num < ready.size and head != none:
        ready[num] = head
        head = np.int64(count[head])
        num += 1
    return head, num


@nb.njit(nogil=True, cache=True)
def release(vertices: Any, offset: Any, indices: Any, own: Any, level: Any, count: Any, head: Any) -> tuple[Any, bool]:
    """Lift the out-neighbours of vertices that have their levels, and link those that wait for no other before `head`.

    Returns the first that is linked, and whether each neighbour was waiting.
    """
    for i in range(vertices.size):
        above = level[vertices[i]] + 1
        for e in range(offset[i], offset[i + 1]):
            v = np.int64(indices[e])
            if own[v] & DONE:
                return head, False
            level[v] = max(level[v], above)
            count[v] -= 1
            if count[v] == 0:
                own[v], count[v], head = DONE, head, v
    return head, True


@nb.njit(nogil=True, cache=True)
def forget_levels(own: Any, level: Any, blocker: Any, none: Any) -> int:
    """Give vertices in cycles and behind them no level again; returns how many these are."""
    left = 0
    for v in range(own.size):
        if not own[v] & DONE:
            level[v] = blocker[v] = none
            left += 1
    return left


@nb.njit(nogil=True, cache=True)
def find_cycle(level: Any, blocker: Any, none: Any, cycle: Any) -> int:
    """Follow blockers from the first vertex without a level into a cycle, against its edges; returns its length.

    `cycle` receives as many of its vertices as it holds: first the one with the smallest number, then always one with an edge to the last.
    """
    slow = 0
    while level[slow] != none:
        slow += 1
    fast, slow = np.int64(blocker[np.int64(blocker[slow])]), np.int64(blocker[slow])
    while fast != slow:
        fast, slow = np.int64(blocker[np.int64(blocker[fast])]), np.int64(blocker[slow])
    least, length, v = slow, 1, np.int64(blocker[slow])
    while v != slow:
        least, length, v = min(least, v), length + 1, np.int64(blocker[v])
    for i in range(min(length, cycle.size)):
        cycle[i] = least
        least = np.int64(blocker[least])
    return length


@nb.njit(nogil=True, cache=True)
def most_of(level: Any) -> int:
    """Return the largest level, or -1."""
    most = np.int64(-1)
    for one in level:
        most = max(most, np.int64(one))
    return int(most)
