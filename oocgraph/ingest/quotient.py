"""An edge source whose vertices are groups of the vertices of a stored graph, and whose edges lead from group to group.

In: a store, and of each vertex the one that its group is named after. Out: a `Source`: ids are those of the vertices that groups are named
after; an edge between two groups comes once for each edge between their vertices, one inside of a group does not come. A group is listed
as an edge from itself to itself, which a build drops, and so is every vertex without edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.csr import rows_of_entries
from oocgraph.ingest.sources.source import Source, blocks_of, split_rows
from oocgraph.store.columns import taken
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, IdKind

BLOCK_ROWS = 1 << 16
"""Entries of ``indptr`` read at once: 512 KiB."""


def open_quotient(store: CSRStore, group: Array, description: str) -> Source:
    """Return the edges between groups.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Store number of the vertex that each one's group is named after, which is of the group.
    description
        Name for messages, and for the attributes of what is built.

    Notes
    -----
    A block takes about 40 bytes an edge, and reads half as many as it may have.
    """

    def make(block_rows: int) -> list[EdgeStream]:
        most = max(1, block_rows // 2)
        ranges = split_rows(store.num_rows, BLOCK_ROWS)
        return [partial(_names, store, group, most), *(partial(_edges, store, group, one, most) for one in ranges)]

    implied, attributes = store.attributes.implied_ids, store.attributes
    kind: IdKind = "int64" if attributes.id_kind == "int64" else "string"
    bounds = None if implied is None or implied[0] == implied[1] else (implied[0], implied[1] - 1)
    return Source(description, kind, make, id_bounds=bounds, directed=attributes.directed)


def _names(store: CSRStore, group: Array, most: int) -> Iterator[EdgeBlock]:
    """Yield groups, each as an edge to itself."""
    for ids, numbers in VertexIds(store).stored_blocks(most):
        is_name = numbers < 0
        linked = numbers[~is_name]
        is_name[~is_name] = group[linked] == linked
        names = taken(ids, np.flatnonzero(is_name))
        yield EdgeBlock(names, names)


def _edges(store: CSRStore, group: Array, rows: tuple[int, int], most: int) -> Iterator[EdgeBlock]:
    """Yield the edges from some rows that lead to other groups."""
    ids, indptr, indices = VertexIds(store), store.array("out/indptr"), store.array("out/indices")
    for first, stop in blocks_of(*rows, BLOCK_ROWS):
        offsets = indptr.read(first, stop + 1)
        for low, high in blocks_of(int(offsets[0]), int(offsets[-1]), most):
            source, target = group[rows_of_entries(offsets, first, low, high)], group[indices.read(low, high)]
            leads_out = source != target
            yield EdgeBlock(ids.stored_ids_of(source[leads_out]), ids.stored_ids_of(target[leads_out]))
