"""Sweeps over all edges of a graph: kernels are given whole rows, and vectors of all vertices, as often as an algorithm wants.

In: a store, what an algorithm needs (`Needs`), a budget. Out: `Sweeps`, whose `pull` gives every row of a list to a kernel once, in several
threads, while others read. Edges stay in memory from one sweep to the next as far as the budget goes. A kernel is called as

    kernel(first, pointers, start, indices, values, *whole, *mine, *own, *scalars)

for rows ``first .. first + pointers.size - 2``. The neighbours of row ``first + r`` are
``indices[pointers[r] - start : pointers[r + 1] - start]``, and their weights are there in `values`, which is None without a column. `whole`
are arrays of all vertices, which it reads; `mine` those of the rows alone, which it may write: no row is in two calls, so nothing is atomic
and no result depends on the number of threads. `own` is scratch, which no other call has meanwhile.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from oocgraph.engine.blocks import total_degrees
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import SLACK_BYTES, Budget, device_bytes_read, page_cache_bytes
from oocgraph.results.writer import writing_bytes
from oocgraph.sparse.edge_stream import READ_AHEAD, EdgeStream, pieces_bytes
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.graph import BLOCK_VERTICES, CSRStore
from oocgraph.store.layout import SELF_LOOPS
from oocgraph.team import Team, team_of
from oocgraph.types import Array, Progress, ignore_progress

RANGE_VERTICES = 1 << 16
"""Vertices of a range."""

Lists = Literal["in", "out"]
"""Which lists are swept; those of an undirected graph are the same."""


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
        Each kernel that is not given rows, with all arguments.
    own_bytes
        Bytes of the scratch of one call (see `Sweeps.num_callers`).
    room_bytes
        Bytes of edges that it holds in an order of its own: the least that will do, and the most that are of use. They come before edges
        that stay in memory as they are.
    """

    vectors: Mapping[str, int]
    result_bytes: int
    lists: Sequence[Lists] = ("in",)
    column: str | None = None
    kernels: Sequence[tuple[Any, ...]] = ()
    vertex_kernels: Sequence[tuple[Any, ...]] = ()
    own_bytes: int = 0
    room_bytes: tuple[int, int] = (0, 0)


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
    room_bytes : int
        Granted of those that were asked for.
    num_callers : int
        Calls of a kernel at a time, at most.
    num_sweeps : int
        Made so far.
    """

    store: CSRStore
    team: Team
    progress: Progress
    device_began: int
    room_bytes: int
    num_callers: int
    num_sweeps: int = 0
    _streams: dict[Lists, tuple[EdgeStream, int]] = field(default_factory=dict)

    def pull(
        self, kernel: Any, whole: Sequence[Array] = (), mine: Sequence[Array] = (), scalars: Sequence[Any] = (), *, lists: Lists = "in",
        own: Sequence[Sequence[Array]] = (), rows: tuple[int, int] | None = None,
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
        own
            Scratch: arrays for each of `num_callers`, as one call leaves them to the next.
        rows
            The first row that is wanted, and the one behind the last: pieces that have none of these are left out, and others given whole.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        scratch: queue.SimpleQueue[Sequence[Array]] = queue.SimpleQueue()
        for one in own or [()] * self.num_callers:
            scratch.put(one)

        def call(part: PartialCSR) -> Any:
            lines, arrays = slice(part.first_line, part.stop_line), scratch.get()
            try:
                return kernel(
                    part.first_line, part.pointers, part.start, part.indices, _as_numbers(part.values), *whole,
                    *(one[lines] for one in mine), *arrays, *scalars,
                )  # fmt: skip
            finally:
                scratch.put(arrays)

        self.num_sweeps += 1
        return self._stream(lists).each(call, rows)

    def add_up(self, *results: Sequence[float]) -> float:
        """Add up what calls have returned: always in the same order."""
        return float(np.sum([np.sum(one) for one in results]))

    def vertices(self, call: Callable[[int, int], Any], seconds: float) -> list[Any]:
        """Return what ``call(start, stop)`` makes of ranges of all vertices, always the same; all take so long in one thread."""
        n = self.store.num_vertices
        ranges = [(start, min(n, start + RANGE_VERTICES)) for start in range(0, n, RANGE_VERTICES)]
        return self.team.run(lambda piece: call(*piece), ranges, seconds)

    def degrees(self) -> Array:
        """Neighbours of each vertex of an undirected graph without duplicates, itself left out: (num_vertices,) int32 or int64."""
        degree = total_degrees(self.store)
        if self.store.attributes.num_self_loops:
            for _, vertices in self.store.array(SELF_LOOPS).blocks(BLOCK_VERTICES):
                np.subtract.at(degree, vertices, 1)
        return degree

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
    num_callers = threads + READ_AHEAD
    with trial.all_or_none():
        _charge(needs, num_callers, trial)
        for one in lists:
            trial.reserve("pieces of edges", pieces_bytes(store, transpose=one == "in", **options))
    _charge(needs, num_callers, budget)
    room, most = needs.room_bytes
    if most > room:
        pieces = sum(pieces_bytes(store, transpose=one == "in", **options) for one in lists)
        more = min(most - room, max(0, budget.available_bytes - pieces))
        budget.reserve("edges in another order", more)
        room += more
    with team_of(threads) as team:
        sweeps = Sweeps(store, team, progress, device_bytes_read(), room, num_callers)
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
    load_kernels([*calls, *((kernel, tuple(arguments)) for kernel, *arguments in needs.vertex_kernels)])


def _charge(needs: Needs, num_callers: int, budget: Budget) -> None:
    budget.reserve("threads and compiled code", SLACK_BYTES)
    others = {"scratch": num_callers * needs.own_bytes, "edges in another order": needs.room_bytes[0]}
    for name, num_bytes in {**needs.vectors, **{name: size for name, size in others.items() if size}}.items():
        budget.reserve(name, num_bytes)


def _distinct(store: CSRStore, lists: Sequence[Lists]) -> list[Lists]:
    """Return the lists that a graph has."""
    return list(dict.fromkeys(lists)) if store.attributes.directed else ["out"]


def _as_numbers(values: Array | None) -> Array | None:
    """Return bools as bytes, which kernels can multiply."""
    return values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values
