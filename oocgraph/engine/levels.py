"""The level loop: what every search does in each iteration, whichever engine takes the steps.

In: an engine (`oocgraph.engine.steps`) and sources. Out: a `Search`. `search` runs a whole search in this process, `iterate` finds one
level of a whole graph, or of the vertices that one partition of a cluster owns.

Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012; the direction is chosen by `oocgraph.plan.direction`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.engine.state import SearchProgress, are_marked
from oocgraph.engine.steps import Steps
from oocgraph.memory import device_bytes_read
from oocgraph.plan import direction as rules
from oocgraph.plan.direction import Choice
from oocgraph.progress import LEVEL, REACHED
from oocgraph.results.search import Search, ThreadMetrics
from oocgraph.team import Counts
from oocgraph.types import Array, Direction, Progress, ignore_progress

if TYPE_CHECKING:
    from oocgraph.engine.device import DeviceRuntime
    from oocgraph.engine.local import LocalRuntime

MAX_DEPTH_LIMIT = np.iinfo(np.int32).max - 1
"""Largest level that a state can hold."""

FEW_PAGES = 64
"""Pages below which a pull is finished without counting what a push would read."""


def search(
    runtime: LocalRuntime | DeviceRuntime,
    sources: Array,
    *,
    direction: Direction = "auto",
    depth_limit: int | None = None,
    targets: Array | None = None,
    progress: Progress = ignore_progress,
) -> Search:
    """Traverse from ``sources`` ((num_sources,) int64 store numbers, distinct, perhaps none), in store order; see `oocgraph.bfs`.

    Searches of one runtime in several threads take turns: they share its caches and its threads.
    """
    runtime.lifetime.check()
    with runtime.lifetime.searching:
        return _search(runtime, sources, direction, depth_limit, targets, progress)


def _search(
    runtime: LocalRuntime | DeviceRuntime, sources: Array, direction: Direction, depth_limit: int | None, targets: Array | None,
    progress: Progress,
) -> Search:  # fmt: skip
    device_began, before, began = device_bytes_read(), runtime.thread_counts, time.perf_counter()
    last_level = MAX_DEPTH_LIMIT if depth_limit is None else depth_limit
    state: Any = runtime.start(sources)  # of the kind that this runtime takes
    if targets is not None:
        state.targets = targets
    while state.frontier_size and state.level < last_level and not (state.targets.size and are_marked(state.reached, state.targets).all()):
        if direction not in ("auto", "push") or runtime.little_levels(state, last_level, may_pull=direction == "auto"):
            loading = time.perf_counter()
            runtime.load_large_levels()
            began += time.perf_counter() - loading  # as of a graph for which that was done when it was opened
            iterate(runtime, state, direction)
            progress(LEVEL, state.level, 0)
            progress(REACHED, state.num_reached, state.num_vertices)
    runtime.finish(state)
    finished = time.perf_counter()
    parent, level = runtime.results(state)
    ended = time.perf_counter()
    device = device_bytes_read() - device_began
    return Search(
        sources=sources,
        parent=parent,
        level=level,
        num_reached=state.num_reached,
        num_reached_edges=runtime.reached_edges(state),
        depth=state.depth,
        seconds=ended - began,
        results_seconds=ended - finished,
        bytes_requested=state.bytes_requested,
        bytes_read=max(state.bytes_requested, device),
        iterations=state.iterations(),
        threads=_since(before, runtime.thread_counts),
    )


def _since(before: Counts | None, after: Counts | None) -> tuple[ThreadMetrics, ...]:
    """Return what threads have done in between."""
    if before is None or after is None:
        return ()
    spent = zip(after.busy_seconds - before.busy_seconds, after.idle_seconds - before.idle_seconds, strict=True)
    stolen = after.stolen + after.stolen_far - before.stolen - before.stolen_far
    return tuple(ThreadMetrics(float(busy), float(idle), int(count)) for (busy, idle), count in zip(spent, stolen, strict=True))


def iterate(runtime: Steps, state: SearchProgress, direction: Direction) -> None:
    """Find the next level of a whole graph, or a partition's part of it."""
    began = time.perf_counter()
    runtime.begin_iteration(state)
    frontier, undecided = state.frontier_size, 0
    choice = choose(runtime, state, direction)
    if choice.direction == "push":
        num_bytes = runtime.push(state)
    else:
        num_bytes = 0
        undecided = runtime.pull_heads(state)
        if undecided:
            choice = choose_finish(runtime, state, undecided, choice) if direction == "auto" else choice
            num_bytes = runtime.push(state) if choice.direction == "push" else runtime.pull_tails(state)
    runtime.advance(state, choice, frontier=frontier, undecided=undecided, began=began, num_bytes=num_bytes)


def choose(runtime: Steps, state: SearchProgress, direction: Direction) -> Choice:
    """Apply the rule that `direction` names."""
    if direction in ("push", "pull"):
        return Choice(direction, "as asked")
    facts = runtime.facts(state, with_costs=direction == "auto")
    if direction == "half":
        return rules.choose_half(facts)
    if direction == "alpha-beta":
        return rules.choose_alpha_beta(facts, alpha=runtime.knobs.alpha, beta=runtime.knobs.beta)
    if direction == "gemini":
        return rules.choose_gemini(facts)
    return rules.choose_by_cost(facts, disk_byte_cost=runtime.outside_byte_cost, page_bytes=runtime.outside_page_bytes)


def choose_finish(runtime: Steps, state: SearchProgress, undecided: int, choice: Choice) -> Choice:
    """Finish a pull that left vertices undecided by whichever direction reads fewer pages."""
    pull_pages = runtime.undecided_pages(state)
    if pull_pages <= FEW_PAGES:
        return choice
    return rules.choose_finish(undecided=undecided, pull_pages=pull_pages, push_pages=runtime.frontier_pages(state))
