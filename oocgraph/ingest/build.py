"""The external build: an edge list of any size becomes a store, within a memory budget.

In: an edge source. Out: a CSR store, bit-identical for any budget, number of threads and order of the edges. The steps are one
page (`build_steps`): read the edges and bin them by provisional row; sort each bin, drop duplicates, count degrees; number the
vertices by degree; rename the edges and bin them by new row; sort each bin and write it. An undirected edge is kept once until it is
renamed. Only bins of keys are ever sorted, so everything is sequential on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.allocator import kept_bytes_of, returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.arrow import load_arrow
from oocgraph.compiled.crc32c import checksum_calls
from oocgraph.compiled.load import load_kernels
from oocgraph.config import settings
from oocgraph.errors import ArgumentError, InputError
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Workers
from oocgraph.ingest.build_job import LEAST_THREADS, BuildOptions, Job, Phase, Sizes, input_bytes, most_workers, plan_sizes, workers_for
from oocgraph.ingest.build_steps import build_steps
from oocgraph.ingest.edges import EdgeSource
from oocgraph.ingest.payload import choose_payload
from oocgraph.ingest.sources import is_dask, open_requested
from oocgraph.kernels.build import build_calls, memory_build_calls
from oocgraph.kernels.entries import entry_calls
from oocgraph.kernels.join import hash_join_calls
from oocgraph.kernels.packed_keys import packing_calls
from oocgraph.kernels.strings import string_calls
from oocgraph.listing import Listed
from oocgraph.memory import Budget, PeakSampler, bytes_before, limit_bytes_of, with_threads_that_fit
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.sorting import load_sorts
from oocgraph.store.codecs import load_codecs
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.outputs import output_place
from oocgraph.store.writer import StoreWriter
from oocgraph.types import Codec, Duplicates, IdKind, Progress, ProgressOption, ignore_progress

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport(Listed):
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
    read_bytes, written_bytes
        Bytes read from files and written to them: the input, temporary ones, and the store.
    phases
        What each step took, in order; together about the whole.
    """

    seconds: float
    cpu_seconds: float
    peak_host_bytes: int
    memory_budget: int
    vertex_bytes: int
    num_rows: int
    read_bytes: int
    written_bytes: int
    phases: dict[str, Phase]


def report_of(began: Phase, sampler: PeakSampler, limit: int, *, vertex_bytes: int, num_rows: int, phases: dict[str, Phase]) -> BuildReport:
    """Report what has been taken since a moment, within a budget of `limit` bytes."""
    took = Phase.until_now() - began
    return BuildReport(
        seconds=took.seconds, cpu_seconds=took.cpu_seconds, peak_host_bytes=sampler.peak_bytes, memory_budget=limit,
        vertex_bytes=vertex_bytes, num_rows=num_rows, read_bytes=took.bytes_read, written_bytes=took.bytes_written, phases=phases,
    )  # fmt: skip


@known_keywords
def build_csr(
    edges: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str | None] | None = None,
    weight: str | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    id_kind: IdKind | None = None,
    dtypes: Mapping[str, Any] | None = None,
    duplicates: Duplicates | None = None,
    keep_self_loops: bool = False,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Build a graph from an edge list: a store on disk, of any size, within a memory budget, or a graph in memory.

    Parameters
    ----------
    edges
        A path, a table, arrays, a matrix, a NetworkX graph, a Dask DataFrame or array, any stream of Arrow batches (Polars, DuckDB, ...),
        an array of Zarr or h5py, an iterable of edges or of tables, or an `EdgeSource`; see `open_source`.
    path
        Folder to create, or a URL such as ``s3://bucket/graph.zarr``, to which the store is uploaded once it is whole (from the folder for
        temporary files, ``TMPDIR``; options of the file system are the setting ``oocgraph.storage-options``). By default none: the graph is
        held in memory, and its ``save(path)`` writes the same store.
    columns
        Names of the columns of sources and targets, then of columns that are kept with the edges: ``("from", "to", "time")``. None for a
        name: as `open_source` finds it. By default the usual names, and no further columns.
    weight
        Column of the weights. By default a table's edges have none, whatever its columns are called; matrices (SciPy, Matrix Market) and
        GAPBS' weighted files bring theirs.
    directed
        Default: what the source says (graphs of NetworkX, ``.sg``, symmetric Matrix Market), else undirected, also of a matrix that is not
        symmetric: give True for edges that lead from row to column alone. A directed graph has each edge of an undirected source in both
        directions.
    num_vertices
        Declares that the vertices are ``0 .. num_vertices - 1``.
    id_kind
        How the ids of a text file (CSV and its like) are read: ``string`` as they stand there, so that 007 and 7 are two, or ``int64``. By
        default as strings where half or more of the first ones are no numbers.
    dtypes
        What columns beside the edges are to be, by name: NumPy dtypes of numbers, or ``"string"``, as in ``{"price": "float64"}``. By
        default what the source has; for text files, what their first 10,000 rows look like: int64, else float64, else strings. A value
        that the dtype does not hold exactly is refused.
    duplicates
        What becomes of an edge that occurs more than once, compared by its ends and its edge columns: ``drop`` (the default without
        weights), ``keep``, ``error``, or which weight it gets: ``min`` (the default with weights), ``max``, ``sum``, ``first``.
        With weights ``drop`` means ``min``, without them these four mean ``drop``; the store's ``attributes.duplicates`` says which.
        (SciPy adds up the entries that a matrix has twice; ``sum`` does.)
    keep_self_loops
        Keep edges from a vertex to itself; otherwise they are dropped, and their vertices are kept.
    overwrite
        Replace a store that exists, once the new one is complete.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold, such as ``"2G"``; the same as in `resources`.
    client
        A `distributed.Client` whose workers compute the partitions of a Dask collection; the same as in `resources`. By default the current
        client, if there is one; without one this process computes them. All else runs in this process.
    progress
        Called with each step's name, and how much of it is done; True draws bars.

    Returns
    -------
    CSRStore
        Without `path` a `oocgraph.store.in_memory.MemoryGraph`, which all functions take in this process.

    Raises
    ------
    InputError
        The source is not an edge list, or an id is outside the declared range.
    DuplicateEdgeError
        An edge occurs twice and ``duplicates="error"``.
    BudgetError
        The memory budget is too small.
    OutputError
        `path` exists already or cannot be written, or the disk is full. Nothing is left behind.

    Notes
    -----
    Peak host bytes: `memory_budget`; without `path` 200 bytes an edge while it is built (300 with weights), and 10 to 60 after that.
    Temporary files, on the disk of `path`: about 10 bytes an edge (undirected; with columns 20, and these three times).
    Streams and Dask collections are read once, with `path` into a temporary file of 16 bytes an edge and its columns. This process holds
    one batch or partition at a time, of the budget; what a producer reads ahead (Polars, DuckDB) comes on top. Persist what is costly to
    compute as a whole, such as a shuffle.
    The order of the vertices and the compression of the arrays are settings: ``oocgraph.vertex-order``, ``oocgraph.codec``.

    References
    ----------
    Yasui, Fujisawa, Sato, "Fast and energy-efficient breadth-first search on a single NUMA system" (2014), section 3: the vertex order.

    Examples
    --------
    >>> build_csr(([0, 1, 1], [1, 2, 0])).num_edges
    2
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = build_csr((np.array([0, 1, 1]), np.array([1, 2, 0])), f"{folder}/graph.zarr")
    ...     graph.num_vertices, graph.num_edges
    (3, 2)
    """
    asked, knobs = resources_of("build_csr", resources, memory_budget=memory_budget, client=client), settings()
    options = replace(
        reading_options(edges, columns, asked, has_client=bool(client or (resources is not None and resources.client))),
        directed=directed,
        weight_column=weight,
        num_vertices=num_vertices,
        id_kind=id_kind,
        dtypes={} if dtypes is None else dtypes,
        duplicates=duplicates,
        keep_self_loops=keep_self_loops,
        vertex_order=knobs.vertex_order,
        codec=knobs.codec,
        overwrite=overwrite,
    )
    if path is None:
        return _build_in_memory(edges, options, progress)
    graph, _ = build_with_report(edges, path, options, progress)
    return graph


def _build_in_memory(source: Any, options: BuildOptions, progress: ProgressOption) -> CSRStore:
    from oocgraph.ingest.in_memory import build_from_source

    if options.overwrite:
        raise ArgumentError("overwrite is True, but there is no path whose store it could replace; leave it out, or give path")
    edges = opened_edges(source, options)
    with watched(progress) as shown:
        load_kernels(memory_build_calls([np.dtype(kind) for kind in edges.columns.values() if kind != "string"]), shown)
        limit = limit_bytes_of(options.memory_budget)
        return build_from_source(edges, options, Budget(limit), shown)


def opened_edges(source: Any, options: BuildOptions) -> EdgeSource:
    """Open an edge list, unless it is an `EdgeSource`.

    Raises
    ------
    InputError
        It cannot be read, or its ids are of another kind than was asked for.
    ArgumentError
        `dtypes` names no column of it, or it was opened with others.
    """
    edges = open_requested(source, options)
    if options.id_kind not in (None, edges.id_kind):
        raise InputError(
            f"{edges.description}: the ids are {edges.id_kind}, and id_kind={options.id_kind!r} is asked for, which only text files can be "
            "read by; convert them, or leave it out"
        )
    for name, kind in options.dtypes.items():
        if name not in edges.columns:
            raise ArgumentError(f"dtypes names {name!r}, which is not kept; name it in columns, or as weight")
        if (found := edges.columns[name]) != kind:
            raise ArgumentError(f"dtypes has {kind} for {name!r}, but its source was opened with {found}; give what that was opened from")
    return edges


def reading_options(edges: Any, columns: Sequence[str | None] | None, asked: Resources, *, has_client: bool) -> BuildOptions:
    """Return options that say which columns of `edges` are read, and with what.

    Raises
    ------
    ArgumentError
        A client was named for what workers do not compute, or `columns` does not name columns.
    """
    if has_client and not is_dask(edges):
        raise ArgumentError(f"client is given, but workers compute Dask collections only, not {type(edges).__name__}; leave it out")
    source_column, target_column, *kept = checked_columns(columns)
    return BuildOptions(
        edge_columns=kept, source_column=source_column, target_column=target_column, memory_budget=asked.memory_budget,
        threads=asked.threads, client=asked.client,
    )  # fmt: skip


def checked_columns(columns: Sequence[str | None] | None) -> list[Any]:
    """Return the names of the columns of sources and targets, None where not given, and of those to keep."""
    if columns is None:
        return [None, None]
    names = None if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    if names is None or len(names) < 2 or not all(isinstance(one, str) or (one is None and i < 2) for i, one in enumerate(names)):
        raise ArgumentError(
            f"columns is {columns!r}; give the names of the columns of sources and targets, then of those to keep: ('from', 'to', 'time')"
        )
    twice = next((one for one in names if one is not None and names.count(one) > 1), None)
    if twice is not None:
        raise ArgumentError(f"columns names {twice!r} twice; name each column once")
    return names


def load_build(
    codec: Codec, progress: Progress = ignore_progress, *, id_kind: str = "int64", dtypes: Iterable[Any] = ()
) -> None:  # fmt: skip
    """Bring what a build uses into memory, before memory is counted; columns of some dtypes are beside its edges."""
    of_ids = [*string_calls(), *hash_join_calls()] if id_kind == "string" else []
    load_kernels([*of_ids, *build_calls(dtypes), *entry_calls(), *packing_calls(), *checksum_calls()], progress)
    load_sorts()
    load_arrow()
    if codec != "none":
        load_codecs()


def build_with_report(
    source: Any, store: str | os.PathLike[str], options: BuildOptions, progress: ProgressOption = None
) -> tuple[CSRStore, BuildReport]:
    """Build as `build_csr` does, and return what it took too."""
    began = Phase.until_now()
    output_place(store, kind="graph store", overwrite=options.overwrite)
    edges = opened_edges(source, options)
    payload = choose_payload(edges, options.duplicates)
    configured = settings()
    limit = limit_bytes_of(options.memory_budget)
    threads = options.threads or configured.threads
    with PeakSampler() as sampler, watched(progress) as shown, returned_memory(kept_bytes_of(limit, threads)):
        load_build(options.codec, shown, id_kind=edges.id_kind, dtypes=payload.binned)
        before, payload_bytes, compressed = bytes_before(limit), payload.binned_bytes, options.codec != "none"

        def planned(most: int) -> tuple[int, Budget, Sizes]:
            budget = Budget(limit, before)
            num_workers = workers_for(most, budget.available_bytes - input_bytes(edges, most_workers(most)))
            more = input_bytes(edges, num_workers)
            return most, budget, plan_sizes(budget, num_workers, payload_bytes, compressed=compressed, more_bytes=more)

        threads, budget, sizes = with_threads_that_fit(planned, threads, LEAST_THREADS)
        with (
            StoreWriter(store, codec=options.codec, overwrite=options.overwrite, durable=options.durable) as writer,
            Folder(writer.scratch) as temporary,
            Workers(sizes.threads) as workers,
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
                threads=threads,
            )
            metrics = build_steps(edges, job)
    report = report_of(began, sampler, limit, vertex_bytes=metrics.vertex_bytes, num_rows=metrics.num_rows, phases=job.phases)
    return open_graph(store), report
