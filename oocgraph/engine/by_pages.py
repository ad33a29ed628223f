"""A search of a graph that is not loaded, by the pages of the rows that it reaches: for questions about the surroundings of vertices.

In: a graph on disk, sources. Out: a `Search`. Levels are found one after the other: rows of the frontier are read together
(`oocgraph.store.scattered`), and what they have that is new goes into arrays that grow.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.engine.few import Reached, searched
from oocgraph.engine.state import are_marked
from oocgraph.kernels import few as kernels
from oocgraph.kernels.cpu import mark_vertices
from oocgraph.memory import SLACK_BYTES, Budget, device_bytes_read
from oocgraph.results.search import Search
from oocgraph.results.writer import writing_bytes
from oocgraph.store.answering import budget_of
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.store.row_places import row_ends, row_lengths, row_pieces
from oocgraph.store.scattered import RangeReader
from oocgraph.types import Array

PIECE_ENTRIES, ENTRY_BYTES = 1 << 17, 40
"""Entries of rows that are read at once, and what each takes, with its row."""

BLOCK_ROWS, ROW_BYTES = 1 << 15, 128
"""Rows that are looked up at once, and what each takes: where it begins and ends, and while these are found."""

FOUND_BYTES = 28
"""What a vertex takes that was found: its number and parent, of 4 bytes each, its level, and its place among those found."""


class Question(NamedTuple):
    """What is asked about the surroundings of some vertices.

    Attributes
    ----------
    sources, targets : (n,) int64
        Store numbers; targets at which the search may stop, perhaps none.
    last_level
    most_edges, most_levels
        Edges that are followed, and levels that are found, at the most; beyond them the search is given up.
    """

    sources: Array
    targets: Array
    last_level: int
    most_edges: int
    most_levels: int


def search_by_pages(store: CSRStore, question: Question, limit_bytes: int) -> Search | None:
    """Answer a question; None where too many edges are to be followed, over too many levels.

    Raises
    ------
    BudgetError
        What is found does not fit.
    CorruptStoreError
        What is read is damaged.
    """
    _load(store)
    load_libraries(store)
    budget = budget_of(store, limit_bytes)
    budget.alternatively("the result, when it is written,", SLACK_BYTES + writing_bytes(store))
    entries = min(PIECE_ENTRIES, store.attributes.num_stored_edges)
    budget.reserve_all({"pieces of rows": ENTRY_BYTES * entries + ROW_BYTES * min(BLOCK_ROWS, store.num_rows)})
    device, began = device_bytes_read(), time.perf_counter()
    with RangeReader(store, budget) as reader:
        found = _Found(store, reader, budget, question.sources)
        while found.frontier and found.level < question.last_level and not found.has_all(question.targets):
            if found.all_edges > question.most_edges or found.level >= question.most_levels:
                return None
            found.follow()
    reached = Reached(found.vertex[: found.size], found.parent[: found.size], np.array(found.begins), found.all_edges, found.measured)
    return searched(store, question.sources, reached, began, device_bytes=device_bytes_read() - device)


class _Found:
    """What a search has found, level by level: vertices and parents in arrays that grow where they are, and a bit for each vertex."""

    def __init__(self, store: CSRStore, reader: RangeReader, budget: Budget, sources: Array) -> None:
        self.store, self.reader, self.budget, self.size = store, reader, budget, sources.size
        self.budget.reserve("a bit for each vertex", store.num_rows // 8 + 8)
        self.seen = np.zeros(store.num_rows // 64 + 1, np.uint64)
        self.vertex, self.parent = np.empty(0, store.index_dtype), np.empty(0, store.index_dtype)
        self._make_room(max(kernels.FIRST_ROOM, sources.size))
        self.vertex[: self.size] = self.parent[: self.size] = sources
        mark_vertices(sources, self.size, self.seen)
        self.begins, self.measured, self.all_edges = [0], list[tuple[int, int]](), 0
        self._count_edges()

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
        return bool(targets.size) and bool(are_marked(self.seen, targets).all())

    def follow(self) -> None:
        """Find the next level."""
        began, before, stop = time.perf_counter_ns(), self.reader.bytes_read.total(), self.size
        self.budget.reserve_up_to("frontier", self.vertex.itemsize * self.frontier)
        frontier = np.sort(self.vertex[self.begins[-1] : stop])
        for start in range(0, frontier.size, BLOCK_ROWS):
            block = frontier[start : start + BLOCK_ROWS].astype(np.int64)
            for which, low, high in row_pieces(*row_ends(self.store, "out", block, self.reader), PIECE_ENTRIES):
                near = self.reader.read("out/indices", low, high)
                if (wanted := min(self.store.num_rows, self.size + near.size)) > self.vertex.size:
                    self._make_room(max(wanted, self.size + self.size // 4))
                ends = np.cumsum(high - low)
                self.size = kernels.add_rows(self.seen, self.vertex, self.parent, self.size, block[which], ends, near)
        self.measured.append((time.perf_counter_ns() - began, self.reader.bytes_read.total() - before))
        self.begins.append(stop)
        self._count_edges()

    def _count_edges(self) -> None:
        """Add the degrees of the frontier to those of all vertices before."""
        for start in range(self.begins[-1], self.size, BLOCK_ROWS):
            block = np.sort(self.vertex[start : min(self.size, start + BLOCK_ROWS)]).astype(np.int64)
            self.all_edges += int(row_lengths(self.store, "out", block, self.reader).sum())

    def _make_room(self, room: int) -> None:
        room = min(room, self.store.num_rows)
        self.budget.reserve_up_to("vertices found", FOUND_BYTES * room)
        for array in (self.vertex, self.parent):
            array.resize(room, refcheck=False)


def _load(store: CSRStore) -> None:
    """Bring the kernels into memory, before memory is counted."""
    numbers, bits, near = np.zeros(1, np.int64), np.zeros(1, np.uint64), np.zeros(1, store.index_dtype)
    load_kernels([(kernels.add_rows, (bits, near, near, 0, numbers, numbers, near)), (mark_vertices, (numbers, 0, bits))])
