"""Edges are added to a store, and two stores become one, without building either again.

In: a store, and an edge list or another store. Out: the store that one build of both edge lists would write, byte for byte. An edge list
becomes a small store first, by the external build; then both are merged (`oocgraph.ingest.merge_steps`), which reads each once. The new
store is written beside its place and takes it when it is complete, so nothing is lost before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oocgraph.allocator import kept_bytes_of, returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.config import settings
from oocgraph.errors import OutputError, StoreError
from oocgraph.ingest.build import BuildReport, build_with_report, reading_options, report_of
from oocgraph.ingest.build_job import BuildOptions, Phase
from oocgraph.ingest.merge_job import check_alike, check_order, check_room, check_source, in_store, load_merge, merge_and_publish
from oocgraph.ingest.sources import open_requested
from oocgraph.memory import PeakSampler, limit_bytes_of
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import WEIGHT
from oocgraph.store.outputs import output_place
from oocgraph.store.writer import StoreWriter
from oocgraph.types import ProgressOption

if TYPE_CHECKING:
    from distributed import Client


@known_keywords
def append_edges(
    graph: CSRStore | str | os.PathLike[str],
    edges: Any,
    *,
    columns: Sequence[str | None] | None = None,
    weight: str | None = None,
    num_vertices: int | None = None,
    keep_self_loops: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Add an edge list to a graph on disk: the store that a build of all edges would write takes its place.

    Parameters
    ----------
    graph
        A graph store on a local file system, or its path. Its kind, order, compression and treatment of duplicates stay as they are.
    edges
        As of `build_csr`. Ids that the graph lacks are new vertices; those of a text file are read as what the graph's are.
    columns
        As of `build_csr`; by default its usual names, and the edge columns that the graph has. They are read as what the graph's are.
    weight
        Column of the weights, where the graph has weights.
    num_vertices
        Declares that the vertices are ``0 .. num_vertices - 1``, those of the graph included. By default a graph whose vertices were
        declared takes no others.
    keep_self_loops
        Keep new edges from a vertex to itself; where the graph has kept some, they are always kept.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold, such as ``"2G"``; the same as in `resources`.
    client
        As of `build_csr`.
    progress
        Called with each step's name, and how much of it is done; True draws bars.

    Returns
    -------
    CSRStore
        The graph with the new edges. One that was opened before must be opened again.

    Raises
    ------
    InputError
        The edges are of another kind (directed, ids, columns), or an id is outside the declared range.
    DuplicateEdgeError
        The graph was built with ``duplicates="error"``, and has one of the edges.
    BudgetError
        The memory budget is too small: for the graph, before edges are read, or for what they bring (vertices, longer rows), after.
    OutputError
        The graph cannot be replaced, or the disk is full. It is as it was.

    Notes
    -----
    The rows that new edges touch are read, then all rows, and the store is written once beside itself; only new edges are
    sorted. Peak host bytes: `memory_budget`, of which 16 bytes a vertex are needed.
    With duplicates, ``first`` is the edge of the graph; ``sum`` of float weights adds up what is stored, which may round
    otherwise than one build. Results of the graph before, and what has it open, are refused afterwards: use the graph that is returned.
    Its partitions are refused by its fingerprint.
    A graph in locality order is refused: its order depends on all edges.

    Examples
    --------
    >>> import tempfile
    >>> from oocgraph import build_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = build_csr(([0, 1], [1, 2]), f"{folder}/graph.zarr")
    ...     graph = append_edges(graph, ([0, 2], [1, 3]))
    ...     graph.num_vertices, graph.num_edges
    (4, 3)
    """
    asked = resources_of("append_edges", resources, memory_budget=memory_budget, client=client)
    options = reading_options(edges, columns, asked, has_client=bool(client or (resources is not None and resources.client)))
    options = replace(options, weight_column=weight, num_vertices=num_vertices, keep_self_loops=keep_self_loops)
    return append_with_report(graph, edges, options, progress)[0]


@known_keywords
def merge_graphs(
    graph: CSRStore | str | os.PathLike[str],
    other: CSRStore | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    num_vertices: int | None = None,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Merge two graphs: the store that a build of both edge lists would write.

    Parameters
    ----------
    graph, other
        Graph stores or their paths, of the same kind: directed, kind of ids, edge columns, duplicates. Order and compression are those of
        the first. Its edges come before those of `other`, where ``duplicates="first"`` asks.
    path
        Folder to create, on a local file system.
    num_vertices
        As of `append_edges`.
    overwrite
        Replace a store that exists, which may be one of both, once the new one is complete.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold, such as ``"2G"``; the same as in `resources`.
    progress
        Called with each step's name, and how much of it is done; True draws bars.

    Returns
    -------
    CSRStore

    Raises
    ------
    InputError
        The graphs are of different kinds, or an id is outside the declared range.
    DuplicateEdgeError
        The graphs were built with ``duplicates="error"``, and have an edge in common.
    BudgetError
        The memory budget is too small.
    OutputError
        `path` exists already or cannot be written, or the disk is full. Nothing is left behind.

    Notes
    -----
    As of `append_edges`.

    Examples
    --------
    >>> import tempfile
    >>> from oocgraph import build_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     merged = merge_graphs(build_csr((["a"], ["b"])), build_csr((["b"], ["c"])), f"{folder}/merged.zarr")
    ...     merged.num_vertices, merged.num_edges
    (3, 2)
    """
    asked = resources_of("merge_graphs", resources, memory_budget=memory_budget)
    options = BuildOptions(num_vertices=num_vertices, overwrite=overwrite, memory_budget=asked.memory_budget, threads=asked.threads)
    return merge_with_report(graph, other, path, options, progress)[0]


def append_with_report(
    graph: CSRStore | str | os.PathLike[str], source: Any, options: BuildOptions, progress: ProgressOption = None
) -> tuple[CSRStore, BuildReport]:
    """Append as `append_edges` does, and return what it took too."""
    began = Phase.until_now()
    store = open_graph(graph)
    check_order(store)
    path = store.place
    if not store.is_shared or "://" in path:
        raise OutputError(f"{path} is no store on a local file system, which alone can be replaced; write a new one with merge_graphs")
    output_place(path, kind="graph store", overwrite=True)
    options = in_store(store, options)
    if store.attributes.id_kind == "string" and store.num_vertices:
        options = replace(options, id_kind=options.id_kind or "string")
    kinds = store.attributes.columns
    options = replace(options, dtypes={(options.weight_column or WEIGHT) if name == WEIGHT else name: kinds[name] for name in kinds})
    edges = open_requested(source, options)
    check_source(store, edges)
    limit = limit_bytes_of(options.memory_budget)
    store.confirm()

    def check_unchanged() -> None:
        try:
            store.confirm()
        except StoreError as error:
            raise OutputError(
                f"{path} was replaced by another program while edges were added to it; it is left as that wrote it, add them again"
            ) from error

    kept = kept_bytes_of(limit, options.threads or settings().threads)
    with PeakSampler() as sampler, watched(progress) as shown, returned_memory(kept):
        load_merge(store, shown)
        check_room(store, options, limit)
        with StoreWriter(path, codec=options.codec, overwrite=True, durable=options.durable) as writer:
            own = replace(options, num_vertices=None, id_kind=None, dtypes={}, vertex_order="degree", durable=False, codec="none")
            added, built = build_with_report(edges, writer.scratch / "added.zarr", own, shown)
            try:
                metrics = merge_and_publish(store, added, writer, options, limit, shown, check_unchanged)
            except StoreError:
                check_unchanged()
                raise
    phases = {"sort new edges": Phase(built.seconds, built.cpu_seconds, built.read_bytes, built.written_bytes), **metrics.phases}
    report = report_of(began, sampler, limit, vertex_bytes=metrics.vertex_bytes, num_rows=built.num_rows, phases=phases)
    return open_graph(path), report


def merge_with_report(
    graph: CSRStore | str | os.PathLike[str],
    other: CSRStore | str | os.PathLike[str],
    path: str | os.PathLike[str],
    options: BuildOptions,
    progress: ProgressOption = None,
) -> tuple[CSRStore, BuildReport]:
    """Merge as `merge_graphs` does, and return what it took too."""
    began = Phase.until_now()
    output_place(path, kind="graph store", overwrite=options.overwrite)
    first, second = open_graph(graph), open_graph(other)
    check_order(first)
    check_alike(first, second)
    options, limit = in_store(first, options), limit_bytes_of(options.memory_budget)
    kept = kept_bytes_of(limit, options.threads or settings().threads)
    with PeakSampler() as sampler, watched(progress) as shown, returned_memory(kept):
        load_merge(first, shown)
        with StoreWriter(path, codec=options.codec, overwrite=options.overwrite, durable=options.durable) as writer:
            metrics = merge_and_publish(first, second, writer, options, limit, shown)
    num_rows = first.num_edges + second.num_edges
    report = report_of(began, sampler, limit, vertex_bytes=metrics.vertex_bytes, num_rows=num_rows, phases=metrics.phases)
    return open_graph(path), report
