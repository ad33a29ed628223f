"""The vectors of PageRank and one iteration of it: ranks in memory, edges visited piece by piece.

In: a store, a budget, what every vertex wants (personalization; by default 1 / N each). Out: `Ranking`, whose `step` makes the next ranks.
Every vertex pulls along its in-edges the shares of its in-neighbours: rank divided by the sum of the weights of the out-edges. Vertices
without edges need no vector: each has the same multiple of what it wants, which is one number.

**Precision.** Ranks and sums are float64. The shares, which are gathered from all over, may be float32: half the bytes, half the cache.
Their rounding, 6e-8 of each rank, is below a change of `SINGLE_CHANGE`; so early iterations of a large graph use them, and what follows is
float64, which also wipes out what the early ones left (each iteration shrinks an error by the damping).

**Order of sums.** A piece is always cut at the same edges and summed in the same way, and what pieces report is added in their order: ranks
do not depend on the number of threads, the budget, or whether the run was resumed, to the last bit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from oocgraph.errors import CorruptStoreError, OocGraphError
from oocgraph.kernels import load
from oocgraph.kernels import pagerank as kernels
from oocgraph.kernels.pagerank import CARRY_FIRST, CARRY_LAST, CHANGE, DANGLING, NUM_FIGURES
from oocgraph.memory import Budget, page_cache_bytes
from oocgraph.products.stored_pieces import StoredPieces
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.graph import CSRStore
from oocgraph.store.scipy import row_degrees
from oocgraph.types import Array

Precision = Literal["auto", "single", "double"]
"""Of shares: by the size of the graph and the change, float32, float64."""

SINGLE_CHANGE = 1e-6
"""Change of all ranks (their sum is 1) in an iteration down to which ``auto`` gathers float32: 16 times the most that its rounding can
change (on a Kronecker graph of scale 22 the ranks of 20 iterations in float32 differ by 1.7e-9, all together)."""

SINGLE_ROUNDING = 1.25 * 2.0**-23
"""What rounding, 2**-24 of each share in this iteration and in the last, and a quarter more, can add to a change. A change keeps `damping`
of itself, so float32 may go round in circles of this times damping / (1 - damping): 0.8e-6 for 0.85, 1.5e-5 for 0.99 (3e-6 was seen)."""

SINGLE_VERTICES = 1 << 17
"""Vertices up to which ``auto`` never gathers float32: 1 MiB of float64, which the second-level cache of a core holds anyway."""

CHECKED_ELEMENTS = 1 << 16
"""Elements looked at together, so that nothing of O(vertices) is made beside them."""


@dataclass(slots=True)
class RankState:
    """What one iteration hands to the next, and a checkpoint holds.

    Attributes
    ----------
    iteration : int
        Iterations done.
    rank : (num_vertices,) float64
        In store order.
    isolated_scale : float
        Multiple of what it wants that each isolated vertex has; NaN before the first iteration, when each has 1 / N.
    dangling : float
        Sum of the ranks of vertices that have edges, but none that leads out.
    change : float
        Sum of the absolute changes of all ranks in the last iteration; infinite before the first.
    single : bool
        Whether the next iteration gathers float32.
    """

    iteration: int
    rank: Array
    isolated_scale: float
    dangling: float
    change: float
    single: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What every vertex wants: the personalization, which sums up to 1.

    Attributes
    ----------
    num_ids, num_isolated : int
        Vertices, and those without edges.
    by_id : (num_ids,) float64, or None
        By input id; None: 1 / N each.
    by_vertex : (num_vertices,) float64, or None
        The same in store order.
    """

    num_ids: int
    num_isolated: int
    by_id: Array | None = None
    by_vertex: Array | None = None

    def of_isolated(self) -> float:
        """Sum over the isolated vertices."""
        if self.by_id is None or self.by_vertex is None:
            return self.num_isolated / max(1, self.num_ids)
        return max(0.0, float(self.by_id.sum()) - float(self.by_vertex.sum())) if self.num_isolated else 0.0

    def first_change(self, scale: float) -> float:
        """Change of isolated vertices from 1 / N each to `scale` times what they want."""
        if self.by_id is None or self.by_vertex is None:
            return abs(scale - 1) * self.of_isolated()
        sums = [
            sum(
                float(np.abs(scale * values[a : a + CHECKED_ELEMENTS] - 1 / self.num_ids).sum())
                for a in range(0, values.size, CHECKED_ELEMENTS)
            )
            for values in (self.by_id, self.by_vertex)
        ]
        return max(0.0, sums[0] - sums[1]) if self.num_isolated else 0.0


class Ranking:
    """PageRank of a stored graph, iteration by iteration.

    Parameters
    ----------
    store
        The graph.
    budget
        Charged with vectors and pieces before they are made.
    damping
        Probability of following an edge.
    column
        Edge column of the weights; None: all are one.
    wanted
        Personalization.
    threads, precision
        As for `oocgraph.pagerank`.

    Attributes
    ----------
    state : RankState
        What the last iteration made; `begin` sets it.
    edges : StoredPieces
        The in-edges.

    Raises
    ------
    BudgetError
        Vectors and pieces do not fit.
    OocGraphError
        A weight is negative, NaN or infinite.
    """

    state: RankState

    def __init__(
        self, store: CSRStore, budget: Budget, *, damping: float, column: str | None, wanted: Wanted, threads: int, precision: Precision
    ) -> None:
        n, self._store, self._damping, self._wanted, self._precision = store.num_vertices, store, damping, wanted, precision
        self._isolated_wanted = wanted.of_isolated()
        budget.reserve("ranks", _vector_bytes(store, column))
        self._strength = _sum_weights(store, budget, column, threads) if column else row_degrees(store, "out")
        self.edges = StoredPieces(store, budget, transpose=True, column=column, threads=threads, keep_edges=True)
        self.edges.read_directly(page_cache_bytes(budget.limit_bytes))
        self._buffers = [np.empty(n), np.empty(n)]
        self._cut = _CutRows(self.edges.parts)

    def begin(self, state: RankState | None = None) -> None:
        """Start from a state, of a checkpoint; by default from the same rank for every vertex."""
        n, num_ids = self._store.num_vertices, max(1, self._wanted.num_ids)
        if state is None:
            num_dangling = n - int(np.count_nonzero(self._strength))
            state = RankState(0, np.full(n, 1 / num_ids), np.nan, num_dangling / num_ids, np.inf, self._is_single(np.inf))
        self.state = state
        self._share = self._buffer(0, single=state.single)
        kernels.divide(state.rank, self._strength, self._share)

    def step(self) -> None:
        """Make the ranks of the next iteration."""
        before, wanted, rank, strength = self.state, self._wanted.by_vertex, self.state.rank, self._strength
        scale = self._damping * (before.dangling + self._isolated_rank()) + 1 - self._damping
        jump = scale if wanted is not None else scale / max(1, self._wanted.num_ids)
        single = self._is_single(before.change)
        share, new_share = self._share, self._buffer(1, single=single)

        def pull(part: PartialCSR) -> Array:
            figures = np.zeros(NUM_FIGURES)
            rows = slice(part.first_line, part.stop_line)
            kernels.pull_ranks(
                part.first_line_partial, part.pointers, part.start, part.stop, part.indices, _as_numbers(part.values), share, self._damping,
                jump, None if wanted is None else wanted[rows], rank[rows], strength[rows], new_share[rows], figures,
            )  # fmt: skip
            return figures

        figures, cut = np.array(self.edges.each(pull)), np.zeros(NUM_FIGURES)
        kernels.finish_rows(self._cut.rows, self._cut.totals(figures), self._damping, jump, wanted, rank, strength, new_share, cut)
        change, dangling = (float(figures[:, which].sum() + cut[which]) for which in (CHANGE, DANGLING))
        change += self._isolated_change(scale)
        if not np.isfinite(change):
            raise CorruptStoreError(
                f"{self._store.url}: ranks are not finite after iteration {before.iteration + 1}: weights of in-edges differ from those of "
                "out-edges; run `oocgraph check`, then restore the store or build it again"
            )
        self._buffers.reverse()
        self._share = new_share
        self.state = RankState(before.iteration + 1, rank, scale, dangling, change, single)

    @property
    def single_floor(self) -> float:
        """Change of all ranks that float32 may never come below."""
        return SINGLE_ROUNDING * self._damping / (1 - self._damping)

    def _isolated_rank(self) -> float:
        """Sum of the ranks of isolated vertices."""
        if np.isnan(self.state.isolated_scale):
            return self._wanted.num_isolated / max(1, self._wanted.num_ids)
        return self.state.isolated_scale * self._isolated_wanted

    def _isolated_change(self, scale: float) -> float:
        if np.isnan(self.state.isolated_scale):
            return self._wanted.first_change(scale)
        return abs(scale - self.state.isolated_scale) * self._isolated_wanted

    def _is_single(self, change: float) -> bool:
        if self._precision != "auto" or self._store.num_vertices <= SINGLE_VERTICES:
            return self._precision == "single"
        return change > max(SINGLE_CHANGE, self.single_floor)

    def _buffer(self, which: int, *, single: bool) -> Array:
        buffer = self._buffers[which]
        return buffer.view(np.float32)[: buffer.size] if single else buffer


class _CutRows:
    """Rows that two or more pieces share: where each piece reports what it has of them."""

    def __init__(self, parts: list[PartialCSR]) -> None:
        rows: list[int] = []
        places: list[tuple[int, int, int]] = []
        for i, after in enumerate(parts[1:]):
            if after.first_line_partial and (not rows or rows[-1] != after.first_line):
                rows.append(after.first_line)
                places.append((len(rows) - 1, i, CARRY_LAST))
            if after.first_line_partial:
                places.append((len(rows) - 1, i + 1, CARRY_FIRST))
        self.rows = np.array(rows, np.int64)
        self._row, self._part, self._figure = np.array(places, np.int64).reshape(-1, 3).T

    def totals(self, figures: Array) -> Array:
        """Sum of each row, from the figures of all pieces: (num_cut,) float64."""
        return np.bincount(self._row, weights=figures[self._part, self._figure], minlength=self.rows.size)


def charge_ranking(store: CSRStore, budget: Budget, *, column: str | None, threads: int) -> None:
    """Reserve what a `Ranking` holds, without edges that stay: in trial, so that a refusal names all of it."""
    budget.reserve("ranks", _vector_bytes(store, column))
    pieces = []
    for transpose in (True, False) if column else (True,):
        alone = Budget(sys.maxsize, baseline_bytes=0)
        StoredPieces(store, alone, transpose=transpose, column=column, threads=threads)
        pieces.append(alone.reserved_bytes)
    budget.reserve("pieces of edges", max(pieces))


def _vector_bytes(store: CSRStore, column: str | None) -> int:
    """Ranks, shares now and then, and of each vertex the sum of its weights, or its degree."""
    degree_bytes = 4 if store.attributes.num_stored_edges < 2**32 else 8
    return store.num_vertices * (8 + 2 * 8 + (8 if column else degree_bytes))


def _sum_weights(store: CSRStore, budget: Budget, column: str, threads: int) -> Array:
    """Sum of the weights of each vertex's out-edges: (num_vertices,) float64."""
    edges = StoredPieces(store, budget, transpose=False, column=column, threads=threads)
    strength = np.zeros(store.num_vertices)

    def add(part: PartialCSR) -> tuple[int, float]:
        carry, values = np.zeros(1), _as_numbers(part.values)
        own = strength[part.first_line : part.stop_line]
        bad = kernels.add_weights(part.first_line_partial, part.pointers, part.start, part.stop, values, own, carry)
        return (part.start + bad if bad >= 0 else -1), float(carry[0])

    for part, (bad, carry) in zip(edges.parts, edges.each(add), strict=True):
        if bad >= 0:
            value = store.array(f"out/{column}").read(bad, bad + 1)[0]
            raise OocGraphError(
                f"weight {bad:,} of {column} of {store.url} is {value}, but weights of PageRank are finite and not negative; "
                "choose another column with weights=, or weights=False to count each edge as 1"
            )
        if part.first_line_partial:
            strength[part.first_line] += carry
    if strength.size and not np.isfinite(strength.max()):
        raise OocGraphError(f"{column} of {store.url}: the weights of one vertex sum up to more than a float64 holds; scale them down")
    for name in ("pieces of edges", "page alignment"):
        budget.release(name)
    return strength


def _as_numbers(values: Any) -> Any:
    """Return values as kernels take them: bools as bytes."""
    return values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values


def load_kernels(store: CSRStore, column: str | None, *, personalized: bool, precision: Precision) -> None:
    """Bring the kernels into memory before memory is counted; a process of its own compiles what is not cached."""
    index, ints, number = np.zeros(1, store.index_dtype), np.zeros(2, np.int64), np.zeros(1)
    values = None if column is None else _as_numbers(np.zeros(1, store.array(f"out/{column}").dtype.newbyteorder("=")))
    degree = np.uint32 if store.attributes.num_stored_edges < 2**32 else np.int64
    strength = np.zeros(1, np.float64 if column else degree)
    wanted, figures = number.copy() if personalized else None, np.zeros(NUM_FIGURES)
    single, double = np.zeros(1, np.float32), np.zeros(1)
    if precision == "auto" and store.num_vertices <= SINGLE_VERTICES:
        precision = "double"
    pairs: list[tuple[Array, Array]] = [(double, double)] if precision != "single" else []
    pairs += [(single, single)] if precision != "double" else []
    pairs += [(single, double)] if precision == "auto" else []
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    for share, new_share in pairs:
        common = (0.85, 0.15, wanted, number, strength, new_share, figures)
        calls.append((kernels.divide, (number, strength, share)))
        calls.append((kernels.pull_ranks, (False, ints, 0, 0, index, values, share, *common)))
        calls.append((kernels.finish_rows, (ints, number, *common)))
    if values is not None:
        calls.append((kernels.add_weights, (False, ints, 0, 0, values, number, number)))
    load.load_kernels(calls)
