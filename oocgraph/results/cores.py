"""What core numbers return: the core number of every vertex.

In: core numbers in store order, the order in which vertices were removed, and the vertex ids of the graph. Out: `CoreResult`, whose
`core_number` is aligned with every input id (`oocgraph.results.base`); that of a vertex without edges is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.lazy import cached_property
from oocgraph.results.base import VertexResult
from oocgraph.results.histogram import Histogram, make_histogram, with_others
from oocgraph.results.join import values_at
from oocgraph.store.columns import Ids
from oocgraph.text import counted, read_share
from oocgraph.types import Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CoreResult(VertexResult):
    """Core numbers under the user's vertex ids.

    Parameters
    ----------
    stored_core_number : (num_vertices,) int32 or int64
        In store order.
    stored_rank : (num_vertices,) index dtype
        In store order: how many vertices were removed before. No vertex has more edges to such of a higher rank than its core number.
    schedule
        Of the run: see `oocgraph.core_numbers`.
    num_blocks_read, num_blocks
        Blocks of edges read, each as often as it was, and how many the graph has.
    seconds, idle_seconds, bytes_requested, bytes_read
        Time of finding them, loading apart; the part of it for which a thread had nothing to do, on average, those included that read;
        bytes asked of the store's files; the larger of these and the device bytes of the process.
    **others
        As of `oocgraph.results.base.VertexResult`.
    """

    algorithm = "cores"
    columns = {"core_number": "int64"}
    metrics = (
        "degeneracy", "seconds", "idle_seconds", "schedule", "num_blocks", "num_blocks_read", "bytes_read", "bytes_requested", "edge_bytes",
        "peak_host_bytes", "memory_budget", "load_seconds",
    )  # fmt: skip
    answers = ("degeneracy",)

    stored_core_number: Array
    stored_rank: Array
    schedule: str
    num_blocks: int
    num_blocks_read: int
    seconds: float
    idle_seconds: float
    bytes_requested: int
    bytes_read: int

    def _answer(self) -> str:
        return f": largest core number {self.degeneracy:,}, of {counted(self.ids.num_ids, 'vertices')}"

    def _run(self) -> str:
        return f"{super()._run()}, {read_share(self.read_fraction)}"

    @property
    def read_fraction(self) -> float:
        """Blocks read, of all blocks of the graph."""
        return self.num_blocks_read / self.num_blocks if self.num_blocks else 0.0

    @cached_property
    def degeneracy(self) -> int:
        """Largest core number."""
        return int(self.stored_core_number.max(initial=0))

    @cached_property
    def core_number(self) -> Any:
        """Core number of each of `vertices`: (num_ids,) int64."""
        return self._joined("core_number")

    def core_number_of(self, ids: Any) -> Any:
        """Core number of one vertex, or of several.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("core_number", ids)

    def _histogram(self, max_bins: int) -> Histogram:
        parts = with_others(self.stored_core_number, 0, self.ids.num_ids)
        return make_histogram(parts, name="core number", things="vertices", max_bins=max_bins)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        return {"core_number": values_at(self.stored_core_number, numbers, 0, np.int64)}
