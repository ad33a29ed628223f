"""What every source of edges offers to the build: streams of bounded blocks, each read by one thread at a time.

A source may be read more than once; it never holds more than a block per stream. Ids are int64 or strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from oocgraph.errors import InputError, InputNotFoundError
from oocgraph.store.strings import string_buffers
from oocgraph.types import Array, IdKind

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class EdgeBlock:
    """Some consecutive edges of a source.

    Attributes
    ----------
    source, target : (num_edges,) int64, or pyarrow.LargeStringArray without nulls
        User ids.
    columns : dict of (num_edges,) numeric array, or pyarrow.LargeStringArray
        Edge columns by name; the weight, if any, is among them.
    first_row
        Position of the first edge in the source, from 0: orders ``duplicates="first"``.
    """

    source: Array | pa.LargeStringArray
    target: Array | pa.LargeStringArray
    columns: dict[str, Array | pa.LargeStringArray] = field(default_factory=dict)
    first_row: int = 0


EdgeStream = Callable[[], Iterator[EdgeBlock]]
"""Opens one part of a source; the blocks are iterated by one thread, different streams by different threads."""


class EdgeSource(Protocol):
    """Edges of any origin.

    Attributes
    ----------
    description
        Name for messages and for the store's attributes: a path, or "numpy arrays".
    id_kind
        Whether ids are integers or strings.
    num_rows
        Number of edges as listed, when known without reading.
    likely_rows
        About how many they are, where that can be guessed without reading.
    num_vertices
        When the source declares that its vertices are 0 .. num_vertices - 1 (Matrix Market, .sg, SciPy, generators).
    id_bounds
        Smallest and largest id, when known without reading (Parquet statistics); may be wider than the truth.
    directed
        What the source itself says, or None.
    weight
        Name of the weight among `columns`, or None.
    columns
        Edge columns and their NumPy dtype names, ``"string"`` for text.
    extra_vertices : (num_extra,) int64, or pyarrow.LargeStringArray, or None
        Ids of vertices that the source lists besides its edges (the isolated nodes of a NetworkX graph); they may also
        have edges. None when the edges and `num_vertices` say everything.
    """

    description: str
    id_kind: IdKind
    num_rows: int | None
    likely_rows: int | None
    num_vertices: int | None
    id_bounds: tuple[int, int] | None
    directed: bool | None
    weight: str | None
    columns: dict[str, str]
    extra_vertices: Array | pa.LargeStringArray | None

    def streams(self, block_rows: int) -> Sequence[EdgeStream]:
        """Return the parts of the source, in order; no block has more than `block_rows` edges.

        The blocks raise InputError (file, place, remedy) for what cannot be an edge.
        """
        ...


def read_streams(edges: EdgeSource, block_rows: int) -> list[EdgeStream]:
    """Return the parts of a source, whose blocks raise InputError where the source cannot be read."""
    return [partial(_guarded_stream, edges.description, stream) for stream in edges.streams(block_rows)]


def _guarded_stream(description: str, stream: EdgeStream) -> Iterator[EdgeBlock]:
    for block in guarded(description, stream()):
        if len(block.source) != len(block.target):
            sizes = f"{len(block.source):,} sources and {len(block.target):,} targets"
            raise InputError(f"{description}: a block has {sizes}; give as many of both")
        yield block


def guarded(description: str, items: Iterator[Item]) -> Iterator[Item]:
    """Iterate over what a source gives; raise InputError where it cannot be read.

    A build writes while it reads: an error of the operating system must not be taken for one of its output.
    """
    try:
        yield from items
    except InputNotFoundError as error:  # it was there when the source was opened
        raise InputError(str(error)) from error
    except OSError as error:
        where = description if error.filename is None else error.filename
        raise InputError(f"{where}: cannot be read ({error.strerror or error}); mend that, or copy the input elsewhere") from error


def cut_by_text(block: EdgeBlock, most_bytes: int) -> Iterator[EdgeBlock]:
    """Cut a block where its strings take more bytes than that, and one edge at the least."""
    if block.source.nbytes + block.target.nbytes <= 2 * most_bytes:
        yield block
        return
    stop = np.cumsum(sum(np.diff(string_buffers(ids)[1]) for ids in (block.source, block.target)))
    starts = np.flatnonzero(np.append(True, np.diff(stop // most_bytes)))
    for start, end in pairwise([*starts.tolist(), stop.size]):
        columns = {name: values[start:end] for name, values in block.columns.items()}
        yield EdgeBlock(block.source[start:end], block.target[start:end], columns, block.first_row + start)
