"""What a search notes of its levels: metrics of each, of neighbours together where there are thousands.

In: metrics of one level, or a table of many that a call has found. Out: `Iteration`, one for each level or for several. A path of a million
vertices has a million levels, and metrics of each as objects would take 300 MB and 8 s.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from oocgraph.results.search import DeviceMetrics, Iteration
from oocgraph.types import Array

MOST_ROWS = 1 << 13
"""Rows of tables before neighbours are summed."""

COLUMNS = LEVEL, FRONTIER, EDGES, BYTES, NANOSECONDS, PULLED, PUSH, PULL, NUM_LEVELS = range(9)
"""Of a table: the last level, and sums: active vertices, their edges, bytes read, time, pulls, estimates of both directions, levels."""

EVENT_COLUMNS = NANOSECONDS + 1
"""The first of them, which workers send."""

Moved = Callable[[int, int], DeviceMetrics | None]
"""What goes to a device for levels of so many vertices and edges; None where nothing is known of it."""


class _Table(NamedTuple):
    rows: Array
    is_serial: bool

    def summed(self, span: int) -> _Table:
        """Return a row for each `span` levels."""
        number = self.rows[:, LEVEL] // span
        begins = np.flatnonzero(np.diff(number, prepend=-1))
        rows = np.add.reduceat(self.rows, begins)
        rows[:, LEVEL] = self.rows[np.append(begins[1:], len(number)) - 1, LEVEL]
        return _Table(rows, self.is_serial)

    def iterations(self, moved: Moved) -> list[Iteration]:
        return [
            Iteration(
                int(level), "pull" if 2 * pulled > num_levels else "push", self._reason(push, pull, int(num_levels)), int(frontier), 0,
                ns / 1e9, int(num_bytes), device=None if self.is_serial else moved(int(frontier), int(num_edges)),
            )
            for level, frontier, num_edges, num_bytes, ns, pulled, push, pull, num_levels in self.rows.tolist()
        ]  # fmt: skip

    def _reason(self, push: float, pull: float, num_levels: int) -> str:
        if num_levels > 1:
            return f"{num_levels} levels, {'of one thread' if self.is_serial else 'of few edges'}"
        if not self.is_serial:
            return "few edges: many levels in one call"
        return f"one thread: a push takes {push:.0f} ns" + (f", a pull {pull:.0f} ns" if pull else "")


class LevelLog:
    """Metrics of the levels of one search, in order."""

    def __init__(self) -> None:
        self._records: list[Iteration | _Table] = []
        self._num_rows, self._most_rows, self._span = 0, MOST_ROWS, 1

    def add(self, iteration: Iteration) -> None:
        """Append a level."""
        self._records.append(iteration)

    def add_tiny(self, first: int, log: Array) -> None:
        """Append levels from `first` on that were pushed in one call: (num_levels, 4) active vertices, edges, bytes and nanoseconds."""
        self._add(first, log, (FRONTIER, EDGES, BYTES, NANOSECONDS), is_serial=False)

    def add_serial(self, first: int, log: Array) -> None:
        """Append levels that one thread has found: see `oocgraph.kernels.serial_levels.LOG_COLUMNS`."""
        self._add(first, log, (FRONTIER, EDGES, NANOSECONDS, PULLED, PUSH, PULL), is_serial=True)

    def _add(self, first: int, log: Array, columns: tuple[int, ...], *, is_serial: bool) -> None:
        if not len(log):
            return
        rows = np.zeros((len(log), len(COLUMNS)))
        rows[:, LEVEL], rows[:, NUM_LEVELS] = first + np.arange(len(log)), 1
        rows[:, columns] = log
        self._records.append(_Table(rows, is_serial))
        self._num_rows += len(rows)
        if self._num_rows > self._most_rows:
            self._sum()

    def _sum(self) -> None:
        """Sum neighbours in tables that follow each other, until there is room for as many rows again."""
        tables: list[Iteration | _Table] = []
        for kind, group in groupby(self._records, key=lambda one: one.is_serial if isinstance(one, _Table) else None):
            if kind is None:
                tables += group
            else:
                tables.append(_Table(np.concatenate([one.rows for one in group if isinstance(one, _Table)]), kind))
        while True:
            self._records = [one.summed(self._span) if isinstance(one, _Table) else one for one in tables]
            self._num_rows = sum(len(one.rows) for one in self._records if isinstance(one, _Table))
            if self._num_rows <= max(MOST_ROWS // 2, len(self._records)):
                self._most_rows = max(MOST_ROWS, 2 * self._num_rows)
                return
            self._span *= 2

    def drain(self) -> list[Any]:
        """Return what has come since the last call: an `Iteration`, or (num_levels, `EVENT_COLUMNS`) float64."""
        records, self._records, self._num_rows = self._records, [], 0
        return [one if isinstance(one, Iteration) else np.ascontiguousarray(one.rows[:, :EVENT_COLUMNS]) for one in records]

    def iterations(self, moved: Moved) -> tuple[Iteration, ...]:
        """Return all; `moved` tells what went to a device for levels of few edges."""
        found: list[Iteration] = []
        for record in self._records:
            found += [record] if isinstance(record, Iteration) else record.iterations(moved)
        return tuple(found)
