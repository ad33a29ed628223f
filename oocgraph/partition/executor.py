"""Who runs the phases of a partitioning: this process, or the workers of a Dask cluster (`oocgraph.cluster.phases`).

In: a phase and the arguments of each of its calls. Out: their results, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from oocgraph.partition import phases as steps
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.partition.stage import Stage
from oocgraph.types import Progress

Call = tuple[Any, ...]


class PhaseExecutor(Protocol):
    """Runs phases.

    Attributes
    ----------
    num_readers : int
        Ranges of vertices that are worked on at the same time.
    """

    num_readers: int

    def run(self, spec: CuspSpec, phase: str, calls: Sequence[Call]) -> list[Any]:
        """Run one call of a phase for each tuple of arguments; results are in order."""
        ...

    def close(self) -> None:
        """Drop what is kept."""
        ...


class LocalPhases:
    """The threads of this process: calls one after the other, each on all threads.

    Parameters
    ----------
    progress
        Called with (phase, calls done, calls); within the one call of a phase that goes through blocks with (phase, blocks done, blocks).
    """

    num_readers = 1

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage: Stage | None = None

    def run(self, spec: CuspSpec, phase: str, calls: Sequence[Call]) -> list[Any]:
        """Run one call of a phase for each tuple of arguments; results are in order."""
        self._stage = self._stage or steps.make_stage(spec)
        if len(calls) == 1 and phase in steps.BY_BLOCKS:
            return [steps.run_phase(self._stage, phase, calls[0], self._progress)]
        found = []
        for i, call in enumerate(calls):
            self._progress(phase, i, len(calls))
            found.append(steps.run_phase(self._stage, phase, call))
        self._progress(phase, len(calls), len(calls))
        return found

    def close(self) -> None:
        """Drop what is kept."""
        if self._stage is not None:
            steps.close(self._stage)
