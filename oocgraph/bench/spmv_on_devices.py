"""Products on GPUs, measured: resident, held and streamed, cut by nonzeros and by rows, by rows and by columns, on 1 to all devices.

In: a graph store, devices. Out: a `Report`. The graph is multiplied in store order with random float64 values; all products take turns,
so that other load falls on all. cuSPARSE multiplies the same arrays on the first device, with the vectors there for both. Bytes over the
link are exact wherever kernels run; times of kernels that are executed on the CPU say nothing about a GPU, and are left out.

After Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, section 5: balance, cost of cutting and of
merging, placement, number of devices.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from oocgraph.algorithms.spmv_on_device import device_rooms
from oocgraph.arrays import Device
from oocgraph.arrays.cuda import CudaDevice
from oocgraph.arrays.cusparse import cusparse_product
from oocgraph.bench.gpu_rates import measure_device
from oocgraph.bench.harness import Report, in_turn, paired_ratios, timed
from oocgraph.bench.spmv import TOLERANCE, matrix_of
from oocgraph.engine.opened import Unopened
from oocgraph.errors import OocGraphError
from oocgraph.kernels.semirings import semiring_of
from oocgraph.memory import Budget, limit_bytes_of
from oocgraph.products.device_matrix import DeviceMatrix
from oocgraph.products.device_product import DeviceShare
from oocgraph.sparse.balanced import balanced_partition
from oocgraph.sparse.edge_stream import stored_matrix
from oocgraph.sparse.placement import machine_topology
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Progress

PRODUCTS = "products on devices"
"""Phase of the progress."""

RING = semiring_of("plus_times")


def bench_spmv_on_devices(
    store: CSRStore, devices: Sequence[Device], *, num_rounds: int, progress: Progress, memory_budget: str | int | None = None,
    device_memory_budget: str | int | None = None,
) -> Report:  # fmt: skip
    """Measure products of one graph on GPUs.

    Parameters
    ----------
    devices
        Products are made on the first, on the first two, and so on.
    num_rounds
        Products of each kind, after one that warms caches; medians are reported.
    memory_budget, device_memory_budget
        Of the host, which must hold the matrix twice; of each device.

    Raises
    ------
    OocGraphError
        The graph has no edge.
    BudgetError
        The matrix does not fit on the host, or the vectors on a device.

    Notes
    -----
    ``num_devices`` lists what was made on so many. All kinds of products are open at once, each with its share of a device's memory, in
    which ``resident_share`` of the matrix is resident. ``link_bytes`` are of one product of that; ``seconds`` its time with both vectors
    over the link, ``device_seconds`` without; ``streamed`` and ``held`` are products of the graph without values, of which nothing stays on
    a device: its pieces come from its files, or from page-locked memory; ``cut_seconds`` what finding the parts takes and
    ``load_seconds`` bringing them there; ``merge_seconds`` what putting parts together takes, by rows and by columns; ``balance`` the
    nonzeros of the largest part by their mean, of parts of equal nonzeros and of equal rows; ``unplaced_ratio`` the time with threads
    anywhere by that with threads near to their device, on machines of several NUMA nodes. ``is_executed_on_cpu``: there was no GPU,
    and times are left out.
    """
    if not store.attributes.num_stored_edges:
        raise OocGraphError(f"{store.url}: the graph has no edge; measure a graph with edges")
    budget = Budget(limit_bytes_of(memory_budget))
    budget.reserve("the matrix in memory, and its transpose", store.attributes.num_stored_edges * (2 * (8 + 8) + 8) + 64 * store.num_rows)
    matrix, x = matrix_of(store), np.random.default_rng(1).random(store.num_rows)
    expected, is_gpu = matrix @ x, isinstance(devices[0], CudaDevice)
    rooms = device_rooms(devices, Unopened(budget.limit_bytes), device_memory_budget)
    measured, invalid = [], list[str]()
    for count in range(1, len(devices) + 1):
        found = _on(devices[:count], rooms[:count], matrix, x, store, num_rounds, progress, budget)
        invalid += [
            f"the product ({name}, {count} devices) differs from SciPy's by {worst:g}"
            for name, y in found.pop("results").items()
            if not (worst := float(np.abs(y - expected).max(initial=0))) <= TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0)))
        ]
        measured.append(found)
    if not is_gpu:
        measured = [{name: value for name, value in one.items() if "second" not in name and "ratio" not in name} for one in measured]
    rates = measure_device(devices[0]) if is_gpu else None
    return Report(
        title=repr(store),
        metrics={
            "graph": store.url,
            "num_vertices": store.num_rows,
            "num_stored_edges": store.attributes.num_stored_edges,
            "devices": [device.name for device in devices],
            "is_executed_on_cpu": not is_gpu,
            "num_rounds": num_rounds,
            "peer": "cusparse" if is_gpu else None,
            "device_copy_bytes_per_second": None if rates is None else rates.device_copy,
            "link_bytes_per_second": None if rates is None else rates.link,
            "num_devices": measured,
        },
        invalid=tuple(invalid),
    )


def _on(
    devices: Sequence[Device], rooms: Sequence[int], matrix: Any, x: Array, store: CSRStore, num_rounds: int, progress: Progress,
    budget: Budget,
) -> dict[str, Any]:  # fmt: skip
    """Measure on some devices."""
    count = len(devices)
    with ExitStack() as stack:
        opened, cut_seconds, load_seconds = {}, {}, {}
        kinds = _kinds(matrix, store, count)
        share_of_room = [room // len(kinds) for room in rooms]
        for name, (what, options) in kinds.items():
            began = time.perf_counter()
            one = DeviceMatrix(devices, what, np.dtype(np.float64), RING, device_limits=share_of_room, **options)
            cut_seconds[name], began = time.perf_counter() - began, time.perf_counter()
            stack.enter_context(one)
            if name == "held":
                for share in one.shares:
                    share.hold(num_bytes=budget.available_bytes)
            one.open()
            load_seconds[name] = time.perf_counter() - began
            one.x[:, 0] = x
            opened[name] = one
        merges: dict[str, list[float]] = {name: [] for name in opened}
        subjects = {name: _product(one, merges[name]) for name, one in opened.items()}
        subjects["device"] = timed(lambda: _without_link(opened["resident"]))
        peer = cusparse_product(devices[0], matrix, x) if count == 1 else None
        if peer is not None:
            subjects["peer"] = timed(peer[0])
        seconds = {
            name: one[1:] for name, one in in_turn(subjects, range(num_rounds + 1), progress, phase=f"{PRODUCTS}: {count}").items()
        }  # the first of each warms caches
        resident, streamed = opened["resident"], opened["streamed"]
        assert all(share.num_held == len(share.pieces) for share in opened["held"].shares)
        before = streamed.bytes_requested, resident.bytes_requested
        results = {name: one.multiply(RING)[:, 0].copy() for name, one in opened.items() if name not in ("streamed", "held")}
        streamed.multiply(RING)
        if peer is not None:
            results["cusparse"] = peer[1]()
        vectors = 8 * sum(share.num_x + share.num_y for share in resident.shares)
        medians = {name: statistics.median(one) for name, one in seconds.items()}
        product_bytes = matrix.data.nbytes + matrix.indices.nbytes + 8 * (matrix.shape[0] + 1) + vectors
        return {
            "devices": count,
            "resident_share": resident.kept_bytes / resident.edge_bytes,
            "link_bytes": vectors + resident.bytes_requested - before[1],
            "streamed_link_bytes": streamed.bytes_requested - before[0],
            "balance": _balance(resident),
            "equal_rows_balance": _balance(opened["equal_rows"]),
            "seconds": medians["resident"],
            "device_seconds": medians["device"],
            "device_bytes_a_second": product_bytes / medians["device"],
            "equal_rows_seconds": medians["equal_rows"],
            **paired_ratios("equal_rows_ratio", seconds["equal_rows"], seconds["resident"]),
            "columns_seconds": medians["columns"],
            "streamed_seconds": medians["streamed"],
            "streamed_bytes_a_second": (streamed.bytes_requested - before[0]) / medians["streamed"],
            "held_seconds": medians["held"],
            "held_bytes_a_second": (streamed.bytes_requested - before[0]) / medians["held"],
            "cut_seconds": cut_seconds["resident"],
            "load_seconds": load_seconds["resident"],
            "merge_seconds": statistics.median(merges["resident"]),
            "columns_merge_seconds": statistics.median(merges["columns"]),
            **(paired_ratios("unplaced_ratio", seconds["unplaced"], seconds["resident"]) if "unplaced" in seconds else {}),
            **({"peer_seconds": medians["peer"]} | paired_ratios("ratio_to_peer", seconds["device"], seconds["peer"]) if peer else {}),
            "results": results,
        }


def _kinds(matrix: Any, store: CSRStore, count: int) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the kinds of products on so many devices: the matrix of each, and options of `DeviceMatrix`."""
    (whole,) = balanced_partition(matrix, 1)
    stored = stored_matrix(store, transpose=False, column=None), {"read": lambda piece, buffers: piece.load(buffers)}
    rows = [int(matrix.indptr[matrix.shape[0] * g // count]) for g in range(count + 1)]
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "resident": (whole, {"keep": True}),
        "equal_rows": (whole, {"keep": True, "bounds": rows}),
        "columns": (_columns_of(matrix), {"keep": True}),
        "streamed": stored,
        "held": stored,
    }
    if len(machine_topology()) > 1:
        kinds["unplaced"] = (whole, {"keep": True, "cores": {}})
    return kinds


def _columns_of(matrix: Any) -> Any:
    """Return the same matrix as one part by column: the transpose of its transpose."""
    (part,) = balanced_partition(matrix.T.tocsr(), 1)
    return part.transposed()


def _product(matrix: DeviceMatrix, merges: list[float]) -> Callable[[int], float]:
    def run() -> None:
        matrix.multiply(RING)
        merges.append(matrix.merge_seconds)

    return timed(run)


def _without_link(matrix: DeviceMatrix) -> None:
    """Multiply what is on the devices already."""

    def multiply(share: DeviceShare) -> None:
        share.product(RING)
        share.device.synchronize(share.kernels.stream)

    matrix.on_each(multiply)


def _balance(matrix: DeviceMatrix) -> float:
    """Nonzeros of the largest part by their mean."""
    sizes = [share.part.num_entries for share in matrix.shares]
    return float(max(sizes) / (sum(sizes) / len(sizes)))
