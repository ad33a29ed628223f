"""What a worker keeps from one phase of a partitioning to the next: the open graph, the compiled policy, masters.

In: a `CuspSpec`. Out: `Stage`, whose budget is charged with everything that grows with the graph before a phase begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oocgraph.external_sort.workers import Scratch
from oocgraph.kernels.prop import NO_LOOKUP, Prop, make_prop
from oocgraph.kernels.rows import RowLookup
from oocgraph.kernels.warm_cusp import load_cusp_kernels
from oocgraph.lazy import cached_property
from oocgraph.memory import Budget, bytes_before, format_bytes, with_threads_that_fit
from oocgraph.partition.cusp_spec import COMPILER_BYTES, DEGREES, CuspSpec, needs_lookup, stage_bytes
from oocgraph.partition.policy import CompiledPolicy, compile_policy
from oocgraph.store.arrays import PlainArray, StoredArray
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.partitions import MASTERS, master_dtype
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.row_lookup import sorted_lookup
from oocgraph.store.rows import are_by_degree, damaged_rows
from oocgraph.types import Array


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


class EndedError(Exception):
    """A partitioning has ended: what is still at work for it is not wanted any more."""


class Stage:
    """What a worker keeps while a graph is partitioned. One phase at a time works with it, and holds `lock`.

    Attributes
    ----------
    masters : (num_vertices,) `master_dtype`
        Partition of each vertex's master as far as known here, -1 for others.
    known : (num_blocks,) bool
        Blocks whose masters are.
    ended : bool
        Whether to stop: phases raise `EndedError` at their next block.
    scratch : Scratch
        Buffers of each thread.
    tell : callable
        Called with blocks done and blocks, as a phase goes on.

    Parameters
    ----------
    spec
        What is done.
    threads
        Threads of this worker, if there is room for their blocks.
    limit_bytes
        What this worker may hold in all.
    untouched_bytes
        What others have reserved of it and do not hold yet.

    Raises
    ------
    PolicyError
        The policy cannot be compiled.
    BudgetError
        The budget is too small; nothing has been read by then.
    """

    def __init__(self, spec: CuspSpec, *, threads: int, limit_bytes: int, untouched_bytes: int = 0) -> None:
        self.spec, self.store = spec, open_graph(spec.url, check_pages=spec.check_pages)
        self.compiled: CompiledPolicy = compile_policy(spec.policy)
        self.master_dtype = master_dtype(spec.num_partitions)
        self.num_words = -(-self.store.num_rows // 64)
        compiler, before = {"compiling the policy": COMPILER_BYTES} if spec.policy.compiled else {}, bytes_before(limit_bytes)

        def charged(threads: int, baseline_bytes: int, more: dict[str, int]) -> tuple[int, Budget]:
            budget = Budget(limit_bytes, baseline_bytes + untouched_bytes, following_bytes=spec.following_bytes)
            _reserve(budget, stage_bytes(self.store, spec, self.compiled, threads) | more)
            return threads, budget

        # before anything is read; once more when the compiler has taken what it needs
        with_threads_that_fit(lambda most: charged(most, before, compiler), threads)
        self.compiled = compile_policy(spec.policy, self.prop)
        columns = [self.store.array(f"{spec.group}/{name}").dtype.newbyteorder("=").name for name in spec.columns]
        load_cusp_kernels(self.store.index_dtype.name, self.master_dtype.name, columns)
        before = bytes_before(limit_bytes) - stage_bytes(self.store, spec, self.compiled, 1).get(DEGREES, 0)
        self.threads, self.budget = with_threads_that_fit(lambda most: charged(most, before, {}), threads)
        self.masters: Array = np.full(self.store.num_rows, -1, self.master_dtype)
        self.masters_file = PreallocatedArray(spec.root, MASTERS, self.master_dtype, self.store.num_rows)
        self.known = np.zeros(len(spec.blocks), np.bool_)
        self.lock, self.ended = threading.Lock(), False
        self.tell: Callable[[int, int], None] = lambda done, total: None
        self.scratch = Scratch()

    def forget_masters(self, blocks: Array) -> None:
        """Set the masters of blocks to not known: (k,) block numbers."""
        bounds = self.spec.blocks.first_row
        for b in blocks.tolist():
            self.masters[bounds[b] : bounds[b + 1]] = -1
        self.known[blocks] = False

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
            self.store.num_rows, attributes.num_stored_edges, self.spec.num_partitions, directed=attributes.directed,
            out_rows=_lookup(self.store, "out") if needs_lookup(needs, attributes.directed, "out") else NO_LOOKUP,
            in_rows=_lookup(self.store, "in") if needs_lookup(needs, attributes.directed, "in") else NO_LOOKUP,
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
        pointers = self.scratch.get("indptr", stop - first + 1, np.int64)
        indptr.read_into(first, pointers)
        if pointers[0] != begin or pointers[-1] != end:  # the file has changed since the blocks were cut
            raise damaged_rows(self.store, self.spec.group)
        entries = self.scratch.get("indices", end - begin if with_entries else 0, self.store.index_dtype)
        indices.read_into(begin, entries)
        return Rows(b, first, begin, pointers, entries)


def _reserve(budget: Budget, charges: dict[str, int]) -> None:
    """Reserve all or nothing: an error names the budget that all of it needs."""
    total = sum(charges.values())
    if total > budget.available_bytes:
        parts = ", ".join(f"{name} {format_bytes(num_bytes)}" for name, num_bytes in charges.items())
        budget.reserve(f"partitioning ({parts})", total)
    for name, num_bytes in charges.items():
        budget.reserve(name, num_bytes)


def _lookup(store: CSRStore, group: str) -> RowLookup:
    if are_by_degree(store, group):
        return sorted_lookup(store)
    none = np.empty(0, np.int64)
    return RowLookup(store.read(f"{group}/indptr").astype(np.int64, copy=False), none, none, none)
