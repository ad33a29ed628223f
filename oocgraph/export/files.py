"""A stored graph under its input ids, for other programs: Parquet, SciPy .npz, GAPBS .sg and .wsg.

In: a store. Out: one file, which appears when it is whole. ``.npz`` and ``.sg`` are CSR arrays and come from
`ordered_rows`; Parquet is an edge list and comes from `parquet`.

GAPBS ``.sg`` (its ``writer.h``): bool directed; int64 number of stored entries; int64 number of vertices; int64 offsets; int32
neighbours; then offsets and neighbours of the in-lists when directed. In ``.wsg`` an int32 weight follows each neighbour.
"""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.arrow import load_tables
from oocgraph.config import num_cores, settings
from oocgraph.errors import OutputError
from oocgraph.export.ordered_rows import InputRows, StoreRows, charge_input_order, charge_store_order, row_keys_call
from oocgraph.export.parquet import charge_parquet, write_parquet
from oocgraph.external_sort.workers import Workers
from oocgraph.kernels.load import load_kernels
from oocgraph.listing import Listed
from oocgraph.memory import SLACK_BYTES, Budget, effective_budget_bytes
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.outputs import local_path, output_place
from oocgraph.store.scipy import weight_column
from oocgraph.types import Array, Progress, ProgressOption

Order = Literal["input", "store"]

DEFAULT_WORKING_BYTES = 1 << 30
"""What an export takes beside the interpreter when no budget is given (and the machine has it)."""

MAX_SG_VERTICES = 2**31 - 1
"""A ``.sg`` file has 32-bit signed neighbours."""

GAPBS = (".sg", ".wsg")
"""Its files without and with weights."""


@dataclass(frozen=True, slots=True)
class ExportReport(Listed):
    """What was written.

    Attributes
    ----------
    path
        Where.
    num_vertices
        Vertices of the file: every input id, or those with an edge (store order; and Parquet, an edge list).
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


@dataclass(frozen=True, slots=True)
class Job:
    """One export: where from, how, and with what."""

    store: CSRStore
    order: Order
    budget: Budget
    workers: Workers
    scratch: Path
    progress: Progress

    def rows(self, group: str, column: str | None = None) -> StoreRows | InputRows:
        """Rows of a group in the chosen order."""
        if self.order == "store":
            return StoreRows(self.store, group, column)
        return InputRows(self.store, group, column, budget=self.budget, workers=self.workers, scratch=self.scratch)

    def counter(self, total: int) -> Callable[[int], None]:
        """Return a function that adds up entries and reports them."""
        seen = 0

        def done(num_entries: int) -> None:
            nonlocal seen
            seen += num_entries
            self.progress("export", seen, total)

        return done


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
        ``.npz``: a CSR for `scipy.sparse.load_npz`, entry (i, j) between the i-th and the j-th input id ascending, isolated included.
        ``.sg``: GAPBS, numbered likewise, without weights; ``.wsg``: with integer ones of up to 32 bits.
    order
        ``input``: vertices numbered by their ids as above. ``store``: by degree, isolated vertices left out; Parquet has ids anyway.
    weight
        Numeric edge column of the values in ``.npz`` and ``.wsg``; the graph's weight when not given; without one, ones in ``.npz``.
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
    beside `path`; Parquet holds the ids of all vertices.
    """
    asked = resources_of("export_graph", resources, memory_budget=memory_budget)
    begin, out, path, store = time.perf_counter(), path, local_path(path), open_graph(graph)
    writers: dict[str, Callable[[Job, Path, str | None], None]] = {".parquet": _parquet, ".npz": _npz, ".sg": _sg, ".wsg": _sg}
    if path.suffix not in writers:
        raise OutputError(f"{path}: unknown extension {path.suffix!r} for an export; choose one of {', '.join(writers)}")
    if order not in ("input", "store"):
        raise OutputError(f"order is {order!r}; it must be 'input' or 'store'")
    if path.suffix in GAPBS and store.attributes.num_input_vertices > MAX_SG_VERTICES:
        raise OutputError(
            f"{path}: {path.suffix} holds at most {MAX_SG_VERTICES} vertices, not {store.attributes.num_input_vertices}; "
            "use .npz or .parquet"
        )
    output_place(out, kind="file", overwrite=overwrite)
    column = weight_column(store, weight) if path.suffix in (".npz", ".wsg") else None
    if path.suffix == ".wsg":
        _check_weights(store, path, column)
    num_threads = asked.threads or num_cores()
    budget = _charged(store, path.suffix, order, column, asked.memory_budget, num_threads)
    with (
        AtomicOutput(path, overwrite=overwrite) as staged, Workers(num_threads) as workers, watched(progress) as shown, returned_memory(),
    ):  # fmt: skip
        job = Job(store, order, budget, workers, staged.folder / "scratch", shown)
        writers[path.suffix](job, staged.path, column)
        staged.publish()
        sync_seconds = staged.sync_seconds
    isolated = path.suffix != ".parquet" and order == "input"
    return ExportReport(
        path=str(path),
        num_vertices=store.attributes.num_input_vertices if isolated else store.num_rows,
        num_edges=store.num_edges,
        file_bytes=path.stat().st_size,
        seconds=time.perf_counter() - begin,
        sync_seconds=sync_seconds,
    )


def _charged(store: CSRStore, suffix: str, order: Order, column: str | None, memory_budget: str | int | None, num_threads: int) -> Budget:
    """Return the budget of an export, charged with what it takes at the least.

    Raises
    ------
    BudgetError
        That does not fit.
    """
    load_libraries(store)
    groups = ("out", "in") if suffix in GAPBS and store.attributes.directed else ("out",)
    if suffix == ".parquet":
        load_tables()
    elif order == "input":
        load_kernels([row_keys_call(store)])
    budget = Budget(effective_budget_bytes(memory_budget if memory_budget is not None else settings().memory_budget))
    with budget.all_or_none():
        budget.reserve("threads and compiled code", SLACK_BYTES)
        if suffix == ".parquet":
            charge_parquet(store, budget=budget, num_threads=num_threads)
        elif order == "input":
            charge_input_order(store, groups, column, budget=budget, num_threads=num_threads)
        else:
            charge_store_order(store, column, budget=budget)
    if memory_budget is None:
        most = budget.promised_bytes + DEFAULT_WORKING_BYTES
        budget.limit_bytes = min(budget.limit_bytes, most)
    return budget


def _parquet(job: Job, file: Path, _: str | None) -> None:
    write_parquet(job.store, file, budget=job.budget, workers=job.workers, done=job.counter(job.store.attributes.num_stored_edges))


def _check_weights(store: CSRStore, path: Path, column: str | None) -> None:
    """Refuse weights that GAPBS cannot have: it has int32."""
    if column is None:
        raise OutputError(f"{path}: .wsg holds weights, and {store.url} has none; write .sg")
    kind = store.array(f"out/{column}").dtype
    if kind.kind not in "iu":
        raise OutputError(f"{path}: .wsg holds integer weights, and {column!r} is {kind}; use .npz or .parquet")


def _pairs(entries: Iterable[tuple[Array, Array | None]], path: Path) -> Iterator[Array]:
    """Put each neighbour and its weight side by side, as int32."""
    for neighbours, weights in entries:
        assert weights is not None
        if weights.size and not -(2**31) <= int(weights.min()) <= int(weights.max()) < 2**31:
            raise OutputError(f".wsg holds 32-bit weights, and there are {weights.min()} to {weights.max()}; use .npz or .parquet")
        yield np.stack([neighbours.astype("<i4"), weights.astype("<i4")], axis=1)


def _sg(job: Job, file: Path, column: str | None) -> None:
    a = job.store.attributes
    groups = ("out", "in") if a.directed else ("out",)
    done = job.counter(a.num_stored_edges * len(groups))
    with file.open("wb") as stream:
        for group in groups:
            rows = job.rows(group, column)
            if group == "out":
                stream.write(np.array([a.directed], np.bool_).tobytes())
                stream.write(np.array([a.num_stored_edges, rows.num_rows], "<i8").tobytes())
            _write(stream, rows.offsets())
            entries = rows.entries(done)
            _write(stream, (neighbours.astype("<i4") for neighbours, _ in entries) if column is None else _pairs(entries, file))
            del rows  # one group's positions at a time


def _npz(job: Job, file: Path, column: str | None) -> None:
    """Write the members that `scipy.sparse.save_npz` writes, each as a stream."""
    a, rows = job.store.attributes, job.rows("out", column)
    kind = np.dtype("<i4" if max(rows.num_rows, a.num_stored_edges) < 2**31 else "<i8")
    data = np.dtype(np.float32) if column is None else job.store.array(f"out/{column}").dtype
    values_file = file.with_name("values")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _member(archive, "format", np.dtype("S3"), (), [np.array(b"csr")])
        _member(archive, "_is_array", np.dtype(bool), (), [np.array(True)])
        _member(archive, "shape", np.dtype("<i8"), (2,), [np.array([rows.num_rows] * 2, np.int64)])
        _member(archive, "indptr", kind, (rows.num_rows + 1,), rows.offsets())
        with values_file.open("w+b") as values:
            _member(archive, "indices", kind, (a.num_stored_edges,), _saving_values(rows.entries(job.counter(a.num_stored_edges)), values))
            values.seek(0)
            _member(archive, "data", data, (a.num_stored_edges,), _values(values, data, a.num_stored_edges, ones=column is None))
    values_file.unlink()


def _saving_values(entries: Iterable[tuple[Array, Array | None]], values: IO[bytes]) -> Iterator[Array]:
    """Pass the neighbours on and put the values aside: a zip takes one member at a time."""
    for neighbours, data in entries:
        if data is not None:
            values.write(np.ascontiguousarray(data).data.cast("B"))
        yield neighbours


def _values(values: IO[bytes], dtype: np.dtype[Any], count: int, *, ones: bool) -> Iterator[Array]:
    block = 1 << 20
    for start in range(0, count, block):
        size = min(block, count - start)
        yield np.ones(size, dtype) if ones else np.frombuffer(values.read(size * dtype.itemsize), dtype)


def _member(archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], blocks: Iterable[Array]) -> None:
    """Write one .npy member from blocks."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        _write(stream, (block.astype(dtype, copy=False) for block in blocks))


def _write(stream: IO[bytes], blocks: Iterable[Array]) -> None:
    for block in blocks:
        if block.size:
            stream.write(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
