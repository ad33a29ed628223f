"""Orders of vertices by what was found of them: grouped by a number, or along the tree of a search.

In: arrays with a value of each vertex. Out: vertices, in the order of their groups or as a queue would hand them out.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.load import load_kernel


@nb.njit(nogil=True, cache=True)
def order_by_group(group: Any, begin: Any, order: Any) -> None:
    """Write vertices into `order`, those of a group ascending and together; those of negative groups are left out.

    `begin` has where each group begins; afterwards, where it ends.
    """
    for v in range(group.size):
        g = np.int64(group[v])
        if g >= 0:
            order[begin[g]] = v
            begin[g] += 1


@nb.njit(nogil=True, cache=True)
def count_groups(group: Any, count: Any) -> None:
    """Add to `count` how many vertices each group has; negative groups are left out."""
    for v in range(group.size):
        g = np.int64(group[v])
        if g >= 0:
            count[g] += 1


@nb.njit(nogil=True, cache=True)
def join_ends(source: Any, target: Any, component: Any) -> Any:
    """Find the components that edges make; returns how many there are.

    Parameters
    ----------
    component : (n,) int64, changed
        Names each vertex itself; afterwards the smallest of its component.
    """
    num_components = component.size
    for i in range(source.size):
        u, v = source[i], target[i]
        while component[u] != u:
            component[u] = component[component[u]]
            u = component[u]
        while component[v] != v:
            component[v] = component[component[v]]
            v = component[v]
        if u != v:
            component[max(u, v)] = min(u, v)
            num_components -= 1
    for v in range(component.size):  # what a vertex names is smaller, and done already
        component[v] = component[component[v]]
    return num_components


@nb.njit(nogil=True, cache=True)
def _walk(parent: Any, reached: Any, begin: Any, child: Any, order: Any) -> int:
    """Write reached vertices into `order`, as a queue hands them out; `begin` is zeros, and one longer than `parent`."""
    n, num_found = parent.size, 0
    for v in range(n):
        if reached[v]:
            if np.int64(parent[v]) == v:
                order[num_found] = v
                num_found += 1
            else:
                begin[np.int64(parent[v]) + 1] += 1
    for v in range(n):
        begin[v + 1] += begin[v]
    for v in range(n):
        p = np.int64(parent[v])
        if reached[v] and p != v:
            child[begin[p]] = v
            begin[p] += 1
    done = 0
    while done < num_found:
        p = np.int64(order[done])
        done += 1
        first = begin[p - 1] if p else 0
        for i in range(first, begin[p]):
            order[num_found] = child[i]
            num_found += 1
    return num_found


def tree_order(parent: Any, reached: Any = None) -> Any:
    """Return the vertices of a search tree as a queue hands them out: children of a vertex together, ascending.

    Parameters
    ----------
    parent : (n,) integers
        Of each vertex; a root is its own.
    reached : (n,) bool
        Which vertices are in the tree; by default those whose parent is not negative.
    """
    dtype = np.int32 if parent.size < 2**31 else np.int64
    order, child = np.empty(parent.size, dtype), np.empty(parent.size, dtype)
    arguments = parent, parent >= 0 if reached is None else reached, np.zeros(parent.size + 1, dtype), child, order
    load_kernel(_walk, arguments)
    return order[: _walk(*arguments)]
