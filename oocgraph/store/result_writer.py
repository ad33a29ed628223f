"""Writes a result to a Zarr group, a Parquet file or a CSV file, block by block.

In: a `BFSResult`. Out: the columns (arrays) ``vertices``, ``level`` and ``parent``, in ascending order of the
vertices. Parquet and CSV name the first ``vertex``. An unreached vertex has level -1 and parent -1; a parent among
strings is then null, which CSV writes as nothing and Zarr as an empty string (strings are two arrays:
``vertices/bytes``, ``vertices/offsets``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.errors import OutputError
from oocgraph.result import BFSResult, Ids
from oocgraph.store.layout import string_arrays
from oocgraph.store.staging import Staging
from oocgraph.store.strings import string_buffers
from oocgraph.store.writer import ArrayWriter

EXTENSIONS = (".zarr", ".parquet", ".csv")


def write_result(result: BFSResult, path: Path) -> None:
    """Write `result` to `path`; its extension chooses the form.

    Raises
    ------
    OutputError
        The path exists, its extension is another, or it cannot be written; nothing is left behind.
    """
    writers = dict(zip(EXTENSIONS, (_write_zarr, _write_parquet, _write_csv), strict=True))
    if path.suffix not in writers:
        raise OutputError(f"{path}: unknown extension {path.suffix!r} for a result; choose one of {', '.join(EXTENSIONS)}")
    with Staging(path) as staged:
        writers[path.suffix](result, staged.path)
        staged.publish()


class IdWriter:
    """Appends ids to one array, or strings to two."""

    def __init__(self, root: Path, name: str, kind: str) -> None:
        self.name, self._length = name, 0
        if kind == "int64":
            self._arrays = [ArrayWriter(root, name, np.int64, "none")]
        else:
            data, offsets = string_arrays(name)
            self._arrays = [ArrayWriter(root, data, np.uint8, "none"), ArrayWriter(root, offsets, np.int64, "none")]
            self._arrays[1].append(np.zeros(1, np.int64))

    def append(self, ids: Ids) -> None:
        """Append int64 ids, or a pyarrow.LargeStringArray (null as an empty string)."""
        if isinstance(ids, np.ndarray):
            self._arrays[0].append(ids)
            return
        data, offsets = string_buffers(ids.fill_null(""))
        self._arrays[0].append(data)
        self._arrays[1].append(offsets[1:] + self._length)
        self._length += data.size

    def close(self) -> None:
        """Write what is pending and the metadata."""
        for array in self._arrays:
            array.close()


def _write_zarr(result: BFSResult, folder: Path) -> None:
    folder.mkdir()
    vertices, parent = (IdWriter(folder, name, result.ids.kind) for name in ("vertices", "parent"))
    level = ArrayWriter(folder, "level", np.int32, "none")
    for block in result.blocks():
        vertices.append(block.vertices)
        level.append(block.level)
        parent.append(block.parent)
    for writer in (vertices, level, parent):
        writer.close()
    groups = ["vertices", "parent"] if result.ids.kind == "string" else []
    attributes = {"oocgraph_result": {"algorithm": "bfs", "id_kind": result.ids.kind, **result.summary()}}
    for name in ("", *groups):
        metadata = {"zarr_format": 3, "node_type": "group", "attributes": {} if name else attributes}
        (folder / name / "zarr.json").write_text(json.dumps(metadata, indent=1, default=_plain))


def _write_parquet(result: BFSResult, file: Path) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(str(file), _schema(result), compression="zstd") as writer:
        for block in result.blocks():
            writer.write_table(_table(result, block))


def _write_csv(result: BFSResult, file: Path) -> None:
    import pyarrow.csv

    with pyarrow.csv.CSVWriter(str(file), _schema(result)) as writer:
        for block in result.blocks():
            writer.write_table(_table(result, block))


def _schema(result: BFSResult) -> Any:
    import pyarrow as pa

    kind = pa.int64() if result.ids.kind == "int64" else pa.large_string()
    return pa.schema([("vertex", kind), ("level", pa.int32()), ("parent", kind)])


def _table(result: BFSResult, block: Any) -> Any:
    import pyarrow as pa

    return pa.table([pa.array(block.vertices), pa.array(block.level), pa.array(block.parent)], schema=_schema(result))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
