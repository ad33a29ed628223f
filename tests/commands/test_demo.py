"""The demo: real data through the whole path, as the README promises."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from oocgraph.commands.demo import DATA


@pytest.fixture(scope="module")
def demo(run, tmp_path_factory):
    """Run the demo once; the folder and its JSON."""
    folder = tmp_path_factory.mktemp("demo") / "oocgraph-demo"
    return folder, run("demo", "--folder", folder, "--json").json


def test_demo_reaches_what_python3_needs(demo):
    """8,022 of Debian's packages, at most 23 steps away; validated."""
    _, fields = demo
    assert (fields["num_vertices"], fields["num_reached"], fields["depth"], fields["valid"]) == (70_217, 8_022, 23, True)
    assert fields["num_edges_checked"] > fields["num_reached"]


def test_demo_levels_equal_those_of_scipy(demo):
    """The written result, package by package."""
    folder, _ = demo
    edges, result = pq.read_table(DATA), pq.read_table(folder / "python3.parquet")
    names, codes = np.unique(np.concatenate([edges["package"].to_numpy(), edges["needs"].to_numpy()]).astype(str), return_inverse=True)
    source, target = np.split(codes, 2)
    matrix = scipy.sparse.coo_array((np.ones(source.size), (source, target)), shape=(names.size, names.size)).tocsr()
    distance = dijkstra(matrix, indices=np.searchsorted(names, "python3"), unweighted=True)
    expected = dict(zip(names.tolist(), np.where(np.isfinite(distance), distance, -1).astype(int).tolist(), strict=True))
    assert dict(zip(result["vertex"].to_pylist(), result["level"].to_pylist(), strict=True)) == expected


def test_demo_says_what_it_found_and_runs_again(run, demo):
    """A second run replaces the first; a person reads the levels, a path and where things are."""
    folder, _ = demo
    outcome = run("demo", "--folder", folder)
    assert outcome.code == 0
    for words in ("8,022 packages", "python3 >", "debian.zarr", "python3.parquet", "23"):
        assert words in outcome.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["debian.zarr", "python3.parquet"]
