"""One partitioning, as workers receive it, and what each of them holds meanwhile.

In: a graph, a policy, blocks. Out: `CuspSpec`, which says all there is to say and may be pickled, and `stage_bytes`: what a worker holds,
by name, to be reserved before anything is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from oocgraph.arguments import check_whole, is_number
from oocgraph.errors import ArgumentError
from oocgraph.partition.blocks import PIECE_ROWS, Blocks
from oocgraph.partition.policy import CompiledPolicy, Policy
from oocgraph.store.arrays import decoded_bytes
from oocgraph.store.graph import CSRStore
from oocgraph.store.partitions import master_dtype
from oocgraph.store.rows import are_by_degree
from oocgraph.types import PAGE_BYTES

DEGREES = "degrees"
"""Name of the reservation for what a policy asks about vertices whose rows are not at hand."""

TRANSPOSE_ENTRIES = 1 << 21
"""Fewest entries of a transpose in memory at once."""

COMPILER_BYTES = 96 << 20
"""What the compiler leaves behind in a process (`oocgraph.partition.policy.compile_policy`: 85 to 95 MiB)."""


ROUND_VERTICES = 1 << 16
"""Vertices that a reader assigns between two exchanges of states."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PartitionOptions:
    """How a graph is partitioned.

    Attributes
    ----------
    num_partitions : int
    policy : Policy
    read : str
        What the rows are: sources (``out``) or destinations (``in``); the group of the parts' lists.
    columns : tuple of str
        Edge columns that go along.
    transposed : bool
        Whether each part gets the other lists too.
    vertex_weight, edge_weight : float
        What counts as work where readers get equal shares.
    round_vertices : int
        Vertices between two exchanges of states.
    threads : int or None
        Threads of each worker; None: as many as it has.
    memory_budget : str, int or None
        Budget of each worker.
    following_bytes : int
        Bytes that what follows in this process needs beside the interpreter, at the most: a refusal names a budget for that, too.

    Raises
    ------
    ArgumentError
        A choice is invalid.
    """

    num_partitions: int
    policy: Policy
    read: Literal["out", "in"] = "out"
    columns: tuple[str, ...] = ()
    transposed: bool = False
    vertex_weight: float = 0.0
    edge_weight: float = 1.0
    round_vertices: int = ROUND_VERTICES
    threads: int | None = None
    memory_budget: str | int | None = None
    following_bytes: int = 0

    def __post_init__(self) -> None:
        if self.read not in ("out", "in"):
            raise ArgumentError(f"read is {self.read!r}; it must be out or in")
        weights: tuple[Any, Any] = self.vertex_weight, self.edge_weight
        if not (all(is_number(one) and one >= 0 for one in weights) and 0 < sum(weights) < math.inf):
            raise ArgumentError(
                f"vertex_weight is {weights[0]!r}, edge_weight {weights[1]!r}; they must be numbers: finite, not negative and not both 0"
            )
        check_whole("round_vertices", self.round_vertices, least=1)
        if self.threads is not None:
            check_whole("threads", self.threads, least=1)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CuspSpec(PartitionOptions):
    """One partitioning, as workers receive it.

    Attributes
    ----------
    url : str
        The graph.
    check_pages : bool
        Whether what is read of it is compared with its checksums.
    group : str
        The graph's lists that are read; ``out`` of an undirected graph, whose in-lists are the same.
    blocks : Blocks
    root, scratch : Path
        The unfinished output, and a folder that goes when it is done; every worker sees both.
    """

    url: str
    check_pages: bool
    group: Literal["out", "in"]
    blocks: Blocks
    root: Path
    scratch: Path


def stage_bytes(store: CSRStore, spec: CuspSpec, compiled: CompiledPolicy, threads: int) -> dict[str, int]:
    """Return what a worker holds while it partitions, by name."""
    n, parts, blocks = store.num_rows, spec.num_partitions, spec.blocks
    words = -(-n // 64)
    owner_bytes = master_dtype(parts).itemsize
    chunks = sum(decoded_bytes(store.array(f"{spec.group}/{name}")) for name in ("indices", "indptr", *spec.columns))
    row_bytes = 8 * (2 + parts) + owner_bytes
    groups = [group for group in ("out", "in") if needs_lookup(compiled, store.attributes.directed, group)]
    # bitmaps with their ranks, of all partitions while edges are inserted, or of one while it is numbered; a transpose comes after both
    proxies = words * max(32 * parts, 48)
    fewest = min(TRANSPOSE_ENTRIES, store.attributes.num_stored_edges)
    transposed = 16 * (n + 1) + fewest * entry_bytes(store, spec) if spec.transposed else 0
    found = {
        "masters": n * owner_bytes,
        DEGREES: sum(_lookup_bytes(store, group) for group in groups),
        "a transpose" if transposed > proxies else "proxies of each partition": max(proxies, transposed),
        "blocks in work": threads * (blocks.max_entries * _work_bytes(store, spec) + blocks.max_rows * row_bytes + chunks + 2 * PAGE_BYTES),
        "pieces of vertices": min(PIECE_ROWS, 64 * words) * (8 * 8 + owner_bytes),
        "counts of blocks": 14 * 8 * len(blocks) * parts,
    }
    return {name: num_bytes for name, num_bytes in found.items() if num_bytes}


def entry_bytes(store: CSRStore, spec: CuspSpec) -> int:
    """Bytes of an entry of a part's lists, with its columns."""
    return store.index_dtype.itemsize + _column_bytes(store, spec)


def needs_lookup(compiled: CompiledPolicy, directed: bool, group: str) -> bool:
    """Whether the policy asks for the lengths of lists that are not at hand."""
    if group == "out":
        return compiled.uses_out_degree or (compiled.uses_in_degree and not directed)
    return compiled.uses_in_degree and directed


def _work_bytes(store: CSRStore, spec: CuspSpec) -> int:
    """Bytes for each entry of a block: neighbours, local ids twice, owner, slot; where columns go along its place, and theirs twice."""
    columns = _column_bytes(store, spec)
    return 3 * store.index_dtype.itemsize + master_dtype(spec.num_partitions).itemsize + 4 + (8 + 2 * columns if columns else 0)


def _column_bytes(store: CSRStore, spec: CuspSpec) -> int:
    return sum(store.array(f"{spec.group}/{name}").dtype.itemsize for name in spec.columns)


def _lookup_bytes(store: CSRStore, group: str) -> int:
    return 24 * store.array(f"{group}/degrees/value").length if are_by_degree(store, group) else 8 * (store.num_rows + 1)
