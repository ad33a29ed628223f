"""Cuts a graph into partitions by a policy of the user's, streaming its edges from disk: CuSP.

Hoang, Dathathri, Gill, Pingali, "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019. The phases
are in `oocgraph.partition.cusp`, their order in `oocgraph.partition.partitioning`, the policies in `oocgraph.partition.policies`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.partition.crew import Crew, InProcess
from oocgraph.partition.cusp_spec import ROUND_VERTICES, PartitionOptions
from oocgraph.partition.partitioning import checked_policy, partition_store
from oocgraph.partition.policy import Policy
from oocgraph.progress import watched
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.outputs import output_place
from oocgraph.store.partitions import Partitions, open_partitions
from oocgraph.store.staging import Staging
from oocgraph.types import Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client


def partition_graph(
    graph: CSRStore | str | os.PathLike[str],
    num_partitions: int,
    policy: str | Policy,
    out: str | os.PathLike[str],
    client: Client | None = None,
    *,
    read: Literal["out", "in"] = "out",
    transpose: bool = False,
    columns: tuple[str, ...] | list[str] | None = None,
    vertex_weight: float = 0.0,
    edge_weight: float = 1.0,
    round_vertices: int = ROUND_VERTICES,
    compiled: bool | None = None,
    threads: int | None = None,
    memory_budget: str | int | None = None,
    check_pages: bool = False,
    overwrite: bool = False,
    progress: ProgressOption = None,
) -> Partitions:
    """Partition a graph's edges by two functions.

    Parameters
    ----------
    graph
        A graph store or its path.
    num_partitions
        From 1 to the number of vertices that have an edge; a partition may come out empty.
    policy
        ``EEC``, ``HVC``, ``CVC``, ``FEC``, ``GVC``, ``SVC``, ``1D-edge``, ``1D-vertex``, ``1d``, ``2d`` (`oocgraph.partition.policies`),
        or a `Policy`.
    out
        Folder to create for the partitions; on a cluster every worker must see it.
    client
        A `distributed.Client`: its workers do it, each a range of vertices. By default the threads of this process.
    read
        ``out``: the graph is read by out-lists, and each part is a CSR of its edges; ``in``: by in-lists, each part is a CSC.
    transpose
        Give each part the other lists too.
    columns
        Edge columns that go along; by default all.
    vertex_weight, edge_weight
        What counts as work when the graph is divided among the workers (not among the partitions).
    round_vertices
        Of a policy that has a state or looks at masters: vertices that each worker assigns between two exchanges.
    compiled
        False: run the policy's functions as plain Python, hundreds of times slower. By default as the policy says.
    threads, memory_budget
        Compute threads, and bytes that the whole process may hold; on a cluster those of each worker.
    check_pages
        Compare what is read of the graph with its checksums.
    overwrite
        Replace partitions that exist, once the new ones are complete.
    progress
        Called with (phase, done, total); True draws bars.

    Returns
    -------
    Partitions
        Opened. The same for any number of workers, unless the policy has a state or looks at masters.

    Raises
    ------
    PolicyError
        The policy cannot be compiled, fails, names a partition that does not exist, or decides twice in different ways.
    BudgetError
        The budget is too small; the message names the smallest that works.
    OutputError
        `out` exists and `overwrite` is false, or it cannot be written; nothing is left behind.
    StoreError, CorruptStoreError
        The graph cannot be opened or read.
    ClusterError
        The cluster cannot be used.

    Notes
    -----
    Host bytes of each worker: 2 (or 4) bytes a vertex for masters, half a byte a vertex and partition for bitmaps and their ranks (with
    `transpose` instead, if that is more, 16 bytes a vertex and what room there is for edges), 8 a vertex if the policy asks for degrees of
    a graph that is not in degree order, and for each thread a block of 2 MiB of neighbours (or the longest list) five times. Compiling a
    policy takes 96 MiB. Edges are read twice (three times by policies that look at neighbours) and written once.

    References
    ----------
    Hoang et al., "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019. Differs from the paper in:
    partitions are made on disk; any number of workers makes any number of partitions.

    Examples
    --------
    A path of four vertices, cut in the middle: both partitions have two masters with edges; the first needs a mirror of vertex 2.

    >>> import tempfile
    >>> from oocgraph import build_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = build_csr(([0, 1, 2], [1, 2, 3]), f"{folder}/graph", directed=True, vertex_order="original")
    ...     parts = partition_graph(graph, 2, "1D-vertex", f"{folder}/parts", compiled=False)
    ...     [(part.num_edges, part.num_masters, part.num_mirrors) for part in parts], parts[0].global_id().tolist()
    ([(2, 2, 1), (1, 2, 0)], [0, 1, 2])
    """
    store = open_graph(graph, check_pages=check_pages)
    options = partition_options(
        store, num_partitions, policy, compiled=compiled, columns=columns, read=read, transposed=transpose, vertex_weight=vertex_weight,
        edge_weight=edge_weight, round_vertices=round_vertices, threads=threads, memory_budget=memory_budget,
    )  # fmt: skip
    parts, _ = partition_with_report(store, out, options, client, overwrite=overwrite, progress=progress)
    return parts


def partition_options(
    store: CSRStore, num_partitions: int, policy: str | Policy, *, compiled: bool | None = None, columns: Any = None, **others: Any
) -> PartitionOptions:
    """Return the options of a partitioning of this graph, checked; `others` are fields of `PartitionOptions`."""
    n = store.num_vertices
    if isinstance(num_partitions, bool) or not isinstance(num_partitions, (int, np.integer)) or not 1 <= num_partitions <= n:
        raise OocGraphError(
            f"num_partitions is {num_partitions!r}, but {store.url} has {n:,} vertices with edges; give a whole number from 1 to {n:,}"
            if n
            else f"{store.url} has no edges, so there is nothing to partition"
        )
    return PartitionOptions(
        num_partitions=int(num_partitions),
        policy=checked_policy(policy, vertex_order=store.attributes.vertex_order, compiled=compiled),
        columns=_columns(store, columns),
        **others,
    )


def partition_with_report(
    store: CSRStore,
    out: str | os.PathLike[str],
    options: PartitionOptions,
    client: Client | None = None,
    *,
    overwrite: bool = False,
    durable: bool = True,
    progress: ProgressOption = None,
) -> tuple[Partitions, dict[str, float]]:
    """Partition as `partition_graph` does, and return the seconds of each phase too; what is not durable is not forced to disk."""
    output_place(out, kind="partitions", overwrite=overwrite)
    with watched(progress) as shown, _crew(store, out, client, shown, overwrite=overwrite) as crew:
        seconds = partition_store(store, out, options, crew, overwrite=overwrite, durable=durable)
    return open_partitions(os.path.abspath(out)), seconds


@contextmanager
def _crew(store: CSRStore, out: str | os.PathLike[str], client: Client | None, progress: Progress, *, overwrite: bool) -> Iterator[Crew]:
    """Yield who runs the phases: this process, or the workers of a client."""
    if client is None:
        yield InProcess(progress)
        return
    from oocgraph.cluster.phases import OnCluster
    from oocgraph.cluster.session import ClusterSession

    with ClusterSession(client) as session, session.loss_told():
        with Staging(out, kind="partitions", overwrite=overwrite) as staged:  # a folder where all workers must be able to write
            workers = session.find_workers(store.url, graph_fingerprint(store), staged.folder)
        yield OnCluster(session, list(workers), progress)


def _columns(store: CSRStore, columns: Any) -> tuple[str, ...]:
    """Return the edge columns that go along."""
    known = store.attributes.columns
    if columns is None:
        return tuple(known)
    if isinstance(columns, str) or len(set(columns)) < len(columns):
        raise OocGraphError(f"columns is {columns!r}; it must be a list of different names, or None for all")
    if unknown := [name for name in columns if name not in known]:
        raise OocGraphError(f"{store.url} has no edge column {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    return tuple(columns)
