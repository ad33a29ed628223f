"""A search of a graph that is not loaded, by the pages of the rows that it reaches: for questions about the surroundings of vertices.

In: a graph on disk, sources. Out: a `Search`. Levels are found one after the other: rows of the frontier are read together
(`oocgraph.store.scattered`), and what they have that is new goes into a table that grows (`oocgraph.kernels.few`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from oocgraph.engine.few import FOUND_BYTES, Reached, searched
from oocgraph.kernels import few as kernels
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import SLACK_BYTES, Budget, device_bytes_read
from oocgraph.results.search import Search
from oocgraph.results.writer import writing_bytes
from oocgraph.store.answering import budget_of
from oocgraph.store.graph import CSRStore
from oocgraph.store.row_places import row_ends
from oocgraph.store.scattered import RangeReader
from oocgraph.types import Array

PIECE_ENTRIES, ENTRY_BYTES = 1 << 17, 40
"""Entries of rows that are read at once, and what each takes, with its row."""

ROW_BYTES = 96
"""What a row of the frontier takes: sorted, where it begins and ends, and while these are found."""


class Question(NamedTuple):
    """What is asked about the surroundings of some vertices.

    Attributes
    ----------
    sources, targets : (n,) int64
        Store numbers; targets at which the search may stop, perhaps none.
    last_level
    most_edges
        Edges that are followed at the most; beyond them the search is given up.
    """

    sources: Array
    targets: Array
    last_level: int
    most_edges: int


def search_by_pages(store: CSRStore, question: Question, limit_bytes: int) -> Search | None:
    """Answer a question; None where too many edges are to be followed.

    Raises
    ------
    BudgetError
        What is found does not fit.
    CorruptStoreError
        What is read is damaged.
    """
    _load(store)
    budget = budget_of(store, limit_bytes)
    budget.alternatively("the result, when it is written,", SLACK_BYTES + writing_bytes(store))
    budget.reserve_all({"pieces of rows": ENTRY_BYTES * min(PIECE_ENTRIES, store.attributes.num_stored_edges)})
    device, began = device_bytes_read(), time.perf_counter()
    with RangeReader(store, budget) as reader:
        found = _Found(store, budget, question.sources)
        while found.frontier and found.level < question.last_level and not found.has_all(question.targets):
            if not found.follow(reader, question.most_edges):
                return None
    reached = Reached(found.vertex[: found.size], found.parent[: found.size], np.array(found.begins), found.all_edges, found.measured)
    return searched(store, question.sources, reached, began, device_bytes=device_bytes_read() - device)


class _Found:
    """What a search has found, level by level."""

    def __init__(self, store: CSRStore, budget: Budget, sources: Array) -> None:
        self.store, self.budget, self.size = store, budget, sources.size
        self.vertex, self.parent, self.slots = sources, sources, np.empty(0, np.int32)
        self.begins, self.measured, self.all_edges = [0], list[tuple[int, int]](), 0
        self._make_room(max(kernels.FIRST_ROOM, 2 * sources.size))
        self._measure()

    @property
    def level(self) -> int:
        """Level of the frontier."""
        return len(self.begins) - 1

    @property
    def frontier(self) -> int:
        """Vertices in it."""
        return self.size - self.begins[-1]

    def has_all(self, targets: Array) -> bool:
        """Whether there are targets, and all of them are found."""
        return bool(targets.size) and bool(np.isin(targets, self.vertex[: self.size]).all())

    def follow(self, reader: RangeReader, most_edges: int) -> bool:
        """Find the next level, unless that would be too much."""
        if self.all_edges > most_edges:
            return False
        began, before, stop = time.perf_counter_ns(), sum(reader.bytes_read.values()), self.size
        for rows, low, high in _pieces(self.rows, self.first, self.end):
            near = reader.read("out/indices", low, high)
            if (wanted := min(self.store.num_rows, self.size + near.size)) > self.vertex.size:
                self._make_room(max(wanted, min(self.store.num_rows, 2 * self.vertex.size)))
            self.size = kernels.add_rows(
                self.vertex, self.parent, self.slots, self.size, self.store.num_rows, rows, np.cumsum(high - low), near
            )  # fmt: skip
        self.measured.append((time.perf_counter_ns() - began, sum(reader.bytes_read.values()) - before))
        self.begins.append(stop)
        self._measure()
        return True

    def _measure(self) -> None:
        """Find the rows of the frontier, ascending, and their edges."""
        self._hold("frontier", ROW_BYTES * self.frontier)
        self.rows = np.sort(self.vertex[self.begins[-1] : self.size])
        self.first, self.end = row_ends(self.store, "out", self.rows)
        self.all_edges += int((self.end - self.first).sum())

    def _make_room(self, room: int) -> None:
        room = max(1, min(room, self.store.num_rows))
        self._hold("vertices found", FOUND_BYTES * room)
        self.vertex, self.parent, self.slots = kernels.with_room(self.vertex, self.parent, self.size, room, self.store.num_rows)

    def _hold(self, name: str, num_bytes: int) -> None:
        self.budget.reserve(name, max(0, num_bytes - self.budget.reservations.get(name, 0)))


def _pieces(rows: Array, first: Array, end: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Cut rows into pieces of at most `PIECE_ENTRIES` entries: the rows of each, and which of their entries are in it."""
    offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - first)])
    for start in range(0, int(offset[-1]), PIECE_ENTRIES):
        stop = min(int(offset[-1]), start + PIECE_ENTRIES)
        a, z = int(np.searchsorted(offset, start, side="right")) - 1, int(np.searchsorted(offset, stop))
        low = first[a:z] + np.maximum(start - offset[a:z], 0)
        yield rows[a:z], low, first[a:z] + np.minimum(stop, offset[a + 1 : z + 1]) - offset[a:z]


def _load(store: CSRStore) -> None:
    """Bring the kernels into memory, before memory is counted."""
    numbers, slots, near = np.zeros(1, np.int64), np.zeros(16, np.int32), np.zeros(1, store.index_dtype)
    load_kernels(
        [(kernels.with_room, (numbers, numbers, 0, 1, 1)), (kernels.add_rows, (numbers, numbers, slots, 0, 1, numbers, numbers, near))]
    )
