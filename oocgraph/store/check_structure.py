"""Whether the arrays of a store fit together: lengths, order, degrees, planes, ids.

In: a store whose bytes are as they were written. Out: problems as text. Every array is streamed; one bit per vertex is kept.
Each check is a generator that yields the problems it finds; a later check that relies on an earlier one is left out when that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from oocgraph.arrow import to_numbers
from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import check as kernels
from oocgraph.store import layout
from oocgraph.store.arrays import StoredArray, decoded_bytes
from oocgraph.store.columns import Ids, StringColumn, id_bytes, joined
from oocgraph.store.graph import CSRStore
from oocgraph.store.id_order import id_column
from oocgraph.store.metadata import parse_consolidated, parse_json
from oocgraph.store.rows import BLOCK_ROWS, RowBlock, degree_blocks, map_bounded, row_blocks
from oocgraph.store.strings import string_buffers
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

BLOCK_ENTRIES = 1 << 18
"""Entries of ``indices`` looked at at once."""

PIECE_ROWS = 1 << 16
"""Vertices of a block."""

ROW_BYTES, ID_COPIES = 64, 8
"""Bytes for each vertex of a block: its numbers, and the copies of its id."""

ENTRY_BYTES = 40
"""Bytes for each entry of a block: the entry, its row, its position, and its neighbour in a plane."""

Done = Callable[[int], None]
"""Receives the number of entries of ``indices`` that were examined."""


def check_structure(store: CSRStore, num_threads: int, done: Done) -> Iterator[str]:
    """Yield what is wrong with the structure of `store`."""
    problems = [*check_metadata(store)]
    yield from problems
    if problems:
        return
    hashes = {}
    for group in groups_of(store):
        problems = [*check_indptr(store, group)]
        yield from problems
        if problems:
            return
        hashes[group] = yield from check_rows(store, group, num_threads, done)
        if group == store.pull_group:
            yield from check_degrees(store, group)
            yield from check_planes(store, group)
    yield from check_reverse(store, hashes)
    yield from check_ids(store)
    check_categories(store)


def structure_bytes(store: CSRStore, num_threads: int) -> int:
    """Return what `check_structure` holds: a bit for each vertex, a piece of vertices, row starts, a block of entries for each thread."""
    group = groups_of(store)[0]
    decoded = decoded_bytes(store.array(f"{group}/indices"))
    vertices = PIECE_ROWS * (ROW_BYTES + ID_COPIES * id_bytes(store, layout.SORTED_ID))
    return store.num_rows // 8 + vertices + 3 * 8 * BLOCK_ROWS + (num_threads + 1) * (BLOCK_ENTRIES * ENTRY_BYTES + decoded)


def kernel_calls(store: CSRStore) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the kernels of a check, with arguments of the types that they are called with."""
    ints, bits = np.zeros(2, np.int64), np.zeros(1, np.uint64)
    entries = np.empty(0, store.array(f"{groups_of(store)[0]}/indices").dtype.newbyteorder("="))
    order = np.empty(0, store.array(layout.ORDER).dtype.newbyteorder("="))
    calls = [
        (kernels.check_rows, (ints, 0, 0, 0, entries, 0, 0)),
        (kernels.mark, (order, bits, 0)),
        (kernels.hash_pairs, (ints, ints)),
    ]
    if store.attributes.id_kind == "string":
        calls.append((kernels.hash_strings, (np.frombuffer(b"", np.uint8), ints, ints)))
    return calls


def groups_of(store: CSRStore) -> tuple[str, ...]:
    """Return the groups that hold a CSR."""
    return store.attributes.stored_groups


def check_metadata(store: CSRStore) -> Iterator[str]:
    """Whether every array is there, of the dtype and length that the attributes make it, and every folder a Zarr group."""
    for name in store.array_names():
        try:
            store.array(name)
        except CorruptStoreError as error:
            yield str(error)
    yield from _check_consolidated(store)
    groups = {parent.as_posix() for name in store.array_names() for parent in PurePosixPath(name).parents}
    for group in sorted(groups):
        try:
            metadata = parse_json(store.get(f"{group}/zarr.json" if group != "." else "zarr.json") or b"")
            if (metadata.get("zarr_format"), metadata.get("node_type")) != (3, "group"):
                raise ValueError("it is no Zarr v3 group")
        except (OSError, ValueError) as error:
            yield f"{store.url}: {group}/zarr.json is missing or damaged ({error}), so other Zarr readers do not see what it holds"


def _check_consolidated(store: CSRStore) -> Iterator[str]:
    """Whether the metadata that the root has of what is below it are those that stand there."""
    try:
        below = parse_consolidated(parse_json(store.get("zarr.json") or b"")) or {}
        for name, stored in below.items():
            if parse_json(store.get(f"{name}/zarr.json") or b"") != stored:
                yield f"{store.url}: zarr.json has other metadata of {name} than {name}/zarr.json, so readers differ in what they see"
    except (OSError, ValueError) as error:
        yield f"{store.url}: zarr.json has metadata of something that is missing or damaged ({error})"


def check_indptr(store: CSRStore, group: str) -> Iterator[str]:
    """Whether ``indptr`` ascends from 0 to the number of entries: reading it tells (`store.schema`)."""
    try:
        _read_all(store.array(f"{group}/indptr"), BLOCK_ROWS)
    except CorruptStoreError as error:
        yield str(error)


def _read_all(array: StoredArray, size: int) -> None:
    """Read an array, and with that check its values."""
    for _ in array.blocks(size):
        pass


def check_rows(store: CSRStore, group: str, num_threads: int, done: Done) -> Generator[str, None, tuple[int, int]]:
    """Whether neighbours are vertices in order, and self-loops as many as there should be; returns the hashes of the edges both ways.

    Yields the problems of the first rows that have some.
    """
    name, strict = f"{group}/indices", int(not store.attributes.may_be_parallel)

    def check(block: RowBlock) -> tuple[RowBlock, Any]:
        lead = int(block.start > block.indptr[0])
        entries = store.array(name).read(block.start - lead, block.stop)
        return block, kernels.check_rows(block.indptr, block.first_row, block.start - lead, lead, entries, store.num_rows, strict)

    num_loops = num_reported = forward = backward = 0
    blocks = row_blocks(store, group, max_entries=BLOCK_ENTRIES, whole_rows=False)
    for block, (rule, row, entry, loops, out, back) in map_bounded(check, blocks, num_threads):
        done(block.num_entries)
        num_loops, forward, backward = num_loops + loops, (forward + int(out)) % 2**64, (backward + int(back)) % 2**64
        if rule != kernels.SOUND and num_reported < 3:
            num_reported += 1
            value = int(store.array(name).read(entry, entry + 1)[0])
            order = "strictly ascending" if strict else "ascending"
            fault = f"but there are {store.num_rows} vertices" if rule == kernels.OUT_OF_RANGE else f"so the row is not {order}"
            yield f"{store.url}: entry {entry} of {name} (row {row}) is {value}, {fault}"
    wanted = store.attributes.num_self_loops
    if not num_reported and num_loops != wanted:
        yield f"{store.url}: {name} has {num_loops} self-loops, but the attributes say {wanted}"
    return forward, backward


def check_reverse(store: CSRStore, hashes: dict[str, tuple[int, int]]) -> Iterator[str]:
    """Whether the reverse of every entry is stored: in ``in/`` when directed, in ``out/`` itself when not."""
    if len(hashes) == 2 and hashes["out"][0] != hashes["in"][1]:
        yield f"{store.url}: in/indices does not hold the edges of out/indices"
    if not store.attributes.directed and hashes["out"][0] != hashes["out"][1]:
        yield f"{store.url}: the graph is undirected, but some edge of out/indices is stored one way only"


def check_degrees(store: CSRStore, group: str) -> Iterator[str]:
    """Whether the degree classes are those of ``indptr``."""
    if store.attributes.vertex_order != "degree":
        return
    value, first = store.degree_classes
    for start, degree in degree_blocks(store, group, PIECE_ROWS):
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
    planes, indices, bounds = store.array(f"{group}/planes/indices"), store.array(f"{group}/indices"), store.plane_offsets
    covered = np.diff(bounds).tolist()
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


def _ascending(ids: Ids) -> Array:
    """Whether each id is above the one before it: (n - 1,) bool."""
    if isinstance(ids, np.ndarray):
        return ids[1:] > ids[:-1]
    import pyarrow.compute as pc

    above: Array = to_numbers(pc.greater(ids[1:], ids[:-1]))
    return above


def _check_sorted(store: CSRStore) -> Iterator[str]:
    column, implied = id_column(store, layout.SORTED_ID), store.attributes.implied_ids
    for start in range(0, column.length, PIECE_ROWS):
        ids = column.read(max(0, start - 1), min(column.length, start + PIECE_ROWS))
        wrong = np.flatnonzero(~_ascending(ids))
        if wrong.size:
            yield f"{store.url}: {layout.SORTED_ID} must ascend, but does not after element {max(0, start - 1) + int(wrong[0])}"
            return
    if implied is not None and column.length:
        low, high = int(column.read(0, 1)[0]), int(column.read(column.length - 1, column.length)[0])
        if low < implied[0] or high >= implied[1]:
            yield f"{store.url}: {layout.SORTED_ID} goes from {low} to {high}, outside of the implied ids {implied}"


def _check_order(store: CSRStore) -> Iterator[str]:
    order, n = store.array(layout.ORDER), store.num_rows
    seen = np.zeros(-(-n // 64), np.uint64)
    for start, values in order.blocks(PIECE_ROWS):
        at = kernels.mark(values, seen, n)
        if at >= 0:
            yield f"{store.url}: {layout.ORDER} must be a permutation, but element {start + at} is {values[at]}, out of range or met before"
            return


def _check_vertex_ids(store: CSRStore) -> Iterator[str]:
    """Ids by vertex equal ids by position, and ascend within each degree, or as the order says."""
    by_vertex, ascending, order = id_column(store, layout.VERTEX_ID), id_column(store, layout.SORTED_ID), store.array(layout.ORDER)
    n = store.num_rows
    first = store.degree_classes[1] if store.attributes.vertex_order == "degree" else np.array([0, store.attributes.num_masters or 0])
    sums = [0, 0]
    for start in range(0, n, PIECE_ROWS):
        stop, lead = min(n, start + PIECE_ROWS), int(start > 0)
        ids = by_vertex.read(start - lead, stop)
        wrong = np.setdiff1d(np.flatnonzero(~_ascending(ids)) + start - lead + 1, first)
        if wrong.size and store.attributes.vertex_order != "locality":
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
    data, out = data.view(), np.empty(len(ids), np.int64)
    data.flags.writeable = False  # some of Arrow's are: one kernel serves all
    kernels.hash_strings(data, offsets, out)
    return out


def _check_input_ids(store: CSRStore) -> Iterator[str]:
    """Ids with and without edges, merged, ascend: none occurs twice."""
    if store.attributes.implied_ids is not None:
        return
    last: Ids = None
    for ids, _ in VertexIds(store).stored_blocks(PIECE_ROWS):
        if not np.all(_ascending(ids)) or (last is not None and not _ascending(joined([last, ids[:1]])).all()):
            yield f"{store.url}: {layout.ISOLATED_ID} does not ascend, or holds an id of {layout.SORTED_ID}"
            return
        last = ids[-1:]


def check_categories(store: CSRStore) -> None:
    """Read text columns: their codes must be those of categories, and these must be text (`store.schema`)."""
    for name in [name for name, kind in store.attributes.columns.items() if kind == "string"]:
        text = StringColumn(store, f"columns/{name}")
        for start in range(0, text.length, BLOCK_ROWS):
            text.read(start, min(text.length, start + BLOCK_ROWS))
        for codes in (store.array(f"{group}/{name}") for group in groups_of(store) if store.has_array(f"{group}/{name}")):
            _read_all(codes, BLOCK_ENTRIES)
