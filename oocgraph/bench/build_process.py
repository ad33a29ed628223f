"""One build in a process of its own: ``python -m oocgraph.bench.build_process SUBJECT SOURCE OPTIONS``, OPTIONS as JSON.

Once its library is loaded, compiled kernels included, it says so; then a line on stdin begins the build, and it answers with what that
took. SUBJECT is ``oocgraph``; ``duckdb``, which takes the same steps as SQL (read, number the distinct ids, join both ends with them,
number by degree, rename and sort); or ``pyarrow``, which only reads both columns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from oocgraph.bench.child import answer
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler

TEXT_DELIMITERS = {".tsv": "\t", ".csv": ",", ".el": " "}
"""Delimiters of the text files that peers read: two columns, no header."""

READ_ROWS = 1 << 18
"""Rows of a batch of Parquet."""


def build_here(source: str, *, folder: str | None, memory: int, threads: int, is_text: bool) -> int:
    """Build a store, or a graph in memory; return its number of vertices, isolated ones included."""
    from oocgraph.ingest.build import build_csr
    from oocgraph.resources import Resources

    graph = build_csr(source, folder, resources=Resources(memory_budget=memory, threads=threads))
    return graph.attributes.num_input_vertices


def load_here() -> None:
    """Bring into memory what a build uses."""
    from oocgraph.config import settings
    from oocgraph.ingest.build import load_build

    for module in ("oocgraph.ingest.in_memory", "oocgraph.ingest.sources"):
        import_module(module)
    settings()
    load_build("none", id_kind="string")


STEPS = {
    "ends": "create view ends as select s k from e union all select t from e",
    "ids": "create table v as select k, row_number() over () - 1 as i from (select distinct k from ends)",
    "join": "create table r as select a.i s, b.i t from e join v a on e.s = a.k join v b on e.t = b.k",
    "degrees": "create table d as select i, count(*) n from (select s i from r union all select t from r) group by i",
    "order": "create table m as select i, row_number() over (order by n desc) - 1 as j from d",
}
"""Steps of DuckDB between reading and writing."""

RENAMED = "select distinct a.j s, b.j t from r join m a on r.s = a.i join m b on r.t = b.i order by 1, 2"


def build_in_duckdb(source: str, *, folder: str | None, memory: int, threads: int, is_text: bool) -> int:
    """Do the steps in a database on disk, or in memory; return the number of distinct ids."""
    import duckdb

    database = duckdb.connect(":memory:" if folder is None else f"{folder}.duckdb")
    database.execute(f"set memory_limit = '{memory}B'; set threads = {threads}; set preserve_insertion_order = false")
    if folder is not None:
        database.execute(f"set temp_directory = '{folder}.tmp'")
    database.execute(f"create table e as {_selected(database, source, 'VARCHAR' if is_text else 'BIGINT')}")
    for step in STEPS.values():
        database.execute(step)
    database.execute(f"create table edges as {RENAMED}" if folder is None else f"copy ({RENAMED}) to '{folder}.parquet'")
    return int(database.execute("select count(*) from v").fetchall()[0][0])


def _selected(database: Any, source: str, kind: str) -> str:
    """Return the query that reads both ends of the edges."""
    quoted = source.replace("'", "''")
    delimiter = TEXT_DELIMITERS.get(Path(source).suffix)
    if delimiter is not None:
        columns = f"{{'s': '{kind}', 't': '{kind}'}}"
        return f"select s, t from read_csv('{quoted}', delim = '{delimiter}', header = false, quote = '', escape = '', columns = {columns})"
    names = [row[0] for row in database.execute(f"describe select * from '{quoted}'").fetchall()]
    return f'select "{names[0]}" s, "{names[1]}" t from \'{quoted}\''


def read_by_pyarrow(source: str, *, folder: str | None, memory: int, threads: int, is_text: bool) -> int | None:
    """Read both columns, batch by batch; nothing is counted that a build counts."""
    import pyarrow as pa

    pa.set_cpu_count(threads)
    for _ in _batches(source, pa.large_string() if is_text else pa.int64()):
        continue
    return None


def _batches(source: str, kind: Any) -> Iterator[Any]:
    delimiter = TEXT_DELIMITERS.get(Path(source).suffix)
    if delimiter is None:
        import pyarrow.parquet as pq

        file: Any = pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20)
        yield from file.iter_batches(READ_ROWS, columns=file.schema_arrow.names[:2])
        return
    from pyarrow import csv

    yield from csv.open_csv(
        source,
        csv.ReadOptions(column_names=["s", "t"]),
        csv.ParseOptions(delimiter=delimiter, quote_char=False),
        csv.ConvertOptions(column_types={"s": kind, "t": kind}),
    )


SUBJECTS: dict[str, tuple[Callable[..., int | None], str]] = {
    "oocgraph": (build_here, "oocgraph.ingest.build"),
    "duckdb": (build_in_duckdb, "duckdb"),
    "pyarrow": (read_by_pyarrow, "pyarrow"),
}
"""What each subject does, and the module that is loaded before time is taken."""


def _transferred() -> dict[str, int]:
    """Bytes that this process has read and written by calls so far, cached or not."""
    fields = dict(line.split(":") for line in Path("/proc/self/io").read_text().splitlines())
    return {"read_bytes": int(fields["rchar"]), "written_bytes": int(fields["wchar"])}


def main() -> None:
    """Load the subject, then build once."""
    subject, source, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    build, module = SUBJECTS[subject]
    try:
        import_module(module)
    except ImportError:
        answer(error=f"--peer {subject}: {module} is not installed; run pip install {module}, or name other peers")
        return
    if subject == "oocgraph":
        load_here()
    answer(pid=os.getpid())
    sys.stdin.readline()
    before, began, cpu_began = _transferred(), time.perf_counter(), time.process_time()
    try:
        with PeakSampler() as sampler:
            num_ids = build(source, **options)
    except (OocGraphError, MemoryError) as error:
        answer(error=str(error) or "out of memory")
        return
    except Exception as error:  # whatever class a peer raises: its message says which limit it met
        if subject == "oocgraph":
            raise
        answer(error=f"--peer {subject}: {error}")
        return
    seconds, cpu_seconds, after = time.perf_counter() - began, time.process_time() - cpu_began, _transferred()
    moved = {name: after[name] - before[name] for name in after}
    answer(seconds=seconds, cpu_seconds=cpu_seconds, peak_bytes=sampler.peak_bytes, **moved, num_ids=num_ids)


if __name__ == "__main__":
    main()
