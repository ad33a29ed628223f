"""Traversals over the parts of a graph by threads of this process: every part is here, messages change hands in memory.

In: parts of one graph, a budget that is charged before anything is loaded. Out: `PartitionedRuntime`, on which any number of searches run,
one at a time. An iteration is the two halves of `oocgraph.parts.loaded_part`: all parts expand, candidates change hands, all apply, the new
frontier changes hands. Threads take parts, and of a part with many edges ranges of its rows; what is little is done by the
calling thread. Messages are packed and counted as between machines.

Python is paid in each level for each part, 25 us (2D) to 55 us (1D, more messages): a grid graph of 596 levels took 0.06 s in 2 x 2
parts, 0.13 s in 4 parts by 1D, 0.26 s in 4 x 4. That is what it takes to pack, count and hand over messages one by one. The search of
one partition takes many levels in one kernel call, the same graph in 0.003 s (`oocgraph.engine.local`): a graph of high diameter is
for that.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.closing import Closing
from oocgraph.engine.lifetime import Lifetime
from oocgraph.exchange.messages import Message
from oocgraph.memory import Budget, device_bytes_read
from oocgraph.partition.message_size import ALL_TO_ALL, BROADCAST, GATHER
from oocgraph.parts.loaded_part import PIECE_VERTICES, PartTraversal
from oocgraph.parts.local_parts import LocalParts
from oocgraph.progress import LEVEL, REACHED
from oocgraph.results.search import Exchanged, Iteration, Search
from oocgraph.store.partitions import Part
from oocgraph.types import UNREACHED, Array, Progress, ignore_progress, no_parent

LEVEL_BYTES = 4
"""Of a vertex's level."""

PIECE_BYTES = 64 * PIECE_VERTICES
"""What putting vertices in store order takes: positions, numbers, levels and what is made of them on the way."""


def deliver(sent: Sequence[Mapping[int, Message]]) -> list[dict[int, Message]]:
    """Turn what each part sends, by receiver, into what each gets, by sender."""
    received: list[dict[int, Message]] = [{} for _ in sent]
    for p, messages in enumerate(sent):
        for q, message in messages.items():
            received[q][p] = message
    return received


def count_messages(kind: str, sent: Sequence[Mapping[int, Message]]) -> Exchanged:
    """Count what parts send."""
    every = [message for messages in sent for message in messages.values()]
    return Exchanged(kind, sum(message.num_bytes for message in every), len(every))


class PartitionedRuntime(Closing):
    """The parts of a graph ready for traversals in this process. Use it in a ``with`` statement.

    Parameters
    ----------
    parts
        All of one graph.
    num_vertices, dtype, directed
        Of the graph: vertices with an edge, index dtype.
    budget
        Charged before anything is loaded.
    threads, io_threads
        That expand; that read.
    device, device_limit
        As for `LocalParts`.

    Raises
    ------
    BudgetError
        The budget is too small; names the smallest that works.
    """

    def __init__(
        self, parts: Sequence[Part], *, num_vertices: int, dtype: np.dtype[Any], directed: bool, budget: Budget, threads: int,
        io_threads: int, device: Device | None = None, device_limit: int = 0,
    ) -> None:  # fmt: skip
        began = time.perf_counter()
        self.num_vertices, self.dtype, self.budget = num_vertices, dtype, budget
        numbers, result = range(len(parts)), (LEVEL_BYTES + dtype.itemsize) * num_vertices + min(PIECE_BYTES, 64 * num_vertices)
        self.held = LocalParts(
            parts, numbers, dtype=dtype, budget=budget, threads=threads, io_threads=io_threads, directed=directed,
            reserved_bytes=result, device=device, device_limit=device_limit,
        )  # fmt: skip
        self.device_metrics = {
            "device": "cpu" if device is None else device.name, "device_memory_budget": device_limit,
            "device_bytes": self.held.device_bytes,
        }  # fmt: skip
        self.loaded = [self.held.loaded[p] for p in numbers]
        self.has_broadcast = any(loaded.addresses.num_copies for loaded in self.loaded)
        self.lifetime = Lifetime("a partitioned graph")
        self.load_seconds = time.perf_counter() - began

    def close(self) -> None:
        """End the threads and close the files; closing again does nothing."""
        with self.lifetime.ending() as was_open:
            if was_open:
                self.held.close()

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        self.lifetime.check()

    def search(self, sources: Array, *, depth_limit: int | None = None, progress: Progress = ignore_progress) -> Search:
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none.

        Returns
        -------
        Search
            Its `num_reached_edges` is the number of stored entries of the rows that were expanded: of all reached vertices but those
            at a depth limit.
        """
        self.lifetime.check()
        with self.lifetime.searching:
            self.lifetime.check()
            return self._search(sources, np.iinfo(np.int32).max - 1 if depth_limit is None else depth_limit, progress)

    def _search(self, sources: Array, last_level: int, progress: Progress) -> Search:
        device_began, requested, began = device_bytes_read(), self.held.num_bytes_read, time.perf_counter()
        searches = [PartTraversal(loaded, sources) for loaded in self.loaded]
        iterations: list[Iteration] = []
        frontier = reached = sum(search.num_new for search in searches)
        while frontier and len(iterations) < last_level:
            iteration, frontier = self._iterate(searches, len(iterations) + 1, frontier)
            iterations.append(iteration)
            reached += frontier
            progress(LEVEL, len(iterations), 0)
            progress(REACHED, reached, self.num_vertices)
        parent, level = self._assemble(searches)
        seconds = time.perf_counter() - began
        requested = self.held.num_bytes_read - requested
        return Search(
            sources=sources, parent=parent, level=level, num_reached=reached,
            num_reached_edges=sum(search.num_edges for search in searches),
            depth=max(0, len(iterations) - (not frontier)), seconds=seconds, bytes_requested=requested,
            bytes_read=max(requested, device_bytes_read() - device_began), iterations=tuple(iterations),
        )  # fmt: skip

    def _iterate(self, searches: Sequence[PartTraversal], level: int, frontier: int) -> tuple[Iteration, int]:
        """Find the next level; returns its metrics and how many vertices it has."""
        began, requested, held = time.perf_counter(), self.held.num_bytes_read, self.held
        news = [search.frontier() for search in searches] if self.has_broadcast else []
        broadcasts = deliver(news) if news else [{}] * len(searches)
        edges = sum(held.each(lambda p: searches[p].begin(broadcasts[p]), range(len(searches)), num_edges=self._copies(news)))
        held.expand(searches, num_edges=edges)
        found = held.each(lambda search: search.candidates(), searches, num_edges=edges)
        received = deliver(found)
        new = sum(held.each(lambda p: searches[p].apply(received[p]), range(len(searches)), num_edges=edges))
        exchanged = [count_messages(GATHER if self.has_broadcast else ALL_TO_ALL, found)]
        if self.has_broadcast:
            exchanged.append(count_messages(BROADCAST, news))
        read = self.held.num_bytes_read - requested
        metrics = Iteration(
            level, "push", f"{edges:,} edges of {len(searches)} parts", frontier, 0, time.perf_counter() - began, read,
            exchanged=tuple(exchanged),
        )  # fmt: skip
        return metrics, new

    def _copies(self, news: Sequence[Mapping[int, Message]]) -> int:
        return sum(message.num_vertices for messages in news for message in messages.values())

    def _assemble(self, searches: Sequence[PartTraversal]) -> tuple[Array, Array]:
        """Put parents and levels of all masters in store order."""
        parent = np.full(self.num_vertices, no_parent(self.dtype), self.dtype)
        level = np.full(self.num_vertices, UNREACHED, np.int32)
        for search in searches:
            num_found = int(search.found[0])
            for start in range(0, num_found, PIECE_VERTICES):
                stop = min(num_found, start + PIECE_VERTICES)
                slots = search.order[start:stop]
                ids = search.loaded.ids_of(slots)
                parent[ids] = search.parent[slots]
                level[ids] = search.levels(start, stop)
        return parent, level
