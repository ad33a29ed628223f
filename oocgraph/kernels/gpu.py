"""The steps of a search on a GPU: launches of the kernels in ``kernels/cuda``, with the names and arguments of `oocgraph.kernels.cpu`.

In: arrays in device memory (`oocgraph.arrays.Device`). Bitmaps are those of the CPU kernels. A launch returns at once; what a CPU kernel
returns is added to `GpuKernels.counters`, which `GpuKernels.read` brings to the host. A pull and a push also mark what they find, so that
the frontier of the next level needs no pass of its own.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.errors import ArgumentError
from oocgraph.types import Array

SOURCES = ("common", "scan", "subgraph", "pull", "frontier", "expand", "levels")
"""The files of ``kernels/cuda`` that searches use, in the order in which they are joined to one source."""

BLOCK = 256
"""Threads in a block, as in ``common.cu``."""

PULL_BLOCK = 512
"""Threads in a block of `pull_planes`, each with its copy of the frontier's first words."""

PULL_BLOCKS = {4: 3, 8: 2}
"""Such blocks that a multiprocessor holds, by the bytes of an id; see ``pull.cu``."""

LEVELS_BLOCK = 512
"""Threads of the one block of `push_levels`."""

BLOCKS_PER_MULTIPROCESSOR = 8

ROW_BLOCKS = {4: 5, 8: 4}
"""Blocks of `pull_resident` and `pull_tails` that a multiprocessor holds."""

EXPAND_BLOCKS = {4: 5, 8: 4}
"""Blocks of a push that a multiprocessor holds, by the bytes of an id: more would run in a second, partly filled wave."""

EDGES_PER_THREAD = 4
"""Of a push: a block takes at least 1,024 edges at once."""

SCAN_TILE = 2048
"""Entries that a block sums at once, as in ``scan.cu``."""

PLANE_ALIGNMENT = 32
"""Planes begin at multiples of this many entries."""

SERIAL, WARP, SCAN, HYBRID = range(4)
"""Ways to gather neighbours in a push, slowest first: see ``expand.cu``."""

EVERY_EDGE = np.iinfo(np.int64).max // 4
"""A bound that no edge number reaches, and that kernels can still add to."""


_NULL = np.uint64(0)
"""A pointer to nothing."""


class Counter(IntEnum):
    """Slots of `GpuKernels.counters`, as in ``common.cu``."""

    FRONTIER_VERTICES = 0
    FRONTIER_EDGES = 1
    FRONTIER_PULL_EDGES = 2
    FOUND = 3
    UNDECIDED = 4
    SAMPLED = 5
    PROBES = 6
    SAMPLE_FOUND = 7
    SAMPLE_UNDECIDED = 8
    NUM_ROWS = 9
    NUM_EDGES = 10
    NUM_PAGES = 11
    QUEUE_SIZE = 12
    STATUS = 13
    SCRATCH = 14


NUM_COUNTERS = 16

_PLAIN = (
    "sum_marked",
    "scan_marked",
    "sum_values",
    "scan_values",
    "scan_sums",
    "count_pages",
    "count_edges",
    "fill_words",
    "copy_words",
    "widen_levels",
)
_OF_INDEX = (
    "list_rows", "mask_degrees", "pull_planes", "pull_resident", "pull_tails", "close_rows", "sample_heads", "add_vertices", "begin_search",
    "finish_search", "push_heads", "push_levels", "take",
)  # fmt: skip


@cache
def cuda_source(names: tuple[str, ...] = SOURCES) -> str:
    """Return the CUDA C++ source of some files, by default of all that searches use."""
    folder = files("oocgraph.kernels").joinpath("cuda")
    return "\n".join(folder.joinpath(f"{name}.cu").read_text() for name in names)


def index_name(dtype: np.dtype[Any]) -> str:
    """Return what CUDA C++ calls ids of `dtype`.

    Raises
    ------
    ArgumentError
        Kernels are compiled for uint32 and int64 only.
    """
    index = {np.dtype(np.uint32): "unsigned int", np.dtype(np.int64): "long long"}.get(np.dtype(dtype))
    if index is None:
        raise ArgumentError(f"there are no CUDA kernels for ids of dtype {dtype}; an index dtype is uint32 or int64")
    return index


def kernel_names(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the names of all kernels of searches for ids of `dtype`; see `index_name`."""
    index = index_name(dtype)
    expands = [f"expand<{index}, {method}>" for method in (SERIAL, WARP, SCAN, HYBRID)]
    return (*_PLAIN, *(f"{name}<{index}>" for name in _OF_INDEX), *expands)


def search_source(dtype: np.dtype[Any]) -> Source:
    """Return what searches of ids of `dtype` compile."""
    return Source(cuda_source(), kernel_names(dtype))


class GpuKernels:
    """The compiled kernels of one device for one index dtype, launched on one stream.

    Parameters
    ----------
    device
        Where the arrays are.
    dtype
        Of neighbour ids and parents: uint32 or int64.

    Attributes
    ----------
    stream
        Where kernels are launched.
    counters : (16,) int64
        On the device; see `Counter`.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any]) -> None:
        self.device, self.dtype = device, np.dtype(dtype)
        self._names = kernel_names(self.dtype)
        self._index = self._names[len(_PLAIN)].partition("<")[2].rstrip(">")
        module = device.module(*search_source(self.dtype))
        self._functions = {name: module.get_function(name) for name in self._names}
        self._functions |= {name: self._functions[f"{name}<{self._index}>"] for name in _OF_INDEX}
        self._max_blocks = BLOCKS_PER_MULTIPROCESSOR * device.num_multiprocessors
        self.stream = device.stream()
        self.counters = device.empty(NUM_COUNTERS, np.int64)
        self._host_counters = device.pinned(8 * NUM_COUNTERS).view(np.int64)
        self._slots = [self.counters[slot : slot + 1] for slot in range(NUM_COUNTERS)]
        self._num_rows, self._num_edges = self._slots[Counter.NUM_ROWS], self._slots[Counter.NUM_EDGES]
        self.reset()
        device.synchronize(self.stream)  # what lets go of it unused must not leave a kernel that writes to its counters

    def read(self) -> Array:
        """Wait for the kernels launched so far; return the counters on the host: (16,) int64, valid until the next call."""
        self.device.copy(self.counters, self._host_counters, self.stream)
        self.device.synchronize(self.stream)
        return self._host_counters

    def reset(self) -> None:
        """Set all counters to zero."""
        self.fill(self.counters, 0)

    def clear(self, slot: Counter) -> None:
        """Set one counter to zero."""
        self.fill(self._slots[slot], 0)

    def _launch(self, name: str, num_threads: int, *args: Any, block: int = BLOCK, max_blocks: int | None = None) -> None:
        grid = min(max(1, -(-num_threads // block)), max_blocks or self._max_blocks)
        self.device.launch(self._functions[name], grid, block, args, self.stream)

    # Bitmaps.

    def fill(self, words: Array, value: int) -> None:
        """Set all 32-bit words of an array to `value`."""
        count = words.nbytes // 4
        if count:
            self._launch("fill_words", count, words, np.int64(count), np.uint32(value))

    def copy(self, source: Array, target: Array) -> None:
        """Copy a bitmap."""
        self._launch("copy_words", 2 * source.size, source, target, np.int64(2 * source.size))

    def mark_vertices(self, vertices: Array, count: int, rows: Array) -> None:
        """Set the bits of ``vertices[:count]`` (index dtype) in `rows` after clearing it."""
        self.fill(rows, 0)
        self.add_vertices(vertices, count, rows)

    def add_vertices(self, vertices: Array, count: int, rows: Array) -> None:
        """Set the bits of ``vertices[:count]`` in `rows`."""
        if count:
            self._launch("add_vertices", count, vertices, np.int64(count), rows)

    def begin_search(
        self, sources: Array, frontier: Array, visited: Array, parent: Array, level8: Array, level32: Array, *, wide: bool
    ) -> None:
        """Visit `sources` (index dtype) at level 0; they are added to `frontier`."""
        if sources.size:
            marks = (parent, level8, level32, np.int32(wide))
            self._launch("begin_search", sources.size, sources, np.int64(sources.size), frontier, visited, *marks)

    def count_edges(self, lookup: Lookup, rows: Array, slot: Counter, slot_edges: Counter) -> None:
        """Add the vertices marked in `rows` and the sum of their degrees to two counters."""
        words = 2 * rows.size
        slots = np.int32(slot), np.int32(slot_edges)
        self._launch("count_edges", words, rows, np.int64(words), *lookup.arguments, *slots, self.counters)

    def widen_levels(self, level8: Array, level32: Array, num_vertices: int) -> None:
        """Turn one-byte levels into int32 in place: `level8` and `level32` start at the same address."""
        stop = num_vertices
        while stop:
            start = -(-stop // 4) if stop > 1 else 0  # the targets of start .. stop - 1 lie behind byte 4 * start >= stop
            self._launch("widen_levels", stop - start, np.int64(start), np.int64(stop), level8, level32)
            stop = start

    def finish_search(
        self, num_vertices: int, visited: Array, parent: Array, none: int, level8: Array, level32: Array, *, wide: bool
    ) -> None:
        """Set parent and level of the unvisited vertices to the sentinels."""
        args = (visited, parent, self.dtype.type(none), level8, level32, np.int32(wide))
        self._launch("finish_search", num_vertices, np.int64(num_vertices), *args)

    def take(self, vertices: Array, count: int, values: Array, out: Array) -> None:
        """Write ``values[vertices[:count]]`` (both index dtype) to `out`."""
        if count:
            self._launch("take", count, vertices, np.int64(count), values, out)

    # The dependency subgraph.

    def exclusive_sum_marked(self, rows: Array, tile_sum: Array, positions: Array) -> None:
        """Write how many vertices are marked before each 32-bit word of `rows`, and behind the last one, to `positions`."""
        words = np.int64(2 * rows.size)
        threads = -(-int(words) // SCAN_TILE) * BLOCK
        self._launch("sum_marked", threads, rows, words, tile_sum)
        self._launch("scan_sums", BLOCK, tile_sum, words, _NULL, positions[int(words) :])
        self._launch("scan_marked", threads, rows, words, tile_sum, positions)

    def exclusive_sum(self, values: Array, most: int, tile_sum: Array, out: Array) -> None:
        """Write the exclusive prefix sums of ``values[:NUM_ROWS]`` (at most `most`) to `out`, their total behind them and to NUM_EDGES."""
        threads = -(-max(1, most) // SCAN_TILE) * BLOCK
        self._launch("sum_values", threads, values, self._num_rows, tile_sum)
        self._launch("scan_sums", BLOCK, tile_sum, np.int64(0), self._num_rows, self._num_edges)
        self._launch("scan_values", threads, values, self._num_rows, tile_sum, out)

    def list_rows(self, rows: Array, positions: Array, row0: int, capacity: int, vertex: Array) -> None:
        """List the marked vertices from the `row0`-th on, at most `capacity`; NUM_ROWS says how many."""
        words = 2 * rows.size
        self._launch("list_rows", words, rows, positions, np.int64(words), np.int64(row0), np.int64(capacity), vertex, self.counters)

    def mask_degrees(
        self, vertex: Array, most: int, lookup: Lookup, start: Array, degree: Array, *, skip: int = 0, low: int = 0, high: int = EVERY_EDGE,
        page_shift: int = 0, behind: int = 0, window: int = 0,
    ) -> None:  # fmt: skip
        """Find the part of each row behind its first `skip` edges and within ``low .. high - 1``; of that, a window of its pages.

        Pages of ``1 << page_shift`` edges: those behind the first `behind`, `window` of them (0: all).
        """
        bounds = np.int64(skip), np.int64(low), np.int64(high), np.int32(page_shift), np.int64(behind), np.int64(window)
        self._launch("mask_degrees", most, vertex, *lookup.arguments, *bounds, start, degree, self.counters)

    def count_pages(self, most: int, start: Array, degree: Array, page_shift: int, *, first_pages_only: bool) -> None:
        """Add the distinct pages of the rows' parts to NUM_PAGES."""
        self._launch("count_pages", most, start, degree, np.int32(page_shift), np.int32(first_pages_only), self.counters)

    # Pull.

    def pull_heads(
        self, w0: int, w1: int, num_vertices: int, lookup: Lookup, planes: Array, plane_offset: Array, plane_length: Array, resident: Array,
        base: int, frontier: Array, visited: Array, undecided: Array, next_frontier: Array, marks: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Pull over what is in device memory: planes first, then the resident part of each list; adds to FOUND, sets UNDECIDED.

        See `oocgraph.kernels.cpu.pull_heads`; words are those of 64 bits, and `w0` and `w1` are even or the number of words.
        ``next_frontier`` is overwritten as ``undecided`` is. `marks` are ``parent, level8, level32, wide, level``.
        """
        words, num_planes = 2 * visited.size, plane_length.size - 1
        groups = np.int64(w0 // 2), np.int64(-(-w1 // 2))
        bitmaps = (visited, undecided, next_frontier)
        if not resident.size:  # else what the planes leave is not what is left
            self.clear(Counter.UNDECIDED)
        self._launch(
            "pull_planes", int(groups[1] - groups[0]) * 32, *groups, np.int64(words), np.int64(num_vertices), planes,
            plane_offset, plane_length, np.int32(num_planes), frontier, np.int64(2 * frontier.size), *bitmaps, *marks, self.counters,
            block=PULL_BLOCK, max_blocks=PULL_BLOCKS[self.dtype.itemsize] * self.device.num_multiprocessors,
        )  # fmt: skip
        if resident.size:
            self.pull_resident(lookup, num_planes, resident, base, frontier, *bitmaps, marks)

    def pull_resident(
        self, lookup: Lookup, skip: int, edges: Array, base: int, frontier: Array, visited: Array, undecided: Array, next_frontier: Array,
        marks: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Pull the undecided over ``edges``, which are ``indices`` from `base` on; sets UNDECIDED to those whose lists go on elsewhere."""
        words = 2 * visited.size
        self.clear(Counter.UNDECIDED)
        self._launch(
            "pull_resident", 32 * words, np.int64(words), *lookup.arguments, np.int64(skip), edges, np.int64(base),
            np.int64(edges.size), frontier, visited, undecided, next_frontier, *marks, self.counters,
            max_blocks=ROW_BLOCKS[self.dtype.itemsize] * self.device.num_multiprocessors,
        )  # fmt: skip

    def pull_tails(
        self, vertex: Array, most: int, begin: Array, offset: Array, e0: int, e1: int, edges: Array, base: int, frontier: Array,
        visited: Array, undecided: Array, next_frontier: Array, marks: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Pull the rows of a batch over edges ``e0 .. e1 - 1`` of their concatenation."""
        piece = np.int64(e0), np.int64(e1), edges, np.int64(base)
        bitmaps = (frontier, visited, undecided, next_frontier)
        self._launch(
            "pull_tails", 32 * most, vertex, begin, offset, *piece, *bitmaps, *marks, self.counters,
            max_blocks=ROW_BLOCKS[self.dtype.itemsize] * self.device.num_multiprocessors,
        )  # fmt: skip

    def close_rows(self, vertex: Array, most: int, start: Array, degree: Array, lookup: Lookup, undecided: Array) -> None:
        """After a batch: rows that end in it are not undecided any more; UNDECIDED gets those that go on."""
        self._launch("close_rows", most, vertex, start, degree, *lookup.arguments, undecided, self.counters)

    def sample_heads(
        self, step: int, num_vertices: int, lookup: Lookup, planes: Array, plane_offset: Array, plane_length: Array, resident: Array,
        frontier: Array, visited: Array, *, most: int = EVERY_EDGE,
    ) -> None:  # fmt: skip
        """Try what a pull would do for a sample; see `oocgraph.kernels.cpu.sample_heads`. Lists are looked at up to `most` edges."""
        words = 2 * visited.size
        self._launch(
            "sample_heads", 32 * (-(-visited.size // step) * 2), np.int64(step), np.int64(words), np.int64(num_vertices),
            *lookup.arguments, planes, plane_offset, plane_length, np.int32(plane_length.size - 1), resident, np.int64(resident.size),
            np.int64(most), frontier, visited, self.counters,
        )  # fmt: skip

    # Push.

    def push_heads(
        self, vertex: Array, most: int, lookup: Lookup, low: int, planes: Array, plane_offset: Array, plane_length: Array,
        closed: Array, next_frontier: Array, owners: tuple[Any, Any], marks: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Push the neighbours of a batch's rows that the planes hold, from edge `low` on."""
        heads = (planes, plane_offset, plane_length, np.int32(plane_length.size - 1))
        bitmaps = (closed, next_frontier, *_owners(owners))
        self._launch("push_heads", most, vertex, *lookup.arguments, np.int64(low), *heads, *bitmaps, *marks, self.counters)

    def push_rows(
        self, vertex: Array, begin: Array, offset: Array, e0: int, e1: int, edges: Array, base: int, closed: Array,
        next_frontier: Array, owners: tuple[Any, Any], marks: tuple[Any, ...], queue: Array, *, num_edges: int, method: int = HYBRID,
    ) -> None:  # fmt: skip
        """Push the rows of a batch over edges ``e0 .. e1 - 1`` of their concatenation, about `num_edges`; `queue` gets what is found.

        `e1` may be `EVERY_EDGE` where the host does not know how many there are.
        """
        threads = num_edges if method == SERIAL else num_edges // EDGES_PER_THREAD
        piece = np.int64(e0), np.int64(e1), edges, np.int64(base)
        self._launch(
            f"expand<{self._index}, {method}>", threads, vertex, begin, offset, self.counters, *piece, closed, next_frontier,
            *_owners(owners), *marks, queue, np.int64(queue.size), self.counters,
            max_blocks=EXPAND_BLOCKS[self.dtype.itemsize] * self.device.num_multiprocessors,
        )  # fmt: skip

    def push_levels(
        self, queues: tuple[Array, Array], state: Array, limits: Array, log: Array, lookup: Lookup, planes: Array, plane_offset: Array,
        plane_length: Array, edges: Array, visited: Array, marks: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Push many tiny levels in one launch; see ``levels.cu``."""
        heads = (planes, plane_offset, plane_length, np.int32(plane_length.size - 1), edges, np.int64(edges.size))
        self._launch(
            "push_levels", LEVELS_BLOCK, *queues, np.int64(queues[0].size), state, limits, log, np.int64(log.size // 2),
            *lookup.arguments, *heads, visited, *marks[:4], block=LEVELS_BLOCK, max_blocks=1,
        )  # fmt: skip


class Lookup:
    """A row lookup on the device (see `oocgraph.kernels.rows`)."""

    def __init__(self, indptr: Array, first: Array, edge: Array, value: Array) -> None:
        self.indptr, self.first, self.edge, self.value = indptr, first, edge, value
        self.arguments = (indptr, np.int64(indptr.size), first, edge, value, np.int64(first.size))


def marks(parent: Array, level8: Array, level32: Array, *, wide: bool, level: int) -> tuple[Any, ...]:
    """Return the arguments that say where what is found is noted."""
    return parent, level8, level32, np.int32(wide), np.int32(level)


def _owners(owners: tuple[Any, Any]) -> tuple[Any, Any]:
    return (_NULL, _NULL) if owners[0] is None else owners
