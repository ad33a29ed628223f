"""Arguments that make no sense are refused by name, before anything is read or allocated."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oocgraph import InputError, OocGraphError, balanced_partition, bfs, build_csr, export_graph, generate_kronecker, spmv

PAIRS = np.array([0, 1, 2]), np.array([1, 2, 3])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return build_csr(PAIRS, tmp_path_factory.mktemp("graph") / "g.zarr")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", 10**30])
def test_numbers_of_threads_are_judged_alike(graph, tmp_path, threads):
    for call in (
        lambda: bfs(graph, 0, threads=threads),
        lambda: spmv(graph, np.ones(4), threads=threads),
        lambda: build_csr(PAIRS, tmp_path / "g.zarr", threads=threads),
        lambda: export_graph(graph, tmp_path / "g.npz", threads=threads),
    ):
        with pytest.raises(OocGraphError, match=r"threads is .*; it must be 1 to 4096, or None for all cores"):
            call()
    assert not list(tmp_path.iterdir())


def test_a_depth_limit_above_every_level_is_none(graph):
    assert bfs(graph, 0, depth_limit=10**30).depth == 3


def test_other_things_than_asked_for_are_named(graph, tmp_path):
    with pytest.raises(OocGraphError, match="runtime is True; give what open_runtime returns"):
        bfs(graph, 0, runtime=True)
    for wrong in ({"scale": None}, {"scale": 1.5}, {"scale": 3, "edge_factor": 1.5}, {"scale": 3, "edge_factor": None}):
        with pytest.raises(OocGraphError, match="give a whole number"):
            generate_kronecker(store=tmp_path / "k.zarr", **wrong)
    with pytest.raises(InputError, match=r"give a list of names: \['cost'\]"):
        build_csr(PAIRS, tmp_path / "g.zarr", edge_columns="cost")
    with pytest.raises(OocGraphError, match="parts is 1000000000000000000000000000000"):
        balanced_partition(sp.csr_array(np.ones((2, 2))), 10**30)
    assert not list(tmp_path.iterdir())
