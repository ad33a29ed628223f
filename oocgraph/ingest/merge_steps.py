"""The steps by which two stores become one, in order: what a build of both edge lists would write, byte for byte.

In: two stores of the same kind. Out: a third. Both are read once, in order; nothing but the smaller store's edges is sorted. The order of
vertices follows from their degrees, and those from the edges that both stores have: these are found first. A vertex that no new edge
touches keeps its place among its equals, so the new order is the old one with few vertices moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from oocgraph.arrow import to_numbers
from oocgraph.errors import CorruptStoreError
from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import one_bin
from oocgraph.external_sort.vertex_file import VertexFile
from oocgraph.external_sort.workers import Workers
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.common_edges import GROUP, CommonEdges
from oocgraph.ingest.dedupe import CleanEdges
from oocgraph.ingest.merge_ids import JoinedIds, joined_runs, place_runs
from oocgraph.ingest.merge_rows import Side, write_merged
from oocgraph.ingest.ranks import blocks_of, degree_classes, ranked_blocks
from oocgraph.ingest.stored_rows import StoredRows
from oocgraph.ingest.vertex_arrays import write_vertices
from oocgraph.kernels.append import add_at, invert, renumber
from oocgraph.kernels.build import NO_RANK
from oocgraph.store.columns import StringColumn
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import ORDER, GraphAttributes, plane_group
from oocgraph.store.records import CODE, key_bits
from oocgraph.store.rows import declared_degrees
from oocgraph.store.strings import string_buffers
from oocgraph.types import Array, ignore_progress, index_dtype

STEP = 1 << 20
"""Vertices that a thread takes at a time."""


def vertex_bytes(first: int, second: int, ids: int, *, directed: bool) -> int:
    """Return what a merge holds for the vertices of two stores, of which so many have edges, and for all of so many ids.

    Two numbers of each vertex and one of each id while they are numbered; two numbers, both ways back, and that of each id while rows
    are written, and ids beside them.
    """
    numbering = 4 * first + 8 * second + (5 if directed else 4) * ids
    return max(numbering, 4 * (first + second) + 8 * min(ids, first + second) + 4 * ids)


@dataclass(frozen=True, slots=True)
class _Vertices:
    """Vertices of both stores while they are numbered.

    Attributes
    ----------
    position : pair of (num_rows,) uint32
        Place of each store's vertices among all ids, ascending.
    in_first : (second.num_rows,) uint32
        Number in the first store of each vertex of the second, or NO_RANK.
    edges : CleanEdges
        Degrees by position, as the steps of a build take them; it holds no edges.
    num_ids
        Number of positions.
    """

    position: tuple[Array, Array]
    in_first: Array
    edges: CleanEdges
    num_ids: int


def merge_steps(
    stores: tuple[CSRStore, CSRStore], rows: tuple[StoredRows, StoredRows], job: Job, *, implied: tuple[int, int] | None, source: str
) -> GraphAttributes:
    """Write all arrays of the merged store, and return its attributes, two of which are given."""
    first, second = stores
    codes = _joined_categories(stores, job)
    with job.phase("join vertices"):
        vertices = _joined_vertices(first, second, job, linked_only=implied is not None)
    with job.phase("find common edges"):
        num_common = _without_common(CommonEdges(first, second, rows[0], vertices.in_first, codes, job), vertices, job)
    with job.phase("number vertices"):
        classes, new_of, rank = _numbered(vertices, job)
        del vertices
        row_of = [_inverted(one, classes.num_vertices, job.workers) for one in new_of]
        sides = [Side(*of) for of in zip(stores, rows, new_of, row_of, codes, strict=True)]
        ids = JoinedIds(*stores, rank.size, implied)
        written = job.workers.beside(partial(_write_vertices, rank, ids, id_kind_of(*stores), job, classes.num_vertices))
        del rank
    num_planes, num_loops = classes.num_planes() if job.options.vertex_order == "degree" else 0, 0
    for group in first.attributes.stored_groups:
        with job.phase(f"write {group}"):
            planes = num_planes if group == plane_group(job.directed) else 0
            num_entries, loops, has_parallel = write_merged(group, sides, classes, job, num_planes=planes)
            num_loops = loops if group == GROUP else num_loops
    num_input = written.result()
    return replace(
        first.attributes,
        num_vertices=classes.num_vertices,
        num_edges=first.num_edges + second.num_edges - num_common,
        num_stored_edges=num_entries,
        num_input_vertices=num_input,
        num_isolated=num_input - classes.num_vertices,
        num_self_loops=num_loops,
        parallel_edges=has_parallel,
        index_dtype=index_dtype(classes.num_vertices).name,
        id_kind=id_kind_of(first, second),
        implied_ids=implied,
        num_planes=num_planes,
        source=source,
    )


def id_kind_of(first: CSRStore, second: CSRStore) -> str:
    """Return the kind of the ids of both; a graph without vertices may be of another."""
    return (first if first.num_vertices else second).attributes.id_kind


def _joined_vertices(first: CSRStore, second: CSRStore, job: Job, *, linked_only: bool) -> _Vertices:
    """Find the place of every vertex among the ids of both stores, and add up degrees."""
    position = (np.full(first.num_rows, NO_RANK, np.uint32), np.full(second.num_rows, NO_RANK, np.uint32))
    in_first, num_ids = np.full(second.num_rows, NO_RANK, np.uint32), 0
    most = first.num_rows + second.num_rows if linked_only else first.num_vertices + second.num_vertices
    for runs in joined_runs(first, second, linked_only=linked_only, ahead=job.workers.ahead):
        num_ids += place_runs(runs, num_ids, position, in_first)
        job.progress("join vertices", num_ids, most)
    key_bits(num_ids)  # refuses more than a key has room for
    for store, places in zip((first, second), position, strict=True):
        missing = int(places.argmax()) if places.size else 0
        if places.size and places[missing] >= num_ids:
            raise CorruptStoreError(
                f"{store.url}: {ORDER} names some vertices twice, and not vertex {missing}; restore the store or build it again"
            )
    degree = VertexFile(job.folder("degree"), num_ids, np.uint32, in_memory=True)
    has_out = VertexFile(job.folder("has-out"), num_ids, np.uint8, in_memory=True) if job.directed else None
    assert degree.resident is not None
    for store, places in zip((first, second), position, strict=True):
        for start, degrees in declared_degrees(store, store.pull_group):
            add_at(degree.resident, places[start : start + degrees.size], degrees.astype(np.uint32))
        if has_out is not None:
            assert has_out.resident is not None
            for start, degrees in declared_degrees(store, "out"):
                has_out.resident[places[start : start + degrees.size]] |= degrees > 0
    loops = BinFiles(job.folder("loops"), one_bin(max(1, num_ids)))
    return _Vertices(position, in_first, CleanEdges([], key_bits(num_ids), degree, has_out, loops), num_ids)


def _without_common(common: CommonEdges, vertices: _Vertices, job: Job) -> int:
    """Take the edges that both stores have from the degrees; return how many they are."""
    degree, place, count = vertices.edges.degree.resident, vertices.position[0], 0
    assert degree is not None
    for source, target in common.found():
        count += source.size
        np.subtract.at(degree, place[target], np.uint32(1))
        if not job.directed:
            np.subtract.at(degree, place[source[source != target]], np.uint32(1))
    return count


def _numbered(vertices: _Vertices, job: Job) -> tuple[DegreeClasses, tuple[Array, Array], Array]:
    """Return the classes of degrees, new numbers by store, and those by position, (num_ids,) uint32, or NO_RANK."""
    classes = degree_classes(vertices.edges)
    for _ in ranked_blocks(vertices.edges, classes, job, all_used=True, extra=np.empty(0, np.int64)):
        pass
    rank = vertices.edges.degree.resident
    assert rank is not None
    for places in vertices.position:
        parts = [places[start : start + STEP] for start in range(0, places.size, STEP)]
        job.workers.each(lambda part: renumber(part, rank), parts)
        if places.size and places.max() >= classes.num_vertices:
            raise CorruptStoreError("a vertex of the stored edges has none by its degree; run `oocgraph check` on both graphs")
    vertices.edges.close()
    return classes, vertices.position, rank


def _write_vertices(rank: Array, ids: JoinedIds, id_kind: str, job: Job, num_vertices: int, workers: Workers) -> int:
    """Write the arrays of vertices, all of which are in the input; return how many there are, isolated ones included."""
    return write_vertices(blocks_of(rank), ids, id_kind, replace(job, workers=workers, progress=ignore_progress), num_vertices=num_vertices)


def _inverted(new_of: Array, num_vertices: int, workers: Workers) -> Array:
    """Return the old number of each new one, or NO_RANK."""
    row_of = np.full(num_vertices, NO_RANK, np.uint32)
    workers.each(lambda start: invert(new_of[start : start + STEP], start, row_of), range(0, new_of.size, STEP))
    return row_of


def _joined_categories(stores: tuple[CSRStore, CSRStore], job: Job) -> list[dict[str, Array]]:
    """Write the distinct strings of both stores' string columns; return what the codes of each store become, by column (the last: null)."""
    codes: list[dict[str, Array]] = [{}, {}]
    for name in (name for name, dtype in job.payload.extra.items() if dtype is None):
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = [StringColumn(store, f"columns/{name}") for store in stores]
        strings = [column.read(0, column.length).cast(pa.large_binary()) for column in columns]
        distinct = pa.chunked_array(strings).unique()
        together = distinct.take(pc.array_sort_indices(distinct))
        for own, values in zip(codes, strings, strict=True):
            found = to_numbers(pc.index_in(values, value_set=together))
            own[name] = np.append(found, -1).astype(CODE)
        data, offsets = string_buffers(together)
        job.writer.write(f"columns/{name}/bytes", data)
        job.writer.write(f"columns/{name}/offsets", offsets)
    return codes
