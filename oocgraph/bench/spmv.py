"""A matrix times a vector, measured: beside SciPy in memory, beside a sequential read of the same files out of core, and how it is cut.

In: a graph store. Out: a `SpmvReport`. In memory both multiply the same arrays: the graph in store order with random float64 values, in
turn, so that whatever else the machine does falls on both; pattern-only is reported apart, because SciPy has no such product. Out of
core the pieces of the graph are streamed with the page cache emptied before, in turn with one reader that takes the same files in order.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from oocgraph.algorithms.spmv import spmv
from oocgraph.allocator import returned_memory
from oocgraph.bench.gpu_rates import empty_page_cache
from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.kernels.semirings import semiring_of
from oocgraph.memory import SLACK_BYTES, Budget, PeakSampler, device_bytes_read, effective_budget_bytes
from oocgraph.runtime.product import PARTS_PER_THREAD, load_kernel, multiply
from oocgraph.runtime.stored_product import StoredProduct, part_of, stored_matrix
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.store.arrays import PlainArray
from oocgraph.store.graph import CSRStore
from oocgraph.store.libraries import load_libraries
from oocgraph.types import Array, Progress

PEERS = ("scipy",)

READ_BYTES = 8 << 20
"""What the sequential reader takes at once."""

TOLERANCE = 1e-6
"""Relative to the largest element: sums are reassociated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """Products out of core.

    Attributes
    ----------
    streamed_bytes_per_second, sequential_bytes_per_second
        Medians; the sequential rate is None where the graph is not plain files on a local disk.
    streamed_to_sequential
        Median over the rounds of the one by the other.
    streamed_median_seconds
        Of one product.
    streamed_bytes_read
        Of one product: the larger of what was asked for and what block devices delivered.
    streamed_peak_host_bytes
        While products ran.
    """

    streamed_bytes_per_second: float
    sequential_bytes_per_second: float | None
    streamed_to_sequential: float | None
    streamed_median_seconds: float
    streamed_bytes_read: int
    streamed_peak_host_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a matrix is cut.

    Attributes
    ----------
    num_parts
        Into how many.
    balance
        Nonzeros of the largest part by their mean.
    conversion_seconds
        What cutting took.
    conversion_bytes, conversion_byte_fraction
        Pointers that were looked at; by the bytes of one product (each array once).
    local_pointer_bytes, local_pointer_byte_fraction
        What making the local pointer arrays of all parts would read and write, which only foreign libraries need.
    """

    num_parts: int
    balance: float
    conversion_seconds: float
    conversion_bytes: int
    conversion_byte_fraction: float
    local_pointer_bytes: int
    local_pointer_byte_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemory:
    """Products in memory, of float64 values and of the pattern alone.

    Attributes
    ----------
    median_seconds, pattern_median_seconds, public_median_seconds
        Of the parts alone; the same without values; of `oocgraph.spmv`, which also checks and cuts.
    peer_median_seconds, ratio_to_peer, pattern_ratio_to_peer
        The peer's product with values; medians over the rounds of ours by it.
    best_ratio_to_peer
        Of the fastest products of both: what is left where other programs disturb the rounds.
    peak_host_bytes
        With the matrix, the vectors and the peer in the same process.
    """

    median_seconds: float
    pattern_median_seconds: float
    public_median_seconds: float
    peer_median_seconds: float | None
    ratio_to_peer: float | None
    pattern_ratio_to_peer: float | None
    best_ratio_to_peer: float | None
    peak_host_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpmvReport:
    """All of it; `invalid` says what differs from the peer."""

    url: str
    num_vertices: int
    num_stored_edges: int
    threads: int
    num_rounds: int
    peer: str | None
    in_memory: InMemory
    cut: Cut
    streamed: Streamed
    invalid: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """Return all figures by name: what ``--json`` prints."""
        fields = {name: getattr(self, name) for name in ("num_vertices", "num_stored_edges", "threads", "num_rounds", "peer")}
        return {"graph": self.url, **fields, **asdict(self.in_memory), **asdict(self.cut), **asdict(self.streamed)}


def bench_spmv(
    store: CSRStore, *, num_rounds: int, num_parts: int, progress: Progress, peer: str | None = None, threads: int | None = None,
    memory_budget: str | int | None = None,
) -> SpmvReport:  # fmt: skip
    """Measure products of one graph.

    Parameters
    ----------
    num_rounds
        Products of each kind; medians are reported.
    num_parts
        Parts whose balance is told.
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
    """
    if peer not in (None, *PEERS):
        raise OocGraphError(f"--peer {peer}: unknown; choose {', '.join(PEERS)}")
    if not store.attributes.num_stored_edges:
        raise OocGraphError(f"{store.url}: the graph has no edge; measure a graph with edges")
    threads = threads or settings().threads
    limit_bytes = effective_budget_bytes(memory_budget if memory_budget is not None else settings().memory_budget)
    import scipy.sparse  # noqa: F401 - loaded before memory is counted

    load_libraries(store)
    _load_kernels(store)
    budget = Budget(limit_bytes)
    matrix_bytes = store.attributes.num_stored_edges * (8 + 2 * 8)  # values; indices twice while they are converted
    budget.alternatively("the matrix, vectors and threads of products in memory", matrix_bytes + 64 * store.num_vertices + SLACK_BYTES)
    with returned_memory():
        streamed = _stream(store, num_rounds, threads, budget, progress)
    with PeakSampler() as sampler:
        matrix, x = _matrix(store), np.random.default_rng(1).random(store.num_vertices)
        cut = _cut(matrix, num_parts)
        seconds, invalid = _multiply_all(matrix, x, num_rounds, threads, peer, progress)
    return SpmvReport(
        url=store.url, num_vertices=store.num_vertices, num_stored_edges=store.attributes.num_stored_edges, threads=threads,
        num_rounds=num_rounds, peer=peer, in_memory=_in_memory(seconds, peer, sampler.peak_bytes), cut=cut, streamed=streamed,
        invalid=invalid,
    )  # fmt: skip


def _load_kernels(store: CSRStore) -> None:
    """Bring the kernels of all products into memory, before it is counted."""
    from scipy.sparse import csr_array

    kind, ring, empty = _index_dtype(store), semiring_of("plus_times"), np.empty(0)
    valued = balanced_partition(csr_array((np.ones(1), np.zeros(1, kind), np.array([0, 1], kind)), shape=(1, 1)), 1)[0]
    for part in (valued, replace(valued, values=None), part_of(stored_matrix(store, transpose=False, column=None), None)):
        load_kernel(part, empty, empty, ring)


def _index_dtype(store: CSRStore) -> type[np.signedinteger[Any]]:
    return np.int32 if max(store.num_vertices, store.attributes.num_stored_edges) < 2**31 else np.int64


def _matrix(store: CSRStore) -> Any:
    """Return the graph in store order with random values, as a ``scipy.sparse.csr_array``."""
    from scipy.sparse import csr_array

    n, kind = store.num_vertices, _index_dtype(store)
    values = np.random.default_rng(0).random(store.attributes.num_stored_edges)
    return csr_array((values, store.read("out/indices").astype(kind), store.read("out/indptr").astype(kind)), shape=(n, n))


def _multiply_all(
    matrix: Any, x: Array, num_rounds: int, threads: int, peer: str | None, progress: Progress
) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    """Time each kind of product in turn; what is first of each warms caches and is not counted."""
    ring = semiring_of("plus_times")
    parts = balanced_partition(matrix, PARTS_PER_THREAD * threads)
    pattern = [replace(part, values=None) for part in parts]

    def ours(some: Any) -> Callable[[], Array]:
        def run() -> Array:
            y = np.zeros(matrix.shape[0])
            multiply(some, x, y, ring, threads=threads)
            return y

        return run

    kinds: dict[str, Callable[[], Array]] = {"ours": ours(parts), "pattern": ours(pattern)}
    kinds["public"] = lambda: spmv(matrix, x, threads=threads)
    if peer is not None:
        kinds["peer"] = lambda: matrix @ x
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for i in range(num_rounds + 1):
        for kind, product in kinds.items():
            began = time.perf_counter()
            product()
            if i:
                seconds[kind].append(time.perf_counter() - began)
        progress("products in memory", i, num_rounds)
    return seconds, _differences(kinds, peer)


def _differences(kinds: dict[str, Callable[[], Array]], peer: str | None) -> tuple[str, ...]:
    """Say where our products differ from the peer's."""
    if peer is None:
        return ()
    expected = kinds["peer"]()
    told = []
    for kind in ("ours", "public"):
        worst = float(np.abs(kinds[kind]() - expected).max(initial=0))
        if not worst <= TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0))):
            told.append(f"the product ({kind}) differs from {peer}'s by {worst:g}")
    return tuple(told)


def _in_memory(seconds: dict[str, list[float]], peer: str | None, peak_bytes: int) -> InMemory:
    theirs = seconds["peer"] if peer is not None else None
    return InMemory(
        median_seconds=statistics.median(seconds["ours"]),
        pattern_median_seconds=statistics.median(seconds["pattern"]),
        public_median_seconds=statistics.median(seconds["public"]),
        peer_median_seconds=None if theirs is None else statistics.median(theirs),
        ratio_to_peer=None if theirs is None else _median_ratio(seconds["ours"], theirs),
        pattern_ratio_to_peer=None if theirs is None else _median_ratio(seconds["pattern"], theirs),
        best_ratio_to_peer=None if theirs is None else min(seconds["ours"]) / min(theirs),
        peak_host_bytes=peak_bytes,
    )


def _median_ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


class _Counted:
    """Pointers that count how many of them are looked at."""

    def __init__(self, pointers: Array) -> None:
        self._pointers, self.num_reads = pointers, 0

    def __len__(self) -> int:
        return int(self._pointers.size)

    def __getitem__(self, key: Any) -> Any:
        self.num_reads += not isinstance(key, slice)
        return self._pointers[key]


def _cut(matrix: Any, num_parts: int) -> Cut:
    """Cut a matrix: once timed, once counted."""
    began = time.perf_counter()
    parts = balanced_partition(matrix, num_parts)
    seconds = time.perf_counter() - began
    pointers = _Counted(matrix.indptr)
    balanced_partition(SimpleNamespace(format="csr", shape=matrix.shape, indptr=pointers, indices=matrix.indices, data=None), num_parts)
    product_bytes = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes + 8 * sum(matrix.shape)
    conversion_bytes = pointers.num_reads * matrix.indptr.itemsize
    local_bytes = 2 * sum(part.num_lines + 1 for part in parts) * matrix.indptr.itemsize
    sizes = [part.num_entries for part in parts]
    return Cut(
        num_parts=num_parts, balance=max(sizes) / (sum(sizes) / num_parts), conversion_seconds=seconds, conversion_bytes=conversion_bytes,
        conversion_byte_fraction=conversion_bytes / product_bytes, local_pointer_bytes=local_bytes,
        local_pointer_byte_fraction=local_bytes / product_bytes,
    )  # fmt: skip


def _stream(store: CSRStore, num_rounds: int, threads: int, budget: Budget, progress: Progress) -> Streamed:
    """Stream products of the graph's pattern, in turn with a sequential read of the same files, each with a cold page cache."""
    ring, arrays = semiring_of("plus_times"), [store.array("out/indptr"), store.array("out/indices")]
    with budget.together():
        budget.reserve("vectors", 2 * 8 * store.num_vertices)
        budget.reserve("threads and compiled code", SLACK_BYTES)
        product = StoredProduct(store, budget, transpose=False, column=None, threads=threads)
    x = np.random.default_rng(1).random(store.num_vertices)
    plain = [array for array in arrays if isinstance(array, PlainArray)]
    seconds, rates, sequential, num_read = [], [], [], 0
    with PeakSampler() as sampler:
        for i in range(num_rounds):
            if len(plain) == len(arrays):
                empty_page_cache(arrays)
                sequential.append(_read_in_order(plain))
            empty_page_cache(arrays)
            y, requested, device, began = np.zeros_like(x), product.bytes_requested, device_bytes_read(), time.perf_counter()
            product.multiply(x, y, ring)
            seconds.append(time.perf_counter() - began)
            requested = product.bytes_requested - requested
            num_read = max(requested, device_bytes_read() - device)
            rates.append(requested / seconds[-1])
            progress("products out of core", i + 1, num_rounds)
    return Streamed(
        streamed_bytes_per_second=statistics.median(rates),
        sequential_bytes_per_second=statistics.median(sequential) if sequential else None,
        streamed_to_sequential=_median_ratio(rates, sequential) if sequential else None,
        streamed_median_seconds=statistics.median(seconds),
        streamed_bytes_read=num_read,
        streamed_peak_host_bytes=sampler.peak_bytes,
    )


def _read_in_order(arrays: list[PlainArray]) -> float:
    """Read all files of some arrays, one after the other; returns bytes per second."""
    buffer, num_bytes, began = bytearray(READ_BYTES), 0, time.perf_counter()
    for array in arrays:
        for chunk in range(array.num_chunks):
            fd = array.open_chunk(chunk)
            try:
                while count := os.readv(fd, [buffer]):
                    num_bytes += count
            finally:
                os.close(fd)
    return num_bytes / max(time.perf_counter() - began, 1e-9)
