"""What a breadth-first search returns: the search in store order, and the same under the user's ids.

In: a `Search` (store order) and the vertex ids of its graph. Out: `BFSResult`, whose `level` and `parent` are aligned with every input
id (`oocgraph.results.base`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from oocgraph.lazy import cached_property
from oocgraph.results.few import FewValues
from oocgraph.results.histogram import Histogram, in_parts, make_histogram
from oocgraph.results.join import Join
from oocgraph.results.search import Iteration, Search, WorkerMetrics, as_json, by_worker
from oocgraph.results.tree import TreeResult
from oocgraph.results.writer import ID
from oocgraph.store.columns import Ids
from oocgraph.text import counted, named_sources, read_share
from oocgraph.types import LEVEL_UNREACHED, UNREACHED, Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BFSResult(TreeResult):
    """A breadth-first search under the user's vertex ids.

    Parameters
    ----------
    search
        The traversal in store order.
    source
        Source as the user gave it: an id, or a list of ids.
    isolated_sources
        Those of the sources that have no edge.
    depth_limit, target, where, reverse
        As the search was given them.
    planes_resident
        Planes that were held in memory; of the GPU, if the search ran on one.
    device
        Where the search ran: ``cpu``, or the name of a GPU.
    device_reason
        Why there: as asked for, or what decided where the device was ``auto``.
    device_memory_budget, device_bytes
        Bytes of device memory that the search was allowed, and held; 0 without a GPU.
    partition
        Of a search over partitions: ``1d``, ``2d``, or the policy that made them; None of any other.
    num_partitions, setup_seconds
        Number of partitions; and the time it took to make them, where they were not there, and to load them.
    **others
        As of `oocgraph.results.base.VertexResult`.

    Notes
    -----
    `vertices`, `level` and `parent` are made when first asked for and kept; lookups, `path`, `reached` and `write` make none of them.
    """

    algorithm = "bfs"
    value_column = "level"
    columns = {"level": "int32", "parent": ID}
    metrics = (
        "source", "num_reached", "depth", "seconds", "teps", "device", "bytes_read", "bytes_requested", "edge_bytes", "read_fraction",
        "peak_host_bytes", "memory_budget", "planes_resident", "load_seconds",
    )  # fmt: skip
    answers = ("source", "num_reached", "depth")

    options = ("target", "where", "reverse")

    search: Search
    source: Any
    isolated_sources: Sequence[Any] = ()
    depth_limit: int | None = None
    target: Any = None
    where: str | None = None
    reverse: bool = False
    planes_resident: int = 0
    device: str = "cpu"
    device_reason: str = ""
    device_memory_budget: int = 0
    device_bytes: int = 0
    partition: str | None = None
    num_partitions: int = 0
    setup_seconds: float = 0.0

    def _answer(self) -> str:
        source, vertices = named_sources(self.source), counted(self.ids.num_ids, "vertices")
        return f" from {source}: {self.num_reached:,} of {vertices} reached, depth {self.depth:,}"

    def _run(self) -> str:
        return f"{super()._run()}, {self.teps / 1e6:,.1f} MTEPS, {read_share(self.read_fraction)}"

    @property
    def depth(self) -> int:
        """Largest level."""
        return self.search.depth

    @property
    def num_reached(self) -> int:
        """Reached vertices, sources included (an isolated source reaches itself)."""
        return self.search.num_reached + len(set(self.isolated_ids.tolist()))

    @cached_property
    def isolated_ids(self) -> Array:
        """`isolated_sources` as the graph has ids: int64, or object array of str."""
        return self.ids.parse(list(self.isolated_sources))

    @property
    def num_reached_edges(self) -> int:
        """Edges of the reached component: an undirected edge once, out-edges when directed."""
        return self.search.num_reached_edges

    @property
    def iterations(self) -> tuple[Iteration, ...]:
        """Metrics of each level; of neighbours together where there are more than 8,192 that are little work."""
        return self.search.iterations

    @property
    def link_bytes(self) -> int:
        """Bytes of edges that went over the link to a GPU."""
        return sum(one.device.link_bytes for one in self.iterations if one.device is not None)

    @property
    def exchanged_bytes(self) -> int:
        """Bytes of all messages between partitions (`oocgraph.partition.message_size`)."""
        return sum(kind.num_bytes for one in self.iterations for kind in one.exchanged)

    @property
    def num_messages(self) -> int:
        """Messages between partitions."""
        return sum(kind.num_messages for one in self.iterations for kind in one.exchanged)

    @cached_property
    def workers(self) -> dict[str, WorkerMetrics]:
        """Busy seconds, bytes read and bytes sent by each worker over the whole search; empty in process."""
        return by_worker(self.iterations)

    @property
    def seconds(self) -> float:
        """Seconds from the sources to parent and level in store order."""
        return self.search.seconds

    @property
    def teps(self) -> float:
        """Traversed edges per second: `num_reached_edges` / `seconds`."""
        return self.num_reached_edges / self.seconds if self.seconds > 0 else 0.0

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files."""
        return self.search.bytes_requested

    @property
    def bytes_read(self) -> int:
        """Return the larger of the bytes requested and the device bytes of the process."""
        return self.search.bytes_read

    @property
    def read_fraction(self) -> float:
        """`bytes_read` / `edge_bytes`; 0 of a graph without edges."""
        return self.bytes_read / self.edge_bytes if self.edge_bytes else 0.0

    @cached_property
    def level(self) -> Any:
        """Level of each of `vertices`: (num_ids,) int32, -1 where unreached."""
        return self._joined("level")

    def level_of(self, ids: Any) -> Any:
        """Level of one vertex (int) or several ((n,) int32); -1 where unreached.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("level", ids)

    @property
    def no_value(self) -> int:
        """See `TreeResult`."""
        return UNREACHED

    def _parents(self) -> Any:
        return self.search.parent

    def _are_reached(self) -> Array:
        level = np.asarray(self.search.level)
        reached: Array = level != (LEVEL_UNREACHED if level.dtype == np.uint8 else UNREACHED)
        return reached

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        found = self._join.values_of(columns, vertices, numbers)
        if "origin" in columns:
            found["origin"] = replace(self._join, parent=self.stored_origin).values_of(["parent"], vertices, numbers)["parent"]
        return found

    def vertices_per_level(self) -> Array:
        """Return the number of vertices of each level: (depth + 1,) int64."""
        return self._histogram(max(2, self.depth + 1)).counts

    def _histogram(self, max_bins: int) -> Histogram:
        def parts() -> Iterator[Array]:
            yield np.zeros(len(set(self.isolated_ids.tolist())), np.int64)
            level = self.search.level
            for part in in_parts(level.of_reached if isinstance(level, FewValues) else level):
                yield part[part != (LEVEL_UNREACHED if part.dtype == np.uint8 else UNREACHED)]

        return make_histogram(parts, name="level", things="vertices", max_bins=max_bins, may_grow=False)

    def _iterations(self) -> Sequence[Iteration]:
        return self.iterations

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain numbers, as the command line prints them, those of each worker and iteration included."""
        found = super().summary()
        if self.device_reason:
            found["device_reason"] = self.device_reason
        if self.device_memory_budget:
            found |= {name: getattr(self, name) for name in ("device_memory_budget", "device_bytes", "link_bytes")}
        if self.partition is not None:
            names = "partition", "num_partitions", "setup_seconds", "exchanged_bytes", "num_messages"
            found |= {name: getattr(self, name) for name in names}
        workers = {name: asdict(one) for name, one in self.workers.items()}
        threads = [asdict(one) for one in self.search.threads]
        return {**found, "thread_metrics": threads, "workers": workers, "iterations": as_json(self.iterations)}

    @cached_property
    def _join(self) -> Join:
        return Join(self.ids, self.search.level, self.search.parent, self.isolated_ids)
