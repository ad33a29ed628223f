"""The external build: an edge list of any size becomes a store, within a memory budget.

In: an edge source. Out: a CSR store, bit-identical for any budget, number of threads and order of the edges. The steps are one
page: read the edges once and bin them by provisional row; sort each bin, drop duplicates, count degrees; number the
vertices by degree; rename the edges and bin them by new row; sort each bin and write it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.errors import InputError, OocGraphError
from oocgraph.ingest.bins import BinFiles
from oocgraph.ingest.build_job import Job
from oocgraph.ingest.build_plan import plan_sizes
from oocgraph.ingest.dedupe import clean_edges
from oocgraph.ingest.edges import EdgeBlock, EdgeSource
from oocgraph.ingest.ids import IdSpace
from oocgraph.ingest.key_bins import uniform_bins
from oocgraph.ingest.ranks import degree_classes, ranked_blocks
from oocgraph.ingest.relabel import relabel
from oocgraph.ingest.rows import write_group
from oocgraph.ingest.sources import open_source
from oocgraph.ingest.vertex_arrays import write_ids, write_vertices
from oocgraph.ingest.workers import Workers
from oocgraph.kernels.build import edge_keys
from oocgraph.memory import Budget, PeakSampler, effective_budget_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import GraphAttributes, plane_group
from oocgraph.store.writer import StoreWriter
from oocgraph.types import Codec, Duplicates, Progress, VertexOrder, ignore_progress, index_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build took.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall time, and time of all cores.
    peak_host_bytes, memory_budget
        Peak of RssAnon + RssShmem, and what was allowed.
    vertex_bytes
        Bytes of the arrays that grow with the number of vertices and were held in memory.
    num_rows
        Edges read.
    phases
        Seconds of each step.
    """

    seconds: float
    cpu_seconds: float
    peak_host_bytes: int
    memory_budget: int
    vertex_bytes: int
    num_rows: int
    phases: dict[str, float]


def build_csr(source: Any, store: str | os.PathLike[str], **options: Any) -> CSRStore:
    """Build a store; see `build_with_report`."""
    return build_with_report(source, store, **options)[0]


def build_with_report(
    source: Any,
    store: str | os.PathLike[str],
    *,
    directed: bool | None = None,
    weight_column: str | None = None,
    edge_columns: Sequence[str] = (),
    source_column: str | None = None,
    target_column: str | None = None,
    num_vertices: int | None = None,
    duplicates: Duplicates | None = None,
    keep_self_loops: bool = False,
    vertex_order: VertexOrder = "degree",
    memory_budget: str | int | None = None,
    codec: Codec = "none",
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[CSRStore, BuildReport]:
    """Build a store."""
    began, cpu_began = time.perf_counter(), time.process_time()
    limit = effective_budget_bytes(memory_budget)
    with PeakSampler() as sampler:
        edges = source
        if not hasattr(source, "streams"):
            edges = open_source(
                source,
                source_column=source_column,
                target_column=target_column,
                weight_column=weight_column,
                edge_columns=edge_columns,
                num_vertices=num_vertices,
            )
        if edges.columns or edges.id_kind != "int64":
            raise OocGraphError("columns and string ids are not supported yet")
        num_threads = threads or len(os.sched_getaffinity(0))
        budget = Budget(limit)
        sizes = plan_sizes(budget, num_threads, 0)
        with StoreWriter(store, codec=codec, overwrite=overwrite) as writer, Workers(num_threads) as workers:
            job = Job(
                directed=bool(edges.directed) if directed is None else directed,
                keep_self_loops=keep_self_loops,
                vertex_order=vertex_order,
                duplicates=duplicates or "drop",
                writer=writer,
                workers=workers,
                budget=budget,
                sizes=sizes,
                progress=progress or ignore_progress,
            )
            num_rows, vertex_bytes = _build(edges, job)
    report = BuildReport(
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu_began,
        peak_host_bytes=sampler.peak_bytes,
        memory_budget=limit,
        vertex_bytes=vertex_bytes,
        num_rows=num_rows,
        phases=job.phases,
    )
    return open_graph(store), report


def _build(edges: EdgeSource, job: Job) -> tuple[int, int]:
    with job.phase("scan"):
        ids = _dense_ids(edges, job)
    with job.phase("read"):
        raw, col_bits = _bin_edges(edges, ids, job)
        num_rows = int(raw.counts.sum())
    with job.phase("sort edges"):
        clean = clean_edges(raw, job, num_ids=ids.num_ids, col_bits=col_bits)
    with job.phase("number vertices"):
        classes = degree_classes(clean)
        num_planes = classes.num_planes() if job.vertex_order == "degree" else 0
        blocks = ranked_blocks(clean, classes, job, all_present=ids.implied is not None)
        num_isolated, by_rank = write_vertices(blocks, ids, job, num_vertices=classes.num_vertices)
        write_ids(by_rank, job)
    with job.phase("relabel"):
        entries = relabel(clean, classes, job)
        vertex_bytes = ids.num_ids * 4
        clean.degree.close()
    for group, files in entries.items():
        with job.phase(f"write {group}"):
            planes = num_planes if group == plane_group(job.directed) else 0
            num_entries, num_loops = write_group(group, files, classes, job, num_planes=planes)
    job.writer.publish(
        GraphAttributes(
            num_vertices=classes.num_vertices,
            num_edges=num_entries if job.directed else (num_entries + num_loops) // 2,
            num_stored_edges=num_entries,
            num_input_vertices=classes.num_vertices + num_isolated,
            num_isolated=num_isolated,
            num_self_loops=num_loops,
            directed=job.directed,
            duplicates=job.duplicates,
            vertex_order=job.vertex_order,
            index_dtype=index_dtype(classes.num_vertices).name,
            implied_ids=ids.implied,
            num_planes=num_planes,
            source=edges.description,
        )
    )
    return num_rows, vertex_bytes


def _dense_ids(edges: EdgeSource, job: Job) -> IdSpace:
    if edges.num_vertices is not None:
        return IdSpace(0, edges.num_vertices, (0, edges.num_vertices))
    bounds = edges.id_bounds
    if bounds is None:
        bounds = _scan(edges, job)
    if bounds is None:
        return IdSpace(0, 0, None)
    return IdSpace(bounds[0], bounds[1] - bounds[0] + 1, None)


def _scan(edges: EdgeSource, job: Job) -> tuple[int, int] | None:
    found: list[tuple[int, int]] = []

    def look(block: EdgeBlock) -> None:
        if block.source.size:
            found.append((int(min(block.source.min(), block.target.min())), int(max(block.source.max(), block.target.max()))))

    job.workers.drain(edges.streams(job.sizes.block_rows), look)
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _bin_edges(edges: EdgeSource, ids: IdSpace, job: Job) -> tuple[BinFiles, int]:
    col_bits = max(1, (ids.num_ids - 1).bit_length())
    guess = edges.num_rows if edges.num_rows is not None else 1 << 28
    files = BinFiles(job.folder("edges"), uniform_bins(0, max(1, ids.num_ids) << col_bits, job.sizes.num_bins(guess)))
    lock = threading.Lock()
    num_read = 0

    def deal(block: EdgeBlock) -> None:
        nonlocal num_read
        keys = job.scratch.get("keys", block.source.size, np.uint64)
        bad = edge_keys(block.source, block.target, np.int64(ids.first), np.uint64(ids.num_ids), np.uint64(col_bits), job.undirected, keys)
        if bad >= 0:
            raise InputError(
                f"{edges.description}: row {block.first_row + bad} has an id outside {ids.first} .. {ids.first + ids.num_ids - 1}, "
                "the range that the source declares"
            )
        files.append((keys,), job.scratch)
        with lock:
            num_read += block.source.size
        job.progress("read edges", num_read, guess)

    job.workers.drain(edges.streams(job.sizes.block_rows), deal)
    files.close()
    return files, col_bits
