"""Sweeps over all edges of a graph: kernels are given whole rows, and vectors of all vertices, as often as an algorithm wants.

In: a store, what an algorithm needs (`Needs`), a budget. Out: `Sweeps`, whose `pull` gives every row of a list to a kernel once, in several
threads, while others read. Edges stay in memory from one sweep to the next as far as the budget goes. A kernel is called as

    kernel(first, pointers, start, indices, values, *whole, *mine, *scalars, *scratch)

for rows ``first .. first + pointers.size - 2``. The neighbours of row ``first + r`` are
``indices[pointers[r] - start : pointers[r + 1] - start]``, and their weights are there in `values`, which is None without a column. `whole`
are arrays of all vertices, which it reads; `mine` those of the rows alone, which it may write: no row is in two calls, so nothing is atomic
and no result depends on the number of threads. `scratch` are arrays that no other call has at that time (`Needs.scratch`).
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.kernels.load import load_kernels
from oocgraph.memory import SLACK_BYTES, Budget, device_bytes_read, page_cache_bytes
from oocgraph.results.writer import writing_bytes
from oocgraph.sparse.edge_stream import READ_AHEAD, EdgeStream, pieces_bytes
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import longest_row
from oocgraph.team import Team, team_of
from oocgraph.types import Array, Progress, ignore_progress

RANGE_VERTICES = 1 << 16
"""Vertices of a range."""

BATCH_PIECES, MOST_BATCHES = 8, 16
"""Pieces of a batch of rows, at least, and batches, at most."""

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
        Each other kernel with all its arguments, of such types.
    scratch
        Dtype and length of arrays that a call has for itself (`Sweeps.pull`).
    """

    vectors: Mapping[str, int]
    result_bytes: int
    lists: Sequence[Lists] = ("in",)
    column: str | None = None
    kernels: Sequence[tuple[Any, ...]] = ()
    vertex_kernels: Sequence[tuple[Any, ...]] = ()
    scratch: Sequence[tuple[Any, int]] = ()


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
    _scratch: queue.SimpleQueue[Sequence[Array]] = field(default_factory=queue.SimpleQueue)

    def pull(
        self, kernel: Any, whole: Sequence[Array] = (), mine: Sequence[Array] = (), scalars: Sequence[Any] = (), *,
        lists: Lists = "in", has_scratch: bool = False, pieces: range | None = None,
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
        has_scratch
            Whether the kernel takes scratch arrays; they hold anything.
        pieces
            Pieces of the rows, one of `batches`; None: all rows.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """

        def call(part: PartialCSR) -> Any:
            rows, scratch = slice(part.first_line, part.stop_line), self._scratch.get() if has_scratch else ()
            try:
                return kernel(
                    part.first_line, part.pointers, part.start, part.indices, _as_numbers(part.values), *whole,
                    *(one[rows] for one in mine), *scalars, *scratch,
                )  # fmt: skip
            finally:
                if has_scratch:
                    self._scratch.put(scratch)

        self.num_sweeps += pieces is None or not pieces.start
        return self._stream(lists).each(call, pieces)

    def batches(self, lists: Lists = "in") -> list[tuple[range, slice]]:
        """Cut the rows into batches, always the same, that are large enough for several threads: pieces and rows of each."""
        parts = self._stream(lists).parts
        count = max(1, min(MOST_BATCHES, len(parts) // BATCH_PIECES))
        cuts = [len(parts) * i // count for i in range(count + 1)]
        return [(range(a, z), slice(parts[a].first_line, parts[z - 1].stop_line)) for a, z in pairwise(cuts)]

    def add_up(self, *results: Sequence[float]) -> float:
        """Add up what calls have returned: always in the same order."""
        return float(np.sum([np.sum(one) for one in results]))

    def pieces(self, lists: Lists = "in") -> list[AbstractContextManager[PartialCSR]]:
        """Return what holds each piece of the rows in memory while its context lasts, for work in threads of others; each once."""
        stream = self._stream(lists)
        return [stream.piece(i) for i in range(len(stream.parts))]

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
        _charge(needs, trial, threads)
        for one in lists:
            trial.reserve("pieces of edges", pieces_bytes(store, transpose=one == "in", **options))
    _charge(needs, budget, threads)
    with team_of(threads) as team:
        sweeps = Sweeps(store, team, progress, device_bytes_read())
        for _ in range((threads + READ_AHEAD) * bool(needs.scratch)):
            sweeps._scratch.put([np.empty(length, dtype) for dtype, length in needs.scratch])
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
    calls = [(kernel, tuple(arguments)) for kernel, *arguments in needs.vertex_kernels]
    for one in _distinct(store, needs.lists):
        indices, pointers = (np.empty(0, store.array(f"{one}/{name}").dtype.newbyteorder("=")) for name in ("indices", "indptr"))
        values = None
        if needs.column is not None:
            values = _as_numbers(np.empty(0, store.array(f"{one}/{needs.column}").dtype.newbyteorder("=")))
        calls += [(kernel, (0, pointers, 0, indices, values, *arguments)) for kernel, *arguments in needs.kernels]
    load_kernels(calls)


def longest_list(store: CSRStore, lists: Lists = "in") -> int:
    """Return the most neighbours that a vertex has."""
    group = lists if store.attributes.directed else "out"
    if group == store.pull_group and store.attributes.vertex_order == "degree":
        return int(max(store.degrees[0][:1], default=0))
    return longest_row(store, group)[1]


def _charge(needs: Needs, budget: Budget, threads: int) -> None:
    budget.reserve("threads and compiled code", SLACK_BYTES)
    for name, num_bytes in needs.vectors.items():
        budget.reserve(name, num_bytes)
    if needs.scratch:
        budget.reserve("scratch", (threads + READ_AHEAD) * sum(np.dtype(dtype).itemsize * length for dtype, length in needs.scratch))


def _distinct(store: CSRStore, lists: Sequence[Lists]) -> list[Lists]:
    """Return the lists that a graph has."""
    return list(dict.fromkeys(lists)) if store.attributes.directed else ["out"]


def _as_numbers(values: Array | None) -> Array | None:
    """Return bools as bytes, which kernels can multiply."""
    return values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values
