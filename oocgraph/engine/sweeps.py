"""Sweeps over all edges of a graph: kernels are given whole rows, and vectors of all vertices, as often as an algorithm wants.

In: a store, what an algorithm needs (`Needs`), a budget. Out: `Sweeps`, whose `pull` gives every row of a list to a kernel once, in several
threads, while others read. Edges stay in memory from one sweep to the next as far as the budget goes. A kernel is called as

    kernel(first, pointers, start, indices, values, *whole, *mine, *scalars)

for rows ``first .. first + pointers.size - 2``. The neighbours of row ``first + r`` are
``indices[pointers[r] - start : pointers[r + 1] - start]``, and their weights are there in `values`, which is None without a column. `whole`
are arrays of all vertices, which it reads; `mine` those of the rows alone, which it may write: no row is in two calls, so nothing is atomic
and no result depends on the number of threads.

A sweep that needs few of the rows (`Rows`) says so: `Sweeps.select` finds where they are and what they cost, and `pull` with that leaves
the rest on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.kernels import selection
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import SLACK_BYTES, Budget, device_bytes_read, page_cache_bytes
from oocgraph.results.writer import writing_bytes
from oocgraph.sparse import edge_stream
from oocgraph.sparse.edge_stream import EdgeStream, Ranges, pieces_bytes
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.graph import CSRStore
from oocgraph.team import Team, team_of
from oocgraph.types import PAGE_BYTES, Array, Progress, ignore_progress

RANGE_VERTICES = 1 << 16
"""Vertices of a range."""

MOST_RANGES = 64
"""Ranges of rows of a piece that are read one by one: each takes about 30 us, as long as reading 64 KiB in one go."""

MOST_SELECTIONS = 2
"""Selections that an algorithm holds at once."""

GAP_PAGES = 4
"""Pages between two rows that are read with them, if there are no more."""

Lists = Literal["in", "out"]
"""Which lists are swept; those of an undirected graph are the same."""


class Rows(NamedTuple):
    """Rows that a sweep needs: those v with ``(words[v] ^ inverted) & mask``, not 0.

    Attributes
    ----------
    words : (num_vertices,) uint64
    mask, inverted : uint64
    """

    words: Array
    mask: Any = np.uint64(2**64 - 1)
    inverted: Any = np.uint64(0)


class Selection(NamedTuple):
    """Where rows are that a sweep needs.

    Attributes
    ----------
    lists
        Their lists.
    ranges
        Pieces that have such rows, and which rows of them are read.
    num_entries, num_read : int
        About how many neighbours these rows have, and how many are read from the store.
    """

    lists: Lists
    ranges: Ranges
    num_entries: int
    num_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What an algorithm needs, all of which is charged before anything is read.

    Attributes
    ----------
    vectors
        Bytes of arrays of all vertices, by name; those of the result included.
    result_bytes
        Bytes of the result, which stays when the rest is gone.
    lists
        Which lists it sweeps.
    column
        Edge column of the weights; None: all are one.
    kernels
        Each kernel with arguments, those of the rows left out, that have the types with which it is called.
    vertex_kernels
        Each kernel of ranges of vertices, with arguments of the types with which it is called.
    selects
        Whether it sweeps over some of the rows only (`Sweeps.select`).
    """

    vectors: Mapping[str, int]
    result_bytes: int
    lists: Sequence[Lists] = ("in",)
    column: str | None = None
    kernels: Sequence[tuple[Any, ...]] = ()
    vertex_kernels: Sequence[tuple[Any, ...]] = ()
    selects: bool = False


@dataclass(slots=True, eq=False)
class Sweeps:
    """The edges of a graph for any number of sweeps; `open_sweeps` makes one.

    Attributes
    ----------
    store : CSRStore
    team : Team
        Threads, for work on vertices.
    progress : Progress
    device_began : int
        Bytes that the process had read from devices before.
    num_sweeps : int
        Made so far.
    """

    store: CSRStore
    team: Team
    progress: Progress
    device_began: int
    num_sweeps: int = 0
    _streams: dict[Lists, tuple[EdgeStream, int]] = field(default_factory=dict)

    def pull(
        self, kernel: Any, whole: Sequence[Array] = (), mine: Sequence[Array] = (), scalars: Sequence[Any] = (), *, lists: Lists = "in",
        only: Selection | None = None,
    ) -> list[Any]:  # fmt: skip
        """Give every row to a kernel, and return what its calls return, in the order of the rows.

        Parameters
        ----------
        kernel
            Compiled; called in several threads at once (see this module).
        whole, mine
            Arrays of all vertices along the first axis; of `mine` each call gets its rows.
        scalars
            Numbers, or arrays that all calls share.
        lists
            Of an undirected graph, there is one list of a vertex, and ``in`` is ``out``.
        only
            Rows that are needed, and whose lists; the kernel is given others too, where these are in memory or near. By default all.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """

        def call(part: PartialCSR) -> Any:
            rows = slice(part.first_line, part.stop_line)
            return kernel(
                part.first_line, part.pointers, part.start, part.indices, _as_numbers(part.values), *whole,
                *(one[rows] for one in mine), *scalars,
            )  # fmt: skip

        self.num_sweeps += 1
        return self._stream(lists if only is None else only.lists).each(call, None if only is None else only.ranges)

    def select(self, rows: Rows, *, lists: Lists = "in") -> Selection:
        """Find where rows are that a sweep needs, and about what it costs."""
        stream = self._stream(lists)
        num_entries, num_read, ranges = 0, 0, dict[int, Array | None]()
        scratch = np.empty((MOST_RANGES, 2), np.int64)
        for i, part in enumerate(stream.parts):
            page = PAGE_BYTES // part.indices.dtype.itemsize
            mean = max(1.0, part.num_entries / max(1, part.num_lines))
            num_ranges, num_rows, num_between = selection.find_ranges(
                *rows, part.first_line, part.stop_line, max(1, int(GAP_PAGES * page / mean)), scratch
            )
            if not num_rows:
                continue
            is_whole = i < stream.num_kept or num_ranges == MOST_RANGES or num_between > part.num_lines // 2
            ranges[i] = None if is_whole else scratch[:num_ranges].copy()
            num_entries += int(num_rows * mean)
            if i >= stream.num_kept:
                num_read += part.num_entries if is_whole else int(num_between * mean) + num_ranges * page
        return Selection(lists, ranges, num_entries, num_read)

    def add_up(self, *results: Sequence[float]) -> float:
        """Add up what calls have returned: always in the same order."""
        return float(np.sum([np.sum(one) for one in results]))

    def vertices(self, call: Callable[[int, int], Any], seconds: float) -> list[Any]:
        """Return what ``call(start, stop)`` makes of ranges of all vertices, always the same; all take so long in one thread."""
        n = self.store.num_vertices
        ranges = [(start, min(n, start + RANGE_VERTICES)) for start in range(0, n, RANGE_VERTICES)]
        return self.team.run(lambda piece: call(*piece), ranges, seconds)

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files so far."""
        return sum(stream.bytes_requested - before for stream, before in self._streams.values())

    @property
    def bytes_read(self) -> int:
        """The larger of these and the device bytes of the process."""
        return max(self.bytes_requested, device_bytes_read() - self.device_began)

    @property
    def longest_row(self) -> int:
        """Neighbours, at most, that a call is given."""
        return max(part.num_entries for stream, _ in self._streams.values() for part in stream.parts)

    def _stream(self, lists: Lists) -> EdgeStream:
        return self._streams[lists if self.store.attributes.directed or lists in self._streams else next(iter(self._streams))][0]


@contextmanager
def open_sweeps(
    store: CSRStore, needs: Needs, opened: OpenedGraph | Unopened, budget: Budget, *, threads: int, progress: Progress = ignore_progress
) -> Iterator[Sweeps]:
    """Charge what an algorithm needs, and yield the edges.

    Raises
    ------
    BudgetError
        It does not fit; the message names all of it and the smallest budget that works.
    """
    lists = _distinct(store, needs.lists)
    options: dict[str, Any] = {"column": needs.column, "threads": threads, "whole_rows": True}
    trial = Budget(budget.limit_bytes, budget.baseline_bytes, following_bytes=budget.following_bytes)
    trial.alternatively("the result, when it is written,", needs.result_bytes + SLACK_BYTES + writing_bytes(store))
    with trial.all_or_none():
        _charge(store, needs, trial)
        for one in lists:
            trial.reserve("pieces of edges", pieces_bytes(store, transpose=one == "in", **options))
    _charge(store, needs, budget)
    with team_of(threads) as team:
        sweeps = Sweeps(store, team, progress, device_bytes_read())
        for i, one in enumerate(lists):
            others = sum(pieces_bytes(store, transpose=other == "in", **options) for other in lists[i + 1 :])
            fair = budget.available_bytes // (len(lists) - i) * (len(lists) - i - 1)
            if others:
                budget.reserve("other lists", max(others, min(fair, budget.available_bytes // 2)))
            stream = opened.edges(store, budget, transpose=one == "in", keep_edges=True, **options)
            if others:
                budget.release("other lists")
            stream.read_directly(page_cache_bytes(budget.limit_bytes))
            sweeps._streams[one] = stream, stream.bytes_requested
        yield sweeps


def load_sweep_kernels(store: CSRStore, needs: Needs) -> None:
    """Bring the kernels of an algorithm into memory, before memory is counted."""
    calls = []
    for one in _distinct(store, needs.lists):
        indices, pointers = (np.empty(0, store.array(f"{one}/{name}").dtype.newbyteorder("=")) for name in ("indices", "indptr"))
        values = None
        if needs.column is not None:
            values = _as_numbers(np.empty(0, store.array(f"{one}/{needs.column}").dtype.newbyteorder("=")))
        calls += [(kernel, (0, pointers, 0, indices, values, *arguments)) for kernel, *arguments in needs.kernels]
    calls += [(kernel, tuple(arguments)) for kernel, *arguments in needs.vertex_kernels]
    if needs.selects:
        calls.append((selection.find_ranges, (*Rows(np.empty(0, np.uint64)), 0, 0, 0, np.empty((0, 2), np.int64))))
    load_kernels(calls)


def _charge(store: CSRStore, needs: Needs, budget: Budget) -> None:
    budget.reserve("threads and compiled code", SLACK_BYTES)
    if needs.selects:
        num_pieces = store.edge_bytes // edge_stream.PIECE_BYTES + 1
        budget.reserve("ranges of rows", MOST_SELECTIONS * num_pieces * MOST_RANGES * 16)
    for name, num_bytes in needs.vectors.items():
        budget.reserve(name, num_bytes)


def _distinct(store: CSRStore, lists: Sequence[Lists]) -> list[Lists]:
    """Return the lists that a graph has."""
    return list(dict.fromkeys(lists)) if store.attributes.directed else ["out"]


def _as_numbers(values: Array | None) -> Array | None:
    """Return bools as bytes, which kernels can multiply."""
    return values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values
