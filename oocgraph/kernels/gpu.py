"""The steps of a search on a GPU: launches of the kernels in ``kernels/cuda``, with the names and arguments of `oocgraph.kernels.cpu`.

In: arrays in device memory (`oocgraph.arrays.Device`). Bitmaps are those of the CPU kernels. A launch returns at once; what a CPU kernel
returns is added to `GpuKernels.counters`, which `GpuKernels.read` brings to the host. A pull and a push also mark what they find, so that
the frontier of the next level needs no pass of its own.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from oocgraph.arrays import Device
from oocgraph.arrays.compiler import Source
from oocgraph.errors import ArgumentError
from oocgraph.types import Array

SOURCES = ("common", "scan", "subgraph", "pull", "frontier", "expand", "levels")
"""The files of ``kernels/cuda`` that searches use, in the order in which they are joined to one source."""

BLOCK = 256
"""Threads in a block, as in ``common.cu``."""

PULL_BLOCK = {4: 768, 8: 512}
"""Threads in a block of `pull_planes`, by the bytes of an id, as in ``pull.cu``."""

LEVELS_BLOCK = 512
"""Threads of the one block of `push_levels`."""

BLOCKS_PER_MULTIPROCESSOR = 8

ROW_BLOCKS = {4: 5, 8: 4}
"""Blocks of `pull_resident` and `pull_tails` that a multiprocessor holds."""

MAPPED_BLOCKS = 4
"""Blocks of `pull_mapped` that a multiprocessor holds."""

EXPAND_BLOCKS = {4: 5, 8: 4}
"""Blocks of a push that a multiprocessor holds, by the bytes of an id: more would run in a second, partly filled wave."""

EDGES_PER_THREAD = 4
"""Of a push: a block takes at least 1,024 edges at once."""

TILE_WORDS = 256
"""Words of 32 bits of a bitmap that a block lists at once, as in ``subgraph.cu``."""

LAUNCH_BITS = 14
"""Of an entry of a prefix sum: which launch has published it, as in ``scan.cu``."""

CLEARED_AT_ONCE = 4
"""Arrays that `GpuKernels.clear_all` takes."""

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
    NUM_BEYOND = 13
    SCRATCH = 14
    NUM_LINES = 15
    FRONTIER_PAGES = 16


NUM_COUNTERS = 20

_PLAIN = ("count_edges", "fill_words", "clear_words", "copy_words", "widen_levels")
_OF_INDEX = (
    "list_subgraph", "pull_planes", "pull_resident", "pull_mapped", "pull_tails", "close_rows", "sample_heads", "measure_frontier",
    "add_vertices", "begin_search", "finish_search", "push_heads", "push_levels", "take",
)  # fmt: skip


class Part(NamedTuple):
    """What is asked of each row: edges behind its first `skip` and within ``low .. high - 1``; of that, a window of its pages.

    Pages of ``1 << page_shift`` edges: those behind the first `behind`, `window` of them (0: all).
    """

    skip: int = 0
    low: int = 0
    high: int = EVERY_EDGE
    page_shift: int = 0
    behind: int = 0
    window: int = 0

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As kernels take it."""
        bounds = np.int64(self.skip), np.int64(self.low), np.int64(self.high)
        return *bounds, np.int32(self.page_shift), np.int64(self.behind), np.int64(self.window)


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


class Launcher:
    """Compiled kernels of one device, launched on one stream.

    Parameters
    ----------
    device
        Where the arrays are.
    source
        What is compiled.
    stream
        Where kernels are launched; by default a new one.
    """

    def __init__(self, device: Device, source: Source, stream: Any = None) -> None:
        module = device.module(*source)
        self.device, self._functions = device, {name: module.get_function(name) for name in source.names}
        self._max_blocks = BLOCKS_PER_MULTIPROCESSOR * device.num_multiprocessors
        self.stream = device.stream() if stream is None else stream

    def _launch(self, name: str, num_threads: int, *args: Any, block: int = BLOCK, max_blocks: int | None = None) -> None:
        grid = min(max(1, -(-num_threads // block)), max_blocks or self._max_blocks)
        self.device.launch(self._functions[name], grid, block, args, self.stream)


class GpuKernels(Launcher):
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
    counters : (20,) int64
        On the device; see `Counter`.
    fetched : (20,) int64
        On the host: what the counters were at the last `fetch`, once the stream has been waited for.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any]) -> None:
        self.dtype = np.dtype(dtype)
        self._index = index_name(self.dtype)
        super().__init__(device, search_source(self.dtype))
        self._functions |= {name: self._functions[f"{name}<{self._index}>"] for name in _OF_INDEX}
        pull, block = self._functions["pull_planes"], PULL_BLOCK[self.dtype.itemsize]
        self._pull_wave = device.num_multiprocessors * max(1, device.resident_blocks(pull, block))
        self.counters = device.empty(NUM_COUNTERS, np.int64)
        self.fetched: Array = device.pinned(8 * NUM_COUNTERS).view(np.int64)
        self.fetched[:] = 0
        self.reset()
        device.synchronize(self.stream)  # what lets go of it unused must not leave a kernel that writes to its counters

    def fetch(self) -> None:
        """Copy the counters to the host, in the stream's turn: they are `fetched` after whatever the host next waits for there."""
        self.device.copy(self.counters, self.fetched, self.stream)

    def read(self) -> Array:
        """Wait for the kernels launched so far; return the counters on the host: (20,) int64, valid until the next call."""
        self.fetch()
        self.device.synchronize(self.stream)
        return self.fetched

    def reset(self) -> None:
        """Set all counters to zero, and those that were fetched."""
        self.fill(self.counters, 0)
        self.fetched[:] = 0

    # Bitmaps.

    def fill(self, words: Array, value: int) -> None:
        """Set all 32-bit words of an array to `value`."""
        count = words.nbytes // 4
        if count:
            self._launch("fill_words", count, words, np.int64(count), np.uint32(value))

    def clear_all(self, *arrays: Array) -> None:
        """Set at most four arrays of 32-bit words to 0, in one launch."""
        parts: list[Any] = []
        for words in arrays:
            parts += [words, np.int64(words.nbytes // 4)]
        parts += [_NULL, np.int64(0)] * (CLEARED_AT_ONCE - len(arrays))
        self._launch("clear_words", max(words.nbytes // 4 for words in arrays), *parts)

    def copy(self, source: Array, target: Array) -> None:
        """Copy a bitmap."""
        self._launch("copy_words", 2 * source.size, source, target, np.int64(2 * source.size))

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

    def list_subgraph(
        self, active: Array, tiles: Array, launch: int, *, row0: int = 0, capacity: int = EVERY_EDGE, vertex: Array | None = None,
        rows: tuple[Array, Array] | None = None, lookup: Lookup | None = None, part: Part | None = None, count_shift: int = 0,
        first_pages_only: bool = False, most: int = -1, page_slot: Counter = Counter.NUM_PAGES,
    ) -> None:  # fmt: skip
        """List active vertices from the `row0`-th on, at most `capacity`, and the part of each row that is asked for.

        Sets NUM_ROWS, NUM_EDGES (edges of the parts), NUM_BEYOND (rows that ask for more than their part) and `page_slot`.

        Parameters
        ----------
        active
            A bitmap.
        tiles : (1 + 3 * num_tiles,) uint64
            Entries of the prefix sums; 0 before the first launch, and left to this.
        launch
            Its number, from 1 on: one that no entry of `tiles` has.
        vertex
            Gets the vertices; None to list none.
        rows
            ``start, offset``: where in ``indices`` each part begins, and where its edges go; None to ask for nothing, or to count alone.
        lookup
            None with `rows` None: vertices are listed, nothing is asked.
        part
            What is asked of each row; by default all of it.
        count_shift, first_pages_only, page_slot
            Pages of ``1 << count_shift`` edges that the parts lie in are counted, or the first of each.
        most
            Nothing is done where FRONTIER_VERTICES is above it; -1: never.
        """
        words = 2 * active.size
        pages = np.int32(count_shift), np.int32(first_pages_only), np.int64(most)
        null: Any = _NULL
        of_rows = lookup.arguments if lookup is not None else (null, np.int64(0), null, null, null, np.int64(0))
        of_rows += (part or Part()).arguments
        self._launch(
            "list_subgraph", words, active, np.int64(words), np.int64(row0), np.int64(capacity), *of_rows, *pages,
            null if vertex is None else vertex, *(rows or (null, null)), tiles, np.int64((tiles.size - 1) // 3), np.uint64(launch),
            np.int32(page_slot), self.counters,
        )  # fmt: skip

    # Pull.

    def pull_heads(
        self, w0: int, w1: int, num_vertices: int, lookup: Lookup, planes: Array, plane_offset: Array, plane_length: Array, resident: Array,
        base: int, frontier: Array, visited: Array, undecided: Array, next_frontier: Array, marks: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Pull over what is in device memory: planes first, then the resident part of each list; adds to FOUND and UNDECIDED.

        See `oocgraph.kernels.cpu.pull_heads`; words are those of 64 bits, and `w0` and `w1` are even or the number of words.
        ``next_frontier`` is overwritten as ``undecided`` is. `marks` are ``parent, level8, level32, wide, level``.
        """
        words, num_planes = 2 * visited.size, plane_length.size - 1
        groups = np.int64(w0 // 2), np.int64(-(-w1 // 2))
        bitmaps = (visited, undecided, next_frontier)
        left = Counter.SCRATCH if resident.size else Counter.UNDECIDED  # what the planes leave is not what is left
        self._launch(
            "pull_planes", int(groups[1] - groups[0]) * 32, *groups, np.int64(words), np.int64(num_vertices), planes,
            plane_offset, plane_length, np.int32(num_planes), frontier, *bitmaps, *marks, np.int32(left), self.counters,
            block=PULL_BLOCK[self.dtype.itemsize], max_blocks=self._pull_wave,
        )  # fmt: skip
        if resident.size:
            self.pull_lists(lookup, num_planes, resident, base, frontier, *bitmaps, marks)

    def pull_lists(
        self, lookup: Lookup, skip: int, edges: Array, base: int, frontier: Array, visited: Array, undecided: Array, next_frontier: Array,
        marks: tuple[Any, ...], *, is_mapped: bool = False,
    ) -> None:  # fmt: skip
        """Pull the undecided over ``edges``, ``indices`` from `base` on; UNDECIDED gets those whose lists go on elsewhere.

        Where `is_mapped` they are in host memory, and NUM_LINES gets the lines of it that are read.
        """
        words, blocks = 2 * visited.size, MAPPED_BLOCKS if is_mapped else ROW_BLOCKS[self.dtype.itemsize]
        self._launch(
            "pull_mapped" if is_mapped else "pull_resident", 32 * words, np.int64(words), *lookup.arguments, np.int64(skip), edges,
            np.int64(base), np.int64(edges.size), frontier, visited, undecided, next_frontier, *marks, self.counters,
            max_blocks=blocks * self.device.num_multiprocessors,
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

    def close_rows(self, vertex: Array, most: int, start: Array, offset: Array, lookup: Lookup, undecided: Array) -> None:
        """After a batch: rows that end in it are not undecided any more."""
        self._launch("close_rows", most, vertex, start, offset, *lookup.arguments, undecided, self.counters)

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

    def measure_frontier(
        self, push: Lookup, pull: Lookup, step: int, num_vertices: int, planes: Array, plane_offset: Array, plane_length: Array,
        resident: Array, frontier: Array, visited: Array, *, most: int = EVERY_EDGE,
    ) -> None:  # fmt: skip
        """Count the frontier's vertices and edges (out, and in where `pull` is not `push`), and do what `sample_heads` does."""
        words = 2 * visited.size
        threads = max(words, 32 * (-(-visited.size // step) * 2))
        self._launch(
            "measure_frontier", threads, *push.arguments, np.int32(push is pull), np.int64(step), np.int64(words), np.int64(num_vertices),
            *pull.arguments, planes, plane_offset, plane_length, np.int32(plane_length.size - 1), resident, np.int64(resident.size),
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
