"""A phase of a partitioning, on whichever worker: the same function in this process and as a Dask task.

In: a `CuspSpec`, its token, the name of a phase and its arguments. Out: what the phase returns. A worker makes its `Stage` when it is first
asked and keeps it until `forget`; one that comes in for a lost worker makes its own, out of the files.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from oocgraph.config import settings
from oocgraph.memory import effective_budget_bytes
from oocgraph.partition import cusp, finish, local_ids
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.partition.stage import EndedError, Stage
from oocgraph.runtime.worker_memory import worker_limit_bytes
from oocgraph.types import Progress

PHASES: dict[str, Callable[..., Any]] = {
    "masters": cusp.assign_masters,
    "edges": cusp.assign_edges,
    "allocate": local_ids.allocate,
    "construct": cusp.construct,
    "transpose": finish.transpose,
    "seal": finish.seal,
    "seal masters": finish.seal_masters,
}

BY_BLOCKS = frozenset({"masters", "edges", "construct"})
"""Phases that go through blocks, and tell of each."""

_stages: dict[tuple[int, str], Stage] = {}
_ended: set[tuple[int, str]] = set()
_lock = threading.Lock()


def run_phase(
    worker: Any,
    token: str,
    spec: CuspSpec,
    phase: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    progress: Progress | None = None,
) -> Any:
    """Run a phase.

    Parameters
    ----------
    worker
        Dask's, or None in this process.
    token
        Name of the partitioning.
    phase
        Name in `PHASES`.
    arguments, options
        Of the phase, but for the stage.
    progress
        Called with (phase, blocks done, blocks).

    Returns
    -------
    object
        What the phase returns; None if the partitioning has ended meanwhile, when nobody asks for it.
    """
    try:
        stage = _stage(worker, token, spec)
        with stage.lock:  # what is reserved is for one at a time; one that waited here may find that all has ended
            if progress is not None:
                stage.tell = partial(progress, phase)
            return None if stage.ended else PHASES[phase](stage, *arguments, **options)
    except EndedError:
        return None


def forget(worker: Any, token: str) -> None:
    """Drop what is kept for a partitioning; when this returns, nothing is being written for it any more."""
    with _lock:
        if worker is not None:  # a task may yet come that was on its way
            _ended.add((id(worker), token))
        stage = _stages.pop((id(worker), token), None)
    if stage is not None:
        stage.ended = True
        with stage.lock:
            return


# Called at once on every worker, apart from tasks; in a thread, because a block has to end first and the worker's loop may not wait.


async def forget_on_worker(token: str, dask_worker: Any = None) -> None:
    """Drop what a worker keeps for a partitioning."""
    await asyncio.to_thread(forget, dask_worker, token)


async def forget_others(clients: Collection[str], dask_worker: Any = None) -> None:
    """Drop what a worker keeps for clients that are gone: `clients` are those that are not."""
    for number, token in list(_stages):
        if number == id(dask_worker) and token.partition("/")[0] not in clients:
            await asyncio.to_thread(forget, dask_worker, token)


def kept(dask_worker: Any = None) -> list[str]:
    """Say for which partitionings a worker keeps something."""
    return [token for number, token in list(_stages) if number == id(dask_worker)]


def _stage(worker: Any, token: str, spec: CuspSpec) -> Stage:
    with _lock:
        key = (id(worker), token)
        if key in _ended:
            raise EndedError
        if key not in _stages:
            knobs = settings()
            requested = spec.memory_budget if spec.memory_budget is not None else knobs.memory_budget
            if worker is None:
                threads, limit = spec.threads or knobs.threads, effective_budget_bytes(requested)
            else:
                threads, limit = spec.threads or max(1, int(worker.state.nthreads)), worker_limit_bytes(worker, requested)
            _stages[key] = Stage(spec, threads=threads, limit_bytes=limit)
        return _stages[key]
