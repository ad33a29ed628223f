"""What PageRank returns: ranks in store order, and the same under the user's ids.

In: ranks of the vertices that have edges, what isolated ones have, and the vertex ids of the graph. Out: `PageRankResult`, whose `rank` is
aligned with every input id (`oocgraph.results.base`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from oocgraph.arguments import check_whole
from oocgraph.errors import StoreError
from oocgraph.lazy import cached_property
from oocgraph.results.base import VertexResult
from oocgraph.results.histogram import Histogram, make_histogram, with_others
from oocgraph.results.join import values_at
from oocgraph.store.columns import Ids
from oocgraph.text import counted, format_number
from oocgraph.types import Array


@dataclass(frozen=True, slots=True)
class RankIteration:
    """Metrics of one iteration.

    Attributes
    ----------
    iteration : int
        From 1.
    change : float
        Sum of the absolute changes of all ranks.
    seconds : float
    bytes_requested, bytes_read : int
        Asked of the store's files; the larger of that and the device bytes of the process.
    precision : str
        Of the shares that were gathered: ``single`` or ``double``.
    """

    iteration: int
    change: float
    seconds: float
    bytes_requested: int
    bytes_read: int
    precision: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PageRankResult(VertexResult):
    """PageRank under the user's vertex ids.

    Parameters
    ----------
    stored_rank : (num_vertices,) float64
        In store order.
    isolated_scale
        Multiple of its personalization that a vertex without edges has.
    personalization : (num_ids,) float64, or None
        Personalization by input id, of sum 1; None: 1 / N each.
    damping, tol, weights
        As given; of `weights` the column, or None.
    iterations
        Iterations done, those before a checkpoint included.
    converged
        Whether the last change was below the tolerance.
    change
        Sum of the absolute changes of all ranks in the last iteration.
    steps
        Metrics of the iterations of this call.
    kept_bytes
        Those of `edge_bytes` (the neighbours and weights that one iteration visits) that stayed in memory.
    **others
        As of `oocgraph.results.base.VertexResult`.

    Notes
    -----
    `vertices` and `rank` are made when first asked for and kept; `rank_of`, `top` and `write` make none of them.
    """

    algorithm = "pagerank"
    columns = {"rank": "float64"}
    metrics = (
        "damping", "tol", "weights", "iterations", "converged", "change", "seconds", "bytes_read", "bytes_requested", "edge_bytes",
        "kept_bytes", "peak_host_bytes", "memory_budget", "load_seconds",
    )  # fmt: skip
    answers = ("highest", "iterations", "converged")

    stored_rank: Array
    isolated_scale: float
    personalization: Array | None = None
    damping: float
    tol: float
    weights: str | None
    iterations: int
    converged: bool
    change: float
    steps: tuple[RankIteration, ...]
    kept_bytes: int = 0

    def _answer(self) -> str:
        return f" of {counted(self.ids.num_ids, 'vertices')}{', highest: ' + self.highest if self.highest else ''}"

    def _run(self) -> str:
        return f"{counted(self.iterations, 'iterations')}, {'converged' if self.converged else 'not converged'}, {super()._run()}"

    @property
    def highest(self) -> str:
        """The three vertices that rank highest, and their ranks, as text; empty where ids cannot be read any more."""
        with suppress(StoreError):
            return ", ".join(f"{vertex!r} ({format_number(rank)})" for vertex, rank in self.top(3))
        return ""

    @property
    def seconds(self) -> float:
        """Seconds of the iterations of this call."""
        return sum(one.seconds for one in self.steps)

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files by the iterations."""
        return sum(one.bytes_requested for one in self.steps)

    @property
    def bytes_read(self) -> int:
        """Return the larger of the bytes requested and the device bytes of the process."""
        return sum(one.bytes_read for one in self.steps)

    @cached_property
    def rank(self) -> Any:
        """Rank of each of `vertices`: (num_ids,) float64, of sum 1."""
        return self._joined("rank")

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        return {"rank": self._ranks(numbers, np.arange(start, start + numbers.size))}

    def _ranks(self, numbers: Array, positions: Array) -> Array:
        """Return the ranks of vertices given by store number and by position among all ids."""
        isolated = numbers < 0
        teleport = 1 / self.ids.num_ids if self.personalization is None else self.personalization[positions[isolated]]
        ranks = values_at(self.stored_rank, numbers, 0, np.float64)
        ranks[isolated] = self.isolated_scale * teleport
        return ranks

    def _values_at(self, columns: Sequence[str], given: Any) -> dict[str, Array]:
        numbers = self.ids.vertices_of(given)
        if self.personalization is None or not (numbers < 0).any():
            return super()._values_at(columns, given)
        return {"rank": self._ranks(numbers, self.ids.positions_of(given))}

    def rank_of(self, ids: Any) -> Any:
        """Rank of one vertex (float) or several ((n,) float64).

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        return self._look_up("rank", ids)

    def top(self, count: int = 10) -> list[tuple[Any, float]]:
        """Ids and ranks of the vertices that rank highest, in descending order; of equals, the smaller id first.

        Raises
        ------
        ArgumentError
            `count` is no whole number, or negative.
        """
        if (most := check_whole("count", count, least=0)) not in self._tops:
            self._tops[most] = self._top("rank", most)
        return self._tops[most]

    def _histogram(self, max_bins: int) -> Histogram:
        if self.personalization is not None:  # isolated vertices have ranks of their own
            return super()._histogram(max_bins)
        parts = with_others(self.stored_rank, self.isolated_scale / max(1, self.ids.num_ids), self.ids.num_ids)
        return make_histogram(parts, name="rank", things="vertices", max_bins=max_bins)

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain numbers, as the command line prints them, those of each iteration included."""
        return {**super().summary(), "steps": [asdict(one) for one in self.steps]}

    @cached_property
    def _tops(self) -> dict[int, list[tuple[Any, float]]]:
        return {}
