"""Condensation of a directed graph: a store whose vertices are strongly connected components, and which has no cycles.

The components are found first (`oocgraph.algorithms.strong_components`); then the edges between them are streamed into a build, which keeps
one of each.

Harary, Norman, Cartwright, "Structural Models", 1965; conventions of NetworkX, except that a component is not numbered but named after its
vertex with the smallest id.
"""

from __future__ import annotations

import os

from oocgraph.algorithms.strong_components import strongly_connected_components
from oocgraph.arguments import known_keywords
from oocgraph.config import settings
from oocgraph.errors import ArgumentError, ArgumentTypeError
from oocgraph.ingest.build import build_csr, load_build
from oocgraph.ingest.build_job import LEAST_THREADS, plan_sizes, workers_for
from oocgraph.ingest.quotient import open_quotient
from oocgraph.memory import SLACK_BYTES, Budget, bytes_before, with_threads_that_fit
from oocgraph.resources import Resources, resources_of
from oocgraph.results.strong import StrongComponentsResult
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.outputs import output_place
from oocgraph.types import ProgressOption


@known_keywords
def condensation(
    graph: CSRStore | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    scc: StrongComponentsResult | None = None,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Build the graph of the strongly connected components: an edge where edges lead from one of them to another.

    Parameters
    ----------
    graph
        A directed graph store or its path.
    path
        Folder to create, on a local file system. By default none: the condensation is held in memory, as `build_csr` has it.
    scc
        The components, if they are known: the result of `strongly_connected_components`.
    overwrite
        Replace a store that exists, once the new one is complete.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        As of `strongly_connected_components` and `build_csr`; True draws bars.

    Returns
    -------
    CSRStore
        Its vertices are the components by their names, their smallest ids; those without edges to others are isolated. It has no weights.

    Raises
    ------
    ArgumentError
        An argument is invalid, the graph is undirected, or `scc` is of another graph.
    BudgetError
        The budget is too small; the message names the smallest that works.
    OutputError
        `path` exists already or cannot be written, or the disk is full. Nothing is left behind.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: as `strongly_connected_components`, then 4 bytes for each vertex that has edges (8 where there are 2**32) and what the
    build takes of the budget. Temporary files: as `build_csr`, of the edges between components.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     graph = build_csr(([1, 2, 1, 2, 7], [2, 1, 7, 7, 9]), f"{folder}/g.zarr", directed=True)
    ...     small = condensation(graph, f"{folder}/small.zarr")
    ...     small.num_vertices, small.num_edges, 7 in small, 2 in small
    (3, 2, True, False)
    """
    asked = resources_of("condensation", resources, memory_budget=memory_budget, graph=graph)
    store = open_graph(graph)
    if path is not None:
        output_place(path, kind="graph store", overwrite=overwrite)
        if os.path.realpath(path) == os.path.realpath(store.place):
            raise ArgumentError(f"path is {os.fspath(path)}, the graph itself; name another folder")
    if scc is not None and not isinstance(scc, StrongComponentsResult):
        raise ArgumentTypeError(f"scc is {scc!r}; give a result of strongly_connected_components, or leave it out")
    if path is not None:
        _check_build(store, asked)
    if scc is None:
        scc = strongly_connected_components(store, resources=asked, progress=progress)
    scc.check_graph(store)
    edges = open_quotient(store, scc.stored["component"], f"condensation of {store.url}")
    return build_csr(edges, path, directed=True, overwrite=overwrite, resources=asked, progress=progress)


def _check_build(store: CSRStore, asked: Resources) -> None:
    """Refuse a budget that the build would refuse once the components are known.

    Raises
    ------
    BudgetError
        The budget is too small.
    """
    codec = settings().codec
    load_build(codec)
    budget = Budget(asked.limit_bytes, bytes_before(asked.limit_bytes) + store.num_rows * store.index_dtype.itemsize + SLACK_BYTES)
    with_threads_that_fit(
        lambda threads: plan_sizes(budget, workers_for(threads, budget.available_bytes), 0, compressed=codec != "none"),
        asked.num_threads, LEAST_THREADS,
    )  # fmt: skip
