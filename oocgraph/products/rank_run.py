"""A run of PageRank, wherever its iterations are made: what the ranks depend on, when it ends, what was measured, its checkpoint.

In: `RankOptions`, and the state after each iteration. Out: `RankRun`, which says whether that was the last, and saves it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np

from oocgraph.errors import ConvergenceError
from oocgraph.products.personalization import Personalization, personalization_of
from oocgraph.products.ranking import RankState, single_floor
from oocgraph.resources import Resources
from oocgraph.results.pagerank import RankIteration
from oocgraph.store.fingerprint import column_fingerprint, graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.store.rank_checkpoint import RankCheckpoint
from oocgraph.types import Array, Precision, Progress

ITERATIONS = "iterations"
"""Phase of progress: iterations done, of the most that may be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """What the ranks depend on, and what may be used for them; see `oocgraph.pagerank`.

    Attributes
    ----------
    column
        Edge column of the weights; None: every edge counts 1.
    in_place
        Whether ranks are used as soon as they are made.
    """

    store: CSRStore
    damping: float
    column: str | None
    personalization: Any
    precision: Precision
    resources: Resources
    in_place: bool = False


class RankRun:
    """A run, wherever it is carried out: when it ends, what was measured, its checkpoint.

    Attributes
    ----------
    enough, max_iter
        It ends when the ranks change by less, or after so many iterations.
    steps
        Metrics of its iterations.
    personalization
        Personalization; `begin` sets it.
    """

    def __init__(
        self, options: RankOptions, enough: float, max_iter: int, checkpoint: str | os.PathLike[str] | None, save_every: int,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.enough, self.max_iter, self.steps = enough, max_iter, list[RankIteration]()
        self._options, self._folder, self._save_every, self._progress = options, checkpoint, save_every, progress
        self._saved: RankCheckpoint | None = None

    def begin(self) -> None:
        """Read the personalization, and open the checkpoint."""
        self.personalization = personalization_of(self._options.store, self._options.personalization)
        if self._folder is not None:
            self._saved = _open_checkpoint(self._folder, self._options, self.personalization)

    @property
    def saved_every(self) -> int | None:
        """Iterations between two checkpoints; None: there is none."""
        return None if self._saved is None else self._save_every

    def resumed(self) -> RankState | None:
        """Return the state that the checkpoint holds; None where there is none."""
        return None if self._saved is None else _resumed(self._saved, self._options.store.num_rows)

    def is_done(self, state: RankState) -> bool:
        """Whether no more iterations are to be made."""
        return state.iteration >= self.max_iter or state.change < self.enough

    def record(self, metrics: RankIteration) -> None:
        """Take note of an iteration whose ranks are no longer anywhere."""
        self.steps = [*(one for one in self.steps if one.iteration < metrics.iteration), metrics]

    def note(self, state: RankState, metrics: RankIteration, ranks: Callable[[], Array]) -> bool:
        """Take note of an iteration, `ranks` gives its ranks if they are to be saved; returns whether it was the last."""
        self.record(metrics)
        done = self.is_done(state)
        if self._saved is not None and (done or state.iteration % self._save_every == 0):
            self._saved.write(_scalars(state), ranks())
        self._progress(ITERATIONS, state.iteration, self.max_iter)
        return done

    def check_converged(self, state: RankState) -> None:
        """Refuse a result that still changes.

        Raises
        ------
        ConvergenceError
            The change is not below `enough`, which is not 0.
        """
        if not self.enough or state.change < self.enough:
            return
        kept = "; the checkpoint goes on from here" if self._saved is not None else ""
        floor = single_floor(self._options.damping)
        circling = state.single and self.enough < floor
        other = f", or set oocgraph.precision to double: float32 may go round with changes up to {floor:.2g}" if circling else ""
        raise ConvergenceError(
            f"PageRank has not converged: after {state.iteration} iterations ranks still change by {state.change:.3g}, and "
            f"tol asks for less than {self.enough:.3g} (N * tol); raise max_iter or tol{other}{kept}"
        )


def _open_checkpoint(folder: str | os.PathLike[str], options: RankOptions, personalization: Personalization) -> RankCheckpoint:
    """Return the checkpoint of this run: what the ranks of an iteration depend on tells it from others."""
    store, column = options.store, options.column
    by_id = personalization.by_id
    run = {
        "graph": graph_fingerprint(store),
        "damping": options.damping,
        "weights": column,
        "checksum of the weights": None if column is None else column_fingerprint(store, f"out/{column}"),
        "precision": options.precision,
        "schedule": "in-place" if options.in_place else None,
        "checksum of the personalization": None if by_id is None else format(google_crc32c.extend(0, by_id.view(np.uint8)), "08x"),
    }
    return RankCheckpoint(folder, run)


def _scalars(state: RankState) -> dict[str, Any]:
    """Return all of a state but the ranks, as JSON values; floats as texts that give back every bit."""
    floats = {name: float(getattr(state, name)).hex() for name in ("isolated_scale", "dangling", "change")}
    return {"iteration": state.iteration, "single": state.single, **floats}


def _resumed(saved: RankCheckpoint, num_vertices: int) -> RankState | None:
    """Return the state that a checkpoint holds; None where it holds none yet."""
    found = saved.read(num_vertices)
    if found is None:
        return None
    scalars, rank = found
    floats = {name: float.fromhex(scalars[name]) for name in ("isolated_scale", "dangling", "change")}
    return RankState(iteration=scalars["iteration"], single=scalars["single"], rank=rank, **floats)
