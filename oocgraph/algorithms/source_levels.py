"""What searches from up to 64 sources find, some levels at a time, and the figures of each source that are made of it.

Out of `oocgraph.algorithms.source_words`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oocgraph.kernels import words as kernels
from oocgraph.types import Array

NUM_SOURCES = 64
"""Bits of a word."""


class Levels(NamedTuple):
    """What a search finds at some levels, one after the other.

    Attributes
    ----------
    first : int
        The first of them, from 1 on.
    counts : (num_levels, num_sources) int64
        How many vertices each source has found at each level.
    found : (num_vertices,) uint64
        Of one level that is not listed: by which sources each vertex is found; until the next one.
    listed : (vertices, words, ends), optional
        Which vertices are found by which sources, as `oocgraph.kernels.words.push_listed` has it.
    """

    first: int
    counts: Array
    found: Array
    listed: tuple[Array, Array, Array] | None = None


class Figures:
    """What a search has found, by source: (num_sources,) `depth`, `num` (the sources themselves apart) and `total`, int64; `inverse`.

    `total` is the sum of the distances, `inverse` that of 1 / these.
    """

    def __init__(self, num_sources: int) -> None:
        self.depth, self.num, self.total = (np.zeros(num_sources, np.int64) for _ in range(3))
        self.inverse = np.zeros(num_sources)

    def add(self, levels: Levels) -> None:
        """Add some levels."""
        counts = np.ascontiguousarray(levels.counts)  # of fewer than 64 sources they are not, and the kernel is loaded for those that are
        kernels.add_figures(counts, levels.first, self.depth, self.num, self.total, self.inverse)
