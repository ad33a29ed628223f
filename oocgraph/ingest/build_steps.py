"""The steps of the external build, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.dedupe import clean_edges
from oocgraph.ingest.edges import EdgeSource
from oocgraph.ingest.ids import Ids, range_ids
from oocgraph.ingest.ranks import chosen_order, degree_classes, ranked_blocks
from oocgraph.ingest.read_edges import ColumnReader, read_edges
from oocgraph.ingest.relabel import relabel
from oocgraph.ingest.rows import write_group
from oocgraph.ingest.sources.streamed import StreamedSource
from oocgraph.ingest.vertex_arrays import write_vertices
from oocgraph.store.columns import distinct
from oocgraph.store.layout import GraphAttributes, plane_group
from oocgraph.store.records import DuplicateRows, key_bits
from oocgraph.types import Array, VertexOrder, index_dtype

SYNC = "sync"
"""Phase in which the arrays are closed and the store is forced to disk: its time is the disk's."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Rows read, and bytes of vertex arrays held in memory."""

    num_rows: int
    vertex_bytes: int


def build_steps(edges: EdgeSource, job: Job) -> Metrics:
    """Build and publish the store."""
    with job.phase("read edges"):
        ids, raw, reader = _read(edges, job)
        codes = reader.finish()
    col_bits = key_bits(ids.num_ids)
    with job.phase("sort edges"):
        try:
            clean = clean_edges(raw, job, num_ids=ids.num_ids, col_bits=col_bits, codes=codes)
        except DuplicateRows as found:
            raise found.named(partial(_name, ids), col_bits, edges.description) from None
        num_edges = clean.num_edges
    with job.phase("number vertices"):
        classes = degree_classes(clean)
        job = replace(job, options=replace(job.options, vertex_order=chosen_order(clean, classes, job)))
        num_vertices, by_degree = classes.num_vertices, job.options.vertex_order == "degree"
        blocks = ranked_blocks(clean, classes, job, all_used=ids.all_used, extra=_extra(edges, ids))
        num_input = write_vertices(blocks, ids, edges.id_kind, job, num_vertices=num_vertices)
    vertex_bytes = sum(file.resident.nbytes for file in (clean.degree, clean.has_out) if file is not None and file.resident is not None)
    if clean.degree.resident is not None:
        job = replace(job, sizes=job.sizes.beside(vertex_bytes))
    with job.phase("relabel"):
        entries = relabel(clean, classes, job)
    num_planes = classes.num_planes() if by_degree else 0
    num_loops = 0
    for group, files in entries.items():
        with job.phase(f"write {group}"):
            planes = num_planes if group == plane_group(job.directed) else 0
            num_entries, num_loops = write_group(group, files, classes, job, num_planes=planes)
    clean.close()
    job.progress(SYNC, 0, 1)
    with job.phase(SYNC):
        job.writer.publish(
            GraphAttributes(
                num_vertices=num_vertices,
                num_edges=num_edges,
                num_stored_edges=num_entries,
                num_input_vertices=num_input,
                num_isolated=num_input - num_vertices,
                num_self_loops=num_loops,
                directed=job.directed,
                weighted=job.payload.weight is not None,
                duplicates=job.payload.duplicates,
                parallel_edges=clean.has_parallel,
                vertex_order=cast(VertexOrder, job.options.vertex_order),
                index_dtype=index_dtype(num_vertices).name,
                id_kind=edges.id_kind,
                implied_ids=ids.implied,
                num_planes=num_planes,
                columns=job.payload.attributes,
                weight_name=job.payload.weight_name,
                source=edges.description,
            )
        )
    job.progress(SYNC, 1, 1)
    return Metrics(reader.num_rows, vertex_bytes)


def _read(edges: EdgeSource, job: Job) -> tuple[Ids, BinFiles, ColumnReader]:
    """Bin the edges of a source by position, in the way its ids allow."""
    if isinstance(edges, StreamedSource):
        from oocgraph.ingest.spool import spooled

        with spooled(edges, job) as copy:
            return _read(copy, job)
    if edges.id_kind == "string":
        from oocgraph.ingest.string_ids import string_edges

        return string_edges(edges, job)
    ranged = range_ids(edges, job)
    if ranged is not None:
        raw, reader = read_edges(edges, ranged, job)
        return ranged, raw, reader
    from oocgraph.ingest.sparse_ids import sparse_edges

    return sparse_edges(edges, job)


def _extra(edges: EdgeSource, ids: Ids) -> Array:
    """Positions of vertices that the source lists besides its edges, ascending, where ids are positions in a range."""
    if ids.all_used or edges.extra_vertices is None:
        return np.empty(0, np.int64)
    return distinct(np.asarray(edges.extra_vertices, np.int64)) - int(ids.read(0, 1)[0])


def _name(ids: Ids, position: int) -> Any:
    value = ids.read(position, position + 1)[0]
    return value.as_py().decode() if hasattr(value, "as_py") else int(value)
