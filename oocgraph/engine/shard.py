"""A graph in memory, as far as it is: what searches see of it, on the processor and on a device.

A `Shard` owns vertices. Its pull adjacency has their rows, at local positions, with planes; its push adjacency has the rows of all
vertices, because a push reads those of the whole frontier and keeps the targets that the shard owns. The whole graph is the shard that
owns every vertex: then positions are store numbers, and one adjacency serves both ways unless the graph is directed. Both adjacencies
hold first edges; what is not held is in the files.

`oocgraph.engine.shard_plan` and `oocgraph.engine.device_load` make shards; they build no engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from oocgraph.exchange.shared_memory import SharedMemory
from oocgraph.kernels.rows import Planes
from oocgraph.store.arrays import StoredArray
from oocgraph.store.gather import EdgeFiles
from oocgraph.types import PAGE_BYTES, Array


@dataclass(slots=True)
class Adjacency:
    """One direction of the graph, as kernels take it.

    Attributes
    ----------
    stored
        ``indices`` on disk.
    lookup : RowLookup, or its like on a device
    heads : Planes
    resident
        The first edges.
    files
        Open chunk files; None when all edges are resident or the store is not plain local files.
    num_rows
        Rows that the lookup covers.
    share
        Their share of the edges.
    """

    stored: StoredArray
    lookup: Any
    heads: Planes
    resident: Array
    files: EdgeFiles | None
    num_rows: int
    share: float = 1.0

    @property
    def num_planes(self) -> int:
        """Planes resident."""
        return int(self.heads.length.size) - 1

    @property
    def num_edges(self) -> int:
        """Stored entries."""
        return self.stored.length

    @property
    def all_resident(self) -> bool:
        """Whether nothing has to be read, or moved."""
        return int(self.resident.size) == self.stored.length

    @property
    def page_bytes(self) -> int:
        """What is moved at least of the edges that are not resident."""
        return PAGE_BYTES

    @property
    def page_shift(self) -> int:
        """Binary logarithm of the edges in it."""
        return (self.page_bytes // self.stored.dtype.itemsize).bit_length() - 1

    @property
    def disk_pages(self) -> int:
        """Such pages of the rows' edges that are not resident."""
        return -int(-(self.stored.length - self.resident.size) * self.stored.dtype.itemsize * self.share // self.page_bytes)


A = TypeVar("A", bound=Adjacency)


@dataclass(slots=True)
class Shard(Generic[A]):
    """Both directions, by which plan they were loaded, and how long that took.

    Attributes
    ----------
    push, pull : Adjacency
        Of all vertices; of those owned.
    residency : oocgraph.plan.residency.Residency or oocgraph.plan.device_residency.DeviceResidency
        What is where.
    load_seconds : float
        Time to read it.
    planes : SharedMemory, optional
        Where the planes are, if others may map them.
    """

    push: A
    pull: A
    residency: Any
    load_seconds: float
    planes: SharedMemory | None = None

    @property
    def adjacencies(self) -> list[A]:
        """Both, or the one that serves both ways."""
        return [self.push] if self.pull is self.push else [self.push, self.pull]

    def close(self) -> None:
        """Close the files, and give back memory that others may map."""
        close_files(self.adjacencies)
        if self.planes is not None:
            self.planes.close()


def close_files(adjacencies: list[A]) -> None:
    """Close the files of some adjacencies, some of which may be the same."""
    for adjacency in adjacencies:
        if adjacency.files is not None:
            adjacency.files.close()
