"""A product on a Dask cluster: one part of the matrix for each worker, the vector sent once, results put together at the cuts.

In: a client, the parts with the worker of each (`place_parts`), a vector. Out: ``y``. Parts by row: a worker returns its rows, which are
copied to their place; the first one's element is added where an earlier part began the row. Parts by column: each worker has a vector as
long as the result, and these are added in pairs, by tasks, in log2(workers) steps. A part can be multiplied by any worker, so a product
whose worker is lost is simply made again.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, sections 4.2 (placement) and 4.3 (merging).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

from oocgraph.config import settings
from oocgraph.errors import ClusterError, OocGraphError
from oocgraph.kernels.semirings import Semiring
from oocgraph.runtime import worker as tasks
from oocgraph.runtime.product import is_by_row, put_rows
from oocgraph.runtime.scheduler import fetch, scheduler_loss_told, scheduler_lost, workers_of
from oocgraph.runtime.silence import SilenceWatch
from oocgraph.runtime.survey import check_client, survey_workers, wait_for_worker
from oocgraph.runtime.worker_product import ProductSpec
from oocgraph.sparse.placement import NumaNode, topology_of_workers
from oocgraph.types import Array

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often it is looked whether scheduler and workers are still there."""

ATTEMPTS = 3
"""How often a product is made when workers are lost meanwhile."""


class WorkerLostError(ClusterError):
    """A worker that had a part has gone."""


def find_workers(client: Any, url: str | None, fingerprint: str | None) -> tuple[list[str], tuple[NumaNode, ...]]:
    """Return the addresses of the workers, and which of them are on one machine and NUMA node, as far as they know.

    Raises
    ------
    ClusterError
        No worker comes in time, one has another version, or does not see the graph.
    """
    wait_for_worker(client, settings().worker_timeout)
    told = survey_workers(client, url, fingerprint)
    addresses = sorted(told)
    return addresses, topology_of_workers([(told[address]["host"], told[address]["numa_node"]) for address in addresses])


def with_other_workers(client: Any, multiply: Callable[[], Array]) -> Array:
    """Compute a product; if a worker is lost or stays silent, compute it again with the remaining ones.

    Raises
    ------
    ClusterError
        The client is closed, or a worker was lost each time.
    """
    check_client(client)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with scheduler_loss_told(client), SilenceWatch(client, settings().silent_worker_timeout):
                return multiply()
        except WorkerLostError as lost:
            if attempt == ATTEMPTS:
                raise ClusterError(f"{lost}, as others in {ATTEMPTS - 1} attempts before; see the workers' logs") from lost
            logger.warning("%s; the product is made again", lost)
    raise AssertionError("unreachable")


class ClusterProduct:
    """The parts of a matrix on the workers of a cluster.

    Parameters
    ----------
    client
        A `distributed.Client`.
    parts
        Of the matrix; those of a stored graph unread, those in memory are sent.
    specs, addresses
        What each part's worker is told, and which it is.

    Raises
    ------
    BudgetError
        A worker has no room for its share; it is named.
    """

    def __init__(self, client: Any, parts: Sequence[Any], specs: Sequence[ProductSpec], addresses: Sequence[str]) -> None:
        self._client, self._addresses = client, list(addresses)
        self._work = [(part, spec, address) for part, spec, address in zip(parts, specs, addresses, strict=True) if part.num_entries]
        self._gather([self._submit(tasks.prepare_product, address, spec) for _, spec, address in self._work])

    def multiply(self, x: Array, y: Array, semiring: Semiring) -> None:
        """Add the product to `y`.

        Parameters
        ----------
        x : (num_columns,) float32 or float64; uint8 in ``or_and``
            Sent once to each worker.
        y : (num_rows,) like `x`

        Raises
        ------
        ClusterError
            A worker or the scheduler was lost.
        OocGraphError
            Whatever a worker raises: its memory does not do, the store is damaged, a value is NaN.
        """
        if not self._work:
            return
        sent = self._send(x, self._addresses)
        shares = []
        for part, spec, address in self._work:
            own = () if spec.url is not None else (self._send(part, [address]),)
            shares.append(self._submit(tasks.multiply_share, address, spec, sent, *own))
        if not is_by_row(self._work[0][0]):
            (total,) = self._gather([self._sum(shares)])
            semiring.add(y, total)
            return
        self._gather(shares, lambda i, rows: put_rows(self._work[i][0], rows, y, semiring))

    def _send(self, value: Any, addresses: list[str]) -> Any:
        """Send something to workers; one that has gone since it was found is a lost one."""
        try:
            return self._client.scatter(value, workers=addresses, broadcast=True, hash=False)
        except Exception as error:  # of Dask: a KeyError where the scheduler knows a worker no more
            self._check_workers()
            raise ClusterError(f"a vector or a matrix could not be sent to the workers: {error!r}; see their logs") from error

    def _sum(self, partials: list[tuple[Any, str]]) -> tuple[Any, str]:
        """Add column partials as a tree, each pair where the first of them is."""
        spec = self._work[0][1]
        while len(partials) > 1:
            pairs = [partials[i : i + 2] for i in range(0, len(partials), 2)]
            partials = [
                self._submit(tasks.add_partials, pair[0][1], spec, pair[0][0], pair[1][0]) if len(pair) == 2 else pair[0] for pair in pairs
            ]
        return partials[0]

    def _submit(self, task: Callable[..., Any], address: str, *arguments: Any) -> tuple[Any, str]:
        future = self._client.submit(task, *arguments, workers=[address], allow_other_workers=False, pure=False, retries=0)
        return future, address

    def _gather(self, tasks_: Sequence[tuple[Any, str]], use: Callable[[int, Any], None] | None = None) -> list[Any]:
        """Wait for tasks in order, fetch what each returns, and use or return it; the first failure in that order is raised."""
        found = []
        try:
            for i, (future, address) in enumerate(tasks_):
                result = self._result(future, address)
                if use is None:
                    found.append(result)
                else:
                    use(i, result)
            return found
        finally:
            for future, _ in tasks_:
                future.release()

    def _check_workers(self) -> None:
        if self._client.status != "running":
            raise scheduler_lost(self._client)
        alive = workers_of(self._client)
        if lost := [address for address in self._addresses if address not in alive]:
            raise WorkerLostError(f"worker {lost[0]} was lost during a product")

    def _result(self, future: Any, address: str) -> Any:
        """Wait for a task and return what it returned, or raise what it raised."""
        try:
            return fetch(self._client, future, meanwhile=self._check_workers, interval_seconds=POLL_SECONDS)
        except OocGraphError:
            raise
        except Exception as error:
            self._check_workers()
            if isinstance(error, CancelledError):  # what the worker was sent went with it
                raise WorkerLostError(f"worker {address} was lost during a product") from error
            if future.status == "error":
                raise ClusterError(f"a product failed on worker {address}: {error!r}") from error
            raise
