"""Random graphs and search states on which kernels are compared."""

from __future__ import annotations

import dataclasses

import numpy as np

from oocgraph.kernels.rows import Marks, Planes, RowLookup, explicit_rows
from tests.oracles import search as reference


@dataclasses.dataclass
class Case:
    """A random degree-sorted (or explicit) CSR with some planes and some resident edges, and a random search state."""

    n: int
    lookup: RowLookup
    heads: Planes
    resident: np.ndarray
    indices: np.ndarray
    frontier: np.ndarray
    visited: np.ndarray
    undecided: np.ndarray
    wide: bool

    def marks(self):
        """Fresh parent and level arrays."""
        levels = np.full(4 * self.n, 255, np.uint8)
        return Marks(np.full(self.n, 7, self.indices.dtype), levels[: self.n], levels.view(np.int32), self.wide, 3)


def make_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    dtype = rng.choice([np.uint32, np.int64])
    degree = -np.sort(-rng.integers(0, rng.integers(1, 60), n))
    explicit = bool(rng.integers(2))
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    indices = np.concatenate([np.empty(0, np.int64), *[np.sort(rng.integers(0, n, d)) for d in degree]]).astype(dtype)
    if explicit:
        lookup = explicit_rows(indptr)
        num_planes = 0
    else:
        value, first = np.unique(-degree, return_index=True)
        lookup = RowLookup(np.empty(0, np.int64), first.astype(np.int64), indptr[first], -value.astype(np.int64))
        num_planes = int(rng.integers(0, 5))
    lengths = np.array([np.count_nonzero(degree > k) for k in range(num_planes + 1)], np.int64)
    if explicit:
        lengths[:] = n
    planes = np.concatenate([np.empty(0, dtype), *[indices[indptr[: lengths[k]] + k] for k in range(num_planes)]])
    offsets = np.concatenate([[0], np.cumsum(lengths[:num_planes])]).astype(np.int64)
    words = -(-n // 64)

    def bitmap(share):
        rows = np.zeros(words, np.uint64)
        picked = np.flatnonzero(rng.random(n) < share)
        reference.mark_vertices(picked, picked.size, rows)
        return rows

    frontier = bitmap(rng.random() ** 3)
    visited = bitmap(rng.random()) | frontier
    resident = indices[: rng.integers(0, indices.size + 1)].copy()
    undecided = bitmap(rng.random()) & ~visited
    planes = Planes(planes, offsets, lengths)
    return Case(n, lookup, planes, resident, indices, frontier, visited, undecided, bool(rng.integers(2)))
