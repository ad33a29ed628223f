"""The last phases of a partitioning, by partition: the transpose of the local CSR, checksums, and what makes the folder a graph store.

In: a partition whose edges are all written. Out: a store that `oocgraph.store.graph.open_graph` opens. The transpose needs a counter for
each local vertex and as many edges in memory as the budget has room for: columns are taken in ranges, and the rows are read once for each.

Hoang et al., "CuSP", IPDPS 2019, section 4.2 (graph construction).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oocgraph.kernels import cusp as kernels
from oocgraph.partition.blocks import BLOCK_ENTRIES, PIECE_ROWS
from oocgraph.partition.cusp_spec import TRANSPOSE_ENTRIES, entry_bytes
from oocgraph.partition.local_ids import PartSizes, array_of, edge_arrays, vertex_arrays
from oocgraph.partition.stage import Stage
from oocgraph.store.arrays import PlainArray
from oocgraph.store.layout import ATTRIBUTES_KEY, GraphAttributes, string_arrays
from oocgraph.store.partitions import part_name
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.writer import write_groups
from oocgraph.types import Array, index_dtype


def other(group: str) -> str:
    """Return the group of the transpose."""
    return "in" if group == "out" else "out"


def transpose(stage: Stage, p: int, num_local: int, num_edges: int) -> None:
    """Write the transpose of a partition's local CSR, with its edge columns; the stage has reserved what it takes at least.

    Raises
    ------
    BudgetError
        The longest list of the transpose does not fit.
    """
    spec, group = stage.spec, stage.spec.read
    arrays = {name: array_of(spec, p, name, dtype, length) for name, dtype, length in edge_arrays(stage, num_local, num_edges)}
    stored = {name: PlainArray(array.root, name, array.dtype, array.length, array.chunk_length) for name, array in arrays.items()}
    columns = [f"{group}/{name}" for name in spec.columns]
    targets = {name: array_of(spec, p, other(group) + name[len(group) :], array.dtype, array.length) for name, array in arrays.items()}
    for target in targets.values():
        target.create()
    each = entry_bytes(stage.store, spec)
    most = TRANSPOSE_ENTRIES + max(0, stage.budget.available_bytes) // (2 * each)
    stage.budget.reserve("more transposed edges", max(0, min(num_edges, most) - TRANSPOSE_ENTRIES) * each)
    try:
        indptr = np.zeros(num_local + 1, np.int64)
        for _, _, _, entries in _rows(stored, group):
            kernels.count_columns(entries, indptr)
        longest = int(indptr.max(initial=0))
        stage.budget.reserve("the longest transposed list", max(0, longest - most) * each)  # a list is not divided
        np.cumsum(indptr, out=indptr)
        targets[f"{group}/indptr"].write(0, indptr)
        for low, high in _ranges(indptr, most):
            first, length = int(indptr[low]), int(indptr[high] - indptr[low])
            cursor = indptr[low:high] - first
            out = {name: np.empty(length, stored[name].dtype.newbyteorder("=")) for name in [f"{group}/indices", *columns]}
            for first_row, pointers, begin, entries in _rows(stored, group):
                place = np.empty(entries.size if columns else 0, np.int64)
                kernels.transpose_rows(first_row, pointers, entries, begin, low, high, cursor, out[f"{group}/indices"], place)
                for name in columns:
                    here = place >= 0
                    out[name][place[here]] = stored[name].read(begin, begin + entries.size)[here]
            for name, values in out.items():
                targets[name].write(first, values)
    finally:
        for name in ("more transposed edges", "the longest transposed list"):
            stage.budget.reservations.pop(name, None)


def _ranges(indptr: Array, most: int) -> Iterator[tuple[int, int]]:
    """Cut columns into ranges of at most `most` entries, or of one column."""
    low, last = 0, indptr.size - 1
    while low < last:
        high = max(low + 1, int(np.searchsorted(indptr, indptr[low] + most, side="right")) - 1)
        yield low, high
        low = high


def _rows(stored: dict[str, PlainArray], group: str) -> Iterator[tuple[int, Array, int, Array]]:
    """Iterate over the local CSR: first row, its pointers (cut to what is read), first entry and entries."""
    indptr, indices = stored[f"{group}/indptr"], stored[f"{group}/indices"]
    for low in range(0, indptr.length - 1, PIECE_ROWS):
        pointers = indptr.read(low, min(indptr.length, low + PIECE_ROWS + 1))
        for begin in range(int(pointers[0]), int(pointers[-1]), BLOCK_ENTRIES):
            end = min(int(pointers[-1]), begin + BLOCK_ENTRIES)
            first = int(np.searchsorted(pointers, begin, side="right")) - 1
            last = int(np.searchsorted(pointers, end))
            yield low + first, np.clip(pointers[first : last + 1], begin, end), begin, indices.read(begin, end)


def seal(stage: Stage, p: int, sizes: PartSizes, num_edges: int, num_self_loops: int) -> None:
    """Write checksums, metadata and attributes: from then on the partition is a graph store."""
    spec, graph = stage.spec, stage.store.attributes
    shapes = [*vertex_arrays(sizes), *edge_arrays(stage, sizes.num_local, num_edges)]
    if spec.transposed:
        shapes += [(other(spec.read) + name[len(spec.read) :], *shape) for name, *shape in edge_arrays(stage, sizes.num_local, num_edges)]
    for name, dtype, length in shapes:
        array_of(spec, p, name, dtype, length).seal()
    for name in (name for name in spec.columns if graph.columns[name] == "string"):
        for part in string_arrays(f"columns/{name}"):
            _copy(stage, part, array_of(spec, p, part, stage.store.array(part).dtype, stage.store.array(part).length))
    # edges that only a column tells apart, which stays behind, are duplicates from now on
    told_apart = set(graph.columns) - {"weight"} <= set(spec.columns)
    attributes = GraphAttributes(
        num_vertices=sizes.num_local,
        num_edges=num_edges,
        num_stored_edges=num_edges,
        num_input_vertices=sizes.num_local + sizes.num_isolated,
        num_isolated=sizes.num_isolated,
        num_self_loops=num_self_loops,
        directed=True,
        weighted=graph.weighted and "weight" in spec.columns,
        duplicates=graph.duplicates if told_apart else "keep",
        vertex_order="partition",
        num_masters=sizes.num_masters,
        groups=("out", "in") if spec.transposed else (spec.read,),
        index_dtype=index_dtype(sizes.num_local).name,
        columns={name: graph.columns[name] for name in spec.columns},
        weight_name=graph.weight_name if "weight" in spec.columns else None,
        source=f"partition {p} of {spec.num_partitions} of {spec.url}",
    )
    write_groups(spec.root / part_name(p), {ATTRIBUTES_KEY: attributes.to_json() | {"complete": True}}, consolidated=True)


def _copy(stage: Stage, name: str, target: PreallocatedArray) -> None:
    target.create()
    for start, values in stage.store.array(name).blocks(BLOCK_ENTRIES):
        target.write(start, values)
    target.seal()


def seal_masters(stage: Stage) -> None:
    """Write checksums and metadata of the index's own array."""
    stage.masters_file.seal()
