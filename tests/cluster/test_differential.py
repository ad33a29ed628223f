"""Random graphs, searched in every way there is and judged by SciPy: in process, over partitions, on a cluster, over partitions there.

`OOCGRAPH_DRAWS=200 python -m pytest tests/cluster/test_differential.py` takes longer and looks further.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

import oocgraph
from oocgraph import Resources
from tests import every_knob

NUM_DRAWS = int(os.environ.get("OOCGRAPH_DRAWS", "2"))
POLICIES = ("CVC", "HVC", "EEC", "FEC")


class Drawn:
    """A random graph, built from edges whose ids are not consecutive; with self-loops, multi-edges and isolated vertices.

    Attributes
    ----------
    ids
        All ids, ascending.
    matrix
        The adjacency matrix by position among them.
    store
        What `oocgraph.build_csr` makes of it.
    """

    def __init__(self, seed, folder):
        rng = np.random.default_rng(seed)
        n, directed, self.rng = int(rng.integers(2, 400)), bool(rng.integers(2)), rng
        m = int(rng.integers(1, 6 * n))
        power = int(rng.choice([1, 3]))
        ends = [(rng.random(m) ** p * n).astype(np.int64) for p in (power, 1)]
        self.ids = np.sort(rng.choice(10 * n, n, replace=False))
        used = np.unique(np.concatenate(ends))
        self.store = every_knob.build(
            (self.ids[ends[0]], self.ids[ends[1]]), folder / "graph.zarr", directed=directed,
            vertex_order=str(rng.choice(["degree", "original"])), duplicates=str(rng.choice(["drop", "keep"])),
            keep_self_loops=bool(rng.integers(2)),
        )  # fmt: skip
        if not directed:
            ends = [np.concatenate([ends[0], ends[1]]), np.concatenate([ends[1], ends[0]])]
        self.matrix = sp.csr_array((np.ones(ends[0].size), ends), shape=(n, n))[used][:, used]
        self.ids = self.ids[used]

    def sources(self):
        """Draw positions of one or a few sources."""
        return self.rng.choice(self.ids.size, min(self.ids.size, int(self.rng.choice([1, 1, 3]))), replace=False)

    def levels(self, sources):
        """Levels of `ids` by SciPy; -1 where nothing is reached."""
        found = dijkstra(self.matrix, indices=sources, unweighted=True, min_only=True)
        return np.where(np.isinf(found), -1, found).astype(int)


def searches(drawn, sources, policy, folder, client):
    """Search in every way; yields its name and what was found."""
    store, rng = drawn.store, drawn.rng
    most = max(1, store.num_rows)
    parts = int(rng.integers(1, min(5, most) + 1))
    yield "in process", oocgraph.bfs(store, sources, direction=str(rng.choice(["auto", "push", "pull", "alpha-beta"])))
    yield "on a cluster", oocgraph.bfs(store, sources, client=client, resources=Resources(num_partitions=parts))
    if not store.num_rows:
        return
    made = every_knob.partition(store, parts, policy, folder / policy)
    yield f"over partitions by {policy}", oocgraph.bfs(store, sources, partition=made)
    yield f"over partitions by {policy} on a cluster", oocgraph.bfs(store, sources, partition=made, client=client)


@pytest.mark.parametrize("seed", range(NUM_DRAWS))
def test_every_way_to_search_finds_the_levels_of_scipy(tmp_path, threads_client, seed):
    """The results are also judged by Graph500's rules, so that parents are right."""
    drawn = Drawn(seed, tmp_path)
    places = drawn.sources()
    expected = drawn.levels(places)
    for way, result in searches(drawn, drawn.ids[places].tolist(), POLICIES[seed % len(POLICIES)], tmp_path, threads_client):
        assert np.asarray(result.vertices).tolist() == drawn.ids.tolist(), way
        assert np.asarray(result.level).tolist() == expected.tolist(), way
        oocgraph.verify_bfs(drawn.store, result)


@pytest.mark.parametrize("seed", range(NUM_DRAWS))
def test_products_on_a_cluster_are_those_of_scipy(tmp_path, threads_client, seed):
    """Of the stored graph: what becomes of duplicates and self-loops is the build's affair."""
    drawn = Drawn(seed, tmp_path)
    x = drawn.rng.random(drawn.ids.size)
    for transpose in (False, True):
        matrix = drawn.store.to_scipy()
        expected = (matrix.T if transpose else matrix).astype(float) @ x
        np.testing.assert_allclose(oocgraph.spmv(drawn.store, x, transpose=transpose, client=threads_client), expected)
