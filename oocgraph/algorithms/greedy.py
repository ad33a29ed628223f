"""Greedy colouring, and maximal independent sets, out of core: vertices decide one after the other, and most of them in the first sweeps.

Welsh, Powell, "An Upper Bound for the Chromatic Number of a Graph and Its Application to Timetabling Problems", The Computer Journal 10,
1967: vertices of most neighbours first. In parallel after Jones and Plassmann, and Blelloch, Fineman and Shun (`oocgraph.kernels.greedy`):
what comes out is that of one vertex after the other, whatever threads and memory. A graph in degree order has its vertices in the order of
their turns, so that a sweep by one thread decides all of it. In other orders vertices are in classes by the bits of their numbers of
neighbours (Hasenplaug, Kaler, Schardl, Leiserson, "Ordering Heuristics for Parallel Graph Coloring", SPAA 2014), and in a class by row.
"""

from __future__ import annotations

import os
from math import isqrt
from typing import Any

import numpy as np

from oocgraph.algorithms.modularity import MOST_SEED
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call, check_undirected
from oocgraph.arguments import known_keywords
from oocgraph.engine.sweeps import DEGREES_BYTES, Needs, Sweeps
from oocgraph.kernels import greedy as kernels
from oocgraph.kernels.communities import salt_of
from oocgraph.resources import Resources
from oocgraph.results.greedy import ColoringResult, IndependentSetResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption

DECIDED = "vertices decided"
"""Phase of progress."""


@known_keywords
def greedy_coloring(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> ColoringResult:
    """Give every vertex a colour that none of its neighbours has: one vertex after the other takes the smallest that is left.

    Vertices of most neighbours come first, and of those of as many the smallest ids: the colours are those of NetworkX' ``largest_first``.
    Where a store is not in degree order, vertices are in classes of 1, 2 to 3, 4 to 7, ... neighbours, in which they come by row.

    Parameters
    ----------
    graph
        A graph store or its path; undirected. Self-loops are left out.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("vertices decided", how many, all); True draws a bar.

    Returns
    -------
    ColoringResult
        Its column is `color`, from 0 on; `num_colors`, `num_sweeps`.

    Raises
    ------
    ArgumentError
        An argument is invalid, or the graph is directed.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 4 bytes for each vertex that has edges (5 where vertices are not in degree order), a few for each colour and thread,
    pieces of 2 MiB of edges (or as long as the longest list), and what the budget has left for edges that stay. Sweeps read pieces with
    vertices that have no colour yet: about ten where vertices are in degree order, tens in other orders, and more where long chains of
    vertices with equally many neighbours go through many pieces.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = greedy_coloring(build_csr(([1, 2, 3, 3, 4], [2, 3, 1, 4, 5]), f"{folder}/g.zarr"))
    ...     result.color.tolist(), result.num_colors
    ([1, 2, 0, 1, 0], 3)
    """
    call = Call("greedy_coloring", graph, runtime, resources, memory_budget, progress)
    store, n = call.store, call.store.num_rows
    check_undirected("greedy_coloring", store)
    by_number = store.attributes.vertex_order == "degree"
    most = 2 + isqrt(2 * store.attributes.num_stored_edges)  # a vertex of colour c has neighbours of all below, and these have, too

    def compute(sweeps: Sweeps) -> tuple[Array, int]:
        rank = np.empty(0 if by_number else n, np.uint8)
        for first, degrees in sweeps.degrees("out") if rank.size else ():
            kernels.classes_of(degrees, rank[first : first + degrees.size])
        return _decide(sweeps, kernels.choose_colors, np.int32, [rank], [by_number], has_scratch=True)

    color, rank, index = np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, store.index_dtype)
    needs = Needs(
        vectors={"colours": 4 * n, "classes of vertices": 0 if by_number else n + DEGREES_BYTES}, result_bytes=4 * n, lists=("out",),
        scratch=[(index.dtype, most)], kernels=[(kernels.choose_colors, color, rank, color, by_number, index)],
        vertex_kernels=[(kernels.has_undecided, color, 0, 0), (kernels.classes_of, np.empty(0, np.int64), rank)],
    )  # fmt: skip
    (color, num_sweeps), fields = call.run(needs, compute)
    num_colors = max(1 + int(color.max(initial=-1)), int(store.attributes.num_isolated > 0))
    details = {"num_colors": num_colors, "num_sweeps": num_sweeps}
    return ColoringResult(stored={"color": color}, isolated={"color": 0}, details=details, **fields)


@known_keywords
def maximal_independent_set(
    graph: CSRStore | str | os.PathLike[str],
    *,
    seed: int = 1,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> IndependentSetResult:
    """Find vertices of which no two are neighbours, and to which no vertex can be added: one after the other, in a random order.

    Parameters
    ----------
    graph
        A graph store or its path; undirected. Self-loops are left out.
    seed
        The same seed gives the same set, whatever the threads and the budget.
    runtime, resources, memory_budget, progress
        As of `greedy_coloring`.

    Returns
    -------
    IndependentSetResult
        Its column `member` tells who is in the set; ``members()`` lists them; `num_members`, `num_sweeps`.

    Raises
    ------
    ArgumentError
        An argument is invalid, or the graph is directed.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 1 byte for each vertex that has edges, pieces of 2 MiB of edges (or as long as the longest list), and what the budget has
    left for edges that stay. There are about log(vertices) sweeps, which read pieces with vertices that have not decided yet.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = maximal_independent_set(build_csr(([1, 1, 1], [2, 3, 4]), f"{folder}/g.zarr"), seed=3)
    ...     result.members().tolist(), result.num_members
    ([2, 3, 4], 3)
    """
    call = Call("maximal_independent_set", graph, runtime, resources, memory_budget, progress)
    store, n = call.store, call.store.num_rows
    check_undirected("maximal_independent_set", store)
    state = np.empty(0, np.int8)
    needs = Needs(
        vectors={"states": n}, result_bytes=n, lists=("out",), kernels=[(kernels.choose_members, state, state, np.uint64(0))],
        vertex_kernels=[(kernels.has_undecided, state, 0, 0), (salt_of, 0, 0)],
    )  # fmt: skip
    (state, num_sweeps), fields = call.run(needs, lambda sweeps: _decide(sweeps, kernels.choose_members, np.int8, [], [_salt(seed)]))
    is_member = np.equal(state, kernels.INSIDE, out=state.view(np.bool_))
    details = {"num_members": int(is_member.sum()) + store.attributes.num_isolated, "num_sweeps": num_sweeps}
    return IndependentSetResult(stored={"member": is_member}, isolated={"member": True}, details=details, **fields)


def _salt(seed: int) -> Any:
    return np.uint64(salt_of(seed & MOST_SEED, 0))


def _decide(
    sweeps: Sweeps, kernel: Any, dtype: Any, whole: list[Array], scalars: list[Any], *, has_scratch: bool = False
) -> tuple[Array, int]:  # fmt: skip
    """Call a kernel until all vertices have decided; returns what, and how many sweeps that took."""
    decided, num_left, num_sweeps = np.full(sweeps.store.num_rows, kernels.UNDECIDED, dtype), sweeps.store.num_rows, 0
    while num_left:
        waiting = sweeps.pull(
            kernel, [decided, *whole], [decided], scalars, lists="out", has_scratch=has_scratch,
            only=None if not num_sweeps else lambda first, stop: kernels.has_undecided(decided, first, stop),
        )  # fmt: skip
        num_left, num_sweeps = sum(waiting), num_sweeps + 1
        sweeps.progress(DECIDED, decided.size - num_left, decided.size)
    return decided, num_sweeps
