"""Who runs the phases of a partitioning: this process, or the workers of a Dask cluster.

In: a phase and the arguments of each of its calls. Out: their results, in order. On a cluster the calls are tasks that prefer their worker;
the files they write are where every worker sees them, so that any other can do the work of one that is lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from oocgraph.config import settings
from oocgraph.errors import ClusterError, OocGraphError
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.runtime import partition_steps as steps
from oocgraph.runtime.scheduler import ask, fetch, workers_of
from oocgraph.runtime.survey import check_client, clients_of, wait_for_worker
from oocgraph.types import Progress

Call = tuple[Any, ...]

POLL_SECONDS = 2.0
"""How often a call that takes long is asked whether there is still somebody to make it."""


class Crew(Protocol):
    """Runs phases.

    Attributes
    ----------
    num_readers : int
        Ranges of vertices that are worked on at the same time.
    """

    num_readers: int

    def run(self, spec: CuspSpec, phase: str, calls: Sequence[Call], **options: Any) -> list[Any]:
        """Run one call of a phase for each tuple of arguments; results are in order."""
        ...

    def close(self) -> None:
        """Drop what is kept."""
        ...


class InProcess:
    """The threads of this process: calls one after the other, each on all threads.

    Parameters
    ----------
    progress
        Called with (phase, calls done, calls); within the one call of a phase that goes through blocks with (phase, blocks done, blocks).
    """

    num_readers = 1

    def __init__(self, progress: Progress) -> None:
        self._progress, self._token = progress, uuid.uuid4().hex

    def run(self, spec: CuspSpec, phase: str, calls: Sequence[Call], **options: Any) -> list[Any]:
        """Run one call of a phase for each tuple of arguments; results are in order."""
        if len(calls) == 1 and phase in steps.BY_BLOCKS:
            return [steps.run_phase(None, self._token, spec, phase, calls[0], options, self._progress)]
        found = []
        for i, call in enumerate(calls):
            self._progress(phase, i, len(calls))
            found.append(steps.run_phase(None, self._token, spec, phase, call, options))
        self._progress(phase, len(calls), len(calls))
        return found

    def close(self) -> None:
        """Drop what is kept."""
        steps.forget(None, self._token)


class OnCluster:
    """The workers of a client.

    Parameters
    ----------
    client
        A `distributed.Client`.
    progress
        Called with (phase, calls done, calls).
    """

    def __init__(self, client: Any, progress: Progress) -> None:
        self._client, self._progress, self._token = client, progress, f"{client.id}/{uuid.uuid4().hex}"
        self._addresses = sorted(workers_of(client))
        self.num_readers = len(self._addresses)
        ask(client, client.run, steps.forget_others, clients_of(client), on_error="return")

    def run(self, spec: CuspSpec, phase: str, calls: Sequence[Call], **options: Any) -> list[Any]:
        """Run one call of a phase for each tuple of arguments; results are in order.

        Raises
        ------
        ClusterError
            Workers were lost again and again, all are gone, or the scheduler or the client is.
        """
        from oocgraph.runtime.worker import with_worker

        check_client(self._client)
        futures = []
        try:
            for i, call in enumerate(calls):
                futures.append(
                    self._client.submit(
                        partial(with_worker, steps.run_phase), self._token, spec, phase, call, options,
                        key=f"oocgraph-partition-{phase.replace(' ', '-')}-{uuid.uuid4().hex}", pure=False,
                        workers=[self._addresses[i % len(self._addresses)]], allow_other_workers=True,
                    )
                )  # fmt: skip
            self._progress(phase, 0, len(calls))
            found = []
            for i, future in enumerate(futures):
                found.append(self._result(future, phase))
                self._progress(phase, i + 1, len(calls))
            return found
        finally:
            if self._client.status == "running":
                self._client.cancel(futures)

    def close(self) -> None:
        """Drop what the workers keep; none of them writes any more afterwards."""
        if self._client.status == "running":
            with suppress(ClusterError):  # a cluster that is gone keeps nothing
                ask(self._client, self._client.run, steps.forget_on_worker, self._token, on_error="return")

    def _result(self, future: Any, phase: str) -> Any:
        """Return what a call returned, or raise what it raised; waits as long as there is a worker."""
        try:
            return fetch(self._client, future, meanwhile=self._check_workers, interval_seconds=POLL_SECONDS)
        except OocGraphError:
            raise
        except Exception as error:
            if future.status == "error" and type(error).__name__ != "KilledWorker":
                raise
            raise ClusterError(
                f"workers were lost in phase {phase!r} of the partitioning ({error}); see their logs, give them more memory "
                "(--worker-memory), and start it again: nothing was left behind"
            ) from error

    def _check_workers(self) -> None:
        """Wait for a worker if there is none.

        Raises
        ------
        ClusterError
            None comes in time, or the scheduler is gone.
        """
        if not workers_of(self._client):
            wait_for_worker(self._client, settings().worker_timeout)
