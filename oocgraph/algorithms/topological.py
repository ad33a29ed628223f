"""Topological generations, out of core: sweeps where levels are wide, a rest in memory where they are long.

1. A vertex whose in-neighbours have their generations is in the one after the last of these, and later rows of the same sweep use that.
   A row is looked through up to its first in-neighbour without one, and not again before that one has it.
2. Once a sweep finds few, the rest is loaded into memory if there is room for it, and ended by a depth-first search.
3. Where there is none, in-neighbours that are left are counted in one more sweep, and the out-lists of vertices that wait for none are read
   by themselves, each once (Kahn's algorithm), until the rest finds room, or there is none.
4. If a sweep finds none, or no vertex is left that waits for none, or the search finds a component of several vertices, there is a cycle:
   from a vertex that is left, in-neighbours that are left lead into it.

Kahn, "Topological sorting of large networks", Communications of the ACM 5, 1962; generations as NetworkX has them. Differs from the paper
in: as long as levels are wide, in-lists are read, and no counts of edges are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.strong_components import FEW, STEP_SECONDS
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import known_keywords
from oocgraph.engine.rest import count_rest, example, has_room, is_due, load_rest, walk_calls, whole_bytes
from oocgraph.engine.sweeps import DEGREES_BYTES, READ_ROWS, Needs, Sweeps
from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.kernels import generations as kernels
from oocgraph.kernels.rest import is_any_left
from oocgraph.resources import Resources
from oocgraph.results.strong import GenerationsResult
from oocgraph.store.arrays import REMEDY
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption, no_parent

LEAST_SWEEPS = 4
"""Sweeps, half of them in either direction, before rows are read by themselves: of a graph that is nearly in order one finds all."""

NAMED_VERTICES = 8
"""Vertices of a cycle that a message names."""


@known_keywords
def topological_generations(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> GenerationsResult:
    """Find the generation of every vertex of a directed graph without cycles: the edges of the longest path to it.

    Parameters
    ----------
    graph
        A directed graph store without cycles, or its path.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("vertices", how many have their generation, all); True draws a bar.

    Returns
    -------
    GenerationsResult
        Its column is `generation`, int64, 0 for vertices without in-neighbours; `num_generations`.

    Raises
    ------
    ArgumentError
        An argument is invalid, the graph is undirected, or it has cycles; the message names one.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 9 bytes for each vertex that has edges (17 where there are 2**32), pieces of 2 MiB of edges (or as long as the longest
    list), and up to 6 MiB to read rows by themselves. What the budget has left may hold a rest, 44 bytes for each of its vertices and 4 for
    each of its edges (half of it, if that is too little for all of the graph), and edges that stay. A sweep reads half of the edges at
    most. Of narrow generations that do not fit as a rest two pages are read for each vertex; in a long path one vertex after another, in
    0.2 ms each. Where the store is compressed or remote, that takes a sweep for every few generations.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = topological_generations(build_csr(([1, 1, 2], [2, 3, 3]), f"{folder}/g.zarr", directed=True))
    ...     result.generation.tolist()
    [0, 1, 2]
    """
    call = Call("topological_generations", graph, runtime, resources, memory_budget, progress)
    if not call.store.attributes.directed:
        raise ArgumentError(f"{call.store.url} is undirected, and its edges have no order; take a graph that was built with directed=True")
    found, fields = call.run(_needs(call.store), _find)
    if found.length:
        raise ArgumentError(
            f"{call.store.url} has cycles, so that no vertex in one comes first: {_named(call.store, found)}; take its condensation"
        )
    isolated = int(call.store.attributes.num_isolated > 0)
    details = {"num_generations": max(found.num_generations, isolated)}
    return GenerationsResult(stored={"generation": found.generation}, isolated={"generation": 0}, details=details, **fields)


@known_keywords
def is_directed_acyclic_graph(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> bool:
    """Return whether a graph is directed and has no cycles; a self-loop is one.

    Parameters
    ----------
    graph
        A graph store or its path; an undirected one is none, as in NetworkX.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        As of `topological_generations`.

    Returns
    -------
    bool

    Raises
    ------
    ArgumentError
        An argument is invalid.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: as `topological_generations`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     is_directed_acyclic_graph(build_csr(([1, 2, 3], [2, 3, 1]), f"{folder}/g.zarr", directed=True))
    False
    """
    call = Call("is_directed_acyclic_graph", graph, runtime, resources, memory_budget, progress)
    if not call.store.attributes.directed:
        return False
    found, _ = call.run(_needs(call.store), _find)
    return not found.length


class _Found(NamedTuple):
    """Generations; or some vertices of a cycle, each after the one that it has an edge to, and how many it has."""

    generation: Array
    num_generations: int
    cycle: Array
    length: int


def _needs(store: CSRStore) -> Needs:
    vector, none, bits = store.num_rows * store.index_dtype.itemsize, np.empty(0, store.index_dtype), np.empty(0, np.uint8)
    (rest, walk), no_level, numbers = example(store.index_dtype), store.index_dtype.type(0), np.empty(0, np.int64)
    return Needs(
        vectors={"generations and blockers": 2 * vector, "marks": store.num_rows, "degrees": DEGREES_BYTES}, result_bytes=vector,
        kernels=[(kernels.lift, none, none, no_level), (kernels.gather_levels, bits, none, rest), (kernels.count_left, bits, none, none)],
        vertex_kernels=[
            (kernels.begin_levels, none, none, no_level, 0, 0), (kernels.end_levels, bits, none, no_level, 0, 0),
            (kernels.lift_rest, rest, walk, none, no_level), (is_any_left, bits, 0, 0), (kernels.most_of, none),
            (kernels.find_cycle, none, none, no_level, numbers), *walk_calls(store), (kernels.first_ready, bits, none, no_level),
            (kernels.take_ready, none, 0, no_level, numbers), (kernels.release, numbers, numbers, none, bits, none, none, 0),
            (kernels.forget_levels, bits, none, none, no_level),
        ],
        room_bytes=(0, whole_bytes(store)), room_share=0.5, selects=True,
    )  # fmt: skip


def _find(sweeps: Sweeps) -> _Found:
    n, dtype = sweeps.store.num_rows, sweeps.store.index_dtype
    level, blocker, own = np.empty(n, dtype), np.empty(n, dtype), np.zeros(n, np.uint8)
    none, seconds, is_left = dtype.type(no_parent(dtype)), STEP_SECONDS * n, _left_in(own)
    sweeps.vertices(lambda a, z: kernels.begin_levels(level, blocker, none, a, z), seconds)
    left, found = n, 1
    while left and found:
        found = sum(sweeps.pull(kernels.lift, [level, blocker], scalars=[none], only=is_left, alternates=True))
        left = sum(sweeps.vertices(lambda a, z: kernels.end_levels(own, level, none, a, z), seconds))
        sweeps.progress("vertices", n - left, n)
        if left and found and found * FEW < n and is_due(sweeps) and has_room(sweeps, size := count_rest(sweeps, own)):
            found, left = 0, _end_in_memory(sweeps, level, blocker, own, none, size)
        elif left and found and sweeps.num_sweeps >= LEAST_SWEEPS and 2 * found < sweeps.most_rows("out"):
            found, left = 0, _follow(sweeps, level, blocker, own, none, left)
    cycle = np.empty(NAMED_VERTICES, np.int64)
    length = kernels.find_cycle(level, blocker, none, cycle) if left else 0
    return _Found(level, 0 if left else kernels.most_of(level) + 1, cycle[:length], length)


def _follow(sweeps: Sweeps, level: Array, blocker: Array, own: Array, none: Any, left: int) -> int:
    """Read rows of vertices that wait for no other, until there are none or the rest finds room; returns how many vertices are left."""
    sweeps.pull(kernels.count_left, [own, level, blocker], only=_left_in(own))
    head, ready, num_steps = kernels.first_ready(own, blocker, none), np.empty(READ_ROWS, np.int64), 0
    while head != none:
        head, num = kernels.take_ready(blocker, head, none, ready)
        here = np.sort(ready[:num])
        for which, offset, indices in sweeps.rows(here, "out"):
            head, is_sound = kernels.release(here[which], offset, indices, own, level, blocker, head)
            if not is_sound:
                raise CorruptStoreError(f"{sweeps.store.url}: the edges in its in-lists are others than those in its out-lists; {REMEDY}")
        left, num_steps = left - num, num_steps + 1
        sweeps.progress("vertices", sweeps.store.num_rows - left, sweeps.store.num_rows)
        if num_steps & (num_steps - 1) == 0 and has_room(sweeps, size := count_rest(sweeps, own)):
            return _end_in_memory(sweeps, level, blocker, own, none, size)
    if left := kernels.forget_levels(own, level, blocker, none):
        sweeps.pull(kernels.lift, [level, blocker], scalars=[none], only=_left_in(own))  # which names what each waits for
    return int(left)


def _end_in_memory(sweeps: Sweeps, level: Array, blocker: Array, own: Array, none: Any, size: tuple[int, int]) -> int:
    """Load what is left, and give it its levels; returns how many vertices have none, because they are in a cycle or behind one."""
    rest, walk = load_rest(sweeps, size, blocker, kernels.gather_levels, [own, level], _left_in(own))
    return int(kernels.lift_rest(rest, walk, level, none))


def _left_in(own: Array) -> Callable[[int, int], bool]:
    """Return what tells whether any of some vertices is left."""
    return lambda start, stop: bool(is_any_left(own, start, stop))


def _named(store: CSRStore, found: _Found) -> str:
    """Name the vertices of a cycle along its edges."""
    ids = [repr(one) for one in store.ids_of(found.cycle[::-1]).tolist()]
    more = [] if found.length <= NAMED_VERTICES else [f"... ({found.length:,} vertices)"]
    return " -> ".join([*ids, *more, ids[0]])
