"""Matrices on a worker's device: kept for the next product, within what the other computations leave of the device's memory."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.cluster import worker_device
from oocgraph.cluster.worker_product import ProductSpec
from oocgraph.kernels.semirings import semiring_of
from oocgraph.sparse.edge_stream import part_of, stored_matrix
from tests.cluster.holders import plugin
from tests.engine.device_parts import opened, use_shim

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
        semiring=RING.name, dtype=DOUBLE.name, num_columns=store.num_rows, num_lines=store.num_rows, threads=1, memory_budget=None,
        entries=(part.start, part.stop), url=store.url, device="cuda", **options,
    )  # fmt: skip


def take(made, spec):
    """Take the matrix that a product with this spec takes."""
    device, _ = made.matrices.device_for(spec)
    part = part_of(stored_matrix(oocgraph.open_graph(spec.url), transpose=False, column=None), spec.entries)
    return made.matrices.take(spec.kept_for, "a matrix", device, spec, part, DOUBLE, RING, "values", None)


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
