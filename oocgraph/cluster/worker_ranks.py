"""What a worker does for PageRank: it has the in-edges of a range of vertices, and makes their ranks from those of all.

In: a `RanksSpec`, and the ranks of the iteration before, range by range. Out: `RankSlice`, the ranks of one range, which Dask brings to the
other workers. Any worker that has the edges can go on from any iteration; each keeps the ranks that its last one began with.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oocgraph.arrays import Device
from oocgraph.cluster import worker_matrix
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, StateLostError
from oocgraph.cluster.stream_cache import StreamCache
from oocgraph.cluster.worker import Resident
from oocgraph.cluster.worker_device import asked_for
from oocgraph.cluster.worker_steps import Hop, Steps, Taken
from oocgraph.engine.fallback import processor_instead
from oocgraph.errors import BudgetError
from oocgraph.kernels.pagerank import CHANGE, DANGLING, NUM_SUMS, finish_rows
from oocgraph.kernels.semirings import semiring_of
from oocgraph.memory import Budget, device_bytes_read, page_cache_bytes
from oocgraph.products.personalization import charge_personalization, personalization_of
from oocgraph.products.ranking import (
    Jumps,
    RankRows,
    RankState,
    check_finite,
    first_state,
    in_precision,
    load_kernels,
    precision_for,
    strength_of,
    vector_bytes,
)
from oocgraph.sparse.balanced import balanced_partition, cut
from oocgraph.sparse.edge_stream import part_of, pieces_bytes, stored_matrix
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Array, Precision

LATER = "pieces of edges of later ranges"

PIECES = "pieces of edges"

Report = tuple[int, float, float, float, bool]

Effort = tuple[int, int, bool]

NUM_FLOATS = 5
"""Vectors of a worker: the shares of all vertices, its own, and the ranks of three iterations, which Dask keeps and brings here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksSpec(GraphSpec):
    """What a worker loads.

    Attributes
    ----------
    damping, precision, personalization
        As for `oocgraph.pagerank`.
    column
        Edge column of the weights; None: all are one.
    kept_for
        Lease under which the worker keeps edges for the next run; None: it keeps them until this one has ended.
    """

    damping: float
    precision: Precision
    column: str | None
    personalization: Any
    kept_for: str | None = None


class RankSlice(NamedTuple):
    """The ranks of a range of vertices after an iteration, and what the range adds to the state of all.

    Attributes
    ----------
    rank : (num_rows,) float64
    report
        See `report_of`; isolated vertices are counted by the first range.
    effort
        Bytes that were requested and read for it, and whether its shares were float32.
    """

    rank: Array
    report: Report
    effort: Effort


class PastIteration(NamedTuple):
    """What all ranges have reported of an iteration.

    Attributes
    ----------
    number
        Of its step.
    reports, efforts
        As in `RankSlice`, range by range.
    """

    number: int
    reports: list[Report]
    efforts: list[Effort]


def report_of(state: RankState) -> Report:
    """Return all of a state but the ranks."""
    return state.iteration, state.isolated_scale, state.dangling, state.change, state.single


def joined(reports: Sequence[Sequence[Any]]) -> RankState:
    """Return the state, without ranks, that the reports of all ranges make."""
    iteration, scale, _, _, single = reports[0]
    return RankState(iteration, np.empty(0), scale, sum(one[2] for one in reports), sum(one[3] for one in reports), single)


def cut_rows(
    store: CSRStore, num_ranges: int, *, transpose: bool = True
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:  # fmt: skip
    """Cut the vertices into ranges with about as many in-edges, or out-edges; return the edges of each, and its vertices."""
    matrix = stored_matrix(store, transpose=transpose, column=None)
    bounds = [int(matrix.indptr[part.stop_line]) for part in balanced_partition(matrix, num_ranges)[:-1]]
    parts = cut(matrix, [0, *bounds, matrix.indices.size])
    return [(part.start, part.stop) for part in parts], [(part.first_line, part.stop_line) for part in parts]


class DeviceRankRows:
    """As `oocgraph.products.ranking.RankRows`, with the in-edges of a range of vertices on the worker's device; rows are whole.

    Attributes
    ----------
    edges : DeviceMatrix
    rows : slice
        The vertices.
    """

    def __init__(self, plugin: Any, spec: RanksSpec, device: Device, jumps: Jumps, strength: Array, entries: tuple[int, int]) -> None:
        store, self._ring = open_graph(spec.url, check_pages=spec.check_pages), semiring_of("plus_times")
        self._part = part_of(stored_matrix(store, transpose=True, column=spec.column), entries)
        self._url, self._jumps, self._matrices, self._device = store.url, jumps, plugin.matrices, plugin.worker_state.device
        key = ("ranks", spec.url, entries, spec.column)
        self._kept = plugin.matrices.take(
            spec.kept_for, key, device, spec, self._part, np.dtype(np.float64), self._ring, f"{spec.column} of {store.url}"
        )  # fmt: skip
        self.edges, self.rows = self._kept.matrix, slice(self._part.first_line, self._part.stop_line)
        self._numbers = np.arange(self._part.num_lines)
        by_vertex = jumps.personalization.by_vertex
        self._strength, self._teleport = strength[self.rows], None if by_vertex is None else by_vertex[self.rows]

    def pull(self, share: Array, rank: Array, new_share: Array, jump: float) -> tuple[float, float]:
        """Make the ranks of an iteration: sums on the device, the rest here; see `RankRows.pull`."""
        with self._device.naming():
            totals = worker_matrix.multiply(self.edges, self._part, share, self._ring, np.dtype(np.float64))
        sums = np.zeros(NUM_SUMS)
        finish_rows(self._numbers, totals, self._jumps.damping, jump, self._teleport, rank, self._strength, new_share, sums)
        return float(sums[CHANGE]), float(sums[DANGLING])

    def check(self, change: float, iteration: int) -> None:
        """Refuse ranks that are not finite."""
        check_finite(self._url, change, iteration)

    def close(self) -> None:
        """Give the matrix back."""
        self._matrices.put_back(self._kept)


@dataclass(slots=True)
class HeldRanks(Resident):
    """The in-edges of one lease on one worker."""

    jumps: Jumps
    strength: Array
    ranges: list[tuple[int, int]]
    shares: dict[int, RankRows | DeviceRankRows]
    budget: Budget
    ledger: WorkerLedger
    streams: StreamCache
    share: Array
    own: Array
    device: tuple[str, str]
    before: tuple[int, tuple[RankSlice, ...]] | None = None
    past: list[PastIteration] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take_over(self, before: HeldRanks) -> None:
        """Take the last ranks of all vertices."""
        self.before, before.before = before.before, None
        self.past, before.past = before.past, []

    def begin_with(self, number: int, before: Sequence[RankSlice]) -> None:
        """Keep the ranks after a step, and what was reported of it: a later epoch may go on from there."""
        self.before = (number, tuple(before)) if before else None
        self.past = [one for one in self.past if one.number < number]
        if before:
            self.past.append(PastIteration(number, [one.report for one in before], [one.effort for one in before]))

    def close(self) -> None:
        """Give back everything."""
        with self.lock:
            for rows in self.shares.values():
                if isinstance(rows, DeviceRankRows):
                    rows.close()
                else:
                    self.streams.put_back(rows.edges)
            self.shares.clear()
            self.share = self.own = self.strength = np.empty(0)
            self.ledger.close(self.budget)


def acquire(plugin: Any, lease: str, spec: RanksSpec, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Load ranges of vertices on this worker, if they are not here already; edges are read by the first iteration.

    Raises
    ------
    BudgetError
        They do not fit; the message names the worker.
    """
    there = plugin.keep_shares(lease, spec, numbers, partial(_load, plugin, spec))
    return [
        {
            "partition": p, "worker": plugin.worker.address, "memory_budget": there.budget.limit_bytes, "range": there.ranges[p],
            **_edge_bytes(there.shares[p]), "device": there.device[0], "device_reason": there.device[1],
        }
        for p in numbers
    ]  # fmt: skip


def _edge_bytes(rows: RankRows | DeviceRankRows) -> dict[str, int]:
    """Return the bytes of a range's edges, and of those that stay in memory."""
    if isinstance(rows, DeviceRankRows):
        return {"edge_bytes": rows.edges.edge_bytes, "kept_bytes": rows.edges.kept_bytes}
    parts, num_kept = rows.edges.parts, rows.edges.num_kept
    return {"edge_bytes": sum(part.entry_bytes for part in parts), "kept_bytes": sum(part.entry_bytes for part in parts[:num_kept])}


def _load(plugin: Any, spec: RanksSpec, numbers: Sequence[int]) -> HeldRanks:
    store = open_graph(spec.url, check_pages=spec.check_pages)
    load_kernels(store, spec.column, personalized=spec.personalization is not None, precision=spec.precision)
    entries, ranges = cut_rows(store, spec.num_partitions)
    options: dict[str, Any] = {"column": spec.column, "threads": spec.threads_on(plugin.worker)}
    sizes = [pieces_bytes(store, transpose=True, entries=entries[p], **options) for p in numbers]
    weights = pieces_bytes(store, transpose=False, **options) if spec.column else 0
    device, reason = plugin.worker_state.device.choose(spec)
    with plugin.ledger.opening(spec.requested_memory) as budget, plugin.streams.putting_back() as taken:
        if spec.kept_for is not None:
            plugin.check_lease(spec.kept_for)
        with budget.all_or_none():
            charge_personalization(store, spec.personalization, budget)
            if spec.personalization is not None:
                budget.reserve("the personalization as it was sent", 8 * store.attributes.num_input_vertices)
            budget.reserve("ranks", vector_bytes(store, spec.column, num_floats=NUM_FLOATS))
            budget.reserve(PIECES, max(sum(sizes), weights))
        budget.release(PIECES)
        strength = strength_of(store, budget, spec.column, options["threads"])
        precision = precision_for(strength, spec.precision)
        jumps = Jumps(store.num_rows, spec.damping, personalization_of(store, spec.personalization), precision)
        rows = {} if device is None else _rows_on_device(plugin, spec, device, jumps, strength, {p: entries[p] for p in numbers})
        reason = reason if device is None or rows or not numbers else "the GPU has too little memory"
        for i, p in enumerate(numbers if not rows else ()):
            budget.reserve(LATER, sum(sizes[i + 1 :] if spec.kept_for is None else sizes))  # the next run is charged for all again
            open_edges = partial(plugin.streams.take, spec.kept_for)
            own = RankRows(store, budget, jumps=jumps, strength=strength, entries=entries[p], open_edges=open_edges, **options)
            rows[p] = own
            taken.append(own.edges)
            own.edges.read_directly(page_cache_bytes(budget.limit_bytes))
            budget.release(LATER)
    longest = max((one.rows.stop - one.rows.start for one in rows.values()), default=0)
    named = ("cpu" if device is None or not any(isinstance(one, DeviceRankRows) for one in rows.values()) else device.name, reason)
    return HeldRanks(
        jumps, strength, ranges, rows, budget, plugin.ledger, plugin.streams, np.empty(store.num_rows), np.empty(longest), named
    )  # fmt: skip


def _rows_on_device(
    plugin: Any, spec: RanksSpec, device: Device, jumps: Jumps, strength: Array, entries: Mapping[int, tuple[int, int]]
) -> dict[int, RankRows | DeviceRankRows]:  # fmt: skip
    """Return ranges of vertices whose in-edges are on the worker's device; none where it is too small and the processor may do."""
    rows: dict[int, RankRows | DeviceRankRows] = {}
    try:
        with ExitStack() as undo:
            for p, own in entries.items():
                rows[p] = found = DeviceRankRows(plugin, spec, device, jumps, strength, own)
                undo.callback(found.close)
            undo.pop_all()
    except BudgetError as error:
        processor_instead("ranking", device, error, **asked_for(spec))
        return {}
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSteps(Steps):
    """The iterations of a run.

    Attributes
    ----------
    enough
        The run ends when the ranks change by less.
    """

    enough: float
    message: ClassVar[type[Any]] = RankSlice

    def take(
        self, plugin: Any, hop: Hop, p: int, number: int, before: Sequence[RankSlice], own: Mapping[int, Array], *, is_first: bool
    ) -> Taken:  # fmt: skip
        """See `take_step`."""
        return take_step(plugin, p, hop.lease, number, before)

    def is_over(self, messages: Sequence[RankSlice]) -> bool:
        """Whether the ranks hardly change any more."""
        return joined([one.report for one in messages]).change < self.enough


def take_step(plugin: Any, p: int, lease: str, number: int, before: Sequence[RankSlice]) -> Taken:
    """Make the ranks of a range of vertices.

    Parameters
    ----------
    p
        The range.
    before
        The ranks of all ranges after the iteration before; none: every vertex has the same.

    Raises
    ------
    StateLostError
        The worker does not hold the range: it was started again.
    CorruptStoreError
        The store cannot be read, or ranks are not finite.
    """
    there: HeldRanks = plugin.shares_of(lease, p)
    with there.lock:
        state = joined([one.report for one in before]) if before else first_state(there.jumps, there.strength)
        there.begin_with(number - 1, before)
        plugin.at("receive", number, p)
        rows, jumps, device = there.shares[p], there.jumps, device_bytes_read()
        requested = rows.edges.bytes_requested
        share = in_precision(there.share, single=state.single)
        first = 1 / max(1, jumps.personalization.num_ids)
        for q, (a, z) in enumerate(there.ranges):
            share[a:z] = 0
            np.divide(before[q].rank if before else first, there.strength[a:z], out=share[a:z], where=there.strength[a:z] > 0)
        a, z = there.ranges[p]
        rank = before[p].rank.copy() if before else np.full(z - a, first)
        plugin.at("compute", number, p)
        scale, single = jumps.scale(state), jumps.is_single(state.change)
        change, dangling = rows.pull(share, rank, in_precision(there.own[: z - a], single=single), jumps.jump(scale))
        change += jumps.isolated_change(state, scale) if p == 0 else 0.0
        rows.check(change, state.iteration + 1)
        report = report_of(RankState(state.iteration + 1, rank, scale, dangling, change, single))
    requested = rows.edges.bytes_requested - requested
    effort = requested, max(requested, device_bytes_read() - device), state.single
    plugin.at("transfer", number, p)
    return Taken(RankSlice(rank, report, effort), {"report": list(report), "effort": list(effort)})


def past_iterations(plugin: Any, lease: str) -> list[PastIteration]:
    """Return the iterations of which this worker knows all reports; it has the ranks, of all vertices, after the last one."""
    there: HeldRanks | None = plugin.resident.get(lease)
    return [] if there is None or there.before is None else there.past


def held_slice(plugin: Any, lease: str, number: int, p: int) -> RankSlice:
    """Return the ranks of a range after a step that `past_iterations` has named."""
    there: HeldRanks | None = plugin.resident.get(lease)
    if there is None or there.before is None or there.before[0] != number:
        raise StateLostError(f"worker {plugin.worker.address} does not hold the ranks of step {number}")
    return there.before[1][p]
