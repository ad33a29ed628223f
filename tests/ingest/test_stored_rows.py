"""Whole rows of a store, in any order."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.errors import CorruptStoreError
from oocgraph.ingest.stored_rows import StoredRows

NAME = "out/indices"


@pytest.fixture
def rows(tmp_path):
    """Return a reader of the rows of a graph, and all entries."""
    edges = np.random.default_rng(1).integers(0, 500, (2, 9000))
    graph = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr")
    reader = StoredRows(graph, [NAME], threads=1)
    yield reader, graph.read(NAME)
    reader.close()


def test_rows_in_any_order_some_of_them_empty(rows):
    reader, entries = rows
    rng = np.random.default_rng(2)
    cuts = np.sort(rng.integers(0, entries.size, 400))
    order = rng.permutation(cuts.size - 1)
    begin, end = cuts[:-1][order], cuts[1:][order]
    end[::5] = begin[::5]
    found, position = reader.read(NAME, begin, end)
    assert found.size == (end - begin).sum()
    for at, low, high in zip(position, begin, end, strict=True):
        np.testing.assert_array_equal(found[at : at + high - low], entries[low:high])


def test_no_rows(rows):
    reader, _ = rows
    none = np.empty(0, np.int64)
    found, position = reader.read(NAME, none, none)
    assert found.size == position.size == 0


@pytest.mark.parametrize(
    ("begin", "end", "problem"),
    [(5, 3, "a row ends before it begins"), (-4, -9, "rows begin outside"), (1 << 62, -9, "rows begin outside"),
     (3, 1 << 20, "rows end behind")],
)  # fmt: skip
def test_rows_that_cannot_be_are_refused(rows, begin, end, problem):
    reader, _ = rows
    with pytest.raises(CorruptStoreError, match=problem):
        reader.read(NAME, np.array([0, begin]), np.array([2, end]))
