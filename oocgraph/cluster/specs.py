"""What is sent to workers: which graph to load, which search to run. And what a worker says that does not hold what a task needs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from oocgraph.config import Settings
from oocgraph.engine.part import SearchOptions
from oocgraph.errors import ClusterError
from oocgraph.types import Array, DeviceKind


class StateLostError(ClusterError):
    """A worker was asked to go on with a search that it does not hold: it was restarted, or the step comes from an older epoch."""


class LeftError(StateLostError):
    """A task comes after its search or its client has left: its result is not needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSpec:
    """What a worker may use for its share of a computation.

    Attributes
    ----------
    settings
        The client's configuration.
    memory_budget
        Bytes of a worker, as asked for; None: as configured, or by its memory limit.
    threads
        Compute threads of a worker; None: as many as Dask gave it.
    check_pages
        Whether what is read of a store is compared with its checksums.
    device, device_memory_budget
        What to compute on, and bytes of its memory; as in `oocgraph.bfs`.
    device_sharers
        Workers that use the same device.
    beside_searches
        Whether an opened graph is computed on, whose searches hold memory of the device: what finds no room beside them is computed on
        the processor, whatever `device` says.
    """

    settings: Settings
    memory_budget: str | int | None = None
    threads: int | None = None
    check_pages: bool = False
    device: DeviceKind = "auto"
    device_memory_budget: str | int | None = None
    device_sharers: int = 1
    beside_searches: bool = False

    @property
    def requested_memory(self) -> str | int | None:
        """Bytes of a worker, as asked for or configured; None: by its memory limit."""
        return self.memory_budget if self.memory_budget is not None else self.settings.memory_budget

    def threads_on(self, worker: Any) -> int:
        """Return the number of compute threads of one of Dask's workers."""
        return self.threads or max(1, int(worker.state.nthreads))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSpec(WorkSpec):
    """What a worker loads.

    Attributes
    ----------
    url, fingerprint
        The store, and what its workers must all see there.
    num_partitions
        Into how many the vertices are divided.
    shares
        Edges that each should own, as parts of their sum; None: equal ones.
    max_planes
        As in `LocalRuntime.open`.
    """

    url: str
    fingerprint: str
    num_partitions: int
    shares: tuple[int, ...] | None = None
    max_planes: int | None = None

    @property
    def graph(self) -> tuple[str, int]:
        """Name of what is loaded, in tasks: what is held for the processor alone, with other shares, or checked, is another."""
        name = self.fingerprint if self.device != "cpu" else f"{self.fingerprint} on the processor"
        if self.shares is not None:
            name += f", shares {hashlib.sha256(repr(self.shares).encode()).hexdigest()[:16]}"
        return f"{name}, pages checked" if self.check_pages else name, self.num_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpec:
    """What a search is, sent with the first step of each epoch.

    Attributes
    ----------
    search, lease
        Its name, unique; and whose memory it uses.
    result_store
        Where logs and result are written.
    sources : (num_sources,) int64
        Store numbers.
    options
        Direction and depth.
    epoch
        How often the search has been placed on workers again.
    last_step
        Last step that every partition has logged; -1 at the start.
    """

    search: str
    lease: str
    result_store: str
    sources: Array
    options: SearchOptions
    epoch: int
    last_step: int
