"""Edge columns as Arrow sees them: numbers, or codes and the distinct strings that they stand for.

In: names of columns of a store. Out: their arrays and fields of a schema. The strings of a column are held: they are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers
from oocgraph.errors import ArgumentError, ArgumentTypeError
from oocgraph.store.columns import StringColumn, id_bytes
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import ENDS, VERTEX_ID, string_arrays
from oocgraph.types import Array


def check_columns(store: GraphArrays, columns: Sequence[str]) -> tuple[str, ...]:
    """Return names of edge columns, all of which the store has.

    Raises
    ------
    ArgumentError
        It lacks one, one is named twice, or one is called as a column of ids is.
    ArgumentTypeError
        `columns` is one text, or holds what is none.
    """
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable) or not all(isinstance(name, str) for name in columns):
        raise ArgumentTypeError(f"columns is {columns!r}; give a list of names of edge columns")
    a = store.attributes
    names = tuple(a.stored_column(name) for name in columns)
    for asked, name in zip(columns, names, strict=True):
        if name not in a.columns:
            remedy = (
                f"give columns= of {', '.join(a.input_columns)}" if a.columns else "it has none at all: name those to keep when it is built"
            )
            raise ArgumentError(f"{store.url} has no edge column {name!r}; {remedy}")
        if asked in ENDS:
            raise ArgumentError(f"the edge column {asked!r} has the name of a column of ids; rename it at the build")
    if len(set(names)) < len(names):
        raise ArgumentError(f"columns is {names!r}, where a name occurs twice; give each once")
    return names


def column_bytes(store: GraphArrays, columns: Sequence[str]) -> int:
    """Bytes of the strings that `EdgeColumns` holds."""
    texts = [string_arrays(f"columns/{name}") for name in columns if store.attributes.columns[name] == "string"]
    return sum(2 * store.array(data).length + 16 * store.array(offsets).length for data, offsets in texts)


def linked_ids_bytes(store: GraphArrays) -> int:
    """Bytes of the ids of all vertices with edges while they are read: of strings there are two copies then."""
    copies = 1 if store.attributes.id_kind == "int64" else 2
    return copies * store.num_rows * id_bytes(store, VERTEX_ID)


class EdgeColumns:
    """Some edge columns of a store, called as they are asked for, by default as in the input.

    Attributes
    ----------
    texts : dict of pyarrow.LargeStringArray
        Distinct strings of the columns that hold strings, by name.
    """

    def __init__(self, store: GraphArrays, names: Sequence[str], called: Sequence[str] | None = None) -> None:
        kinds = store.attributes.columns
        self._called = [store.attributes.column_beside_ends(name) for name in names] if called is None else called
        columns = {name: StringColumn(store, f"columns/{name}") for name in names if kinds[name] == "string"}
        self.names = tuple(names)
        self.texts = {name: column.read(0, column.length) for name, column in columns.items()}
        self._dtypes = {name: np.dtype(kinds[name]) for name in names if name not in columns}

    def fields(self) -> list[Any]:
        """Return the fields of a schema."""
        import pyarrow as pa

        text = pa.dictionary(pa.int32(), pa.large_string())
        types = [text if name in self.texts else pa.from_numpy_dtype(self._dtypes[name]) for name in self.names]
        return [pa.field(called, kind) for called, kind in zip(self._called, types, strict=True)]

    def arrow(self, name: str, values: Array) -> Any:
        """Return stored values of a column as an Arrow array; numbers are not copied."""
        import pyarrow as pa

        numbers = from_numbers(values)
        return pa.DictionaryArray.from_arrays(numbers, self.texts[name]) if name in self.texts else numbers

    def decoded(self, name: str, values: Array) -> Any:
        """Return stored values of a column as numbers, or as a pyarrow.LargeStringArray."""
        return self.texts[name].take(from_numbers(values)) if name in self.texts else values
