"""Breadth-first search from up to 64 sources at once, out of core: what multi-source searches and all on distances share.

In: sweeps over a graph, sources as store numbers. Out: `SourceWords.search`, which yields the vertices that each source finds, one level
after the other. A vertex has a word of 64 bits for the sources that have seen it, one for those that found it at the last level, and one
for those that find it now. The edges are read once a level for all sources: by a pull, in which a vertex takes all bits that its neighbours
have and it lacks, or a push, in which the vertices of the last level give their bits to their neighbours. Rows that have nothing to take or
to give are not read, whole pieces or ranges in a piece; of the two directions that one is chosen which costs less.

A level of few vertices and edges is pushed from a list of its vertices (`oocgraph.algorithms.listed_front`): on a path, a road or a grid,
where a level is little, to look through the words of all vertices would take longer than all else. If the sources share little there, and
the rows stay in memory, each goes on alone (`oocgraph.algorithms.lone_sources`).

Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014, sections 3 and 4. Differs in: a batch is one word;
the direction is chosen by edges and by bytes to be read, not by vertices; what is not needed stays on disk; small frontiers are listed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.algorithms.listed_front import LISTED_LEVELS, ListedFront, listed_bytes, listed_kernels
from oocgraph.algorithms.lone_sources import LoneSources, lone_bytes, lone_kernels
from oocgraph.algorithms.source_levels import NUM_SOURCES, Levels
from oocgraph.engine.sweeps import Lists, Needs, Rows, Selection, Sweeps
from oocgraph.kernels import words as kernels
from oocgraph.memory import format_bytes
from oocgraph.sparse.piece_table import PieceTable, table_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

logger = logging.getLogger(__name__)

WORD_BYTES = 24
"""Of each vertex: seen, frontier, found."""

FEW, CHECKED_LEVELS, LONE_LEVELS, SHARED = 16, 16, 1 << 10, 3.0
"""Sources that take one thread as long from lists as two alone: fewer do not go on alone. After so many levels the others may, if a vertex
is found by fewer than this on average; for so many others, until that is looked at again."""

MANY_LEVELS = 1 << 10
"""Levels after which it is worth a warning that edges do not stay in memory."""

SEARCHES = "searches"
"""Phase of progress: sources done, of how many."""

PUSH_COST, READ_COST = 2.0, 4.0
"""What an edge costs that is pushed along (an atomic step at a vertex anywhere), and one that is read, in edges that a pull looks at."""

VERTEX_SECONDS = 1e-9
"""About what a vertex takes when words are looked through."""

ALL = np.uint64(2**64 - 1)
"""Bits that are inverted where rows are wanted that lack one."""

_ALONG: tuple[Lists, Lists] = ("out", "in")
_AGAINST: tuple[Lists, Lists] = ("in", "out")
"""Lists of a search along the edges, or against them: those that push, and those that pull."""

_BITS = np.uint64(1) << np.arange(NUM_SOURCES, dtype=np.uint64)


def words_needs(store: CSRStore, vectors: dict[str, int], result_bytes: int, vertex_kernels: list[tuple[Any, ...]]) -> Needs:
    """Return what an algorithm needs that searches by words, and holds `vectors` beside."""
    word, words, numbers, table = np.uint64(0), np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((0, 0), np.int64)
    return Needs(
        vectors={
            "words of sources": WORD_BYTES * store.num_rows, **listed_bytes(store), "sources alone": lone_bytes(store, LISTED_LEVELS),
            "tables of pieces": 2 * table_bytes(store.num_rows), **vectors,
        },
        result_bytes=result_bytes, lists=("in", "out"),
        kernels=[(kernels.pull, words, words, words, word), (kernels.push, words, words, words)],
        vertex_kernels=[
            (kernels.settle, words, words, 0, 0), (kernels.clear, words, 0, 0), *listed_kernels(store), *lone_kernels(store),
            (kernels.add_figures, table, 0, numbers, numbers, numbers, np.empty(0)), *vertex_kernels,
        ],
        selects=True, sent_bytes=WORD_BYTES * store.num_rows,
    )  # fmt: skip


class SourceWords:
    """Words of all vertices, for any number of searches.

    Parameters
    ----------
    sweeps
        Of the lists ``in`` and ``out``.
    """

    def __init__(self, sweeps: Sweeps) -> None:
        self.sweeps, n = sweeps, sweeps.store.num_rows
        self._seen, self._frontier, self._found = (np.zeros(n, np.uint64) for _ in range(3))
        self._front = ListedFront(sweeps)
        self._lone = LoneSources(sweeps, self._seen, self._front.counts)
        self._tables = dict[Lists, PieceTable]()
        self._num_levels = 0  # or calls that find several

    def search(self, sources: Array, *, reverse: bool = False, depth_limit: int | None = None, lists: bool = False) -> Iterator[Levels]:
        """Search from up to 64 store numbers; yield what is found, levels in their order, the sources themselves apart.

        `reverse`: against the direction of the edges. `lists`: for `over_found`; else what is found may be counted only.
        """
        forward, backward = _AGAINST if reverse else _ALONG
        self._begin(sources)
        union, level, last = self._bits_of(np.ones(sources.size)), 0, sys.maxsize if depth_limit is None else depth_limit
        num, lone_from, lone_until = sources.size, CHECKED_LEVELS if sources.size >= FEW else sys.maxsize, 0
        is_listed = self._front.begin(self._frontier, num, forward)
        while union and level < last:
            self._count_level()
            was_listed, was_alone = is_listed, level < lone_until
            if is_listed and not was_alone and level >= lone_from and self._begin_alone(num):
                lone_until, was_alone = level + LONE_LEVELS, True
            if was_alone:
                levels = self._search_alone(level, min(last, lone_until), forward, lists=lists)
            elif was_listed:
                levels, is_listed = self._push_listed(level, min(last, lone_from if level < lone_from else last), forward)
            else:
                levels = self._find_level(level, union, forward, backward)
            counts = levels.counts[:, : sources.size]
            level += counts.shape[0]
            if counts.size:
                num, union = int(counts[-1].sum()), self._bits_of(counts[-1])
                yield levels._replace(counts=counts if union else counts[:-1])
            elif was_alone:
                lone_from, lone_until = level + CHECKED_LEVELS, 0
            if was_alone and level >= lone_until:
                self._lone.leave(self._frontier)
            if not was_listed or (was_alone and level >= lone_until):
                is_listed = self._front.begin(self._frontier, num, forward)

    def batches(self, sources: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the sources of one search after the other, and where they are among all; report the searches as they are done."""
        for start in range(0, sources.size, NUM_SOURCES):
            batch = sources[start : start + NUM_SOURCES]
            yield slice(start, start + batch.size), batch
            self.sweeps.progress(SEARCHES, start + batch.size, sources.size)

    def over_vertices(self, kernel: Any, *arguments: Any) -> list[Any]:
        """Return what a kernel makes of ranges of all vertices."""
        return self.sweeps.vertices(lambda start, stop: kernel(*arguments, start, stop), VERTEX_SECONDS * self._seen.size)

    def over_found(self, levels: Levels, kernel: Any, of_listed: Any, *arguments: Any) -> None:
        """Have a kernel go through all vertices for those that were found, or another one through a list of these."""
        if levels.listed is None:
            self.over_vertices(kernel, levels.found, levels.first, *arguments)
        else:
            of_listed(*levels.listed, levels.first, *arguments)

    def _begin(self, sources: Array) -> None:
        for words in (self._seen, self._frontier, self._found):
            self.over_vertices(kernels.clear, words)
        for words in (self._seen, self._frontier):
            np.bitwise_or.at(words, sources, _BITS[: sources.size])

    def _begin_alone(self, num: int) -> bool:
        """Have all sources go on alone, if they share little of the frontier that is listed, in which they have found `num` vertices."""
        vertices, words = self._front.listed
        return num < SHARED * vertices.size and self._lone.begin(vertices, words)

    def _search_alone(self, level: int, last: int, forward: Lists, *, lists: bool) -> Levels:
        """Find levels after `level`, each source alone; none, if a source needs more room, or rows from disk."""
        front = self._front
        num = self._lone.search(self._table(forward), last - level, front.vertices.size if lists else sys.maxsize)
        if num and lists:
            self._lone.list_found(num, self._found, front.vertices, front.words, front.ends)
        if num:
            self._lone.keep(num)
        return self._listed(level, num)

    def _listed(self, level: int, num: int) -> Levels:
        """Return `num` levels after `level` that are listed."""
        front = self._front
        return Levels(level + 1, front.counts[:num], self._frontier, (front.vertices, front.words, front.ends[: num + 2]))

    def _table(self, forward: Lists) -> PieceTable:
        if forward not in self._tables:
            self._tables[forward] = self.sweeps.table(forward)
        return self._tables[forward]

    def _push_listed(self, level: int, last: int, forward: Lists) -> tuple[Levels, bool]:
        """Find levels after `level` from the frontier that is listed; returns them, and whether the last one stays listed."""
        num, stays = self._front.push(self._table(forward), forward, last - level, self._seen, self._found)
        if not stays:
            self._front.leave(self._frontier)
        return self._listed(level, num), stays

    def _count_level(self) -> None:
        self._num_levels += 1
        if self._num_levels == MANY_LEVELS and self.sweeps.can_select and (missing := self.sweeps.unkept_bytes):
            logger.warning(
                "%s: %d levels have read edges from the store, and many more may; with memory_budget raised by %s all would stay in memory",
                self.sweeps.store.url, MANY_LEVELS, format_bytes(missing),
            )  # fmt: skip

    def _find_level(self, level: int, union: Any, forward: Lists, backward: Lists) -> Levels:
        """Find the level after `level` from the words of the frontier; `union` has the sources that found anything at that."""
        counts = self._step(union, forward, backward)
        self._frontier, self._found = self._found, self._frontier
        self.over_vertices(kernels.clear, self._found)
        return Levels(level + 1, counts[None], self._frontier)

    def _step(self, union: Any, forward: Lists, backward: Lists) -> Array:
        """Find the next level, in words; `union` has the sources that found anything at the last. Returns how many vertices each finds."""
        seen, frontier, found = self._seen, self._frontier, self._found
        if not self.sweeps.can_select:
            return _added(self.sweeps.pull(kernels.pull, [frontier], [seen, found], [union], lists=backward))
        push = self.sweeps.select(Rows(frontier), lists=forward)
        if push.num_read or PUSH_COST * push.num_entries > seen.size // 8:  # else, looking for what a pull needs costs more
            pull = self.sweeps.select(Rows(seen, union, ALL), lists=backward)
            if _cost(pull, 1.0) < _cost(push, PUSH_COST):
                return _added(self.sweeps.pull(kernels.pull, [frontier], [seen, found], [union], only=pull))
        self.sweeps.pull(kernels.push, [seen, found], [frontier], only=push)
        return _added(self.over_vertices(kernels.settle, seen, found))

    @staticmethod
    def _bits_of(counts: Array) -> Any:
        """Return the bits whose counts are not 0."""
        return np.bitwise_or.reduce(_BITS[: counts.size][counts > 0], initial=np.uint64(0))


def _cost(selection: Selection, edge: float) -> float:
    return edge * selection.num_entries + READ_COST * selection.num_read


def _added(counts: list[Array]) -> Array:
    added: Array = np.array(counts, np.int64).reshape(-1, NUM_SOURCES).sum(axis=0)
    return added
