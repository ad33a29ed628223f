"""Matrices on a worker's device: kept for the next product, within what the other computations leave of the device's memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import oocgraph
from oocgraph.cluster import worker_device, worker_parts
from oocgraph.cluster.worker_parts import PartsSpec
from oocgraph.cluster.worker_product import ProductSpec
from oocgraph.config import settings
from oocgraph.errors import BudgetError
from oocgraph.kernels.semirings import semiring_of
from oocgraph.sparse.edge_stream import part_of, stored_matrix
from oocgraph.store.fingerprint import graph_fingerprint
from tests.cluster.holders import graph_spec, plugin
from tests.engine.device_parts import opened, use_shim
from tests.every_knob import partition

pytestmark = pytest.mark.shim

RING, DOUBLE = semiring_of("plus_second"), np.dtype(np.float64)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return a graph of 8 MiB of edges."""
    return oocgraph.generate_kronecker(16, tmp_path_factory.mktemp("graph") / "g.zarr", seed=1)


@pytest.fixture(autouse=True)
def shim():
    """Let workers have shims."""
    before = worker_device.open_device
    opened.clear()
    use_shim()
    yield
    worker_device.open_device = before
    opened.clear()


def product_spec(store, **options):
    """Return what a worker is asked for that multiplies the whole graph."""
    part = part_of(stored_matrix(store, transpose=False, column=None), None)
    return ProductSpec(
        semiring=RING.name, dtype=DOUBLE.name, num_columns=store.num_rows, num_lines=store.num_rows, threads=1, settings=settings(),
        entries=(part.start, part.stop), url=store.url, device="cuda", **options,
    )  # fmt: skip


def take(made, spec):
    """Take the matrix that a product with this spec takes."""
    device, _ = made.worker_state.device.choose(spec)
    part = part_of(stored_matrix(oocgraph.open_graph(spec.url), transpose=False, column=None), spec.entries)
    return made.matrices.take(spec.kept_for, "a matrix", device, spec, part, DOUBLE, RING, "values")


def test_products_at_the_same_time_leave_one_matrix(graph):
    """The second has one of its own, which no later product finds: it is closed at once."""
    made, spec = plugin(), product_spec(graph, kept_for="a lease")
    both = take(made, spec), take(made, spec)
    assert both[0] is not both[1]
    for one in both:
        made.matrices.put_back(one)
    ((lease, _),) = made.matrices.inventory()
    assert lease == "a lease"
    assert take(made, spec) is both[0]
    made.matrices.put_back(both[0])
    made.matrices.release("a lease")
    assert (made.matrices.inventory(), opened[0].allocated_bytes, made.ledger.reserved_bytes) == ([], 0, 0)


def parts_spec(partitions, store, **options):
    """Return what a worker is asked for that holds parts of a graph."""
    return PartsSpec(
        url=store.url, fingerprint=graph_fingerprint(store), num_partitions=2, settings=settings(), device="cuda",
        partitions=str(partitions.url), dtype=store.index_dtype.name, directed=False, **options,
    )  # fmt: skip


def test_searches_leave_the_device_memory_to_matrices_in_use(graph):
    """Of one budget they get what a product that is under way has not; when it has ended, its matrix is given back for them."""
    made, budget = plugin(), 20 << 20
    kept = take(made, product_spec(graph, kept_for="a lease", device_memory_budget=budget))
    assert kept.device_bytes > 8 << 20  # all edges
    (beside,) = made.worker_state.acquire("searches", graph_spec(graph, device_memory_budget=budget), [0])
    assert beside["device_bytes"] <= budget - kept.device_bytes
    assert opened[0].peak_bytes <= budget
    made.worker_state.release("searches")
    made.matrices.put_back(kept)
    (alone,) = made.worker_state.acquire("later searches", graph_spec(graph, device_memory_budget=budget), [0])
    assert alone["device_bytes"] > beside["device_bytes"]
    assert made.matrices.inventory() == []
    assert opened[0].peak_bytes <= budget


def test_searches_are_refused_beside_matrices_in_use_by_a_budget_that_works(graph):
    """Not even the least fits; the message counts what is in use."""
    made, budget = plugin(), 12 << 20
    kept = take(made, product_spec(graph, kept_for="a lease", device_memory_budget=budget))
    with pytest.raises(BudgetError, match=r"worker tcp://worker:1 .*in use already; set device_memory_budget") as caught:
        made.worker_state.acquire("searches", graph_spec(graph, device_memory_budget=budget), [0])
    named = int(re.search(r"device_memory_budget to at least (\d+)M", str(caught.value))[1]) << 20
    made.worker_state.acquire("searches", graph_spec(graph, device_memory_budget=named), [0])
    assert budget < opened[0].peak_bytes <= named
    made.matrices.put_back(kept)


def test_a_product_is_refused_beside_what_is_in_use_by_a_budget_that_works(graph):
    """Searches and another product hold memory of the device: the message counts it."""
    made, budget = plugin(), 20 << 20
    made.worker_state.acquire("searches", graph_spec(graph, device_memory_budget=budget), [0])
    with pytest.raises(BudgetError, match=r"worker tcp://worker:1: .* beside .* that are held") as caught:
        take(made, product_spec(graph, device_memory_budget=4 << 20))
    named = int(re.search(r"device_memory_budget to at least (\d+)M", str(caught.value))[1]) << 20
    kept = take(made, product_spec(graph, device_memory_budget=named))
    assert made.worker_state.device.held_bytes <= named
    made.matrices.put_back(kept)


def test_matrices_and_parts_leave_room_for_each_other(graph, tmp_path):
    """A matrix that nothing uses is given back for parts; searches and products get what these leave, until they are closed."""
    made, budget, partitions = plugin(), 32 << 20, partition(graph, 2, "1d", tmp_path / "parts")
    spec = parts_spec(partitions, graph, device_memory_budget=budget)
    made.matrices.put_back(take(made, product_spec(graph, kept_for="a lease", device_memory_budget=budget)))
    (one, other) = worker_parts.acquire(made, "parts", spec, [0, 1])
    assert made.matrices.inventory() == []
    held = one["device_bytes"] + other["device_bytes"]
    assert budget // 2 < held <= budget
    (searches,) = made.worker_state.acquire("searches", graph_spec(graph, device_memory_budget=budget), [0])
    assert searches["device_bytes"] <= budget - held
    made.worker_state.release("searches")
    kept = take(made, product_spec(graph, kept_for="a lease", device_memory_budget=budget))
    assert kept.device_bytes <= budget - held
    made.matrices.put_back(kept)
    for lease in ("parts", "a lease"):
        made.release(lease)
    assert (opened[0].allocated_bytes, made.worker_state.device.held_bytes) == (0, 0)
    assert opened[0].peak_bytes <= budget
