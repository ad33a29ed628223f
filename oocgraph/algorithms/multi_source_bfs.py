"""Breadth-first searches from many sources, out of core: 64 at a time, which share what they read (`oocgraph.algorithms.source_words`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.source_levels import Figures
from oocgraph.algorithms.source_words import SourceWords, words_needs
from oocgraph.algorithms.sweeping import Call
from oocgraph.arguments import check_whole, known_keywords
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import words as kernels
from oocgraph.resources import Resources
from oocgraph.results.distances import MultiSourceResult
from oocgraph.store.given import as_list
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from distributed import Client


@known_keywords
def multi_source_bfs(
    graph: CSRStore | str | os.PathLike[str],
    sources: Any,
    *,
    distances: bool = False,
    reverse: bool = False,
    depth_limit: int | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> MultiSourceResult:
    """Search breadth-first from each of several sources, where `oocgraph.bfs` makes one search from a set of them.

    Parameters
    ----------
    graph
        A graph store or its path.
    sources
        User ids.
    distances
        Keep the level of every vertex in every search. By default the result has a few numbers of each search alone.
    reverse
        Search against the direction of the edges: distances are those to the sources.
    depth_limit
        Maximum depth; by default there is none.
    runtime
        The graph opened before (`oocgraph.open_runtime`); it has its own resources, and keeps edges between calls.
    resources
        Threads, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers share the edges; as in `resources`. By default the current client, from 16 MiB of edges on. A
        lost worker costs the sweep that it was in.
    progress
        Called with ("searches", done, all); True draws a bar.

    Returns
    -------
    MultiSourceResult
        Of each source `num_reached` (itself included), `depth`, `sum_distances` and `sum_inverse_distances`; with `distances` also
        `levels`, (num_ids, num_sources), -1 where a source does not reach a vertex.

    Raises
    ------
    VertexNotFoundError
        A source does not occur in the graph's input.
    ArgumentError
        An argument is invalid, or contradicts another.
    BudgetError
        The budget is too small; the message names the smallest that works.
    ClusterError
        The client is closed, no worker comes in time, workers have another version or do not see the graph, or are lost again and again.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 32 bytes for each vertex that has edges, pieces of 2 MiB of edges (or as long as the longest list), and what the budget
    has left for edges that stay. With `distances` also a level for each of these vertices and each source: of 1 byte if `depth_limit` is
    at most 127, or the graph has at most 128 vertices, of 2 bytes up to 32,767, otherwise of 4. `levels` makes another such array, of all
    ids; `write` does not. 64 sources at a time read an edge that is not in memory at most once a level.

    Searches share an edge where many sources come to it at the same level: in graphs of small diameter. On roads and grids they hardly do,
    and 64 calls of `oocgraph.bfs` on an opened graph are several times quicker.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = multi_source_bfs(build_csr(([1, 2, 3], [2, 3, 4]), f"{folder}/g.zarr"), [1, 3], distances=True)
    ...     result.depth.tolist(), result.levels.tolist()
    ([3, 2], [[0, 2], [1, 1], [2, 0], [3, 1]])
    """
    given = as_list(sources)
    if not given:
        raise ArgumentError("sources is empty; name at least one vertex id")
    if depth_limit is not None:
        check_whole("depth_limit", depth_limit, least=0)
    call = Call("multi_source_bfs", graph, runtime, resources, memory_budget, progress, client)
    n, numbers = call.store.num_rows, VertexIds(call.store).vertices_of(given)
    linked = np.flatnonzero(numbers >= 0)
    dtype = _level_dtype(max(0, n - 1) if depth_limit is None else min(n, int(depth_limit)))
    shape = (linked.size if distances else 0, n)
    level_bytes = shape[0] * n * dtype.itemsize
    figures: dict[str, Array] = {
        "num_reached": np.ones(len(given), np.int64), "depth": np.zeros(len(given), np.int64),
        "sum_distances": np.zeros(len(given), np.int64), "sum_inverse_distances": np.zeros(len(given)),
    }  # fmt: skip

    def compute(sweeps: Sweeps) -> Array:
        words, levels = SourceWords(sweeps), np.full(shape, -1, dtype)
        for here, places in words.batches(linked):
            of_batch = levels[here]
            if distances:
                of_batch[np.arange(places.size), numbers[places]] = 0
            those = Figures(places.size)
            for found in words.search(numbers[places], reverse=reverse, depth_limit=depth_limit, lists=distances):
                those.add(found)
                if distances:
                    words.over_found(found, kernels.write_levels, kernels.write_listed, of_batch)
            for name, more in zip(figures, (those.num, those.depth, those.total, those.inverse), strict=True):
                figures[name][places] += more
        return levels

    words, places, levels = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((0, 0), dtype)
    needs = words_needs(
        call.store, {"levels": level_bytes}, level_bytes,
        [
            (kernels.write_levels, words, 0, levels, 0, 0), (kernels.write_listed, places, words, places, 0, levels),
        ] if distances else [],
    )  # fmt: skip
    levels, fields = call.run(needs, compute)
    unreached = np.broadcast_to(dtype.type(-1), n)
    rows = dict(zip(linked.tolist(), levels, strict=False))
    stored = {f"level_{i}": rows.get(i, unreached) for i in range(len(given))} if distances else {}
    isolated = {f"level_{i}": one for i, one in enumerate(given) if numbers[i] < 0} if distances else {}
    return MultiSourceResult(
        stored=stored, isolated=dict.fromkeys(stored, -1), isolated_sources=isolated, details={"sources": given, **figures}, **fields
    )  # fmt: skip


def _level_dtype(deepest: int) -> np.dtype[Any]:
    """Return the smallest dtype of levels from -1 to `deepest`."""
    return np.dtype(next(f"int{bits}" for bits in (8, 16, 32) if deepest < 1 << (bits - 1)))
