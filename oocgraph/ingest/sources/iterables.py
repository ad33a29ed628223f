"""Iterables: generators, cursors of databases, ``zip``, ``pandas.read_csv(chunksize=...)``, sets of tuples.

What they give is either edges, one by one, as tuples or other sequences, of a source, a target and perhaps a weight, or
tables of edges, each of whatever a source may be: a DataFrame, an array, a pair of arrays, an Arrow batch. Each is a part of a source that
is read once, and all are as the first: of its kind of ids, with its columns and their dtypes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from oocgraph.errors import InputError, OocGraphError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.arrays import open_list
from oocgraph.ingest.sources.columns import Columns, Layout
from oocgraph.ingest.sources.source import Request, Source, reason
from oocgraph.ingest.sources.streamed import Part, StreamedSource, bytes_of
from oocgraph.memory import host_bytes

PIECE_EDGES = 1 << 10
"""Tuples that are taken at once."""

BATCH_BYTES = 4 << 20
"""Bytes of tuples, and of what is made of them, that are read together: about 15,000 of two integers, which take 10 ms."""

OBJECT_COPIES = 3
"""Times that what tuples hold is in memory while they become arrays."""

Opened = Callable[[Any, Request], Source]
"""Opens an object that is edges."""


class Element(NamedTuple):
    """Edges that are read together: what messages call them, the bytes that they add to what the process holds, and the edges."""

    name: str
    num_bytes: int
    edges: Any


_begun: list[tuple[Iterable[Any], Iterator[Element] | None, Opened]] = []
"""The iterator that was opened last. As long as nothing was read it has its elements, those that were taken too, so that a build that was
refused may be repeated; None once they are read, until it ends: a build that is broken off has read some of them."""


def open_iterable(iterable: Iterable[Any], request: Request, open_table: Opened) -> Source:
    """Open an iterable of edges, of tables of edges, or of paths; its first elements are taken from it.

    Parameters
    ----------
    open_table
        Opens each table, and a list of paths.

    Raises
    ------
    InputError
        It is empty, breaks off, gives something else, or was read from by a build that was broken off.
    """
    description = type(iterable).__name__
    if _begun and _begun[0][0] is iterable:
        _, elements, open_edges = _begun[0]
        if elements is None:
            raise InputError(f"{description}: a build that was broken off has read from it; make it again")
        return _opened(description, iterable, elements, request, open_edges)
    if type(iterable).__module__.startswith("networkx.") and "Multi" in description:
        raise InputError(f"{description}: it gives the keys of edges as well, which are no weights; give the graph itself")
    items = _guarded(iterable, description)
    some = list(islice(items, 1))
    if not some:
        raise _nothing(description)
    is_edges = _is_edge(some[0])
    if is_edges and getattr(some[0], "_fields", ("",))[0] == "Index":
        raise InputError(f"{description}: its elements begin with the index of a DataFrame; give the DataFrame, or itertuples(index=False)")
    items = _joined(some, items)
    if isinstance(some[0], os.PathLike):
        return open_table(list(items), request)
    if some[0] is None or isinstance(some[0], str | bytes | bool | int | float | np.generic):
        raise InputError(
            f"{description}: its first element is {some[0]!r:.60}; it must give edges, as tuples (source, target) or (source, target, "
            "weight), or tables or arrays of edges; give lines of text as the path of their file, and names of files as a list"
        )
    if is_edges:
        return _opened(description, iterable, _batches(description, items), request, open_list)
    return _opened(description, iterable, _tables(description, items), request, open_table)


def _nothing(description: str) -> InputError:
    return InputError(f"{description}: it gives nothing; for a graph without edges give ([], []), and num_vertices")


def _is_edge(item: Any) -> bool:
    """Whether an element is one edge, rather than a table: a sequence whose ends are neither arrays nor lists."""
    if isinstance(item, str | bytes | dict) or any(hasattr(item, name) for name in ("shape", "columns", "__arrow_c_stream__")):
        return False
    try:
        ends = item[0], item[1]
    except (IndexError, KeyError, TypeError):
        return False
    return all(isinstance(end, str | bytes | bytearray | memoryview | tuple) or not hasattr(end, "__len__") for end in ends)


def _joined(first: list[Any], items: Iterator[Any]) -> Iterator[Any]:
    """Iterate over an element, which is dropped when it is given, and the others."""
    yield first.pop()
    yield from items


def _guarded(iterable: Iterable[Any], description: str) -> Iterator[Any]:
    number = 0
    try:
        for item in iterable:
            yield item
            del item
            number += 1
    except OocGraphError:
        raise
    except Exception as error:  # whatever its producer raises
        why = f"{type(error).__name__}: {reason(error)}"
        raise InputError(f"{description}: it broke off after {number:,} elements ({why}); mend that and start again") from error


def _batches(description: str, items: Iterator[Any]) -> Iterator[Element]:
    """Collect edges, as many as are read together; elements of other kinds are refused where the list is opened."""
    start, num_bytes, batch = 0, 0, []
    while more := list(islice(items, PIECE_EDGES)):
        if not all(issubclass(kind, tuple) for kind in set(map(type, more))):
            more = [tuple(one) if _is_edge(one) else one for one in more]
        batch += more
        are_edges = all(issubclass(kind, tuple) for kind in set(map(type, more)))
        if are_edges:
            num_bytes += OBJECT_COPIES * (sum(map(sys.getsizeof, more)) + sum(map(sys.getsizeof, chain.from_iterable(more))))
        if num_bytes >= BATCH_BYTES or not are_edges:
            yield Element(f"{description}, from element {start:,} on", num_bytes, batch)
            start, num_bytes, batch = start + len(batch), 0, []
    if batch:
        yield Element(f"{description}, from element {start:,} on", num_bytes, batch)


def _tables(description: str, items: Iterator[Any]) -> Iterator[Element]:
    number = 0
    for item in items:
        if isinstance(item, tuple | list) and not item:
            continue
        yield Element(f"element {number:,} of {description}", bytes_of(item), item)
        number += 1
        del item


def _opened(
    description: str, iterable: Iterable[Any], elements: Iterator[Element], request: Request, open_edges: Opened
) -> StreamedSource:  # fmt: skip
    began = host_bytes()
    if not (taken := list(islice(elements, 1))):
        raise _nothing(description)
    if isinstance(iterable, Iterator):
        _begun[:] = [(iterable, _joined(taken, elements), open_edges)]
    source = _open_part(taken[0], request, open_edges)
    while source.num_rows == 0 and (after := next(elements, None)) is not None:  # which says nothing of the kinds of the others
        taken[0] = after
        source = _open_part(after, request, open_edges)
        del after
    columns = Columns("source", "target", source.weight, tuple(source.columns), are_fixed=True)
    layout = Layout(description, columns, source.id_kind, source.columns, source.num_vertices)
    as_first = replace(request, dtypes=source.columns)
    if source.ends is not None:
        as_first = replace(as_first, source_column=source.ends[0], target_column=source.ends[1])
    held, grown = [source], host_bytes() - began
    del source

    def parts() -> Iterator[Part]:
        if _begun and _begun[0][0] is iterable:
            _begun[:] = [(iterable, None, open_edges)]
        one: Element | None = taken.pop()
        source, most = held.pop(), grown
        while one is not None:
            name = one.name
            num_bytes = one.num_bytes if open_edges is open_list else max(one.num_bytes, most)  # of a table columns may have been copied
            one = None  # it goes with its edges
            yield from _parts(layout, name, num_bytes, source)
            del source
            began, one = host_bytes(), next(elements, None)
            if one is not None:
                source = _open_part(one, as_first, open_edges)
                most = max(most, host_bytes() - began)
        if _begun and _begun[0][0] is iterable:
            _begun.clear()

    return StreamedSource(layout, parts)


def _open_part(element: Element, request: Request, open_edges: Opened) -> Source:
    try:
        source = open_edges(element.edges, request)
    except InputError as error:
        raise InputError(f"{element.name}: {error}") from error
    if source.directed is not None or source.extra_vertices is not None:
        raise InputError(f"{element.name} is a graph, which says more than its edges; build each graph, and merge them (merge_graphs)")
    return source


def _parts(layout: Layout, name: str, num_bytes: int, source: Source) -> Iterator[Part]:
    _check(layout, source, name)
    if isinstance(source, StreamedSource):
        yield from source.parts()
    else:
        yield Part(name, num_bytes, partial(_blocks, name, source))


def _check(layout: Layout, source: Source, name: str) -> None:
    """Refuse a part that is not as the first; one without edges is as any."""
    facts = (source.id_kind, source.columns, source.weight, source.num_vertices)
    expected = (layout.kind, layout.dtypes, layout.columns.weight, layout.num_vertices)
    if facts == expected or source.num_rows == 0:
        return
    has, should = (
        f"{kind} ids, {', '.join(f'{column}: {dtype}' for column, dtype in columns.items()) or 'no columns'}"
        + ("" if declared is None else f", {declared} vertices")
        for kind, columns, _, declared in (facts, expected)
    )
    raise InputError(f"{name} has {has}, but the first has {should}; make all parts alike")


def _blocks(name: str, source: Source, first_row: int, block_rows: int) -> Iterator[EdgeBlock]:
    try:
        for stream in source.streams(block_rows):
            for block in stream():
                yield replace(block, first_row=first_row + block.first_row)
                del block
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
