"""How many entries rows have, from ``indptr`` or from the classes of degrees."""

from __future__ import annotations

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph.store.rows import declared_degrees, degree_blocks, longest_row


def _edges(rng):
    """Return sources and targets of a few hubs and many others."""
    return tuple((rng.random((2, 6000)) ** 3 * 900).astype(np.int64))


@pytest.mark.parametrize("num_rows", [1, 7, 256, 1 << 20])
@pytest.mark.parametrize("vertex_order", ["degree", "original", "locality"])
@pytest.mark.parametrize("directed", [False, True])
def test_degrees_that_classes_tell(tmp_path, directed, vertex_order, num_rows):
    with dask.config.set({"oocgraph.vertex-order": vertex_order}):
        graph = oocgraph.build_csr(_edges(np.random.default_rng(1)), tmp_path / "g.zarr", directed=directed)
    assert graph.attributes.vertex_order == vertex_order
    for group in graph.attributes.stored_groups:
        wanted, found = list(degree_blocks(graph, group, num_rows)), list(declared_degrees(graph, group, num_rows))
        assert [start for start, _ in found] == [start for start, _ in wanted]
        degrees = np.concatenate([counts for _, counts in wanted])
        np.testing.assert_array_equal(np.concatenate([counts for _, counts in found]), degrees)
        assert longest_row(graph, group) == (int(degrees.argmax()), int(degrees.max()))


def test_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr((np.empty(0, np.int64),) * 2, tmp_path / "g.zarr", num_vertices=5)
    assert list(declared_degrees(graph, "out")) == []
    assert longest_row(graph, "out") == (0, 0)
