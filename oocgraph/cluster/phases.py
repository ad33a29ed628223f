"""The phases of a partitioning on the workers of a Dask cluster.

The calls of a phase are tasks that prefer their worker. The files that they write are where every worker sees them, so that Dask has
another worker do what a lost one had to do.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from oocgraph.clients import check_client, fetch, wait_for_worker
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.preflight import has_no_worker
from oocgraph.cluster.session import POLL_SECONDS, ClusterSession
from oocgraph.cluster.worker import Resident
from oocgraph.config import settings
from oocgraph.errors import ClusterError, OocGraphError
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.partition.executor import Call
from oocgraph.partition.phases import PHASES, close, run_phase
from oocgraph.partition.stage import Stage
from oocgraph.types import Progress


class DaskPhases:
    """The workers of a session, which `close` does not end.

    Parameters
    ----------
    session, addresses
        The cluster, and its workers.
    progress
        Called with (phase, calls done, calls).
    """

    def __init__(self, session: ClusterSession, addresses: Sequence[str], progress: Progress) -> None:
        self._session, self._addresses, self._progress = session, sorted(addresses), progress
        self.num_readers = len(self._addresses)

    def run(self, spec: CuspSpec, phase: str, calls: Sequence[Call]) -> list[Any]:
        """Run one call of a phase for each tuple of arguments; results are in order.

        Raises
        ------
        ClusterError
            Workers were lost again and again, all are gone, or the scheduler or the client is.
        """
        session, futures = self._session, list[Any]()
        check_client(session.client)

        def submit(i: int, address: str | None) -> Any:
            key = f"oocgraph-partition-{phase.replace(' ', '-')}-{uuid.uuid4().hex}"
            arguments = session.lease, spec, phase, calls[i]
            return session.call(address, run_on_worker, *arguments, key=key, elsewhere=True)

        try:
            for i in range(len(calls)):
                futures.append(submit(i, self._addresses[i % len(self._addresses)]))
            self._progress(phase, 0, len(calls))
            found = []
            for i in range(len(calls)):
                try:
                    found.append(self._result(futures[i], phase, self._addresses[i % len(self._addresses)]))
                except _NoWorkerError:
                    session.client.cancel([futures[i]])  # which runs nowhere
                    futures[i] = submit(i, None)
                    found.append(self._result(futures[i], phase))
                self._progress(phase, i + 1, len(calls))
            return found
        finally:
            if session.client.status == "running":
                session.client.cancel(futures)

    def close(self) -> None:
        """Drop what the workers keep; none of them writes any more afterwards."""
        self._session.close()

    def _result(self, future: Any, phase: str, address: str | None = None) -> Any:
        """Return what a call for one worker, or for any, returned, or raise what it raised; waits as long as there is a worker."""
        look = partial(self._wait_for_worker, future, address)
        try:
            return fetch(self._session.client, future, meanwhile=look, interval_seconds=POLL_SECONDS)
        except (OocGraphError, _NoWorkerError):
            raise
        except Exception as error:
            if future.status == "error" and type(error).__name__ != "KilledWorker":
                raise
            raise ClusterError(
                f"workers were lost in phase {phase!r} of the partitioning ({error}); see their logs, give them more memory, "
                "and start it again: nothing was left behind"
            ) from error

    def _wait_for_worker(self, future: Any, address: str | None) -> None:
        """Wait for a worker if there is none.

        Raises
        ------
        ClusterError
            None comes in time, or the scheduler is gone.
        _NoWorkerError
            There are workers, and Dask has none of them run the task: all were lost at once, and it looks for one at the old address.
        """
        workers = self._session.workers()
        if not workers:
            wait_for_worker(self._session.client, settings().worker_timeout)
        elif address is not None and address not in workers and has_no_worker(self._session.client, future.key):
            raise _NoWorkerError


class _NoWorkerError(Exception):
    """A task waits for a worker that has gone."""


class HeldStage(Resident):
    """What a worker keeps for a partitioning, under its lease."""

    def __init__(self, stage: Stage, ledger: WorkerLedger) -> None:
        self.stage, self._ledger = stage, ledger

    def close(self) -> None:
        """Have phases end at their next block; when this returns, nothing is being written any more."""
        close(self.stage)
        self._ledger.close(self.stage.budget)


def run_on_worker(plugin: Any, lease: str, spec: CuspSpec, phase: str, arguments: tuple[Any, ...]) -> Any:
    """Run a phase on a worker, which makes its stage when it is first asked: a task."""

    def make() -> HeldStage:
        requested = spec.memory_budget if spec.memory_budget is not None else settings().memory_budget
        stage = Stage(
            spec,
            threads=spec.threads or max(1, int(plugin.worker.state.nthreads)),
            limit_bytes=plugin.ledger.limit_bytes(requested),
            untouched_bytes=plugin.ledger.untouched_bytes,
        )
        plugin.ledger.note(stage.budget)
        return HeldStage(stage, plugin.ledger)

    stage = plugin.keep(lease, make).stage
    plugin.at("compute", tuple(PHASES).index(phase), 0)
    return run_phase(stage, phase, arguments)
