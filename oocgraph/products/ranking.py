"""The vectors of PageRank and one iteration of it: ranks in memory, edges visited piece by piece.

In: a store, a budget, a personalization (by default 1 / N each). Out: `Ranking`, whose `step` makes the next ranks.
Every vertex pulls along its in-edges the shares of its in-neighbours: rank divided by the sum of the weights of the out-edges. Vertices
without edges need no vector: each has the same multiple of its teleport probability, which is one number.

**Precision.** Ranks and sums are float64. The shares, which are gathered from all over, may be float32: half the bytes, half the cache.
Their rounding, 6e-8 of each rank, is below a change of `SINGLE_CHANGE`; so early iterations of a large graph use them, and what follows is
float64, which also wipes out what the early ones left (each iteration shrinks an error by the damping).

**Order of sums.** A piece is always cut at the same edges and summed in the same way, and what pieces report is added in their order: ranks
do not depend on the number of threads, the budget, or whether the run was resumed, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.compiled import load
from oocgraph.compiled.load import Call
from oocgraph.engine.sweeps import as_numbers
from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.kernels import pagerank as kernels
from oocgraph.kernels.pagerank import CARRY_FIRST, CARRY_LAST, CHANGE, DANGLING, NUM_SUMS
from oocgraph.memory import Budget, page_cache_bytes
from oocgraph.products.personalization import Personalization
from oocgraph.sparse.edge_stream import EdgeStream, pieces_bytes
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.graph import CSRStore
from oocgraph.store.scipy import row_degrees
from oocgraph.types import Array, Precision

SINGLE_CHANGE = 1e-6
"""Change of all ranks (their sum is 1) in an iteration down to which ``auto`` gathers float32: 16 times the most that its rounding can
change (on a Kronecker graph of scale 22 the ranks of 20 iterations in float32 differ by 1.7e-9, all together)."""

SINGLE_ROUNDING = 1.25 * 2.0**-23
"""What rounding, 2**-24 of each share in this iteration and in the last, and a quarter more, can add to a change. A change keeps `damping`
of itself, so float32 may go round in circles of this times damping / (1 - damping): 0.8e-6 for 0.85, 1.5e-5 for 0.99 (3e-6 was seen)."""

SINGLE_VERTICES = 1 << 17
"""Vertices up to which ``auto`` never gathers float32: 1 MiB of float64, which the second-level cache of a core holds anyway."""

SINGLE_STRENGTHS = 1e-30, 1e20
"""Sums of weights between which float32 holds shares, which are ranks by these, from 1e-15 to 1: others may be lost, or infinite."""

STRENGTH_BLOCK = 1 << 20
"""Sums of weights that are looked at at a time."""


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
        Multiple of its teleport probability that each isolated vertex has; NaN before the first iteration, when each has 1 / N.
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


class Jumps:
    """The part of an iteration that is one number for all vertices: where walks start again, and what isolated vertices have.

    Parameters
    ----------
    num_vertices
        That have edges.
    damping
        Probability of following an edge.
    personalization
        Personalization.
    precision
        Of shares; see `Precision`.

    Attributes
    ----------
    isolated_teleport : float
        Sum of the teleport probabilities of isolated vertices.
    """

    def __init__(self, num_vertices: int, damping: float, personalization: Personalization, precision: Precision) -> None:
        self._num_vertices, self.damping, self.personalization, self._precision = num_vertices, damping, personalization, precision
        self.isolated_teleport = personalization.of_isolated()

    def scale(self, state: RankState) -> float:
        """Multiple of its teleport probability that every vertex gets in the next iteration, whatever its neighbours."""
        isolated = self.personalization.num_isolated / max(1, self.personalization.num_ids)
        if not np.isnan(state.isolated_scale):
            isolated = state.isolated_scale * self.isolated_teleport
        return self.damping * (state.dangling + isolated) + 1 - self.damping

    def solved_scale(self, dangling: float) -> float:
        """Return the same if isolated vertices have what that makes of theirs, and ranks sum to 1."""
        return (self.damping * dangling + 1 - self.damping) / (1 - self.damping * self.isolated_teleport)

    def jump(self, scale: float) -> float:
        """Return the scale as kernels take it: times a vertex' own probability, where those are given; or what each gets."""
        return scale if self.personalization.by_vertex is not None else scale / max(1, self.personalization.num_ids)

    def isolated_change(self, state: RankState, scale: float) -> float:
        """Sum of the changes of isolated vertices in the iteration that makes theirs `scale`."""
        if np.isnan(state.isolated_scale):
            return self.personalization.first_change(scale)
        return abs(scale - state.isolated_scale) * self.isolated_teleport

    def is_single(self, change: float) -> bool:
        """Whether float32 shares do after such a change."""
        if self._precision != "auto" or self._num_vertices <= SINGLE_VERTICES:
            return self._precision == "single"
        return change > max(SINGLE_CHANGE, single_floor(self.damping))


class RankRows:
    """In-edges of a range of vertices, which pull the shares of all.

    Parameters
    ----------
    store, column, threads
        As for `oocgraph.pagerank`.
    budget
        Charged with pieces of edges before they are made.
    jumps
        What is one number for all.
    strength : (num_vertices,) float64 or integers
        Sum of the weights of each vertex's out-edges.
    entries
        Range of the in-edges, whole rows; by default all.
    open_edges
        Called as `EdgeStream` is.

    Attributes
    ----------
    edges : EdgeStream
        The in-edges.
    rows : slice
        The vertices.
    """

    def __init__(
        self, store: CSRStore, budget: Budget, *, jumps: Jumps, column: str | None, strength: Array, threads: int,
        entries: tuple[int, int] | None = None, open_edges: Callable[..., EdgeStream] = EdgeStream,
    ) -> None:  # fmt: skip
        self._url, self._jumps = store.url, jumps
        options: dict[str, Any] = {} if entries is None else {"entries": entries}
        self.edges = open_edges(store, budget, transpose=True, column=column, threads=threads, keep_edges=True, **options)
        self.rows = slice(self.edges.part.first_line, self.edges.part.stop_line)
        self._strength = strength[self.rows]
        self._teleport = None if jumps.personalization.by_vertex is None else jumps.personalization.by_vertex[self.rows]
        self._cut = _CutRows(self.edges.parts)

    def pull(self, share: Array, rank: Array, new_share: Array, jump: float) -> tuple[float, float]:
        """Make the ranks of an iteration.

        Parameters
        ----------
        share : (num_vertices,) float32 or float64
            Of all vertices, of the iteration before.
        rank, new_share : (num_rows,) float64; float32 or float64
            Of these vertices: changed; written.
        jump
            See `Jumps.jump`.

        Returns
        -------
        change, dangling : float
            Sum of the absolute changes of the ranks; sum of the ranks of vertices without out-edges.
        """
        first, damping, teleport, strength = self.rows.start, self._jumps.damping, self._teleport, self._strength

        def pull(part: PartialCSR) -> Array:
            sums = np.zeros(NUM_SUMS)
            rows = slice(part.first_line - first, part.stop_line - first)
            kernels.pull_ranks(
                part.first_line_partial, part.pointers, part.start, part.stop, part.indices, as_numbers(part.values), share, damping,
                jump, None if teleport is None else teleport[rows], rank[rows], strength[rows], new_share[rows], sums,
            )  # fmt: skip
            return sums

        sums, cut = np.array(self.edges.each(pull)), np.zeros(NUM_SUMS)
        kernels.finish_rows(self._cut.rows - first, self._cut.totals(sums), damping, jump, teleport, rank, strength, new_share, cut)
        change, dangling = (float(sums[:, which].sum() + cut[which]) for which in (CHANGE, DANGLING))
        return change, dangling

    def check(self, change: float, iteration: int) -> None:
        """Refuse ranks that are not finite."""
        check_finite(self._url, change, iteration)


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
    personalization
        Personalization.
    threads, precision
        As for `oocgraph.pagerank`.
    open_edges
        Called as `EdgeStream` is.

    Attributes
    ----------
    state : RankState
        What the last iteration made; `begin` sets it.
    edges : EdgeStream
        The in-edges.
    jumps : Jumps
        What is one number for all vertices.

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
        precision: Precision, open_edges: Callable[..., EdgeStream] = EdgeStream,
    ) -> None:  # fmt: skip
        budget.reserve("ranks", vector_bytes(store, column, num_floats=3))
        self._strength = strength_of(store, budget, column, threads)
        self.jumps = Jumps(store.num_rows, damping, personalization, precision_for(self._strength, precision))
        self._rows = RankRows(
            store, budget, jumps=self.jumps, column=column, strength=self._strength, threads=threads, open_edges=open_edges
        )  # fmt: skip
        self.edges = self._rows.edges
        self.edges.read_directly(page_cache_bytes(budget.limit_bytes))
        self._buffers = [np.empty(store.num_rows), np.empty(store.num_rows)]

    def begin(self, state: RankState | None = None) -> None:
        """Start from a state, of a checkpoint; by default from the same rank for every vertex."""
        if state is None:
            state = first_state(self.jumps, self._strength)
            state.rank = np.full(self._strength.size, 1 / max(1, self.jumps.personalization.num_ids))
        self.state = state
        self._share = in_precision(self._buffers[0], single=state.single)
        kernels.divide(state.rank, self._strength, self._share)

    def ranks(self) -> Array:
        """Return the ranks of the last iteration: (num_vertices,) float64 in store order, which the next one changes."""
        return self.state.rank

    def step(self) -> None:
        """Make the ranks of the next iteration."""
        before, scale = self.state, self.jumps.scale(self.state)
        single = self.jumps.is_single(before.change)
        new_share = in_precision(self._buffers[1], single=single)
        change, dangling = self._rows.pull(self._share, before.rank, new_share, self.jumps.jump(scale))
        change += self.jumps.isolated_change(before, scale)
        self._rows.check(change, before.iteration + 1)
        self._buffers.reverse()
        self._share = new_share
        self.state = RankState(before.iteration + 1, before.rank, scale, dangling, change, single)


def check_finite(url: str, change: float, iteration: int) -> None:
    """Refuse ranks that are not finite.

    Raises
    ------
    CorruptStoreError
        Their change is not.
    """
    if not np.isfinite(change):
        raise CorruptStoreError(
            f"{url}: ranks are not finite after iteration {iteration}: weights of in-edges differ from those of "
            "out-edges; run `oocgraph check`, then restore the store or build it again"
        )


def single_floor(damping: float) -> float:
    """Change of all ranks that float32 may never come below."""
    return SINGLE_ROUNDING * damping / (1 - damping)


def first_state(jumps: Jumps, strength: Array) -> RankState:
    """Return the state before the first iteration, without its ranks: every vertex has the same."""
    num_dangling = strength.size - int(np.count_nonzero(strength))
    return RankState(0, np.empty(0), np.nan, num_dangling / max(1, jumps.personalization.num_ids), np.inf, jumps.is_single(np.inf))


def in_precision(buffer: Array, *, single: bool) -> Array:
    """Return a buffer of float64, or its first half as float32."""
    return buffer.view(np.float32)[: buffer.size] if single else buffer


def strength_of(store: CSRStore, budget: Budget, column: str | None, threads: int) -> Array:
    """Sum of the weights of each vertex's out-edges: (num_vertices,) float64; without weights their number."""
    return _sum_weights(store, budget, column, threads) if column else row_degrees(store, "out")


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
        self._row, self._part, self._sum = np.array(places, np.int64).reshape(-1, 3).T

    def totals(self, sums: Array) -> Array:
        """Sum of each row, from the sums of all pieces: (num_cut,) float64."""
        found = np.bincount(self._row, weights=sums[self._part, self._sum], minlength=self.rows.size)
        return found.astype(np.float64, copy=False)  # integers where no row is cut


def charge_ranking(store: CSRStore, budget: Budget, *, column: str | None, threads: int, whole_rows: bool = False) -> None:
    """Reserve what a `Ranking` holds, without edges that stay: in trial, so that a refusal names all of it."""
    budget.reserve("ranks", vector_bytes(store, column, num_floats=3))
    options: dict[str, Any] = {"column": column, "threads": threads}
    sizes = [pieces_bytes(store, transpose=True, whole_rows=whole_rows, **options)]
    sizes += [pieces_bytes(store, transpose=False, **options)] if column else []
    budget.reserve("pieces of edges", max(sizes))


def vector_bytes(store: CSRStore, column: str | None, *, num_floats: int) -> int:
    """Bytes of some vectors of float64, and of each vertex the sum of its weights, or its degree (here: ranks, shares now and then)."""
    degree_bytes = 4 if store.attributes.num_stored_edges < 2**32 else 8
    return store.num_rows * (8 * num_floats + (8 if column else degree_bytes))


def _sum_weights(store: CSRStore, budget: Budget, column: str, threads: int) -> Array:
    """Sum of the weights of each vertex's out-edges: (num_vertices,) float64."""
    edges = EdgeStream(store, budget, transpose=False, column=column, threads=threads)
    strength = np.zeros(store.num_rows)

    def add(part: PartialCSR) -> tuple[int, float]:
        carry, values = np.zeros(1), as_numbers(part.values)
        own = strength[part.first_line : part.stop_line]
        bad = kernels.add_weights(part.first_line_partial, part.pointers, part.start, part.stop, values, own, carry)
        return (part.start + bad if bad >= 0 else -1), float(carry[0])

    for part, (bad, carry) in zip(edges.parts, edges.each(add), strict=True):
        if bad >= 0:
            value = store.array(f"out/{column}").read(bad, bad + 1)[0]
            raise ArgumentError(
                f"weight {bad:,} of {edges.values_name} is {value}, but weights of PageRank are finite and not negative; "
                "choose another column with weight=, or weight=False to count each edge as 1"
            )
        if part.first_line_partial:
            strength[part.first_line] += carry
    check_strengths(edges.values_name, strength)
    budget.release("pieces of edges")
    return strength


def check_strengths(name: str, strength: Array) -> None:
    """Refuse sums of weights, (num_vertices,) float64, that cannot be divided by.

    Raises
    ------
    ArgumentError
        One is infinite, or above 0 and so small that a rank divided by it may be.
    """
    least, most = _extremes(strength)
    if not np.isfinite(most):
        raise ArgumentError(f"{name}: the weights of one vertex sum to more than a float64 holds; scale them down")
    if least < np.finfo(np.float64).tiny:
        raise ArgumentError(f"{name}: the weights of one vertex sum to {least:.3g}, too little to divide by in float64; scale them up")


def precision_for(strength: Array, precision: Precision) -> Precision:
    """Return the precision of shares, which are divided by sums of weights; ``auto`` is float64 where float32 does not hold them.

    Raises
    ------
    ArgumentError
        ``single`` is asked for, and does not hold them.
    """
    if precision == "double" or strength.dtype.kind != "f":
        return precision
    least, most = _extremes(strength)
    if SINGLE_STRENGTHS[0] <= least and most <= SINGLE_STRENGTHS[1]:
        return precision
    if precision == "single":
        raise ArgumentError(
            f"oocgraph.precision is single, but the weights of vertices sum to {least:.3g} to {most:.3g}, and float32 may not hold shares "
            f"of such; set it to auto or double, or scale the weights to between {SINGLE_STRENGTHS[0]:g} and {SINGLE_STRENGTHS[1]:g}"
        )
    return "double"


def _extremes(strength: Array) -> tuple[float, float]:
    """Return the least sum of weights above 0, and the largest; 1 where there is none."""
    least, most = np.inf, 0.0
    for start in range(0, strength.size, STRENGTH_BLOCK):
        block = strength[start : start + STRENGTH_BLOCK]
        least = min(least, np.min(block, where=block > 0, initial=np.inf))
        most = max(most, np.max(block))
    return (float(least), float(most)) if most else (1.0, 1.0)


def load_kernels(store: CSRStore, column: str | None, *, personalized: bool, precision: Precision, in_place: bool = False) -> None:
    """Bring the kernels into memory before memory is counted; a process of its own compiles what is not cached."""
    if precision == "auto" and store.num_rows <= SINGLE_VERTICES:
        precision = "double"
    load.load_kernels(rank_calls(store, column, personalized=personalized, precision=precision, in_place=in_place))


def rank_calls(store: CSRStore, column: str | None, *, personalized: bool, precision: Precision, in_place: bool = False) -> list[Call]:
    """Return what ranking a graph like `store`, of any size, calls."""
    index, ints, number = np.zeros(1, store.index_dtype), np.zeros(2, np.int64), np.zeros(1)
    values = None if column is None else as_numbers(np.zeros(1, store.array(f"out/{column}").dtype.newbyteorder("=")))
    degree = np.uint32 if store.attributes.num_stored_edges < 2**32 else np.int64
    strength = np.zeros(1, np.float64 if column else degree)
    teleport, sums = number.copy() if personalized else None, np.zeros(NUM_SUMS)
    single, double = np.zeros(1, np.float32), np.zeros(1)
    pairs: list[tuple[Array, Array]] = [(double, double)] if precision != "single" else []
    pairs += [(single, single)] if precision != "double" else []
    pairs += [(single, double)] if precision == "auto" else []
    if in_place:
        pairs = []
    calls: list[Call] = []
    for share, new_share in pairs:
        common = (0.85, 0.15, teleport, number, strength, new_share, sums)
        calls.append((kernels.divide, (number, strength, share)))
        calls.append((kernels.pull_ranks, (False, ints, 0, 0, index, values, share, *common)))
        calls.append((kernels.finish_rows, (ints, number, *common)))
    if in_place:
        pointers = np.zeros(1, store.array(f"{'in' if store.attributes.directed else 'out'}/indptr").dtype.newbyteorder("="))
        calls.append((kernels.update_ranks, (0, pointers, 0, index, values, double, 0.85, 0.15, teleport, number, strength, double, True)))
        calls.append((kernels.rescale_ranks, (number, strength, double, double, 1.0, 0, 0)))
    if values is not None:
        calls.append((kernels.add_weights, (False, ints, 0, 0, values, number, number)))
    return calls
