"""A sparse matrix, or a graph's adjacency matrix, times a vector: in memory by threads, out of core as a stream.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022: the matrix is cut into parts of equal numbers of
nonzeros, rows or columns cut anywhere, whose results are put together at the cuts (rows) or added as a tree (columns). Differs from the
paper in: workers are threads; a graph's parts are read while others are multiplied; semirings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.algorithms.devices import on_devices
from oocgraph.algorithms.opened_matrix import OpenedMatrix
from oocgraph.algorithms.operands import GraphOperand, MatrixOperand, graph_operand, matrix_operand
from oocgraph.algorithms.runtimes import Runtime, check_runtime, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.arrays import Device, Work
from oocgraph.config import settings
from oocgraph.engine.in_process import MANY_SEARCHES
from oocgraph.engine.opened import OpenedGraph, Unopened
from oocgraph.errors import ArgumentError
from oocgraph.kernels.semirings import Semiring, SemiringName, semiring_of
from oocgraph.memory import SLACK_BYTES, Budget, with_threads_that_fit
from oocgraph.products.product import EDGES, PARTS_PER_THREAD, load_kernel, multiply, multiply_streamed, num_private_vectors
from oocgraph.products.product_checks import has_nan, refuse_nan
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.sparse.edge_stream import EdgeStream, part_of, stored_matrix
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.input_order import BLOCK_BYTES
from oocgraph.store.libraries import load_libraries
from oocgraph.types import Array, Progress, ProgressOption

if TYPE_CHECKING:
    from distributed import Client

ENTRY_SECONDS = 2e-9
"""Time of one thread for each nonzero of a product in memory: 2.2 ns of docs/measurements.md (Kronecker, scale 22)."""


@known_keywords
def spmv(
    graph: Any,
    x: Any,
    *,
    transpose: bool = False,
    semiring: SemiringName = "plus_times",
    weight: str | bool | None = None,
    runtime: Runtime | OpenedMatrix | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    client: Client | None = None,
    progress: ProgressOption = None,
) -> Array:
    """Multiply a matrix and a vector, or several: ``y_i = plus over j of times(A_ij, x_j)``.

    Parameters
    ----------
    graph
        A graph store or its path: A has an entry for each stored edge from i to j, an undirected edge both ways. Or a SciPy sparse
        matrix or array in CSR, CSC, or COO sorted by row or by column. Or one of CuPy, which is multiplied where it is.
    x : (num_columns,) or (num_columns, width) bools or real numbers
        Of a graph: one for each input id, ascending, isolated ones included, as `BFSResult.vertices`. Bools in ``or_and``. Each column
        of a matrix is multiplied: by a graph, or a CSR matrix that is not transposed, in one pass over its nonzeros (on GPUs for as many
        as there is room for), by another matrix, and on a cluster, one after the other.
    transpose
        Multiply by the transpose: along edges from i to j, y_j is made of x_i.
    semiring
        ``plus_times``; ``min_plus`` (minimum of sums); ``or_and`` (of bools; a value is true if it is not 0); ``plus_second`` (sum of
        elements of x, whatever the values). Entries of a graph without weights are 1.
    weight
        Edge column that holds a graph's values; by default its weight. False: every entry is 1.
    runtime
        The graph, or the matrix, opened before (`oocgraph.open_runtime`), for many products; it has its own resources. It, or each of
        its workers, keeps edges between products, as many as fit, in the memory of its GPUs if it was opened there.
    resources
        Threads, device, memory and cluster; see `oocgraph.Resources`. A product uses all GPUs that this process sees
        (CUDA_VISIBLE_DEVICES); what is larger than their memory is streamed. Each worker of a cluster uses its own, if it has one.
    memory_budget
        Bytes that the process, or each worker, may hold (text such as ``"640M"``); the same as in `resources`.
    client
        A `distributed.Client`: each of its workers multiplies a part with as many nonzeros; the same as in `resources`. A graph's part is
        streamed from the store, which all workers see; a matrix's is sent. By default the current client for a graph, if there is one; a
        matrix in memory is multiplied where it is.
    progress
        Called with ("edges", done, all), those of a matrix its nonzeros, while a graph is streamed or workers answer, and at the end;
        True draws a bar.

    Returns
    -------
    (num_rows,) or (num_rows, width) float64, float32 or bool
        Float32 where neither x nor values are wider; float64 otherwise, also of integers; bool of ``or_and``. A row without entries has the
        identity of plus: 0, infinity in ``min_plus``, False. Of a graph: by input id, as `x`. Of a CuPy matrix a CuPy vector.

    Raises
    ------
    ArgumentError
        `x` has the wrong length or dtype, `x` or a weight is NaN, or an argument is invalid.
    BudgetError
        The budget is too small; the message names the smallest that works, and the worker.
    DeviceError
        No GPU can be used, or it failed.
    ClusterError
        The cluster cannot be used, or a worker was lost.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Edges of a graph are streamed, each read once, even if they would fit: for many products of one graph pass `runtime`, which keeps
    them. Host bytes of a graph: x in store order, y in both, and a few
    pieces of 2 MiB of neighbours (of a compressed or remote store a few chunks); of a matrix: y, and by column a vector like it for each
    thread but one. All is charged before the run.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> spmv(csr_array([[1, 2, 0], [0, 0, 4]]), [1, 10, 100]).tolist()
    [21.0, 400.0]
    """
    ring = semiring_of(semiring)
    if isinstance(graph, str | os.PathLike | CSRStore):
        graph = open_graph(graph)
    is_graph = isinstance(graph, CSRStore)
    asked = resources_of(
        "spmv", resources, memory_budget=memory_budget, client=client, runtime=runtime, graph=graph, take_current=is_graph
    )  # fmt: skip
    if runtime is not None and not is_graph:
        if getattr(runtime, "matrix", None) is not graph:
            raise ArgumentError("the runtime was opened with something else, not this matrix; open one with it, or leave runtime out")
    elif runtime is not None:
        check_runtime(runtime, graph)
    if weight is not None and not is_graph:
        raise ArgumentError(f"weight is {weight!r}, which names an edge column of a graph; a matrix has values of its own")
    if is_on_device(graph):
        there: Array = _of_cupy(graph, x, ring, transpose, asked)
        return there
    operand: GraphOperand | MatrixOperand
    if is_graph:
        operand = graph_operand(graph, x, ring, transpose=transpose, weight=weight)
    else:
        operand = matrix_operand(graph, x, ring, transpose=transpose)
    with watched(progress) as shown:
        y = _product(operand, asked, runtime, shown)
        shown(EDGES, operand.num_entries, operand.num_entries)
    return y


def _product(operand: GraphOperand | MatrixOperand, asked: Resources, runtime: Runtime | OpenedMatrix | None, progress: Progress) -> Array:
    """Multiply on a cluster, on GPUs, or on the processor."""
    if runtime is not None and runtime.client is not None:
        asked = runtime.resources
    if asked.client:
        from oocgraph.algorithms.spmv_on_cluster import multiply_on_cluster

        lease = None if runtime is None else runtime.lease
        return _by_columns(operand, lambda one: multiply_on_cluster(one, asked, client=asked.client, lease=lease, progress=progress))
    limit_bytes = asked.limit_bytes
    opened: OpenedGraph | OpenedMatrix | Unopened
    if isinstance(runtime, OpenedMatrix):
        opened = runtime
    else:
        opened = opened_of(runtime, operand.store, asked) if isinstance(operand, GraphOperand) else Unopened(limit_bytes)
    if runtime is not None:
        asked = runtime.resources
    num_products = MANY_SEARCHES if isinstance(opened, OpenedMatrix) else 1
    work = partial(product_work, operand, threads=asked.num_threads, num_products=num_products)
    y = on_devices("product", opened, asked, lambda devices, requested: _on_devices(operand, opened, devices, requested), work=work)
    if y is not None:
        return y
    if isinstance(operand, GraphOperand):
        assert not isinstance(opened, OpenedMatrix)
        return with_threads_that_fit(partial(_of_graph, operand, opened, progress), asked.num_threads)

    def of_matrix(one: MatrixOperand) -> Array:
        return with_threads_that_fit(partial(_of_matrix, one, limit_bytes), asked.num_threads)

    return of_matrix(operand) if operand.matrix.format == "csr" and not operand.transpose else _by_columns(operand, of_matrix)


def _by_columns(operand: GraphOperand | MatrixOperand, multiply: Callable[[Any], Array]) -> Array:
    """Multiply each column of `x` by itself, where a product takes one vector."""
    if operand.x.ndim == 1:
        return multiply(operand)
    y = operand.as_given(operand.identities())
    for column in range(operand.width):
        y[:, column] = multiply(replace(operand, x=np.ascontiguousarray(operand.x[:, column])))
    return y


def product_work(operand: GraphOperand | MatrixOperand, *, threads: int, num_products: int = 1) -> Work:
    """Estimate some products, of which the matrix is brought to a device once."""
    from oocgraph.kernels.gpu_spmv import product_source
    from oocgraph.products.device_product import device_dtype

    source = product_source(operand.index_dtype, device_dtype(operand.dtype, operand.semiring))
    return Work(num_products * operand.num_entries * ENTRY_SECONDS / threads, operand.num_entries * operand.entry_bytes, (source,))


def _on_devices(
    operand: GraphOperand | MatrixOperand, opened: OpenedGraph | OpenedMatrix | Unopened, devices: Sequence[Device],
    requested: str | int | None,
) -> Array:  # fmt: skip
    """Multiply on GPUs."""
    from oocgraph.algorithms.spmv_on_device import multiply_on

    with returned_memory():
        return multiply_on(devices, operand, opened, device_memory_budget=requested)


def _of_cupy(matrix: Any, x: Any, ring: Semiring, transpose: bool, asked: Resources) -> Any:
    """Multiply a matrix that is in a GPU's memory, there."""
    from oocgraph.algorithms.spmv_on_device import multiply_where_it_is
    from oocgraph.arrays.cuda import device_of

    if asked.device == "cpu" or asked.client:
        raise ArgumentError("a CuPy matrix is multiplied on its device; for the processor or a cluster give matrix.get()")
    requested = asked.device_memory_budget if asked.device_memory_budget is not None else settings().device_memory_budget
    there = device_of(matrix.data)
    with there.current():
        return multiply_where_it_is(there, matrix, there.asarray(x), ring, transpose=transpose, device_memory_budget=requested)


def is_on_device(matrix: Any) -> bool:
    """Whether a matrix is CuPy's, by the module of its values: CuPy is not imported."""
    return type(getattr(matrix, "data", None)).__module__.partition(".")[0] == "cupy"


def _of_graph(operand: GraphOperand, opened: OpenedGraph | Unopened, progress: Progress, threads: int) -> Array:
    """Multiply the adjacency matrix of a store, out of core."""
    store, ring = operand.store, operand.semiring
    load_libraries(store)
    empty = np.empty((0,) * operand.x.ndim, operand.dtype)
    load_kernel(part_of(stored_matrix(store, transpose=operand.transpose, column=operand.column), None), empty, empty, ring)

    def opened_within(budget: Budget) -> EdgeStream:
        with budget.all_or_none():
            budget.reserve("vectors", operand.vector_bytes)
            budget.reserve("vertex ids", BLOCK_BYTES)
            budget.reserve("threads and compiled code", SLACK_BYTES)
            return opened.edges(store, budget, transpose=operand.transpose, column=operand.column, threads=threads)

    def multiplied(budget: Budget) -> Array:
        edges = opened_within(budget)
        order = opened.vertex_order(store, budget)
        sums = ring.zeros((store.num_rows, *operand.x.shape[1:]), operand.dtype)
        multiply_streamed(edges, operand.in_store_order(order), sums, ring, progress)
        if not ring.is_boolean and has_nan(sums):
            refuse_nan(edges.values(), operand.values_name)
        return operand.in_input_order(sums, order)

    with returned_memory():
        return opened.within(multiplied)


def _of_matrix(operand: MatrixOperand, limit_bytes: int, threads: int) -> Array:
    """Multiply a matrix that is in memory."""
    ring, parts = operand.semiring, operand.parts(PARTS_PER_THREAD * threads)
    private = num_private_vectors(parts, threads)
    empty = np.empty((0,) * operand.x.ndim, operand.dtype)
    load_kernel(parts[0], operand.x if operand.converted_bytes == 0 else empty, empty, ring)
    budget = Budget(limit_bytes)
    budget.reserve("vectors", (1 + private) * operand.result_bytes + operand.converted_bytes)
    y = ring.zeros((operand.num_rows, *operand.x.shape[1:]), operand.dtype)
    multiply(parts, operand.converted(), y, ring, threads=threads)
    if not ring.is_boolean and has_nan(y):
        refuse_nan([(0, operand.matrix.data)] if ring.uses_values else [], "the matrix")
    return y.view(np.bool_) if ring.is_boolean else y
