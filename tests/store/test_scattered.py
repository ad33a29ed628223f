"""Ranges of arrays read together: the same elements as one by one, and no page twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import BudgetError
from oocgraph.memory import Budget
from oocgraph.store.scattered import FEW_PAGES, FEW_RANGES, PART_PAGES, RangeReader, page_parts
from oocgraph.types import PAGE_BYTES
from tests.stores import rewrite

KINDS = {"flag": pa.bool_(), "tiny": pa.int8(), "short": pa.int16(), "number": pa.float32(), "wide": pa.float64(), "count": pa.uint64()}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Columns of every size."""
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 5000, (2, 200_000))
    columns = {name: pa.array(rng.integers(0, 2, 200_000)).cast(kind) for name, kind in KINDS.items()}
    table = pa.table({"source": source, "target": target, **columns})
    return build_csr(table, tmp_path_factory.mktemp("kinds") / "g.zarr", directed=True, columns=("source", "target", *KINDS))


def ranges(rng, length, count):
    """Ascending ranges, some of them empty, some next to each other."""
    bounds = np.sort(rng.integers(0, length + 1, 2 * count))
    return bounds[::2], bounds[1::2]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("count", [0, FEW_RANGES, FEW_PAGES, 40, 3000])
def test_ranges_hold_what_reading_them_one_by_one_does(graph, tmp_path, codec, count):
    store = graph if codec == "none" else rewrite(graph.url, tmp_path / "z", codec=codec)
    with RangeReader(store, Budget(1 << 40)) as reader:
        for name in ("out/indices", "in/indices", "vertices/id", "vertices/order", *(f"out/{one}" for one in KINDS)):
            array = store.array(name)
            whole = array.read(0, array.length)
            begin, end = ranges(np.random.default_rng(count), array.length, count)
            found = reader.read(name, begin, end)
            np.testing.assert_array_equal(found, np.concatenate([whole[:0], *(whole[a:z] for a, z in zip(begin, end, strict=True))]))
            assert found.dtype == array.dtype


def test_gaps_join_reads_and_change_nothing(graph):
    array = graph.array("out/indices")
    begin = np.arange(0, array.length - 8, 4096)
    assert begin.size > FEW_PAGES
    with RangeReader(graph, Budget(1 << 40)) as reader:
        exact = reader.read("out/indices", begin, begin + 7)
        before = reader.bytes_read["out/indices"]
        np.testing.assert_array_equal(reader.read("out/indices", begin, begin + 7, gap_pages=3), exact)
        assert reader.bytes_read["out/indices"] > 2 * before > 0


@pytest.mark.parametrize("seed", range(20))
def test_parts_share_no_page_and_cover_all(seed):
    rng = np.random.default_rng(seed)
    begin, end = ranges(rng, int(rng.integers(1, 40_000)), int(rng.integers(1, 2000)))
    begin, end = begin[end > begin], end[end > begin]
    if not begin.size:
        begin, end = np.array([3]), np.array([5])
    offset, per_page, most = np.concatenate([[0], np.cumsum(end - begin)]), 16, int(rng.integers(1, 50))
    places = np.concatenate([np.arange(a, z) for a, z in zip(begin, end, strict=True)])
    parts = page_parts(begin, end, offset, per_page, most)
    assert len(parts) <= most
    assert [part[1] for part in parts[1:]] == [part[3] for part in parts[:-1]]
    assert (parts[0][1], parts[-1][3]) == (0, offset[-1])
    pages = [set(places[first:last] // per_page) for _, first, _, last in parts]
    assert sum(map(len, pages)) == len(set().union(*pages))
    assert all(len(one) >= PART_PAGES for one in pages[:-1])
    for row, first, last_row, last in parts:
        assert offset[row] <= first < offset[row + 1]
        assert offset[last_row] < last <= offset[last_row + 1]


def test_buffers_that_do_not_fit_are_refused(graph):
    with RangeReader(graph, Budget(1 << 20, baseline_bytes=0)) as reader, pytest.raises(BudgetError, match="buffers of reading threads"):
        reader.read("out/indices", np.arange(0, 1000, 10), np.arange(5, 1005, 10))


@pytest.mark.parametrize("count", [FEW_PAGES, 40])
def test_pages_are_the_unit_of_reads(graph, count):
    begin = np.arange(0, 4096 * count, 4096)
    graph = open_graph(graph.url)  # of which no pages are kept
    with RangeReader(graph, Budget(1 << 40)) as reader:
        reader.read("out/indices", begin, begin + 1)
        assert reader.bytes_read["out/indices"] == begin.size * PAGE_BYTES
