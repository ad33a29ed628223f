"""How threads share a pull, by the size of what they take at once; and the sort that they share, beside NumPy's.

In: a store and a number of threads. Out: metrics. The pull of a search that finds most is done again and again on copies, in pieces of
2^6 to 2^18 vertices (`Team.run_pieces`: one compiled call of each thread) and as calls of Python for up to 16 ranges a thread
(`Team.run_range`). Kinds and sizes take turns. Then the same beside a neighbour: a process that keeps one of the cores busy.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oocgraph.bench.harness import in_turn, paired_ratios
from oocgraph.bench.neighbour import busy_neighbour
from oocgraph.engine.buffers import BufferPool
from oocgraph.engine.cpu_engine import PROBE_SECONDS, WORD_SECONDS
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.state import SearchState
from oocgraph.errors import OocGraphError
from oocgraph.kernels import cpu
from oocgraph.kernels.rows import NO_LONG_ROWS
from oocgraph.sorting import sort_by_digits
from oocgraph.store.graph import CSRStore
from oocgraph.team import Counts, team_of
from oocgraph.types import Array, Progress

GRAINS = tuple(1 << bits for bits in range(13))
"""Words of a piece, each 64 vertices."""

KINDS = ("static", "dynamic")

NUM_ROUNDS, SORT_ROUNDS = 21, 5

SORT_SIZES = (10**5, 10**6, 10**7)
"""Keys."""

CALLS = "calls"
"""Name of ranges that are calls of Python."""


class Trial(NamedTuple):
    """One pull: its seconds, and what the team did meanwhile."""

    seconds: float
    before: Counts
    after: Counts

    def added(self, name: str) -> float:
        """Return what one of the counts of all threads got."""
        return float(np.sum(getattr(self.after, name) - getattr(self.before, name)))


class PullRuntime(LocalRuntime):
    """A graph in this process that does the pull of its searches again that found most. Open and use it as a `LocalRuntime`."""

    _best: SearchState | None = None
    _most = 0

    def pull_heads(self, state: SearchState) -> int:
        """Pull, and keep the state before it if no pull so far has found as much."""
        before = state.visited.copy()
        left = super().pull_heads(state)
        found = int(np.bitwise_count(state.visited & ~before).sum())
        if found > self._most:
            kept = SearchState(state.num_vertices, self.store.index_dtype, BufferPool(), wide=state.wide)
            kept.visited[:], kept.frontier[:] = before, state.frontier
            kept.num_reached, kept.level = state.num_reached, state.level
            self._best, self._most = kept, found
        return left

    def repeat(self, kind: str, grain: int | None) -> Trial:
        """Do the pull with pieces of so many words, or as calls of Python."""
        state = self._best
        if state is None:
            raise OocGraphError("no pull found a vertex; measure a graph with edges")
        visited = state.visited.copy()
        self.team.asked, before = kind, self.team.counts
        began = time.perf_counter()
        if grain is None:
            self._pull_by_calls(state)
        else:
            self.pull_grain = grain
            super().pull_heads(state)
        seconds = time.perf_counter() - began
        state.visited[:] = visited
        return Trial(seconds, before, self.team.counts)

    def _pull_by_calls(self, state: SearchState) -> None:
        pull = self.graph.pull

        def heads(w0: int, w1: int) -> None:
            cpu.pull_heads(
                w0, w1, state.num_vertices, pull.lookup, pull.heads, pull.resident, 0,
                state.frontier, state.visited, state.undecided, state.marks, NO_LONG_ROWS,
            )  # fmt: skip

        self.team.run_range(heads, state.num_words, WORD_SECONDS * state.num_words + PROBE_SECONDS * state.num_unvisited)


def measure_distribution(store: CSRStore, source: int, threads: int, progress: Progress) -> dict[str, Any]:
    """Return metrics, all named ``distribution_...``: of pulls, lists with an entry for each grain; and of sorts, for each size.

    Parameters
    ----------
    store, source
        The graph, and the store number of the vertex whose search has the pull.
    threads
        Threads of the team.
    progress
        Called with pulls done.
    """
    metrics: dict[str, Any] = {"distribution_grain_vertices": [64 * grain for grain in GRAINS]}
    with PullRuntime.open(store, threads=threads) as runtime:
        runtime.search(np.array([source], np.int64), direction="pull")
        metrics |= _measure_pulls(runtime, "", progress)
        with busy_neighbour(max(os.sched_getaffinity(0))):
            metrics |= _measure_pulls(runtime, "_beside_neighbour", progress)
    return metrics | measure_sorts(threads, SORT_SIZES)


def _measure_pulls(runtime: PullRuntime, where: str, progress: Progress) -> dict[str, Any]:
    subjects = {f"{kind} {grain or CALLS}": partial(_repeat, runtime, kind, grain) for kind in KINDS for grain in (None, *GRAINS)}
    found: dict[str, list[Trial]] = in_turn(subjects, range(NUM_ROUNDS), progress, phase="pulls" + where.replace("_", " "), alternate=True)
    metrics: dict[str, Any] = {}
    for kind in KINDS:
        by_calls, trials = found[f"{kind} {CALLS}"], [found[f"{kind} {grain}"] for grain in GRAINS]
        name = f"distribution{where}_{kind}"
        metrics |= {
            f"{name}_{CALLS}_median_ms": 1e3 * statistics.median(one.seconds for one in by_calls),
            f"{name}_median_ms": [1e3 * statistics.median(one.seconds for one in some) for some in trials],
            f"{name}_ratio_to_{CALLS}": [
                paired_ratios("ratio", [one.seconds for one in some], [one.seconds for one in by_calls])["ratio"] for some in trials
            ],
            f"{name}_idle_share": [_idle_share(some) for some in trials],
            f"{name}_pieces": [_mean(some, "pieces") for some in trials],
            f"{name}_stolen": [_mean(some, "stolen") + _mean(some, "stolen_far") for some in trials],
            f"{name}_missed": [_mean(some, "missed") for some in trials],
        }
    return metrics


def _repeat(runtime: PullRuntime, kind: str, grain: int | None, _round: int) -> Trial:
    return runtime.repeat(kind, grain)


def _mean(trials: Sequence[Trial], name: str) -> float:
    return statistics.mean(one.added(name) for one in trials)


def _idle_share(trials: Sequence[Trial]) -> float:
    busy, idle = (sum(one.added(f"{name}_seconds") for one in trials) for name in ("busy", "idle"))
    return idle / (busy + idle) if busy else 0.0


def measure_sorts(threads: int, sizes: Sequence[int], *, rounds: int = SORT_ROUNDS) -> dict[str, Any]:
    """Sort random uint64 keys by digits, in all threads, and by NumPy; return medians of seconds and ratios, for each size."""
    ours, numpys, ratios = [], [], []
    with team_of(threads) as team:
        for size in sizes:
            drawn = np.random.default_rng(1).integers(0, 1 << 63, size, dtype=np.uint64)
            other = np.zeros_like(drawn)
            by_digits = partial(sort_by_digits, other=other, team=team)
            mine, theirs = zip(*((_seconds(by_digits, drawn), _seconds(np.ndarray.sort, drawn)) for _ in range(rounds)), strict=True)
            ours.append(statistics.median(mine))
            numpys.append(statistics.median(theirs))
            ratios.append(paired_ratios("ratio", mine, theirs)["ratio"])
    return {
        "distribution_sort_keys": list(sizes),
        "distribution_sort_median_seconds": ours,
        "distribution_sort_numpy_median_seconds": numpys,
        "distribution_sort_ratio_to_numpy": ratios,
    }


def _seconds(sort: Callable[[Array], object], drawn: Array) -> float:
    keys = drawn.copy()
    began = time.perf_counter()
    sort(keys)
    return time.perf_counter() - began
