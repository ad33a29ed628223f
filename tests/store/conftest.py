"""Graphs that tests of this folder ask about."""

from __future__ import annotations

import pytest

from tests.store.asked_graphs import GRAPHS

_made = {}


@pytest.fixture(params=GRAPHS, ids=lambda make: make.__name__)
def asked(request, tmp_path_factory):
    """Each of `asked_graphs.GRAPHS`, made once."""
    make = request.param
    if make not in _made:
        _made[make] = make(tmp_path_factory.mktemp("asked") / "graph.zarr")
    return _made[make]
