"""The kernels of a search, with arguments of the types that it calls them with; brings them into memory.

Kernels with an entry for each combination of dtypes, as those of products, are loaded one by one (`oocgraph.compiled.load`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oocgraph.compiled.deques import Member, new_counts, new_deques
from oocgraph.compiled.load import Call, load_kernels
from oocgraph.kernels import cpu, few, gather, partition
from oocgraph.kernels.rows import NO_LONG_ROWS, Marks, Tails, explicit_rows, new_long_rows, no_files, no_planes
from oocgraph.kernels.serial_levels import LOG_COLUMNS, search_levels
from oocgraph.types import Array, Progress, ignore_progress


def load_search_kernels(
    index_dtype: str, progress: Progress = ignore_progress, *, parts: bool = False, device: bool = False, only_tiny: bool = False
) -> None:
    """Bring every kernel of a search (of a partition's part in one, of one on a device) into memory, compiling what is not cached.

    With `only_tiny` those of levels that are not tiny may come later: a graph of few edges may have none.
    """
    if not _loaded & {(index_dtype, parts, device, False), (index_dtype, parts, device, only_tiny)}:
        load_kernels(search_calls(index_dtype, parts=parts, device=device, only_tiny=only_tiny), progress)
        _loaded.add((index_dtype, parts, device, only_tiny))


_loaded: set[tuple[str, bool, bool, bool]] = set()
"""Kernels that are in memory: to look for their files in the cache takes longer than a search of a small graph."""


class _Example(NamedTuple):
    """What kernels of a search are called with, of a graph of two vertices and one edge."""

    rows: Any
    planes: Any
    resident: Array
    files: Any
    bits: Array
    marks: Marks
    buffer: Array
    numbers: Array
    none: Array


def _example(dtype: np.dtype[Any]) -> _Example:
    levels = np.zeros(8, np.uint8)
    return _Example(
        rows=explicit_rows(np.empty(0, np.int64))._replace(value=np.ones(1, np.int64)),
        planes=no_planes(dtype, 2),
        resident=np.array([1, 0], dtype),
        files=no_files(10),
        bits=np.zeros(1, np.uint64),
        marks=Marks(np.zeros(2, dtype), levels[:2], levels.view(np.int32), False, 1),
        buffer=np.zeros(8192, np.uint8),
        numbers=np.zeros(4, np.int64),
        none=np.empty(0, np.int64),
    )


def search_calls(index_dtype: str, *, parts: bool = False, device: bool = False, only_tiny: bool = False) -> list[Call]:
    """Return every kernel of a search, the longest to compile first; if asked those of a partition, of a device."""
    dtype = np.dtype(index_dtype)
    x = _example(dtype)
    owners = (x.bits, np.zeros(1, np.uint32)) if parts else (None, None)
    calls = [*_calls_of_tiny_levels(x, dtype, owners), *([] if only_tiny else _calls_of_levels(x, dtype, owners))]
    if parts:
        calls += _calls_of_parts(dtype)
    elif not only_tiny:
        calls += few.few_calls(index_dtype)
    if device:
        offset, out = np.arange(3), np.empty(2, dtype)
        calls += [
            (gather.cut_rows, (offset, 0, 2, 0, np.empty((2, 2), np.int64))),
            (gather.gather_rows, (offset, offset, 0, 2, 0, 2, x.resident, x.files, 0, x.buffer, x.buffer.view(dtype), out)),
            (gather.copy_rows, (offset, offset, 0, 0, 0, 2, x.resident, x.resident, 0, out)),
        ]
    return calls


def _calls_of_tiny_levels(x: _Example, dtype: np.dtype[Any], owners: tuple[Any, Any]) -> list[Call]:
    """Return what every search calls, and all that levels of few edges need."""
    queues = np.zeros((4, 4), np.int64)
    return [
        (cpu.push_levels, (
            queues, x.numbers, x.numbers, x.rows, x.planes, x.resident, x.files, x.none, x.buffer, x.buffer.view(dtype), x.none, x.bits,
            *owners, x.marks, x.none, queues,
        )),
        *([] if owners[0] is not None else [(search_levels, (
            x.rows, x.resident, x.rows, x.planes, x.resident, x.numbers, x.numbers, queues, *[x.bits] * 4, x.marks, NO_LONG_ROWS,
            np.iinfo(dtype).max, x.none, np.empty((1, LOG_COLUMNS)),
        ))]),
        (cpu.count_edges, (0, 1, x.rows, x.bits)),
        (cpu.list_vertices, (x.bits, queues[0])),
        (cpu.mark_vertices, (queues[0], 1, x.bits)),
        (cpu.widen_levels, (x.marks.level8, x.marks.level32, 2)),
        (cpu.finish_search, (0, 1, 2, x.bits, np.iinfo(dtype).max, x.marks)),
    ]  # fmt: skip


def _calls_of_levels(x: _Example, dtype: np.dtype[Any], owners: tuple[Any, Any]) -> list[Call]:
    """Return what pushes and pulls of any level call."""
    member = Member(new_deques(1), 0, np.zeros(1, np.int64), steals=False, counts=new_counts(1)[0])
    tails = Tails(x.none, np.empty((0, 2), np.int64), np.empty(0, dtype))
    in_memory = x.rows, x.planes, x.resident
    read = x.files, 0, x.buffer, x.buffer.view(dtype)
    found, long_rows = (x.bits, x.bits, x.bits, x.marks), new_long_rows(1, 1)
    return [
        (cpu.push_rows, (0, 2, *in_memory, 0, *read, x.bits, x.bits, *owners, x.marks)),
        (cpu.pull_tails, (0, 1, x.rows, 0, 2, *read, tails, x.numbers, *found, long_rows)),
        (cpu.pull_part, (0, 0, 0, x.resident, x.files, x.buffer, x.buffer.view(dtype), x.bits, long_rows)),
        (cpu.pull_heads, (0, 1, 2, *in_memory, 0, *found, long_rows)),
        (cpu.pull_heads_in_pieces, (member, 1, 1, 2, *in_memory, *found, long_rows)),
        (cpu.sample_heads, (1, 2, *in_memory, x.bits, x.bits)),
        (cpu.count_rows, (x.none, 2, x.rows, 0, 2, 10, x.bits, False, np.zeros((1, 4), np.int64))),
        (cpu.fill_cache, (x.none, 0, 0, x.files, x.none, x.buffer)),
        (cpu.pull_kept, (tails, 0, 0, *found)),
        (cpu.difference, (0, 1, x.bits, x.bits, x.bits)),
    ]


def _calls_of_parts(dtype: np.dtype[Any]) -> list[Call]:
    """Return what only partitions call."""
    numbers, bits, rank, values = np.zeros(1, np.int64), np.zeros(1, np.uint64), np.zeros(1, np.uint32), np.zeros(2, dtype)
    return [
        (partition.cut_blocks, (numbers, numbers, 2, 2, 2, numbers)),
        (partition.scatter_bits, (numbers, numbers, numbers, bits, bits)),
        (partition.gather_bits, (numbers, numbers, numbers, bits, bits)),
        (partition.own_bits, (numbers, numbers, bits)),
        (partition.rank_words, (bits, rank)),
        (partition.to_global, (values, 1, numbers, numbers, numbers, values)),
        (partition.take_marked, (bits, values, values)),
        (partition.take_runs, (numbers, numbers, numbers, values, 0, values)),
        (cpu.list_vertices, (bits, values)),
        (cpu.list_vertices, (bits, numbers)),
        (cpu.add_vertices, (values, bits)),
    ]
