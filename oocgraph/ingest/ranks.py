"""Step 3: the new number of every vertex: by degree, highest first, equal degrees by ascending id; isolated vertices get none.

In: degrees by provisional id, as a stream. Out: ranks in the same order (over the degrees, in place), and the classes: one for each
distinct degree. A graph has few of those: D classes need D**2 / 2 entries, so 46,000 for half a billion.
References: Yasui et al. 2014, section 3 (degree-ordered, isolated vertices removed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.dedupe import CleanEdges
from oocgraph.ingest.locality import has_room, replace_by_locality
from oocgraph.kernels.build import NO_RANK, assign_ranks, count_degrees
from oocgraph.store.degrees import DegreeClasses
from oocgraph.types import Array, AskedOrder

SMALL_DEGREES = 1 << 16
"""Degrees below this find their class in a table (512 KiB), others by bisection."""

BLOCK = 1 << 18
"""Vertices handled at a time."""


@dataclass(frozen=True, slots=True)
class RankBlock:
    """Some consecutive provisional vertices and what became of them.

    Attributes
    ----------
    start
        The first provisional id.
    rank : (n,) uint32
        New number, or NO_RANK.
    used, present : (n,) bool
        Has an edge; occurs in the input.
    """

    start: int
    rank: Array
    used: Array
    present: Array

    @property
    def stop(self) -> int:
        """The provisional id after the last one."""
        return self.start + self.rank.size

    def part(self, start: int, stop: int) -> RankBlock:
        """Return the vertices ``start .. stop - 1`` of the block."""
        own = slice(start - self.start, stop - self.start)
        return RankBlock(start, self.rank[own], self.used[own], self.present[own])


def _blocks(clean: CleanEdges) -> Iterator[tuple[int, Array, Array]]:
    """Degrees by block, and which vertices have an edge."""
    for start in range(0, clean.degree.length, BLOCK):
        stop = min(start + BLOCK, clean.degree.length)
        degree = clean.degree.read(start, stop)
        used = degree > 0
        if clean.has_out is not None:
            used |= clean.has_out.read(start, stop) > 0
        yield start, degree, used


def degree_classes(clean: CleanEdges) -> DegreeClasses:
    """Count the vertices of each degree."""
    small, large = np.zeros(SMALL_DEGREES, np.int64), dict[int, int]()
    for _, degree, used in _blocks(clean):
        if not count_degrees(degree, used, small):
            continue
        for value, count in zip(*(array.tolist() for array in np.unique(degree[degree >= SMALL_DEGREES], return_counts=True)), strict=True):
            large[value] = large.get(value, 0) + count
    few, many = np.flatnonzero(small)[::-1], sorted(large, reverse=True)
    value = np.append(np.array(many, np.int64), few)
    counts = np.append(np.array([large[one] for one in many], np.int64), small[few])
    return DegreeClasses.of(value, counts)


def chosen_order(clean: CleanEdges, classes: DegreeClasses, job: Job) -> AskedOrder:
    """Return the order that is asked for; of ``auto``, locality where degrees are low and alike and there is room, else degree."""
    asked = job.options.vertex_order
    if asked != "auto":
        return asked
    return "locality" if classes.are_even and has_room(clean.degree.length, job) else "degree"


def ranked_blocks(clean: CleanEdges, classes: DegreeClasses, job: Job, *, all_used: bool, extra: Array) -> Iterator[RankBlock]:
    """Replace degrees by ranks, block by block, in ascending order of ids.

    Vertices with an edge or a dropped self-loop are in the input, and so are `extra` positions (ascending), or all.
    """
    ascending = classes.value[::-1]
    num_small = int(np.searchsorted(ascending, SMALL_DEGREES))
    class_of_small = np.zeros(SMALL_DEGREES, np.int64)
    class_of_small[ascending[:num_small]] = np.arange(num_small)
    large = ascending[num_small:].astype(np.uint32)
    next_rank = classes.first_vertex[:-1][::-1].copy()
    if job.options.vertex_order == "original":
        class_of_small[:], large, num_small, next_rank = 0, np.empty(0, np.uint32), 0, np.zeros(1, np.int64)
    loops, is_ranked = _Ascending(clean.loops), job.options.vertex_order == "locality"
    if is_ranked:
        replace_by_locality(clean, job)
    for start, degree, has_edge in _blocks(clean):
        used = degree != NO_RANK if is_ranked else has_edge
        present = np.ones(used.size, bool) if all_used else used.copy()
        present[loops.below(start + used.size) - start] = True
        present[extra[slice(*np.searchsorted(extra, [start, start + used.size]))] - start] = True
        rank = degree if clean.degree.resident is not None else np.empty_like(degree)
        if not is_ranked:
            assign_ranks(degree, used, class_of_small, large, num_small, next_rank, rank)
            clean.degree.write(start, rank)
        yield RankBlock(start, rank, used, present)


def blocks_of(rank: Array) -> Iterator[RankBlock]:
    """Cut ranks by provisional id, (n,) uint32 or NO_RANK, into blocks; every id is in the input."""
    for start in range(0, rank.size, BLOCK):
        own = rank[start : start + BLOCK]
        yield RankBlock(start, own, own != NO_RANK, np.ones(own.size, bool))


class _Ascending:
    """Reads a list of ascending provisional ids from a file, range by range."""

    def __init__(self, files: BinFiles) -> None:
        self._blocks = files.blocks(0, BLOCK)
        self._pending = np.empty(0, np.int64)

    def below(self, stop: int) -> Array:
        """Return the ids below `stop` that were not returned before."""
        parts = []
        while True:
            cut = int(np.searchsorted(self._pending, stop))
            parts.append(self._pending[:cut])
            self._pending = self._pending[cut:]
            if self._pending.size:
                break
            block = next(self._blocks, None)
            if block is None:
                break
            self._pending = block[0].astype(np.int64)
        return np.concatenate(parts)
