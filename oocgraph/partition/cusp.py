"""CuSP's phases: who owns which vertex and edge, then every edge to its place. Pure functions that a runtime schedules.

In: a `Stage` and a range of blocks (`oocgraph.partition.blocks`), or a partition. Out: small numbers, and files in the unfinished output,
which every worker sees: workers exchange files, and a phase that is run twice, because a worker was lost, writes the same twice.

1. `assign_masters`: masters of the blocks' vertices.
2. `assign_edges`: edges of each partition in each block; which vertices have a proxy where (bitmaps, a file for each reader).
3. `allocate`, by partition: bitmaps put together; local ids are ranks in them; the local CSR's files get their size.
4. `construct`: owners are found again, from the initial state, and must be the same; each edge is written to its place.
   Where a block's rows lie in the local CSR follows from the counts of the blocks before, because a partition's masters, and its mirrors,
   ascend as the blocks do: nothing is sorted, and no two blocks write the same place.
5. `transpose`, if asked, and `seal`, by partition (`oocgraph.partition.finish`).

Hoang, Dathathri, Gill, Pingali, "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019,
section 4. Differs from the paper in: blocks and partitions stay on disk; edges are not sent, but written where they belong.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.errors import PolicyError
from oocgraph.kernels import cusp as kernels
from oocgraph.partition.blocks import PIECE_ROWS
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.partition.stage import EndedError, Rows, Stage, read_elements
from oocgraph.store.layout import ISOLATED_ID, ORDER, SORTED_ID, VERTEX_ID
from oocgraph.store.partitions import MIRROR_OWNER, part_name
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.rows import map_bounded
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, index_dtype

PIECE_WORDS = PIECE_ROWS // 64
"""Words of a bitmap worked on at once."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeCounts:
    """What a reader found in some blocks.

    Attributes
    ----------
    numbers : range
        The blocks.
    counts : (num_blocks, num_partitions, 2) int64
        Edges of each partition, in rows of its masters and of its mirrors.
    hashes : (num_blocks,) uint64
        Of all owners.
    before, after : array
        State of the policy.
    """

    numbers: range
    counts: Array
    hashes: Array
    before: Array
    after: Array


@dataclass(frozen=True, slots=True, eq=False)
class PartSizes:
    """Vertices of a partition.

    Attributes
    ----------
    num_masters, num_mirrors, num_isolated : int
        Masters and mirrors with an edge, masters without.
    first_local : (num_blocks + 1, 2) int64
        Local ids of the first master, the first mirror, of each block's rows and later.
    """

    num_masters: int
    num_mirrors: int
    num_isolated: int
    first_local: Array

    @property
    def num_local(self) -> int:
        """Vertices with a local id."""
        return self.num_masters + self.num_mirrors


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the edges of some blocks go.

    Attributes
    ----------
    found : EdgeCounts
        What `assign_edges` said of these blocks.
    first_edge, first_local : (num_blocks + 1, num_partitions, 2) int64
        Entry of the local CSR, and local id, at which each block's share begins.
    """

    found: EdgeCounts
    first_edge: Array
    first_local: Array


def assign_masters(stage: Stage, numbers: range, round_: int, state: Array | None) -> tuple[Array, Array]:
    """Assign the masters of the vertices of some blocks; return the policy's state before (where None: the initial one) and afterwards.

    Raises
    ------
    PolicyError
        The policy failed, or named a partition that does not exist; the message names the vertex.
    """
    compiled, blocks = stage.compiled, stage.spec.blocks
    before = stage.spec.policy.initial_master_state(stage.prop) if state is None else state
    after = before.copy()
    if compiled.uses_masters:
        # of this round a reader knows nobody's masters, whichever readers this worker has worked for, and how often
        stage.forget_masters(np.union1d(numbers, np.flatnonzero(stage.known & (blocks.round >= round_))))
        stage.learn_masters(np.flatnonzero(blocks.round < round_))

    def assign(b: int) -> None:
        rows = stage.read_rows(b, with_entries=compiled.reads_neighbours)
        prop = stage.prop.with_rows(rows.first_row, rows.indptr, rows.indices, rows.begin, rows_are_in=stage.spec.read == "in")
        at = np.full(3, -1, np.int64)
        with _told(stage, "get_master", at[:1]):
            if compiled.assign_masters(prop, rows.first_row, rows.stop_row, after, stage.masters, at):
                raise _OutOfRangeError(int(at[1]))
        stage.masters_file.write(rows.first_row, stage.masters[rows.first_row : rows.stop_row])
        stage.known[b] = True

    in_order = compiled.has_master_state or compiled.uses_masters
    _each(stage, assign, numbers, 1 if in_order else stage.threads)
    return before, after


def assign_edges(stage: Stage, reader: int, numbers: range, round_: int, state: Array | None) -> EdgeCounts:
    """Count the edges of each partition in some blocks, and note which vertices have a proxy there.

    Raises
    ------
    PolicyError
        The policy failed, or named a partition that does not exist; the message names the edge.
    """
    spec, first = stage.spec, numbers.start
    stage.learn_masters(np.arange(len(spec.blocks)))
    before = spec.policy.initial_edge_state(stage.prop) if state is None else state
    after = before.copy()
    proxies = np.zeros((spec.num_partitions, stage.num_words), np.uint64)
    counts, hashes = np.zeros((len(numbers), spec.num_partitions, 2), np.int64), np.zeros(len(numbers), np.uint64)

    def assign(b: int) -> None:
        rows = stage.read_rows(b)
        owners = _owners(stage, rows, after)
        hashes[b - first] = kernels.count_owned(
            rows.first_row, rows.indptr, rows.indices, rows.begin, owners, stage.masters, proxies, counts[b - first]
        )

    _each(stage, assign, numbers, 1 if stage.compiled.has_edge_state else stage.threads)
    _add_proxies(_proxies_path(spec, reader), proxies, keep=round_ > 0)
    return EdgeCounts(numbers, counts, hashes, before, after)


def allocate(stage: Stage, p: int, readers: Iterable[int], num_edges: int) -> PartSizes:
    """Give the vertices of a partition their local ids, write what is known of them, and make the files of its edges."""
    spec = stage.spec
    stage.learn_masters(np.arange(len(spec.blocks)))
    words, ranked = np.zeros((2, stage.num_words), np.uint64), np.empty((2, stage.num_words, 2), np.uint64)
    files = [path for path in (_proxies_path(spec, reader) for reader in readers) if path.exists()]
    for low in range(0, stage.num_words, PIECE_WORDS):
        high = min(stage.num_words, low + PIECE_WORDS)
        proxies = np.zeros(high - low, np.uint64)
        for path in files:
            proxies |= np.fromfile(path, np.uint64, high - low, offset=8 * (p * stage.num_words + low))
        kernels.split_proxies(p, stage.masters[64 * low : 64 * high], proxies, words[0, low:high], words[1, low:high])
    num_masters = int(kernels.rank_words(words[0], 0, ranked[0]))
    num_local = int(kernels.rank_words(words[1], num_masters, ranked[1]))
    ranked.tofile(_local_path(spec, p))
    first_local = _at_blocks(stage, ranked, (num_masters, num_local))
    sizes = PartSizes(num_masters, num_local - num_masters, _num_mastered(stage, p) - num_masters, first_local)
    _write_vertices(stage, p, words, sizes)
    for name, dtype, length in edge_arrays(stage, sizes.num_local, num_edges):
        array_of(spec, p, name, dtype, length).create()
    return sizes


def construct(stage: Stage, sizes: list[tuple[int, int]], places: Places) -> Array:
    """Write the edges of some blocks to their places.

    Parameters
    ----------
    sizes
        Local vertices and edges of each partition.

    Returns
    -------
    (num_partitions,) int64
        Self-loops.

    Raises
    ------
    PolicyError
        The policy decides otherwise than it did before.
    """
    spec, found = stage.spec, places.found
    stage.learn_masters(np.arange(len(spec.blocks)))
    ranked = _read_ranked(stage)
    state = found.before.copy()
    targets = [{name: array_of(spec, p, name, *shape) for name, *shape in edge_arrays(stage, *size)} for p, size in enumerate(sizes)]
    self_loops = np.zeros((len(found.numbers), spec.num_partitions), np.int64)

    def insert(b: int) -> None:
        i, rows = b - found.numbers.start, stage.read_rows(b)
        owners = _owners(stage, rows, state)
        if kernels.hash_owners(rows.begin, owners) != found.hashes[i]:
            raise _not_deterministic(stage, rows)
        segments = _Segments(found.counts[i], places.first_local[i + 1] - places.first_local[i])
        out = stage.buffer("out", rows.indices.size, rows.indices.dtype)
        place = stage.buffer("place", rows.indices.size if spec.columns else 0, np.int64)
        pointers = stage.buffer("pointers", segments.num_rows, np.int64)
        slots = stage.buffer("slots", rows.indices.size, np.int32)
        room = (segments.first_edge + found.counts[i]).ravel()
        full = kernels.insert_edges(
            rows.first_row, rows.indptr, rows.indices, rows.begin, owners, stage.masters, ranked, segments.first_edge.flatten(), room,
            slots, out, place, pointers, segments.first_row.flatten(), self_loops[i],
        )  # fmt: skip
        if full:
            raise _not_deterministic(stage, rows)
        for p, kind, at, edges, locals_ in segments.shares():
            edge, local = int(places.first_edge[i, p, kind]), int(places.first_local[i, p, kind])
            targets[p][f"{spec.read}/indices"].write(edge, out[edges])
            targets[p][f"{spec.read}/indptr"].write(1 + local, pointers[locals_] + (edge - at))
        for name in spec.columns:
            moved = _moved_column(stage, name, rows, place)
            for p, kind, _, edges, _ in segments.shares():
                targets[p][f"{spec.read}/{name}"].write(int(places.first_edge[i, p, kind]), moved[edges])

    _each(stage, insert, found.numbers, 1 if stage.compiled.has_edge_state else stage.threads)
    return np.asarray(self_loops.sum(axis=0))


class _Segments:
    """How a block's output is divided: by partition, rows of masters before rows of mirrors.

    Attributes
    ----------
    first_edge, first_row : (num_partitions, 2) int64
        Where each begins in the buffers of edges and of local pointers.
    """

    def __init__(self, num_edges: Array, num_rows: Array) -> None:
        self._num_edges, self._num_rows = num_edges, num_rows
        self.first_edge = (np.cumsum(num_edges) - num_edges.ravel()).reshape(-1, 2)
        self.first_row = (np.cumsum(num_rows) - num_rows.ravel()).reshape(-1, 2)
        self.num_rows = int(num_rows.sum())

    def shares(self) -> Iterator[tuple[int, int, int, slice, slice]]:
        """Iterate over partition, kind, first edge in the buffer, edges and local pointers that there are."""
        for p, kind in np.argwhere(self._num_rows).tolist():
            edge, row = int(self.first_edge[p, kind]), int(self.first_row[p, kind])
            yield p, kind, edge, slice(edge, edge + int(self._num_edges[p, kind])), slice(row, row + int(self._num_rows[p, kind]))


def array_of(spec: CuspSpec, p: int, name: str, dtype: Any, length: int) -> PreallocatedArray:
    """Return an array of a partition's store."""
    return PreallocatedArray(spec.root / part_name(p), name, dtype, length)


def edge_arrays(stage: Stage, num_local: int, num_edges: int) -> Iterator[tuple[str, Any, int]]:
    """Iterate over name, dtype and length of the arrays of a local CSR."""
    spec = stage.spec
    yield f"{spec.read}/indptr", np.dtype(np.int64), num_local + 1
    yield f"{spec.read}/indices", index_dtype(num_local), num_edges
    for name in spec.columns:
        yield f"{spec.read}/{name}", stage.store.array(f"{spec.group}/{name}").dtype, num_edges


def vertex_arrays(sizes: PartSizes) -> Iterator[tuple[str, Any, int]]:
    """Iterate over name, dtype and length of the arrays of a partition's vertices."""
    for name in (VERTEX_ID, SORTED_ID, ORDER):
        yield name, index_dtype(sizes.num_local) if name == ORDER else np.dtype(np.int64), sizes.num_local
    yield ISOLATED_ID, np.dtype(np.int64), sizes.num_isolated
    yield MIRROR_OWNER, np.dtype(np.int32), sizes.num_mirrors


def _write_vertices(stage: Stage, p: int, words: Array, sizes: PartSizes) -> None:
    """Write ids, their order, isolated masters and the owners of mirrors, piece by piece."""
    arrays = {name: array_of(stage.spec, p, name, dtype, length) for name, dtype, length in vertex_arrays(sizes)}
    for array in arrays.values():
        array.create()
    at, listed = [0, sizes.num_masters], np.empty(64 * min(PIECE_WORDS, stage.num_words), np.int64)
    num_isolated = 0
    for low in range(0, stage.num_words, PIECE_WORDS):
        piece = words[:, low : low + PIECE_WORDS]
        masters = stage.masters[64 * low : 64 * (low + PIECE_WORDS)]
        vertices = [listed[: kernels.list_bits(part, 64 * low, listed)].copy() for part in piece]
        both = np.concatenate(vertices)
        order = np.argsort(both, kind="stable")
        local = np.concatenate([np.arange(first, first + part.size) for first, part in zip(at, vertices, strict=True)])
        arrays[SORTED_ID].write(sum(at) - sizes.num_masters, both[order])
        arrays[ORDER].write(sum(at) - sizes.num_masters, local[order])
        arrays[VERTEX_ID].write(at[0], vertices[0])
        arrays[VERTEX_ID].write(at[1], vertices[1])
        arrays[MIRROR_OWNER].write(at[1] - sizes.num_masters, masters[vertices[1] - 64 * low])
        alone = masters == p
        alone[vertices[0] - 64 * low] = False
        isolated = 64 * low + np.flatnonzero(alone)
        arrays[ISOLATED_ID].write(num_isolated, isolated)
        num_isolated += isolated.size
        at = [first + part.size for first, part in zip(at, vertices, strict=True)]


def _owners(stage: Stage, rows: Rows, state: Array) -> Array:
    """Return the partition of each edge of a block: a buffer of the thread's."""
    owners = stage.buffer("owners", rows.indices.size, stage.master_dtype)
    in_lists, at = stage.spec.read == "in", np.full(3, -1, np.int64)
    with _told(stage, "get_edge_owner", at[:2]):
        if stage.compiled.edge_owners(
            stage.prop, rows.first_row, rows.indptr, rows.indices, rows.begin, in_lists, stage.masters, state, owners, at
        ):
            raise _OutOfRangeError(int(at[2]))
    return owners


class _OutOfRangeError(Exception):
    """A policy named a partition that does not exist."""


@contextmanager
def _told(stage: Stage, function: str, numbers: Array) -> Iterator[None]:
    """Tell what goes wrong in the user's functions with the vertex, or the ends of the edge, that a loop has left in `numbers`."""
    try:
        yield
    except PolicyError:
        raise
    except Exception as error:
        ids = VertexIds(stage.store).ids_of(numbers).tolist() if numbers.min() >= 0 else numbers.tolist()
        ends = [f"vertex {v} (id {one!r})" for v, one in zip(numbers.tolist(), ids, strict=True)]
        where = f"policy {stage.spec.policy.name!r}: {function}", ends[0] if len(ends) == 1 else f"the edge from {ends[0]} to {ends[1]}"
        if isinstance(error, _OutOfRangeError):
            raise PolicyError(
                f"{where[0]} returned {error} for {where[1]}, but partitions are 0 to {stage.spec.num_partitions - 1}; correct the policy"
            ) from None
        raise PolicyError(f"{where[0]} raised {type(error).__name__} for {where[1]}: {error}; correct the policy") from error


def _not_deterministic(stage: Stage, rows: Rows) -> PolicyError:
    return PolicyError(
        f"policy {stage.spec.policy.name!r}: get_edge_owner is not deterministic: for edges of vertices {rows.first_row} to "
        f"{rows.stop_row - 1} it decided otherwise when they were inserted than when they were counted; it may depend on its "
        "arguments and its state alone"
    )


def _each(stage: Stage, function: Callable[[int], None], numbers: range, threads: int) -> None:
    """Call a function for each block, unless the partitioning ends meanwhile."""

    def call(b: int) -> None:
        if stage.ended:
            raise EndedError
        function(b)

    for _ in map_bounded(call, numbers, threads):
        pass


def _proxies_path(spec: CuspSpec, reader: int) -> Path:
    return spec.scratch / f"proxies-{reader:05d}"


def _local_path(spec: CuspSpec, p: int) -> Path:
    return spec.scratch / f"local-{p:05d}"


def _add_proxies(path: Path, proxies: Array, *, keep: bool) -> None:
    """Write the bitmaps of a reader, with what it found in the rounds before."""
    if keep:
        proxies |= np.fromfile(path, np.uint64).reshape(proxies.shape)
    unfinished = path.with_suffix(f".{uuid.uuid4().hex}")  # of its own: another worker may have been told to do the same
    proxies.tofile(unfinished)
    os.replace(unfinished, path)


def _read_ranked(stage: Stage) -> Array:
    """Return bitmaps with ranks of all partitions: (2 * num_partitions, num_words, 2) uint64."""
    ranked = np.empty((stage.spec.num_partitions, 2, stage.num_words, 2), np.uint64)
    for p in range(stage.spec.num_partitions):
        with open(_local_path(stage.spec, p), "rb", buffering=0) as file:
            file.readinto(ranked[p].view(np.uint8).data)
    return ranked.reshape(-1, stage.num_words, 2)


def _num_mastered(stage: Stage, p: int) -> int:
    """Vertices whose master is in a partition, counted by pieces."""
    n = stage.store.num_vertices
    return sum(int(np.count_nonzero(stage.masters[low : low + PIECE_ROWS] == p)) for low in range(0, n, PIECE_ROWS))


def _at_blocks(stage: Stage, ranked: Array, ends: tuple[int, int]) -> Array:
    """Return the local ids of the first master and mirror from each block's first row on: (num_blocks + 1, 2) int64."""
    rows = stage.spec.blocks.first_row
    inside = rows[:-1] >> 6
    below = (np.uint64(1) << (rows[:-1] & 63).astype(np.uint64)) - np.uint64(1)
    found = np.empty((rows.size, 2), np.int64)
    for kind, end in enumerate(ends):
        found[:-1, kind] = ranked[kind, inside, 1] + np.bitwise_count(ranked[kind, inside, 0] & below)
        found[-1, kind] = end
    return found


def _moved_column(stage: Stage, name: str, rows: Rows, place: Array) -> Array:
    """Return an edge column of a block, each value where its edge went."""
    array = stage.store.array(f"{stage.spec.group}/{name}")
    values = stage.buffer(f"read {name}", rows.indices.size, array.dtype.newbyteorder("="))
    moved = stage.buffer(f"moved {name}", rows.indices.size, values.dtype)
    read_elements(array, rows.begin, values)
    kernels.scatter(values, place, moved)
    return moved
