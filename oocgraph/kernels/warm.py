"""Loads the compiled kernels of a search; where the disk cache is cold they are compiled first, in a process of its own.

``python -m oocgraph.kernels.warm uint32`` fills the cache, with a further ``parts`` for searches on a cluster and ``device`` for those
that gather edges for a GPU. Kernels with an entry for each combination of dtypes, as those of products, are loaded
one by one (`oocgraph.kernels.load`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.kernels import cpu, gather, partition
from oocgraph.kernels.deques import Member, new_counts, new_deques
from oocgraph.kernels.load import compile_elsewhere
from oocgraph.kernels.rows import Marks, Tails, explicit_rows, new_long_rows, no_files, no_planes
from oocgraph.types import Progress, ignore_progress

SEARCH_KERNELS = (
    "pull_heads", "pull_heads_in_pieces", "sample_heads", "count_rows", "pull_tails", "pull_kept", "push_rows", "push_levels",
    "fill_cache", "count_edges", "difference", "list_vertices", "mark_vertices", "widen_levels", "finish_search",
)  # fmt: skip


PART_KERNELS = (
    "scatter_bits", "gather_bits", "own_bits", "rank_words", "to_global", "take_marked", "put_marked", "take_runs"
)  # fmt: skip

DEVICE_KERNELS = ("cut_rows", "gather_rows", "copy_rows")


def cache_is_cold(*, parts: bool = False, device: bool = False) -> bool:
    """Whether some kernel of a search (of a partition's part in one, of one on a device) has no entry in numba's disk cache."""
    kernels = [getattr(cpu, name) for name in SEARCH_KERNELS] + [getattr(partition, name) for name in PART_KERNELS if parts]
    for kernel in kernels + [getattr(gather, name) for name in DEVICE_KERNELS if device]:
        name = kernel.__name__
        if not any(Path(kernel.stats.cache_path).glob(f"*{name}-*.nbi")):
            return True
    return False


def load_search_kernels(index_dtype: str, progress: Progress = ignore_progress, *, parts: bool = False, device: bool = False) -> None:
    """Bring every kernel of a search (of a partition's part in one, of one on a device) into memory, compiling what is not cached."""
    kernels = index_dtype, parts, device
    if kernels in _loaded:
        return
    if cache_is_cold(parts=parts, device=device):
        progress("compiling kernels (once)", 0, 1)
        compile_elsewhere("oocgraph.kernels.warm", index_dtype, *(["parts"] if parts else []), *(["device"] if device else []))
        progress("compiling kernels (once)", 1, 1)
    call_search_kernels(index_dtype, parts=parts, device=device)
    _loaded.add(kernels)


_loaded: set[tuple[str, bool, bool]] = set()
"""Kernels that are in memory: to look for their files in the cache takes longer than a search of a small graph."""


def call_search_kernels(index_dtype: str, *, parts: bool = False, device: bool = False) -> None:
    """Call every kernel of a search once on a graph of two vertices and one edge; if asked those of a partition, of a device."""
    dtype = np.dtype(index_dtype)
    n = 2
    rows = explicit_rows(np.empty(0, np.int64))._replace(value=np.ones(1, np.int64))
    planes = no_planes(dtype, n)
    resident = np.array([1, 0], dtype)
    files = no_files(10)
    frontier, visited, undecided, before = np.ones(1, np.uint64), np.ones(1, np.uint64), np.zeros(1, np.uint64), np.ones(1, np.uint64)
    levels = np.zeros(4 * n, np.uint8)
    marks = Marks(np.zeros(n, dtype), levels[:n], levels.view(np.int32), False, 1)
    buffer = np.zeros(8192, np.uint8)
    cpu.sample_heads(1, n, rows, planes, resident, frontier, visited)
    cpu.pull_heads(0, 1, n, rows, planes, resident, 0, frontier, visited, undecided, marks, new_long_rows(0, 1))
    member = Member(new_deques(1), 0, np.zeros(1, np.int64), steals=False, counts=new_counts(1)[0])
    cpu.pull_heads_in_pieces(member, 1, 1, n, rows, planes, resident, frontier, visited, undecided, marks, new_long_rows(0, 1))
    cpu.count_rows(np.array([0, 1]), n, rows, 0, 2, 10, frontier, False, np.zeros((1, 4), np.int64))
    tails = Tails(np.empty(0, np.int64), np.empty((0, 2), np.int64), np.empty(0, dtype))
    cpu.pull_kept(tails, 0, 0, frontier, visited, undecided, marks)
    cpu.pull_part(0, 0, 0, resident, files, buffer, buffer.view(dtype), frontier, new_long_rows(1, 1))
    cpu.pull_tails(
        0, 1, rows, 0, 2, files, 0, buffer, buffer.view(dtype), tails, np.zeros(2, np.int64), frontier, visited, undecided, marks,
        new_long_rows(0, 1),
    )  # fmt: skip
    queues, state, limits = np.zeros((4, 4), np.int64), np.zeros(7, np.int64), np.zeros(6, np.int64)
    cache = np.zeros(4096, np.uint8)
    none = np.empty(0, np.int64)
    owners = (np.ones(1, np.uint64), np.zeros(1, np.uint32)) if parts else (None, None)
    cpu.push_rows(0, 2, rows, planes, resident, 0, files, 0, buffer, buffer.view(dtype), frontier, visited, *owners, marks)
    cpu.push_levels(
        queues, state, limits, rows, planes, resident, files, none, cache, cache.view(dtype), none, visited, *owners, marks, none,
        np.zeros((1, 4), np.int64),
    )  # fmt: skip
    cpu.fill_cache(none, 0, 0, files, none, cache)
    cpu.count_edges(0, 1, rows, frontier)
    cpu.difference(0, 1, visited, before, undecided)
    cpu.list_vertices(frontier, queues[0])
    cpu.mark_vertices(queues[0], 1, frontier)
    cpu.widen_levels(levels[:n], levels.view(np.int32), n)
    cpu.finish_search(0, 1, n, visited, np.iinfo(dtype).max, marks)
    if parts:
        _call_part_kernels(dtype)
    if device:
        offset, out = np.arange(3), np.empty(2, dtype)
        gather.cut_rows(offset, 0, 2, 0, np.empty((2, 2), np.int64))
        gather.gather_rows(offset[:2], offset, 0, 2, 0, 2, resident, files, 0, buffer, buffer.view(dtype), out)
        gather.copy_rows(offset[:2], offset, 0, 0, 0, 2, resident, resident, 0, out)


def _call_part_kernels(dtype: np.dtype[Any]) -> None:
    """Call every kernel that only partitions use, on one partition of two vertices."""
    first, stop, local = np.zeros(1, np.int64), np.full(1, 2, np.int64), np.zeros(1, np.int64)
    rows, out, rank = np.full(1, 3, np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.uint32)
    values, vertices = np.zeros(2, dtype), np.zeros(2, np.int64)
    partition.cut_blocks(np.zeros(1, np.int64), np.ones(1, np.int64), 2, 2, 2, np.zeros(4, np.int64))
    partition.scatter_bits(first, stop, local, rows, out)
    partition.gather_bits(first, stop, local, rows, out)
    partition.own_bits(first, stop, out)
    partition.rank_words(out, rank)
    partition.to_global(values, 1, first, stop, local, values)
    partition.take_marked(rows, values, values)
    partition.put_marked(rows, values, values)
    partition.take_runs(first, stop, local, values, 0, values)
    cpu.list_vertices(rows, values)
    cpu.list_vertices(rows, vertices)
    cpu.add_vertices(values, out)


if __name__ == "__main__":
    call_search_kernels(sys.argv[1], parts="parts" in sys.argv[2:], device="device" in sys.argv[2:])
