"""Connected components on a cluster: those of one process, whatever the graph and the number of workers; budgets."""

from __future__ import annotations

import re

import numpy as np
import pytest

import oocgraph
from oocgraph import BudgetError, connected_components
from oocgraph.memory import host_bytes
from oocgraph.store.graph import open_graph
from tests.algorithms.test_components import check, cycles
from tests.cluster.clusters import Cluster
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite


@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51))), ([3, 4], [3, 5]), random_edges(3, 300, 200)])
@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("directed", [False, True])
def test_small_graphs(threads_client, tmp_path, edges, order, directed):
    """No edge, one, a star, a self-loop, many small components; more workers than edges."""
    reference_build(*edges, tmp_path / "g", implied=(0, 400), directed=directed, vertex_order=order)
    check(open_graph(tmp_path / "g"), *edges, client=threads_client)


def test_many_components_on_an_odd_number_of_processes(tmp_path):
    """Nearly all lists are read, from compressed chunks; trees of three are joined."""
    source, target = cycles(300, 20)
    oocgraph.build_csr((source, target), tmp_path / "g.zarr", directed=True)
    store = open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd"))
    with Cluster(tmp_path, workers=3) as cluster:
        assert check(store, source, target, client=cluster.client).num_components == 300


def test_little_is_read_of_a_graph_with_hubs(client, tmp_path):
    """As in one process: two planes, and lists outside of the largest component."""
    store = oocgraph.generate_kronecker(14, tmp_path / "g.zarr", seed=1)
    found, expected = connected_components(store, client=client), connected_components(store)
    np.testing.assert_array_equal(found.stored_component, expected.stored_component)
    assert 0 < found.bytes_requested < 0.2 * found.edge_bytes
    assert found.plane_bytes == int(store.plane_offsets[2]) * store.index_dtype.itemsize


def test_a_worker_without_memory_is_named_and_what_it_names_works(client, tmp_path):
    store = oocgraph.generate_kronecker(10, tmp_path / "g.zarr", seed=1)
    with pytest.raises(BudgetError, match=r"worker tcp://\S+: .* at least \d+M") as refused:
        connected_components(store, client=client, memory_budget=max(client.run(host_bytes).values()) + (1 << 16))
    enough = re.search(r"at least (\d+M)", str(refused.value))[1]
    found = connected_components(store, client=client, memory_budget=enough)
    oocgraph.verify_components(store, found)


def test_no_client(tmp_path):
    store = oocgraph.generate_kronecker(8, tmp_path / "g.zarr", seed=1)
    with pytest.raises(TypeError, match=r"client is 3; give a distributed\.Client"):
        connected_components(store, client=3)
