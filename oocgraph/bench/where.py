"""Searches by a condition on an edge column beside searches of the whole graph, and beside what reading the column takes.

In: a store, a condition, sources. Out: a `Report`. Each round searches the whole graph from the store on, reads the columns of the
condition by as many threads, and searches by the condition: ``ratio`` is the time of that by the sum of 1.5 times the first and of the
second, in the same round, and ``byte_ratio`` the same of bytes read. A search begins with the open store and nothing of it loaded, and ends
with its result; each subject has run once before, so that what it reads is in the page cache, if that has room, and its kernels are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.harness import Report, in_turn, medians, paired_ratios
from oocgraph.bench.results_on_disk import first_violation
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.config import settings
from oocgraph.resources import Resources
from oocgraph.store.edge_conditions import edge_condition
from oocgraph.store.graph import CSRStore
from oocgraph.store.rows import map_bounded
from oocgraph.types import Progress

ALLOWED = 1.5
"""Times the search of the whole graph that one by a condition may take, beside reading the column."""

BLOCK_EDGES = 1 << 20
"""Values of a column read at once: with fewer, threads wait for each other."""


def bench_where(
    store: CSRStore, where: str, *, num_sources: int, seed: int, progress: Progress, memory_budget: str | int | None = None,
    threads: int | None = None,
) -> Report:  # fmt: skip
    """Measure searches by a condition.

    Parameters
    ----------
    store
        The graph.
    where
        The condition; see `oocgraph.bfs`.
    num_sources, seed
        Rounds, each with a source of its own.
    progress
        Called with runs done.
    memory_budget, threads
        As for `oocgraph.bfs`.

    Raises
    ------
    OocGraphError
        All that `oocgraph.bfs` raises.
    """
    threads = threads or settings().threads
    resources = Resources(memory_budget=memory_budget, threads=threads, device="cpu", client=False)
    columns = [f"{group}/{name}" for group in store.attributes.stored_groups for name in edge_condition(where, store).columns]
    subjects: dict[str, Callable[[int], Any]] = {
        "whole": lambda source: bfs(store, source, resources=resources),
        "column": lambda _: _read(store, columns, threads),
        "filtered": lambda source: bfs(store, source, where=where, resources=resources),
    }
    sources = source_ids(store, draw_sources(store, num_sources, seed))
    for run in subjects.values():
        run(sources[0])
    rows = in_turn({name: _measured(subject) for name, subject in subjects.items()}, sources, progress, phase="searching")
    violation = first_violation(store, rows["filtered"][-1]["result"], memory_budget=memory_budget)
    invalid = [] if violation is None else [f"from {sources[-1]}: {violation}"]
    metrics: dict[str, Any] = {"where": where, "num_rounds": len(sources), "edge_bytes": store.edge_bytes}
    for quantity, name in (("seconds", "ratio"), ("bytes", "byte_ratio")):
        allowed = [ALLOWED * a[quantity] + b[quantity] for a, b in zip(rows["whole"], rows["column"], strict=True)]
        metrics |= paired_ratios(name, [row[quantity] for row in rows["filtered"]], allowed)
        for subject in subjects:
            metrics |= {f"{subject}_{key}": value for key, value in medians(rows[subject], quantity).items()}
    return Report(title=f"{store.url}: searches by {where!r}", metrics=metrics, invalid=tuple(invalid))


def _measured(subject: Callable[[int], Any]) -> Callable[[int], Mapping[str, Any]]:
    def run(source: int) -> Mapping[str, Any]:
        before, began = _bytes_read(), perf_counter()
        result = subject(source)
        return {"seconds": perf_counter() - began, "bytes": _bytes_read() - before, "result": result}

    return run


def _bytes_read() -> int:
    """Bytes that this process has read from files so far, cached or not."""
    fields = dict(line.split(":") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def _read(store: CSRStore, columns: list[str], threads: int) -> None:
    for name in columns:
        array = store.array(name)

        def read(start: int, array: Any = array) -> None:
            array.read_into(start, np.empty(min(BLOCK_EDGES, array.length - start), array.dtype))

        for _ in map_bounded(read, range(0, array.length, BLOCK_EDGES), threads):
            continue
