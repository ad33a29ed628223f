"""PageRank on GPUs: ranks, shares and sums stay in device memory between iterations, of which two numbers come back to the host.

In: the transposed matrix of a graph on devices (`oocgraph.products.device_matrix`), cut between rows where there are several, and what
`oocgraph.products.ranking` takes. Out: `DeviceRanking`, iterations like those of `oocgraph.products.ranking.Ranking`.

A device has the shares of all vertices as its ``x``, and ranks, strengths and teleport probabilities of its rows. Behind the product it
makes their ranks and new shares, writes these to its own ``x``, and takes those of the others: from their memory where it reaches that,
else all pass through pinned memory. Shares are float64; sums are added by atomics, so ranks differ from the processor's, and from one run
to the next, by rounding.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from oocgraph.arrays import Device
from oocgraph.errors import BudgetError
from oocgraph.kernels import pagerank as kernels
from oocgraph.kernels.gpu_spmv import RANK_SUMS, GpuProductKernels
from oocgraph.kernels.semirings import semiring_of
from oocgraph.memory import format_bytes
from oocgraph.products.device_matrix import DeviceMatrix
from oocgraph.products.device_product import DeviceShare
from oocgraph.products.ranking import Jumps, RankState, check_finite, first_state
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

logger = logging.getLogger(__name__)

NUM_VECTORS = 3
"""Vectors of a device beside shares and sums: ranks, strengths, teleport probabilities."""

PARTIAL_BYTES = 1 << 20
"""More than the sums of the blocks of any device take."""


class RankVectors:
    """Room on devices for the vectors of ranks, beside a matrix: what `oocgraph.engine.opened.OpenedGraph.on_devices` keeps.

    Parameters
    ----------
    devices
        Where ranks are made.
    num_vertices
        Of the graph: any device may have all rows.
    rooms
        Bytes of each device that may be held.
    held
        Bytes of each that others hold. Where they hold none, the matrix that is planned beside the vectors refuses both together.

    Raises
    ------
    BudgetError
        The vectors do not fit beside what others hold.
    """

    host_bytes = 0
    """Pinned memory: none."""

    is_allocated = False
    """Whether the vectors are there: they are allocated when the iterations begin."""

    def __init__(self, devices: Sequence[Device], num_vertices: int, rooms: Sequence[int], held: Sequence[int]) -> None:
        each = NUM_VECTORS * 8 * num_vertices + PARTIAL_BYTES
        for device, room, own in zip(devices, rooms, held, strict=True):
            if each > room and own:
                raise BudgetError(
                    f"ranks on {device.name} need {format_bytes(each)} of device memory but may hold {format_bytes(max(0, room))}; raise "
                    "device_memory_budget, or use device='cpu'"
                )
        self.device_bytes = dict.fromkeys(range(len(devices)), each)

    def close(self) -> None:
        """Give up the room."""


class _Rows:
    """What one device has of the ranks."""

    def __init__(self, share: DeviceShare, *, personalized: bool) -> None:
        self.share, self.rows = share, slice(share.part.first_line, share.part.stop_line)
        device, size = share.device, share.part.num_lines
        self.rank, self.strength = device.empty(size, np.float64), device.empty(size, np.float64)
        self.teleport = device.empty(size, np.float64) if personalized else None
        self.partial = device.empty(RANK_SUMS * share.kernels.num_rank_blocks(size), np.float64)
        self.sums, self.found = device.empty(RANK_SUMS, np.float64), device.pinned(8 * RANK_SUMS).view(np.float64)

    @property
    def kernels(self) -> GpuProductKernels:
        return self.share.kernels

    def load(self, source: Array, target: Array) -> None:
        """Copy from a pinned vector of all vertices: these rows, or as much as `target` holds."""
        device, stream = self.share.device, self.kernels.stream
        device.copy(source if target is self.share.x else source[self.rows], target, stream)
        device.synchronize(stream)

    def pull(self, damping: float, jump: float) -> None:
        """Make the ranks and shares of an iteration; the two sums come to the host."""
        share, stream = self.share, self.kernels.stream
        share.product(semiring_of("plus_times"))
        own = share.x[self.rows]
        self.kernels.finish_ranks(share.y, damping, jump, self.teleport, self.rank, self.strength, own, self.partial, self.sums)
        share.device.copy(self.sums, self.found, stream)
        share.device.synchronize(stream)


class DeviceRanking:
    """PageRank of a stored graph on devices, iteration by iteration.

    Parameters
    ----------
    store
        The graph.
    matrix
        Its in-edges, open, of float64; rows are whole.
    jumps
        What is one number for all vertices.
    strength : (num_vertices,) float64 or integers
        Sum of the weights of each vertex's out-edges.

    Attributes
    ----------
    state : RankState
        What the last iteration made, without ranks; `begin` sets it.
    edges : DeviceMatrix
        The in-edges.
    """

    state: RankState

    def __init__(self, store: CSRStore, matrix: DeviceMatrix, *, jumps: Jumps, strength: Array) -> None:
        self._url, self.edges, self.jumps, self._strength = store.url, matrix, jumps, strength
        self._host = matrix.x[:, 0]
        shares = [share for share in matrix.shares if share.part.num_lines]
        self._rows = [_Rows(share, personalized=jumps.personalization.by_vertex is not None) for share in shares]
        self._direct = all(one.device.reaches(other.device) for one in shares for other in shares)
        if len(shares) > 1:
            logger.info("ranks pass between %d devices %s", len(shares), "directly" if self._direct else "through the host")

    def begin(self, state: RankState | None = None) -> None:
        """Start from a state, of a checkpoint; by default from the same rank for every vertex."""
        host, teleport = self._host, self.jumps.personalization.by_vertex
        np.copyto(host, self._strength)
        self._on_each(lambda rows: rows.load(host, rows.strength))
        if teleport is not None:
            np.copyto(host, teleport)
            self._on_each(lambda rows: None if rows.teleport is None else rows.load(host, rows.teleport))
        if state is None:
            state = first_state(self.jumps, self._strength)
            state.rank = np.full(self._strength.size, 1 / max(1, self.jumps.personalization.num_ids))
        np.copyto(host, state.rank)
        self._on_each(lambda rows: rows.load(host, rows.rank))
        kernels.divide(state.rank, self._strength, host)
        self._on_each(lambda rows: rows.load(host, rows.share.x))
        self.state = replace(state, rank=np.empty(0), single=False)

    def step(self) -> None:
        """Make the ranks of the next iteration."""
        before, scale = self.state, self.jumps.scale(self.state)
        self._on_each(lambda rows: rows.pull(self.jumps.damping, self.jumps.jump(scale)))
        change, dangling = (float(sum(rows.found[which] for rows in self._rows)) for which in range(RANK_SUMS))
        change += self.jumps.isolated_change(before, scale)
        check_finite(self._url, change, before.iteration + 1)
        if len(self._rows) > 1:
            self._exchange()
        self.state = RankState(before.iteration + 1, before.rank, scale, dangling, change, single=False)

    def ranks(self) -> Array:
        """Return the ranks of the last iteration: (num_vertices,) float64 in store order."""
        self._on_each(lambda rows: self._collect(rows, rows.rank))
        return self._host.copy()

    def _collect(self, rows: _Rows, source: Array) -> None:
        """Copy what a device has of its rows to the host."""
        device, stream = rows.share.device, rows.kernels.stream
        device.copy(source, self._host[rows.rows], stream)
        device.synchronize(stream)

    def _exchange(self) -> None:
        """Give every device the shares that the others have made."""
        if self._direct:
            self._on_each(self._take)
            return
        self._on_each(lambda rows: self._collect(rows, rows.share.x[rows.rows]))
        self._on_each(lambda rows: rows.load(self._host, rows.share.x))

    def _take(self, rows: _Rows) -> None:
        device, stream = rows.share.device, rows.kernels.stream
        for other in self._rows:
            if other is not rows:
                device.copy(other.share.x[other.rows], rows.share.x[other.rows], stream)
        device.synchronize(stream)

    def _on_each(self, work: Callable[[_Rows], None]) -> None:
        """Let each device's thread do something with what the device has of the ranks."""
        by_share = {id(rows.share): rows for rows in self._rows}
        self.edges.on_each(lambda share: work(by_share[id(share)]) if id(share) in by_share else None)
