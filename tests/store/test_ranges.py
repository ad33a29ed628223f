"""A Zarr store that is read by ranges, from threads that are not Zarr's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import obstore.store
import pytest
import zarr
from zarr.storage import MemoryStore, ObjectStore

from oocgraph.store.ranges import RangeStore


@pytest.fixture(params=[MemoryStore, lambda: ObjectStore(obstore.store.MemoryStore())], ids=["memory", "obstore"])
def store(request):
    """Make a group with an array of the bytes 0 .. 99, in one chunk."""
    inside = request.param()
    group = zarr.open_group(inside, mode="w")
    group.create_array("a", shape=(100,), chunks=(100,), dtype="uint8", compressors=None)[:] = range(100)
    return zarr.open_group(RangeStore(inside), mode="r").store


@pytest.mark.parametrize(
    ("start", "stop", "expected"), [(0, None, range(100)), (90, None, range(90, 100)), (3, 7, range(3, 7)), (0, 1, [0])]
)
def test_bytes_of_a_range(store, start, stop, expected):
    assert store.begin("a/c/0", start, stop).result().tobytes() == bytes(expected)


def test_a_key_that_is_not_there(store):
    assert store.begin("a/c/1", 0, None).result() is None
    assert store.begin("b/zarr.json", 0, 10).result() is None


def test_many_threads_at_once(store):
    """Each gets what it asks for; Zarr's own thread does the reading."""
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda start: store.begin("a/c/0", start, start + 2).result().tobytes(), range(98)))
    assert found == [bytes([start, start + 1]) for start in range(98)]
