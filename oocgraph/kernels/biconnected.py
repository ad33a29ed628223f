"""Biconnected components of edges that come in any order: each vertex hangs by a component, and each component by a vertex.

In: rows of a piece (`oocgraph.engine.sweeps`), of an undirected graph. Out: a forest in which vertices and components take turns: above a
vertex is the component of the edges that lead towards the root, above a component the vertex of it that is nearest to the root. An edge
within a component changes nothing, and most are; threads find that out side by side. One between two trees makes a component of its own,
by which the smaller tree hangs, after that has been turned round; one within a tree makes one component of all that are on the way between
its ends. Threads take turns with these: there are two for each vertex at the most.

A vertex that was in a component once stays in it, whatever becomes of the component: so what threads see of that while another changes the
forest is never too much, and at the worst not enough; they look again in their turn. Which end of an edge is above they may see wrongly.

Westbrook, Tarjan, "Maintaining Bridge-Connected and Biconnected Components On-Line", Algorithmica 7, 1992. Differs in: vertices of a
component are not listed, each names its component itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import AHEAD, compare_and_swap, prefetch, sched_yield, store_release
from oocgraph.types import Array, no_parent

VISITED, THICK, NAMED, SEEN = np.uint8(1), np.uint8(2), np.uint8(4), np.uint8(8)
"""Marks: a vertex is on a way that is gone; a component is more than an edge; it has its name; the tree of a root has its root."""

LOCK, NUM_COMPONENTS = 0, 8
"""Words of `Forest.state`, in cache lines of their own."""

NUM_WORDS = 16

BATCH = 1 << 10
"""Edges that a thread finds before it takes its turn."""

APART, WITHIN, AT_THE_TOP = 0, 1, 2
"""Where an edge is: not in a component that is known; in one; there, and one of its ends is the vertex that the component hangs by."""


class Forest(NamedTuple):
    """A forest of vertices and components.

    Attributes
    ----------
    tree : (num_vertices,) int64
        A vertex of the same tree, or less than 0, of which one of each tree has so many vertices.
    up : (num_vertices,) index dtype
        Component above each vertex, or one that has been joined to it; `no_parent` of a root.
    link : (num_vertices,) index dtype
        Of each component one that it has been joined to; of others themselves.
    above : (num_vertices,) index dtype
        Vertex above each component.
    marks, thick : (num_vertices,) uint8
        Of vertices and of components.
    state : (NUM_WORDS,) int64
    """

    tree: Array
    up: Array
    link: Array
    above: Array
    marks: Array
    thick: Array
    state: Array


def new_forest(num_vertices: int, dtype: np.dtype[Any]) -> Forest:
    """Return a forest without edges."""
    return Forest(
        np.full(num_vertices, -1), np.full(num_vertices, no_parent(dtype), dtype), np.arange(num_vertices, dtype=dtype),
        np.full(num_vertices, no_parent(dtype), dtype), np.zeros(num_vertices, np.uint8), np.zeros(num_vertices, np.uint8),
        np.zeros(NUM_WORDS, np.int64),
    )  # fmt: skip


@nb.njit(nogil=True, cache=True)
def _component(link: Any, element: Any) -> Any:
    """Return what a component has been joined to at last; halves the way there, which other threads may be doing."""
    c = np.int64(element)
    while True:
        d = np.int64(link[c])
        if d == c:
            return c
        e = np.int64(link[d])
        if e == d:
            return d
        link[c] = e
        c = e


@nb.njit(nogil=True, cache=True)
def _root(tree: Any, vertex: Any) -> Any:
    """Return the vertex of a tree that has its size."""
    v = np.int64(vertex)
    while tree[v] >= 0:
        if tree[tree[v]] >= 0:
            tree[v] = tree[tree[v]]
        v = tree[v]
    return v


@nb.njit(nogil=True, cache=True, inline="always")
def _where(up: Any, link: Any, above: Any, none: Any, u: Any, v: Any) -> Any:
    """Return where the edge between two vertices is, and in which component."""
    over_u, over_v = np.int64(up[u]), np.int64(up[v])
    cu = cv = np.int64(-1)
    if over_v != none:
        cv = _component(link, over_v)
        if np.int64(above[cv]) == u:
            return AT_THE_TOP, cv
    if over_u != none:
        cu = _component(link, over_u)
        if np.int64(above[cu]) == v:
            return AT_THE_TOP, cu
    return (WITHIN if cu == cv and cu >= 0 else APART), cu


@nb.njit(nogil=True, cache=True)
def _turn_round(up: Any, link: Any, above: Any, none: Any, vertex: Any) -> None:
    """Make a vertex the root of its tree; what is above it stays there, until it is put right."""
    v, over = np.int64(vertex), np.int64(up[vertex])
    while over != none:
        c = _component(link, over)
        w = np.int64(above[c])
        over = np.int64(up[w])
        above[c] = v
        up[w] = c
        v = w


@nb.njit(nogil=True, cache=True)
def _meet(up: Any, link: Any, above: Any, marks: Any, none: Any, u: Any, v: Any) -> Any:
    """Go up from two vertices of a tree in turns, marking them; returns where the ways meet, and where that from either has ended."""
    a, b = np.int64(u), np.int64(v)
    marks[a] |= VISITED
    marks[b] |= VISITED
    while True:
        if np.int64(up[a]) != none:
            a = np.int64(above[_component(link, up[a])])
            if marks[a] & VISITED:
                return a, a, b
            marks[a] |= VISITED
        if np.int64(up[b]) != none:
            b = np.int64(above[_component(link, up[b])])
            if marks[b] & VISITED:
                return b, a, b
            marks[b] |= VISITED


@nb.njit(nogil=True, cache=True)
def _join_up_to(up: Any, link: Any, above: Any, marks: Any, thick: Any, joined: Any, vertex: Any, top: Any) -> Any:
    """Join the components on the way from a vertex up to another one, and one given, -1 for none; returns what they have become."""
    v = np.int64(vertex)
    while v != top:
        marks[v] &= ~VISITED
        c = _component(link, up[v])
        if joined < 0:
            joined, v = c, np.int64(above[c])
        elif joined == c:
            v = top
        else:
            v = np.int64(above[c])
            low, high = min(joined, c), max(joined, c)
            above[low] = top
            link[high] = low
            thick[low] = THICK
            joined = low
    return joined


@nb.njit(nogil=True, cache=True)
def _add(tree: Any, up: Any, link: Any, above: Any, marks: Any, thick: Any, state: Any, none: Any, u: Any, v: Any) -> None:
    """Add an edge to the forest; the caller has the lock."""
    where, c = _where(up, link, above, none, u, v)
    if where == AT_THE_TOP:
        thick[c] = THICK
    if where != APART:
        return
    x, y = _root(tree, u), _root(tree, v)
    if x != y:
        if tree[x] < tree[y]:
            u, v, x, y = v, u, y, x
        _turn_round(up, link, above, none, u)
        c = state[NUM_COMPONENTS]
        state[NUM_COMPONENTS] += 1
        above[c] = v
        up[u] = c
        tree[y] += tree[x]
        tree[x] = y
        return
    top, end_u, end_v = _meet(up, link, above, marks, none, u, v)
    joined = _join_up_to(up, link, above, marks, thick, np.int64(-1), u, top)
    joined = _join_up_to(up, link, above, marks, thick, joined, v, top)
    above[joined] = top
    for end in (end_u, end_v):
        a = top
        marks[a] &= ~VISITED
        while a != end:
            a = np.int64(above[_component(link, up[a])])
            marks[a] &= ~VISITED


@nb.njit(nogil=True, cache=True)
def _add_all(
    tree: Any, up: Any, link: Any, above: Any, marks: Any, thick: Any, state: Any, none: Any, edges: Any, count: Any
) -> None:  # fmt: skip
    """Add edges, two vertices each, when it is this thread's turn."""
    while compare_and_swap(state, LOCK, 0, 1):
        sched_yield()
    for i in range(count):
        _add(tree, up, link, above, marks, thick, state, none, edges[2 * i], edges[2 * i + 1])
    store_release(state, LOCK, 0)


@nb.njit(nogil=True, cache=True)
def add_rows(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, forest: Any, none: Any, edges: Any
) -> None:  # fmt: skip
    """Add the edges of the rows of a piece to the forest, each at the end that has the smaller number.

    Parameters
    ----------
    first, pointers, start, indices, values
        Of the rows: see `oocgraph.engine.sweeps`.
    forest : Forest
        Changed; other threads change it, too.
    none : int
        `no_parent` of the index dtype.
    edges : (2 * BATCH,) int64
        Scratch.
    """
    tree, up, link, above, marks, thick, state = forest
    count, last = 0, np.int64(indices.size - 1)
    for r in range(pointers.size - 1):
        v = np.int64(first + r)
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            prefetch(up, np.int64(indices[min(e + AHEAD, last)]))
            u = np.int64(indices[e])
            if u <= v:
                continue
            where, c = _where(up, link, above, none, u, v)
            if where != APART and thick[c]:
                continue  # what is no more than an edge is looked at again, as others may be turning it round
            edges[2 * count], edges[2 * count + 1] = v, u
            count += 1
            if count == BATCH:
                _add_all(tree, up, link, above, marks, thick, state, none, edges, count)
                count = 0
    if count:
        _add_all(tree, up, link, above, marks, thick, state, none, edges, count)


@nb.njit(nogil=True, cache=True)
def choose_roots(forest: Any, none: Any, numbers: Any) -> None:
    """Make the first of some vertices the root of each tree that has none so far.

    Parameters
    ----------
    numbers : (num,) integers
        Of all vertices in the end.
    """
    tree, up, link, above, marks, _, _ = forest
    for i in range(numbers.size):
        v = np.int64(numbers[i])
        root = _root(tree, v)
        if not marks[root] & SEEN:
            marks[root] |= SEEN
            _turn_round(up, link, above, none, v)
            up[v] = none


@nb.njit(nogil=True, cache=True)
def end_joining(forest: Any, none: Any, start: Any, stop: Any) -> Any:
    """Have the vertices of a range name the components that those above them have become; other threads may do so for others.

    Returns
    -------
    int
        How many components of the range have not been joined to others.
    """
    _, up, link, _, _, _, state = forest
    count = 0
    for v in range(start, stop):
        if np.int64(up[v]) != none:
            up[v] = _component(link, up[v])
        count += v < state[NUM_COMPONENTS] and np.int64(link[v]) == v
    return count


@nb.njit(nogil=True, cache=True)
def name(up: Any, marks: Any, names: Any, none: Any, numbers: Any) -> Any:
    """Name each component after the first of some vertices below it; returns how many there are.

    Parameters
    ----------
    names : (num_vertices,) index dtype
        Of components; written.
    numbers : (num,) integers
        Of all vertices in the end, as `choose_roots` has them.
    """
    count = 0
    for i in range(numbers.size):
        v = np.int64(numbers[i])
        c = np.int64(up[v])
        if c != none and not marks[c] & NAMED:
            marks[c] |= NAMED
            names[c] = v
            count += 1
    return count


@nb.njit(nogil=True, cache=True)
def take_names(up: Any, names: Any, thick: Any, none: Any, component: Any, is_bridge: Any, start: Any, stop: Any) -> Any:
    """Give the vertices of a range the names of their components, or their own; returns how many of these are bridges.

    Parameters
    ----------
    component : (num_vertices,) index dtype
    is_bridge : (num_vertices,) bool
        Written.
    """
    count = 0
    for v in range(start, stop):
        c = np.int64(up[v])
        component[v], is_bridge[v] = v, False
        if c != none:
            component[v], is_bridge[v] = names[c], thick[c] == 0
            count += is_bridge[v]
    return count


@nb.njit(nogil=True, cache=True)
def take_above(up: Any, above: Any, none: Any, parent: Any, start: Any, stop: Any) -> None:
    """Give the vertices of a range the vertices that their components hang by, or themselves."""
    for v in range(start, stop):
        c = np.int64(up[v])
        parent[v] = v if c == none else above[c]


@nb.njit(nogil=True, cache=True)
def count_components(component: Any, parent: Any, number: Any) -> Any:
    """Count the components that each vertex is in; returns the vertices of the largest one, and how many vertices are in several.

    Parameters
    ----------
    number : (num_vertices,) integers
        Written.
    """
    largest, several = np.int64(0), 0
    number[:] = 0
    for v in range(number.size):
        if parent[v] != v:
            number[component[v]] += 1
    for v in range(number.size):
        largest = max(largest, np.int64(number[v]))
        number[v] = parent[v] != v
    for v in range(number.size):
        if component[v] == v and parent[v] != v:
            number[parent[v]] += 1
    for v in range(number.size):
        several += number[v] > 1
    return largest + (largest > 0), several
