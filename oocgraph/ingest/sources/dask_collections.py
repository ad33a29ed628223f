"""Dask collections: a DataFrame, an array (num_edges, 2), or a pair of arrays or Series.

Partitions are computed where Dask computes: by the workers of a client, which keep them until they are asked for, else in this process, one
at a time. This process never holds more than one partition, and only the chosen columns of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.clients import ask, check_client, results_of, wait_for_tasks, wait_for_worker, workers_of
from oocgraph.config import settings
from oocgraph.errors import InputError, OocGraphError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.arrays import check_edge_shape
from oocgraph.ingest.sources.arrow_values import ArrowLayout, arrow_layout
from oocgraph.ingest.sources.columns import choose_columns
from oocgraph.ingest.sources.ids import row_place
from oocgraph.ingest.sources.source import Request, reason
from oocgraph.ingest.sources.streamed import Part, StreamedSource, bytes_of, slices
from oocgraph.resources import seceded

Vectors = dict[str, Any]
"""Values of each column of a partition: one-dimensional arrays or Series."""

Fetch = Callable[[], tuple[Any, ...]]
"""Returns the values of the tasks of one partition, once."""


@dataclass(frozen=True, slots=True)
class _Partitions:
    """Partitions to compute, and what each must be.

    Attributes
    ----------
    tasks
        Delayed objects of each partition.
    vectors
        Turns the values of a partition's tasks into columns; raises InputError, without the place, where it cannot.
    types
        Declared Arrow type of each column.
    layout
        How columns become edges.
    """

    tasks: Sequence[tuple[Any, ...]]
    vectors: Callable[[tuple[Any, ...]], Vectors]
    types: dict[str, Any]
    layout: ArrowLayout

    @property
    def description(self) -> str:
        """What messages call the collection."""
        return self.layout.description

    def name(self, index: int) -> str:
        """Return what messages call a partition."""
        return f"partition {index} of the {len(self.tasks)} of the {self.description}"


def open_collection(collection: Any, request: Request) -> StreamedSource:
    """Open a Dask DataFrame, or an array (num_edges, 2)."""
    kind = type(collection)  # a Delayed has any attribute, its type has not
    if hasattr(kind, "chunks"):
        return _open_array(collection, request)
    if hasattr(kind, "columns") and hasattr(kind, "npartitions"):
        return _open_frame(collection, request)
    raise InputError(
        f"cannot read edges from a Dask {type(collection).__name__}; give a Dask DataFrame (dask.dataframe.from_delayed), an array "
        "(num_edges, 2), a pair of arrays or Series, or what compute() returns"
    )


def _open_frame(frame: Any, request: Request) -> StreamedSource:
    description = "Dask DataFrame"
    labels = {str(label): label for label in frame.columns}
    columns = choose_columns(description, [str(label) for label in frame.columns], request)
    chosen = frame[[labels[name] for name in columns.read]]
    types = {name: _declared(chosen._meta[labels[name]]) for name in columns.read}

    def vectors(values: tuple[Any, ...]) -> Vectors:
        (part,) = values
        if not hasattr(part, "iloc") or list(part.columns) != list(chosen.columns):
            found = ", ".join(map(repr, getattr(part, "columns", ()))) or f"a {type(part).__name__}"
            raise InputError(f"has {found} in place of the columns {', '.join(map(repr, columns.read))}")
        return {name: part.iloc[:, i] for i, name in enumerate(columns.read)}

    return _opened(description, [(task,) for task in chosen.to_delayed()], vectors, types, request)


def _open_array(array: Any, request: Request) -> StreamedSource:
    description = "Dask array"
    check_edge_shape(description, array.shape)
    blocks = array.rechunk({1: 2}).to_delayed()[:, 0]

    def vectors(values: tuple[Any, ...]) -> Vectors:
        (block,) = values
        if getattr(block, "ndim", 0) != 2 or block.shape[1] != 2:
            raise InputError(f"has the shape {np.shape(block)}, not (num_edges, 2)")
        return {"source": block[:, 0], "target": block[:, 1]}

    return _opened(description, [(task,) for task in blocks], vectors, _types_of_ends(array, array), request)


def open_pair(source: Any, target: Any, request: Request) -> StreamedSource:
    """Open two Dask arrays or Series, whose partitions hold the same edges."""
    description = "pair of Dask collections"
    for name, end in (("source", source), ("target", target)):
        if not (hasattr(type(end), "to_delayed") and hasattr(type(end), "npartitions") and end.ndim == 1):
            raise InputError(f"{description}: the {name} is a {type(end).__name__}; give two Dask arrays or Series, in one dimension")
    if hasattr(source, "chunks") and hasattr(target, "chunks") and source.shape == target.shape:
        target = target.rechunk(source.chunks)
    if source.npartitions != target.npartitions:
        raise InputError(
            f"{description}: the sources have {source.npartitions} partitions and the targets {target.npartitions}; an edge needs both: "
            "divide them alike (rechunk, repartition)"
        )
    tasks = list(zip(*(np.ravel(end.to_delayed()).tolist() for end in (source, target)), strict=True))

    def vectors(values: tuple[Any, ...]) -> Vectors:
        sizes = [len(one) for one in values]
        if sizes[0] != sizes[1]:
            raise InputError(f"has {sizes[0]} sources but {sizes[1]} targets")
        return dict(zip(("source", "target"), values, strict=True))

    return _opened(description, tasks, vectors, _types_of_ends(source, target), request)


def _types_of_ends(*ends: Any) -> dict[str, Any]:
    samples = (np.empty(0, end.dtype) if hasattr(end, "chunks") else end._meta for end in ends)
    return dict(zip(("source", "target"), map(_declared, samples), strict=True))


def _declared(empty: Any) -> Any:
    """Return the Arrow type of a column by its metadata; Python objects are taken for strings, as Dask takes them."""
    kind = _arrow(empty).type
    return pa.large_string() if pa.types.is_null(kind) else kind


def _arrow(vector: Any) -> Any:
    if isinstance(vector.dtype, np.dtype) and not vector.dtype.isnative:  # Arrow takes numbers in the byte order of this processor only
        vector = vector.astype(vector.dtype.newbyteorder("="))
    array = pa.array(vector, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _opened(
    description: str, tasks: Sequence[tuple[Any, ...]], vectors: Callable[[tuple[Any, ...]], Vectors], types: Vectors, request: Request
) -> StreamedSource:
    columns = choose_columns(description, list(types), request)
    partitions = _Partitions(tasks, vectors, types, arrow_layout(description, columns, types.__getitem__, request))
    return StreamedSource(partitions.layout, lambda: _parts(partitions, request.client))


def _parts(partitions: _Partitions, client: Any) -> Iterator[Part]:
    for index, (num_bytes, values) in enumerate(_here(partitions) if client is None else _on_workers(partitions, client)):
        yield Part(partitions.name(index), num_bytes, partial(_blocks, partitions, index, values))
        del values


def _here(partitions: _Partitions) -> Iterator[tuple[int, Fetch]]:
    """Compute the partitions in this process; iterate over their bytes and what returns their values."""
    import dask

    chosen = dask.config.get("scheduler", None)
    scheduler = "threads" if chosen is None or "distributed" in str(chosen) else chosen  # a client sets it, one that is not to be used too
    for index, tasks in enumerate(partitions.tasks):
        with _computing(partitions, index):
            values = [tuple(task.compute(scheduler=scheduler) for task in tasks)]
        yield bytes_of(values[0]), values.pop


def _on_workers(partitions: _Partitions, client: Any) -> Iterator[tuple[int, Fetch]]:
    """Compute the partitions on the workers of a client, as many at once as they have threads.

    One more waits, so that an adaptive cluster has a reason to grow.
    """
    check_client(client)
    with seceded():
        seconds = settings().worker_timeout
        wait_for_worker(client, seconds)
        waiting, ahead = iter(partitions.tasks), deque[Any]()
        for index in range(len(partitions.tasks)):
            num_threads = sum(one["nthreads"] for one in workers_of(client).values())
            ahead.extend(client.compute(list(tasks)) for tasks in islice(waiting, max(0, num_threads + 1 - len(ahead))))
            futures = ahead.popleft()
            wait_for_tasks(client, futures, seconds)
            sizes = ask(client, client.nbytes, keys=[future.key for future in futures], summary=False)
            yield sum(sizes.values()), partial(_fetched, partitions, index, client, futures, seconds)
            del futures


def _fetched(partitions: _Partitions, index: int, client: Any, futures: Sequence[Any], seconds: float) -> tuple[Any, ...]:
    with _computing(partitions, index):
        return tuple(results_of(client, futures, seconds))


@contextmanager
def _computing(partitions: _Partitions, index: int) -> Iterator[None]:
    try:
        yield
    except OocGraphError:
        raise
    except Exception as error:  # whatever the tasks raise
        columns = ", ".join(map(repr, partitions.layout.columns.read))
        remedy = f"every partition must have the columns {columns}" if isinstance(error, LookupError) else "compute it alone to see why"
        raise InputError(f"{partitions.name(index)} cannot be computed ({type(error).__name__}: {reason(error)}); {remedy}") from error


def _blocks(partitions: _Partitions, index: int, fetch: Fetch, first_row: int, block_rows: int) -> Iterator[EdgeBlock]:
    """Iterate over the edges of a partition, which is fetched first."""
    name = partitions.name(index)
    try:
        vectors = partitions.vectors(fetch())
    except InputError as error:
        raise error if str(error).startswith(name) else InputError(f"{name} {error}; make all partitions alike") from error

    def read(low: int, high: int) -> Callable[[str], Any]:
        arrays = {}
        for column, values in vectors.items():
            part = values.iloc[low:high] if hasattr(values, "iloc") else values[low:high]
            try:
                arrays[column] = _arrow(part)
            except (pa.ArrowException, OverflowError, TypeError) as error:
                raise InputError(f"{name}, column {column!r}: neither all numbers nor all strings ({reason(error)}); convert it") from error
        _check_types(partitions, name, {column: values.type for column, values in arrays.items()})
        return arrays.__getitem__

    num_rows = len(next(iter(vectors.values())))
    yield from slices(partitions.layout, num_rows, read, partial(row_place, name), first_row, block_rows)


def _check_types(partitions: _Partitions, name: str, types: dict[str, Any]) -> None:
    """Refuse a partition whose ids or columns are of other kinds than declared; where all values are missing, that is said later."""
    declared, layout = partitions.types, partitions.layout
    kinds = {column: declared[column] if pa.types.is_null(kind) else kind for column, kind in types.items()}
    try:
        found, expected = (arrow_layout(name, layout.columns, each.__getitem__, Request()) for each in (kinds, declared))
        agrees = found.kind == expected.kind and found.dtypes == expected.dtypes
    except InputError:
        agrees = False
    if not agrees:
        has, should = (", ".join(f"{column}: {kind}" for column, kind in one.items()) for one in (types, declared))
        raise InputError(f"{name} has the columns {has}, but its metadata say {should}; convert them (astype), or correct meta=")
