"""Edges that stay in memory are compared with the checksums of their pages, the last page too where only a part of it stays."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from oocgraph import CorruptStoreError, open_graph
from oocgraph.runtime.resident import for_loading, read_parallel
from tests.reference_build import reference_build

PAGE_EDGES = 1024
"""Edges of 4 bytes in a page."""


@pytest.fixture
def store(tmp_path):
    reference_build(np.arange(5000), np.roll(np.arange(5000), 1), tmp_path / "g", directed=True)
    return open_graph(tmp_path / "g")


def load(store, start, stop):
    with ThreadPoolExecutor(2) as pool:
        return read_parallel(for_loading(store).array("out/indices"), start, stop, pool)


@pytest.mark.parametrize("count", [0, 1, PAGE_EDGES, PAGE_EDGES + 1, 4 * PAGE_EDGES + 3, 4999, 5000])
@pytest.mark.parametrize("start", [0, 1, PAGE_EDGES - 1, PAGE_EDGES])
def test_any_number_of_edges_may_stay(store, start, count):
    """Wherever they begin and end in their pages."""
    array = store.array("out/indices")
    assert (array.length, array.dtype.itemsize, array.checksums) == (5000, 4, None)
    stop = max(start, count)
    np.testing.assert_array_equal(load(store, start, stop), array.read(start, stop))


@pytest.mark.parametrize(
    ("edge", "count"), [(0, 1), (5, PAGE_EDGES), (PAGE_EDGES, PAGE_EDGES + 1), (PAGE_EDGES + 9, 1500), (4998, 4999), (4999, 5000)]
)
def test_a_byte_that_differs_is_found_wherever_it_is(store, edge, count):
    """In a page of which everything stays, or only a part."""
    file = store.array("out/indices").chunk_path(0)
    raw = np.fromfile(file, np.uint32)
    raw[edge] ^= 4
    raw.tofile(file)
    message = re.escape(f"page at byte {edge // PAGE_EDGES * 4096} of out/indices differs")
    with pytest.raises(CorruptStoreError, match=message):
        load(store, 0, count)
