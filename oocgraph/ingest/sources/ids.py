"""Integer ids and numbers, a block at a time: any NumPy array in, checked int64 out, or one message about the first bad value.

An id is 0 .. 2**63 - 1, and below the number of vertices where that is declared. The check costs one pass: a negative number
read as unsigned is larger than any id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from oocgraph.errors import InputError
from oocgraph.types import Array

MAX_ID = 2**63 - 1
EXACT_FLOAT_BITS = 53
"""From 2 to this power on a float64 skips integers, so what was read may not be what was written; floats of fewer bits do so earlier."""

_IN_MEMORY = "; load the file with numpy.load and give its arrays, or write it as Parquet or CSV"
"""What to do with a NumPy file of strings: of arrays in memory and of other formats they are read."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values of one column of one block stand.

    Attributes
    ----------
    description
        The file, or what kind of object it is.
    column
        Name of the column, as the user knows it.
    locate
        Turns a position in the block into words: "row 17 (counted from 0)", or "line 18".
    """

    description: str
    column: str
    locate: Callable[[int], str]

    def refuse(self, position: int, what: str, remedy: str, cause: BaseException | None = None) -> NoReturn:
        """Raise the error about the value at `position`."""
        raise InputError(f"{self.description}, {self.locate(position)}, column {self.column!r}: {what}; {remedy}") from cause


def row_place(description: str, column: str, first_row: int) -> Place:
    """Place of a block that begins at `first_row` of something that counts rows from 0."""
    return Place(description, column, lambda position: f"row {first_row + position} (counted from 0)")


def refuse_masked(values: Any, place: Place) -> None:
    """Refuse an array of `numpy.ma` that masks a value: the array behind it has one that nobody means."""
    if np.ma.is_masked(values):
        place.refuse(int(np.argmax(np.ma.getmaskarray(values))), "the value is missing (masked)", "fill it in or drop the row")


def is_integer(values: Array) -> bool:
    """Whether `values` holds numbers that may be ids: integers, or floats that may turn out to be whole."""
    return values.dtype.kind in "iuf"


def int_ids(values: Array, place: Place, num_vertices: int | None) -> Array:
    """Return `values` as contiguous int64 ids.

    Parameters
    ----------
    values : (num_edges,) signed, unsigned or float of any width and byte order, not changed
    num_vertices
        Ids must be below it; None when nothing is declared.

    Returns
    -------
    (num_edges,) int64
        A view of `values` where that is possible.
    """
    if values.dtype.kind == "f":
        return _whole_floats(values, place, num_vertices)
    if values.dtype.kind not in "iu":
        raise InputError(f"{place.description}, column {place.column!r}: {_refused_ids(values.dtype)}")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if not values.flags.c_contiguous:
        values = np.ascontiguousarray(values)
    if values.size == 0:
        return np.empty(0, np.int64)
    largest_allowed = min(MAX_ID, int(np.iinfo(values.dtype).max))
    if num_vertices is not None:
        largest_allowed = min(largest_allowed, num_vertices - 1)
    if num_vertices == 0 or int(values.view(f"u{values.dtype.itemsize}").max()) > largest_allowed:
        _refuse_first_bad(values, place, num_vertices)
    return values.view(np.int64) if values.dtype.itemsize == 8 else values.astype(np.int64)


def _refused_ids(dtype: np.dtype[Any]) -> str:
    """Say why values of a dtype are no ids, and what to do."""
    if dtype.kind in "UT":
        return f"the ids are strings ({dtype}), which NumPy's files are not read with{_IN_MEMORY}"
    return f"ids must be integers or strings, not {dtype}; convert it"


def _refuse_first_bad(values: Array, place: Place, num_vertices: int | None) -> NoReturn:
    limit = MAX_ID if num_vertices is None else num_vertices - 1
    too_large = values > limit if num_vertices is None or limit <= np.iinfo(values.dtype).max else np.zeros(values.size, bool)
    position = int(np.argmax(too_large | (values < 0)))
    value = int(values[position])
    if value < 0:
        place.refuse(position, f"the id {value} is negative", "ids must be 0 or more: renumber them, or give them as strings")
    if num_vertices is None or value > MAX_ID:
        place.refuse(position, f"the id {value} overflows int64", f"ids must be at most {MAX_ID}: renumber them, or give them as strings")
    place.refuse(
        position,
        f"the id {value} is not below the declared number of vertices {num_vertices}",
        "correct one of them",
    )


def _whole_floats(values: Array, place: Place, num_vertices: int | None) -> Array:
    bits = min(np.finfo(values.dtype).nmant + 1, EXACT_FLOAT_BITS)
    values = values.astype(np.float64)
    good = (values >= 0) & (values < 2.0**bits) & (np.floor(values) == values)
    if not good.all():
        position = int(np.argmin(good))
        value = float(values[position])
        if np.isnan(value):
            place.refuse(position, "the id is missing (NaN)", "fill it in or drop the row")
        if np.isinf(value):
            place.refuse(position, f"the id {value} is not finite", "ids must be whole numbers: correct the row, or name another column")
        if value >= 2.0**bits:
            place.refuse(
                position, f"the id {value} overflows what such a float holds exactly (2**{bits})", "give the ids as integers or strings"
            )
        if value < 0:
            place.refuse(position, f"the id {value:g} is negative", "ids must be 0 or more: renumber them, or give them as strings")
        place.refuse(position, f"the id {value!r} is fractional", "ids must be whole: correct the row, or name another column")
    return int_ids(values.astype(np.int64), place, num_vertices)


def numbers(values: Array, place: Place, *, weight: bool) -> Array:
    """Return an edge column as a contiguous native array; a weight must not be NaN."""
    refuse_masked(values, place)
    kind = values.dtype.kind
    if kind == "b":
        values = values.astype(np.uint8)
    elif kind not in "iuf" or values.dtype.itemsize > 8:
        remedies = {"f": "convert it, as astype('float64') does", "U": "write the file as Parquet or CSV, of which strings are read"}
        remedy = remedies.get(kind, "convert it")
        raise InputError(
            f"{place.description}, column {place.column!r}: an edge column holds numbers of up to 64 bits or strings, not {values.dtype}; "
            f"{remedy}"
        )
    values = np.ascontiguousarray(values, dtype=numpy_column_dtype(values.dtype))
    if weight and kind == "f":
        missing = np.isnan(values)
        if missing.any():
            place.refuse(int(np.argmax(missing)), "the weight is missing (NaN)", "fill it in or drop the row")
    return values


def as_dtype(values: Any, dtype: str, place: Place) -> Any:
    """Return an edge column as numbers of a dtype; one that this does not hold exactly is refused. Text stays as it is."""
    if dtype in ("string", values.dtype.name if isinstance(values, np.ndarray) else ""):
        return values
    with np.errstate(invalid="ignore", over="ignore"):
        converted = values.astype(dtype)
        exact = _are_exact(values, converted)
    if not exact.all():
        position = int(np.argmin(exact))
        place.refuse(position, f"the value {values[position].item()!r} is no {dtype}", "correct it, or build with another dtype (dtypes)")
    return converted


def _are_exact(values: Array, converted: Array) -> Array:
    """Whether numbers are those that they were converted from: (n,) bool."""
    kinds = values.dtype.kind + converted.dtype.kind
    exact: Array
    if kinds == "ff":
        exact = (converted == values) | np.isnan(values)
    elif kinds[1] == "f":
        beyond = 2.0 ** (8 * values.dtype.itemsize - (kinds[0] == "i"))
        exact = (converted < beyond) & (converted.astype(values.dtype) == values)
    elif kinds[0] == "f":
        low, high = (float(one) for one in (np.iinfo(converted.dtype).min, np.iinfo(converted.dtype).max))
        exact = (values >= low) & (values < high + 1) & (np.floor(values) == values)
    else:
        exact = (converted.astype(values.dtype) == values) & ((converted < 0) == (values < 0))
    return exact


def numpy_column_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype under which an edge column is stored: native; truth values as uint8, half floats as float32."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype == np.float16:
        return np.dtype(np.float32)
    return dtype.newbyteorder("=")
