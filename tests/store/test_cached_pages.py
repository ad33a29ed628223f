"""Which pages are in the page cache, and reads past it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oocgraph
from oocgraph.bench.disk import chunk_files, drop_page_cache
from oocgraph.engine import resident
from oocgraph.engine.resident import for_loading, read_parallel
from oocgraph.errors import CorruptStoreError
from oocgraph.store.files import is_cached

pytestmark = pytest.mark.disk


@pytest.fixture
def array(tmp_path):
    edges = np.random.default_rng(1).integers(0, 200_000, (300_000, 2))
    return for_loading(oocgraph.build_csr(edges, tmp_path / "g.zarr")).array("out/indices")


def load(array):
    with ThreadPoolExecutor(2) as pool:
        return read_parallel(array, 0, array.length // 1024 * 1024, pool)  # whole pages: the last one, cut, comes through the page cache


def test_pages_are_cached_once_they_have_been_read_and_not_after_they_were_dropped(array, monkeypatch):
    """To ask does not fetch them."""
    path = array.chunk_path(0)
    expected = path.read_bytes()
    assert array.is_cached(0, array.length)
    drop_page_cache([path])
    if array.is_cached(0, array.length):
        pytest.skip("this file system keeps its pages")
    assert not array.is_cached(5000, 6000)
    monkeypatch.setattr(resident, "page_cache_bytes", lambda held: 0)
    assert load(array).tobytes() == expected[: array.length // 1024 * 4096]
    assert not array.is_cached(0, array.length - 4096), "a load past the page cache left pages there"
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(fd, 8192, 4096)
    assert is_cached(fd, 4096, 8192)
    assert not is_cached(fd, 0, 64 << 10)
    assert is_cached(fd, 0, 0)
    os.close(fd)


def test_a_wrong_page_is_found_whether_it_is_cached_or_not(array):
    """Both ways compare with checksums."""
    path = array.chunk_path(0)
    raw = bytearray(path.read_bytes())
    raw[9000] ^= 1
    path.write_bytes(raw)
    for _ in range(2):
        with pytest.raises(CorruptStoreError, match="differs from its checksum"):
            load(array)
        drop_page_cache(chunk_files([array]))


def test_the_next_load_finds_pages_for_which_there_is_room(array, monkeypatch):
    """One load leaves them to the next."""
    drop_page_cache([array.chunk_path(0)])
    if array.is_cached(0, array.length):
        pytest.skip("this file system keeps its pages")
    monkeypatch.setattr(resident, "page_cache_bytes", lambda held: 1 << 30)
    load(array)
    assert array.is_cached(0, array.length)
