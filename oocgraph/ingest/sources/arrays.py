"""NumPy arrays and lists in memory: sources and targets, perhaps weights, one array with a row for each edge, or a tuple for each edge."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream
from oocgraph.ingest.sources.columns import Layout, fixed_layout
from oocgraph.ingest.sources.ids import Place, int_ids, is_integer, numpy_column_dtype, refuse_masked, row_place
from oocgraph.ingest.sources.source import MAX_STREAMS, Request, Source, blocks_of, range_streams, reason, split_rows
from oocgraph.text import short_integer
from oocgraph.types import Array, IdKind

ENDS = ("source", "target")


class ArrayLayout(Layout):
    """Values are arrays of numbers or of Python objects, or lists."""

    __slots__ = ()

    def ids(self, values: Any, place: Place) -> Any:
        """Return the ids of an end, checked."""
        if self.kind == "int64":
            return int_ids(object_numbers(values, place) if values.dtype.kind == "O" else values, place, self.num_vertices)
        strings = values.astype(object)
        for position, value in enumerate(strings):
            if not isinstance(value, str):
                place.refuse(position, f"the id {value!r} is not a string as the first one is", "give only strings or only integers")
        return large_strings(strings, place)


def large_strings(values: Any, place: Place) -> Any:
    """Return Python strings as an Arrow array; text that UTF-8 cannot write (a surrogate without its other half) is refused."""
    import pyarrow as pa

    try:
        return pa.array(values, type=pa.large_string())
    except UnicodeEncodeError as error:
        position, text = next((i, value) for i, value in enumerate(values) if _has_surrogate(value))
        place.refuse(position, f"{text!r:.60} is not Unicode text: UTF-8 cannot write it", "correct it", error)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= one <= "\udfff" for one in text)


def open_columns(columns: Sequence[Any], request: Request) -> Source:
    """Open two or three arrays (or lists) of equal length: sources and targets, which are integers, whole floats or strings; weights."""
    description = "pair of arrays" if len(columns) == 2 else "tuple of arrays"
    places = [row_place(description, name, 0) for name in ("source", "target")]
    values = {place.column: _as_array(column, place) for place, column in zip(places, columns[:2], strict=True)}
    if len(columns) > 2:
        values["weight"] = _weights_array(columns[2], row_place(description, "weight", 0))
    sizes = {name: array.size for name, array in values.items()}
    if len(set(sizes.values())) > 1:
        counted = f"{sizes['source']} sources but {sizes['target']} targets" if len(sizes) == 2 else f"sizes of the columns are {sizes}"
        raise InputError(f"{description}: {counted}; an edge needs {'both' if len(sizes) == 2 else 'one of each'}")
    return _open_ends(description, values, request)


def _weights_array(column: Any, place: Place) -> Array:
    if isinstance(column, list):
        return _weights(column, place)
    refuse_masked(column, place)
    array = np.asarray(column)
    if array.ndim != 1:
        raise InputError(f"{place.description}: the weights have shape {array.shape}; give one for each edge, in one dimension")
    if array.dtype.kind == "O":
        return _weights(array.tolist(), place)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{place.description}: the weights are {array.dtype}, not numbers; convert them, or give more columns as a table")
    return array


def open_list(edges: list[Any], request: Request) -> Source:
    """Open a list of tuples (source, target), or of (source, target, weight)."""
    description = "list of edges"
    names = ("source", "target", "weight")[: 3 if isinstance(edges[0], tuple) and len(edges[0]) == 3 else 2]
    first = " as the first one is" if len(names) == 3 else ""
    for position, edge in enumerate(edges):
        if not isinstance(edge, tuple) or len(edge) != len(names):
            raise InputError(
                f"{description}, element {position} is {edge!r:.60}, not a tuple ({', '.join(names)}){first}; correct it, "
                "give more columns as a table, such as a pandas.DataFrame with names of columns, or all sources and all targets as a tuple "
                "(sources, targets)"
            )
    places = [row_place(description, name, 0) for name in names]
    values = {place.column: _as_array([edge[i] for edge in edges], place) for i, place in enumerate(places[:2])}
    if len(places) > 2:
        values["weight"] = _weights([edge[2] for edge in edges], places[2])
    return _open_ends(description, values, request)


def _weights(weights: list[Any], place: Place) -> Array:
    """Return weights as numbers that hold each of them exactly: NumPy makes floats of integers that int64 does not hold all of."""
    for position, weight in enumerate(weights):
        if isinstance(weight, bool | np.bool_) or not isinstance(weight, int | float | np.integer | np.floating):
            remedy = "give the NetworkX graph itself" if isinstance(weight, dict) else "give more columns as a table"
            place.refuse(position, f"the weight {weight!r:.60} is not a number", f"correct it, or {remedy}")
    whole = [isinstance(weight, int | np.integer) for weight in weights]
    if not any(whole):
        return np.asarray(weights)
    dtype = np.dtype(np.float64 if not all(whole) else np.int64 if max(weights) < 1 << 63 else np.uint64)
    for position, weight in enumerate(weights):
        if whole[position] and not _holds(dtype, int(weight)):
            others = "weights are integers or floats of 64 bits" if all(whole) else "others have fractions, and are floats of 64 bits"
            place.refuse(
                position,
                f"the weight {short_integer(int(weight))} cannot be held: {others}",
                "scale the weights down, or give all as floats",
            )
    return np.asarray(weights, dtype)


def _holds(dtype: np.dtype[Any], number: int) -> bool:
    """Whether a dtype holds an integer exactly."""
    if dtype.kind == "f":
        return abs(number) < 1 << 63 and int(float(number)) == number
    return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)


def _open_ends(description: str, values: dict[str, Array], request: Request) -> Source:
    kinds = {name: _id_kind(values[name], row_place(description, name, 0)) for name in ("source", "target")}
    if kinds["source"] != kinds["target"] and values["source"].size:
        raise InputError(f"{description}: the sources are {kinds['source']} and the targets {kinds['target']}; convert one")
    return _open(description, kinds["source"], values, request)


def open_edge_array(edges: Array, request: Request) -> Source:
    """Open one (num_edges, 2) array."""
    description = "edge array"
    check_edge_shape(description, edges.shape)
    ends = {name: edges[:, i] for i, name in enumerate(("source", "target"))}
    for name, values in ends.items():
        refuse_masked(values, row_place(description, name, 0))
    kind = _id_kind(ends["source"], row_place(description, "source", 0))
    return _open(description, kind, {name: np.asarray(values) for name, values in ends.items()}, request)


def open_sliced(edges: Any, request: Request) -> Source:
    """Open one (num_edges, 2) array of any library (Zarr, h5py, PyTorch), which is asked for a range of rows at a time, by one thread.

    Where it has chunks each is read once, as a whole.
    """
    description = f"{type(edges).__module__.partition('.')[0]} {type(edges).__name__}"
    check_edge_shape(description, tuple(edges.shape))
    num_rows, chunks, one_at_a_time = int(edges.shape[0]), getattr(edges, "chunks", None), threading.Lock()
    chunk_rows = chunks[0] if isinstance(chunks, tuple) and isinstance(chunks[0], int) else 1

    def rows(low: int, high: int) -> Array:
        try:
            with one_at_a_time:
                found = edges[low:high]
                block = np.asarray(found)
        except Exception as error:  # of any library, such as one whose array is on a GPU
            raise InputError(f"{description}, rows {low} to {high}: they cannot be read ({reason(error)}); give a NumPy array") from error
        if block.shape != (high - low, 2):
            raise InputError(f"{description}, rows {low} to {high}: they have the shape {block.shape}; give a NumPy array")
        if np.ma.isMaskedArray(found):
            for i, name in enumerate(ENDS):
                refuse_masked(found[:, i], row_place(description, name, low))
        return block

    def stream(first: int, stop: int, step: int, block_rows: int) -> Iterator[EdgeBlock]:
        for start, end in blocks_of(first * step, min(stop * step, num_rows), step):
            part = rows(start, end)
            for low, high in blocks_of(start, end, block_rows):
                yield layout.block(dict(zip(ENDS, part[low - start : high - start].T, strict=True)).__getitem__, low)
            del part

    def streams(block_rows: int) -> list[EdgeStream]:
        step = chunk_rows * max(1, block_rows // chunk_rows)
        return [partial(stream, first, stop, step, block_rows) for first, stop in split_rows(-(-num_rows // step), 1)]

    kind = _id_kind(rows(0, min(1, num_rows))[:, 0], row_place(description, ENDS[0], 0))
    layout = fixed_layout(description, {}, request, kind=kind, make=ArrayLayout)
    chunk_bytes = 2 * chunk_rows * int(edges.dtype.itemsize) if chunk_rows > 1 else 0
    return layout.open(streams, num_rows, readers=(MAX_STREAMS, 2 * chunk_bytes))


def check_edge_shape(description: str, shape: tuple[int, ...]) -> None:
    """Refuse an array that is not (num_edges, 2)."""
    if len(shape) != 2 or shape[1] != 2:
        remedy = "transpose it (array.T)" if len(shape) == 2 and shape[0] == 2 else "give one row for each edge: (num_edges, 2)"
        raise InputError(f"{description} has shape {shape}; {remedy}")


def _open(description: str, kind: IdKind, values: dict[str, Array], request: Request) -> Source:
    beside = {name: numpy_column_dtype(array.dtype).name for name, array in values.items() if name == "weight"}
    layout = fixed_layout(description, beside, request, kind=kind, make=ArrayLayout)

    def read(low: int, high: int) -> EdgeBlock:
        return layout.block(lambda name: values[name][low:high], low)

    num_rows = values["source"].size
    return layout.open(range_streams(num_rows, read), num_rows)


def _as_array(values: Any, place: Place) -> Array:
    refuse_masked(values, place)
    if isinstance(values, list) and (kinds := set(map(type, values))) & {bool, np.bool_} and not kinds <= {bool, np.bool_}:
        position = next(i for i, value in enumerate(values) if isinstance(value, bool | np.bool_))
        place.refuse(position, f"the id {values[position]!r} is neither an integer nor a string", "convert it")
    what = f"{place.description}: the {place.column}"
    try:
        array = np.asarray(values)
        if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
            array = np.asarray(values, dtype=object)  # NumPy makes [1, "a"] text; keep what was given, so that it is refused
    except (ValueError, OverflowError) as error:
        raise InputError(f"{what} is not an array of ids ({error}); give a NumPy array") from error
    if array.ndim != 1:
        raise InputError(f"{what} array has shape {array.shape}; give one id for each edge, in one dimension")
    return array


def _id_kind(values: Array, place: Place) -> IdKind:
    """Kind by dtype, or by the first value of an object array; the rest is checked as it is read."""
    if is_integer(values) or (values.size == 0 and values.dtype.kind == "O"):
        return "int64"
    if values.dtype.kind in "UT" or (values.dtype.kind == "O" and isinstance(values[0], str)):
        return "string"
    if values.dtype.kind == "O" and isinstance(values[0], int | float | np.integer | np.floating) and not isinstance(values[0], bool):
        return "int64"
    found = type(values[0]).__name__ if values.dtype.kind == "O" else str(values.dtype)
    raise InputError(f"{place.description}, column {place.column!r}: ids must be integers or strings, not {found}; convert them")


def object_numbers(values: Array, place: Place) -> Array:
    """Return Python numbers as a NumPy array that holds them exactly."""
    for position, value in enumerate(values):
        if value is None:
            place.refuse(position, "the id is missing (None)", "fill it in or drop the row")
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            place.refuse(position, f"the id {value!r} is not a number as the first one is", "give only strings or only integers")
        if not isinstance(value, float | np.floating) and not -(2**63) <= value < 2**64:
            place.refuse(position, f"the id {short_integer(int(value))} overflows int64", "renumber the ids, or give them as strings")
    if any(isinstance(value, float | np.floating) for value in values):
        return values.astype(np.float64)
    return values.astype(np.uint64 if any(value > 2**63 - 1 for value in values) and all(value >= 0 for value in values) else np.int64)
