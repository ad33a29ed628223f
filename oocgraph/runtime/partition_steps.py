"""A phase of a partitioning, on whichever worker: the same function in this process and as a Dask task.

In: a `CuspSpec`, its token, the name of a phase and its arguments. Out: what the phase returns. A worker makes its `Stage` when it is first
asked and keeps it until `forget`; one that comes in for a lost worker makes its own, out of the files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from oocgraph.config import settings
from oocgraph.memory import effective_budget_bytes
from oocgraph.partition import cusp, finish
from oocgraph.partition.stage import CuspSpec, Stage
from oocgraph.runtime.worker_memory import worker_limit_bytes

PHASES: dict[str, Callable[..., Any]] = {
    "masters": cusp.assign_masters,
    "edges": cusp.assign_edges,
    "allocate": cusp.allocate,
    "construct": cusp.construct,
    "transpose": finish.transpose,
    "seal": finish.seal,
    "seal masters": finish.seal_masters,
}

_stages: dict[tuple[int, str], Stage] = {}
_lock = threading.Lock()


def run_phase(worker: Any, token: str, spec: CuspSpec, phase: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
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
    """
    return PHASES[phase](_stage(worker, token, spec), *arguments, **options)


def forget(token: str, dask_worker: Any = None) -> None:
    """Drop what is kept for a partitioning."""
    with _lock:
        _stages.pop((id(dask_worker), token), None)


def _stage(worker: Any, token: str, spec: CuspSpec) -> Stage:
    with _lock:
        key = (id(worker), token)
        if key not in _stages:
            knobs = settings()
            requested = spec.memory_budget if spec.memory_budget is not None else knobs.memory_budget
            if worker is None:
                threads, limit = spec.threads or knobs.threads, effective_budget_bytes(requested)
            else:
                threads, limit = spec.threads or max(1, int(worker.state.nthreads)), worker_limit_bytes(worker, requested)
            _stages[key] = Stage(spec, threads=threads, limit_bytes=limit)
        return _stages[key]
