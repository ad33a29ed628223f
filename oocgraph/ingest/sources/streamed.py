"""Sources that are read once, one part after another, as their producer makes them: Arrow batches, partitions of a Dask collection.

A build reads edges more than once, so it copies these to a temporary file first (`oocgraph.ingest.spool`), and holds one part at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.columns import Layout
from oocgraph.ingest.sources.ids import Place
from oocgraph.ingest.sources.source import Source, single_stream


@dataclass(frozen=True, slots=True)
class Part:
    """What a producer hands over at once.

    Attributes
    ----------
    name
        What messages call it.
    num_bytes
        Bytes that it adds to what the process holds.
    blocks
        ``blocks(first_row, block_rows)`` iterates over its edges, whose first is row `first_row` of the source.
    """

    name: str
    num_bytes: int
    blocks: Callable[[int, int], Iterator[EdgeBlock]]


def bytes_of(values: Any) -> int:
    """Return about what a table, an array or some columns take in memory; of an array that gives ranges of rows, what a chunk takes."""
    if isinstance(values, dict):
        return sum(map(bytes_of, values.values()))
    if isinstance(values, tuple | list):
        is_column = not any(hasattr(one, "__len__") and not isinstance(one, str) for one in values[:1])
        return sum(map(sys.getsizeof if is_column else bytes_of, values))
    if isinstance(values, np.ndarray):
        return values.nbytes
    if hasattr(type(values), "__dask_graph__"):
        return 0
    if isinstance(chunk := getattr(values, "chunks", None), tuple):
        return int(np.prod(chunk)) * int(values.dtype.itemsize)
    if hasattr(values, "memory_usage"):
        return int(np.sum(values.memory_usage(deep=True)))
    if hasattr(values, "estimated_size"):
        return int(values.estimated_size())
    if hasattr(values, "nbytes"):
        return int(values.nbytes)
    return sys.getsizeof(values) + sum(one.nbytes for one in getattr(values, "__dict__", {}).values() if isinstance(one, np.ndarray))


class StreamedSource(Source):
    """Edges that are read once.

    Parameters
    ----------
    layout
        How columns become edges.
    parts
        Makes the parts, in order; each is dropped before the next is asked for.
    producer_bytes
        What their producer holds beside them, where that is known.
    """

    def __init__(self, layout: Layout, parts: Callable[[], Iterator[Part]], producer_bytes: int = 0) -> None:
        once = _Once(layout.description, parts)
        super().__init__(
            description=layout.description,
            id_kind=layout.kind,
            make_streams=single_stream(partial(_blocks, once)),
            num_vertices=layout.num_vertices,
            weight=layout.columns.weight,
            columns=layout.dtypes,
            ends=layout.ends,
            readers=(1, producer_bytes),
        )
        self._once = once

    def parts(self) -> Iterator[Part]:
        """Return the parts.

        Raises
        ------
        InputError
            They were read before.
        """
        return self._once.take()


class _Once:
    """Parts that are taken once. The source and its stream share it: one that had the other would stay until garbage is collected."""

    def __init__(self, description: str, parts: Callable[[], Iterator[Part]]) -> None:
        self._description, self._parts = description, parts

    def take(self) -> Iterator[Part]:
        if not hasattr(self, "_parts"):
            raise InputError(f"{self._description}: it can be read only once, and was read before; make it again, or write it to a file")
        parts = self._parts
        del self._parts
        return parts()


def _blocks(once: _Once, block_rows: int) -> Iterator[EdgeBlock]:
    row, parts = 0, once.take()
    while (part := next(parts, None)) is not None:
        for block in part.blocks(row, block_rows):
            row = block.first_row + len(block.source)
            yield block
            del block
        del part


def slices(
    layout: Layout,
    num_rows: int,
    read: Callable[[int, int], Callable[[str], Any]],
    place_of: Callable[[str, int], Place],
    first_row: int,
    block_rows: int,
) -> Iterator[EdgeBlock]:
    """Iterate over the edges of a part.

    Parameters
    ----------
    layout
        How columns become edges.
    num_rows
        Rows of the part.
    read
        ``read(low, high)`` returns a function from the name of a column to its values in these rows of the part.
    place_of
        ``place_of(name, low)`` says where a column's values from row `low` of the part stand.
    first_row, block_rows
        Row of the source at which the part begins, and how many a block has at most.
    """
    for low in range(0, num_rows, block_rows):
        values = read(low, min(low + block_rows, num_rows))
        yield layout.block(values, first_row + low, partial(_place_at, place_of, low))
        del values


def _place_at(place_of: Callable[[str, int], Place], low: int, name: str) -> Place:
    return place_of(name, low)
