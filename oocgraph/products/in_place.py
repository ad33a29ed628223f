"""PageRank in place: ranks are used as soon as they are made (Gauss-Seidel), so fewer sweeps are needed.

In: as for `oocgraph.products.ranking.Ranking`, which this stands for. Out: the same state, sweep by sweep.

The pieces of the edges, cut between rows, are `NUM_BLOCKS` blocks, one after the other. Within a piece a row reads what the rows before it
have become; of other pieces it reads what they were when the block began. So nothing depends on the number of threads. What isolated
vertices have depends on itself and on the ranks of vertices without out-edges alone: it is solved for. Then all ranks are scaled to a sum
of 1, without which a sweep gains nothing (a Kronecker graph of scale 16, to a change of 1e-5: 30 sweeps in place of 8). The scaling puts
components that are right already out again, so the first sweep, from ranks that are all the same, is a usual iteration.

Arasu, Novak, Tomkins, Tomlin, "PageRank Computation and the Structure of the Web", WWW 2002, section 4 (Gauss-Seidel). Differs from it in:
blocks, as above, and the scaling.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from oocgraph.engine.sweeps import RANGE_VERTICES, as_numbers
from oocgraph.kernels import pagerank as kernels
from oocgraph.memory import Budget, page_cache_bytes
from oocgraph.products.personalization import Personalization
from oocgraph.products.ranking import Jumps, RankState, check_finite, first_state, strength_of, vector_bytes
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.graph import CSRStore
from oocgraph.team import team_of
from oocgraph.types import Array

NUM_BLOCKS = 8
"""Blocks of a graph that has as many pieces. With 4, 16 or 64 sweeps were as many, or one more or fewer."""

RESCALE_SECONDS = 4e-9
"""About what a vertex takes to be scaled."""


class InPlaceRanking:
    """PageRank of a stored graph, sweep by sweep.

    Parameters
    ----------
    store, budget, damping, column, personalization, threads, open_edges
        As for `oocgraph.products.ranking.Ranking`.

    Attributes
    ----------
    state, edges, jumps
        As of `oocgraph.products.ranking.Ranking`; the change is an upper bound of it.

    Raises
    ------
    BudgetError
        Vectors and pieces do not fit.
    ArgumentError
        A weight is negative, NaN or infinite.
    """

    state: RankState

    def __init__(
        self, store: CSRStore, budget: Budget, *, damping: float, column: str | None, personalization: Personalization, threads: int,
        open_edges: Callable[..., EdgeStream] = EdgeStream,
    ) -> None:  # fmt: skip
        self._url, self._threads = store.url, threads
        self.jumps = Jumps(store.num_rows, damping, personalization, "double")
        budget.reserve("ranks", vector_bytes(store, column, num_floats=3))
        self._strength = strength_of(store, budget, column, threads)
        self.edges = open_edges(store, budget, transpose=True, column=column, threads=threads, keep_edges=True, whole_rows=True)
        self.edges.read_directly(page_cache_bytes(budget.limit_bytes))
        self._share, self._own_share = np.empty(store.num_rows), np.empty(store.num_rows)
        parts, n = self.edges.parts, store.num_rows
        starts = [part.first_line for part in parts] + [n]
        bounds = [starts[i * len(parts) // NUM_BLOCKS] for i in range(NUM_BLOCKS + 1)]
        self._blocks = [(a, z) for a, z in pairwise(bounds) if a < z]

    def begin(self, state: RankState | None = None) -> None:
        """Start from a state, of a checkpoint; by default from the same rank for every vertex."""
        if state is None:
            state = first_state(self.jumps, self._strength)
            state.rank = np.full(self._strength.size, 1 / max(1, self.jumps.personalization.num_ids))
        self.state = state
        self._rescale(1.0)

    def ranks(self) -> Array:
        """Return the ranks of the last iteration: (num_vertices,) float64 in store order, which the next one changes."""
        return self.state.rank

    def step(self) -> None:
        """Make the ranks of the next sweep."""
        before, dangling, in_place = self.state, self.state.dangling, self.state.iteration > 0
        scale = self.jumps.solved_scale(dangling) if in_place else self.jumps.scale(before)
        change = total = 0.0
        for block in self._blocks if in_place else [(0, before.rank.size)]:
            moved, made, lost = self._sweep(block, self.jumps.jump(scale), in_place=in_place)
            change, total, dangling = change + moved, total + made, dangling + lost
            scale = self.jumps.solved_scale(dangling) if in_place else scale
        factor = 1 / ((total + scale * self.jumps.isolated_teleport) or 1)
        change = factor * change + abs(factor - 1) + self.jumps.isolated_change(before, factor * scale)
        check_finite(self._url, change, before.iteration + 1)
        self.state = RankState(before.iteration + 1, before.rank, factor * scale, self._rescale(factor), change, single=False)

    def _sweep(self, block: tuple[int, int], jump: float, *, in_place: bool) -> tuple[float, float, float]:
        """Make the ranks of a range of vertices; returns what `oocgraph.kernels.pagerank.update_ranks` does."""
        rank, teleport, own = self.state.rank, self.jumps.personalization.by_vertex, slice(*block)

        def update(part: PartialCSR) -> tuple[float, float, float]:
            rows = slice(part.first_line, part.stop_line)
            found: tuple[float, float, float] = kernels.update_ranks(
                part.first_line, part.pointers, part.start, part.indices, as_numbers(part.values), self._share, self.jumps.damping, jump,
                None if teleport is None else teleport[rows], rank[rows], self._strength[rows], self._own_share[rows], in_place,
            )  # fmt: skip
            return found

        pieces = {i: None for i, part in enumerate(self.edges.parts) if block[0] <= part.first_line < block[1]}
        sums = np.array(self.edges.each(update, pieces)).reshape(-1, 3)
        self._share[own] = self._own_share[own]
        change, total, dangling = sums.sum(axis=0).tolist()
        return change, total, dangling

    def _rescale(self, factor: float) -> float:
        """Multiply all ranks by a factor, and make the shares of all; returns the sum of ranks without out-edges."""
        rank, n = self.state.rank, self.state.rank.size
        ranges = [(a, min(n, a + RANGE_VERTICES)) for a in range(0, n, RANGE_VERTICES)]
        with team_of(self._threads) as team:
            found = team.run(
                lambda one: kernels.rescale_ranks(rank, self._strength, self._share, self._own_share, factor, *one), ranges,
                RESCALE_SECONDS * n,
            )  # fmt: skip
        return float(np.sum(found))
