"""The external build: an edge list of any size becomes a store, within a memory budget.

In: an edge source. Out: a CSR store, bit-identical for any budget, number of threads and order of the edges. The steps are one
page (`build_steps`): read the edges and bin them by provisional row; sort each bin, drop duplicates, count degrees; number the
vertices by degree; rename the edges and bin them by new row; sort each bin and write it. An undirected edge is kept once until it is
renamed. Only bins of keys are ever sorted, so everything is sequential on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oocgraph.allocator import returned_memory
from oocgraph.arrow import load_strings
from oocgraph.config import settings
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Workers
from oocgraph.ingest.build_job import BuildOptions, Job, plan_sizes, workers_for, written_bytes
from oocgraph.ingest.build_steps import build_steps
from oocgraph.ingest.edges import EdgeSource
from oocgraph.ingest.payload import choose_payload
from oocgraph.ingest.sources import open_requested
from oocgraph.kernels.build import compile_kernels
from oocgraph.memory import Budget, PeakSampler, effective_budget_bytes
from oocgraph.progress import watched
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_codecs
from oocgraph.store.outputs import output_place
from oocgraph.store.writer import StoreWriter
from oocgraph.types import Codec, Duplicates, ProgressOption, VertexOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build took.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall time, and time of all cores.
    peak_host_bytes, memory_budget
        Peak of RssAnon + RssShmem, and what was allowed.
    vertex_bytes
        Bytes of the arrays that grow with the number of vertices and were held in memory: 0 when they stayed on disk.
    num_rows
        Edges read.
    written_bytes
        Bytes written to files: temporary ones, and the store.
    phases
        Seconds of each step, in order.
    """

    seconds: float
    cpu_seconds: float
    peak_host_bytes: int
    memory_budget: int
    vertex_bytes: int
    num_rows: int
    written_bytes: int
    phases: dict[str, float]


def build_csr(
    source: Any,
    store: str | os.PathLike[str],
    *,
    directed: bool | None = None,
    weight_column: str | None = None,
    edge_columns: Sequence[str] = (),
    source_column: str | None = None,
    target_column: str | None = None,
    num_vertices: int | None = None,
    duplicates: Duplicates | None = None,
    keep_self_loops: bool = False,
    vertex_order: VertexOrder = "degree",
    memory_budget: str | int | None = None,
    codec: Codec = "none",
    overwrite: bool = False,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Build a graph store from an edge list, of any size, within a memory budget.

    Parameters
    ----------
    source
        A path, an object in memory (see `open_source`), or an `EdgeSource`.
    store
        Folder to create, on a local file system.
    directed
        Default: what the source says, else undirected.
    weight_column, edge_columns, source_column, target_column, num_vertices
        Columns to use, and declared vertices ``0 .. num_vertices - 1``, as in `open_source`.
    duplicates
        What becomes of an edge that occurs more than once, judged on its ends and its edge columns: ``drop`` (the default without
        weights), ``keep``, ``error``, or which weight it gets: ``min`` (the default with weights), ``max``, ``sum``, ``first``.
        With weights ``drop`` means ``min``, without them these four mean ``drop``; the store's ``attributes.duplicates`` says which.
    keep_self_loops
        Keep edges from a vertex to itself; otherwise they are dropped, and their vertices are kept.
    vertex_order
        ``degree``: number vertices by descending degree; ``original``: by ascending id.
    memory_budget
        What the process may hold, such as ``"2G"``; default: what the machine leaves.
    codec
        Compression of the arrays.
    overwrite
        Replace a store that exists, once the new one is complete.
    threads
        Threads that work; default: the cores that this process may use.
    progress
        Called with each step's name, and how much of it is done; True draws bars.

    Returns
    -------
    CSRStore

    Raises
    ------
    InputError
        The source is not an edge list, or an id is outside the declared range.
    DuplicateEdgeError
        An edge occurs twice and ``duplicates="error"``.
    BudgetError
        The memory budget is too small.
    OutputError
        `store` exists already or cannot be written, or the disk is full. Nothing is left behind.

    Notes
    -----
    Peak host bytes: `memory_budget`. Temporary files, on the disk of `store`: about 16 bytes an edge (undirected; columns twice more).

    References
    ----------
    Yasui, Fujisawa, Sato, "Fast and energy-efficient breadth-first search on a single NUMA system" (2014), section 3: the vertex order.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = build_csr((np.array([0, 1, 1]), np.array([1, 2, 0])), f"{folder}/graph.zarr")
    ...     graph.num_vertices, graph.num_edges
    (3, 2)
    """
    options = BuildOptions(
        directed=directed,
        weight_column=weight_column,
        edge_columns=edge_columns,
        source_column=source_column,
        target_column=target_column,
        num_vertices=num_vertices,
        duplicates=duplicates,
        keep_self_loops=keep_self_loops,
        vertex_order=vertex_order,
        memory_budget=memory_budget,
        codec=codec,
        overwrite=overwrite,
        threads=threads,
    )
    graph, _ = build_with_report(source, store, options, progress)
    return graph


def build_with_report(
    source: Any, store: str | os.PathLike[str], options: BuildOptions, progress: ProgressOption = None
) -> tuple[CSRStore, BuildReport]:
    """Build as `build_csr` does, and return what it took too."""
    began, cpu_began, written = time.perf_counter(), time.process_time(), written_bytes()
    output_place(store, kind="graph store", overwrite=options.overwrite)
    edges: EdgeSource = source if hasattr(source, "streams") else open_requested(source, options)
    payload = choose_payload(edges, options.duplicates)
    configured = settings()
    limit = effective_budget_bytes(configured.memory_budget if options.memory_budget is None else options.memory_budget)
    with PeakSampler() as sampler, watched(progress) as shown, returned_memory():
        compile_kernels()
        load_strings()
        load_codecs(options.codec)
        budget = Budget(limit)
        num_workers = workers_for(options.threads or configured.threads, budget.available_bytes)
        sizes = plan_sizes(budget, num_workers, sum(dtype.itemsize for dtype in payload.binned), compressed=options.codec != "none")
        with (
            StoreWriter(store, codec=options.codec, overwrite=options.overwrite) as writer,
            Folder(writer.scratch) as temporary,
            Workers(num_workers) as workers,
        ):
            job = Job(
                options=options,
                directed=bool(edges.directed) if options.directed is None else options.directed,
                payload=payload,
                writer=writer,
                temporary=temporary,
                workers=workers,
                budget=budget,
                sizes=sizes,
                progress=shown,
            )
            figures = build_steps(edges, job)
    report = BuildReport(
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu_began,
        peak_host_bytes=sampler.peak_bytes,
        memory_budget=limit,
        vertex_bytes=figures.vertex_bytes,
        num_rows=figures.num_rows,
        written_bytes=written_bytes() - written,
        phases=job.phases,
    )
    return open_graph(store), report
