"""Edges that stay in memory are compared with the checksums of their pages, the last page too where only a part of it stays."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oocgraph import CorruptStoreError, open_graph
from oocgraph.runtime.resident import check_resident
from tests.reference_build import reference_build

PAGE_EDGES = 1024
"""Edges of 4 bytes in a page."""


@pytest.fixture
def store(tmp_path):
    reference_build(np.arange(5000), np.roll(np.arange(5000), 1), tmp_path / "g", directed=True)
    return open_graph(tmp_path / "g")


@pytest.mark.parametrize("count", [0, 1, PAGE_EDGES, PAGE_EDGES + 1, 4 * PAGE_EDGES + 3, 4999, 5000])
def test_any_number_of_edges_may_stay(store, count):
    array = store.array("out/indices")
    assert (array.length, array.dtype.itemsize) == (5000, 4)
    check_resident(store, array, array.read(0, count), 1)


@pytest.mark.parametrize(
    ("edge", "count"), [(0, 1), (5, PAGE_EDGES), (PAGE_EDGES, PAGE_EDGES + 1), (PAGE_EDGES + 9, 1500), (4998, 4999), (4999, 5000)]
)
def test_a_byte_that_differs_is_found_wherever_it_is(store, edge, count):
    """In memory, not on the disk: what is going to be used is what is compared."""
    array = store.array("out/indices")
    resident = array.read(0, count).copy()
    resident[edge] ^= 4
    with pytest.raises(CorruptStoreError, match=re.escape(f"page at byte {edge // PAGE_EDGES * 4096} of out/indices differs")):
        check_resident(store, array, resident, 1)
