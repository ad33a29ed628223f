"""Where the rows of a stored group begin, as kernels take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oocgraph.kernels.rows import RowLookup

if TYPE_CHECKING:
    from oocgraph.store.graph_arrays import GraphArrays


def sorted_lookup(store: GraphArrays) -> RowLookup:
    """Return the row lookup of the pull group of a degree-sorted store."""
    degree, first = store.degree_classes
    if not degree.size:
        degree, first = np.zeros(1, np.int64), np.zeros(1, np.int64)
    counts = np.diff(np.append(first, store.num_rows))
    edge = np.concatenate([[0], np.cumsum(counts * degree)[:-1]]).astype(np.int64)
    return RowLookup(np.empty(0, np.int64), first.astype(np.int64), edge, degree.astype(np.int64))
