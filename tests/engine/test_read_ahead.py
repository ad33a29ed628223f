"""What is read before the kernels are there is what a search loads, in its order, and no more than there is room for."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import oocgraph
from oocgraph.bench.disk import chunk_files, drop_page_cache
from oocgraph.engine import read_ahead
from oocgraph.engine.local import LocalRuntime

GRAPHS = ("hubs", "hubs directed", "original", "grid")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("stores"), np.random.default_rng(1)
    skewed = (rng.random((2, 400_000)) ** 4 * 50_000).astype(np.int64)
    built = {
        "hubs": oocgraph.build_csr(tuple(skewed), folder / "hubs.zarr"),
        "hubs directed": oocgraph.build_csr(tuple(skewed), folder / "directed.zarr", directed=True),
        "grid": oocgraph.generate_grid((300, 300), folder / "grid.zarr"),
    }
    with settings_of("vertex-order", "original"):
        return built | {"original": oocgraph.build_csr(tuple(skewed), folder / "original.zarr")}


def settings_of(name, value):
    import dask.config

    return dask.config.set({f"oocgraph.{name}": value})


def read_of(store, limit):
    """Elements read ahead of each array, which must be its first ones, in order."""
    found = defaultdict(int)
    for array, start, stop in read_ahead.pieces_of(store, limit):
        assert start == found[array.name]
        assert start < stop <= array.length
        found[array.name] = stop
    return dict(found)


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_read_ahead_is_what_a_search_loads(stores, name):
    """All of it where everything fits."""
    store = stores[name]
    read = read_of(store, 8 << 30)
    with LocalRuntime.open(store) as runtime:
        loaded = {array: held.size for array, held in runtime.resident.items() if held.size}
    assert {array: stop for array, stop in read.items() if not array.endswith("indptr")} == loaded


@pytest.mark.parametrize("name", GRAPHS)
def test_less_is_read_ahead_within_a_smaller_budget(stores, name, monkeypatch):
    """Nothing where the search is going to refuse the budget; then some; no more than half of what the page cache holds."""
    store, most = stores[name], sum(read_of(stores[name], 8 << 30).values())
    imported = read_ahead.host_bytes() + read_ahead.IMPORTED_BYTES
    sizes = [sum(read_of(store, imported + more).values()) for more in range(0, 32 << 20, 1 << 20)]
    assert sizes[0] == 0
    assert sizes[-1] == most
    assert sorted(sizes) == sizes
    monkeypatch.setattr(read_ahead, "page_cache_bytes", lambda held: 1 << 20)
    assert 0 < sum(read_of(store, 8 << 30).values()) * 4 <= 1 << 19


def test_pages_are_cached_once_the_threads_have_ended(stores):
    store = stores["hubs"]
    arrays = [store.array(name) for name in ("out/planes/indices", "out/indices")]
    drop_page_cache(chunk_files(arrays))
    if any(array.is_cached(0, array.length) for array in arrays):
        pytest.skip("this file system keeps its pages")
    for thread in read_ahead.read_ahead(store, None):
        thread.join(60)
        assert not thread.is_alive()
    assert all(array.is_cached(0, array.length) for array in arrays)


def test_a_store_that_cannot_be_read_is_left_to_the_search(tmp_path):
    """A missing chunk ends the threads without a word; of compressed arrays nothing is read ahead."""
    edges = np.random.default_rng(1).integers(0, 1000, (2, 5000))
    store = oocgraph.build_csr(tuple(edges), tmp_path / "g.zarr")
    store.array("out/indices").chunk_path(0).unlink()
    for thread in read_ahead.read_ahead(store, "4G"):
        thread.join(60)
        assert not thread.is_alive()
    with settings_of("codec", "zstd"):
        compressed = oocgraph.build_csr(tuple(edges), tmp_path / "compressed.zarr")
    assert read_ahead.read_ahead(compressed, None) == []
