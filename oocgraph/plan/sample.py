"""Which vertices are looked at to tell what a traversal would send: all, or those of small levels and a sample of the others. Pure.

In: sizes, and the edges of each level. Out: levels whose vertices are all to be looked at, and runs of consecutive vertices as a sample.

- A graph of few edges, or of many levels (a grid: what a level sends is little, and differs from pair to pair), is looked at as a whole.
- Else small levels are: a frontier of few edges meets few vertices, of which a sample would have hardly any. All their
  out-neighbours are looked at, so what these levels send is exact. A hub's are too many: its level is left to the sample.
- Of the rest one vertex in k, in runs: the vertices are cut into strata, and of each a run is taken at random. Strata are short at the
  front, where a degree-ordered store has its hubs, and grow with the position; so the sample has every degree in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.types import Array

MANY_LEVELS = 256
"""Levels from which all edges are looked at."""

SMALL_SHARE = 1 / 64
"""Edges of the small levels' frontiers together, as a share of the edges that may be looked at."""

GROWTH = 1 / 256
"""A stratum's length as a share of its position."""

SEED = 20190520
"""Of the sample: the same graph gives the same forecast."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How vertices are chosen.

    Attributes
    ----------
    one_in : int
        Of so many vertices one is looked at; 1: all.
    small_levels : tuple of int
        Levels whose frontier's out-neighbours are all looked at, smallest first.
    reason : str
    """

    one_in: int
    small_levels: tuple[int, ...]
    reason: str


def choose_sample(num_stored_edges: int, level_edges: Array, max_edges: int) -> Choice:
    """Choose what is looked at.

    Parameters
    ----------
    num_stored_edges
        Entries that looking at everything would read.
    level_edges : (num_levels,) int64
        Out-edges of each level's vertices.
    max_edges
        Entries that may be read of a graph of few levels.

    Examples
    --------
    >>> choose_sample(1000, np.array([3, 990]), 2000)
    Choice(one_in=1, small_levels=(), reason='1,000 edges, all looked at')
    >>> choose_sample(8000, np.array([3, 7990, 7]), 2000).small_levels
    (0, 2)
    """
    if num_stored_edges <= max_edges or level_edges.size > MANY_LEVELS:
        return Choice(1, (), f"{num_stored_edges:,} edges, all looked at")
    order = np.argsort(level_edges, kind="stable")
    small = order[np.cumsum(level_edges[order]) <= SMALL_SHARE * max_edges]
    one_in = -(-num_stored_edges // max(1, max_edges))
    return Choice(one_in, tuple(small.tolist()), f"one vertex in {one_in}, and all that {small.size} small levels meet")


def draw_runs(num_vertices: int, one_in: int) -> Array:
    """Draw a sample of vertices: (k, 2) int64, first vertex of each run and the one after its last; ascending.

    Examples
    --------
    >>> runs = draw_runs(100_000, 8)
    >>> bool(12_000 < (runs[:, 1] - runs[:, 0]).sum() <= 12_500), bool((runs[1:, 0] >= runs[:-1, 1]).all())
    (True, True)
    """
    rng = np.random.default_rng(SEED)
    cuts = [0]
    while cuts[-1] < num_vertices:
        run = max(1, int(cuts[-1] * GROWTH) // one_in)
        cuts.append(cuts[-1] + run * one_in)
    begin = np.array(cuts[:-1], np.int64)
    length = np.diff(cuts) // one_in
    first = begin + (rng.random(begin.size) * (length * (one_in - 1) + 1)).astype(np.int64)
    runs = np.stack([first, first + length], axis=1)
    return np.minimum(runs, num_vertices)
