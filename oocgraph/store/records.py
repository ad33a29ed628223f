"""Edges as records: a key, and the columns beside it; in which order they sort, and what becomes of duplicates.

Records are (key, extra columns, row, weight); they sort by all of that, in that order, under a total order of bits,
so that the result depends neither on how edges were read nor on how they were binned. Duplicates agree in the key and all extra columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.errors import DuplicateEdgeError, InputError
from oocgraph.store.columns import distinct
from oocgraph.store.layout import WEIGHT
from oocgraph.store.sums import sums_of, terms, total
from oocgraph.types import MAX_UINT32_VERTICES, Array, Duplicates

Records = tuple[Array, ...]
"""Keys (uint64) and the columns beside them, all of one length."""

CODE = np.dtype(np.int32)
"""Strings of an edge column are stored as positions in the sorted list of its categories; -1 is null."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Columns of a build.

    Attributes
    ----------
    extra : dict
        Edge columns by name, in order: dtype, or None for strings.
    weight : (name, dtype) or None
        Column that holds the weight.
    duplicates
        What becomes of edges that occur more than once.
    """

    extra: dict[str, np.dtype[Any] | None]
    weight: tuple[str, np.dtype[Any]] | None
    duplicates: Duplicates

    @property
    def weight_name(self) -> str | None:
        """Name of the weight's column, where it is another than in the store, and none of an edge column."""
        name = None if self.weight is None else self.weight[0]
        return None if name == WEIGHT or name in self.extra else name

    @property
    def needs_rows(self) -> bool:
        """Whether edges must remember where they were read."""
        return self.duplicates == "error" or (self.duplicates == "first" and self.weight is not None)

    @property
    def sums(self) -> bool:
        """Whether the weights of duplicates are added."""
        return self.duplicates == "sum" and self.weight is not None

    @property
    def leaves_parallel(self) -> bool:
        """Whether several edges with the same ends may be left: all, or those that differ in an edge column."""
        return self.duplicates == "keep" or bool(self.extra)

    @property
    def stored(self) -> dict[str, np.dtype[Any]]:
        """Name and dtype of each stored column, in the order of the records."""
        columns = {name: CODE if dtype is None else dtype for name, dtype in self.extra.items()}
        return columns | ({WEIGHT: self.weight[1]} if self.weight else {})

    @property
    def binned(self) -> list[np.dtype[Any]]:
        """Dtypes of the columns while duplicates may remain: with the row, where it is needed."""
        stored = list(self.stored.values())
        at = len(self.extra)
        return [*stored[:at], np.dtype(np.uint64), *stored[at:]] if self.needs_rows else stored

    @property
    def binned_bytes(self) -> int:
        """Bytes that these columns take for each edge."""
        return sum(dtype.itemsize for dtype in self.binned)

    @property
    def attributes(self) -> dict[str, str]:
        """What the store says of its columns."""
        columns = {name: "string" if dtype is None else dtype.name for name, dtype in self.extra.items()}
        return columns | ({WEIGHT: self.weight[1].name} if self.weight else {})


def meant_duplicates(asked: Duplicates, *, weighted: bool) -> Duplicates:
    """Return what becomes of duplicates: with weights ``drop`` means ``min``; without them, what chooses a weight means ``drop``."""
    if weighted:
        return "min" if asked == "drop" else asked
    return "drop" if asked in ("min", "max", "sum", "first") else asked


def key_bits(num_ids: int) -> int:
    """Bits of a number below `num_ids` in a key, which has those of a row and of a column.

    Raises
    ------
    InputError
        An edge would not fit 64 bits.
    """
    if num_ids > MAX_UINT32_VERTICES:
        raise InputError(f"the graph has {num_ids:,} vertices; a build handles {MAX_UINT32_VERTICES:,} at most: split the graph")
    return max(1, (num_ids - 1).bit_length())


def order_bits(values: Array) -> Array:
    """Map numbers to unsigned integers of their size in the same order; -0.0 comes before 0.0, NaN last."""
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    bits: Array = np.ascontiguousarray(values).view(unsigned)
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    if values.dtype.kind == "i":
        bits = bits ^ sign
    if values.dtype.kind == "f":
        bits = np.where(bits & sign, ~bits, bits | sign)
    return bits


def canonical(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return a column as it is stored: one dtype, one NaN."""
    out = np.ascontiguousarray(values, dtype)
    if dtype.kind == "f" and np.isnan(out).any():
        out = np.where(np.isnan(out), dtype.type(np.nan), out)
    return out


def sort_records(records: Records) -> Records:
    """Sort by key and then by each column.

    Keys are sorted by themselves (AVX-512); only records whose keys tie are compared further.
    """
    keys, *columns = records
    order = np.argsort(keys)
    tied = np.zeros(keys.size + 1, bool)
    ordered = keys[order]
    np.equal(ordered[1:], ordered[:-1], out=tied[1:-1]) if keys.size else None
    positions = np.flatnonzero(tied[1:] | tied[:-1])
    if positions.size:
        subset = order[positions]
        inner = np.lexsort([*(order_bits(column[subset]) for column in reversed(columns)), keys[subset]])
        order[positions] = subset[inner]
    return tuple(values[order] for values in records)


def has_repeated(keys: Array) -> bool:
    """Whether a key occurs twice among sorted ones, which edges with the same ends have."""
    return bool((keys[1:] == keys[:-1]).any())


def group_starts(records: Records, num_extra: int) -> Array:
    """Positions where a new (key, extra columns) begins, in sorted records: (num_groups,) int64."""
    if not records[0].size:
        return np.empty(0, np.int64)
    new = np.zeros(records[0].size, bool)
    new[0] = True
    for values in records[: 1 + num_extra]:
        bits = order_bits(values)
        new[1:] |= bits[1:] != bits[:-1]
    return np.flatnonzero(new)


def drop_duplicates(records: Records, payload: Payload) -> Records:
    """Reduce sorted records to one for each group, and forget their rows.

    Raises
    ------
    DuplicateRows
        ``duplicates="error"`` and there is a group of several.
    InputError
        A sum of weights does not fit their dtype.
    """
    num_extra = len(payload.extra)
    starts = group_starts(records, num_extra)
    size = records[0].size
    if payload.duplicates == "keep" or starts.size == size:
        chosen, weight = np.arange(size), None
    else:
        chosen, weight = starts, None
        if payload.duplicates == "error":
            first = int(starts[np.flatnonzero(np.diff(np.append(starts, size)) > 1)[0]])
            rows = records[1 + num_extra]
            raise DuplicateRows(int(records[0][first]), (int(rows[first]), int(rows[first + 1])))
        if payload.duplicates == "max":
            chosen = np.append(starts[1:], size) - 1
        if payload.sums:
            weight = total(sums_of(terms(records[-1]), starts), records[-1].dtype)
    kept = [values[chosen] for values in records]
    if weight is not None:
        kept[-1] = weight
    if payload.needs_rows:
        del kept[1 + num_extra]
    return tuple(kept)


def clean_records(records: Records, payload: Payload, col_bits: int, *, drop_loops: bool) -> tuple[Records, Array]:
    """Sort records and drop duplicates, and self-loops if they are to be dropped; returns the vertices of these too, ascending.

    Raises
    ------
    DuplicateRows, InputError
        As of `drop_duplicates`.
    """
    looped = np.empty(0, np.uint64)
    if drop_loops:
        rows, cols = records[0] >> np.uint64(col_bits), records[0] & np.uint64((1 << col_bits) - 1)
        straight = rows != cols
        looped = distinct(cols[~straight])
        records = tuple(values[straight] for values in records)
    return drop_duplicates(sort_records(records), payload), looped


def reduce_blocks(blocks: Iterable[Records], payload: Payload) -> Iterator[Records]:
    """Do what `drop_duplicates` does with sorted records that come in blocks.

    Yields
    ------
    Records
        Those that remain, ascending.
    """
    if payload.sums:
        yield from _sum_blocks(blocks, payload)
        return
    held: Records | None = None  # of a group that may go on
    for block in blocks:
        records = block if held is None else _joined(held, block)
        kept = drop_duplicates(records, payload)
        if payload.duplicates == "keep":
            yield kept
            continue
        yield tuple(values[:-1] for values in kept)
        held = tuple(values[-1:].copy() for values in kept)
        if payload.needs_rows:
            at = 1 + len(payload.extra)
            held = (*held[:at], records[at][-1:].copy(), *held[at:])
    if held is not None:
        yield drop_duplicates(held, payload)


def _sum_blocks(blocks: Iterable[Records], payload: Payload) -> Iterator[Records]:
    """`reduce_blocks` where the weights of duplicates are added."""
    held: tuple[Records, Records] | None = None  # of a group that may go on
    for block in blocks:
        records, added = block[:-1], terms(block[-1])
        if held is not None:
            records, added = _joined(held[0], records), _joined(held[1], added)
        starts = group_starts(records, len(payload.extra))
        kept, sums = tuple(values[starts] for values in records), sums_of(added, starts)
        yield (*(values[:-1] for values in kept), total(tuple(values[:-1] for values in sums), block[-1].dtype))
        held = tuple(values[-1:].copy() for values in kept), tuple(values[-1:].copy() for values in sums)
    if held is not None:
        yield (*held[0], total(held[1], list(payload.stored.values())[-1]))


def _joined(one: Records, other: Records) -> Records:
    return tuple(np.concatenate(both) for both in zip(one, other, strict=True))


class DuplicateRows(Exception):
    """Two records of one edge, where none may be.

    Attributes
    ----------
    key
        The edge.
    rows
        Where two of its records were read.
    """

    def __init__(self, key: int, rows: tuple[int, int]) -> None:
        super().__init__(key, rows)
        self.key, self.rows = key, rows

    def named(self, name: Callable[[int], Any], col_bits: int, where: str) -> DuplicateEdgeError:
        """Return the message that names the edge and its rows, from 1 on; `name` returns the id at a position."""
        u, v = name(self.key >> col_bits), name(self.key & ((1 << col_bits) - 1))
        first, second = (row + 1 for row in self.rows)
        return DuplicateEdgeError(
            f"{where}: the edge {u!r} - {v!r} occurs in row {first} and again in row {second}; remove one, or set duplicates to "
            "drop, min, max, sum, first or keep"
        )
