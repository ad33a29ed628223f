"""Edges on their way to a device: host threads fill pinned buffers, a stream of its own copies them, kernels consume them.

In: the number of edges, a function that gathers a range of them into host memory, and one that enqueues kernels on a range in device
memory. Out: `StagingMetrics`. The range is cut into pieces of a buffer's size; while one is processed, others are copied and gathered:

    host threads     gather 0 | gather 1 | gather 2 | ...
    copy stream                 copy 0   | copy 1   | ...
    compute stream                         kernels 0 | ...

Piece i uses buffer i modulo the number of buffers. Its pinned buffer is filled again only after its copy, its device buffer is overwritten
only after its kernels: the gathering thread waits for the one, the copy stream for the other.

Reference: Sabet, Zhao, Gupta, "Subway", EuroSys 2020, section 3. Differs from the paper in that gathering, too, overlaps.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from oocgraph.arrays import Device
from oocgraph.errors import DeviceError
from oocgraph.pool import Call, Pool, wait_for
from oocgraph.types import Array

logger = logging.getLogger(__name__)

Gather = Callable[[int, int, Array], int]
"""``gather(e0, e1, out)`` fills ``out[e - e0]`` for ``e0 .. e1 - 1`` and returns the bytes it read; called by several threads at a time."""

Consume = Callable[[Array, int, int], None]
"""``consume(buffer, e0, e1)`` enqueues kernels on the compute stream; edge e is ``buffer[e - e0]``, in device memory."""


@dataclass(frozen=True, slots=True)
class StagingMetrics:
    """What one or more runs moved, and how long each stage was at work.

    Attributes
    ----------
    num_pieces
        Number of buffers that were copied to the device.
    bytes_read
        What gathering read, from disk or from a store.
    read_seconds
        While at least one piece was being gathered; the host's clock.
    copy_seconds, kernel_seconds
        While a piece was copied, while its kernels ran; from the device's events, as what follows.
    span_seconds
        From the start of a run to its last kernel.
    idle_seconds
        Part of the span in which neither a copy nor a kernel ran: the device waited for the host.
    """

    num_pieces: int = 0
    bytes_read: int = 0
    read_seconds: float = 0.0
    copy_seconds: float = 0.0
    kernel_seconds: float = 0.0
    span_seconds: float = 0.0
    idle_seconds: float = 0.0

    def __add__(self, other: StagingMetrics) -> StagingMetrics:
        mine, others = dataclasses.astuple(self), dataclasses.astuple(other)
        return StagingMetrics(*(a + b for a, b in zip(mine, others, strict=True)))


class _Events(NamedTuple):
    """When a piece's copy and kernels began and ended. Gathering threads sleep for the end of a copy: others gather meanwhile."""

    copy_start: Any
    copy_stop: Any
    kernel_start: Any
    kernel_stop: Any


class _Gathered(NamedTuple):
    """What a call of `gather` read, and when it ran (host clock)."""

    num_bytes: int
    began: float
    ended: float


class Stager:
    """Buffers, streams and threads of the pipeline: made once, used by many runs, one at a time.

    Parameters
    ----------
    device
        Where the edges go.
    buffer_bytes, num_buffers
        `num_buffers` (at least 2) buffers of this size are held in pinned and as many in device memory; charged by the caller.
    dtype
        Of the edges.
    compute_stream
        Where `consume` enqueues its kernels.

    Raises
    ------
    DeviceError
        Memory, a stream or an event cannot be had.
    """

    def __init__(self, device: Device, *, buffer_bytes: int, num_buffers: int, dtype: Any, compute_stream: Any) -> None:
        itemsize = np.dtype(dtype).itemsize
        if num_buffers < 2 or buffer_bytes < itemsize:
            raise ValueError(f"{num_buffers} staging buffers of {buffer_bytes} bytes; at least 2 buffers of {itemsize} bytes are needed")
        self.piece_edges = buffer_bytes // itemsize
        self._device, self._compute, self._num_buffers = device, compute_stream, num_buffers
        self._pinned = [device.pinned(self.piece_edges * itemsize).view(dtype) for _ in range(num_buffers)]
        self._buffers = [device.empty(self.piece_edges, dtype) for _ in range(num_buffers)]
        self._copies, self._began = device.stream(), device.event()
        # A piece's times are read when its events are needed again. After so many pieces that waits for nothing: piece i has been gathered,
        # hence copy i - n is done, which waited for kernels i - 2n.
        self._events = [
            _Events(device.event(), device.event(blocking=True), device.event(), device.event()) for _ in range(2 * num_buffers)
        ]
        self._pool = Pool(num_buffers, "oocgraph-stage")

    def close(self) -> None:
        """End the threads and let go of the buffers."""
        self._pool.close()
        self._pinned, self._buffers = [], []

    def run(self, total_edges: int, gather: Gather, consume: Consume) -> StagingMetrics:
        """Take edges ``0 .. total_edges - 1`` through the pipeline, piece after piece; returns when all kernels are done.

        Raises
        ------
        Exception
            What `gather` or `consume` raised first, in the order of the pieces; those before are consumed, nothing is submitted after it.
            The gathering threads have ended their reads by then, and both streams have ended their work if the device still answers.
        DeviceError
            The device failed; the same holds.
        """
        if total_edges == 0:
            return StagingMetrics()
        run = _Run(total_edges, -(-total_edges // self.piece_edges))
        try:
            self._device.record(self._began, self._copies)
            for piece in range(min(self._num_buffers, run.num_pieces)):
                self._gather_ahead(run, piece, gather)
            for piece in range(run.num_pieces):
                run.gathered.append(run.gathers[piece].result())
                self._process(run, piece, consume)
                if piece + self._num_buffers < run.num_pieces:
                    self._gather_ahead(run, piece + self._num_buffers, gather)
            for piece in range(run.num_timed, run.num_pieces):
                self._note_times(run, piece)
            return run.metrics(self._device.seconds(self._began, self._events_of(run.num_pieces - 1).kernel_stop))
        except BaseException:
            self._abandon(run)
            raise

    def _range(self, run: _Run, piece: int) -> tuple[int, int]:
        return piece * self.piece_edges, min(run.total_edges, (piece + 1) * self.piece_edges)

    def _events_of(self, piece: int) -> _Events:
        return self._events[piece % len(self._events)]

    def _gather_ahead(self, run: _Run, piece: int, gather: Gather) -> None:
        """Let a thread gather a piece as soon as its buffer's last content has been copied."""
        e0, e1 = self._range(run, piece)
        out = self._pinned[piece % self._num_buffers][: e1 - e0]
        copied = self._events_of(piece - self._num_buffers).copy_stop if piece >= self._num_buffers else None

        def work() -> _Gathered:
            if copied is not None:
                self._device.synchronize(copied)
            began = time.perf_counter()
            num_bytes = gather(e0, e1, out)
            return _Gathered(num_bytes, began, time.perf_counter())

        run.gathers.append(self._pool.submit(work))

    def _process(self, run: _Run, piece: int, consume: Consume) -> None:
        """Enqueue the copy of a gathered piece, and its kernels."""
        device, events, at = self._device, self._events_of(piece), piece % self._num_buffers
        if piece >= len(self._events):
            self._note_times(run, piece - len(self._events))
        if piece >= self._num_buffers:
            device.wait(self._copies, self._events_of(piece - self._num_buffers).kernel_stop)
        e0, e1 = self._range(run, piece)
        device.record(events.copy_start, self._copies)
        device.copy(self._pinned[at][: e1 - e0], self._buffers[at][: e1 - e0], self._copies)
        device.record(events.copy_stop, self._copies)
        device.wait(self._compute, events.copy_stop)
        device.record(events.kernel_start, self._compute)
        consume(self._buffers[at], e0, e1)
        device.record(events.kernel_stop, self._compute)

    def _note_times(self, run: _Run, piece: int) -> None:
        """Wait for a piece's last kernel, and note when its copy and kernels ran."""
        events = self._events_of(piece)
        self._device.synchronize(events.kernel_stop)
        times = [self._device.seconds(self._began, event) for event in events]
        run.copies.append((times[0], times[1]))
        run.kernels.append((times[2], times[3]))

    def _abandon(self, run: _Run) -> None:
        """Wait until nothing uses a buffer any more."""
        for gathering in run.gathers:
            gathering.cancel()
        wait_for(run.gathers)
        for stream in (self._copies, self._compute):
            try:
                self._device.synchronize(stream)
            except DeviceError as error:
                logger.warning("after a failure the device does not end its work: %s", error)


class _Run:
    """The pieces of one run: their gathering, and what is known of their times."""

    def __init__(self, total_edges: int, num_pieces: int) -> None:
        self.total_edges, self.num_pieces = total_edges, num_pieces
        self.gathers: list[Call[_Gathered]] = []
        self.gathered: list[_Gathered] = []
        self.copies: list[tuple[float, float]] = []
        self.kernels: list[tuple[float, float]] = []

    @property
    def num_timed(self) -> int:
        """Pieces whose copy and kernels have been timed."""
        return len(self.kernels)

    def metrics(self, span_seconds: float) -> StagingMetrics:
        """Add up the pieces, when all are done."""
        return StagingMetrics(
            num_pieces=self.num_pieces,
            bytes_read=sum(g.num_bytes for g in self.gathered),
            read_seconds=covered_seconds((g.began, g.ended) for g in self.gathered),
            copy_seconds=covered_seconds(self.copies),
            kernel_seconds=covered_seconds(self.kernels),
            span_seconds=span_seconds,
            idle_seconds=max(0.0, span_seconds - covered_seconds(self.copies + self.kernels)),
        )


def covered_seconds(intervals: Iterable[tuple[float, float]]) -> float:
    """Length of the union of some intervals.

    Examples
    --------
    >>> covered_seconds([(2.0, 3.0), (0.0, 1.0), (0.5, 1.5)])
    2.5
    """
    total, reached = 0.0, -np.inf
    for began, ended in sorted(intervals):
        total += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return float(total)
