"""Edges that stay in memory are compared with the checksums of their pages, the last page too where only a part of it stays."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oocgraph import CorruptStoreError, open_graph
from oocgraph.compiled.crc32c import page_checksums
from oocgraph.compiled.sound import READ_BYTES, read_sound
from oocgraph.engine.resident import for_loading, read_parallel
from oocgraph.pool import Pool
from tests.reference_build import reference_build

PAGE_EDGES = 1024
"""Edges of 4 bytes in a page."""


@pytest.fixture
def store(tmp_path):
    reference_build(np.arange(5000), np.roll(np.arange(5000), 1), tmp_path / "g", directed=True)
    return open_graph(tmp_path / "g")


def load(store, start, stop):
    with Pool(2, "some") as pool:
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


@pytest.mark.parametrize("count", [PAGE_EDGES, 1500, 5000])
def test_a_number_that_is_too_large_is_found_though_its_checksum_is_right(store, count):
    """Also where the pages are checked as they are read."""
    array = store.array("out/indices")
    raw = np.fromfile(array.chunk_path(0), np.uint32)
    raw[700] = 5000
    raw.tofile(array.chunk_path(0))
    checksums = store.array("checksums/out/indices")
    page_checksums(raw.view(np.uint8), 4096).tofile(checksums.chunk_path(0))
    with pytest.raises(CorruptStoreError, match="element 700 of out/indices is 5000, but must be at least 0 and below 5,000"):
        load(store, 0, count)


@pytest.mark.parametrize("num_bytes", [4, 4096, 4100, READ_BYTES, READ_BYTES + 4, 3 * READ_BYTES - 8192, 3 * READ_BYTES - 4])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_pages_are_checked_as_they_are_read(tmp_path, num_bytes, itemsize):
    """Starting at any page of a file: pages that are short, that differ or that hold too large a number are not sound."""
    num_bytes = -(-num_bytes // itemsize) * itemsize
    numbers = np.random.default_rng(1).integers(0, 1000, num_bytes // itemsize).astype(f"u{itemsize}")
    numbers[-1] = 1000
    raw = numbers.view(np.uint8)
    checksums = page_checksums(raw, 4096)
    (tmp_path / "f").write_bytes(b"x" * 8192 + raw.tobytes())

    def read(checksums=checksums, stop=1001, offset=8192):
        out = np.zeros(num_bytes, np.uint8)
        with open(tmp_path / "f", "rb") as file:
            sound = read_sound(file.fileno(), offset, out, checksums, np.uint64(stop), itemsize)
        assert not sound or out.tobytes() == raw.tobytes()
        return sound

    assert read()
    assert not read(stop=1000)
    assert not read(offset=8192 + itemsize)
    for page in {0, checksums.size // 2, checksums.size - 1}:
        wrong = checksums.copy()
        wrong[page] ^= 1
        assert not read(wrong)
