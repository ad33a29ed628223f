"""A graph opened once for many computations: in this process, on a GPU, on the workers of a Dask cluster, or as partitions.

In: a graph, and resources. Out: a runtime, which functions take as ``runtime=``; they differ in where the edges are, not in how they are
called. It is a context manager.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from oocgraph.algorithms.search_options import on_processor
from oocgraph.arguments import known_keywords
from oocgraph.engine.in_process import MANY_SEARCHES
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError, ArgumentTypeError
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.views import view_of
from oocgraph.types import Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

    from oocgraph.store.partitions import Partitions


class Runtime(Protocol):
    """A graph that is open: what functions take as ``runtime=``.

    `oocgraph.engine.opened.OpenedGraph` and `oocgraph.cluster.searches.ClusterRuntime`; for searches only,
    `oocgraph.algorithms.partitioned_bfs.PartitionedGraph`, `oocgraph.engine.local.LocalRuntime`, `oocgraph.engine.device.DeviceRuntime`.
    """

    @property
    def store(self) -> CSRStore:
        """The graph."""
        ...

    @property
    def view(self) -> CSRStore:
        """The graph as it is searched: perhaps without some edges, or turned round (`oocgraph.store.views`)."""
        ...

    @property
    def client(self) -> Any:
        """The Dask client on whose workers it is; None: it is in this process."""
        ...

    @property
    def lease(self) -> str | None:
        """Name under which workers keep edges for its next product or run; None: it has no workers."""
        ...

    @property
    def only_searches(self) -> bool:
        """Whether `oocgraph.bfs` alone takes it."""
        ...

    @property
    def resources(self) -> Resources:
        """What it was opened with."""
        ...

    @property
    def metrics(self) -> dict[str, Any]:
        """What a result says of the runtime: fields of `oocgraph.BFSResult`."""
        ...

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


@known_keywords
def open_runtime(
    graph: Any,
    *,
    where: str | None = None,
    reverse: bool = False,
    partition: Partitions | str | os.PathLike[str] | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> Runtime:
    """Load a graph for many computations. Use what it returns in a ``with`` statement, and pass it as ``runtime=``.

    Parameters
    ----------
    graph
        A graph store or its path. Or a sparse matrix of SciPy's, for products alone (`oocgraph.spmv`): GPUs keep it, as far as it fits.
    where, reverse
        Load the edges that meet a condition, or turned round; see `oocgraph.bfs`. What uses the runtime must be given the same.
    partition
        Search over partitions; see `oocgraph.bfs`.
    resources
        Threads, device, memory and cluster; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client` on whose workers the graph is loaded; the same as in `resources`.
    progress
        Called with (phase, done, total) while the graph is brought to where it is searched, if that takes long; True draws bars.

    Returns
    -------
    Runtime
        A context manager; closing it gives back what it holds.

    Raises
    ------
    ArgumentError
        The resources contradict each other.
    BudgetError
        A budget is too small; the message names the smallest that works.
    DeviceError
        Device ``cuda``, and no GPU can be used.
    ClusterError
        The cluster cannot be used.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import bfs, build_csr
    >>> with TemporaryDirectory() as folder, open_runtime(build_csr(([0, 1], [1, 2]), f"{folder}/g.zarr")) as runtime:
    ...     [bfs(runtime.store, source, runtime=runtime).depth for source in (0, 1)]
    [2, 1]
    """
    if hasattr(graph, "shape") and not isinstance(graph, CSRStore):
        others = {"where": where, "reverse": reverse or None, "partition": partition}
        opened: Runtime = _open_matrix(graph, others, resources, memory_budget=memory_budget, client=client)
        return opened
    is_here = where is not None or reverse  # whatever client there is
    found = resources_of(
        "open_runtime", resources, memory_budget=memory_budget, client=client, graph=graph, take_current=not is_here
    )  # fmt: skip
    store = view_of(open_graph(graph), where=where, reverse=reverse)
    found = on_processor(found, {"where": store.where, "reverse": store.reverse}, partition=partition)
    with watched(progress) as shown:
        return open_where(store, found, partition=partition, progress=shown)


def _open_matrix(matrix: Any, others: dict[str, Any], resources: Resources | None, **given: Any) -> Any:
    """Open a matrix in memory; the `others` are for graphs."""
    from oocgraph.algorithms.opened_matrix import OpenedMatrix

    for name, value in others.items():
        if value is not None:
            raise ArgumentError(f"{name} is {value!r}, which is of a graph, and this is a matrix; leave it out")
    found = resources_of("open_runtime", resources, graph=matrix, take_current=False, **given)
    if found.client or found.num_partitions is not None:
        raise ArgumentError("a matrix is open in this process; leave out client and num_partitions, or give a graph")
    return OpenedMatrix(matrix, found)


def open_where(
    store: CSRStore, resources: Resources, *, partition: Any = None, shares: tuple[int, ...] | None = None, result_folder: Any = None,
    num_searches: int = MANY_SEARCHES, progress: Progress,
) -> Runtime:  # fmt: skip
    """Open a runtime where `resources` (of `resources_of`) say.

    Workers begin with `shares` of the edges, and must see `result_folder`, if results are to be written there. In this process a GPU is
    started where that pays for `num_searches`.
    """
    if partition is not None:
        from oocgraph.algorithms.partitioned_bfs import open_partitioned

        return open_partitioned(
            store, partition, resources, result_folder=result_folder, num_searches=num_searches, progress=progress
        )  # fmt: skip
    if resources.client is None:
        if resources.num_partitions is not None:
            raise ArgumentError(
                "num_partitions is given, but the graph is neither on a cluster nor partitioned; pass client or partition, or leave it out"
            )
        return OpenedGraph(store, resources, progress, num_searches=num_searches)
    from oocgraph.cluster.searches import ClusterRuntime

    return ClusterRuntime.open(store, resources=resources, result_folder=result_folder, shares=shares)


def opened_of(runtime: Runtime | None, graph: CSRStore | str | os.PathLike[str], resources: Resources) -> OpenedGraph | Unopened:
    """Return where a computation in this process finds edges and memory: the runtime, or what is opened for this call alone.

    Raises
    ------
    ArgumentError
        The runtime is of another graph, or only for searches.
    """
    if runtime is None:
        return Unopened(resources.limit_bytes)
    view = graph if isinstance(graph, CSRStore) else None
    check_runtime(runtime, graph, where=None if view is None else view.where, reverse=view is not None and view.reverse)
    assert isinstance(runtime, OpenedGraph)
    return runtime


def check_runtime(
    runtime: Any, graph: CSRStore | str | os.PathLike[str], *, searches: bool = False, where: str | None = None, reverse: bool = False
) -> None:  # fmt: skip
    """Refuse a runtime that is none, of another graph or view, closed, or only for `searches` where something else is computed.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        It is.
    StoreError
        The graph was replaced since it was opened.
    """
    if hasattr(runtime, "matrix"):
        raise ArgumentError("the runtime has a matrix, of which products alone are made (spmv); open another one with the graph")
    if not hasattr(type(runtime), "metrics"):
        raise ArgumentTypeError(f"runtime is {runtime!r}; give what open_runtime returns")
    loaded, given = runtime.store.place, graph.place if isinstance(graph, CSRStore) else os.fspath(graph)
    if len({os.path.abspath(place.removeprefix("file://")) for place in (loaded, given)}) > 1:
        raise ArgumentError(f"the runtime has loaded {loaded}, not {given}; open another runtime for that graph")
    view, reverse = runtime.view, reverse and runtime.store.attributes.directed
    for name, opened, asked in (("where", view.where, where and where.strip()), ("reverse", view.reverse, reverse)):
        if opened != asked:
            raise ArgumentError(f"{name} is {asked!r}, but the runtime was opened with {name}={opened!r}; open another with open_runtime")
    if runtime.only_searches and not searches:
        raise ArgumentError("the runtime is for searches only; open one by open_runtime, without partition")
    runtime.check()
    for store in (runtime.store, graph) if isinstance(graph, CSRStore) else (runtime.store,):
        store.confirm()


def checked_in_process(runtime: Runtime, graph: CSRStore | str | os.PathLike[str], what: str) -> Runtime:
    """Return a runtime that is in this process.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        It is none, of another graph, closed, or on a cluster.
    """
    check_runtime(runtime, graph)
    if runtime.client is not None:
        raise ArgumentError(f"{what} in this process only, and the runtime is on a cluster; open one without client")
    return runtime
