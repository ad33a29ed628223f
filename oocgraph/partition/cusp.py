"""CuSP's phases: who owns which vertex and edge, then every edge to its place. Pure functions that a runtime schedules.

In: a `Stage` and a range of blocks (`oocgraph.partition.blocks`), or a partition. Out: small numbers, and files in the unfinished output,
which every worker sees: workers exchange files, and a phase that is run twice, because a worker was lost, writes the same twice.

1. `assign_masters`: masters of the blocks' vertices.
2. `assign_edges`: edges of each partition in each block; which vertices have a proxy where (bitmaps, a file for each reader).
3. `allocate`, by partition (`oocgraph.partition.local_ids`): bitmaps put together, local ids are ranks in them; files get their size.
4. `construct`: owners are found again, from the initial state, and must be the same; each edge is written to its place.
   Where a block's rows lie in the local CSR follows from the counts of the blocks before, because a partition's masters, and its mirrors,
   ascend as the blocks do: nothing is sorted, and no two blocks write the same place.
5. `transpose`, if asked, and `seal`, by partition (`oocgraph.partition.finish`).

Hoang, Dathathri, Gill, Pingali, "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019,
section 4. Differs from the paper in: blocks and partitions stay on disk; edges are not sent, but written where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from oocgraph.kernels import cusp as kernels
from oocgraph.partition.local_ids import add_proxies, array_of, edge_arrays, read_ranked
from oocgraph.partition.policy_code import OutOfRangeError, not_deterministic, policy_errors
from oocgraph.partition.stage import EndedError, Rows, Stage
from oocgraph.store.columns import distinct
from oocgraph.store.rows import map_bounded
from oocgraph.types import Array


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
        # a reader knows no masters of this round, whichever readers this worker has worked for, and how often
        stage.forget_masters(distinct(np.concatenate([numbers, np.flatnonzero(stage.known & (blocks.round >= round_))])))
        stage.learn_masters(np.flatnonzero(blocks.round < round_))

    def assign(b: int) -> None:
        rows = stage.read_rows(b, with_entries=compiled.reads_neighbours)
        prop = stage.prop.with_rows(rows.first_row, rows.indptr, rows.indices, rows.begin, rows_are_in=stage.spec.read == "in")
        at = np.full(3, -1, np.int64)
        with _policy_errors(stage, "get_master", at[:1]):
            if compiled.assign_masters(prop, rows.first_row, rows.stop_row, after, stage.masters, at):
                raise OutOfRangeError(int(at[1]))
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
    add_proxies(spec, reader, proxies, keep=round_ > 0)
    return EdgeCounts(numbers, counts, hashes, before, after)


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
    ranked = read_ranked(stage)
    state = found.before.copy()
    targets = [{name: array_of(spec, p, name, *shape) for name, *shape in edge_arrays(stage, *size)} for p, size in enumerate(sizes)]
    self_loops = np.zeros((len(found.numbers), spec.num_partitions), np.int64)

    def insert(b: int) -> None:
        i, rows = b - found.numbers.start, stage.read_rows(b)
        owners = _owners(stage, rows, state)
        if kernels.hash_owners(rows.begin, owners) != found.hashes[i]:
            raise not_deterministic(spec.policy.name, rows.first_row, rows.stop_row)
        segments = _Segments(found.counts[i], places.first_local[i + 1] - places.first_local[i])
        out = stage.scratch.get("out", rows.indices.size, rows.indices.dtype)
        place = stage.scratch.get("place", rows.indices.size if spec.columns else 0, np.int64)
        pointers = stage.scratch.get("pointers", segments.num_rows, np.int64)
        slots = stage.scratch.get("slots", rows.indices.size, np.int32)
        room = (segments.first_edge + found.counts[i]).ravel()
        full = kernels.insert_edges(
            rows.first_row, rows.indptr, rows.indices, rows.begin, owners, stage.masters, ranked, segments.first_edge.flatten(), room,
            slots, out, place, pointers, segments.first_row.flatten(), self_loops[i],
        )  # fmt: skip
        if full:
            raise not_deterministic(spec.policy.name, rows.first_row, rows.stop_row)
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


def _owners(stage: Stage, rows: Rows, state: Array) -> Array:
    """Return the partition of each edge of a block: a buffer of the thread's."""
    owners = stage.scratch.get("owners", rows.indices.size, stage.master_dtype)
    in_lists, at = stage.spec.read == "in", np.full(3, -1, np.int64)
    with _policy_errors(stage, "get_edge_owner", at[:2]):
        if stage.compiled.edge_owners(
            stage.prop, rows.first_row, rows.indptr, rows.indices, rows.begin, in_lists, stage.masters, state, owners, at
        ):
            raise OutOfRangeError(int(at[2]))
    return owners


def _policy_errors(stage: Stage, function: str, numbers: Array) -> AbstractContextManager[None]:
    return policy_errors(stage.spec.policy.name, function, stage.store, stage.spec.num_partitions, numbers)


def _each(stage: Stage, function: Callable[[int], None], numbers: range, threads: int) -> None:
    """Call a function for each block, unless the partitioning ends meanwhile."""

    def call(b: int) -> None:
        if stage.ended:
            raise EndedError
        function(b)

    for done, _ in enumerate(map_bounded(call, numbers, threads), 1):
        stage.tell(done, len(numbers))


def _moved_column(stage: Stage, name: str, rows: Rows, place: Array) -> Array:
    """Return an edge column of a block, each value where its edge went."""
    array = stage.store.array(f"{stage.spec.group}/{name}")
    values = stage.scratch.get(f"read {name}", rows.indices.size, array.dtype.newbyteorder("="))
    moved = stage.scratch.get(f"moved {name}", rows.indices.size, values.dtype)
    array.read_into(rows.begin, values)
    kernels.scatter(values, place, moved)
    return moved
