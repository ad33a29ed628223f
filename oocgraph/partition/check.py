"""Proves of partitions that they are those of a graph: each edge in exactly one, each vertex with exactly one master, all mirrors there.

In: open partitions and their graph. Out: what was seen, or CorruptStoreError. The edges of all parts are put back under the numbers of the
graph, range of rows by range of rows, sorted, and compared entry by entry with the graph's own; nothing is hashed or sampled. It shares no
code with the partitioner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from oocgraph.allocator import returned_memory
from oocgraph.errors import CorruptStoreError
from oocgraph.memory import SLACK_BYTES, Budget, limit_bytes_of
from oocgraph.store.arrays import StoredArray, decoded_bytes
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.store.partitions import Part, Partitions
from oocgraph.store.rows import RowBlock, longest_row, row_blocks
from oocgraph.types import Array, Progress, ignore_progress

BLOCK_ENTRIES = 1 << 20
"""Edges compared at once, at the most (or the longest list)."""

MIN_BLOCK_ENTRIES = 1 << 16
"""Edges compared at once, at the least (or the longest list)."""

EDGE_BYTES = 120
"""Held of an edge that is compared: rows and neighbours of the parts and of the graph, their order, and copies in that order."""

PIECE_VERTICES = 1 << 19
"""Vertices compared at once."""


@dataclass(frozen=True, slots=True)
class PartitionCheck:
    """What was seen; it exists only when all is as it must be.

    Attributes
    ----------
    num_edges
        Stored entries that were found in exactly one part.
    num_masters
        Vertices that have exactly one master.
    num_mirrors
        Mirrors whose master is where they say.
    """

    num_edges: int
    num_masters: int
    num_mirrors: int


def check_partitions(
    partitions: Partitions, store: CSRStore, progress: Progress = ignore_progress, *, memory_budget: str | int | None = None
) -> PartitionCheck:
    """Check partitions against their graph.

    Parameters
    ----------
    memory_budget
        Bytes that the whole process may hold; by default most of what the machine leaves.
    progress
        Called with ("edges", edges compared, edges).

    Raises
    ------
    BudgetError
        The budget is too small; the message names the smallest that works.
    CorruptStoreError
        They are of another graph, or something is missing, twice, or at the wrong place; the message says what and where.

    Notes
    -----
    Host bytes: 8 for each local vertex of all parts, 18 for each vertex of the graph, and 120 for each edge of a block (of 65,536, or of
    the longest list, up to a million where the budget has room); reserved before anything is compared.
    """
    if partitions.attributes.graph_fingerprint != graph_fingerprint(store):
        raise CorruptStoreError(
            f"{partitions.url} are not partitions of {store.url}, but of {partitions.attributes.graph}; name that graph"
        )
    load_libraries(store)
    local = sum(part.num_vertices + part.num_isolated + part.num_mirrors for part in partitions)
    with returned_memory():
        budget = Budget(limit_bytes_of(memory_budget))
        budget.reserve("what is compared", _held_bytes(store, partitions.attributes.read, local))
        block_entries = min(BLOCK_ENTRIES, MIN_BLOCK_ENTRIES + budget.available_bytes // EDGE_BYTES)
        return _check(partitions, store, block_entries, progress)


def most_check_bytes(store: CSRStore, num_partitions: int, read: str) -> int:
    """Return what checking any `num_partitions` partitions takes at the most: if all vertices, or all ends of edges, are proxies."""
    n, m = store.num_rows, store.attributes.num_stored_edges
    return _held_bytes(store, read, 2 * min(num_partitions * n, n + 2 * m))


def _check(partitions: Partitions, store: CSRStore, block_entries: int, progress: Progress) -> PartitionCheck:
    """Check vertices, then edges."""
    num_masters, num_mirrors = 0, 0
    mastered = np.zeros(store.num_rows, np.bool_)
    for part in partitions:
        num_mirrors += _check_vertices(partitions, part, mastered)
        num_masters += part.num_masters + part.num_isolated
    if num_masters != store.num_rows or not mastered.all():
        v = int(np.flatnonzero(~mastered)[0]) if not mastered.all() else -1
        raise CorruptStoreError(f"{partitions.url}: vertex {v} has no master; partition the graph again")
    num_edges = _check_edges(partitions, store, block_entries, progress)
    return PartitionCheck(num_edges, num_masters, num_mirrors)


def _held_bytes(store: CSRStore, read: str, num_local: int) -> int:
    """Bytes that a check holds at the least: of vertices their local numbers, flags and those of one part; edges compared at once."""
    group = read if store.attributes.directed else "out"
    longest = longest_row(store, group)[1]
    decoded = decoded_bytes(store.array(f"{group}/indices"))
    edges = EDGE_BYTES * max(MIN_BLOCK_ENTRIES, longest) + decoded
    return SLACK_BYTES + 8 * num_local + 18 * store.num_rows + edges + 2 * 8 * PIECE_VERTICES


def _check_vertices(partitions: Partitions, part: Part, mastered: Array) -> int:
    """Check the vertices of a part: its masters are in no other part, mirrors say where theirs is."""
    where = f"{partitions.url}: part {part.index}"
    masters, ids, owner = partitions.masters, part.global_id(), part.mirror_owner()
    own, mirrors = ids[: part.num_masters], ids[part.num_masters :]
    for listed in (own, part.isolated_masters()):
        for start, found in _masters_of(masters, listed):
            wrong = np.flatnonzero((found != part.index) | mastered[listed[start : start + found.size]])
            if wrong.size:
                raise CorruptStoreError(f"{where} is not the only master of vertex {listed[start + wrong[0]]}; partition the graph again")
            mastered[listed[start : start + found.size]] = True
    for start, found in _masters_of(masters, mirrors):
        wrong = np.flatnonzero((found != owner[start : start + found.size]) | (found == part.index))
        if wrong.size:
            raise CorruptStoreError(
                f"{where}: mirror {mirrors[start + wrong[0]]} says that its master is in part {owner[start + wrong[0]]}, but it is in part "
                f"{found[wrong[0]]}; partition the graph again"
            )
    return int(mirrors.size)


def _masters_of(masters: StoredArray, vertices: Array) -> Iterator[tuple[int, Array]]:
    """Iterate over the masters of ascending vertices: position of the first, and partitions."""
    start = 0
    while start < vertices.size:
        low = int(vertices[start])
        stop = int(np.searchsorted(vertices, low + PIECE_VERTICES))
        piece = masters.read(low, int(vertices[stop - 1]) + 1)
        yield start, piece[vertices[start:stop] - low]
        start = stop


class _PartRows:
    """The rows of a part's masters, or of its mirrors, in the order of the graph."""

    def __init__(self, part: Part, ids: Array, first: int, stop: int) -> None:
        self._all = ids
        self._indptr, self._indices = part.store.array(f"{part.read}/indptr"), part.store.array(f"{part.read}/indices")
        self._numbers, self._first = self._all[first:stop], first

    def edges(self, block: RowBlock) -> tuple[Array, Array]:
        """Return rows and neighbours, by number in the graph, of the rows of a block."""
        low, high = np.searchsorted(self._numbers, [block.first_row, block.first_row + block.indptr.size - 1])
        if low == high:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        pointers = self._indptr.read(self._first + int(low), self._first + int(high) + 1)
        neighbours = self._indices.read(int(pointers[0]), int(pointers[-1]))
        return np.repeat(self._numbers[low:high], np.diff(pointers)), self._all[neighbours]


def _check_edges(partitions: Partitions, store: CSRStore, block_entries: int, progress: Progress) -> int:
    """Compare the edges of all parts with those of the graph."""
    group = partitions.attributes.read if store.attributes.directed else "out"
    indices, total, compared = store.array(f"{group}/indices"), store.attributes.num_stored_edges, 0
    numbered = [(part, part.global_id()) for part in partitions]
    lists = [_PartRows(part, ids, *bounds) for part, ids in numbered for bounds in pairwise((0, part.num_masters, part.num_vertices))]
    for block in row_blocks(store, group, max_entries=block_entries, whole_rows=True):
        found = [rows.edges(block) for rows in lists]
        rows, neighbours = (np.concatenate([one[k] for one in found]) for k in range(2))
        order = np.lexsort((neighbours, rows))
        wanted_rows, wanted = block.rows(), indices.read(block.start, block.stop)
        if rows.size != wanted.size or not (np.array_equal(rows[order], wanted_rows) and np.array_equal(neighbours[order], wanted)):
            raise _wrong_edge(partitions, (rows[order], neighbours[order]), (wanted_rows, wanted))
        compared += wanted.size
        progress("edges", compared, total)
    if compared != total or sum(part.num_edges for part in partitions) != total:
        raise CorruptStoreError(
            f"{partitions.url}: its parts hold {sum(part.num_edges for part in partitions):,} edges, the graph {total:,}"
        )
    return compared


def _wrong_edge(partitions: Partitions, found: tuple[Array, Array], wanted: tuple[Array, Array]) -> CorruptStoreError:
    """Name the first edge that differs."""
    length = min(found[0].size, wanted[0].size)
    differ = np.flatnonzero((found[0][:length] != wanted[0][:length]) | (found[1][:length] != wanted[1][:length]))
    at = int(differ[0]) if differ.size else length
    a = tuple(int(one[at]) for one in found) if at < found[0].size else None
    b = tuple(int(one[at]) for one in wanted) if at < wanted[0].size else None
    what = (
        f"edge {b} is in no part" if b is not None and (a is None or a > b) else f"edge {a} is in more than one part, or not of the graph"
    )
    return CorruptStoreError(f"{partitions.url}: {what}; partition the graph again")
