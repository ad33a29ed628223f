"""Arrow columns as what an `EdgeBlock` holds: int64 ids, large strings, NumPy numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from oocgraph.arrow import NUM_VERTICES_KEY, from_numbers, to_numbers
from oocgraph.errors import InputError
from oocgraph.ingest.sources.columns import Columns, Layout, asked_dtypes
from oocgraph.ingest.sources.ids import Place, int_ids, numbers, numpy_column_dtype
from oocgraph.ingest.sources.source import MAX_DIGITS, Request, agreed_num_vertices
from oocgraph.types import Array, IdKind


def _id_kind(value_type: Any, description: str, column: str) -> IdKind:
    """Whether a column of this Arrow type holds integer ids or strings."""
    value_type = _decoded_type(value_type)
    if kinds.is_integer(value_type) or kinds.is_floating(value_type) or kinds.is_null(value_type):
        return "int64"
    if _is_text(value_type):
        return "string"
    raise InputError(f"{description}, column {column!r}: ids must be integers or strings, not {value_type}; convert the column")


def _common_id_kind(description: str, source: tuple[str, Any], target: tuple[str, Any]) -> IdKind:
    """Return the kind of both endpoint columns (name, Arrow type)."""
    kind, other = (_id_kind(value_type, description, column) for column, value_type in (source, target))
    if kind != other:
        raise InputError(
            f"{description}: column {source[0]!r} is {source[1]} and column {target[0]!r} is {target[1]}; "
            "both must be integers or both strings, convert one"
        )
    return kind


def _column_dtype(value_type: Any, description: str, column: str, asked: str, *, weight: bool) -> str:
    """Name of the NumPy dtype of an edge column, or "string"; one of nulls alone, which must be without rows, is as `asked` for."""
    value_type = _decoded_type(value_type)
    if kinds.is_null(value_type):
        return asked
    if weight and not (kinds.is_integer(value_type) or kinds.is_floating(value_type) or kinds.is_boolean(value_type)):
        remedy = "convert it to float64" if kinds.is_decimal(value_type) else "convert it"
        raise InputError(f"{description}, column {column!r}: a weight must be a number, this is {value_type}; {remedy} or name another")
    if _is_text(value_type):
        return "string"
    if kinds.is_integer(value_type) or kinds.is_floating(value_type) or kinds.is_boolean(value_type):
        return str(numpy_column_dtype(np.dtype(value_type.to_pandas_dtype())).name)
    remedy = "convert it"
    if kinds.is_temporal(value_type):
        remedy = "convert it to text, such as 2024-01-31T09:30:00, whose order is that of the times, or to int64"
    if kinds.is_decimal(value_type):
        remedy = "convert it to float64 or int64"
    raise InputError(f"{description}, column {column!r}: an edge column holds numbers or strings, not {value_type}; {remedy}")


def arrow_ids(values: Any, kind: IdKind, place: Place, num_vertices: int | None) -> Any:
    """Return the ids of a pyarrow.Array: int64, or a LargeStringArray."""
    values = _decoded(values)  # nulls may be among the values of a dictionary
    _refuse_null(values, place, "the id is missing (null)")
    return large_strings(values, place) if kind == "string" else int_ids(as_numpy(values), place, num_vertices)


def ids_from_one(values: Any, place: Place, largest: int, *, what: str, remedy: str) -> Array:
    """Return the ids of a pyarrow.Array, which count from 1: int64."""
    ids: Array = arrow_ids(values, "int64", place, None)
    bad = (ids < 1) | (ids > largest)
    if bad.any():
        position = int(bad.argmax())
        place.refuse(position, f"the {what} {ids[position]} is not within 1 .. {largest}", remedy)
    return ids


class ArrowLayout(Layout):
    """Values are Arrow arrays."""

    __slots__ = ()

    def ids(self, values: Any, place: Place) -> Any:
        """Return the ids of an end: int64, or a LargeStringArray."""
        return arrow_ids(values, self.kind, place, self.num_vertices)

    def column(self, values: Any, dtype: str, place: Place, *, weight: bool) -> Any:
        """Return an edge column; a null is NaN in a float column and an error elsewhere."""
        values = _decoded(values)
        if dtype == "string" or weight or not kinds.is_floating(values.type):
            _refuse_null(values, place, "the value is missing (null)")
        return large_strings(values, place) if dtype == "string" else numbers(as_numpy(values), place, weight=weight)


def arrow_layout(description: str, columns: Columns, type_of: Callable[[str], Any], request: Request) -> ArrowLayout:
    """Return the layout of Arrow columns of these types; those that cannot be ids or columns are refused."""
    kind = _common_id_kind(description, *((name, type_of(name)) for name in (columns.source, columns.target)))
    dtypes = {
        name: _column_dtype(type_of(name), description, name, request.dtypes.get(name, "float64"), weight=name == columns.weight)
        for name in columns.edge
    }
    return ArrowLayout(
        description, columns, kind, asked_dtypes(description, dtypes, request), agreed_num_vertices(description, None, request)
    )


def with_declared_vertices(layout: ArrowLayout, schema: Any, request: Request) -> ArrowLayout:
    """Return the layout with the number of vertices that the metadata of its schema declares, where they do."""
    declared = (schema.metadata or {}).get(NUM_VERTICES_KEY) if layout.kind == "int64" else None
    if declared is None:
        return layout
    if not (declared.isdigit() and len(declared) < MAX_DIGITS):
        raise InputError(
            f"{layout.description}: the schema metadata {NUM_VERTICES_KEY.decode()} is {declared!r:.60}, not a decimal number of vertices; "
            "correct it"
        )
    return replace(layout, num_vertices=agreed_num_vertices(layout.description, int(declared), request))


def large_strings(values: Any, place: Place) -> Any:
    """Return text of any Arrow type as a LargeStringArray that begins at offset 0 of its buffers."""
    values = _decoded(values)
    try:
        values = values.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise InputError(f"{place.description}, {place.locate(0)} or after, column {place.column!r}: not UTF-8 text; convert it") from error
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"{place.description}, column {place.column!r}: pyarrow {pa.__version__} makes no strings of {values.type}; "
            "update it, or cast the column"
        ) from error
    return whole_strings(values)


@cache
def casts_views() -> bool:
    """Whether this version of Arrow makes strings of string views, which Polars hands over: 16 does not."""
    try:
        pa.nulls(0, pa.string_view()).cast(pa.large_string())
    except pa.ArrowNotImplementedError:
        return False
    return True


def whole_strings(values: Any) -> Any:
    """Return a LargeStringArray, or a copy of it if it does not begin at offset 0 of its buffers."""
    return values if values.offset == 0 else pa.concat_arrays([values, values.slice(0, 0)])


def _refuse_null(values: Any, place: Place, what: str) -> None:
    if values.null_count:
        position = int(np.argmax(to_numbers(values.is_null())))
        place.refuse(position, what, "fill it in or drop the row")


def as_numpy(values: Any) -> Array:
    """Return an Arrow array of numbers as a NumPy array, without a copy where both have the same layout; floats that are null are NaN."""
    values = _decoded(values)
    if kinds.is_null(values.type):
        return np.empty(0, np.int64)  # a null would have been refused, so the column is empty
    if values.null_count:
        values = values.fill_null(from_numbers(np.full(1, np.nan, values.type.to_pandas_dtype()))[0])
    array = to_numbers(values)
    return array if array.flags.writeable or array.size == 0 else np.asarray(_Writable(array))


class _Writable:
    """A view that NumPy does not mark read-only: Numba would compile every kernel a second time for read-only arrays.

    It is never written to; a copy would cost a third of the reading (250 to 150 M edges/s).
    """

    def __init__(self, array: Array) -> None:
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.owner = array
        self.__array_interface__ = interface


def _decoded(values: Any) -> Any:
    if not kinds.is_dictionary(values.type):
        return values
    if has_views(values.type):  # Arrow takes nothing from them
        values = pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(pa.large_string()))
    return values.dictionary_decode()


def has_views(value_type: Any) -> bool:
    """Whether values are a dictionary of string views, as Polars' categories are."""
    return bool(kinds.is_dictionary(value_type) and kinds.is_string_view(value_type.value_type))


def _decoded_type(value_type: Any) -> Any:
    return value_type.value_type if kinds.is_dictionary(value_type) else value_type


def _is_text(value_type: Any) -> bool:
    tests = (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view)
    return any(test(value_type) for test in tests)
