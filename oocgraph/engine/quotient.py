"""Quotient graphs: groups of vertices become vertices, in a store of its own.

In: the edges of a graph (`oocgraph.engine.sweeps`), and of each vertex the number of its group. Out: where all edges stay in memory, and
there is room, a graph in memory, whose rows are written group by group; else a store in a temporary folder, built as any other, from edges
that are streamed (of a graph in memory another one in memory). Edges between two groups become one, whose weight is their sum; those
within a group are left out.
"""

from __future__ import annotations

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
from oocgraph.engine.sweeps import Sweeps
from oocgraph.errors import OutputError
from oocgraph.ingest.build import build_with_report
from oocgraph.ingest.build_job import FIXED_BYTES, READER_BYTES, BuildOptions
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.in_memory import build_from_source, source_bytes
from oocgraph.ingest.sources.source import Source, split_rows
from oocgraph.kernels import quotient as kernels
from oocgraph.kernels.build import build_calls
from oocgraph.kernels.piece_rows import empty_pieces
from oocgraph.memory import SPARE_BYTES, Budget, effective_budget_bytes, host_bytes
from oocgraph.sorting import load_sorts
from oocgraph.sparse.edge_stream import table_bytes
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.beside import folder_beside
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import graph_of_rows
from oocgraph.store.layout import VERTEX_ID, WEIGHT
from oocgraph.store.remains import Remains, clear
from oocgraph.types import Array, ignore_progress, index_dtype

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


ENTRY_SECONDS = 1e-8
"""About what it takes to look at an entry, for rows that are written group by group."""

MOST_EXACT = 2.0**53
"""Sums of whole numbers below it are the same in any order."""


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
    crossing: float


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


def sums_are_exact(store: CSRStore, column: str | None, total: float) -> bool:
    """Whether sums of weights, of all of which the sum is `total`, are the same in any order."""
    return total < MOST_EXACT and (column is None or np.dtype(store.attributes.columns[column]).kind in "iub")


def quotient_bytes(store: CSRStore, threads: int, path: Path | None) -> int:
    """Return what `build_quotient` takes where it does not write rows."""
    if path is None:
        return SPARE_BYTES + source_bytes(store.num_edges, WEIGHT_BYTES)
    more = min(MORE_BYTES, EDGE_BYTES * store.num_edges)
    return FIXED_BYTES + SPARE_BYTES + min(threads, BUILD_THREADS) * (READER_BYTES + LEAST_BYTES + more)


def charges(store: CSRStore, num_ids: int, path: Path | None, column: str | None) -> tuple[Callable[[int], int], int]:
    """Return what `build_quotient` takes with so many threads, and what more is of use; with nothing more it always writes rows.

    Those of a graph in memory whose edges weigh one each take less than a build there.
    """
    rows = rows_bytes(store, num_ids)
    if path is None and column is None:
        return lambda _: rows, 0
    return lambda threads: quotient_bytes(store, threads, path), rows


def quotient_calls(store: CSRStore, column: str | None, dtype: np.dtype[Any]) -> list[tuple[Any, ...]]:
    """Return the kernels with arguments of their types, as `oocgraph.engine.sweeps.Needs` has those that are not given rows."""
    pointers, indices = (np.empty(0, store.array(f"out/{name}").dtype.newbyteorder("=")) for name in ("indptr", "indices"))
    values = None if column is None else np.empty(0, store.array(f"out/{column}").dtype.newbyteorder("="))
    values = values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values
    numbers, weights = np.empty(0, np.int64), np.empty(0)
    index = np.empty(0, store.index_dtype)
    rows = empty_pieces(indices.dtype), index, numbers, index
    return [
        (kernels.edges_between, pointers, 0, 0, indices, values, index, numbers, weights, numbers.reshape(0, 2), weights,
         numbers, numbers, numbers, weights),
        (kernels.list_members, index, numbers, index),
        (kernels.count_linked, *rows, index, numbers, 0, 0),
        (kernels.link, rows[0], values, *rows[1:], index, index, numbers, index, np.empty(0, dtype), 0, 0),
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
    sweeps: Sweeps, group: Array, num_groups: int, path: Path | None, dtype: np.dtype[Any], *, threads: int, by_rows: bool
) -> Quotient:  # fmt: skip
    """Build the quotient graph of an undirected graph.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Of each vertex its group, below `num_groups`.
    path
        Where its store will be; None: in memory.
    dtype
        Of its weights; an integer where these are and their sum fits.
    by_rows
        Write rows, in memory: all edges stay there, and there are `rows_bytes` for it; `sums_are_exact`, so that they are the same.

    Notes
    -----
    Reads the edges once. Host memory: `quotient_bytes`, or `rows_bytes`. Temporary files beside `path`: about 32 bytes an edge between
    groups; of those of the same two groups a few count.
    """
    sweeps.num_sweeps += 1
    if by_rows:
        return _written_by_rows(sweeps, group, num_groups, dtype)
    crossing: dict[int, float] = {}

    def read(piece: AbstractContextManager[PartialCSR], number: int, block_rows: int) -> Iterator[EdgeBlock]:
        at, total = np.zeros(2, np.int64), np.zeros(1)
        table = np.zeros((NUM_SLOTS, 2), np.int64), np.zeros(NUM_SLOTS), np.zeros(NUM_SLOTS, np.int64)
        with piece as part:
            values = part.values.view(np.uint8) if part.values is not None and part.values.dtype == np.bool_ else part.values
            count = block_rows
            while count == block_rows:
                source, target, weight = np.empty(block_rows, np.int64), np.empty(block_rows, np.int64), np.empty(block_rows)
                count = kernels.edges_between(
                    part.pointers, part.first_line, part.start, part.indices, values, group, at, total, *table, source, target, weight
                )
                yield EdgeBlock(source[:count], target[:count], {WEIGHT: weight[:count].astype(dtype)})
        crossing[number] = float(total[0])

    def stream(pieces: Sequence[AbstractContextManager[PartialCSR]], first: int, block_rows: int) -> Iterator[EdgeBlock]:
        for number, piece in enumerate(pieces, first):
            yield from read(piece, number, block_rows)

    def streams(block_rows: int) -> list[EdgeStream]:
        pieces = sweeps.pieces()
        return [partial(stream, pieces[low:high], low, block_rows) for low, high in split_rows(len(pieces), 1)]

    source = Source(
        f"groups of {sweeps.store.url}", "int64", streams, num_rows=sweeps.store.num_edges, num_vertices=num_groups,
        id_bounds=(0, num_groups - 1), directed=False, weight=WEIGHT, columns={WEIGHT: dtype.name},
    )  # fmt: skip
    options = BuildOptions(
        weight_column=WEIGHT, num_vertices=num_groups, duplicates="sum", vertex_order="original", durable=False,
        threads=min(threads, BUILD_THREADS),
        memory_budget=host_bytes() + quotient_bytes(sweeps.store, threads, path),
    )  # fmt: skip
    if path is None:
        store: CSRStore = build_from_source(source, options, Budget(effective_budget_bytes(options.memory_budget)), ignore_progress)
    else:
        store, _ = build_with_report(source, path, options)
    return Quotient(store, float(np.sum([crossing[number] for number in sorted(crossing)])))


def _written_by_rows(sweeps: Sweeps, group: Array, num_groups: int, dtype: np.dtype[Any]) -> Quotient:
    """Build a quotient graph in memory: first how long its rows are is counted, then they are written."""
    index = group.dtype
    table, team = sweeps.table(), sweeps.team
    table.bring_all()
    bounds, members = np.empty(num_groups + 1, np.int64), np.empty_like(group)
    kernels.list_members(group, bounds, members)
    rows, seconds = (table.pieces, members, bounds, group), ENTRY_SECONDS * sweeps.store.attributes.num_stored_edges
    last, lengths = np.zeros(num_groups, index), np.empty(num_groups, np.int64)
    team.run(lambda part: kernels.count_linked(*rows, last, lengths, *part), _even_parts(np.diff(bounds), team.threads), seconds)
    ids = np.flatnonzero(lengths)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[ids])])
    rank, cursor = np.zeros(num_groups, index), np.zeros(num_groups, np.int64)
    rank[ids], cursor[ids] = np.arange(ids.size, dtype=index), indptr[:-1]
    indices, weights = np.empty(indptr[-1], index_dtype(ids.size)), np.empty(indptr[-1], dtype)
    last[:] = 0

    def write(part: tuple[int, int]) -> None:
        kernels.link(table.pieces, table.values, *rows[1:], last, rank, cursor, indices, weights, *part)

    team.run(write, _even_parts(lengths, team.threads), seconds)
    graph = graph_of_rows(indptr, indices, weights, ids, num_groups, f"groups of {sweeps.store.url}")
    return Quotient(graph, float(weights.sum(dtype=np.float64)) / 2)


def _even_parts(sizes: Array, count: int) -> list[tuple[int, int]]:
    """Cut a range of things of some sizes into so many parts that are about as large, or fewer."""
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, [int(ends[-1]) * i // count for i in range(1, count)], side="right").tolist()
    return [(a, z) for a, z in pairwise([0, *cuts, sizes.size]) if a < z]
