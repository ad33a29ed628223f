"""Quotient graphs: groups of vertices become vertices, in a store of its own.

In: the edges of a graph (`oocgraph.engine.sweeps`), and of each vertex the number of its group. Out: where all edges stay in memory, and
there is room, a graph in memory, whose rows are written group by group; else a store in a temporary folder, built as any other, from edges
that are streamed. (Those of a graph in memory are always there.) Edges between two groups become one, whose weight is their sum, an
integer in units of `scale_of`; those within a group are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oocgraph.arrow import load_arrow
from oocgraph.compiled.crc32c import checksum_calls
from oocgraph.compiled.load import load_kernels
from oocgraph.engine.sweeps import Sweeps, as_numbers
from oocgraph.errors import OutputError
from oocgraph.ingest.build import build_with_report
from oocgraph.ingest.build_job import FIXED_BYTES, READER_BYTES, BuildOptions
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.source import Source, split_rows
from oocgraph.kernels import quotient as kernels
from oocgraph.kernels.build import build_calls
from oocgraph.kernels.grouping import count_groups, order_by_group
from oocgraph.kernels.piece_rows import empty_pieces
from oocgraph.memory import SPARE_BYTES, host_bytes
from oocgraph.sorting import load_sorts
from oocgraph.sparse.partial import PartialCSR
from oocgraph.sparse.piece_table import table_bytes
from oocgraph.store.beside import folder_beside
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import graph_of_rows
from oocgraph.store.layout import VERTEX_ID, WEIGHT
from oocgraph.store.remains import Remains, clear
from oocgraph.types import Array, index_dtype

NUM_SLOTS = 1 << 14
"""Edges that a piece adds up at once: half a mebibyte, which stays in a cache."""

BUILD_THREADS = 4
"""Threads of a build at most: each needs memory, and quotient graphs are small."""

LEAST_BYTES = 3 << 20
"""Of a thread of a build beside its reader: the smallest blocks and bins, and the table in which it adds up."""

WEIGHT_BYTES = 8
"""Of a weight, at the most."""

MORE_BYTES, EDGE_BYTES = 8 << 20, 64
"""Of a thread of a build beside these, at most, and for each edge: with more, its steps are fewer."""

WRITERS = 8
"""Parts of the rows that are written at once, at most: each is found by looking at all entries."""

ENTRY_SECONDS = 1e-8
"""About what it takes to look at an entry, for rows that are written group by group."""

UNIT_BITS = 61
"""Bits of the sum of all weights, in units: int64 holds twice as much."""


class Quotient(NamedTuple):
    """A quotient graph.

    Attributes
    ----------
    store : CSRStore
        Has the weights; a group without edges to others is isolated.
    crossing
        Weight of all its edges.
    """

    store: CSRStore
    crossing: int


def load_builds() -> None:
    """Bring what builds need into memory, before memory is counted."""
    load_kernels([*build_calls(), *checksum_calls()])
    load_sorts()
    load_arrow()


def group_ids(store: CSRStore) -> Array:
    """Return the group that each vertex of a quotient graph is: (num_vertices,) int64."""
    return store.read(VERTEX_ID)


def rows_bytes(store: CSRStore, num_ids: int) -> int:
    """Return what `build_quotient` takes at the most where it writes rows, of so many groups at the most."""
    index = store.index_dtype.itemsize
    vertices = num_ids * (4 * index + 7 * 8) + table_bytes(store.num_rows)
    return SPARE_BYTES + vertices + store.attributes.num_stored_edges * (index + WEIGHT_BYTES)


def scale_of(store: CSRStore, column: str | None, total: float) -> float:
    """Return the units of a weight of 1: a power of two, so that `total`, the sum of all weights, takes `UNIT_BITS` at the most.

    Of integers whose sum does not take more each is one unit.
    """
    bits = math.frexp(total)[1]
    if bits <= UNIT_BITS and (column is None or np.dtype(store.attributes.columns[column]).kind in "iub"):
        return 1.0
    return math.ldexp(1.0, UNIT_BITS - bits)


def quotient_bytes(store: CSRStore, threads: int) -> int:
    """Return what `build_quotient` takes where it does not write rows."""
    more = min(MORE_BYTES, EDGE_BYTES * store.num_edges)
    return FIXED_BYTES + SPARE_BYTES + min(threads, BUILD_THREADS) * (READER_BYTES + LEAST_BYTES + more)


def charges(store: CSRStore, num_ids: int, path: Path | None) -> tuple[Callable[[int], int], int]:
    """Return what `build_quotient` takes with so many threads, and what more is of use: with that it writes rows."""
    rows = rows_bytes(store, num_ids)
    if path is None:
        return lambda _: rows, 0
    return lambda threads: quotient_bytes(store, threads), rows


def quotient_calls(store: CSRStore, column: str | None, dtype: np.dtype[Any]) -> list[tuple[Any, ...]]:
    """Return the kernels with arguments of their types, as `oocgraph.engine.sweeps.Needs` has those that are not given rows."""
    pointers, indices = (np.empty(0, store.array(f"out/{name}").dtype.newbyteorder("=")) for name in ("indptr", "indices"))
    values = as_numbers(None if column is None else np.empty(0, store.array(f"out/{column}").dtype.newbyteorder("=")))
    numbers = np.empty(0, np.int64)
    index = np.empty(0, store.index_dtype)
    rows = empty_pieces(indices.dtype), index, numbers, index
    return [
        (kernels.edges_between, pointers, 0, 0, indices, values, index, 1.0, numbers, numbers, numbers.reshape(0, 2), *[numbers] * 5),
        (count_groups, index, numbers), (order_by_group, index, numbers, index),
        (kernels.count_linked, *rows, index, numbers, 0, 0),
        (kernels.link, rows[0], values, 1.0, *rows[1:], index, index, numbers, index, np.empty(0, dtype), 0, 0),
    ]  # fmt: skip


@contextmanager
def temporary_folder(store: CSRStore) -> Iterator[Path | None]:
    """Make a folder for stores that a computation needs: in ``oocgraph.result-folder``, or beside the graph; None of a graph in memory.

    Raises
    ------
    ArgumentError
        The graph is in no local folder, and no folder is configured.
    OutputError
        The folder cannot be written to.
    """
    if not store.is_shared:
        yield None
        return
    parent = folder_beside(store, "name a local folder for temporary stores by oocgraph.result-folder")
    try:
        clear(parent)
        remains = Remains.make(parent / "quotient.zarr")
    except OSError as error:
        raise OutputError(
            f"{parent}: temporary stores cannot be written here ({error.strerror}); set oocgraph.result-folder to another folder"
        ) from error
    try:
        yield remains.folder
    finally:
        remains.discard()


def build_quotient(
    sweeps: Sweeps, group: Array, num_groups: int, path: Path | None, dtype: np.dtype[Any], scale: float, *, threads: int
) -> Quotient:  # fmt: skip
    """Build the quotient graph of an undirected graph.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Of each vertex its group, below `num_groups`.
    path
        Where its store will be, if it is not in memory; None where that is certain.
    dtype
        Of its weights, integers, which hold their sum.
    scale
        Of a weight of 1 the weight there (`scale_of`).

    Notes
    -----
    Rows are written, in memory, where there is no path, or `Needs.spare_bytes` of `charges` for it. They are the same.
    Reads the edges once. Host memory: `quotient_bytes`, or `rows_bytes`. Temporary files beside `path`: about 32 bytes an edge between
    groups; of those of the same two groups a few count.
    """
    sweeps.num_sweeps += 1
    if path is None or sweeps.num_spared:
        return _written_by_rows(sweeps, group, num_groups, dtype, scale)
    crossing: list[int] = []

    def read(piece: AbstractContextManager[PartialCSR], block_rows: int) -> Iterator[EdgeBlock]:
        at, total = np.zeros(2, np.int64), np.zeros(1, np.int64)
        table = np.zeros((NUM_SLOTS, 2), np.int64), np.zeros(NUM_SLOTS, np.int64), np.zeros(NUM_SLOTS, np.int64)
        with piece as part:
            count = block_rows
            while count == block_rows:
                source, target, weight = (np.empty(block_rows, np.int64) for _ in range(3))
                rows = part.pointers, part.first_line, part.start, part.indices, as_numbers(part.values)
                count = kernels.edges_between(*rows, group, scale, at, total, *table, source, target, weight)
                yield EdgeBlock(source[:count], target[:count], {WEIGHT: weight[:count].astype(dtype)})
        crossing.append(int(total[0]))

    def stream(pieces: Sequence[AbstractContextManager[PartialCSR]], block_rows: int) -> Iterator[EdgeBlock]:
        for piece in pieces:
            yield from read(piece, block_rows)

    def streams(block_rows: int) -> list[EdgeStream]:
        pieces = sweeps.pieces()
        return [partial(stream, pieces[low:high], block_rows) for low, high in split_rows(len(pieces), 1)]

    source = Source(
        f"groups of {sweeps.store.url}", "int64", streams, num_rows=sweeps.store.num_edges, num_vertices=num_groups,
        id_bounds=(0, num_groups - 1), directed=False, weight=WEIGHT, columns={WEIGHT: dtype.name},
    )  # fmt: skip
    options = BuildOptions(
        weight_column=WEIGHT, num_vertices=num_groups, duplicates="sum", vertex_order="original", durable=False,
        threads=min(threads, BUILD_THREADS), memory_budget=host_bytes() + quotient_bytes(sweeps.store, threads),
    )  # fmt: skip
    store, _ = build_with_report(source, path, options)
    return Quotient(store, sum(crossing))


def _written_by_rows(sweeps: Sweeps, group: Array, num_groups: int, dtype: np.dtype[Any], scale: float) -> Quotient:
    """Build a quotient graph in memory: first how long its rows are is counted, then they are written."""
    index = group.dtype
    table, team = sweeps.table(), sweeps.team
    table.bring_all()
    bounds, members = np.zeros(num_groups + 1, np.int64), np.empty_like(group)
    count_groups(group, bounds[1:])
    np.cumsum(bounds, out=bounds)
    order_by_group(group, bounds[:-1].copy(), members)
    rows, seconds = (table.pieces, members, bounds, group), ENTRY_SECONDS * sweeps.store.attributes.num_stored_edges
    last, lengths = np.zeros(num_groups, index), np.empty(num_groups, np.int64)
    writers = min(team.threads, WRITERS)
    team.run(lambda part: kernels.count_linked(*rows, last, lengths, *part), _even_parts(np.diff(bounds), writers), seconds)
    ids = np.flatnonzero(lengths)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[ids])])
    rank, cursor = np.zeros(num_groups, index), np.zeros(num_groups, np.int64)
    rank[ids], cursor[ids] = np.arange(ids.size, dtype=index), indptr[:-1]
    indices, weights = np.empty(indptr[-1], index_dtype(ids.size)), np.empty(indptr[-1], dtype)
    last[:] = 0

    def write(part: tuple[int, int]) -> None:
        kernels.link(table.pieces, table.values, scale, *rows[1:], last, rank, cursor, indices, weights, *part)

    team.run(write, _even_parts(lengths, writers), seconds)
    graph = graph_of_rows(indptr, indices, weights, ids, num_groups, f"groups of {sweeps.store.url}")
    return Quotient(graph, int(weights.sum(dtype=np.int64)) // 2)


def _even_parts(sizes: Array, count: int) -> list[tuple[int, int]]:
    """Cut a range of things of some sizes into so many parts that are about as large, or fewer."""
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, [int(ends[-1]) * i // count for i in range(1, count)], side="right").tolist()
    return [(a, z) for a, z in pairwise([0, *cuts, sizes.size]) if a < z]
