"""Small questions: the surroundings of random vertices of a graph that is open, and searches of tiny graphs in memory.

In: a graph, opened. Out: a `Report`: searches that begin with a table of what they find, beside those of the engines of large levels, which
touch the state of all vertices; and what a call costs on a graph of a hundred vertices.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from oocgraph.algorithms.bfs import bfs
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sssp import sssp
from oocgraph.bench.harness import Report, extremes, in_turn, paired_ratios
from oocgraph.errors import ArgumentError
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import build_in_memory
from oocgraph.types import Progress

MOST_NEIGHBOURS, MOST_REACHED = 100, 10_000
"""Degree of a vertex whose surroundings are asked for; and vertices that these have, at the most, for a question to count as small."""

REPEATS = 5
"""Calls of which the quickest counts: the first one finds nothing in the processor's caches."""

TINY_VERTICES, TINY_CALLS = 100, 300


def bench_small(store: CSRStore, runtime: Runtime, *, num_sources: int, depth_limit: int, seed: int, progress: Progress) -> Report:
    """Measure.

    Parameters
    ----------
    store, runtime
        The graph, and the same opened in this process.
    num_sources
        Vertices of at most `MOST_NEIGHBOURS` neighbours, drawn of those that have edges, which searches begin at.
    depth_limit
        Hops.
    seed
        The same seed draws the same vertices.
    progress
        Called with ("searching", searches done, searches).
    """
    sources = _draw(store, num_sources, seed)
    how = {"table": "auto", "large levels": "alpha-beta"}
    subjects = {name: _asking(store, runtime, depth_limit, direction) for name, direction in how.items()}
    found = in_turn(subjects, sources, progress, phase="searching", alternate=True)
    invalid = [
        f"{source!r}: {one['reached']} vertices are reached, but {other['reached']} by large levels"
        for source, one, other in zip(sources, *found.values(), strict=True) if one["reached"] != other["reached"]
    ]  # fmt: skip
    ours, theirs = found.values()
    small = [number for number, one in enumerate(ours) if one["reached"] < MOST_REACHED]
    if not small:
        raise ArgumentError(
            f"none of {num_sources} vertices reaches fewer than {MOST_REACHED:,}; give a smaller depth limit, or another seed"
        )
    metrics = {
        "graph": store.url, "vertices": store.num_vertices, "depth_limit": depth_limit, "num_sources": num_sources, "num_small": len(small),
        **extremes([ours[number] for number in small], "seconds", "reached"),
        **paired_ratios("ratio_to_large_levels", [ours[i]["seconds"] for i in small], [theirs[i]["seconds"] for i in small]),
        **_tiny(seed),
    }  # fmt: skip
    return Report(title=repr(store), metrics=metrics, invalid=tuple(invalid))


def _draw(store: CSRStore, num_sources: int, seed: int) -> list[Any]:
    """Return ids of vertices with few neighbours."""
    ids = store.ids_of(np.random.default_rng(seed).integers(0, max(1, store.num_rows), 16 * num_sources))
    chosen: list[Any] = ids[store.degree(ids, direction="out") <= MOST_NEIGHBOURS][:num_sources].tolist()
    return chosen


def _asking(store: CSRStore, runtime: Runtime, depth_limit: int, direction: Any) -> Callable[[Any], dict[str, Any]]:
    def ask(source: Any) -> dict[str, Any]:
        seconds = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            result = bfs(store, source, depth_limit=depth_limit, direction=direction, runtime=runtime)
            seconds.append(time.perf_counter() - began)
        return {"seconds": min(seconds), "reached": result.num_reached}

    return ask


def _tiny(seed: int) -> dict[str, float]:
    """Return what calls take on a graph of a few vertices in memory."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, TINY_VERTICES, (2, 3 * TINY_VERTICES))
    graph = build_in_memory(
        source, target, directed=False, columns={"weight": rng.integers(1, 9, source.size)}, weight="weight", num_vertices=TINY_VERTICES
    )
    calls: dict[str, Callable[[], Any]] = {"tiny_bfs_seconds": lambda: bfs(graph, 0), "tiny_sssp_seconds": lambda: sssp(graph, 0)}
    found = {}
    for name, call in calls.items():
        call()
        seconds = []
        for _ in range(TINY_CALLS):
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
        found[name] = statistics.median(seconds)
    return found
