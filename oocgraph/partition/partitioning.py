"""A graph is partitioned: the phases of CuSP in the paper's order, each by all workers, and the result published when all are done.

In: a graph, a policy, a executor (`oocgraph.partition.executor`). Out: partitions on disk (`oocgraph.store.partitions`), or nothing at all.

A policy that has a state, or looks at other masters, is worked on in rounds: each reader assigns a fixed number of vertices, then
all learn what the others have done. All else is done in one go, and then gives the same partitions wherever it is done.

Hoang, Dathathri, Gill, Pingali, "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019, section 4.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import oocgraph
from oocgraph.errors import PolicyError
from oocgraph.partition.blocks import BLOCK_ROWS, cut_blocks
from oocgraph.partition.cusp import EdgeCounts, Places
from oocgraph.partition.cusp_spec import CuspSpec, PartitionOptions
from oocgraph.partition.executor import PhaseExecutor
from oocgraph.partition.local_ids import PartSizes
from oocgraph.partition.policy import Policy, compile_policy
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import PARTITIONS_KEY
from oocgraph.store.partitions import MASTERS, PartitionsAttributes, master_dtype
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.writer import write_groups
from oocgraph.types import Array


def partition_store(
    store: CSRStore, out: str | os.PathLike[str], options: PartitionOptions, executor: PhaseExecutor, *, overwrite: bool, durable: bool
) -> dict[str, float]:
    """Partition a graph; return the seconds of each phase.

    Raises
    ------
    OutputError
        `out` exists and `overwrite` is false, or it cannot be written.
    PolicyError, BudgetError, CorruptStoreError, ClusterError
        As a phase says; nothing is left behind.
    """
    seconds: dict[str, float] = {}
    with AtomicOutput(out, kind="partitions", overwrite=overwrite, durable=durable) as staged:
        try:
            staged.path.mkdir()
            spec = _spec(store, options, executor, staged.path, staged.folder)
            _Run(spec, executor, seconds).phases()
            attributes = PartitionsAttributes(
                num_partitions=options.num_partitions,
                num_vertices=store.num_rows,
                num_stored_edges=store.attributes.num_stored_edges,
                policy=options.policy.name,
                graph=spec.url,
                graph_fingerprint=graph_fingerprint(store),
                read=options.read,
                transposed=options.transposed,
                directed=store.attributes.directed,
                library_version=oocgraph.__version__,
                complete=True,
            )
            write_groups(staged.path, {PARTITIONS_KEY: attributes.to_json()})
        finally:
            executor.close()  # before the folder goes that workers may be writing to
        staged.publish()
        seconds["sync"] = staged.sync_seconds
    return seconds


def _spec(store: CSRStore, options: PartitionOptions, executor: PhaseExecutor, root: Path, scratch: Path) -> CuspSpec:
    group: Literal["out", "in"] = options.read if store.attributes.directed else "out"
    compiled = compile_policy(options.policy)
    in_rounds = compiled.has_master_state or compiled.uses_masters or compiled.has_edge_state
    blocks = cut_blocks(
        store, group, executor.num_readers, vertex_weight=options.vertex_weight, edge_weight=options.edge_weight,
        max_rows=max(1, BLOCK_ROWS // options.num_partitions), round_vertices=options.round_vertices if in_rounds else None,
    )  # fmt: skip
    return CuspSpec(
        url=store.place,
        check_pages=store.check_pages,
        group=group,
        blocks=blocks,
        root=root,
        scratch=scratch,
        **{field.name: getattr(options, field.name) for field in fields(options)},
    )


class _Run:
    """One partitioning."""

    def __init__(self, spec: CuspSpec, executor: PhaseExecutor, seconds: dict[str, float]) -> None:
        self.spec, self.executor, self.seconds = spec, executor, seconds
        self.compiled = compile_policy(spec.policy)

    def phases(self) -> None:
        """Do all that there is to do."""
        partitions = range(self.spec.num_partitions)
        n = int(self.spec.blocks.first_row[-1])
        PreallocatedArray(self.spec.root, MASTERS, master_dtype(len(partitions)), n).create()
        with self._phase("master assignment"):
            self._masters()
        with self._phase("edge assignment"):
            found = self._edges()
        with self._phase("allocation"):
            counts = np.concatenate([one.counts for one in found]) if found else np.zeros((0, len(partitions), 2), np.int64)
            num_edges = counts.sum(axis=(0, 2)).tolist()
            readers = sorted(set(self.spec.blocks.reader.tolist()))
            sizes: list[PartSizes] = self._run("allocate", [(p, readers, num_edges[p]) for p in partitions])
        with self._phase("construction"):
            loops = self._construct(found, counts, sizes, num_edges)
        if self.spec.transposed:
            with self._phase("transpose"):
                self._run("transpose", [(p, sizes[p].num_local, num_edges[p]) for p in partitions])
        with self._phase("checksums"):
            self._run("seal", [(p, sizes[p], num_edges[p], int(loops[p])) for p in partitions])
            self._run("seal masters", [()])

    def _masters(self) -> None:
        state: Array | None = None
        in_rounds = self.compiled.has_master_state or self.compiled.uses_masters
        for round_, calls in self._rounds(in_rounds):
            replies = self._run("masters", [(numbers, round_, state) for _, numbers in calls])
            if self.compiled.has_master_state:
                state = self.spec.policy.merge_states(replies[0][0], [after for _, after in replies])

    def _edges(self) -> list[EdgeCounts]:
        found: list[EdgeCounts] = []
        state: Array | None = None
        for round_, calls in self._rounds(self.compiled.has_edge_state):
            replies = self._run("edges", [(reader, numbers, round_, state) for reader, numbers in calls])
            if self.compiled.has_edge_state:
                state = self.spec.policy.merge_states(replies[0].before, [one.after for one in replies])
            found += replies
        return sorted(found, key=lambda one: one.numbers.start)

    def _construct(self, found: list[EdgeCounts], counts: Array, sizes: list[PartSizes], num_edges: list[int]) -> Array:
        """Insert all edges; every reader goes through its blocks with the states that it had when it counted them."""
        before = np.cumsum(counts, axis=0) - counts
        first_edge = np.concatenate([before, (before + counts)[-1:]])
        first_edge[:, :, 1] += counts[:, :, 0].sum(axis=0)
        first_local = np.stack([one.first_local for one in sizes], axis=1)
        shapes = [(one.num_local, edges) for one, edges in zip(sizes, num_edges, strict=True)]
        calls = []
        for one in found:
            here = slice(one.numbers.start, one.numbers.stop + 1)
            calls.append((shapes, Places(one, first_edge[here], first_local[here])))
        loops = self._run("construct", calls)
        return np.asarray(sum(loops, np.zeros(self.spec.num_partitions, np.int64)))

    def _rounds(self, in_rounds: bool) -> Iterator[tuple[int, list[tuple[int, range]]]]:
        """Iterate over rounds: readers and their blocks."""
        blocks = self.spec.blocks
        for round_ in range(blocks.num_rounds if in_rounds else min(1, len(blocks))):
            calls = [(reader, blocks.of(reader, round_ if in_rounds else None)) for reader in range(self.executor.num_readers)]
            yield round_, [(reader, numbers) for reader, numbers in calls if len(numbers)]

    def _run(self, phase: str, calls: list[Any]) -> list[Any]:
        return self.executor.run(self.spec, phase, calls)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


def checked_policy(policy: Any, *, vertex_order: Any, compiled: bool | None) -> Policy:
    """Return the policy that a name or a `Policy` means.

    Raises
    ------
    PolicyError
        There is none of this name, or it is no policy.
    """
    if isinstance(policy, str):
        from oocgraph.partition.policies import named_policy

        policy = named_policy(policy, vertex_order=vertex_order)
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy is {policy!r}; give a name such as 'CVC', or an oocgraph.Policy of two functions")
    return policy if compiled is None else replace(policy, compiled=compiled)
