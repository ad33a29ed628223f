"""Quotient graphs: groups of vertices become vertices, in a store of its own.

In: the edges of a graph (`oocgraph.engine.sweeps`), and of each vertex the number of its group. Out: a store in a temporary folder, built
as any other, from edges that are streamed; of a graph in memory one in memory. Edges between two groups become one, whose weight is their
sum; those within a group are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
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
from oocgraph.kernels.build import build_calls
from oocgraph.kernels.communities import edges_between
from oocgraph.memory import SPARE_BYTES, Budget, effective_budget_bytes, host_bytes
from oocgraph.sorting import load_sorts
from oocgraph.sparse.partial import PartialCSR
from oocgraph.store.beside import folder_beside
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import VERTEX_ID, WEIGHT
from oocgraph.store.remains import Remains, clear
from oocgraph.types import Array, ignore_progress

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


def quotient_bytes(store: CSRStore, threads: int) -> int:
    """Return what `build_quotient` takes."""
    if not store.is_shared:
        return SPARE_BYTES + source_bytes(store.num_edges, WEIGHT_BYTES)
    more = min(MORE_BYTES, EDGE_BYTES * store.num_edges)
    return FIXED_BYTES + SPARE_BYTES + min(threads, BUILD_THREADS) * (READER_BYTES + LEAST_BYTES + more)


def quotient_calls(store: CSRStore, column: str | None) -> list[tuple[Any, ...]]:
    """Return the kernel with arguments of its types, as `oocgraph.engine.sweeps.Needs` has those that are not given rows."""
    pointers, indices = (np.empty(0, store.array(f"out/{name}").dtype.newbyteorder("=")) for name in ("indptr", "indices"))
    values = None if column is None else np.empty(0, store.array(f"out/{column}").dtype.newbyteorder("="))
    values = values.view(np.uint8) if values is not None and values.dtype == np.bool_ else values
    numbers, weights = np.empty(0, np.int64), np.empty(0)
    return [
        (edges_between, pointers, 0, 0, indices, values, np.empty(0, store.index_dtype), numbers, weights, numbers.reshape(0, 2), weights,
         numbers, numbers, numbers, weights),
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


def build_quotient(sweeps: Sweeps, group: Array, num_groups: int, path: Path | None, *, dtype: np.dtype[Any], threads: int) -> Quotient:
    """Build the quotient graph of an undirected graph.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Of each vertex its group, below `num_groups`.
    path
        Where its store will be; None: in memory.
    dtype
        Of its weights; an integer where these are and their sum fits.

    Notes
    -----
    Reads the edges once. Host memory: `quotient_bytes`. Temporary files beside `path`: about 32 bytes an edge between groups; of those of
    the same two groups a few count.
    """
    crossing: dict[int, float] = {}
    sweeps.num_sweeps += 1

    def read(piece: AbstractContextManager[PartialCSR], number: int, block_rows: int) -> Iterator[EdgeBlock]:
        at, total = np.zeros(2, np.int64), np.zeros(1)
        table = np.zeros((NUM_SLOTS, 2), np.int64), np.zeros(NUM_SLOTS), np.zeros(NUM_SLOTS, np.int64)
        with piece as part:
            values = part.values.view(np.uint8) if part.values is not None and part.values.dtype == np.bool_ else part.values
            count = block_rows
            while count == block_rows:
                source, target, weight = np.empty(block_rows, np.int64), np.empty(block_rows, np.int64), np.empty(block_rows)
                count = edges_between(
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
        threads=min(threads, BUILD_THREADS), memory_budget=host_bytes() + quotient_bytes(sweeps.store, threads),
    )  # fmt: skip
    if path is None:
        store: CSRStore = build_from_source(source, options, Budget(effective_budget_bytes(options.memory_budget)), ignore_progress)
    else:
        store, _ = build_with_report(source, path, options)
    return Quotient(store, float(np.sum([crossing[number] for number in sorted(crossing)])))
