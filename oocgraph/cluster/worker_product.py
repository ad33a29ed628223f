"""A worker's share of a product: its part of a matrix, which it cuts again over its threads, times a vector.

In: a `ProductSpec`, the whole vector, and of a matrix in memory the part itself; a graph's part is streamed from the store. Out: the rows
of the part (by column: a vector as long as the whole result). The first row may have been begun by an earlier part: then its element is
the carry that the client adds; all others go straight to their place.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, section 4.3. A worker is what a GPU is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.cluster import worker_matrix
from oocgraph.cluster.specs import WorkSpec
from oocgraph.cluster.worker_device import asked_for
from oocgraph.engine.fallback import processor_instead
from oocgraph.errors import BudgetError
from oocgraph.kernels.semirings import SEMIRINGS, Semiring
from oocgraph.memory import Budget
from oocgraph.products.product import PARTS_PER_THREAD, is_by_row, load_kernel, multiply, multiply_streamed, num_private_vectors
from oocgraph.products.product_checks import has_nan, refuse_nan
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import EdgeStream, part_of, pieces_bytes, stored_matrix
from oocgraph.sparse.partial import Partial
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSpec(WorkSpec):
    """A worker's share of a product.

    Attributes
    ----------
    semiring, dtype
        Name of the semiring; in which kernels compute.
    num_columns, num_lines
        Length of the vector; of what the worker returns.
    unread : Partial
        The part without its nonzeros and pointers: what the kernel is compiled for.
    url : str or None
        Of the graph; None: a matrix in memory, whose part is sent.
    entries
        First nonzero of the part and the one behind its last.
    transpose, column
        Of the graph, as in `EdgeStream`.
    part_bytes
        What is sent of a matrix.
    kept_for
        Lease under which the worker keeps edges for the next product; None: it keeps none.
    """

    semiring: str
    dtype: str
    num_columns: int
    num_lines: int
    entries: tuple[int, int]
    url: str | None = None
    transpose: bool = False
    column: str | None = None
    unread: Partial | None = None
    part_bytes: int = 0
    kept_for: str | None = None

    @property
    def ring(self) -> Semiring:
        """The semiring."""
        return SEMIRINGS[self.semiring]


def prepare(plugin: Any, spec: ProductSpec) -> tuple[str, str]:
    """Compile what is needed, and reserve in trial all that the share is going to hold; of a share on a device when it is multiplied.

    Returns
    -------
    Name of the device that it is going to be multiplied on, ``cpu`` for the processor, and why.

    Raises
    ------
    BudgetError
        It does not fit; the message names the worker.
    DeviceError, MissingDependencyError
        A GPU was asked for, and cannot be used; the message names the worker.
    """
    device, reason = plugin.worker_state.device.choose(spec)
    if device is not None:
        return device.name, reason
    _load(spec)
    with plugin.ledger.naming(), plugin.ledger.opening(spec.requested_memory) as budget, budget.all_or_none():
        budget.reserve("the vector", spec.num_columns * np.dtype(spec.dtype).itemsize)
        budget.reserve("the part of the matrix", spec.part_bytes)
        _reserve_result(plugin, spec, budget)
        if spec.url is not None:
            EdgeStream(_graph(spec), budget, **_options(plugin, spec))
    plugin.ledger.close(budget)
    return "cpu", reason


def multiply_share(plugin: Any, spec: ProductSpec, x: Array, part: Any) -> Array:
    """Return the rows of the worker's part, or by column a whole vector: (num_lines,) `dtype`; see the module.

    Parameters
    ----------
    x : (num_columns,) `dtype`
        The whole vector; of a graph in store order.
    part
        Of a matrix in memory.

    Raises
    ------
    BudgetError
        The share does not fit beside what the worker holds by now; the message names the worker.
    OocGraphError
        A value is NaN.
    """
    ring = spec.ring
    plugin.at("compute", 0, 0)
    device, _ = plugin.worker_state.device.choose(spec)
    if device is not None:
        try:
            return _on_device(plugin, spec, device, x, part)
        except BudgetError as error:
            processor_instead("product", device, error, **asked_for(spec))
    _load(spec, x, part)
    with plugin.ledger.naming(), plugin.ledger.opening(spec.requested_memory) as budget:
        if spec.kept_for is not None:
            plugin.check_lease(spec.kept_for)
        _reserve_result(plugin, spec, budget)
        if spec.kept_for is not None:
            vectors = (spec.num_columns + spec.num_lines) * np.dtype(spec.dtype).itemsize
            budget.reserve("the next product", vectors + pieces_bytes(_graph(spec), **_options(plugin, spec)))
        edges = None if spec.url is None else plugin.streams.take(spec.kept_for, _graph(spec), budget, **_options(plugin, spec))
    try:
        y = ring.zeros(spec.num_lines, np.dtype(spec.dtype))
        if edges is not None:
            multiply_streamed(edges, x, y, ring)
        else:
            threads = spec.threads_on(plugin.worker)
            parts: list[Any] = list(balanced_partition(part, PARTS_PER_THREAD * threads))
            multiply(parts, x, y, ring, threads=threads, first_row=part.first_line if is_by_row(part) else 0)
    finally:
        plugin.ledger.close(budget)
        if edges is not None:
            plugin.streams.put_back(edges)
    if not ring.is_boolean and has_nan(y) and ring.uses_values:
        refuse_nan(*((edges.values(), edges.values_name) if edges else ([(part.start, part.values)], "the matrix")))
    return y


def _on_device(plugin: Any, spec: ProductSpec, device: Device, x: Array, part: Any) -> Array:
    """As `multiply_share`, on the worker's device."""
    ring, name = spec.ring, "the matrix"
    if spec.kept_for is not None:
        plugin.check_lease(spec.kept_for)
    if spec.url is not None:
        store = _graph(spec)
        part = part_of(stored_matrix(store, transpose=spec.transpose, column=spec.column), spec.entries)
        name = f"{spec.column} of {store.url}"
    key = (spec.url, spec.entries, spec.transpose, spec.column, spec.dtype, ring.is_boolean, ring.uses_values)
    lease = spec.kept_for if spec.url is not None else None
    with plugin.matrices.opened(
        lease, key, device, spec, part, np.dtype(spec.dtype), ring, name
    ) as matrix, plugin.worker_state.device.naming():  # fmt: skip
        y = worker_matrix.multiply(matrix, part, x, ring, np.dtype(spec.dtype))
        if not ring.is_boolean and has_nan(y) and ring.uses_values and part.values is not None:
            pieces = [piece for share in matrix.shares for piece in share.pieces]
            refuse_nan(((one.start, one.values.read() if hasattr(one.values, "read") else one.values) for one in pieces), name)
    return y


def add_partials(spec: ProductSpec, one: Array, other: Array) -> Array:
    """Add the partial results of two workers; neither is changed, Dask may send it again."""
    y = one.copy()
    spec.ring.add(y, other)
    return y


def _graph(spec: ProductSpec) -> CSRStore:
    assert spec.url is not None
    return open_graph(spec.url, check_pages=spec.check_pages)


def _options(plugin: Any, spec: ProductSpec) -> dict[str, Any]:
    """Return the arguments of the `EdgeStream` that reads the part of a stored graph."""
    return {"transpose": spec.transpose, "column": spec.column, "threads": spec.threads_on(plugin.worker), "entries": spec.entries}


def _load(spec: ProductSpec, x: Array | None = None, part: Any = None) -> None:
    """Bring the kernel into memory, before memory is counted."""
    empty = np.empty(0, spec.dtype)
    part = spec.unread if part is None else part
    if spec.url is not None:
        part = part_of(stored_matrix(_graph(spec), transpose=spec.transpose, column=spec.column), spec.entries)
    assert part is not None
    load_kernel(part, empty if x is None else x, empty, spec.ring)


def _reserve_result(plugin: Any, spec: ProductSpec, budget: Budget) -> None:
    """Charge what is returned; by column also the vectors of threads, and the two that are added to make a third."""
    vectors = 1
    if spec.unread is not None and not is_by_row(spec.unread):
        threads = spec.threads_on(plugin.worker)
        vectors = max(3, 1 + num_private_vectors([spec.unread] * PARTS_PER_THREAD * threads, threads))
    budget.reserve("the result", vectors * spec.num_lines * np.dtype(spec.dtype).itemsize)


def unread_part(part: Any) -> Any:
    """Return a part in memory without its arrays' content: (0,) of the same dtypes."""
    names = ("values", "indices", "rows", "columns", "pointers")
    arrays = {name: getattr(part, name)[:0].copy() for name in names if getattr(part, name, None) is not None}
    return replace(part, **arrays)
