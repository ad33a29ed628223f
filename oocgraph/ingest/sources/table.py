"""Tables in memory: pyarrow, pandas, columns by name, and whatever else speaks Arrow's C interface (Polars, DuckDB)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.arrow_values import arrow_layout, casts_views, has_views
from oocgraph.ingest.sources.columns import choose_columns, usual_pair
from oocgraph.ingest.sources.source import Request, Source, range_streams


def open_arrow(source: Any, request: Request) -> Source:
    """Open a table in memory, of pyarrow or Polars."""
    description = f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"
    if isinstance(source, pa.Table | pa.RecordBatch):
        return open_table(source if isinstance(source, pa.Table) else pa.table(source), request, description)
    chosen = choose_columns(description, source.columns, request).read
    return open_table(polars_table(source[chosen], description), request, description)


def polars_table(frame: Any, description: str) -> Any:
    """Return a polars.DataFrame as a pyarrow.Table.

    Raises
    ------
    InputError
        A column is of a type that Arrow has not, such as Int128.
    """
    try:
        if not casts_views():
            return frame.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())
        return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        kinds = ", ".join(f"{name!r} is {kind}" for name, kind in frame.schema.items())
        raise InputError(f"{description}: Arrow lacks the type of a column ({kinds}); cast it, such as to Int64 or String") from error


def open_pandas(frame: Any, request: Request) -> Source:
    """Open a pandas.DataFrame; its index is not read."""
    names = [str(name) for name in frame.columns]
    return _open_named("pandas DataFrame", names, lambda name: frame.iloc[:, names.index(name)], request)


def open_dict(columns: Mapping[Any, Any], request: Request) -> Source:
    """Open columns of equal length by their names: arrays, lists or other sequences.

    Raises
    ------
    InputError
        A key is no name, or none are those of source and target: a dict may have the neighbours of each vertex.
    """
    names = [name for name in columns if isinstance(name, str)]
    if len(names) < len(columns) or (request.source_column is None and usual_pair(names) is None):
        keys = ", ".join(map(repr, list(columns)[:5])) or "its keys"
        raise InputError(
            f"a dict is read as columns by name, and none of {keys} are source and target; "
            "name them in columns, or give the neighbours of each vertex as networkx.Graph(...)"
        )
    for name, values in columns.items():
        is_column = hasattr(values, "__getitem__") and hasattr(values, "__len__") and not isinstance(values, str | bytes | Mapping)
        if not is_column or getattr(values, "ndim", 1) != 1:
            what = f"{type(values).__name__} of shape {values.shape}" if is_column else f"{values!r:.60}"
            raise InputError(f"columns, column {name!r}: {what} is no array or list with a value for each edge; give one")
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise InputError(f"columns have different numbers of values ({listed}); an edge needs one of each")
    return _open_named("columns", names, columns.__getitem__, request)


def open_structured(array: Any, request: Request) -> Source:
    """Open a structured NumPy array (num_edges,), a field for each column."""

    def column(name: str) -> Any:
        return array[name].astype(array.dtype[name].newbyteorder("="), copy=False)

    return _open_named("structured array", list(array.dtype.names), column, request)


def _open_named(description: str, names: Sequence[str], column: Callable[[str], Any], request: Request) -> Source:
    columns = choose_columns(description, names, request)
    arrays = {}
    for name in columns.read:
        values = column(name)
        dtype = getattr(values, "dtype", None)
        if isinstance(dtype, np.dtype) and not dtype.isnative:
            raise InputError(
                f"{description}, column {name!r}: its bytes are in the order of other processors ({dtype.str}), which Arrow refuses"
                f"; convert it by .astype({dtype.newbyteorder('=').name!r})"
            )
        try:
            arrays[name] = pa.array(values, from_pandas=True)
        except UnicodeEncodeError as error:
            raise InputError(f"{description}, column {name!r}: {error.object!r:.60} is not Unicode text; correct it") from error
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
            raise InputError(f"{description}, column {name!r}: neither all numbers nor all strings ({error}); convert it") from error
    return open_table(pa.table(arrays), request, description)


def open_table(table: Any, request: Request, description: str = "pyarrow Table") -> Source:
    """Open a pyarrow.Table."""
    columns = choose_columns(description, table.column_names, request)
    layout = arrow_layout(description, columns, lambda name: table.schema.field(name).type, request)
    table = table.select(columns.read)

    def read(low: int, high: int) -> EdgeBlock:
        part = table.slice(low, high - low)
        return layout.block(lambda name: _one_array(part.column(name)), low)

    return layout.open(range_streams(table.num_rows, read), table.num_rows)


def _one_array(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    if has_views(column.type):
        column = column.cast(pa.dictionary(column.type.index_type, pa.large_string()))
    # combine_chunks may keep dictionaries apart, which one array cannot hold
    return column.unify_dictionaries().combine_chunks() if pa.types.is_dictionary(column.type) else column.combine_chunks()
