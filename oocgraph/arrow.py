"""Arrow beside NumPy: what it imports is loaded before memory is counted, and no value becomes Arrow's or NumPy's by way of pandas.

``pyarrow.array``, ``pyarrow.scalar`` and ``to_numpy`` import pandas where it is installed: 0.15 s or more, and 23 to 35 MiB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from oocgraph.types import Array

NUM_VERTICES_KEY = b"oocgraph.num_vertices"
"""Schema metadata of an edge list in Parquet: the vertices are 0 .. n - 1, isolated ones included; n in decimal."""

PIECE_STRINGS = 1 << 16
"""Strings that become Python's at a time, in a list first."""

IMPORT_BYTES = 12 << 20
"""What importing Arrow's Parquet and CSV writers takes (10 MiB)."""


def from_numbers(values: Array, *, valid: Array | None = None) -> Any:
    """Return numbers as a pyarrow.Array, without a copy where Arrow has the same layout; those that are not `valid` are null.

    Examples
    --------
    >>> from_numbers(np.arange(3)).to_pylist(), from_numbers(np.array([True, False])).to_pylist()
    ([0, 1, 2], [True, False])
    >>> from_numbers(np.arange(3), valid=np.array([True, False, True])).to_pylist()
    [0, None, 2]
    """
    import pyarrow as pa

    native = values.dtype.newbyteorder("=")
    raw = np.packbits(values, bitorder="little") if native == np.bool_ else np.ascontiguousarray(values, native)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(native), values.size, [bits, pa.py_buffer(raw)])


def from_strings(texts: Iterable[str]) -> Any:
    """Return Python strings as a pyarrow.LargeStringArray.

    Raises
    ------
    UnicodeEncodeError
        One has half of a surrogate pair, which UTF-8 cannot write.

    Examples
    --------
    >>> from_strings(["a", "", "\u00e4"]).to_pylist()
    ['a', '', '\u00e4']
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return pa.array(list(texts), pa.large_string())  # in a third of the time
    encoded = [text.encode() for text in texts]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=ends[1:])
    return pa.Array.from_buffers(pa.large_string(), len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def to_objects(values: Any) -> Array:
    """Return a pyarrow.Array of strings as an object array of str, None where null.

    Examples
    --------
    >>> to_objects(from_strings(["a", "b"])).tolist()
    ['a', 'b']
    """
    if "pandas" in sys.modules:
        found: Array = values.to_numpy(zero_copy_only=False)  # in a third of the time
        return found
    objects = np.empty(len(values), object)
    for start in range(0, objects.size, PIECE_STRINGS):
        piece = objects[start : start + PIECE_STRINGS]
        piece[:] = values.slice(start, piece.size).to_pylist()
    return objects


def to_numbers(values: Any) -> Array:
    """Return a pyarrow.Array of numbers without nulls as NumPy has them, without a copy where both have the same layout.

    Examples
    --------
    >>> import pyarrow as pa
    >>> to_numbers(pa.array([3, 1, 2]).slice(1)).tolist(), to_numbers(pa.array([True, False, True]).slice(1)).tolist()
    ([1, 2], [False, True])
    """
    import pyarrow as pa

    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)):
        raise TypeError(f"an array of {values.type} is none of numbers")
    if values.null_count:
        raise ValueError(f"{values.null_count} of {len(values)} numbers are null")
    dtype = np.dtype(values.type.to_pandas_dtype())
    data = values.buffers()[1]
    if not len(values) or data is None:
        return np.empty(0, dtype)
    if dtype == np.bool_:
        first = values.offset // 8
        bits = np.frombuffer(data, np.uint8)[first : (values.offset + len(values) + 7) // 8]
        return np.unpackbits(bits, bitorder="little")[values.offset - 8 * first :][: len(values)].view(np.bool_)
    return np.frombuffer(data, dtype, len(values), values.offset * dtype.itemsize)


def header_text(schema: Any, delimiter: str = ",") -> bytes:
    r"""Return the first line of a table as CSV: its names.

    Examples
    --------
    >>> import pyarrow as pa
    >>> header_text(pa.schema([("id", pa.string()), ("level", pa.int64())]))
    b'"id","level"\n'
    """
    import pyarrow as pa

    return table_text(pa.Table.from_batches([], schema), delimiter, header=True)


def table_text(table: Any, delimiter: str = ",", *, header: bool = False) -> bytes:
    r"""Return a table, or a batch of one, as CSV; with a `header`, or without.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table_text(pa.table({"id": ["a"], "level": [0]}), header=True)
    b'"id","level"\n"a",0\n'
    """
    import pyarrow as pa
    import pyarrow.csv

    out = pa.BufferOutputStream()
    pa.csv.write_csv(table, out, pa.csv.WriteOptions(include_header=header, delimiter=delimiter))
    return bytes(out.getvalue())


def load_arrow() -> None:
    """Import what builds, and columns of strings, need."""
    import pyarrow.compute  # noqa: F401 - loaded for others


def load_tables() -> None:
    """Import what writes Parquet and CSV."""
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401 - loaded for others


def import_bytes() -> int:
    """Bytes that importing what writes tables will take: none when it is loaded."""
    return 0 if {"pyarrow.parquet", "pyarrow.csv"} <= sys.modules.keys() else IMPORT_BYTES
