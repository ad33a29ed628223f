"""Biconnected components, articulation points and bridges, out of core: one sweep over the edges, whatever the graph's diameter.

Westbrook, Tarjan, "Maintaining Bridge-Connected and Biconnected Components On-Line", Algorithmica 7, 1992: edges come in any order, here in
that of the store, and nothing but a few numbers of each vertex is held. Differs from the paper in: threads look at edges side by side, and
take turns with those that change something (`oocgraph.kernels.biconnected`). Searches in depth (Hopcroft, Tarjan, "Efficient Algorithms for
Graph Manipulation", 1973), which all libraries take in memory, would read the lists of the vertices in the order of the search.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call, check_undirected
from oocgraph.arguments import known_keywords
from oocgraph.engine.naming import by_ascending_id, naming_bytes
from oocgraph.engine.sweeps import Needs, Sweeps
from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import biconnected as kernels
from oocgraph.resources import Resources
from oocgraph.results.biconnected import BiconnectedResult
from oocgraph.store.arrays import REMEDY
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import ORDER
from oocgraph.types import Array, ProgressOption, no_parent

VERTEX_SECONDS = 2e-8
"""About what a vertex takes where components are named."""

FOREST_BYTES = 11
"""Of a vertex: its tree, marks of it and of its component, and whether that is a bridge; indices apart."""


@known_keywords
def biconnected_components(
    graph: CSRStore | str | os.PathLike[str],
    *,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> BiconnectedResult:
    """Find what is left connected whichever vertex is taken out; the vertices where such components meet; the bridges.

    Parameters
    ----------
    graph
        A graph store or its path; undirected.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("vertices", how many have given their edges, all); True draws a bar.

    Returns
    -------
    BiconnectedResult
        Vertices and components form a forest, rooted at the smallest id of each connected component. Its columns are `component` (the one
        above a vertex, named after the smallest id below it; a root has its own id), `parent` (the vertex above that component, which is
        in it, too; of a root itself), `components` (how many a vertex is in: several make it an articulation point) and `bridge` (whether
        the edge to `parent` is one). ``articulation_points()`` and ``bridges()`` list these.

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
    Host memory: 23 bytes for each vertex that has edges (35 where there are 2**32; 13 of them, or 25, are the result), pieces of 2 MiB of
    edges (or as long as the longest list), and what the budget has left for edges that stay. Every edge is read once.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = biconnected_components(build_csr(([1, 2, 3, 3, 4, 4], [2, 3, 1, 4, 5, 6]), f"{folder}/g.zarr"))
    ...     result.num_components, result.articulation_points().tolist(), result.bridges()["target"].tolist()
    (4, [3, 4], [4, 5, 6])
    """
    call = Call("biconnected_components", graph, runtime, resources, memory_budget, progress)
    store = call.store
    check_undirected("biconnected_components", store)
    n, dtype = store.num_rows, store.index_dtype
    forest, none, index, flags = kernels.new_forest(0, dtype), no_parent(dtype), np.empty(0, dtype), np.empty(0, np.uint8)
    numbers, counts = np.empty(0, store.array(ORDER).dtype.newbyteorder("=")), index.view(_signed(dtype))
    needs = Needs(
        vectors={"forest": n * (3 * dtype.itemsize + FOREST_BYTES), "names of components": naming_bytes(store)},
        result_bytes=n * (3 * dtype.itemsize + 1), lists=("out",), scratch=[(np.int64, 2 * kernels.BATCH)],
        kernels=[(kernels.add_rows, forest, none, np.empty(0, np.int64))],
        vertex_kernels=[
            (kernels.choose_roots, forest, none, numbers), (kernels.end_joining, forest, none, 0, 0),
            (kernels.name, index, flags, index, none, numbers),
            (kernels.take_names, index, index, flags, none, index, flags.view(np.bool_), 0, 0),
            (kernels.take_above, index, index, none, index, 0, 0), (kernels.count_components, index, index, counts),
        ],
    )  # fmt: skip
    (columns, details), fields = call.run(needs, _find)
    return BiconnectedResult(stored=columns, isolated={"components": 0, "bridge": False}, details=details, **fields)


def _find(sweeps: Sweeps) -> tuple[dict[str, Array], dict[str, int]]:
    """Return the columns of the result, and how many of what there are."""
    store, n = sweeps.store, sweeps.store.num_rows
    dtype, none, seconds = store.index_dtype, no_parent(store.index_dtype), VERTEX_SECONDS * store.num_rows
    forest = kernels.new_forest(n, dtype)
    for pieces, rows in sweeps.batches("out"):
        sweeps.pull(kernels.add_rows, scalars=[forest, none], lists="out", only=pieces, has_scratch=True)
        sweeps.progress("vertices", rows.stop, n)
    for numbers in by_ascending_id(store):
        kernels.choose_roots(forest, none, numbers)
    tree, up, above, marks, thick = forest.tree, forest.up, forest.above, forest.marks, forest.thick
    count = sum(sweeps.vertices(lambda a, z: kernels.end_joining(forest, none, a, z), seconds))
    names, component = tree.view(dtype)[:n], tree.view(dtype)[n:] if dtype.itemsize < tree.itemsize else forest.link
    if sum(kernels.name(up, marks, names, none, numbers) for numbers in by_ascending_id(store)) != count:
        raise CorruptStoreError(f"{store.url}: {ORDER} names some vertices twice, and others not at all; {REMEDY}")
    bridge = np.empty(n, np.bool_)
    num_bridges = sum(sweeps.vertices(lambda a, z: kernels.take_names(up, names, thick, none, component, bridge, a, z), seconds))
    parent = names
    sweeps.vertices(lambda a, z: kernels.take_above(up, above, none, parent, a, z), seconds)
    components = up.view(_signed(dtype))
    largest, num_points = kernels.count_components(component, parent, components)
    details = {"num_components": count, "num_articulation_points": num_points, "num_bridges": num_bridges, "largest": largest}
    return {"component": component, "parent": parent, "components": components, "bridge": bridge}, details


def _signed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the signed integers of the size of an index dtype."""
    return np.dtype(f"i{dtype.itemsize}")
