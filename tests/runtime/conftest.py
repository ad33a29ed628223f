"""What the tests of clusters search."""

from __future__ import annotations

import pytest

import oocgraph
from tests.runtime import kill_fifty


@pytest.fixture(scope="session")
def kron(tmp_path_factory):
    """Return a store and the levels of its vertices."""
    store = oocgraph.generate_kronecker(kill_fifty.SCALE, tmp_path_factory.mktemp("kron") / "graph.zarr", seed=3)
    return store, kill_fifty.expected_levels(store)
