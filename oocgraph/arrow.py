"""Arrow beside NumPy: what it imports is loaded before memory is counted, and numbers become Arrow's without pandas.

``pyarrow.array`` and ``to_numpy`` import pandas where it is installed (23 MiB), which a column of numbers does not need.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from oocgraph.types import Array

NUM_VERTICES_KEY = b"oocgraph.num_vertices"
"""Schema metadata of an edge list in Parquet: the vertices are 0 .. n - 1, isolated ones included; n in decimal."""

IMPORT_BYTES = 12 << 20
"""What importing Arrow's Parquet and CSV writers takes (10 MiB)."""


def from_numbers(values: Array) -> Any:
    """Return numbers as a pyarrow.Array, without a copy where Arrow has the same layout.

    Examples
    --------
    >>> from_numbers(np.arange(3)).to_pylist(), from_numbers(np.array([True, False])).to_pylist()
    ([0, 1, 2], [True, False])
    """
    import pyarrow as pa

    native = values.dtype.newbyteorder("=")
    raw = np.packbits(values, bitorder="little") if native == np.bool_ else np.ascontiguousarray(values, native)
    return pa.Array.from_buffers(pa.from_numpy_dtype(native), values.size, [None, pa.py_buffer(raw)])


def to_numbers(values: Any) -> Array:
    """Return a pyarrow.Array of numbers without nulls as NumPy has them, without a copy where both have the same layout.

    pyarrow's own `to_numpy` imports pandas first, where that is installed: 0.15 s, and 30 MB.

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
    """Import what builds need."""
    import pyarrow.compute  # noqa: F401 - loaded for others


def load_strings() -> None:
    """Import all that columns of strings need, pandas too, where it is installed: Arrow asks for it."""
    import pyarrow as pa
    import pyarrow.compute

    pa.array([""], pa.large_string()).to_numpy(zero_copy_only=False)


def load_tables() -> None:
    """Import what writes Parquet and CSV."""
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401 - loaded for others


def import_bytes() -> int:
    """Bytes that importing what writes tables will take: none when it is loaded."""
    return 0 if {"pyarrow.parquet", "pyarrow.csv"} <= sys.modules.keys() else IMPORT_BYTES
