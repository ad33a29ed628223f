"""Levels of few vertices of a search from up to 64 sources: the frontier is a list of vertices, each with the word of its sources.

In: words of all vertices (`oocgraph.algorithms.source_words`), a frontier. Out: the next levels, many in one call where all rows that they
need stay in memory. Rows that do not are read by themselves, level by level: to read all edges, or to look through the words of all
vertices, would take longer. A level that has grown is left to the words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.algorithms.source_levels import NUM_SOURCES
from oocgraph.engine.sweeps import READ_ROWS, Lists, Sweeps
from oocgraph.kernels import words as kernels
from oocgraph.kernels.piece_rows import GROWN, MISSING, empty_pieces
from oocgraph.kernels.words import NO_ROOM
from oocgraph.sparse.piece_table import PieceTable
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

LISTED_SHARE, LEAST_LISTED, ENTRY_BYTES = 8, 1 << 12, 16
"""Of the vertices one in so many, or so many, are the vertices and edges of a level that is listed at the most, which one thread finds as
fast as two look through all words; bytes of a vertex and its word."""

MOST_BROUGHT = 1 << 19
"""The same, at the least, where edges do not stay in memory: the others look for rows in all words, and read what they find."""

LISTED_LEVELS, LEAST_ROOM = 1 << 10, 1 << 16
"""Levels that are found in one call, at the most: a vector of 64 counts each. Vertices that lists have room for, at the least."""


def most_listed(num_vertices: int) -> int:
    """Return how many vertices and edges a level that is listed has at the most."""
    return max(LEAST_LISTED, num_vertices // LISTED_SHARE)


def _room(num_vertices: int) -> int:
    """Return how many vertices are listed at the most, on all levels of a call."""
    return max(LEAST_ROOM, 2 * most_listed(num_vertices))


def listed_bytes(store: CSRStore) -> dict[str, int]:
    """Return what a `ListedFront` holds."""
    return {
        "listed vertices": ENTRY_BYTES * _room(store.num_rows), "counts of levels": 8 * (NUM_SOURCES + 1) * LISTED_LEVELS,
        "places of listed vertices": 48 * READ_ROWS,
    }  # fmt: skip


def listed_kernels(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return calls of all kernels, to load them."""
    words, numbers, table = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((0, 0), np.int64)
    pieces = empty_pieces(store.index_dtype)
    return [
        (kernels.list_words, words, numbers, words), (kernels.push_listed, pieces, words, words, numbers, words, numbers, table, 0, 0),
        (kernels.push_here, pieces, words, words, numbers, words, 0, 0, 0, numbers),
        (kernels.push_read, numbers, numbers, pieces.kind, words, words, numbers, words, 0),
        (kernels.settle_listed, words, words, numbers, words, 0, 0, numbers),
    ]  # fmt: skip


class ListedFront:
    """A frontier that is listed, and what is found from it.

    Attributes
    ----------
    vertices, words : (room,)
    ends : (LISTED_LEVELS + 2,) int64
    counts : (LISTED_LEVELS, 64) int64
        As of `oocgraph.kernels.words.push_listed`.
    """

    def __init__(self, sweeps: Sweeps) -> None:
        self._sweeps, n = sweeps, sweeps.store.num_rows
        self._most = most_listed(n)
        self.vertices, self.words = np.empty(_room(n), np.int64), np.empty(_room(n), np.uint64)
        self.ends, self.counts = np.zeros(LISTED_LEVELS + 2, np.int64), np.zeros((LISTED_LEVELS, NUM_SOURCES), np.int64)
        self._missing: Array = np.empty(READ_ROWS, np.int64)
        self._here = slice(0)  # where the frontier is

    def begin(self, frontier: Array, num: int, lists: Lists) -> bool:
        """List a frontier, of no more than `num` vertices, and clear its words, if it may be listed."""
        if not self._sweeps.can_select or num > self._most:
            return False
        if num > (self._sweeps.most_rows(lists) or self._most) and not self._sweeps.can_bring(lists):
            return False
        self._here = slice(kernels.list_words(frontier, self.vertices, self.words))
        return True

    def leave(self, frontier: Array) -> None:
        """Put the frontier into words."""
        frontier[self.vertices[self._here]] = self.words[self._here]

    @property
    def listed(self) -> tuple[Array, Array]:
        """Vertices of the frontier and their words."""
        return self.vertices[self._here], self.words[self._here]

    def push(self, table: PieceTable, lists: Lists, most_levels: int, seen: Array, found: Array) -> tuple[int, bool]:
        """Find the next levels; returns how many, and whether the last of them is the frontier: else `leave` it.

        `found` is 0 before and afterwards.
        """
        vertices, words, ends = self.vertices, self.words, self.ends
        size = self._here.stop - (self._here.start or 0)
        vertices[:size], words[:size] = self.listed
        ends[1] = size
        num, why, piece, most = 0, MISSING, 0, self._most if table.are_kept else max(self._most, MOST_BROUGHT)
        while not num and why == MISSING:
            num, why, piece = kernels.push_listed(
                table.pieces, seen, found, vertices, words, ends, self.counts, most, min(LISTED_LEVELS, most_levels)
            )
            if num:
                table.found(int(ends[num]))
            elif why == MISSING and not table.bring(piece):
                num = self._push_by_rows(table, lists, seen, found)
                why = MISSING if num else GROWN
        self._here = slice(*ends[num : num + 2].tolist())
        return num, why != GROWN

    def _push_by_rows(self, table: PieceTable, lists: Lists, seen: Array, found: Array) -> int:
        """Find one level, for which rows that do not stay in memory are read by themselves; returns 0 where they are too many."""
        vertices, words, size = self.vertices, self.words, int(self.ends[1])
        if size > self._sweeps.most_rows(lists):
            return 0
        top = size
        for start in range(0, size, READ_ROWS):
            block = slice(start, min(size, start + READ_ROWS))
            order = np.argsort(vertices[block])
            vertices[block], words[block] = vertices[block][order], words[block][order]
            top = self._push_block(table, lists, block, top, seen, found)
        if top == NO_ROOM:
            self._sweeps.vertices(lambda first, stop: kernels.clear(found, first, stop), 0.0)
            return 0
        kernels.settle_listed(seen, found, vertices, words, size, top, self.counts[0])
        self.ends[2] = top
        return 1

    def _push_block(self, table: PieceTable, lists: Lists, block: slice, top: int, seen: Array, found: Array) -> int:
        """Give the words of some vertices to their neighbours, which are listed from `top` on; returns where they end."""
        places, num = self._missing, READ_ROWS
        while num and top != NO_ROOM:
            top, num = kernels.push_here(table.pieces, seen, found, self.vertices, self.words, block.start, block.stop, top, places)
            if not table.bring_rows(self.vertices[places[:num]]):
                break
        if num and top != NO_ROOM:
            for which, offset, indices in self._sweeps.rows(self.vertices[places[:num]], lists):
                top = kernels.push_read(places[which], offset, indices, seen, found, self.vertices, self.words, top)
                if top == NO_ROOM:
                    break
        return top
