"""Edges of an undirected graph as those of a directed one: each edge, and then its reverse; an edge from a vertex to itself once.

In: an edge source whose edges have no direction. Out: the source of a directed graph with the same neighbours, such as
``networkx.Graph.to_directed`` makes. A reverse follows its edge at once, so that the order of all edges does not depend on the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from oocgraph.arrow import to_numbers
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, EdgeStream
from oocgraph.ingest.sources.source import Source, blocks_of
from oocgraph.store.columns import joined


def both_directions(edges: EdgeSource) -> Source:
    """Return the edges of an undirected source, each in both directions, with the columns of the edge.

    Notes
    -----
    Beside a block of the source, of half of the rows, a stream holds its ends once more and their positions.
    """

    def streams(block_rows: int) -> list[EdgeStream]:
        return [partial(_stream, stream, block_rows) for stream in edges.streams(max(1, block_rows // 2))]

    listed = edges.likely_rows if edges.num_rows is None else edges.num_rows
    return Source.like(
        edges,
        streams,
        id_bounds=edges.id_bounds,
        directed=True,
        extra_vertices=edges.extra_vertices,
        likely_rows=None if listed is None else 2 * listed,  # less what has one direction, which is known when it is read
        readers=edges.readers if isinstance(edges, Source) else (0, 0),
    )


def _stream(stream: EdgeStream, block_rows: int) -> Iterator[EdgeBlock]:
    for block in stream():
        yield from _doubled(block, block_rows)


def _doubled(block: EdgeBlock, block_rows: int) -> Iterator[EdgeBlock]:
    """Iterate over the edges of a block and their reverses, `block_rows` at a time; row i becomes the rows 2 i and 2 i + 1."""
    count = len(block.source)
    kept = np.ones((count, 2), bool)
    kept[:, 1] = _differ(block.source, block.target)
    places = np.arange(2 * count).reshape(2, count).T[kept]  # edge i is at i of all ends, its reverse at count + i
    ends = joined([block.source, block.target])
    for low, high in blocks_of(0, places.size, block_rows):
        some = places[low:high]
        columns = {name: values.take(some % count) for name, values in block.columns.items()}
        yield EdgeBlock(ends.take(some), ends.take((some + count) % (2 * count)), columns, 2 * block.first_row + low)


def _differ(source: Any, target: Any) -> Any:
    if isinstance(source, np.ndarray):
        return source != target
    import pyarrow.compute as pc

    return to_numbers(pc.not_equal(source, target))
