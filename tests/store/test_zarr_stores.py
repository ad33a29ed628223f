"""Graphs in stores of Zarr, and options of file systems: they go where the graph goes."""

from __future__ import annotations

import asyncio
import json
import pickle

import dask.config
import numpy as np
import obstore.store
import pytest
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, StorePath

from oocgraph import bfs, check_store, connected_components, open_graph
from oocgraph.errors import ArgumentError, ArgumentTypeError, MissingDependencyError, StoreError, StoreNotFoundError
from tests.reference_build import reference_build
from tests.store import keyed

KEY = {"key": "secret"}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    reference_build(rng.integers(0, 500, 3000), rng.integers(0, 500, 3000), tmp_path / "inner" / "g")
    return tmp_path / "inner" / "g"


def memory_store(folder):
    """Copy a folder into a store in memory."""
    store = MemoryStore()
    for file in (one for one in folder.rglob("*") if one.is_file()):
        value = default_buffer_prototype().buffer.from_bytes(file.read_bytes())
        asyncio.run(store.set(f"deep/{file.relative_to(folder).as_posix()}", value))
    return store


STORES = {
    "store": lambda folder: ObjectStore(obstore.store.LocalStore(folder), read_only=True),
    "path": lambda folder: StorePath(ObjectStore(obstore.store.LocalStore(folder.parent), read_only=True), "g"),
    "group": lambda folder: zarr.open_group(ObjectStore(obstore.store.LocalStore(folder.parent)), path="g", mode="r"),
    "fsspec": lambda folder: FsspecStore.from_url(f"file://{folder}", read_only=True),
    "memory": lambda folder: StorePath(memory_store(folder), "deep"),
}


@pytest.mark.parametrize("kind", STORES)
def test_a_graph_in_a_store_of_zarr(folder, kind):
    """Its answers are those of the folder, before and after it was pickled."""
    graph, expected = open_graph(STORES[kind](folder)), bfs(folder, 7).level
    for one in (graph, pickle.loads(pickle.dumps(graph)), graph.checked()):
        np.testing.assert_array_equal(bfs(one, 7).level, expected)
    check_store(graph)
    assert "://" in graph.url
    assert graph.array_names() == open_graph(folder).array_names()


def test_functions_take_a_store_of_zarr(folder):
    store = STORES["store"](folder)
    np.testing.assert_array_equal(connected_components(store).component, connected_components(folder).component)


LOCAL = {
    "store": LocalStore,
    "group": lambda folder: zarr.open_group(folder, mode="r"),
    "path": lambda folder: StorePath(LocalStore(folder.parent), "g"),
}


@pytest.mark.parametrize("kind", LOCAL)
def test_a_local_store_is_read_as_a_folder(folder, kind):
    graph = open_graph(LOCAL[kind](folder))
    assert graph.is_plain
    assert graph.url == str(folder)


def test_a_store_without_a_graph_is_refused(tmp_path):
    with pytest.raises(StoreNotFoundError, match="no graph store"):
        open_graph(MemoryStore())
    store = MemoryStore()
    zarr.create_group(store)
    with pytest.raises(StoreError, match="not a graph store"):
        open_graph(store)
    with pytest.raises(ArgumentTypeError, match="a graph is a store or its path"):
        open_graph({"a": 1})


@pytest.fixture
def url(folder):
    """URL of a graph that needs an option to be read."""
    keyed.register()
    return f"keyed://{folder}"


def test_options_reach_the_file_system_and_survive_pickling(folder, url):
    graph = open_graph(url, storage_options=KEY)
    again = pickle.loads(pickle.dumps(graph))
    np.testing.assert_array_equal(bfs(again, 7).level, bfs(folder, 7).level)
    assert graph.storage_options == again.storage_options == graph.checked().storage_options == KEY


def test_every_function_uses_the_configured_options(folder, url):
    with dask.config.set({"oocgraph.storage-options": KEY}):
        found = bfs(url, 7)
        assert open_graph(url).storage_options == KEY
    np.testing.assert_array_equal(found.level, bfs(folder, 7).level)
    with dask.config.set({"oocgraph.storage-options": "secret"}), pytest.raises(ArgumentError, match="must be a mapping"):
        bfs(url, 7)


def test_what_a_client_raises_is_a_store_error_with_a_remedy(url, monkeypatch):
    with pytest.raises(StoreError, match=r"MissingKeyError: unable to locate credentials.*storage_options.*oocgraph\.storage-options"):
        bfs(url, 7)
    graph = open_graph(url, storage_options=KEY)
    monkeypatch.setattr(keyed.KeyedFileSystem, "right_key", "another")
    with pytest.raises(StoreError, match="MissingKeyError: unable to locate credentials"):
        bfs(graph, 7)


def test_options_are_not_shown(url):
    graph = open_graph(url, storage_options=KEY)
    with dask.config.set({"oocgraph.storage-options": KEY}):
        from oocgraph.config import settings

        assert "secret" not in repr(settings())
    assert "secret" not in repr(graph) + json.dumps({"graph": graph.url}) + f"{graph.url}"


def test_a_missing_package_is_named(monkeypatch):
    def missing(url, **options):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(FsspecStore, "from_url", missing)
    with pytest.raises(MissingDependencyError, match=r"Install s3fs.*oocgraph\[s3\]"):
        open_graph("s3://bucket/g.zarr")
