"""A product on a Dask cluster: one part of the matrix for each worker, the vector sent once, results put together at the cuts.

In: a client, the parts with the worker of each (`place_parts`), a vector. Out: ``y``. Parts by row: a worker returns its rows, which are
copied to their place; the first one's element is added where an earlier part began the row. Parts by column: each worker has a vector as
long as the result, and these are added in pairs, by tasks, in log2(workers) steps. A part can be multiplied by any worker, so a product
whose worker is lost is simply made again.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, sections 4.2 (placement) and 4.3 (merging).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oocgraph.cluster import worker_product
from oocgraph.cluster.preflight import check_device_is_used, device_sharers
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.worker_product import ProductSpec
from oocgraph.kernels.semirings import Semiring
from oocgraph.products.product import EDGES, is_by_row, put_rows
from oocgraph.progress import sum_of_threads
from oocgraph.sparse.placement import NumaNode, topology_of_workers
from oocgraph.types import Array, Progress, ignore_progress


def find_workers(session: ClusterSession, url: str | None, fingerprint: str | None) -> tuple[list[str], tuple[NumaNode, ...], int]:
    """Return the addresses of the workers, which of them are on one machine and NUMA node, as far as they know, and how many share a GPU.

    Raises
    ------
    ClusterError
        No worker comes in time, one has another version, or does not see the graph.
    """
    replies = session.find_workers(url, fingerprint)
    addresses = sorted(replies)
    nodes = topology_of_workers([(replies[address]["host"], replies[address]["numa_node"]) for address in addresses])
    return addresses, nodes, device_sharers(replies)


class ClusterProduct:
    """The parts of a matrix on the workers of a cluster.

    Parameters
    ----------
    session
        The cluster.
    parts
        Of the matrix; those of a stored graph unread, those in memory are sent.
    specs, addresses
        Share of each part's worker, and the worker's address.

    Raises
    ------
    BudgetError
        A worker has no room for its share; it is named.
    ArgumentError
        Device memory was given, and no worker has a GPU that can be used.
    """

    def __init__(self, session: ClusterSession, parts: Sequence[Any], specs: Sequence[ProductSpec], addresses: Sequence[str]) -> None:
        self._session, self._addresses = session, list(addresses)
        self._work = [(part, spec, address) for part, spec, address in zip(parts, specs, addresses, strict=True) if part.num_entries]
        where = session.gather({self._session.call(address, worker_product.prepare, spec): address for _, spec, address in self._work})
        requested = self._work[0][1].device_memory_budget if self._work else None
        check_device_is_used(requested, "multiply", [(address, *one) for (_, _, address), one in zip(self._work, where, strict=True)])

    def multiply(self, x: Array, y: Array, semiring: Semiring, progress: Progress = ignore_progress) -> None:
        """Add the product to `y`.

        Parameters
        ----------
        x : (num_columns,) float32 or float64; uint8 in ``or_and``
            Sent once to each worker.
        y : (num_rows,) like `x`
        progress
            Called with (`oocgraph.products.product.EDGES`, done, all), by row as each worker answers.

        Raises
        ------
        ClusterError
            A worker or the scheduler was lost.
        OocGraphError
            Raised on a worker: its memory is too small, the store is damaged, or a value is NaN.
        """
        if not self._work:
            return
        sent = self._session.scatter(x, self._addresses)
        shares = {}
        for part, spec, address in self._work:
            own = None if spec.url is not None else self._session.scatter(part, [address])
            shares[self._session.call(address, worker_product.multiply_share, spec, sent, own)] = address
        if not is_by_row(self._work[0][0]):
            sums = self._session.combine(shares, worker_product.add_partials, self._work[0][1])
            (total,) = self._session.gather(sums, needed=self._addresses)
            semiring.add(y, total)
            return
        add = sum_of_threads(progress, EDGES, sum(part.num_entries for part, _, _ in self._work))

        def put(i: int, rows: Array) -> None:
            put_rows(self._work[i][0], rows, y, semiring)
            add(self._work[i][0].num_entries)

        self._session.gather(shares, put)
