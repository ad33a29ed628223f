"""A matrix times a vector on the workers of a Dask cluster: each has a part with as many nonzeros, cut anywhere.

In: an operand, a client. Out: the result, in this process. Of a graph the workers get no edges: each streams its part from the store.
Parts that are neighbours go to workers of one machine and NUMA node, where workers know theirs (`oocgraph.sparse.placement`).

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022. Differs from the paper in: processes instead of
GPUs, each of which cuts its part again over its threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oocgraph.algorithms.operands import GraphOperand, MatrixOperand
from oocgraph.cluster.product import ClusterProduct, find_workers
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.worker_product import ProductSpec, unread_part
from oocgraph.config import settings
from oocgraph.engine.vertex_order import VertexOrder
from oocgraph.memory import Budget, effective_budget_bytes
from oocgraph.products.product import is_by_row
from oocgraph.resources import Resources
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import stored_matrix
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.input_order import BLOCK_BYTES
from oocgraph.types import Array, Progress, ignore_progress

WORKERS_ROWS = "a worker's rows"
"""The rows that one worker returned: they are here until they are in their place."""


def multiply_on_cluster(
    operand: GraphOperand | MatrixOperand, resources: Resources, *, client: Any, lease: str | None = None,
    progress: Progress = ignore_progress,
) -> Array:  # fmt: skip
    """Multiply on the workers of `client`; see `oocgraph.spmv`. `resources` are of each worker.

    With the `lease` of a runtime workers keep edges for its next product.
    """
    knobs = settings()
    options: dict[str, Any] = {
        "threads": resources.threads, "memory_budget": resources.memory_budget,
        "device": resources.device or knobs.device, "device_memory_budget": resources.device_memory_budget, "settings": knobs,
    }  # fmt: skip
    with ClusterSession(client) as session:
        if isinstance(operand, GraphOperand):
            options |= {"kept_for": lease, "beside_searches": lease is not None}
            return session.rerun(lambda: _of_graph(operand, operand.store.place, session, options, progress))
        return session.rerun(lambda: _of_matrix(operand, session, options, progress))


def _of_graph(operand: GraphOperand, url: str, session: ClusterSession, options: dict[str, Any], progress: Progress) -> Array:
    store, ring = operand.store, operand.semiring
    addresses, nodes, sharers = find_workers(session, url, graph_fingerprint(store))
    parts = balanced_partition(stored_matrix(store, transpose=operand.transpose, column=operand.column), len(addresses), numa=nodes)
    budget = Budget(effective_budget_bytes(settings().memory_budget))
    with budget.all_or_none():
        budget.reserve("vectors", operand.vector_bytes)
        budget.reserve("vertex ids", BLOCK_BYTES)
        budget.reserve(WORKERS_ROWS, max(part.num_lines for part in parts) * operand.dtype.itemsize)
    specs = [
        ProductSpec(
            semiring=ring.name, dtype=operand.dtype.name, num_columns=store.num_rows, num_lines=part.num_lines,
            entries=(part.start, part.stop), url=url, check_pages=store.check_pages, transpose=operand.transpose, column=operand.column,
            device_sharers=sharers, **options,
        )
        for part in parts
    ]  # fmt: skip
    product = ClusterProduct(session, parts, specs, _workers_of(parts, addresses))
    sums = ring.zeros(store.num_rows, operand.dtype)
    order = VertexOrder(operand.store)
    product.multiply(operand.in_store_order(order), sums, ring, progress)
    return operand.in_input_order(sums, order)


def _of_matrix(operand: MatrixOperand, session: ClusterSession, options: dict[str, Any], progress: Progress) -> Array:
    ring = operand.semiring
    addresses, nodes, sharers = find_workers(session, None, None)
    parts = operand.parts(len(addresses), nodes)
    num_lines = [part.num_lines if is_by_row(part) else operand.num_rows for part in parts]
    budget = Budget(effective_budget_bytes(settings().memory_budget))
    with budget.all_or_none():
        budget.reserve("vectors", operand.num_rows * operand.dtype.itemsize + operand.converted_bytes)
        budget.reserve(WORKERS_ROWS, max(num_lines) * operand.dtype.itemsize)
    specs = [
        ProductSpec(
            semiring=ring.name, dtype=operand.dtype.name, num_columns=operand.x.size, num_lines=length, entries=(part.start, part.stop),
            unread=unread_part(part), part_bytes=part.entry_bytes + _pointer_bytes(part),
            device_sharers=sharers, **options,
        )
        for part, length in zip(parts, num_lines, strict=True)
    ]  # fmt: skip
    product = ClusterProduct(session, parts, specs, _workers_of(parts, addresses))
    y = ring.zeros(operand.num_rows, operand.dtype)
    product.multiply(operand.converted(), y, ring, progress)
    return y.view(np.bool_) if ring.is_boolean else y


def _workers_of(parts: Sequence[Any], addresses: list[str]) -> list[str]:
    """Return the address of the worker on which each part was placed."""
    return [addresses[part.place.worker] for part in parts]


def _pointer_bytes(part: Any) -> int:
    pointers = getattr(part, "pointers", None)
    return 0 if pointers is None else int(pointers.nbytes)
