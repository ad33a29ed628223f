"""Where a computation runs, and what it may use: one value, taken by every function that computes.

In: what the caller gives, as `Resources` or by the two keywords ``memory_budget`` and ``client``, which stand for it. Out: one `Resources`
that is valid for the function: no contradictions, nothing that the function cannot use, and the Dask client that it runs on, if any.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from oocgraph.arguments import check_whole, known_keywords
from oocgraph.config import check_threads, parse_bytes, settings
from oocgraph.errors import ArgumentError, ArgumentTypeError
from oocgraph.memory import limit_bytes_of
from oocgraph.types import DeviceKind

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Memory, threads, device and cluster of a computation; what is None is chosen by the configuration and the machine.

    Parameters
    ----------
    memory_budget
        Bytes that the process may hold, as a number or a text such as ``"640M"``; with a client, bytes of each worker. By default most of
        what the machine, the control group or Dask leaves.
    threads
        Compute threads, of the process or of each worker; by default the cores that it may use. Fewer work where the budget has no room for
        their buffers.
    device
        ``cuda``: on GPUs, or an error that says why not. ``cpu``: on the processor. ``auto``: on GPUs if they can be used and the work is
        worth their start (``device_reason`` of a search's result says what decided). By default as configured (``auto``). With a client
        each worker uses its own, whatever the work.
    device_memory_budget
        Bytes of device memory that may be held, of each GPU; by default most of what is free.
    num_partitions
        Shares into which a graph is divided on a cluster, or for a search over partitions; by default one for each worker.
    client
        A `distributed.Client`: the computation runs on its workers. False: in this process. By default the current client, if there is one
        and the function can run on a cluster (centralities and distances: from 16 MiB of edges on).

    Raises
    ------
    ArgumentError
        A value is invalid.

    Examples
    --------
    >>> Resources(memory_budget="2G", threads=2)
    Resources(memory_budget='2G', threads=2)
    """

    memory_budget: str | int | None = None
    threads: int | None = None
    device: DeviceKind | None = None
    device_memory_budget: str | int | None = None
    num_partitions: int | None = None
    client: Client | Literal[False] | None = None

    def __post_init__(self) -> None:
        check_threads(self.threads)
        for name in ("threads", "num_partitions"):
            value = getattr(self, name)
            if isinstance(value, np.integer):
                object.__setattr__(self, name, int(value))
        for name in ("memory_budget", "device_memory_budget"):
            value = getattr(self, name)
            if value is not None:
                parse_bytes(value, name)
        if self.num_partitions is not None:
            check_whole("num_partitions", self.num_partitions, least=1)
        if self.device is not None and self.device not in get_args(DeviceKind):
            raise ArgumentError(f"device is {self.device!r}; it must be one of {', '.join(get_args(DeviceKind))}")

    def __repr__(self) -> str:
        given = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if getattr(self, field.name) is not None)
        return f"Resources({', '.join(given)})"

    @property
    def num_threads(self) -> int:
        """Compute threads of this process."""
        return self.threads or settings().threads

    @property
    def limit_bytes(self) -> int:
        """Bytes that this process may hold."""
        return limit_bytes_of(self.memory_budget)


Resources.__init__ = known_keywords(Resources.__init__)  # type: ignore[method-assign]


class Capabilities(NamedTuple):
    """What a public function can use, and what it promises.

    Attributes
    ----------
    gpu, cluster, gpu_cluster
        Whether it runs on a GPU of this process, on the workers of a Dask client, and on GPUs of these.
    out_of_core
        Whether the edges may be larger than memory.
    resumes
        Whether an interrupted run continues where it was.
    divides
        Whether the caller may choose into how many partitions the graph is divided.
    views
        Whether it looks at edges that meet a condition only (``where=``).
    """

    gpu: bool = False
    cluster: bool = False
    gpu_cluster: bool = False
    out_of_core: bool = True
    resumes: bool = False
    divides: bool = False
    views: bool = False


CAPABILITIES = {
    "bfs": Capabilities(gpu=True, cluster=True, gpu_cluster=True, resumes=True, divides=True, views=True),
    "spmv": Capabilities(gpu=True, cluster=True, gpu_cluster=True),
    "pagerank": Capabilities(gpu=True, cluster=True, gpu_cluster=True, resumes=True),
    "connected_components": Capabilities(cluster=True, views=True),
    "sssp": Capabilities(gpu=True, cluster=True, divides=True, views=True),
    "core_numbers": Capabilities(cluster=True, divides=True),
    "shortest_path": Capabilities(views=True),
    "run": Capabilities(views=True),
    "estimate": Capabilities(),
    "strongly_connected_components": Capabilities(),
    "condensation": Capabilities(),
    "topological_generations": Capabilities(),
    "is_directed_acyclic_graph": Capabilities(),
    "hits": Capabilities(cluster=True),
    "katz_centrality": Capabilities(cluster=True),
    "eigenvector_centrality": Capabilities(cluster=True),
    "triangles": Capabilities(),
    "clustering": Capabilities(),
    "transitivity": Capabilities(),
    "minimum_spanning_forest": Capabilities(),
    "biconnected_components": Capabilities(),
    "greedy_coloring": Capabilities(),
    "maximal_independent_set": Capabilities(),
    "personalized_pagerank": Capabilities(cluster=True),
    "betweenness_centrality": Capabilities(),
    "multi_source_bfs": Capabilities(cluster=True),
    "closeness_centrality": Capabilities(cluster=True),
    "harmonic_centrality": Capabilities(cluster=True),
    "eccentricity": Capabilities(cluster=True),
    "diameter": Capabilities(cluster=True),
    "label_propagation": Capabilities(),
    "louvain": Capabilities(),
    "partition_graph": Capabilities(cluster=True),
    "open_runtime": Capabilities(gpu=True, cluster=True, gpu_cluster=True, divides=True, views=True),
    "build_csr": Capabilities(cluster=True),
    "append_edges": Capabilities(cluster=True),
    "merge_graphs": Capabilities(),
    "generate_kronecker": Capabilities(),
    "generate_uniform": Capabilities(),
    "generate_grid": Capabilities(),
    "export_graph": Capabilities(),
    "check_store": Capabilities(),
    "verify_bfs": Capabilities(views=True),
    "verify_components": Capabilities(views=True),
    "verify_sssp": Capabilities(views=True),
    "verify_cores": Capabilities(),
    "plan_bfs": Capabilities(),
}
"""Public functions that compute. All run in this process, on the processor; this says where else."""


_WHY = {
    "connected_components": "it looks at two neighbours of most vertices, once: more would cross the link than it reads",
    "core_numbers": "which list is next depends on what the one before has removed",
}
"""Why a GPU is of no use to some functions."""


def resources_of(
    function: str,
    resources: Resources | None = None,
    *,
    memory_budget: str | int | None = None,
    client: Any = None,
    runtime: Any = None,
    graph: Any = None,
    take_current: bool = True,
) -> Resources:
    """Return the resources of one call of a public function.

    Parameters
    ----------
    function
        Its name, in `CAPABILITIES`.
    resources, memory_budget, client
        As the caller gave them.
    runtime
        An opened runtime, which has resources of its own.
    graph
        The graph of the call, as the caller gave it: one in memory is not on a cluster.
    take_current
        Whether it runs on the current Dask client where none is given.

    Raises
    ------
    ArgumentError
        They contradict each other, or the function cannot use one of them.
    """
    if runtime is not None and resources is None and memory_budget is None and client is None:  # the usual call, and the quickest
        return _UNSAID
    can = CAPABILITIES[function]
    if resources is not None and not isinstance(resources, Resources):
        raise ArgumentTypeError(f"resources is {resources!r}; give an oocgraph.Resources")
    given = {"memory_budget": memory_budget, "client": client}
    found = resources or Resources()
    for name, value in given.items():
        other = getattr(found, name)
        if value is not None and other is not None and value is not other and value != other:
            raise ArgumentError(f"{name} is {value!r}, and {other!r} in resources; give it once")
    found = replace(found, **{name: value for name, value in given.items() if value is not None})
    if runtime is not None:
        if found != Resources():
            raise ArgumentError(f"the runtime has its own resources, so {found!r} cannot apply; give them to open_runtime")
        return found
    if not can.views and isinstance(getattr(graph, "where", None), str):  # that of pandas' tables is a method
        raise ArgumentError(f"{graph.url} is a view of the edges with {graph.where}, and {function} looks at all; give it a graph of those")
    if not can.gpu and (found.device == "cuda" or found.device_memory_budget is not None):
        name = "device" if found.device == "cuda" else "device_memory_budget"
        why = f" ({_WHY[function]})" if function in _WHY else ""
        raise ArgumentError(f"{name} is {getattr(found, name)!r}, but {function} computes on the processor{why}; leave it out")
    if not can.divides and found.num_partitions is not None:
        raise ArgumentError(f"num_partitions is {found.num_partitions}, but {function} does not take it; leave it out")
    if not can.cluster and found.client:
        raise ArgumentError(f"client is given, but {function} runs in this process only; leave it out")
    if not getattr(graph, "is_shared", True):
        if found.client:
            raise ArgumentError(
                f"client is given, but {graph.url} is in the memory of this process; write it to a folder that all workers see, by its "
                "method save, and give that, or leave client out"
            )
        take_current = False
    chosen = found.client if found.client is not None else current_client() if can.cluster and take_current else None
    return replace(found, client=chosen or None)


_UNSAID = Resources()


def current_client() -> Any:
    """Return the Dask client in force, if there is one; there is none before distributed is imported."""
    distributed = sys.modules.get("distributed")
    try:
        client = None if distributed is None else distributed.default_client()
    except ValueError:
        return None
    return None if client is None or client.asynchronous else client


@contextmanager
def seceded() -> Iterator[None]:
    """Leave the threads of the Dask worker whose task calls this: what the task waits for may have to run on that worker.

    `distributed.worker_client` does the same. It does nothing outside of a task, in one that has left already, and in the method of an
    actor, whose thread runs nothing else. A generator that another thread ends stays outside.
    """
    distributed: Any = sys.modules.get("distributed")
    state = None if distributed is None else distributed.worker.thread_state
    thread, has_left = threading.current_thread(), False
    if hasattr(state, "key") and not hasattr(state, "actor"):
        with suppress(AttributeError, KeyError):  # the thread is none of Dask's; it has left already
            distributed.secede()
            has_left = True
    try:
        yield
    finally:
        if has_left and threading.current_thread() is thread:
            distributed.rejoin()
