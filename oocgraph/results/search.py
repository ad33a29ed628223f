"""One traversal in store order: its arrays, and metrics of its iterations, for each part of the work.

In: measurements of a runtime. Out: `Search`, `Iteration` and `PartMetrics`, and sums of them by worker. A search of a road-like
graph has hundreds of thousands of iterations, so an iteration is a tuple of plain numbers and sums are made when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from typing import Any, TypeAlias

from oocgraph.types import Array

StoreOrdered: TypeAlias = Any
"""(num_vertices,) values in store order: a NumPy array, or what reads only the values that it is indexed with
(`oocgraph.results.store_order.StoreOrder`)."""


@dataclass(frozen=True, slots=True)
class PartMetrics:
    """Metrics of one partition in one iteration.

    Attributes
    ----------
    partition
        Number of the partition.
    worker
        Name of the worker that held it at the time.
    direction
        ``push`` or ``pull``, as carried out.
    seconds
        Time for which the worker was busy with it, without waiting for other parts.
    bytes_read
        Bytes requested from the store's files.
    sent_bytes
        Bytes that its part of the new frontier costs to send to the other workers.
    num_found
        Vertices it found.
    link_bytes
        Bytes of edges that went over the link to the worker's GPU.
    idle_seconds
        Time from its end to the last message of the others, where these come through shared memory: also that in which it took over work.
    """

    partition: int
    worker: str
    direction: str
    seconds: float
    bytes_read: int
    sent_bytes: int
    num_found: int
    link_bytes: int = 0
    idle_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DeviceMetrics:
    """Metrics of a GPU in one iteration; seconds are those of the device's own events, except `read_seconds`.

    Attributes
    ----------
    access
        ``resident``, ``zero-copy`` or ``gather``: how edges that are not in device memory were taken, and why.
    link_bytes
        Bytes of edges over the link: those staged, and lines of 128 bytes read in host memory.
    num_batches, num_pieces
        Batches of rows that were asked for; staging buffers filled.
    read_seconds
        Time in which host threads gathered (their clock).
    copy_seconds, kernel_seconds, span_seconds, idle_seconds
        Copies; the kernels that consumed them; from the first to the last of both; the part of it in which neither ran.
    """

    access: str
    link_bytes: int = 0
    num_batches: int = 0
    num_pieces: int = 0
    read_seconds: float = 0.0
    copy_seconds: float = 0.0
    kernel_seconds: float = 0.0
    span_seconds: float = 0.0
    idle_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Messages of one kind between the parts of a partitioned graph: see `oocgraph.partition.message_size`.

    Attributes
    ----------
    kind
        ``gather``, ``broadcast`` or ``all-to-all``.
    num_bytes, num_messages
        Sent by all parts.
    """

    kind: str
    num_bytes: int
    num_messages: int


@dataclass(frozen=True, slots=True)
class Iteration:
    """Metrics of one level; of a search of more than 8,192 levels that are little work of several, whose numbers are summed.

    Attributes
    ----------
    level
        Level of the vertices that this iteration finds; the last one of several.
    direction
        ``push`` or ``pull``, as carried out.
    reason
        Why, with the numbers compared.
    frontier
        Active vertices at its start.
    undecided
        Vertices that the resident planes left undecided (pull), whose tails had to be looked at; 0 in a push.
    seconds
        Wall time.
    bytes_read
        Bytes requested from the store's files.
    parts
        Metrics of each partition; empty in process.
    device
        Metrics of the GPU; None without one.
    exchanged
        Messages of a traversal over 1D, 2D or other partitions, by kind; empty without.
    """

    level: int
    direction: str
    reason: str
    frontier: int
    undecided: int
    seconds: float
    bytes_read: int
    parts: tuple[PartMetrics, ...] = ()
    device: DeviceMetrics | None = None
    exchanged: tuple[Exchanged, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """Metrics of one worker, summed over its partitions.

    Attributes
    ----------
    partitions
        Partitions it held at any time, ascending.
    busy_seconds, bytes_read, sent_bytes, num_found
        Sums of its `PartMetrics`.
    """

    partitions: tuple[int, ...]
    busy_seconds: float
    bytes_read: int
    sent_bytes: int
    num_found: int


@dataclass(frozen=True, slots=True)
class ThreadMetrics:
    """Metrics of one compute thread of a search in process: of the work that threads shared.

    Attributes
    ----------
    busy_seconds, idle_seconds
        At work; with nothing to do until the others had done theirs.
    num_stolen
        Ranges of pieces that it took from others.
    """

    busy_seconds: float
    idle_seconds: float
    num_stolen: int


@dataclass(frozen=True, slots=True)
class Search:
    """One traversal in store order (vertices as the store numbers them).

    Attributes
    ----------
    sources : (num_sources,) int64
        Store numbers of the sources; empty when all sources are isolated.
    parent : (num_vertices,) index dtype
        ``no_parent(dtype)`` where unreached; a source is its own parent.
    level : (num_vertices,) uint8 or int32
        `LEVEL_UNREACHED` (255) where unreached when uint8, -1 when int32.
    num_reached
        Reached vertices that have an edge.
    num_reached_edges
        Edges of the reached component as TEPS counts them.
    depth
        Largest level.
    seconds
        From the sources to parent and level in store order, in host memory.
    results_seconds
        Part of `seconds` spent copying results from a device; about 0 on the processor.
    bytes_requested, bytes_read
        Bytes asked of the store's files; the larger of that and the device's bytes.
    iterations : tuple of Iteration
    threads : tuple of ThreadMetrics
        Of the process; empty where threads shared no work.
    """

    sources: Array
    parent: StoreOrdered
    level: StoreOrdered
    num_reached: int
    num_reached_edges: int
    depth: int
    seconds: float
    bytes_requested: int
    bytes_read: int
    iterations: tuple[Iteration, ...]
    threads: tuple[ThreadMetrics, ...] = ()
    results_seconds: float = 0.0


def by_worker(iterations: Iterable[Iteration]) -> dict[str, WorkerMetrics]:
    """Sum the parts of some iterations by worker, in the order of each worker's first partition.

    Examples
    --------
    >>> parts = PartMetrics(0, "a", "push", 0.5, 10, 3, 1), PartMetrics(1, "b", "push", 0.25, 20, 4, 2)
    >>> by_worker([Iteration(1, "push", "", 1, 0, 0.5, 30, parts=parts)] * 2)["b"]
    WorkerMetrics(partitions=(1,), busy_seconds=0.5, bytes_read=40, sent_bytes=8, num_found=4)
    """
    held: dict[str, set[int]] = {}
    sums: dict[str, list[Any]] = {}
    for iteration in iterations:
        for part in iteration.parts:
            total = sums.setdefault(part.worker, [0.0, 0, 0, 0])
            held.setdefault(part.worker, set()).add(part.partition)
            total[0] += part.seconds
            total[1] += part.bytes_read
            total[2] += part.sent_bytes
            total[3] += part.num_found
    workers = sorted(sums, key=lambda worker: (min(held[worker]), worker))
    return {worker: WorkerMetrics(tuple(sorted(held[worker])), *sums[worker]) for worker in workers}


def as_json(iterations: Iterable[Iteration]) -> list[dict[str, Any]]:
    """Return iterations as plain values (`dataclasses.asdict` copies each number: 4.7 s for 600,000 levels, this 1.5 s)."""
    out = []
    for iteration in iterations:
        values = dict(zip(_ITERATION, _iteration_values(iteration), strict=True))
        values["parts"] = [dict(zip(_PART, _part_values(part), strict=True)) for part in iteration.parts]
        values["device"] = None if iteration.device is None else asdict(iteration.device)
        values["exchanged"] = [asdict(one) for one in iteration.exchanged]
        out.append(values)
    return out


_ITERATION, _PART = (tuple(field.name for field in fields(kind)) for kind in (Iteration, PartMetrics))
_iteration_values, _part_values = attrgetter(*_ITERATION), attrgetter(*_PART)
