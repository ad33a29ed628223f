"""Breadth-first search, out of core: level-synchronous, push or pull in each iteration.

Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. Differs from the paper in: vertices are in
degree order and each list is hub first (Yasui et al. 2014), so that a pull over a few resident neighbours of each vertex
decides nearly all; only the rows of the rest are read, as in Subway (EuroSys 2020); and the direction is
chosen by the bytes that each would move, exactly counted where that pays (`oocgraph.plan.direction`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.memory import PeakSampler, device_bytes_read
from oocgraph.plan import direction as rules
from oocgraph.plan.direction import Choice, Facts
from oocgraph.result import Search
from oocgraph.runtime.local import LocalRuntime
from oocgraph.runtime.state import SearchState
from oocgraph.types import PAGE_BYTES, Array, Direction

DISK_BYTE_COST = 25
"""What a byte from disk costs in bytes of memory traffic: scattered pages 0.33 GB/s against about 8 GB/s (BASELINES)."""

FEW_PAGES = 64
"""Pages below which a pull is finished without counting what a push would read."""


def search(runtime: LocalRuntime, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None) -> Search:
    """Traverse from a set of sources, in store order.

    Parameters
    ----------
    runtime
        The loaded graph.
    sources : (num_sources,) int64
        Distinct store numbers; may be empty.
    direction
        ``auto``: the cost rule. ``push``, ``pull``: always. ``half``, ``alpha-beta``: the classical rules.
    depth_limit
        Last level to find.

    Returns
    -------
    Search

    Raises
    ------
    CorruptStoreError
        A page cannot be read, or differs from its checksum (when the runtime checks pages).
    """
    began, device_began = time.perf_counter(), device_bytes_read()
    last_level = np.iinfo(np.int32).max - 1 if depth_limit is None else depth_limit
    state = runtime.start(sources)
    while state.frontier_size and state.level < last_level:
        if direction in ("auto", "push") and not runtime.push_levels(state, last_level):
            break
        iterate(runtime, state, direction)
    runtime.finish(state)
    seconds = time.perf_counter() - began
    device = device_bytes_read() - device_began
    iterations = state.iterations()
    found = [iteration.level for iteration, after in zip(iterations, iterations[1:], strict=False) if after.frontier]
    depth = max(found, default=0)
    if iterations and state.frontier_size:
        depth = state.level
    return Search(
        sources=sources,
        parent=state.parent,
        level=state.levels,
        num_reached=state.num_reached,
        num_reached_edges=runtime.reached_edges(state),
        depth=depth,
        seconds=seconds,
        bytes_requested=state.bytes_requested,
        bytes_read=max(state.bytes_requested, device),
        iterations=iterations,
    )


def iterate(runtime: LocalRuntime, state: SearchState, direction: Direction) -> None:
    """Find the next level."""
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


def choose(runtime: LocalRuntime, state: SearchState, direction: Direction) -> Choice:
    """Apply the rule that `direction` names."""
    if direction in ("push", "pull"):
        return Choice(direction, "as asked")
    facts: Facts = runtime.facts(state)
    if direction == "half":
        return rules.choose_half(facts)
    if direction == "alpha-beta":
        return rules.choose_alpha_beta(facts, alpha=settings().alpha, beta=settings().beta)
    return rules.choose_by_cost(facts, disk_byte_cost=DISK_BYTE_COST, page_bytes=PAGE_BYTES)


def choose_finish(runtime: LocalRuntime, state: SearchState, undecided: int, choice: Choice) -> Choice:
    """Finish a pull that left vertices undecided by whichever direction reads fewer pages."""
    pull_pages = runtime.undecided_pages(state)
    if pull_pages <= FEW_PAGES:
        return choice
    return rules.choose_finish(undecided=undecided, pull_pages=pull_pages, push_pages=runtime.frontier_pages(state))
