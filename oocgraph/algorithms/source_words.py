"""Breadth-first search from up to 64 sources at once, out of core: what multi-source searches and all on distances share.

In: sweeps over a graph, sources as store numbers. Out: `SourceWords.search`, which yields the vertices that each source finds, level by
level. A vertex has a word of 64 bits for the sources that have seen it, one for those that found it at the last level, and one for those
that find it now. The edges are read once a level for all sources: by a pull, in which a vertex takes all bits that its neighbours have and
it lacks, or a push, in which the vertices of the last level give their bits to their neighbours. Rows that have nothing to take or to give
are not read, whole pieces or ranges in a piece; of the two directions that one is chosen which costs less.

Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014, sections 3 and 4. Differs in: a batch is one word;
the direction is chosen by edges and by bytes to be read, not by vertices; what is not needed stays on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from oocgraph.engine.sweeps import Lists, Needs, Rows, Selection, Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import words as kernels
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

NUM_SOURCES = 64
"""Bits of a word."""

WORD_BYTES = 24
"""Of each vertex: seen, frontier, found."""

SEARCHES = "searches"
"""Phase of progress: sources done, of how many."""

PUSH_COST, READ_COST = 2.0, 4.0
"""What an edge costs that is pushed along (an atomic step at a vertex anywhere), and one that is read, in edges that a pull looks at."""

VERTEX_SECONDS = 1e-9
"""About what a vertex takes when words are looked through."""

ALL = np.uint64(2**64 - 1)
"""Bits that are inverted where rows are wanted that lack one."""

_BITS = np.uint64(1) << np.arange(NUM_SOURCES, dtype=np.uint64)


class Level(NamedTuple):
    """What a search finds at one level.

    Attributes
    ----------
    level : int
        From 1 on.
    counts : (num_sources,) int64
        How many vertices each source has found.
    found : (num_vertices,) uint64
        By which sources each vertex is found at this level; until the next one.
    """

    level: int
    counts: Array
    found: Array


def words_needs(store: CSRStore, vectors: dict[str, int], result_bytes: int, vertex_kernels: list[tuple[Any, ...]]) -> Needs:
    """Return what an algorithm needs that searches by words, and holds `vectors` beside."""
    word, words = np.uint64(0), np.empty(0, np.uint64)
    return Needs(
        vectors={"words of sources": WORD_BYTES * store.num_rows, **vectors}, result_bytes=result_bytes, lists=("in", "out"),
        kernels=[(kernels.pull, words, words, words, word), (kernels.push, words, words, words)],
        vertex_kernels=[(kernels.settle, words, words, 0, 0), (kernels.clear, words, 0, 0), *vertex_kernels], selects=True,
        sent_bytes=WORD_BYTES * store.num_rows,
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

    def search(self, sources: Array, *, reverse: bool = False, depth_limit: int | None = None) -> Iterator[Level]:
        """Search from up to 64 store numbers; yield what is found, level by level, the sources themselves apart.

        `reverse`: against the direction of the edges.
        """
        self._begin(sources)
        union, level = self._bits_of(np.ones(sources.size)), 0
        while union and level != depth_limit:
            level += 1
            counts = self._step(union, *(("in", "out") if reverse else ("out", "in")))[: sources.size]
            union = self._bits_of(counts)
            self._frontier, self._found = self._found, self._frontier
            self.over_vertices(kernels.clear, self._found)
            if union:
                yield Level(level, counts, self._frontier)

    def over_vertices(self, kernel: Any, *arguments: Any) -> list[Any]:
        """Return what a kernel makes of ranges of all vertices."""
        return self.sweeps.vertices(lambda start, stop: kernel(*arguments, start, stop), VERTEX_SECONDS * self._seen.size)

    def _begin(self, sources: Array) -> None:
        for words in (self._seen, self._frontier, self._found):
            self.over_vertices(kernels.clear, words)
        for words in (self._seen, self._frontier):
            np.bitwise_or.at(words, sources, _BITS[: sources.size])

    def _step(self, union: Any, forward: Lists, backward: Lists) -> Array:
        """Find the next level; `union` has the sources that found anything at the last. Returns how many vertices each finds."""
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
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        return [ids]
    found: list[Any] = np.asarray(ids).ravel().tolist() if hasattr(ids, "dtype") else list(ids)
    for one in found:
        if isinstance(one, list | tuple | np.ndarray):
            raise ArgumentError(f"{one!r} is given as one vertex id; give a plain list of ids")
    return found
