"""Edges appended to a store, beside building it again from all of them: time, processor time, bytes, and whether both stores are the same.

In: an edge list in Parquet, whose last edges are the new ones. Out: a `Report`. Appends and builds take turns, each after the files were
written back, so that neither waits for the other's.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.bench.harness import Report, in_turn, medians, paired_ratios, scratch_folder
from oocgraph.errors import ArgumentError, InputError
from oocgraph.ingest.append import append_with_report
from oocgraph.ingest.build import BuildReport, build_with_report
from oocgraph.ingest.build_job import BuildOptions
from oocgraph.ingest.generators.edge_file import write_edges
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import CHECKSUMS
from oocgraph.types import Progress

MEASURED = ("seconds", "cpu_seconds", "written_bytes", "peak_host_bytes")
"""Figures of a build or an append that are reported."""


def bench_append(
    edges: str | None, *, scale: int, percent: float, num_rounds: int, directed: bool, folder: str | None, memory_budget: str | None,
    threads: int | None, progress: Progress,
) -> Report:  # fmt: skip
    """Measure.

    Parameters
    ----------
    edges
        Parquet file of edges without columns; without one those of a Kronecker graph of this `scale`.
    percent
        New edges, of all.
    num_rounds
        Appends, and builds.
    directed
        Kind of graph.
    folder
        Where files are made; by default the temporary directory.
    memory_budget, threads
        Of both.
    progress
        Called with ("appending", calls done, calls).
    """
    if not 0 < percent < 100:
        raise ArgumentError(f"percent is {percent}; it must be above 0 and below 100")
    with scratch_folder(folder) as place:
        whole = Path(edges) if edges is not None else place / "edges.parquet"
        if edges is None:
            write_edges(KroneckerEdges(scale, edge_factor=16, seed=1), whole, memory_budget=memory_budget, progress=progress)
        _split(whole, place / "old.parquet", place / "new.parquet", percent)
        options = BuildOptions(directed=directed, memory_budget=memory_budget, threads=threads, overwrite=True)
        base, _ = build_with_report(place / "old.parquet", place / "base.zarr", options)
        appends = BuildOptions(memory_budget=memory_budget, threads=threads)

        def append(_: int) -> BuildReport:
            shutil.rmtree(place / "grown.zarr", ignore_errors=True)
            shutil.copytree(place / "base.zarr", place / "grown.zarr")
            os.sync()
            return append_with_report(place / "grown.zarr", place / "new.parquet", appends)[1]

        def build(_: int) -> BuildReport:
            os.sync()
            return build_with_report(whole, place / "rebuilt.zarr", options)[1]

        append(0), build(0)  # what is loaded at first is not measured
        found = in_turn({"append": append, "build": build}, list(range(num_rounds)), progress, phase="appending", alternate=True)
        stores = open_graph(place / "grown.zarr"), open_graph(place / "rebuilt.zarr")
        rows: dict[str, list[dict[str, Any]]] = {
            name: [{one: getattr(report, one) for one in MEASURED} for report in reports] for name, reports in found.items()
        }
        metrics = {
            "edges": found["build"][0].num_rows, "new_edges": found["append"][0].num_rows, "base_bytes": base.num_bytes,
            "store_bytes": stores[1].num_bytes,
            **{f"{name}_{key}": value for name in rows for key, value in medians(rows[name], *MEASURED).items()},
            **paired_ratios("ratio", *([row["seconds"] for row in rows[name]] for name in ("append", "build"))),
            **paired_ratios("cpu_ratio", *([row["cpu_seconds"] for row in rows[name]] for name in ("append", "build"))),
            "appends": [asdict(one) for one in found["append"]], "builds": [asdict(one) for one in found["build"]],
        }  # fmt: skip
        return Report(title=f"{whole.name}: {percent:g} % appended", metrics=metrics, invalid=_differences(*stores))


def _split(whole: Path, old: Path, new: Path, percent: float) -> None:
    """Write all edges but the last ones, and those, to files of their own."""
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(whole)
    except (OSError, ValueError) as error:
        raise InputError(f"{whole}: is no Parquet file ({error}); give one, or leave it out") from error
    with file:
        schema = file.schema_arrow
        left = file.metadata.num_rows - max(1, int(file.metadata.num_rows * percent / 100))
        with pq.ParquetWriter(old, schema) as first, pq.ParquetWriter(new, schema) as second:
            for batch in file.iter_batches():
                here = min(batch.num_rows, left)
                left -= here
                for writer, part in ((first, batch.slice(0, here)), (second, batch.slice(here))):
                    if part.num_rows:
                        writer.write_batch(part)


def _differences(grown: CSRStore, rebuilt: CSRStore) -> tuple[str, ...]:
    """Return the arrays whose checksums differ."""
    if graph_fingerprint(grown) != graph_fingerprint(rebuilt):
        return ("the attributes or the first checksums of both stores differ",)
    names = [name for name in rebuilt.array_names() if rebuilt.has_array(name)]
    return tuple(
        f"{name} differs" for name in names if not np.array_equal(grown.read(f"{CHECKSUMS}/{name}"), rebuilt.read(f"{CHECKSUMS}/{name}"))
    )
