"""Breadth-first search from up to 64 sources at once, out of core: what multi-source searches and all on distances share.

In: sweeps over a graph, sources as store numbers. Out: `SourceWords.search`, which yields the vertices that each source finds, one level
after the other. A vertex has a word of 64 bits for the sources that have seen it, one for those that found it at the last level, and one
for those that find it now. The edges are read once a level for all sources: by a pull, in which a vertex takes all bits that its neighbours
have and it lacks, or a push, in which the vertices of the last level give their bits to their neighbours. Rows that have nothing to take or
to give are not read, whole pieces or ranges in a piece; of the two directions that one is chosen which costs less.

A level of few vertices and edges is pushed from a list of its vertices, where the rows stay in memory, many such levels in one call: on a
path, a road or a grid, where a level is little, to look through the words of all vertices would take longer than all else. If the sources
share little there, each goes on alone (`oocgraph.algorithms.lone_sources`).

Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014, sections 3 and 4. Differs in: a batch is one word;
the direction is chosen by edges and by bytes to be read, not by vertices; what is not needed stays on disk; small frontiers are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.algorithms import search_options
from oocgraph.algorithms.lone_sources import LoneSources, lone_bytes, lone_kernels
from oocgraph.algorithms.source_levels import Levels
from oocgraph.engine.sweeps import Lists, Needs, Rows, Selection, Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import words as kernels
from oocgraph.kernels.piece_rows import GROWN, MISSING, empty_pieces
from oocgraph.sparse.edge_stream import PieceTable, table_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

NUM_SOURCES = 64
"""Bits of a word."""

WORD_BYTES = 24
"""Of each vertex: seen, frontier, found."""

LISTED_SHARE, LEAST_LISTED, ENTRY_BYTES = 8, 1 << 12, 16
"""Of the vertices one in so many, or so many, are the vertices and edges of a level that is listed at the most, which one thread finds as
fast as two look through all words; bytes of a vertex and its word."""

LISTED_LEVELS, LEAST_ROOM = 1 << 10, 1 << 16
"""Levels that are found in one call, at the most: a vector of 64 counts each. Vertices that lists have room for, at the least."""

FEW, CHECKED_LEVELS, LONE_LEVELS, SHARED = 16, 16, 1 << 10, 3.0
"""Sources that take one thread as long from lists as two alone: fewer do not go on alone. After so many levels the others may, if a vertex
is found by fewer than this on average; for so many others, until that is looked at again."""

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


def most_listed(num_vertices: int) -> int:
    """Return how many vertices and edges a level that is listed has at the most."""
    return max(LEAST_LISTED, num_vertices // LISTED_SHARE)


def _room(num_vertices: int) -> int:
    """Return how many vertices are listed at the most, on all levels of a call."""
    return max(LEAST_ROOM, 2 * most_listed(num_vertices))


def words_needs(store: CSRStore, vectors: dict[str, int], result_bytes: int, vertex_kernels: list[tuple[Any, ...]]) -> Needs:
    """Return what an algorithm needs that searches by words, and holds `vectors` beside."""
    word, words, numbers, table = np.uint64(0), np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((0, 0), np.int64)
    return Needs(
        vectors={
            "words of sources": WORD_BYTES * store.num_rows, "listed vertices": ENTRY_BYTES * _room(store.num_rows),
            "sources alone": lone_bytes(store, LISTED_LEVELS),
            "counts of levels": 8 * (NUM_SOURCES + 1) * LISTED_LEVELS, "tables of pieces": 2 * table_bytes(store.num_rows), **vectors,
        },
        result_bytes=result_bytes, lists=("in", "out"),
        kernels=[(kernels.pull, words, words, words, word), (kernels.push, words, words, words)],
        vertex_kernels=[
            (kernels.settle, words, words, 0, 0), (kernels.clear, words, 0, 0), (kernels.list_words, words, numbers, words),
            (kernels.push_listed, empty_pieces(store.index_dtype), words, words, numbers, words, numbers, table, 0, 0),
            (kernels.add_figures, table, 0, numbers, numbers, numbers, np.empty(0)), *lone_kernels(store), *vertex_kernels,
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
        self._most = most_listed(n)
        self._vertices, self._words = np.empty(_room(n), np.int64), np.empty(_room(n), np.uint64)
        self._ends, self._counts = np.zeros(LISTED_LEVELS + 2, np.int64), np.zeros((LISTED_LEVELS, NUM_SOURCES), np.int64)
        self._lone = LoneSources(sweeps, self._seen, self._counts)
        self._listed = slice(0)  # where the frontier is listed
        self._tables = dict[Lists, PieceTable]()

    def search(self, sources: Array, *, reverse: bool = False, depth_limit: int | None = None, lists: bool = False) -> Iterator[Levels]:
        """Search from up to 64 store numbers; yield what is found, levels in their order, the sources themselves apart.

        `reverse`: against the direction of the edges. `lists`: for `over_found`; else what is found may be counted only.
        """
        forward, backward = _AGAINST if reverse else _ALONG
        self._begin(sources)
        union, level, last = self._bits_of(np.ones(sources.size)), 0, sys.maxsize if depth_limit is None else depth_limit
        num, lone_from, lone_until = sources.size, CHECKED_LEVELS if sources.size >= FEW else sys.maxsize, 0
        is_listed = self._list(num)
        while union and level < last:
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
                is_listed = self._list(num)

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

    def _list(self, num: int) -> bool:
        """List the frontier, of no more than `num` vertices, and clear its words, if it may be listed."""
        if num > self._most or not self.sweeps.can_select:
            return False
        self._listed = slice(kernels.list_words(self._frontier, self._vertices, self._words))
        return True

    def _begin_alone(self, num: int) -> bool:
        """Have all sources go on alone, if they share little of the frontier that is listed, in which they have found `num` vertices."""
        vertices = self._vertices[self._listed]
        return num < SHARED * vertices.size and self._lone.begin(vertices, self._words[self._listed])

    def _search_alone(self, level: int, last: int, forward: Lists, *, lists: bool) -> Levels:
        """Find levels after `level`, each source alone; none, if a source needs more room, or rows from disk."""
        num, ends = self._lone.search(self._table(forward), last - level, self._vertices.size if lists else sys.maxsize), self._ends
        if num and lists:
            self._lone.list_found(num, self._found, self._vertices, self._words, ends)
        if num:
            self._lone.keep(num)
        return Levels(level + 1, self._counts[:num], self._frontier, (self._vertices, self._words, ends[: num + 2]))

    def _table(self, forward: Lists) -> PieceTable:
        if forward not in self._tables:
            self._tables[forward] = self.sweeps.table(forward)
        return self._tables[forward]

    def _push_listed(self, level: int, last: int, forward: Lists) -> tuple[Levels, bool]:
        """Find levels after `level` from the frontier that is listed; returns them, and whether the last one stays listed."""
        table, vertices, words, ends = self._table(forward), self._vertices, self._words, self._ends
        ends[1] = size = self._listed.stop - (self._listed.start or 0)
        vertices[:size], words[:size] = vertices[self._listed], words[self._listed]
        self._counts[:] = 0
        num, why, is_here = 0, MISSING, True
        while not num and why == MISSING and is_here:
            num, why, piece = kernels.push_listed(
                table.pieces, self._seen, self._found, vertices, words, ends, self._counts, self._most,
                min(LISTED_LEVELS, last - level),
            )  # fmt: skip
            is_here = why != MISSING or num > 0 or table.bring(piece)
        self._listed = slice(*ends[num : num + 2].tolist())
        stays = is_here and why != GROWN
        if not stays:
            self._frontier[vertices[self._listed]] = words[self._listed]
        return Levels(level + 1, self._counts[:num], self._frontier, (vertices, words, ends[: num + 2])), stays

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


def as_list(ids: Any) -> list[Any]:
    """Turn one id, or any collection of them (list, range, array, Series), into a list.

    Raises
    ------
    ArgumentError
        It is a collection of collections.
    """
    found = search_options.as_list(ids)
    for one in found:
        if isinstance(one, list | tuple | np.ndarray):
            raise ArgumentError(f"{one!r} is given as one vertex id; give a plain list of ids")
    return found
