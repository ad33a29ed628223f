"""Metrics of a search on a cluster, put together from the events of its steps.

In: one event for each step and partition. Out: an `Iteration` for each level, with the share of every worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from oocgraph.results.search import DeviceMetrics, Iteration, PartMetrics
from oocgraph.types import Array

TINY = "few edges: every worker takes these levels alike, without an exchange"


class Metrics:
    """Collects events; the metrics are made when asked for.

    Parameters
    ----------
    num_partitions
        Events that each step sends.

    Attributes
    ----------
    device_bytes
        Bytes that workers had read from block devices.
    num_reached
        Vertices reached before the last step known.
    """

    def __init__(self, num_partitions: int) -> None:
        self.num_partitions = num_partitions
        self._events: dict[tuple[int, int], dict[str, Any]] = {}
        self._arrived: dict[int, float] = {-1: time.perf_counter()}
        self.device_bytes = 0
        self.num_reached = 0

    def add(self, event: dict[str, Any]) -> None:
        """Take an event; of a step taken again the later one counts."""
        self._events[int(event["step"]), int(event["partition"])] = event
        self._arrived[int(event["step"])] = time.perf_counter()
        self.device_bytes += int(event["device_bytes"])
        self.num_reached = max(self.num_reached, int(event["num_reached"]))

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files by all workers."""
        return sum(row[5] for rows in self._rows().values() for row in rows)

    def busy_seconds(self) -> dict[str, float]:
        """Seconds that each worker spent on steps."""
        busy: dict[str, float] = {}
        for event in self._events.values():
            busy[event["worker"]] = busy.get(event["worker"], 0.0) + float(event["busy_seconds"])
        return busy

    def iterations(self) -> tuple[Iteration, ...]:
        """Metrics of each level, in order; one that was exchanged takes from its step's begin to the last of its events."""
        walls = self._wall_seconds()
        out: list[Iteration] = []
        for level, rows in sorted(self._rows().items()):
            directions = {row[1] for row in rows}
            parts = tuple(PartMetrics(p, worker, direction, seconds, num_bytes, sent, found, device.link_bytes if device else 0, idle)
                          for p, direction, _, worker, seconds, num_bytes, sent, found, _, _, device, idle in rows)  # fmt: skip
            _, direction, reason, *_ = rows[0]
            out.append(
                Iteration(
                    level=level,
                    direction=direction if len(directions) == 1 else "both",
                    reason=reason,
                    frontier=max(row[8] for row in rows),
                    undecided=sum(row[9] for row in rows),
                    seconds=max(*(part.seconds for part in parts), walls.get(level, 0.0)),
                    bytes_read=sum(part.bytes_read for part in parts),
                    parts=parts,
                    device=_on_devices([row[10] for row in rows if row[10] is not None]),
                )
            )
        return tuple(out)

    def _wall_seconds(self) -> dict[int, float]:
        """By level that was exchanged: the time of its step, less that of the tiny levels before."""
        walls: dict[int, float] = {}
        last = self._arrived[-1]
        for step, group in groupby(sorted(self._events), key=itemgetter(0)):
            events = [self._events[key] for key in group]
            tiny = max(
                sum(np.frombuffer(one).reshape(-1, 5)[:, 4].sum() for one in e["iterations"] if isinstance(one, bytes)) for e in events
            )
            spent = [e["seconds"] for e in events if "seconds" in e]  # together with the others, without going back to the scheduler
            wall = (max(spent) if len(spent) == len(events) else self._arrived[step] - last) - float(tiny) / 1e9
            walls |= {int(one[0]): wall for event in events for one in event["iterations"] if not isinstance(one, bytes)}
            last = self._arrived[step]
        return walls

    def _rows(self) -> dict[int, list[tuple[Any, ...]]]:
        """By level: (partition, direction, reason, worker, seconds, bytes, sent, found, frontier, undecided, device, idle) of each part."""
        levels: dict[int, list[tuple[Any, ...]]] = {}
        for _, event in sorted(self._events.items()):
            for level, row in _levels_of(event):
                levels.setdefault(level, []).append((int(event["partition"]), *row))
        return levels


def _levels_of(event: dict[str, Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield (level, metrics) of each level that a step has taken."""
    worker, early = event["worker"], event["num_found_early"]
    for metrics in event["iterations"]:
        if isinstance(metrics, bytes):
            table: Array = np.frombuffer(metrics).reshape(-1, 5)
            for level, frontier, _, num_bytes, nanoseconds in table.tolist():
                at = int(level)
                found = int(early[at]) if at < len(early) else 0
                yield at, ("push", TINY, worker, nanoseconds / 1e9, int(num_bytes), 0, found, int(frontier), 0, None, 0.0)
        else:
            level, direction, reason, frontier, undecided, seconds, num_bytes, *moved = metrics
            sent, found = int(event["sent_bytes"]), int(event["num_found"])
            device = DeviceMetrics(*moved[0]) if moved else None
            idle = float(event["seconds"] - event["seconds_alone"]) if "seconds" in event else 0.0
            row = direction, reason, worker, seconds, int(num_bytes), sent, found, int(frontier), int(undecided), device, idle
            yield int(level), row


def _on_devices(moved: Sequence[DeviceMetrics]) -> DeviceMetrics | None:
    """Sum what the workers' devices did in one level; they did it at the same time, so that the span is the longest."""
    if not moved:
        return None
    sums = {name: sum(getattr(one, name) for one in moved) for name in _SUMMED}
    longest = max(moved, key=attrgetter("span_seconds"))
    return DeviceMetrics(moved[0].access, **sums, span_seconds=longest.span_seconds, idle_seconds=longest.idle_seconds)


_SUMMED = ("link_bytes", "num_batches", "num_pieces", "read_seconds", "copy_seconds", "kernel_seconds")
