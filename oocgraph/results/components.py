"""What connected components return: the component of every vertex, named after its vertex with the smallest id.

In: of each vertex with edges the one that its component is named after, and the vertex ids of the graph. Out: `ComponentsResult`, whose
`component` is aligned with every input id (`oocgraph.results.base`); a vertex without edges is a component of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oocgraph.lazy import cached_property
from oocgraph.results.base import VertexResult
from oocgraph.results.histogram import Histogram, make_histogram, sizes_of_groups
from oocgraph.results.writer import ID
from oocgraph.store.columns import Ids
from oocgraph.text import counted
from oocgraph.types import Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ComponentsResult(VertexResult):
    """Connected components under the user's vertex ids.

    Parameters
    ----------
    stored_component : (num_vertices,) index dtype
        In store order: store number of the vertex that the component is named after.
    num_linked
        Components of vertices that have edges.
    seconds, bytes_requested, bytes_read
        Time of finding them, loading apart; bytes asked of the store's files, planes included; the larger of these and the device
        bytes of the process.
    plane_bytes
        Bytes of the planes that were read.
    exchange
        What workers of a cluster had trees in, or sent them through, and why; empty: there were none.
    where
        Condition that edges met.
    **others
        As of `oocgraph.results.base.VertexResult`.
    """

    algorithm = "components"
    columns = {"component": ID}
    metrics = (
        "num_components", "seconds", "bytes_read", "bytes_requested", "plane_bytes", "edge_bytes", "peak_host_bytes", "memory_budget",
        "load_seconds",
    )  # fmt: skip
    answers = ("num_components",)

    options = ("where",)

    stored_component: Array
    num_linked: int
    seconds: float
    bytes_requested: int
    bytes_read: int
    plane_bytes: int
    exchange: str = ""
    where: str | None = None

    def _answer(self) -> str:
        return f": {counted(self.num_components, 'components')} of {counted(self.ids.num_ids, 'vertices')}"

    def summary(self) -> dict[str, Any]:
        """See `VertexResult.summary`; of a cluster's also ``exchange``."""
        return super().summary() | ({"exchange": self.exchange} if self.exchange else {})

    @property
    def num_components(self) -> int:
        """Components, those of isolated vertices included."""
        return self.num_linked + self.ids.num_ids - int(self.stored_component.size)

    @cached_property
    def component(self) -> Any:
        """Smallest id of the component of each of `vertices`: (num_ids,) int64, or object array of str."""
        return self._joined("component")

    def component_of(self, ids: Any) -> Any:
        """Smallest id of the component of one vertex, or of several.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("component", ids)

    def top(self, count: int = 10) -> list[tuple[Any, int]]:
        """Names and numbers of vertices of the largest components; of equals, the smaller id first. Holds 4 bytes a vertex.

        Raises
        ------
        ArgumentError
            `count` is no whole number, or negative.
        """
        return self._top_groups(self.stored_component, count)

    def _histogram(self, max_bins: int) -> Histogram:
        sizes = sizes_of_groups(self.stored_component, self.ids.num_ids - self.stored_component.size)
        return make_histogram(sizes, name="size", things="components", max_bins=max_bins)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        return {"component": self._named(self.stored_component, vertices, numbers)}
