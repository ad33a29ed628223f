"""Writes a result to a Zarr group, a Parquet file or a CSV file, block by block.

In: a `oocgraph.results.base.VertexResult`. Out: arrays (columns) named ``vertices`` and as the result's columns, in ascending order of
the vertices. Parquet and CSV name the first ``vertex``. Where there is no value, such as the level of an unreached vertex, numbers and ids
are -1; ids that are strings are then null, which CSV writes as nothing and Zarr as an empty string (strings are two arrays:
``vertices/bytes``, ``vertices/offsets``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arrow import from_numbers, import_bytes, load_tables
from oocgraph.errors import OutputError
from oocgraph.memory import host_bytes
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.columns import id_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import RESULT_KEY, SORTED_ID, string_arrays
from oocgraph.store.metadata import plain_json
from oocgraph.store.outputs import Kind, output_place
from oocgraph.store.writer import ArrayWriter, StringWriter, write_groups

if TYPE_CHECKING:
    from oocgraph.results.base import VertexResult

EXTENSIONS = (".zarr", ".parquet", ".csv")

MIN_ROWS = 1 << 15
"""Rows written at once at the least."""

WRITER_BYTES = 20 << 20
"""What writing a table holds beside its rows: Arrow's pages, compression, ranges of ids that are read (12 MiB)."""

ROW_BYTES, ID_COPIES = 64, 8
"""What a row takes: numbers, positions and encoded pages; and how often each of its ids is held, as read, joined, taken and encoded."""

ID = "id"
"""Kind of a column that holds ids; that of any other is its dtype."""


def write_result(result: VertexResult, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write `result` to `path`; its extension chooses the form.

    Raises
    ------
    OutputError
        The path exists and `overwrite` is false, its extension is another, or it cannot be written; nothing is left behind.
    """
    result_place(path, overwrite=overwrite)
    kinds = {"vertices": ID, **result.table_columns}
    if Path(path).suffix != ".zarr":
        load_tables()
    with AtomicOutput(path, kind=_kind(Path(path).suffix), overwrite=overwrite) as staged, returned_memory():
        if staged.path.suffix == ".zarr":
            _write_zarr(result, staged.path, kinds)
        else:
            _write_table(result, staged.path)
        staged.publish()


def writing_bytes(store: CSRStore) -> int:
    """Return what writing a result of `store` takes at the least, in any form, imports included, beside the result itself."""
    return writing_bytes_of(id_bytes(store, SORTED_ID))


def writing_bytes_of(num_id_bytes: int) -> int:
    """Return that of a store whose ids take so many bytes each."""
    return import_bytes() + WRITER_BYTES + MIN_ROWS * (ROW_BYTES + ID_COPIES * num_id_bytes)


def rows_within(result: VertexResult) -> int:
    """Return the rows that may be written at once, by what the budget of `result` leaves now."""
    free = result.memory_budget - host_bytes() - WRITER_BYTES
    return result.block_vertices(max(MIN_ROWS, free // _row_bytes(result.ids.store)))


def _row_bytes(store: GraphArrays) -> int:
    return ROW_BYTES + ID_COPIES * id_bytes(store, SORTED_ID)


def result_place(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return where a result that is written to `path` will stand.

    Raises
    ------
    OutputError
        The path exists and `overwrite` is false, or its extension is another.
    """
    if (extension := Path(path).suffix) not in EXTENSIONS:
        raise OutputError(f"{os.fspath(path)}: unknown extension {extension!r} for a result; choose one of {', '.join(EXTENSIONS)}")
    return output_place(path, kind=_kind(extension), overwrite=overwrite)


def _kind(extension: str) -> Kind:
    return "result" if extension == ".zarr" else "file"


def _column_writer(folder: Path, name: str, kind: str, id_kind: str) -> ArrayWriter | StringWriter:
    """Begin a column: one array, or two where ids are strings."""
    if kind == ID and id_kind == "string":
        data, offsets = string_arrays(name)
        return StringWriter(ArrayWriter(folder, data, np.uint8, "none"), ArrayWriter(folder, offsets, np.int64, "none"))
    return ArrayWriter(folder, name, "int64" if kind == ID else kind, "none")


def _write_zarr(result: VertexResult, folder: Path, kinds: dict[str, str]) -> None:
    folder.mkdir()
    writers = {name: _column_writer(folder, name, kind, result.ids.kind) for name, kind in kinds.items()}
    for block in result.blocks(rows_within(result)):
        for name, writer in writers.items():
            writer.append(getattr(block, name))
    for writer in writers.values():
        writer.close()
    write_groups(folder, {RESULT_KEY: plain_json({"algorithm": result.algorithm, "id_kind": result.ids.kind, **result.summary()})})


def _write_table(result: VertexResult, file: Path) -> None:
    """Write Parquet or CSV."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    schema, csv = arrow_schema(result), file.suffix == ".csv"
    few = [name for name, kind in result.columns.items() if kind == "int32"]  # dictionaries of ids would be as large as the ids
    options = {"compression": "zstd", "use_dictionary": few}
    with pyarrow.csv.CSVWriter(str(file), schema) if csv else pq.ParquetWriter(str(file), schema, **options) as writer:
        for batch in arrow_batches(result):
            writer.write_batch(batch)


def arrow_schema(result: VertexResult) -> Any:
    """Return the ``pyarrow.Schema`` of a result."""
    import pyarrow as pa

    ids = pa.int64() if result.ids.kind == "int64" else pa.large_string()
    types = {name: ids if kind == ID else pa.from_numpy_dtype(np.dtype(kind)) for name, kind in result.table_columns.items()}
    return pa.schema([("vertex", ids), *types.items()])


def arrow_batches(result: VertexResult) -> Iterator[Any]:
    """Iterate over a result as ``pyarrow.RecordBatch``, of as many rows as the memory budget leaves room for."""
    import pyarrow as pa

    schema = arrow_schema(result)
    for block in result.blocks(rows_within(result)):
        values = [getattr(block, name) for name in ("vertices", *result.columns)]
        arrays = [from_numbers(one) if isinstance(one, np.ndarray) else one for one in values]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
