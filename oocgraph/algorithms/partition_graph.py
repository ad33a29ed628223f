"""Cuts a graph into partitions by a policy of the user's, streaming its edges from disk: CuSP.

Hoang, Dathathri, Gill, Pingali, "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019. The phases
are in `oocgraph.partition.cusp`, their order in `oocgraph.partition.partitioning`, the policies in `oocgraph.partition.policies`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from oocgraph.arguments import is_whole, known_keywords
from oocgraph.errors import ArgumentError
from oocgraph.partition.cusp_spec import PartitionOptions
from oocgraph.partition.executor import LocalPhases, PhaseExecutor
from oocgraph.partition.partitioning import checked_policy, partition_store
from oocgraph.partition.policy import Policy
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.outputs import output_place
from oocgraph.store.partitions import Partitions, open_partitions
from oocgraph.types import Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

PATH_REMEDY = "choose another path, on a file system that every worker sees"
"""End of the message about a worker that does not see where partitions are made."""


@known_keywords
def partition_graph(
    graph: CSRStore | str | os.PathLike[str],
    num_partitions: int,
    *,
    policy: str | Policy,
    path: str | os.PathLike[str],
    read: Literal["out", "in"] = "out",
    transpose: bool = False,
    edge_columns: Sequence[str] | None = None,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
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
        ``EEC``, ``HVC``, ``CVC``, ``FEC``, ``GVC``, ``SVC``, ``1D-edge``, ``1D-vertex``, ``chunk``, ``1d``, ``2d``
        (`oocgraph.partition.policies`), or a `Policy`.
    path
        Folder to create for the partitions. On a cluster the workers write them, each reading what others have written, so it must be on a
        file system that all of them see under the same name; workers on several hosts need a shared one. This is checked first.
    read
        ``out``: the graph is read by out-lists, and each part is a CSR of its edges; ``in``: by in-lists, each part is a CSC.
    transpose
        Give each part the other lists too.
    edge_columns
        Edge columns that go along; by default all.
    overwrite
        Replace partitions that exist, once the new ones are complete.
    resources
        Threads, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` whose workers partition the graph, each a range of vertices; the same as in `resources`. By default the
        current client, if there is one.
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
        `path` exists and `overwrite` is false, or it cannot be written; nothing is left behind.
    StoreError, CorruptStoreError
        The graph cannot be opened or read.
    ClusterError
        The cluster cannot be used, or a worker does not see the folder of `path`, or cannot write there.

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
    A path of four vertices in two partitions: masters with edges, and one mirror of the other's vertices in each.

    >>> import tempfile
    >>> from oocgraph import build_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = build_csr(([0, 1, 2], [1, 2, 3]), f"{folder}/graph", directed=True)
    ...     parts = partition_graph(graph, 2, policy="1D-vertex", path=f"{folder}/parts")
    ...     [(part.num_edges, part.num_masters, part.num_mirrors) for part in parts], parts[0].global_id().tolist()
    ([(2, 2, 1), (1, 1, 1)], [0, 1, 2])
    """
    asked = resources_of("partition_graph", resources, memory_budget=memory_budget, client=client, graph=graph)
    store = open_graph(graph)
    options = partition_options(
        store, num_partitions, policy, columns=edge_columns, read=read, transposed=transpose, threads=asked.threads,
        memory_budget=asked.memory_budget,
    )  # fmt: skip
    parts, _ = partition_with_report(store, path, options, asked.client or None, overwrite=overwrite, progress=progress)
    return parts


def partition_options(
    store: CSRStore, num_partitions: int, policy: str | Policy, *, compiled: bool | None = None, columns: Any = None, **others: Any
) -> PartitionOptions:
    """Return the options of a partitioning of this graph, checked; `others` are fields of `PartitionOptions`."""
    n = store.num_rows
    if not is_whole(num_partitions, 1, n):
        raise ArgumentError(
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
    remedy: str = PATH_REMEDY,
    progress: ProgressOption = None,
) -> tuple[Partitions, dict[str, float]]:
    """Partition as `partition_graph` does, and return the seconds of each phase too; what is not durable is not forced to disk.

    `remedy` ends the message about a worker that does not see the folder of `out`.
    """
    output_place(out, kind="partitions", overwrite=overwrite)
    with watched(progress) as shown, _executor(store, out, client, shown, overwrite=overwrite, remedy=remedy) as executor:
        seconds = partition_store(store, out, options, executor, overwrite=overwrite, durable=durable)
    return open_partitions(os.path.abspath(out)), seconds


@contextmanager
def _executor(
    store: CSRStore, out: str | os.PathLike[str], client: Client | None, progress: Progress, *, overwrite: bool, remedy: str
) -> Iterator[PhaseExecutor]:
    """Yield who runs the phases: this process, or the workers of a client."""
    if client is None:
        yield LocalPhases(progress)
        return
    from oocgraph.cluster.phases import DaskPhases
    from oocgraph.cluster.preflight import SharedFolder
    from oocgraph.cluster.session import ClusterSession

    with ClusterSession(client) as session, session.loss_reported():
        with AtomicOutput(out, kind="partitions", overwrite=overwrite) as staged:  # a folder where all workers must be able to write
            folder = SharedFolder(path=staged.folder.absolute(), place=staged.folder.absolute().parent, what="partitions", remedy=remedy)
            workers = session.find_workers(store.place, graph_fingerprint(store), folder)
        yield DaskPhases(session, list(workers), progress)


def _columns(store: CSRStore, columns: Any) -> tuple[str, ...]:
    """Return the edge columns that go along."""
    known = store.attributes.columns
    if columns is None:
        return tuple(known)
    names = [] if isinstance(columns, str) else [store.attributes.stored_column(name) for name in columns]
    if isinstance(columns, str) or len(set(names)) < len(names):
        raise ArgumentError(f"edge_columns is {columns!r}; it must be a list of different names, or None for all")
    if unknown := [name for name in names if name not in known]:
        raise ArgumentError(f"{store.url} has no edge column {unknown[0]!r}; it has {', '.join(store.attributes.input_columns) or 'none'}")
    return tuple(names)
