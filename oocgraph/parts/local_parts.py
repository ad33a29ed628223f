"""The parts of a partitioned graph that one process holds: charged to its budget, loaded, and expanded by its threads.

In: parts of one graph, which of them, a budget. Out: `LocalParts`. All parts share the threads, and what edges need that are not held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.engine.cpu_engine import BUFFER_BYTES
from oocgraph.engine.device_graph import UPLOAD_BYTES
from oocgraph.engine.resident import for_loading
from oocgraph.errors import ArgumentError
from oocgraph.exchange.addresses import MirrorCounts, count_mirrors, make_addresses
from oocgraph.memory import Budget, format_bytes
from oocgraph.parts.device_edges import DeviceLocalEdges
from oocgraph.parts.loaded_part import LoadedPart, PartTraversal, row_bytes, search_bytes
from oocgraph.parts.local_edges import STAGED_EDGES, LocalEdges, staging_bytes
from oocgraph.plan.paths_residency import PathsResidency, PathsSizes, plan_equal_shares
from oocgraph.pool import Pool
from oocgraph.store.gather import Gatherer, checksum_bytes
from oocgraph.store.partitions import Part
from oocgraph.store.row_gatherer import held_window_bytes
from oocgraph.team import Team, borrow, give_back
from oocgraph.types import Array

SMALL_EDGES = 1 << 14
"""Edges of a step below which the calling thread does everything: about 50 us of work, as much as handing it to threads."""

MakeEdges = Callable[[Array], LocalEdges | DeviceLocalEdges]
"""Makes the edges of a part of its row pointers."""

READ_AHEAD = 2
"""Threads beyond those that expand, where edges have to be read: some wait for the disk."""


class LocalParts:
    """Some parts of one graph.

    Parameters
    ----------
    parts
        All parts of the graph.
    numbers
        Those held here.
    dtype
        Index dtype of the graph.
    budget
        Charged with all that is held, one search included, before anything is loaded.
    threads, io_threads
        That expand; that read.
    directed
        Whether the graph is.
    reserved_bytes
        What a search needs besides: charged, and named, together with what is held here.
    device, device_limit
        Where edges are held and frontiers expanded, and the bytes of its memory for that; None: by the processor.
    device_held
        Bytes that others hold of the budget that `device_limit` is left of.

    Attributes
    ----------
    loaded : dict
        By number.
    device_bytes : int
        Held of the device's memory.

    Raises
    ------
    BudgetError
        It does not fit; the message names the smallest budget that works.
    ArgumentError
        The parts hold in-lists of a directed graph alone.
    """

    def __init__(
        self, parts: Sequence[Part], numbers: Iterable[int], *, dtype: np.dtype[Any], budget: Budget, threads: int, io_threads: int,
        directed: bool, reserved_bytes: int = 0, device: Device | None = None, device_limit: int = 0, device_held: int = 0,
    ) -> None:  # fmt: skip
        self.device_bytes = 0
        self.threads, self.loaded = threads, dict[int, LoadedPart]()
        mine = [parts[p] for p in numbers]
        group = local_group(parts, directed=directed)
        arrays = [part.store.array(f"{group}/indices") for part in mine]
        sizes = [] if device is None else [_sizes_on_device(part, array) for part, array in zip(mine, arrays, strict=True)]
        if device is None:
            reading = _reading_bytes(arrays, threads=threads, io_threads=io_threads)
            least = min(reading, sum(array.length * array.dtype.itemsize for array in arrays))
        else:
            reading = _passing_bytes(mine, arrays, io_threads)
            least = reading + len(sizes) * max((one.host_least_bytes for one in sizes), default=0)
        checksums = sum(map(checksum_bytes, arrays))
        self._charge(parts, mine, count_mirrors(parts, group), budget, dtype, reserved_bytes, least, checksums)
        addresses = [make_addresses(parts, part.index, group) for part in mine]
        self._gatherer: Gatherer | None = None
        self._team: Team | None = None
        try:
            if device is None:
                kept = self._kept_by_host(mine, arrays, budget, reading, io_threads)
            else:
                residencies = self._plan_on_device(sizes, budget, reading, device_limit, device_held)
                kept = self._kept_by_device(mine, arrays, residencies, device, io_threads)
            self._staging: SimpleQueue[Array | None] = SimpleQueue()
            for _ in range(self.threads + 1):
                self._staging.put(None)
            self._team = borrow(self.threads)
            for part, address, edges in zip(mine, addresses, kept, strict=True):
                self.loaded[part.index] = LoadedPart.load(part, address, group, dtype, edges)
        except BaseException:
            self.close()
            raise

    def _charge(
        self, parts: Sequence[Part], mine: Sequence[Part], counts: MirrorCounts, budget: Budget, dtype: np.dtype[Any],
        reserved_bytes: int, edge_bytes: int, held_checksums: int,
    ) -> None:  # fmt: skip
        """Reserve all that is held but the edges; refuse it if those, at the least, or what loading takes, do not fit beside it."""
        rows = sum(row_bytes(part, dtype.itemsize) for part in mine) + held_checksums
        addresses = sum(counts.address_bytes(part) for part in mine)
        searches = sum(search_bytes(part, counts.num_copies(part.index), len(parts), dtype.itemsize) for part in mine)
        ids = max((8 * (part.num_vertices + part.num_isolated) for part in mine), default=0)
        making = max((counts.making_bytes(parts, part.index) for part in mine), default=0)
        total = rows + addresses + searches + ids + reserved_bytes
        name = (
            f"a search over {len(mine)} parts (rows {format_bytes(rows)}, addresses {format_bytes(addresses)}, state and messages "
            f"{format_bytes(searches)})"
        )
        more = max(edge_bytes, making - ids)
        if total + more > budget.available_bytes:
            budget.reserve(name, total + more)
        budget.reserve(name, total)
        budget.check_alternatives()

    def _kept_by_host(
        self, mine: Sequence[Part], arrays: Sequence[Any], budget: Budget, reading: int, io_threads: int
    ) -> list[MakeEdges]:  # fmt: skip
        """Return what makes the edges of each part from its row pointers; as many of all are held as fit, which is reserved."""
        held = _shares(arrays, budget.available_bytes)
        if any(number < array.length for number, array in zip(held, arrays, strict=True)):
            self.threads += READ_AHEAD
            budget.reserve("edges being read", reading)
            self._gatherer = Gatherer(io_threads, BUFFER_BYTES)
            held = _shares(arrays, budget.available_bytes)
        budget.reserve("resident edges", sum(number * array.dtype.itemsize for number, array in zip(held, arrays, strict=True)))
        return [
            partial(LocalEdges, part.store, array.name, num_held=number, gatherer=self._gatherer)
            for part, array, number in zip(mine, arrays, held, strict=True)
        ]

    def _plan_on_device(
        self, sizes: Sequence[PathsSizes], budget: Budget, reading: int, device_limit: int, device_held: int
    ) -> list[PathsResidency]:
        """Divide the device's memory, an equal share for each part, and reserve what the host holds for that."""
        budget.reserve("edges being read", reading)
        found = plan_equal_shares(
            sizes, available_bytes=device_limit, limit_bytes=device_limit + device_held, host_available_bytes=budget.available_bytes,
            host_limit_bytes=budget.limit_bytes,
        )  # fmt: skip
        budget.reserve("page-locked staging", sum(one.host_bytes for one in found))
        self.device_bytes = sum(one.device_bytes for one in found)
        return found

    def _kept_by_device(
        self, mine: Sequence[Part], arrays: Sequence[Any], residencies: Sequence[PathsResidency], device: Device, io_threads: int
    ) -> list[MakeEdges]:  # fmt: skip
        """Return what makes the edges of each part from its row pointers."""

        def load(array: Any, residency: PathsResidency, indptr: Array) -> DeviceLocalEdges:
            with Pool(2, "oocgraph-load") as pool:
                return DeviceLocalEdges(array, indptr, device, residency, pool=pool, io_threads=io_threads)

        kept: list[MakeEdges] = []
        for part, array, residency in zip(mine, arrays, residencies, strict=True):
            source = for_loading(part.store).array(array.name) if residency.num_resident == array.length else array
            kept.append(partial(load, source, residency))
        return kept

    @property
    def num_bytes_read(self) -> int:
        """Bytes of edges requested by searches so far."""
        return sum(loaded.edges.num_bytes_read for loaded in self.loaded.values())

    def each(self, call: Callable[[Any], Any], items: Sequence[Any], *, num_edges: int) -> list[Any]:
        """Call with each item: in threads, unless that is little work."""
        if len(items) < 2 or num_edges < SMALL_EDGES:
            return [call(item) for item in items]
        assert self._team is not None, "closed"
        return self._team.run(call, items)

    def expand(self, searches: Sequence[PartTraversal], *, num_edges: int) -> None:
        """Expand the frontiers of some parts, which have so many edges together."""
        ranges = 1 if num_edges < SMALL_EDGES else 4 * self.threads
        work = [(search, first, stop) for search in searches for first, stop in search.ranges(ranges)]
        self.each(self._expand_range, work, num_edges=num_edges)

    def _expand_range(self, work: tuple[PartTraversal, int, int]) -> None:
        search, first, stop = work
        if search.loaded.edges.all_resident:
            search.expand(first, stop, None)
            return
        staging = self._staging.get()
        if staging is None:
            staging = np.empty(STAGED_EDGES, search.loaded.edges.dtype)
        try:
            search.expand(first, stop, staging)
        finally:
            self._staging.put(staging)

    def close(self) -> None:
        """End the threads and close the files."""
        if self._team is not None:
            give_back(self._team)
            self._team = None
        if self._gatherer is not None:
            self._gatherer.close()
        for loaded in self.loaded.values():
            loaded.edges.close()
        self.loaded.clear()


def local_group(parts: Sequence[Part], *, directed: bool) -> str:
    """Return the group of the parts whose rows are expanded along the edges.

    Raises
    ------
    ArgumentError
        A directed graph's parts hold in-lists alone.
    """
    if not parts or parts[0].store.has_array("out/indptr"):
        return "out"
    if directed:
        raise ArgumentError(
            "these partitions hold in-lists alone, and a traversal follows the out-edges of a directed graph; partition it again with "
            "read='out', or transpose=True"
        )
    return "in"  # both directions of an undirected edge are stored somewhere: following all lists backwards reaches the same


def _sizes_on_device(part: Part, array: Any) -> PathsSizes:
    """Return what the plan of a device's memory needs to know of a part and its edges."""
    itemsize = array.dtype.itemsize
    return PathsSizes(
        num_vertices=part.num_vertices, num_edges=array.length, index_bytes=itemsize, weight_bytes=0, distance_bytes=itemsize,
        lookup_bytes=8 * (part.num_vertices + 1) + 24, what="a search over a part",
    )  # fmt: skip


def _passing_bytes(parts: Sequence[Part], arrays: Sequence[Any], io_threads: int) -> int:
    """Bytes of host memory, beside what is page-locked, that edges take on their way to a device, and what is found there on its way back.

    Each part has reading threads of its own. Of its vertices two bitmaps pass, those that are found, and the rows that they are found from.
    """
    reading = sum(_reader_bytes([array], io_threads) for array in arrays)
    found: int = sum((2 * array.dtype.itemsize + 1) * part.num_vertices + 64 for part, array in zip(parts, arrays, strict=True))
    return reading + found + 2 * UPLOAD_BYTES * bool(parts)


def _reader_bytes(arrays: Sequence[Any], io_threads: int) -> int:
    """Bytes that threads hold who read any of some arrays."""
    return io_threads * (BUFFER_BYTES + max((held_window_bytes(array) for array in arrays), default=0))


def _reading_bytes(arrays: Sequence[Any], *, threads: int, io_threads: int) -> int:
    """Bytes that reading edges takes which are not held."""
    each = staging_bytes(max((array.dtype.itemsize for array in arrays), default=0))
    return (threads + READ_AHEAD + 1) * each + _reader_bytes(arrays, io_threads)


def _shares(arrays: Sequence[Any], available_bytes: int) -> list[int]:
    """Edges that each part may hold: all, or in proportion."""
    share = min(1.0, max(0, available_bytes) / max(1, sum(array.length * array.dtype.itemsize for array in arrays)))
    return [int(share * array.length) for array in arrays]
