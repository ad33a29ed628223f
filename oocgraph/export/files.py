"""A stored graph under its input ids, for other programs: one file, which appears when it is whole.

In: a store. Out: an edge list (Parquet, CSV, TSV), a matrix (SciPy's ``.npz``, Matrix Market), or GAPBS's ``.sg`` and ``.wsg``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.arrow import load_tables
from oocgraph.compiled.load import load_kernels
from oocgraph.config import num_cores
from oocgraph.errors import OutputError
from oocgraph.export.csr_files import GAPBS, check_gapbs, write_npz, write_sg
from oocgraph.export.edge_tables import charge_tables
from oocgraph.export.job import Job, Order
from oocgraph.export.ordered_rows import charge_input_order, charge_store_order, input_order_calls
from oocgraph.export.parquet import write_parquet
from oocgraph.export.text import charge_matrix, write_matrix, write_table_text
from oocgraph.external_sort.workers import Workers
from oocgraph.listing import Listed
from oocgraph.memory import SLACK_BYTES, Budget, limit_bytes_of, with_threads_that_fit
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.outputs import local_path, output_place
from oocgraph.store.scipy import weight_column
from oocgraph.types import ProgressOption

DEFAULT_WORKING_BYTES = 1 << 30
"""What an export takes beside the interpreter when no budget is given (and the machine has it)."""

TEXT_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
EDGE_LISTS = (".parquet", *TEXT_TABLES)
"""Files of edges under their ids: vertices that have none are not among them."""

MATRIX_MARKET = (".mtx", ".mtx.gz")

WRITERS: dict[str, Callable[[Job, Path, str | None], None]] = {
    ".parquet": write_parquet,
    **dict.fromkeys(TEXT_TABLES, write_table_text),
    ".npz": write_npz,
    **dict.fromkeys(MATRIX_MARKET, write_matrix),
    **dict.fromkeys(GAPBS, write_sg),
}
"""Forms by extension: each writes a job's graph to a file, with the values of a column where it has room for one."""


@dataclass(frozen=True, slots=True)
class ExportReport(Listed):
    """What was written.

    Attributes
    ----------
    path
        Where.
    num_vertices
        Vertices of the file: every input id, or those with an edge (store order; and edge lists).
    num_edges
        Edges as the user counts them.
    file_bytes
        Size of the file.
    seconds
        Wall time.
    sync_seconds
        The part of it that it took to force the file to disk.
    """

    path: str
    num_vertices: int
    num_edges: int
    file_bytes: int
    seconds: float
    sync_seconds: float


@known_keywords
def export_graph(
    graph: CSRStore | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    order: Order = "input",
    weight: str | None = None,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> ExportReport:
    """Write a graph to a file that other programs read.

    Parameters
    ----------
    graph
        A graph store or its path.
    path
        ``.parquet``: an edge list with the columns source, target and every edge column, under the user's ids, each undirected edge once.
        ``.csv``, ``.tsv``, and these with ``.gz``: the same as text, with a header; strings are in double quotes.
        Types of text are guessed when it is read: ids such as "01" come back as numbers where all look like some. Parquet keeps them, and
        empty ids, strings with line breaks and integers from 2**63 on, which text is refused for.
        ``.npz``: a CSR for `scipy.sparse.load_npz`, entry (i, j) between the i-th and the j-th input id ascending, isolated included.
        ``.mtx``, ``.mtx.gz``: Matrix Market, numbered likewise from 1, undirected graphs as symmetric.
        ``.sg``: GAPBS, numbered likewise, without weights; ``.wsg``: with integer ones of up to 32 bits.
    order
        ``input``: vertices numbered by their ids as above. ``store``: by degree, isolated vertices left out; refused for edge lists, which
        have ids.
    weight
        Numeric edge column of the values in ``.npz``, ``.mtx`` and ``.wsg``; the graph's weight when not given; without one, ones in
        ``.npz``, none in ``.mtx``.
    overwrite
        Replace a file at `path`.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold, the same as in `resources`; by default 1 GiB beside the interpreter, or less where the machine has
        less.
    progress
        Called with ("export", entries done, entries); True draws a bar.

    Returns
    -------
    ExportReport

    Raises
    ------
    OutputError
        The extension is another, `path` exists or cannot be written, or the form cannot hold the graph; nothing is left behind.
    BudgetError
        The budget is too small.

    Notes
    -----
    Beside blocks, ``.npz`` and ``.sg`` in input order hold 8 bytes per vertex and write 8 bytes per stored entry to temporary files
    beside `path`; Matrix Market holds 5 bytes per vertex; edge lists hold the ids of all vertices.

    A build from the file, of a directed graph with ``directed=True``, gives the same graph: from ``.parquet`` but for isolated vertices
    that no ``num_vertices=`` declared; from ``.csv`` without isolated vertices (give ``num_vertices=``) and with columns of 64 bits, as
    text has no types (floats that are all whole numbers come back as integers); from ``.mtx`` with vertices
    ``0 .. n - 1`` and the one column.
    """
    asked = resources_of("export_graph", resources, memory_budget=memory_budget, graph=graph)
    begin, out, path, store = time.perf_counter(), path, local_path(path), open_graph(graph)
    form = max((one for one in WRITERS if path.name.endswith(one)), key=len, default=None)
    if form is None:
        raise OutputError(f"{path}: unknown extension {path.suffix!r} for an export; choose one of {', '.join(WRITERS)}")
    if order not in ("input", "store"):
        raise OutputError(f"order is {order!r}; it must be 'input' or 'store'")
    if order == "store" and form in EDGE_LISTS:
        raise OutputError(
            f"{path}: order is 'store', a numbering of vertices, but an edge list has their ids; leave it out, or use .npz, .mtx or .sg"
        )
    output_place(out, kind="file", overwrite=overwrite)
    column = weight_column(store, weight) if form in (".npz", ".wsg", *MATRIX_MARKET) else None
    if form in GAPBS:
        check_gapbs(store, path, form, column)

    def charged(num_threads: int) -> tuple[Budget, int]:
        return _charged(store, form, order, column, asked.memory_budget, num_threads), num_threads

    budget, num_threads = with_threads_that_fit(charged, asked.threads or num_cores())
    with (
        AtomicOutput(path, overwrite=overwrite) as staged, Workers(num_threads) as workers, watched(progress) as shown, returned_memory(),
    ):  # fmt: skip
        job = Job(store, form, order, budget, workers, staged.folder / "scratch", shown)
        WRITERS[form](job, staged.path, column)
        staged.publish()
        sync_seconds = staged.sync_seconds
    isolated = form not in EDGE_LISTS and order == "input"
    return ExportReport(
        path=str(path),
        num_vertices=store.attributes.num_input_vertices if isolated else store.num_rows,
        num_edges=store.num_edges,
        file_bytes=path.stat().st_size,
        seconds=time.perf_counter() - begin,
        sync_seconds=sync_seconds,
    )


def _charged(store: CSRStore, form: str, order: Order, column: str | None, memory_budget: str | int | None, num_threads: int) -> Budget:
    """Return the budget of an export, charged with what it takes at the least.

    Raises
    ------
    BudgetError
        That does not fit.
    """
    load_libraries(store)
    groups = ("out", "in") if form in GAPBS and store.attributes.directed else ("out",)
    sorts = order == "input" and form not in (*EDGE_LISTS, *MATRIX_MARKET)
    if form in (*EDGE_LISTS, *MATRIX_MARKET):
        load_tables()
    elif sorts:
        load_kernels(input_order_calls(store, column))
    budget = Budget(limit_bytes_of(memory_budget))
    with budget.all_or_none():
        budget.reserve("threads and compiled code", SLACK_BYTES)
        if form in EDGE_LISTS:
            charge_tables(store, budget=budget, num_threads=num_threads, text=form in TEXT_TABLES)
        elif form in MATRIX_MARKET:
            charge_matrix(store, column, order=order, budget=budget, num_threads=num_threads)
        elif sorts:
            charge_input_order(store, groups, column, budget=budget, num_threads=num_threads)
        else:
            charge_store_order(store, column, budget=budget)
    if memory_budget is None:
        most = budget.promised_bytes + DEFAULT_WORKING_BYTES
        budget.limit_bytes = min(budget.limit_bytes, most)
    return budget
