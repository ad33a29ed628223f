"""What a plan must know of a graph: numbers and small arrays of its store. Nothing here brings kernels into memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.plan.residency import GraphSizes
from oocgraph.store.arrays import StoredArray, checksum_bytes
from oocgraph.store.degrees import plane_lengths
from oocgraph.store.graph import CSRStore


def graph_sizes(store: CSRStore, indices: list[StoredArray], lookups: dict[str, Any]) -> GraphSizes:
    """Return what the residency plan needs to know of a graph; `lookups` names the group that has no explicit row starts."""
    n, is_held = store.num_rows, all(array.is_held for array in indices)
    plane_edges: tuple[int, ...] = (0,)
    skew = 0.0
    if lookups:
        degree, first = store.degree_classes
        counts = np.diff(np.append(first, n)).astype(np.float64)
        mean = float((counts * degree).sum()) / max(1, n)
        skew = float((counts * degree.astype(np.float64) ** 2).sum()) / max(1, n) / mean**2 - 1 if mean else 0.0
        lengths = plane_lengths(degree, first, n, store.attributes.num_planes)
        plane_edges = (0, *(int(x) for x in np.cumsum(lengths[:-1])))
    return GraphSizes(
        num_vertices=n,
        itemsize=store.index_dtype.itemsize,
        is_held=is_held,
        is_view=any(array.mask is not None for array in indices),
        num_edges=tuple(array.length for array in indices),
        indptr_bytes=0 if is_held else 8 * (n + 1) * (len(indices) - len(lookups)),
        plane_edges=plane_edges,
        skew=skew,
        checksum_bytes=sum(checksum_bytes(array) for array in indices),
    )
