"""Whether the arrays of a store fit together: lengths, order, degrees, planes, ids.

In: a store whose bytes are as they were written. Out: problems as text. Every array is streamed; one bit per vertex is kept.
Each check is a generator that yields the problems it finds; a later check that relies on an earlier one is left out when that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oocgraph.kernels import check as kernels
from oocgraph.store import layout
from oocgraph.store.columns import Ids, IntColumn, StringColumn
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import string_arrays
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, map_bounded, row_blocks
from oocgraph.store.strings import string_buffers
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 20
"""Entries of ``indices`` looked at at once."""

Done = Callable[[int], None]
"""Told how many entries of ``indices`` were looked at."""


def check_structure(store: CSRStore, num_threads: int, done: Done) -> Iterator[str]:
    """Yield what is wrong with the structure of `store`."""
    problems = [*check_lengths(store)]
    yield from problems
    if problems:
        return
    hashes = {}
    for group in groups_of(store):
        problems = [*check_indptr(store, group)]
        yield from problems
        if problems:
            return
        rows = _RowCheck(store, group)
        yield from rows.run(num_threads, done)
        hashes[group] = rows.hashes
        if group == store.pull_group:
            yield from check_degrees(store, group)
            yield from check_planes(store, group)
    yield from check_reverse(store, hashes)
    yield from check_ids(store)
    yield from check_categories(store)


def groups_of(store: CSRStore) -> tuple[str, ...]:
    """Return the groups that hold a CSR."""
    return store.attributes.stored_groups


def check_lengths(store: CSRStore) -> Iterator[str]:
    """Lengths against the attributes, and the attributes against each other."""
    a = store.attributes
    n, m = a.num_vertices, a.num_stored_edges
    wanted = {layout.ORDER: n}
    for group in groups_of(store):
        wanted |= {f"{group}/indptr": n + 1, f"{group}/indices": m}
    wanted |= {f"{groups_of(store)[0]}/{name}": m for name in a.columns}
    ids = {layout.VERTEX_ID: n, layout.SORTED_ID: n}
    if a.implied_ids is None and a.num_isolated:
        ids[layout.ISOLATED_ID] = a.num_isolated
    for name, length in ids.items():
        if a.id_kind == "string":
            wanted[string_arrays(name)[1]] = length + 1
        else:
            wanted[name] = length
    if a.num_planes:
        wanted[f"{store.pull_group}/planes/offsets"] = a.num_planes + 1
    for name, length in wanted.items():
        found = store.array(name).length
        if found != length:
            yield f"{store.url}: {name} has {found} elements, but the attributes make it {length}"
    if a.num_input_vertices != n + a.num_isolated:
        yield f"{store.url}: {a.num_input_vertices} input vertices are not {n} with edges and {a.num_isolated} isolated"
    if a.implied_ids is not None and a.implied_ids[1] - a.implied_ids[0] != a.num_input_vertices:
        yield f"{store.url}: the implied ids {a.implied_ids} are not {a.num_input_vertices}"
    if a.num_edges != (m if a.directed else (m + a.num_self_loops) // 2):
        yield f"{store.url}: {a.num_edges} edges and {a.num_self_loops} self-loops do not make {m} stored entries"


def check_indptr(store: CSRStore, group: str) -> Iterator[str]:
    """Whether ``indptr`` ascends from 0 to the number of entries."""
    name, n = f"{group}/indptr", store.num_vertices
    indptr, last = store.array(name), 0
    for first in range(0, n + 1, BLOCK_ROWS):
        part = indptr.read(first, min(n + 1, first + BLOCK_ROWS))
        before = np.concatenate([[last], part[:-1]])
        wrong = np.flatnonzero((part < before) | ((part != 0) & (first + np.arange(part.size) == 0)))
        if wrong.size:
            at = int(wrong[0])
            yield f"{store.url}: {name} must ascend from 0, but element {first + at} is {part[at]} after {before[at]}"
            return
        last = int(part[-1])
    if last != store.attributes.num_stored_edges:
        yield f"{store.url}: {name} ends at {last}, but {group}/indices has {store.attributes.num_stored_edges} entries"


class _RowCheck:
    """Checks neighbours and adds up their hashes."""

    def __init__(self, store: CSRStore, group: str) -> None:
        a = store.attributes
        self.store, self.group = store, group
        self.strict = int(a.duplicates != "keep" and not set(a.columns) - {"weight"})
        self.hashes = (0, 0)

    def run(self, num_threads: int, done: Done) -> Iterator[str]:
        """Yield the problems of the first rows that have some, and of the number of self-loops."""
        name, num_loops, told = f"{self.group}/indices", 0, 0
        blocks = row_blocks(self.store, self.group, max_entries=BLOCK_ENTRIES, whole_rows=False)
        forward = backward = 0
        for block, (rule, row, entry, loops, out, back) in map_bounded(self._check, blocks, num_threads):
            done(block.num_entries)
            num_loops, forward, backward = num_loops + loops, (forward + int(out)) % 2**64, (backward + int(back)) % 2**64
            if rule != kernels.SOUND and told < 3:
                told += 1
                value = int(self.store.array(name).read(entry, entry + 1)[0])
                order = "strictly ascending" if self.strict else "ascending"
                fault = (
                    f"but there are {self.store.num_vertices} vertices" if rule == kernels.OUT_OF_RANGE else f"so the row is not {order}"
                )
                yield f"{self.store.url}: entry {entry} of {name} (row {row}) is {value}, {fault}"
        self.hashes = (forward, backward)
        if not told and num_loops != self.store.attributes.num_self_loops:
            wanted = self.store.attributes.num_self_loops
            yield f"{self.store.url}: {self.group}/indices has {num_loops} self-loops, but the attributes say {wanted}"

    def _check(self, block: RowBlock) -> tuple[RowBlock, Any]:
        lead = int(block.start > block.indptr[0])
        entries = self.store.array(f"{self.group}/indices").read(block.start - lead, block.stop)
        found = kernels.check_rows(block.indptr, block.first_row, block.start - lead, lead, entries, self.store.num_vertices, self.strict)
        return block, found


def check_reverse(store: CSRStore, hashes: dict[str, tuple[int, int]]) -> Iterator[str]:
    """Whether the reverse of every entry is stored: in ``in/`` when directed, in ``out/`` itself when not."""
    if len(hashes) == 2 and hashes["out"][0] != hashes["in"][1]:
        yield f"{store.url}: in/indices does not hold the edges of out/indices"
    if not store.attributes.directed and hashes["out"][0] != hashes["out"][1]:
        yield f"{store.url}: the graph is undirected, but some edge of out/indices is stored one way only"


def check_degrees(store: CSRStore, group: str) -> Iterator[str]:
    """Whether the degree classes are those of ``indptr``, descending."""
    if store.attributes.vertex_order != "degree":
        return
    value, first = store.degrees
    n = store.num_vertices
    sound = (
        value.size == first.size and np.all(np.diff(value) < 0) and np.all(np.diff(first) > 0) and (first[0] == 0 if n else not first.size)
    )
    if not sound:
        yield f"{store.url}: {group}/degrees must have descending values and ascending first vertices from 0"
        return
    indptr = store.array(f"{group}/indptr")
    for start in range(0, n, BLOCK_ROWS):
        degree = np.diff(indptr.read(start, min(n, start + BLOCK_ROWS) + 1))
        wanted = value[np.searchsorted(first, np.arange(start, start + degree.size), side="right") - 1]
        wrong = np.flatnonzero(degree != wanted)
        if wrong.size:
            at = int(wrong[0])
            yield f"{store.url}: vertex {start + at} has {degree[at]} entries in {group}/indptr, but {wanted[at]} in {group}/degrees"
            return


def check_planes(store: CSRStore, group: str) -> Iterator[str]:
    """Whether plane k holds the k-th neighbour of every vertex with more than k."""
    num_planes = store.attributes.num_planes
    if not num_planes:
        return
    offsets, planes, indices = (store.array(f"{group}/{name}") for name in ("planes/offsets", "planes/indices", "indices"))
    bounds = offsets.read(0, num_planes + 1)
    value, first = store.degrees
    covered = [int(first[np.searchsorted(-value, -k)]) if value.size and value[-1] <= k else store.num_vertices for k in range(num_planes)]
    if bounds[0] != 0 or np.diff(bounds).tolist() != covered or bounds[-1] != planes.length:
        yield f"{store.url}: {group}/planes/offsets must be the numbers of vertices with degree above 0, 1, ..., added up"
        return
    for block in row_blocks(store, group, max_entries=BLOCK_ENTRIES, whole_rows=False):
        if block.first_row >= covered[0]:
            return
        entries = indices.read(block.start, block.stop)
        for k in range(num_planes):
            stop = min(covered[k], block.first_row + block.indptr.size - 1)
            rows = max(0, stop - block.first_row)
            place = block.indptr[:rows] + k
            here = np.flatnonzero((place >= block.start) & (place < block.stop))
            if not here.size:
                continue
            plane = planes.read(int(bounds[k]) + block.first_row + int(here[0]), int(bounds[k]) + block.first_row + int(here[-1]) + 1)
            wrong = here[plane[here - here[0]] != entries[place[here] - block.start]]
            if wrong.size:
                vertex = block.first_row + int(wrong[0])
                yield f"{store.url}: plane {k} of {group}/planes/indices differs from {group}/indices at vertex {vertex}"
                return


def check_ids(store: CSRStore) -> Iterator[str]:
    """Whether ids ascend, ``order`` is a permutation, and both id arrays name the same vertices alike."""
    problems = [*_check_sorted(store), *_check_order(store)]
    yield from problems
    if not problems:
        yield from _check_vertex_ids(store)
        yield from _check_input_ids(store)


def _column(store: CSRStore, name: str) -> IntColumn | StringColumn:
    return IntColumn(store, name) if store.attributes.id_kind == "int64" else StringColumn(store, name)


def _ascending(ids: Ids) -> Array:
    """Whether each id is above the one before it: (n - 1,) bool."""
    if isinstance(ids, np.ndarray):
        return ids[1:] > ids[:-1]
    import pyarrow.compute as pc

    above: Array = pc.greater(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return above


def _check_sorted(store: CSRStore) -> Iterator[str]:
    column, implied = _column(store, layout.SORTED_ID), store.attributes.implied_ids
    for start in range(0, column.length, BLOCK_ROWS):
        ids = column.read(max(0, start - 1), min(column.length, start + BLOCK_ROWS))
        wrong = np.flatnonzero(~_ascending(ids))
        if wrong.size:
            yield f"{store.url}: {layout.SORTED_ID} must ascend, but does not after element {max(0, start - 1) + int(wrong[0])}"
            return
    if implied is not None and column.length:
        low, high = int(column.read(0, 1)[0]), int(column.read(column.length - 1, column.length)[0])
        if low < implied[0] or high >= implied[1]:
            yield f"{store.url}: {layout.SORTED_ID} goes from {low} to {high}, outside of the implied ids {implied}"


def _check_order(store: CSRStore) -> Iterator[str]:
    order, n = store.array(layout.ORDER), store.num_vertices
    seen = np.zeros(-(-n // 64), np.uint64)
    for start in range(0, n, BLOCK_ROWS):
        values = order.read(start, min(n, start + BLOCK_ROWS))
        at = kernels.mark(values, seen, n)
        if at >= 0:
            yield f"{store.url}: {layout.ORDER} must be a permutation, but element {start + at} is {values[at]}, out of range or met before"
            return


def _check_vertex_ids(store: CSRStore) -> Iterator[str]:
    """Ids by vertex equal ids by position, and ascend within each degree."""
    by_vertex, ascending, order = _column(store, layout.VERTEX_ID), _column(store, layout.SORTED_ID), store.array(layout.ORDER)
    n = store.num_vertices
    first = store.degrees[1] if store.attributes.vertex_order == "degree" else np.array([0, store.attributes.num_masters or 0])
    sums = [0, 0]
    for start in range(0, n, BLOCK_ROWS):
        stop, lead = min(n, start + BLOCK_ROWS), int(start > 0)
        ids = by_vertex.read(start - lead, stop)
        wrong = np.setdiff1d(np.flatnonzero(~_ascending(ids)) + start - lead + 1, first)
        if wrong.size:
            yield f"{store.url}: vertices of equal degree must ascend by id, but {layout.VERTEX_ID} does not at vertex {wrong[0]}"
            return
        sums[0] += int(kernels.hash_pairs(np.arange(start, stop), _hashable(ids[lead:])))
        sums[1] += int(kernels.hash_pairs(order.read(start, stop).astype(np.int64), _hashable(ascending.read(start, stop))))
    if sums[0] % 2**64 != sums[1] % 2**64:
        yield f"{store.url}: {layout.SORTED_ID} with {layout.ORDER} does not give each vertex the id that {layout.VERTEX_ID} gives it"


def _hashable(ids: Ids) -> Array:
    if isinstance(ids, np.ndarray):
        return np.ascontiguousarray(ids)
    data, offsets = string_buffers(ids)
    out = np.empty(len(ids), np.int64)
    kernels.hash_strings(data, offsets, out)
    return out


def _check_input_ids(store: CSRStore) -> Iterator[str]:
    """Ids with and without edges, merged, ascend: none occurs twice."""
    if store.attributes.implied_ids is not None:
        return
    last: Ids = None
    for ids, _ in VertexIds(store).stored_blocks():
        if not np.all(_ascending(ids)) or (last is not None and not _ascending(_joined(last, ids[:1])).all()):
            yield f"{store.url}: {layout.ISOLATED_ID} does not ascend, or holds an id of {layout.SORTED_ID}"
            return
        last = ids[-1:]


def _joined(one: Ids, other: Ids) -> Ids:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, other])
    import pyarrow as pa

    return pa.concat_arrays([one, other])


def check_categories(store: CSRStore) -> Iterator[str]:
    """Whether the codes of text columns are those of their categories."""
    group = groups_of(store)[0]
    for name in [name for name, kind in store.attributes.columns.items() if kind == "string"]:
        codes, num_categories = store.array(f"{group}/{name}"), StringColumn(store, f"columns/{name}").length
        for start in range(0, codes.length, BLOCK_ENTRIES):
            part = codes.read(start, min(codes.length, start + BLOCK_ENTRIES))
            wrong = np.flatnonzero((part < 0) | (part >= num_categories))
            if wrong.size:
                at = int(wrong[0])
                yield f"{store.url}: entry {start + at} of {group}/{name} is {part[at]}, but columns/{name} has {num_categories} categories"
                break
