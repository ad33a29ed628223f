"""A phase of a partitioning, on whichever worker: the same function in this process and as a Dask task.

In: a `CuspSpec`, the name of a phase and its arguments. Out: what the phase returns. A worker makes its `Stage` when it is first asked and
keeps it until its lease is released; one that comes in for a lost worker makes its own, out of the files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oocgraph.config import settings
from oocgraph.memory import limit_bytes_of
from oocgraph.partition import cusp, finish, local_ids
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.partition.stage import EndedError, Stage
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


def make_stage(spec: CuspSpec) -> Stage:
    """Make what this process keeps for a partitioning."""
    return Stage(spec, threads=spec.threads or settings().threads, limit_bytes=limit_bytes_of(spec.memory_budget))


def close(stage: Stage) -> None:
    """Have phases end at their next block, and wait for the one that runs."""
    stage.ended = True
    with stage.lock:
        return


def run_phase(stage: Stage, phase: str, arguments: tuple[Any, ...], progress: Progress | None = None) -> Any:
    """Run a phase.

    Parameters
    ----------
    phase
        Name in `PHASES`.
    arguments
        Of the phase, but for the stage.
    progress
        Called with (phase, blocks done, blocks).

    Returns
    -------
    object
        What the phase returns; None if the partitioning has ended meanwhile, when it is no longer needed.
    """
    try:
        with stage.lock:  # what is reserved is for one at a time; one that waited here may find that all has ended
            if progress is not None:
                stage.tell = partial(progress, phase)
            return None if stage.ended else PHASES[phase](stage, *arguments)
    except EndedError:
        return None
