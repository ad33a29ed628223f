"""What a worker keeps from one phase of a partitioning to the next: the open graph, the compiled policy, masters; and what all of it takes.

In: a `CuspSpec`, which says all there is to say and may be pickled. Out: `Stage`, whose budget is charged with everything that grows with
the graph before a phase begins, and `stage_bytes`, the same numbers for whoever wants to refuse earlier.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.kernels import cusp as kernels
from oocgraph.kernels.prop import NO_LOOKUP, Prop, RowLookup, make_prop
from oocgraph.memory import Budget, host_bytes
from oocgraph.partition.blocks import PIECE_ROWS, Blocks
from oocgraph.partition.policy import CompiledPolicy, Policy, compile_policy
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.partitions import MASTERS, master_dtype
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.types import PAGE_BYTES, Array

DEGREES = "degrees"
"""Name of the reservation for what a policy asks about vertices whose rows are not at hand."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CuspSpec:
    """One partitioning, as workers are told of it.

    Attributes
    ----------
    url : str
        The graph.
    group : str
        Lists that are read: ``out`` or ``in``.
    num_partitions : int
    policy : Policy
    columns : tuple of str
        Edge columns that go along.
    blocks : Blocks
    root, scratch : Path
        The unfinished output, and a folder that goes when it is done; every worker sees both.
    threads : int or None
        Of each worker; None: as many as it has.
    memory_budget : str, int or None
        Of each worker.
    """

    url: str
    group: str
    num_partitions: int
    policy: Policy
    columns: tuple[str, ...]
    blocks: Blocks
    root: Path
    scratch: Path
    threads: int | None
    memory_budget: str | int | None


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A block that is in memory.

    Attributes
    ----------
    number : int
        Of the block.
    first_row, begin : int
        First row and entry.
    indptr : (num_rows + 1,) int64
        As stored.
    indices : (num_entries,) index dtype
        Valid until the thread reads its next block.
    """

    number: int
    first_row: int
    begin: int
    indptr: Array
    indices: Array

    @property
    def stop_row(self) -> int:
        """Row after the last."""
        return self.first_row + self.indptr.size - 1


class Stage:
    """What a worker keeps while a graph is partitioned.

    Parameters
    ----------
    spec
        What is done.
    threads
        Threads of this worker.
    limit_bytes
        What this worker may hold in all.

    Raises
    ------
    PolicyError
        The policy cannot be compiled.
    BudgetError
        The budget is too small; nothing has been read by then.
    """

    def __init__(self, spec: CuspSpec, *, threads: int, limit_bytes: int) -> None:
        self.spec, self.threads, self.store = spec, threads, open_graph(spec.url)
        self.compiled: CompiledPolicy = compile_policy(spec.policy)
        self.master_dtype = master_dtype(spec.num_partitions)
        self.num_words = -(-self.store.num_vertices // 64)
        charges = stage_bytes(self.store, spec, self.compiled, threads)
        _reserve(Budget(limit_bytes), charges)  # before anything is read; once more when the compiler has taken what it needs
        self.compiled = compile_policy(spec.policy, self.prop)
        _load_kernels(self.store.index_dtype, self.master_dtype)
        self.budget = Budget(limit_bytes, baseline_bytes=host_bytes() - charges.get(DEGREES, 0))
        _reserve(self.budget, charges)
        self.known = np.zeros(len(spec.blocks), np.bool_)
        self._buffers = threading.local()

    @cached_property
    def masters(self) -> Array:
        """Partition of each vertex's master as far as known here, -1 for others: (num_vertices,) `master_dtype`."""
        return np.full(self.store.num_vertices, -1, self.master_dtype)

    @cached_property
    def masters_file(self) -> PreallocatedArray:
        """Where all workers write masters."""
        return PreallocatedArray(self.spec.root, MASTERS, self.master_dtype, self.store.num_vertices)

    def learn_masters(self, blocks: Array) -> None:
        """Read the masters of blocks that other workers have assigned: (k,) block numbers."""
        file, bounds = self.masters_file, self.spec.blocks.first_row
        stored = PlainArray(self.spec.root, MASTERS, file.dtype, file.length, file.chunk_length)
        for b in blocks[~self.known[blocks]].tolist():
            stored.read_into(int(bounds[b]), self.masters[bounds[b] : bounds[b + 1]])
        self.known[blocks] = True

    @cached_property
    def prop(self) -> Prop:
        """What the policy may ask, with no rows at hand."""
        attributes, needs = self.store.attributes, self.compiled
        return make_prop(
            self.store.num_vertices, attributes.num_stored_edges, self.spec.num_partitions, directed=attributes.directed,
            out_rows=_lookup(self.store, "out") if _needs_lookup(needs, attributes.directed, "out") else NO_LOOKUP,
            in_rows=_lookup(self.store, "in") if _needs_lookup(needs, attributes.directed, "in") else NO_LOOKUP,
            index_dtype=self.store.index_dtype,
        )  # fmt: skip

    @cached_property
    def _arrays(self) -> tuple[StoredArray, StoredArray]:
        return self.store.array(f"{self.spec.group}/indptr"), self.store.array(f"{self.spec.group}/indices")

    def read_rows(self, b: int, *, with_entries: bool = True) -> Rows:
        """Read a block.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        blocks, (indptr, indices) = self.spec.blocks, self._arrays
        first, stop, begin, end = (int(a[b + k]) for a in (blocks.first_row, blocks.first_entry) for k in (0, 1))
        pointers = self.buffer("indptr", stop - first + 1, np.int64)
        read_elements(indptr, first, pointers)
        entries = self.buffer("indices", end - begin if with_entries else 0, self.store.index_dtype)
        read_elements(indices, begin, entries)
        if entries.size and (entries.max() >= self.store.num_vertices or entries.min() < 0):
            raise CorruptStoreError(
                f"{self.store.url}: among neighbours {begin} to {end - 1} of {self.spec.group}/indices one is not below "
                f"{self.store.num_vertices:,}, the number of vertices; run `oocgraph check`, then restore the store or build it again"
            )
        return Rows(b, first, begin, pointers, entries)

    def buffer(self, name: str, length: int, dtype: Any) -> Array:
        """Return an array of the calling thread's, valid until it asks for the same name again."""
        held: dict[str, Array] = self._buffers.__dict__.setdefault("held", {})
        num_bytes = length * np.dtype(dtype).itemsize
        if name not in held or held[name].size < num_bytes:
            held.pop(name, None)
            held[name] = np.empty(num_bytes, np.uint8)
        return held[name][:num_bytes].view(dtype)


def stage_bytes(store: CSRStore, spec: CuspSpec, compiled: CompiledPolicy, threads: int) -> dict[str, int]:
    """Return what a worker holds while it partitions, by name."""
    n, parts, blocks = store.num_vertices, spec.num_partitions, spec.blocks
    words = -(-n // 64)
    column_bytes = sum(store.array(f"{spec.group}/{name}").dtype.itemsize for name in spec.columns)
    index_bytes, owner_bytes = store.index_dtype.itemsize, master_dtype(parts).itemsize
    entry_bytes = 2 * index_bytes + owner_bytes + 4 + (8 + 2 * column_bytes if column_bytes else 0)
    row_bytes = 8 + 8 * parts + owner_bytes
    chunks = sum(_decoded_bytes(store.array(f"{spec.group}/{name}")) for name in ("indices", "indptr", *spec.columns))
    groups = [group for group in ("out", "in") if _needs_lookup(compiled, store.attributes.directed, group)]
    found = {
        "masters": n * owner_bytes,
        DEGREES: sum(_lookup_bytes(store, group) for group in groups),
        "proxies of each partition": parts * words * 2 * 16,
        "blocks in work": threads * (blocks.max_entries * entry_bytes + blocks.max_rows * row_bytes + chunks + 2 * PAGE_BYTES),
        "pieces of vertices": PIECE_ROWS * (2 * 8 + owner_bytes + 1),
    }
    return {name: num_bytes for name, num_bytes in found.items() if num_bytes}


def _reserve(budget: Budget, charges: dict[str, int]) -> None:
    for name, num_bytes in charges.items():
        budget.reserve(name, num_bytes)


def read_elements(array: StoredArray, start: int, out: Array) -> None:
    """Fill `out` with elements of a stored array from `start`."""
    if isinstance(array, PlainArray):
        array.read_into(start, out)
    else:
        out[:] = array.read(start, start + out.size)


def _decoded_bytes(array: StoredArray) -> int:
    """Bytes held beside the result where chunks are decoded as a whole."""
    return 0 if isinstance(array, PlainArray) else 3 * array.chunk_length * array.dtype.itemsize


def _needs_lookup(compiled: CompiledPolicy, directed: bool, group: str) -> bool:
    if group == "out":
        return compiled.uses_out_degree or (compiled.uses_in_degree and not directed)
    return compiled.uses_in_degree and directed


def _by_class(store: CSRStore, group: str) -> bool:
    """Whether rows are found by degree class."""
    return store.attributes.vertex_order == "degree" and group == store.pull_group


def _lookup_bytes(store: CSRStore, group: str) -> int:
    return 24 * store.array(f"{group}/degrees/value").length if _by_class(store, group) else 8 * (store.num_vertices + 1)


def _lookup(store: CSRStore, group: str) -> RowLookup:
    none = np.empty(0, np.int64)
    if not _by_class(store, group):
        return RowLookup(store.read(f"{group}/indptr").astype(np.int64, copy=False), none, none, none)
    value, first = (array.astype(np.int64) for array in store.degrees)
    edge = np.append(0, np.cumsum(np.diff(np.append(first, store.num_vertices)) * value))[:-1]
    return RowLookup(none, first, edge, value)


def _load_kernels(dtype: np.dtype[Any], masters_dtype: np.dtype[Any]) -> None:
    """Bring the kernels into memory before memory is counted."""
    one, counts, words = np.zeros(1, np.int64), np.zeros((1, 2), np.int64), np.ones((2, 1), np.uint64)
    indptr, indices, masters = np.array([0, 1]), np.zeros(1, dtype), np.zeros(1, masters_dtype)
    ranked = np.ones((2, 1, 2), np.uint64)
    kernels.count_owned(0, indptr, indices, 0, masters, masters, words, counts)
    kernels.hash_owners(0, masters)
    kernels.split_proxies(0, masters, words[0], words[0].copy(), words[1])
    kernels.rank_words(words[0], 0, ranked[0])
    kernels.list_bits(words[0], 0, one)
    kernels.insert_edges(
        0, indptr, indices, 0, masters, masters, ranked, np.zeros(2, np.int64), np.full(2, 1), np.zeros(1, np.int32), indices.copy(), one,
        np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip
