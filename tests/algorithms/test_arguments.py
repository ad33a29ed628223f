"""Arguments that make no sense are refused by name, before anything is read or allocated."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oocgraph import ArgumentError, OocGraphError, Resources, balanced_partition, bfs, build_csr, export_graph, generate_kronecker, spmv

PAIRS = np.array([0, 1, 2]), np.array([1, 2, 3])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return build_csr(PAIRS, tmp_path_factory.mktemp("graph") / "g.zarr")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", 10**30])
def test_numbers_of_threads_are_judged_alike(graph, tmp_path, threads):
    for call in (
        lambda: bfs(graph, 0, resources=Resources(threads=threads)),
        lambda: spmv(graph, np.ones(4), resources=Resources(threads=threads)),
        lambda: build_csr(PAIRS, tmp_path / "g.zarr", resources=Resources(threads=threads)),
        lambda: export_graph(graph, tmp_path / "g.npz", resources=Resources(threads=threads)),
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
            generate_kronecker(path=tmp_path / "k.zarr", **wrong)
    for columns in ("cost", ("a",), ("a", 3), ("a", "b", None), 7):
        with pytest.raises(ArgumentError, match=r"columns is .*; give the names of the columns of sources and targets"):
            build_csr(PAIRS, tmp_path / "g.zarr", columns=columns)
    with pytest.raises(OocGraphError, match="parts is 1000000000000000000000000000000"):
        balanced_partition(sp.csr_array(np.ones((2, 2))), 10**30)
    assert not list(tmp_path.iterdir())
