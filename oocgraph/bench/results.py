"""Results as files and arrays, beside the libraries that write such files, and NumPy.

In: a store. Out: a `Report`. One vertex is searched from; then, in each round, the result is written to Parquet, CSV and Zarr and its
columns are made, and pyarrow and zarr write the same table, which they have in memory, with the same options and row groups; the peer of
``parent`` is ``ids[parent]`` of NumPy, of as many numbers. Ratios are of one round. Files of both are compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.harness import Report, in_turn, medians, paired_ratios, scratch_folder
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.memory import PeakSampler
from oocgraph.resources import Resources
from oocgraph.results.bfs import BFSResult
from oocgraph.results.writer import parquet_options, rows_in
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import CHUNK_BYTES
from oocgraph.types import Progress

PEERS = {"parquet": "pyarrow-parquet", "csv": "pyarrow-csv", "zarr": "zarr-python", "parent": "numpy"}
"""What each of our own subjects is divided by; neither zarr nor NumPy is measured where ids are strings."""


def bench_results(
    store: CSRStore, *, num_rounds: int, seed: int, folder: str | Path | None = None, progress: Progress,
    memory_budget: str | int | None = None, threads: int | None = None,
) -> Report:  # fmt: skip
    """Measure how long a result takes to be written, and to be arrays.

    Parameters
    ----------
    store
        The graph.
    num_rounds
        How often each is done.
    seed
        Draws the source.
    folder
        Where files are written; by default where the system has temporary ones.
    progress
        Called with runs done.
    memory_budget, threads
        As for `oocgraph.bfs`.

    Raises
    ------
    OocGraphError
        All that `oocgraph.bfs` raises.
    """
    resources = Resources(memory_budget=memory_budget, threads=threads, device="cpu", client=False)
    (source,) = source_ids(store, draw_sources(store, 1, seed))
    result = bfs(store, source, resources=resources)
    with scratch_folder(folder) as scratch:
        subjects = _ours(result, scratch) | _peers(result, scratch)
        rows = in_turn({name: _measured(call) for name, call in subjects.items()}, range(-1, num_rounds), progress, phase="writing")
        rows = {name: found[1:] for name, found in rows.items()}  # the first loads kernels, and the ids into the page cache
        files = {name: _file_bytes(scratch / name) for name in subjects if (scratch / name).exists()}
        invalid = _differences(scratch)
    metrics: dict[str, Any] = {"num_rounds": num_rounds, "num_ids": result.ids.num_ids, "memory_budget": result.memory_budget}
    for name, peer in PEERS.items():
        if peer in rows:
            metrics |= paired_ratios(f"{name}_ratio", *([row["seconds"] for row in rows[one]] for one in (name, peer)))
    for name, found in rows.items():
        metrics |= {f"{name}_{key}": value for key, value in medians(found, "seconds", "peak_bytes").items()}
    metrics |= {f"{name}_file_bytes": size for name, size in files.items()}
    return Report(title=f"{store.url}: results of a search from {source!r}", metrics=metrics, invalid=invalid)


def _ours(result: BFSResult, scratch: Path) -> dict[str, Callable[[], Any]]:
    def write(form: str) -> None:
        result.write(scratch / f"ours.{form}", overwrite=True)
        (scratch / f"ours.{form}").replace(_cleared(scratch / form))

    calls: dict[str, Callable[[], Any]] = {form: lambda form=form: write(form) for form in ("parquet", "csv", "zarr")}  # type: ignore[misc]
    return calls | {name: lambda name=name: result._joined(name) for name in ("level", "parent")}


def _peers(result: BFSResult, scratch: Path) -> dict[str, Callable[[], Any]]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq
    import zarr

    table, rows = result.to_arrow().read_all().combine_chunks(), rows_in(result)
    calls: dict[str, Callable[[], Any]] = {
        "pyarrow-parquet": lambda: pq.write_table(table, scratch / "pyarrow-parquet", row_group_size=rows, **parquet_options(result)),
        "pyarrow-csv": lambda: pa.csv.write_csv(table, scratch / "pyarrow-csv"),
    }
    if result.ids.kind == "int64":
        columns = {name: table[name].to_numpy() for name in table.column_names}
        ids = columns["vertex"]
        parent = np.searchsorted(ids, np.maximum(columns["parent"], ids[:1]))

        def write_zarr() -> None:
            group = zarr.open_group(_cleared(scratch / "zarr-python"), mode="w")
            for name, values in columns.items():
                chunk = min(max(1, values.size), CHUNK_BYTES // values.itemsize)
                group.create_array(name, data=values, chunks=(chunk,), compressors=None)

        calls |= {"zarr-python": write_zarr, "numpy": lambda: ids[parent]}
    return calls


def _measured(call: Callable[[], Any]) -> Callable[[int], Mapping[str, Any]]:
    def run(_: int) -> Mapping[str, Any]:
        with PeakSampler() as sampler:
            began = perf_counter()
            call()
            seconds = perf_counter() - began
        return {"seconds": seconds, "peak_bytes": sampler.peak_bytes}

    return run


def _differences(scratch: Path) -> tuple[str, ...]:
    """Name the files that are not what the library wrote."""
    import pyarrow.parquet as pq

    same = {
        "parquet": pq.read_table(scratch / "parquet").equals(pq.read_table(scratch / "pyarrow-parquet")),
        "csv": (scratch / "csv").read_bytes() == (scratch / "pyarrow-csv").read_bytes(),
    }
    return tuple(f"the {form} file is not the one that pyarrow writes" for form, is_same in same.items() if not is_same)


def _file_bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


def _cleared(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    return path
