"""What a merge of two stores asks of them, and what it holds: refused before anything is written.

In: an open store, and a source of edges or another store. Out: the new store, published. Both must be of one kind; what the store says of
itself (order, compression, duplicates) is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from oocgraph.allocator import arrow_bytes
from oocgraph.compiled.load import load_kernels
from oocgraph.config import settings
from oocgraph.errors import ArgumentError, InputError
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Workers
from oocgraph.ingest.build import load_build
from oocgraph.ingest.build_job import (
    LEAST_THREADS,
    MIN_BLOCK_ROWS,
    PAYLOAD_COPIES,
    RECORD_BYTES,
    BuildOptions,
    Job,
    Phase,
    Sizes,
    least_build_bytes,
    plan_sizes,
    workers_for,
)
from oocgraph.ingest.build_steps import SYNC
from oocgraph.ingest.edges import EdgeSource
from oocgraph.ingest.merge_steps import id_kind_of, merge_steps, vertex_bytes
from oocgraph.ingest.stored_rows import StoredRows, rows_bytes
from oocgraph.kernels.append import merge_calls
from oocgraph.memory import Budget, bytes_before, with_threads_that_fit
from oocgraph.store.edge_columns import column_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.id_order import id_column
from oocgraph.store.layout import ISOLATED_ID, SORTED_ID, WEIGHT
from oocgraph.store.records import Payload
from oocgraph.store.rows import longest_row
from oocgraph.store.writer import StoreWriter
from oocgraph.types import Duplicates, Progress, VertexOrder, ignore_progress

CATEGORY_COPIES = 4
"""Copies of the distinct strings of edge columns while those of two stores are put together."""

TIED_BYTES, TIED_COPIES = 120, 5
"""Bytes of an entry of a row whose entries may all be of one edge, which are treated at once, and copies of its columns beside them:
measured, with columns of 8, 16 and 24 bytes."""

LEFT_BYTES = 24 << 20
"""What sorting new edges leaves in the process (8 - 10 MiB), and what their own vertices take where these are few."""


@dataclass(frozen=True, slots=True)
class MergeMetrics:
    """Bytes held for vertices, and what each step took."""

    vertex_bytes: int
    phases: dict[str, Phase]


def check_order(store: CSRStore) -> None:
    """Refuse a graph whose order does not follow from degrees and ids, or that is none by itself.

    Raises
    ------
    ArgumentError
        It is in locality order, a view, or a part.
    """
    if store.stored is not store or store.attributes.groups is not None:
        raise ArgumentError(f"{store.url} is a view, or a part of a graph; name the graph itself")
    if store.attributes.vertex_order not in ("degree", "original"):
        raise ArgumentError(
            f"{store.url} is in locality order, which depends on all of its edges; build it again from all edge lists, or in degree order"
        )


def in_store(store: CSRStore, options: BuildOptions) -> BuildOptions:
    """Return the options of a build whose store is of the kind of `store`, with its edge columns where none are named.

    Raises
    ------
    InputError
        Another kind was asked for.
    """
    attributes = store.attributes
    for name, asked in (("directed", options.directed), ("duplicates", options.duplicates)):
        if asked is not None and asked != (found := getattr(attributes, name)):
            raise InputError(
                f"{store.url} was built with {name}={found!r}, and {name}={asked!r} is asked for; leave it out, or build all again"
            )
    own = [name for name in attributes.columns if name != WEIGHT]
    return replace(
        options,
        directed=attributes.directed,
        duplicates=attributes.duplicates,
        edge_columns=options.edge_columns or own,
        keep_self_loops=options.keep_self_loops or attributes.num_self_loops > 0,
        vertex_order=cast(VertexOrder, attributes.vertex_order),
        codec=attributes.codec,
    )


def check_source(store: CSRStore, edges: EdgeSource) -> None:
    """Refuse edges that are not of the kind of a store.

    Raises
    ------
    InputError
        Their ids are of another kind, or their columns are others.
    """
    if store.num_vertices and edges.num_rows != 0 and edges.id_kind != store.attributes.id_kind:
        raise InputError(f"{edges.description}: its ids are {edges.id_kind}, those of {store.url} {store.attributes.id_kind}; convert them")
    columns = {
        (WEIGHT if name == edges.weight else name): np.dtype(kind).name if kind != "string" else kind
        for name, kind in edges.columns.items()
    }
    _check_columns(store, columns, edges.description)


def check_alike(first: CSRStore, second: CSRStore) -> None:
    """Refuse two graphs of different kinds.

    Raises
    ------
    InputError
        Their kinds, ids, columns or treatments of duplicates differ.
    ArgumentError
        The second is a view, or a part.
    """
    if second.stored is not second or second.attributes.groups is not None:
        raise ArgumentError(f"{second.url} is a view, or a part of a graph; name the graph itself")
    names = ["directed", "duplicates", *(["id_kind"] if first.num_vertices and second.num_vertices else [])]
    for name in names:
        ours, theirs = getattr(first.attributes, name), getattr(second.attributes, name)
        if ours != theirs:
            raise InputError(f"{first.url} has {name}={ours!r}, {second.url} {name}={theirs!r}; build one of them again like the other")
    _check_columns(first, second.attributes.columns, str(second.url))


def _check_columns(store: CSRStore, columns: dict[str, str], where: str) -> None:
    wanted = store.attributes.columns
    for name in dict.fromkeys([*wanted, *columns]):
        label = "weight" if name == WEIGHT else f"edge column {name!r}"
        if name not in columns:
            remedy = "name the column that holds it" if name == WEIGHT else "add it"
            raise InputError(f"{where}: it has no {label}, and {store.url} has one; {remedy}, or build all edges again without")
        if name not in wanted:
            raise InputError(f"{where}: it has the {label}, and {store.url} has none; leave it out, or build all edges again with it")
        if columns[name] != wanted[name]:
            raise InputError(f"{where}: its {label} is {columns[name]}, that of {store.url} {wanted[name]}; convert it")


def load_merge(store: CSRStore, progress: Progress = ignore_progress) -> None:
    """Bring what a merge uses into memory, before memory is counted."""
    load_build(store.attributes.codec, progress, id_kind=store.attributes.id_kind, dtypes=_payload(store).binned)
    load_kernels(merge_calls(columns=bool(store.attributes.columns)), progress)


def _payload(store: CSRStore) -> Payload:
    """Return the columns of a store as those of records."""
    kinds = {name: None if kind == "string" else np.dtype(kind) for name, kind in store.attributes.columns.items()}
    weight = kinds.pop(WEIGHT, None)
    duplicates: Duplicates = store.attributes.duplicates
    return Payload(kinds, None if weight is None else (WEIGHT, weight), duplicates)


def _row_arrays(store: CSRStore) -> list[str]:
    return [f"{group}/{name}" for group in store.attributes.stored_groups for name in ("indices", *store.attributes.columns)]


def _charges(stores: list[CSRStore], num_workers: int, longest: int) -> dict[str, int]:
    """Return what a merge holds beside what the build's sizes are made of; the longest rows have so many entries."""
    first = stores[0]
    rows, ids = [one.num_rows for one in stores] + [0], sum(one.num_vertices for one in stores)
    texts = [name for name, kind in first.attributes.columns.items() if kind == "string"]
    return {
        "vertices": vertex_bytes(rows[0], rows[1], ids, directed=first.attributes.directed),
        "distinct strings": CATEGORY_COPIES * sum(column_bytes(one, texts) for one in stores),
        "longest row": _entry_bytes(stores) * max(0, longest - MIN_BLOCK_ROWS),
        "reading rows": sum(rows_bytes(one, _row_arrays(one), num_workers + 1) for one in stores),
    }


def _entry_bytes(stores: list[CSRStore]) -> int:
    """Return what each entry of a row that is merged alone takes."""
    payload = _payload(stores[0])
    if payload.stored and any(one.attributes.parallel_edges is not False for one in stores):
        return TIED_BYTES + TIED_COPIES * payload.binned_bytes
    return RECORD_BYTES + PAYLOAD_COPIES * payload.binned_bytes


def _longest(*stores: CSRStore) -> int:
    return sum(max(longest_row(one, group)[1] for group in one.attributes.stored_groups) for one in stores)


def _least(store: CSRStore, threads: int) -> int:
    payload_bytes = _payload(store).binned_bytes
    return least_build_bytes(threads, payload_bytes, compressed=store.attributes.codec != "none")


def check_room(store: CSRStore, options: BuildOptions, limit: int) -> None:
    """Refuse a budget that has no room for what a merge holds of a store, before edges are read for it.

    Raises
    ------
    BudgetError
        It has not.
    """
    threads = min(LEAST_THREADS, options.threads or settings().threads)
    left = {"blocks of edges": _least(store, threads), "what the build of new edges leaves": LEFT_BYTES + arrow_bytes()}
    Budget(limit).reserve_all({**_charges([store], threads, _longest(store)), **left})


def implied_ids(first: CSRStore, second: CSRStore, num_vertices: int | None) -> tuple[int, int] | None:
    """Return the range of ids that the vertices of both are, where one is declared.

    Raises
    ------
    InputError
        An id is outside, or ids are strings.
    """
    declared = [one.attributes.implied_ids for one in (first, second) if one.attributes.implied_ids is not None]
    if num_vertices is None and not declared:
        return None
    if num_vertices is not None and id_kind_of(first, second) != "int64":
        raise InputError(f"num_vertices = {num_vertices} needs integer ids, those of {first.url} are strings; leave it out")
    stop = max(one[1] for one in declared) if num_vertices is None else num_vertices
    for store in (first, second):
        for found in _ends(store):
            if not 0 <= found < stop:
                raise InputError(
                    f"{store.attributes.source or store.url}: the vertex {found} is outside the ids 0 to {stop - 1} that were declared; "
                    f"give num_vertices={max(found + 1, stop)}, or correct the edge"
                )
    return 0, stop


def _ends(store: CSRStore) -> list[int]:
    """Return the smallest and the largest id of each list that a graph has."""
    if store.attributes.implied_ids is not None:
        start, stop = store.attributes.implied_ids
        return [start, stop - 1] if stop > start else []
    columns = [id_column(store, name) for name in (SORTED_ID, ISOLATED_ID) if store.has_array(name)]
    return [int(column.read(at, at + 1)[0]) for column in columns if column.length for at in (0, column.length - 1)]


def merge_and_publish(
    first: CSRStore,
    second: CSRStore,
    writer: StoreWriter,
    options: BuildOptions,
    limit: int,
    progress: Progress,
    check: Callable[[], None] | None = None,
) -> MergeMetrics:
    """Merge two stores into a third; `check` is as of `oocgraph.store.publish.put`."""
    implied = implied_ids(first, second, options.num_vertices)
    payload, compressed, before, longest = _payload(first), options.codec != "none", bytes_before(limit), _longest(first, second)

    def planned(threads: int) -> tuple[int, Budget, Sizes]:
        budget = Budget(limit, before)
        num_workers = workers_for(threads, budget.available_bytes - sum(_charges([first, second], threads, longest).values()))
        charges = _charges([first, second], num_workers, longest)
        budget.following_bytes = sum(charges.values()) + _least(first, num_workers)
        budget.reserve_all(charges)
        payload_bytes = payload.binned_bytes
        return threads, budget, plan_sizes(budget, num_workers, payload_bytes, compressed=compressed)

    threads, budget, sizes = with_threads_that_fit(planned, options.threads or settings().threads, LEAST_THREADS)
    with Folder(writer.scratch / "merge") as temporary, Workers(sizes.threads) as workers, ExitStack() as opened:
        job = Job(
            options=options, directed=first.attributes.directed, payload=payload, writer=writer, temporary=temporary, workers=workers,
            budget=budget, sizes=sizes, progress=progress, threads=threads,
        )  # fmt: skip
        rows = [StoredRows(one, _row_arrays(one), threads=sizes.threads + 1) for one in (first, second)]
        for reader in rows:
            opened.callback(reader.close)
        source = " + ".join(dict.fromkeys(one.attributes.source for one in (first, second)))
        attributes = merge_steps((first, second), (rows[0], rows[1]), job, implied=implied, source=source)
        job.progress(SYNC, 0, 1)
        with job.phase(SYNC):
            writer.publish(attributes, check)
        job.progress(SYNC, 1, 1)
    return MergeMetrics(budget.reservations["vertices"], job.phases)
