"""What shortest paths and operators return: the value of every vertex, and the vertex before it on the way that the value came.

In: values and parents in store order, and the vertex ids of the graph. Out: `SSSPResult` and `OperatorResult`, whose arrays are aligned
with every input id (`oocgraph.results.base`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from oocgraph.arrow import from_strings
from oocgraph.lazy import cached_property
from oocgraph.results.histogram import Histogram, in_parts, make_histogram
from oocgraph.results.join import named_after, places_among, values_at
from oocgraph.results.tree import TreeResult
from oocgraph.results.writer import ID
from oocgraph.store.columns import Ids, taken
from oocgraph.text import counted, format_number, named_sources, read_share
from oocgraph.types import UNREACHED, Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PathsResult(TreeResult):
    """Values that came along paths, under the user's vertex ids: the base of `SSSPResult` and `OperatorResult`.

    Parameters
    ----------
    stored_value : (num_vertices,) int32, int64 or float64
        In store order; `unreached` where none came.
    stored_parent : (num_vertices,) index dtype
        Store number of the vertex before; that of one that a path begins at is its own, of others that were not reached it is meaningless.
    unreached
        The value of vertices that were not reached.
    isolated
        Values of those ids that paths begin at and that have no edge.
    weight
        Edge column of the weights; None: all are one.
    schedule, slack
        Of the run: see `oocgraph.sssp` and `oocgraph.kernels.blocks.Rules`.
    num_relaxed, num_again
        Edges followed, and those of them whose vertex had been followed before with a worse value: a strict order would not do that.
    num_blocks_read, num_blocks
        Blocks of edges read, each as often as it was, and how many the graph has.
    seconds, idle_seconds, bytes_requested, bytes_read
        Time of the search, loading apart; the part of it for which a thread had nothing to do, on average, those included that read; bytes
        asked of the store's files; the larger of these and the bytes that the process has read from disks.
    device
        ``cpu``, or the GPU that the search ran on.
    device_memory_budget, device_bytes, link_bytes
        Bytes of device memory that the search was allowed, and held; bytes of edges brought to it meanwhile. 0 without a GPU.
    **others
        As of `oocgraph.results.base.VertexResult`.
    """

    metrics: ClassVar[tuple[str, ...]] = (
        "num_reached", "seconds", "idle_seconds", "schedule", "slack", "num_relaxed", "num_again", "num_blocks", "num_blocks_read",
        "bytes_read", "bytes_requested", "edge_bytes", "peak_host_bytes", "memory_budget", "load_seconds",
    )  # fmt: skip

    stored_value: Array
    stored_parent: Array
    unreached: Any
    isolated: Mapping[Any, Any] = field(default_factory=dict)
    weight: str | None = None
    schedule: str
    slack: int
    num_relaxed: int = 0
    num_again: int = 0
    num_blocks: int = 0
    num_blocks_read: int = 0
    seconds: float = 0.0
    idle_seconds: float = 0.0
    bytes_requested: int = 0
    bytes_read: int = 0
    device: str = "cpu"
    device_memory_budget: int = 0
    device_bytes: int = 0
    link_bytes: int = 0

    @property
    def columns(self) -> Mapping[str, str]:  # type: ignore[override]
        """See `VertexResult`: values are integers where those of the search are."""
        return {self.value_column: "int64" if self.stored_value.dtype.kind == "i" else "float64", "parent": ID}

    @property
    def no_value(self) -> Any:
        """What the user sees as the value of a vertex that was not reached."""
        return self.unreached

    @property
    def read_fraction(self) -> float:
        """Blocks read, of all blocks of the graph."""
        return self.num_blocks_read / self.num_blocks if self.num_blocks else 0.0

    @cached_property
    def num_reached(self) -> int:
        """Vertices that a path was found to, those included that paths begin at."""
        return int(np.count_nonzero(self.stored_value != self.unreached)) + len(self.isolated)

    @cached_property
    def isolated_ids(self) -> Array:
        """The ids in `isolated` as the graph has ids: int64, or object array of str."""
        return self.ids.parse(list(self.isolated))

    @cached_property
    def _lone(self) -> tuple[Ids, Array]:
        """The ids in `isolated` as blocks have ids, ascending, and their values."""
        order = np.argsort(self.isolated_ids)
        ids = self.isolated_ids[order]
        values = np.array(list(self.isolated.values()), self.dtype_of(self.value_column))[order]
        return (ids if self.ids.kind == "int64" else from_strings(ids)), values

    def _parents(self) -> Array:
        return self.stored_parent

    def _are_reached(self) -> Array:
        reached: Array = self.stored_value != self.unreached
        return reached

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain numbers, as the command line prints them; those of a GPU where there was one."""
        found = super().summary()
        if self.device_memory_budget:
            found |= {name: getattr(self, name) for name in ("device", "device_memory_budget", "device_bytes", "link_bytes")}
        return found

    def _run(self) -> str:
        share = f"on {self.device}" if self.device_memory_budget else read_share(self.read_fraction)
        return f"{super()._run()}, {share}"

    def _histogram(self, max_bins: int) -> Histogram:
        def parts() -> Iterator[Array]:
            yield np.array(list(self.isolated.values()), self.stored_value.dtype)
            for part in in_parts(self.stored_value):
                yield part[part != self.unreached]

        return make_histogram(parts, name=self.value_column, things="vertices", max_bins=max_bins)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        value = values_at(self.stored_value, numbers, self.unreached, self.stored_value.dtype)
        reached = value != self.unreached
        value = np.where(reached, value, self.no_value).astype(self.dtype_of(self.value_column), copy=False)
        own = np.empty(0, np.int64)
        if self.isolated and (lone := np.flatnonzero(numbers < 0)).size:
            ids, values = self._lone
            place = places_among(taken(vertices, lone), ids)
            own = lone[place >= 0]
            value[own] = values[place[place >= 0]]
        named = {"parent": self.stored_parent} if "parent" in columns else {}
        named |= {"origin": self.stored_origin} if "origin" in columns else {}
        after = {name: named_after(self.ids, stored, numbers, reached, vertices, own) for name, stored in named.items()}
        return {self.value_column: value, **after}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SSSPResult(PathsResult):
    """Shortest paths from one source, or from the nearest of several, under the user's vertex ids.

    Parameters
    ----------
    source
        The source, as the user gave it; several as a list.
    delta
        Width of a bucket.
    target, distance_limit, where, reverse
        As they were given.
    **others
        As of `PathsResult`: the values are distances.
    """

    algorithm = "sssp"
    value_column = "distance"
    metrics = (
        "source", "num_reached", "eccentricity", "seconds", "idle_seconds", "schedule", "delta", "slack", "num_relaxed", "num_again",
        "num_blocks", "num_blocks_read", "bytes_read", "bytes_requested", "edge_bytes", "peak_host_bytes", "memory_budget", "load_seconds",
    )  # fmt: skip
    answers = ("source", "num_reached", "eccentricity")

    options = ("target", "where", "reverse")

    weight: str
    source: Any
    delta: float
    target: Any = None
    distance_limit: Any = None
    where: str | None = None
    reverse: bool = False

    @property
    def no_value(self) -> Any:
        """See `PathsResult`: -1, or infinity."""
        return UNREACHED if self.stored_value.dtype.kind == "i" else np.inf

    def _answer(self) -> str:
        vertices, most = counted(self.ids.num_ids, "vertices"), format_number(self.eccentricity)
        return f" from {named_sources(self.source)}: {self.num_reached:,} of {vertices} reached, distance at most {most}"

    @cached_property
    def eccentricity(self) -> int | float:
        """Largest distance that was found."""
        reached = self.stored_value[self.stored_value != self.unreached]
        zero: int | float = 0 if self.stored_value.dtype.kind == "i" else 0.0
        return reached.max().item() if reached.size else zero

    @cached_property
    def distance(self) -> Any:
        """Distance of each of `vertices`: (num_ids,) int64, -1 where there is no path; float64 and infinity where weights are floats."""
        return self._joined("distance")

    def distance_of(self, ids: Any) -> Any:
        """Distance of one vertex, or of several; -1, or infinity where weights are floats, where there is no path.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("distance", ids)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OperatorResult(PathsResult):
    """What an operator has made of the values of all vertices, under the user's vertex ids.

    Parameters
    ----------
    operator
        Name of the operator.
    **others
        As of `PathsResult`.
    """

    algorithm = "operator"
    value_column = "value"
    metrics = ("operator", *PathsResult.metrics)
    answers = ("operator", "num_reached")

    operator: str

    def _answer(self) -> str:
        return f" of {self.operator!r}: {self.num_reached:,} of {counted(self.ids.num_ids, 'vertices')} have a value"

    @cached_property
    def value(self) -> Any:
        """Value of each of `vertices`: (num_ids,) int64 or float64; where none came, the worst that the dtype has."""
        return self._joined("value")

    def value_of(self, ids: Any) -> Any:
        """Value of one vertex, or of several; where none came, the worst that the dtype has.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("value", ids)
