"""Writes a result to a Zarr group, a Parquet file or a CSV file, block by block.

In: a `oocgraph.results.base.VertexResult`. Out: arrays (columns) named ``vertices`` and as the result's columns, in ascending order of
the vertices. Parquet and CSV name the first ``vertex``. Where there is no value, such as the level of an unreached vertex, numbers and ids
are -1; ids that are strings are then null, which CSV writes as nothing and Zarr as an empty string (strings are two arrays:
``vertices/bytes``, ``vertices/offsets``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.arrow import header_text, import_bytes, load_tables, table_text
from oocgraph.errors import OutputError
from oocgraph.results.streaming import Make, most_rows, room_of, row_bytes, stream_result
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.columns import Ids, as_arrow, id_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import RESULT_KEY, SORTED_ID, string_arrays
from oocgraph.store.metadata import plain_json
from oocgraph.store.outputs import Kind, output_place
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.writer import ArrayWriter, StringWriter, write_groups

if TYPE_CHECKING:
    from oocgraph.results.base import VertexResult

_T = TypeVar("_T")

EXTENSIONS = (".zarr", ".parquet", ".csv")

NUMBER_BYTES = 8
"""Of an id that is a number."""

MIN_ROWS, MAX_ROWS, MANY_GROUPS = 1 << 15, 1 << 19, 128
"""Rows of a row group: as few as make up to so many groups, within these bounds. Files do not depend on memory."""

TEXT_ROWS = 1 << 14
"""Rows that become text at once; as text they take as much again."""

WRITER_BYTES = 20 << 20
"""What writing a table holds beside its rows: Arrow's pages, compression, ranges of ids that are read (12 MiB)."""

KEPT_BYTES = 4 << 20
"""Freed memory that a thread keeps for its next block: without it, clearing pages takes a third of the time of writing arrays."""

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
    result.table_columns  # noqa: B018 - refuses a result that is no table, before anything is written
    if Path(path).suffix != ".zarr":
        load_tables()
    with AtomicOutput(path, kind=_kind(Path(path).suffix), overwrite=overwrite) as staged, returned_memory(KEPT_BYTES):
        WRITERS[staged.path.suffix](result, staged.path)
        staged.publish()


def writing_bytes(store: CSRStore) -> int:
    """Return what writing a result of `store` takes at the least, in any form, imports included, beside the result itself."""
    return writing_bytes_of(id_bytes(store, SORTED_ID), store.attributes.num_input_vertices)


def writing_bytes_of(num_id_bytes: int, num_ids: int) -> int:
    """Return that of a store of so many ids, which take so many bytes each."""
    rows = min(num_ids, rows_of(num_ids, num_id_bytes))
    return import_bytes() + WRITER_BYTES + max(rows * row_bytes(num_id_bytes), MIN_ROWS * row_bytes(NUMBER_BYTES))


def rows_of(num_ids: int, num_id_bytes: int) -> int:
    """Return the rows of a row group.

    Examples
    --------
    >>> rows_of(10, 8), rows_of(1 << 24, 8), rows_of(1 << 31, 8), rows_of(1 << 24, 5000)
    (32768, 131072, 524288, 1024)
    """
    return min(MAX_ROWS, max(MIN_ROWS, 1 << (-(-num_ids // MANY_GROUPS) - 1).bit_length()), most_rows(num_id_bytes))


def rows_in(result: VertexResult) -> int:
    """Return the rows of a row group of a result."""
    return rows_of(result.ids.num_ids, id_bytes(result.ids.store, SORTED_ID))


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


def _write_zarr(result: VertexResult, folder: Path) -> None:
    """Write arrays: threads put numbers where they belong; strings, whose places depend on those before, are appended."""
    folder.mkdir()
    dtypes = result.array_dtypes()
    texts = {name: _string_writer(folder, name) for name, dtype in dtypes.items() if dtype.hasobject}
    arrays = {name: PreallocatedArray(folder, name, dtype, result.ids.num_ids) for name, dtype in dtypes.items() if name not in texts}
    for array in arrays.values():
        array.create()
    if texts or not result.put_by_workers(arrays):
        for block in _streamed(result, rows_in(result), partial(put_block, arrays), is_busy=bool(texts)):
            for name, writer in texts.items():
                writer.append(block[name])
    for array in arrays.values():
        array.close()
    for writer in texts.values():
        writer.close()
    write_groups(folder, {RESULT_KEY: plain_json({"algorithm": result.algorithm, "id_kind": result.ids.kind, **result.summary()})})


def put_block(arrays: Mapping[str, PreallocatedArray], start: int, vertices: Ids, values: Mapping[str, Ids]) -> dict[str, Ids]:
    """Write a block to arrays by column, from position `start` on; return all columns of it."""
    columns = {"vertices": vertices, **values}
    for name, array in arrays.items():
        array.write(start, columns[name])
    return columns


def _string_writer(folder: Path, name: str) -> StringWriter:
    data, offsets = string_arrays(name)
    return StringWriter(ArrayWriter(folder, data, np.uint8, "none"), ArrayWriter(folder, offsets, np.int64, "none"))


def parquet_options(result: VertexResult) -> dict[str, Any]:
    """Return options of pyarrow's writer."""
    few = [name for name, kind in result.columns.items() if kind == "int32"]  # dictionaries of ids would be as large as the ids
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": few}
    if result.ids.kind == "string":  # statistics are held until the end: of names that are not in order, for nothing
        options["write_statistics"] = ["vertex", *(name for name, kind in result.columns.items() if kind != ID)]
    if result.ids.kind == "int64":  # they ascend: a quarter of the time, and next to no bytes
        options["column_encoding"] = {"vertex": "DELTA_BINARY_PACKED"}
    return options


def _write_parquet(result: VertexResult, file: Path) -> None:
    import pyarrow.parquet as pq

    schema, rows = arrow_schema(result), rows_in(result)
    with pq.ParquetWriter(str(file), schema, **parquet_options(result)) as writer:
        for batch in _streamed(result, rows, batch_maker(result)):
            writer.write_batch(batch, row_group_size=rows)


def _write_csv(result: VertexResult, file: Path) -> None:
    """Write text, which threads make of their blocks; of large blocks it is made a piece at a time."""
    make = batch_maker(result)

    def texts(start: int, vertices: Ids, values: Mapping[str, Ids]) -> Iterable[bytes]:
        batch = make(start, vertices, values)
        pieces = (table_text(batch.slice(at, TEXT_ROWS)) for at in range(0, batch.num_rows, TEXT_ROWS))
        return list(pieces) if batch.num_rows <= TEXT_ROWS else pieces

    with file.open("wb") as stream:
        stream.write(header_text(arrow_schema(result)))
        for text in chain.from_iterable(_streamed(result, min(TEXT_ROWS, rows_in(result)), texts, is_busy=False)):
            stream.write(text)


WRITERS = {".zarr": _write_zarr, ".parquet": _write_parquet, ".csv": _write_csv}


def arrow_schema(result: VertexResult) -> Any:
    """Return the ``pyarrow.Schema`` of a result."""
    import pyarrow as pa

    ids = pa.int64() if result.ids.kind == "int64" else pa.large_string()
    types = {name: ids if kind == ID else pa.from_numpy_dtype(np.dtype(kind)) for name, kind in result.table_columns.items()}
    return pa.schema([("vertex", ids), *types.items()])


def arrow_batches(result: VertexResult) -> Iterator[Any]:
    """Iterate over a result as ``pyarrow.RecordBatch``; threads make them."""
    return _streamed(result, rows_in(result), batch_maker(result))


def batch_maker(result: VertexResult) -> Make[Any]:
    """Return what makes a ``pyarrow.RecordBatch`` of a block of a result."""
    import pyarrow as pa

    schema = arrow_schema(result)

    def make(_: int, vertices: Ids, values: Mapping[str, Ids]) -> Any:
        arrays = [vertices, *(values[name] for name in result.columns)]
        return pa.RecordBatch.from_arrays([as_arrow(one) for one in arrays], schema=schema)

    return make


def _streamed(result: VertexResult, rows: int, make: Make[_T], *, is_busy: bool = True) -> Iterator[_T]:
    """Stream what is made of blocks of a result, of so many rows where it does not prefer others; `is_busy` as of `room_of`."""
    source = result.streamed()
    size = source.block_vertices(rows)
    room = room_of(source, size, spent_bytes=WRITER_BYTES, is_busy=is_busy)
    return stream_result(source, tuple(source.columns), size, make, room=room)
