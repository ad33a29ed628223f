"""What a worker does in a sweep: it gives a range of rows to a kernel, which it is named, with vectors that it is sent.

In: a `SweepSpec`, the range, vectors of all vertices and those of the range's own. Out: what the kernel's calls have returned, and the
range's vectors. Edges stay on the worker from one sweep to the next, under the lease of the session or of the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from oocgraph.cluster.specs import StateLostError, WorkSpec
from oocgraph.compiled.load import load_kernels
from oocgraph.engine.sweeps import Lists, StreamedEdges, Way, as_numbers
from oocgraph.memory import SLACK_BYTES, page_cache_bytes
from oocgraph.sparse.edge_stream import pieces_bytes
from oocgraph.store.graph import open_graph
from oocgraph.types import Array

COPIES = 2
"""Of vectors on a worker: as they were sent, and those that kernels may write."""


class Range(NamedTuple):
    """Rows of one worker.

    Attributes
    ----------
    number
        Of the range.
    lists
        Which.
    entries, rows
        Range of the entries, and of the rows.
    """

    number: int
    lists: Lists
    entries: tuple[int, int]
    rows: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec(WorkSpec):
    """What the sweeps of one run have in common.

    Attributes
    ----------
    url
        Of the graph.
    column
        Edge column of the weights; None: all are one.
    lists
        All that are swept.
    vector_bytes
        Of all vectors of the run.
    kept_for
        Lease under which edges are kept.
    """

    url: str
    column: str | None
    lists: tuple[Lists, ...]
    vector_bytes: int
    kept_for: str


class Swept(NamedTuple):
    """What a worker returns.

    Attributes
    ----------
    results
        Of the kernel's calls.
    mine
        The range's own vectors.
    bytes_requested, bytes_read
        As of `oocgraph.engine.sweeps.Edges`.
    """

    results: list[Any]
    mine: tuple[Array, ...]
    bytes_requested: int
    bytes_read: int


def prepare(plugin: Any, spec: SweepSpec, ranges: Sequence[Range]) -> None:
    """Reserve in trial all that a worker is going to hold.

    Raises
    ------
    BudgetError
        It does not fit; the message names the worker.
    """
    store = open_graph(spec.url, check_pages=spec.check_pages)
    with plugin.ledger.naming(), plugin.ledger.opening(spec.requested_memory) as budget, budget.all_or_none():
        budget.reserve("threads and compiled code", SLACK_BYTES)
        budget.reserve("vectors", COPIES * spec.vector_bytes)
        budget.reserve("pieces of edges", sum(pieces_bytes(store, **_options(plugin, spec, one)) for one in ranges))
    plugin.ledger.close(budget)


def sweep(
    plugin: Any, spec: SweepSpec, mine_range: Range, number: int, kernel: tuple[str, str], whole: Sequence[Array], mine: Sequence[Array],
    scalars: Sequence[Any],
) -> Swept:  # fmt: skip
    """Give the rows of a range to a kernel.

    Parameters
    ----------
    number
        Of the sweep.
    kernel
        Its module and name.
    whole, mine
        See `oocgraph.engine.sweeps`; they are not changed.
    """
    plugin.at("compute", number, mine_range.number)
    store = open_graph(spec.url, check_pages=spec.check_pages)
    with plugin.ledger.naming(), plugin.ledger.opening(spec.requested_memory) as budget:
        plugin.check_lease(spec.kept_for)
        budget.reserve("threads and compiled code", SLACK_BYTES)
        budget.reserve("vectors", COPIES * spec.vector_bytes)
        stream = plugin.streams.take(spec.kept_for, store, budget, keep_edges=True, **_options(plugin, spec, mine_range))
    try:
        stream.read_directly(page_cache_bytes(budget.limit_bytes))
        edges = StreamedEdges({mine_range.lists: (stream, stream.bytes_requested)})
        written, read = tuple(np.array(one) for one in mine), tuple(one if one.flags.writeable else np.array(one) for one in whole)
        compiled = getattr(import_module(kernel[0]), kernel[1])
        scalars = [np.array(one) if isinstance(one, np.ndarray) else one for one in scalars]
        part = stream.part
        indices, pointers = (np.empty(0, getattr(part, name).dtype) for name in ("indices", "pointers"))
        values = None if part.values is None else as_numbers(np.empty(0, part.values.dtype))
        load_kernels([(compiled, (0, pointers, 0, indices, values, *read, *written, *scalars))])
        if any(one.shape[0] != store.num_rows for one in read) or any(one.shape[0] != part.num_lines for one in written):
            raise StateLostError(f"worker {plugin.worker.address} was sent vectors of another graph")
        results = edges.pull(compiled, read, written, scalars, Way(mine_range.lists))
        plugin.at("transfer", number, mine_range.number)
        return Swept(results, written, edges.bytes_requested, edges.bytes_read)
    finally:
        plugin.ledger.close(budget)
        plugin.streams.put_back(stream)


def _options(plugin: Any, spec: SweepSpec, mine_range: Range) -> dict[str, Any]:
    """Return arguments of the `EdgeStream` of a range."""
    return {
        "transpose": mine_range.lists == "in", "column": spec.column, "threads": spec.threads_on(plugin.worker),
        "entries": mine_range.entries, "whole_rows": True,
    }  # fmt: skip
