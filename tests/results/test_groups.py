"""The largest components and communities: as plain Python counts them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import oocgraph
from oocgraph.errors import ArgumentError
from oocgraph.results import shown
from tests.stores import string_store


@pytest.mark.parametrize("block", [3, 1 << 16])
@pytest.mark.parametrize("directed", [False, True])
def test_the_largest_groups_come_first(tmp_path, monkeypatch, block, directed):
    monkeypatch.setattr(shown, "TOP_VERTICES", block)
    rng = np.random.default_rng(5)
    source, target = rng.integers(0, 300, (2, 200))
    graphs = [
        oocgraph.build_csr((source, target), tmp_path / "n.zarr", num_vertices=310, directed=directed),
        string_store(tmp_path / "s.zarr", [f"v{i}" for i in source], [f"v{i}" for i in target], others=["a", "zz"], directed=directed),
    ]
    for graph in graphs:
        algorithms = [oocgraph.connected_components] + ([oocgraph.strongly_connected_components] if directed else [oocgraph.louvain])
        for algorithm in algorithms:
            result = algorithm(graph)
            of_each = result.community if "community" in result.columns else result.component
            wanted = sorted(
                Counter(of_each.tolist()).items(), key=lambda one: (-one[1], one[0].encode() if isinstance(one[0], str) else one[0])
            )
            for count in (0, 1, 7, 1000):
                assert result.top(count) == wanted[:count]
            assert result.top() == wanted[:10]
            with pytest.raises(ArgumentError, match="count is"):
                result.top(1.5)


def test_a_graph_without_edges_has_groups_of_one(tmp_path):
    graph = oocgraph.build_csr((np.empty(0, np.int64), np.empty(0, np.int64)), tmp_path / "g.zarr", num_vertices=3)
    assert oocgraph.connected_components(graph).top(2) == [(0, 1), (1, 1)]
    assert oocgraph.louvain(graph).top(5) == [(0, 1), (1, 1), (2, 1)]
