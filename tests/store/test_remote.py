"""A store behind a file system that is not local: byte ranges of its chunks, no whole chunks."""

from __future__ import annotations

import pickle

import fsspec
import numpy as np
import pytest
from zarr.storage import FsspecStore, LocalStore

from oocgraph import bfs, open_graph, verify_bfs
from oocgraph.engine import shard_plan
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.store.check import check_store
from tests.reference_build import reference_build
from tests.stores import rewrite


@pytest.fixture
def remote(tmp_path):
    """Copy a local store into fsspec's memory file system; gives (local store, URL)."""
    rng = np.random.default_rng(3)
    reference_build(rng.integers(0, 20_000, 300_000), rng.integers(0, 20_000, 300_000), tmp_path / "g")
    memory = fsspec.filesystem("memory")
    before = memory.ls("/", detail=False)

    def put(folder, name):
        memory.put(str(folder), f"/{name}", recursive=True)
        return f"memory://{name}"

    yield tmp_path / "g", put
    for left in set(memory.ls("/", detail=False)).difference(before):
        memory.rm(left, recursive=True)


def test_remote_graph_gives_the_same_result(remote, monkeypatch):
    folder, put = remote
    expected = bfs(folder, 11)
    store = open_graph(put(folder, "plain.zarr"))
    np.testing.assert_array_equal(bfs(store, 11).level, expected.level)
    original = shard_plan.plan_residency
    monkeypatch.setattr(shard_plan, "plan_residency", lambda sizes, **options: cut(original(sizes, **options)))
    result = bfs(store, 11)
    assert result.bytes_read > 0
    np.testing.assert_array_equal(result.level, expected.level)
    verify_bfs(store, result)
    check_store(store)


def cut(residency):
    """Keep a tenth of the edges."""
    from dataclasses import replace

    return replace(residency, num_planes=1, num_resident=tuple(m // 10 for m in residency.num_resident))


def test_only_the_bytes_asked_for_are_requested(remote, monkeypatch):
    folder, put = remote
    store = open_graph(put(folder, "plain.zarr"))
    array = store.array("out/indices")
    asked = []
    original = FsspecStore.get

    async def get(self, key, prototype, byte_range=None):
        asked.append((key, byte_range))
        return await original(self, key, prototype, byte_range)

    monkeypatch.setattr(FsspecStore, "get", get)
    values = array.read(1000, 1010)
    monkeypatch.undo()
    np.testing.assert_array_equal(values, open_graph(folder).read("out/indices")[1000:1010])
    assert [(key.endswith("c/0"), request.end - request.start) for key, request in asked] == [(True, 40)]


def test_remote_compressed_store(remote, tmp_path):
    folder, put = remote
    packed = rewrite(folder, tmp_path / "z", codec="zstd")
    store = open_graph(put(packed.url, "packed.zarr"))
    np.testing.assert_array_equal(bfs(store, 11).level, bfs(folder, 11).level)


def test_missing_remote_chunk_and_missing_store(remote):
    folder, put = remote
    url = put(folder, "plain.zarr")
    fsspec.filesystem("memory").rm("/plain.zarr/out/indices/c/0")
    with pytest.raises(CorruptStoreError, match=r"out/indices/c/0.*missing"):
        bfs(url, 11)
    with pytest.raises(StoreError, match=r"nothing\.zarr"):
        open_graph("memory://nothing.zarr")


def test_a_pickled_graph_keeps_the_options_of_its_file_system(tmp_path, monkeypatch):
    """A worker opens it as its caller did."""
    reference_build(np.array([0, 1]), np.array([1, 2]), tmp_path / "g")
    asked = []

    def from_url(url, *, storage_options, read_only):
        asked.append((url, storage_options))
        return LocalStore(tmp_path / "g", read_only=read_only)

    monkeypatch.setattr(FsspecStore, "from_url", from_url)
    store = open_graph("elsewhere://g", storage_options={"key": "k"})
    again = pickle.loads(pickle.dumps(store))
    assert asked == [("elsewhere://g", {"key": "k"})] * 2
    assert again.storage_options == {"key": "k"}
