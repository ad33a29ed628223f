"""A matrix times a vector, measured: beside SciPy in memory, beside a sequential read of the same files out of core, and how it is cut.

In: a graph store. Out: a `Report`. In memory both multiply the same arrays: the graph in store order with random float64 values, in
turn, so that other load on the machine falls on both; pattern-only is reported apart, because SciPy has no such product. Out of
core the pieces of the graph are streamed with the page cache emptied before, in turn with one reader that takes the same files in order.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from oocgraph.algorithms.spmv import spmv
from oocgraph.allocator import returned_memory
from oocgraph.bench.disk import chunk_files, drop_page_cache, sequential_bytes_per_second
from oocgraph.bench.harness import Report, in_turn, paired_ratios, timed
from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.kernels.semirings import semiring_of
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, limit_bytes_of
from oocgraph.products.product import PARTS_PER_THREAD, load_kernel, multiply, multiply_streamed
from oocgraph.resources import Resources
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import EdgeStream, part_of, stored_matrix
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.types import Array, Progress

PEERS = ("scipy",)

IN_MEMORY, OUT_OF_CORE = "products in memory", "products out of core"
"""Phases of the progress."""

TOLERANCE = 1e-6
"""Relative to the largest element: sums are reassociated."""


def bench_spmv(
    store: CSRStore, *, num_rounds: int, num_parts: int, progress: Progress, peer: str | None = None, threads: int | None = None,
    memory_budget: str | int | None = None,
) -> Report:  # fmt: skip
    """Measure products of one graph.

    Parameters
    ----------
    num_rounds
        Products of each kind; medians are reported.
    num_parts
        Parts whose balance is reported.
    peer
        ``scipy`` or None.
    threads, memory_budget
        As for `oocgraph.spmv`; the budget must hold the matrix.

    Raises
    ------
    OocGraphError
        No such peer, or the graph has no edge.
    BudgetError
        The matrix does not fit.

    Notes
    -----
    In memory: ``median_seconds`` are of the parts alone, ``pattern_median_seconds`` the same without values, ``public_median_seconds`` of
    `oocgraph.spmv`, which also checks and cuts; ``best_ratio_to_peer`` is of the fastest products of both: what is left where other
    programs disturb the rounds; ``peak_host_bytes`` includes the matrix, the vectors and the peer in the same process. The cut: see `_cut`;
    out of core: see `_stream`.
    """
    if peer not in (None, *PEERS):
        raise OocGraphError(f"--peer {peer}: unknown; choose {', '.join(PEERS)}")
    if not store.attributes.num_stored_edges:
        raise OocGraphError(f"{store.url}: the graph has no edge; measure a graph with edges")
    threads = threads or settings().threads
    limit_bytes = limit_bytes_of(memory_budget)
    import scipy.sparse  # noqa: F401 - loaded before memory is counted

    load_libraries(store)
    _load_kernels(store)
    budget = Budget(limit_bytes)
    matrix_bytes = store.attributes.num_stored_edges * (8 + 2 * 8)  # values; indices twice while they are converted
    budget.alternatively("the matrix, vectors and threads of products in memory", matrix_bytes + 64 * store.num_rows + SLACK_BYTES)
    with returned_memory():
        streamed = _stream(store, num_rounds, threads, budget, progress)
    with PeakSampler() as sampler:
        matrix, x = matrix_of(store), np.random.default_rng(1).random(store.num_rows)
        cut = _cut(matrix, num_parts)
        products = _products(matrix, x, threads, peer)
        seconds = in_turn({name: timed(product) for name, product in products.items()}, range(num_rounds + 1), progress, phase=IN_MEMORY)
        invalid = _differences(products, peer)
    return Report(
        title=repr(store),
        metrics={
            "graph": store.url,
            "num_vertices": store.num_rows,
            "num_stored_edges": store.attributes.num_stored_edges,
            "threads": threads,
            "num_rounds": num_rounds,
            "peer": peer,
            **_in_memory({name: one[1:] for name, one in seconds.items()}),  # the first of each warms caches
            "peak_host_bytes": sampler.peak_bytes,
            **cut,
            **streamed,
        },
        invalid=invalid,
    )


def _load_kernels(store: CSRStore) -> None:
    """Bring the kernels of all products into memory, before it is counted."""
    from scipy.sparse import csr_array

    kind, ring, empty = _index_dtype(store), semiring_of("plus_times"), np.empty(0)
    valued = balanced_partition(csr_array((np.ones(1), np.zeros(1, kind), np.array([0, 1], kind)), shape=(1, 1)), 1)[0]
    for part in (valued, replace(valued, values=None), part_of(stored_matrix(store, transpose=False, column=None), None)):
        load_kernel(part, empty, empty, ring)


def _index_dtype(store: CSRStore) -> type[np.signedinteger[Any]]:
    return np.int32 if max(store.num_rows, store.attributes.num_stored_edges) < 2**31 else np.int64


def matrix_of(store: CSRStore) -> Any:
    """Return the graph in store order with random values, as a ``scipy.sparse.csr_array``."""
    from scipy.sparse import csr_array

    n, kind = store.num_rows, _index_dtype(store)
    values = np.random.default_rng(0).random(store.attributes.num_stored_edges)
    return csr_array((values, store.read("out/indices").astype(kind), store.read("out/indptr").astype(kind)), shape=(n, n))


def _products(matrix: Any, x: Array, threads: int, peer: str | None) -> dict[str, Callable[[], Array]]:
    """Return each kind of product in memory."""
    ring = semiring_of("plus_times")
    parts = balanced_partition(matrix, PARTS_PER_THREAD * threads)
    pattern = [replace(part, values=None) for part in parts]

    def ours(some: Any) -> Array:
        y = np.zeros(matrix.shape[0])
        multiply(some, x, y, ring, threads=threads)
        return y

    products: dict[str, Callable[[], Array]] = {
        "ours": lambda: ours(parts),
        "pattern": lambda: ours(pattern),
        "public": lambda: spmv(matrix, x, resources=Resources(threads=threads)),
    }
    return products if peer is None else {**products, "peer": lambda: matrix @ x}


def _differences(products: dict[str, Callable[[], Array]], peer: str | None) -> tuple[str, ...]:
    """Say where our products differ from the peer's."""
    if peer is None:
        return ()
    expected = products["peer"]()
    wrong = []
    for name in ("ours", "public"):
        worst = float(np.abs(products[name]() - expected).max(initial=0))
        if not worst <= TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0))):
            wrong.append(f"the product ({name}) differs from {peer}'s by {worst:g}")
    return tuple(wrong)


def _in_memory(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Return medians of each kind of product, and ratios to the peer's, if there is one."""
    ours, peer = seconds["ours"], seconds.get("peer")
    prefixes = {"ours": "", "pattern": "pattern_", "public": "public_"}
    metrics: dict[str, Any] = {f"{prefix}median_seconds": statistics.median(seconds[name]) for name, prefix in prefixes.items()}
    if peer is None:
        names = ("peer_median_seconds", "ratio_to_peer", "pattern_ratio_to_peer", "best_ratio_to_peer")
        return metrics | dict.fromkeys(names)
    return {
        **metrics,
        "peer_median_seconds": statistics.median(peer),
        **paired_ratios("ratio_to_peer", ours, peer),
        **paired_ratios("pattern_ratio_to_peer", seconds["pattern"], peer),
        "best_ratio_to_peer": min(ours) / min(peer),
    }


class _CountedPointers:
    """Pointers that count how many of them are read."""

    def __init__(self, pointers: Array) -> None:
        self._pointers, self.num_reads = pointers, 0

    def __len__(self) -> int:
        return int(self._pointers.size)

    def __getitem__(self, key: Any) -> Any:
        self.num_reads += not isinstance(key, slice)
        return self._pointers[key]


def _cut(matrix: Any, num_parts: int) -> dict[str, Any]:
    """Cut a matrix: once timed, once with the pointers counted that are read.

    ``balance`` is the nonzeros of the largest part by their mean; ``conversion_bytes`` are the pointers read, and
    ``local_pointer_bytes`` what making the local pointer arrays of all parts would read and write, which only foreign libraries need; the
    fractions are of the bytes of one product (each array once).
    """
    began = time.perf_counter()
    parts = balanced_partition(matrix, num_parts)
    seconds = time.perf_counter() - began
    pointers = _CountedPointers(matrix.indptr)
    balanced_partition(SimpleNamespace(format="csr", shape=matrix.shape, indptr=pointers, indices=matrix.indices, data=None), num_parts)
    product_bytes = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes + 8 * sum(matrix.shape)
    conversion_bytes = pointers.num_reads * matrix.indptr.itemsize
    local_bytes = 2 * sum(part.num_lines + 1 for part in parts) * matrix.indptr.itemsize
    sizes = [part.num_entries for part in parts]
    return {
        "num_parts": num_parts,
        "balance": max(sizes) / (sum(sizes) / num_parts),
        "conversion_seconds": seconds,
        "conversion_bytes": conversion_bytes,
        "conversion_byte_fraction": conversion_bytes / product_bytes,
        "local_pointer_bytes": local_bytes,
        "local_pointer_byte_fraction": local_bytes / product_bytes,
    }


@dataclass(frozen=True, slots=True)
class _Streamed:
    seconds: float
    requested_bytes: int
    device_bytes: int


def _stream(store: CSRStore, num_rounds: int, threads: int, budget: Budget, progress: Progress) -> dict[str, Any]:
    """Stream products of the graph's pattern, in turn with a sequential read of the same files, each with a cold page cache.

    Rates are medians; that of the sequential reader is None where the graph is not plain files on a local disk. ``streamed_bytes_read``
    is of one product: the larger of what was asked for and what block devices delivered.
    """
    ring, arrays = semiring_of("plus_times"), [store.array("out/indptr"), store.array("out/indices")]
    with budget.all_or_none():
        budget.reserve("vectors", 2 * 8 * store.num_rows)
        budget.reserve("threads and compiled code", SLACK_BYTES)
        edges = EdgeStream(store, budget, transpose=False, column=None, threads=threads)
    x = np.random.default_rng(1).random(store.num_rows)

    def stream(_number: int) -> _Streamed:
        drop_page_cache(chunk_files(arrays))
        y, requested, device, began = np.zeros_like(x), edges.bytes_requested, device_bytes_read(), time.perf_counter()
        multiply_streamed(edges, x, y, ring)
        seconds = time.perf_counter() - began
        return _Streamed(seconds, edges.bytes_requested - requested, device_bytes_read() - device)

    subjects: dict[str, Callable[[int], Any]] = {"sequential": lambda _number: sequential_bytes_per_second(arrays), "streamed": stream}
    with PeakSampler() as sampler:
        found = in_turn(subjects, range(num_rounds), progress, phase=OUT_OF_CORE)
    runs: Sequence[_Streamed] = found["streamed"]
    rates, sequential = [one.requested_bytes / one.seconds for one in runs], found["sequential"]
    known = None not in sequential
    return {
        "streamed_bytes_per_second": statistics.median(rates),
        "sequential_bytes_per_second": statistics.median(sequential) if known else None,
        **(paired_ratios("streamed_to_sequential", rates, sequential) if known else {"streamed_to_sequential": None}),
        "streamed_median_seconds": statistics.median(one.seconds for one in runs),
        "streamed_bytes_read": max(runs[-1].requested_bytes, runs[-1].device_bytes),
        "streamed_peak_host_bytes": sampler.peak_bytes,
    }
