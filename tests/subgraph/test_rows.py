"""Rows of a small store gathered by several threads, from memory, from files and through Zarr, and staged to a device."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from oocgraph.errors import CorruptStoreError
from oocgraph.store.gather import EdgeFiles, Gatherer
from oocgraph.store.graph import open_graph
from oocgraph.store.row_gatherer import EdgeSource, RowGatherer
from oocgraph.subgraph.staging import Stager
from tests.cuda_on_cpu.device import CpuDevice
from tests.reference_build import reference_build
from tests.stores import rewrite

NAME = "out/indices"


@pytest.fixture(scope="module")
def plain_store(tmp_path_factory):
    """About 30 pages of edges."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("plain") / "g"
    reference_build(rng.integers(0, 900, 16_000) ** 2 // 900, rng.integers(0, 900, 16_000), path)
    return open_graph(path)


@pytest.fixture(scope="module")
def packed_store(plain_store, tmp_path_factory):
    """Compress the same graph: files that kernels cannot read."""
    return rewrite(plain_store.url, tmp_path_factory.mktemp("packed") / "g", codec="zstd")


@pytest.fixture
def gatherer():
    made = Gatherer(3, 8192)
    yield made
    made.close()


@contextlib.contextmanager
def source_of(store, kind, resident_share, *, stream_direct=False):
    indices = store.read(NAME)
    resident = indices[: int(indices.size * resident_share)].copy()
    if kind == "memory":
        yield EdgeSource(indices)
    elif kind == "windows":
        yield EdgeSource(resident, stored=store.array(NAME))
    else:
        files = EdgeFiles(store.checked().array(NAME), stream_direct=stream_direct)
        try:
            yield EdgeSource(resident, files=files)
        finally:
            files.close()


def some_rows(store, share, seed=0):
    """Start, offset and edges of a random share of the rows."""
    indptr, indices = store.read("out/indptr"), store.read(NAME)
    vertices = np.flatnonzero(np.random.default_rng(seed).random(indptr.size - 1) < share)
    degree = np.diff(indptr)[vertices]
    offset = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    edges = np.concatenate([indices[:0], *[indices[indptr[v] : indptr[v + 1]] for v in vertices.tolist()]])
    return indptr[vertices].astype(np.int64), offset, edges


CASES = [("plain_store", "memory"), ("plain_store", "files"), ("plain_store", "windows"), ("packed_store", "windows")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("resident_share", [0, 0.4])
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(("store", "kind"), CASES)
def test_any_range_of_rows_is_gathered(store, kind, share, resident_share, stream, gatherer, request):
    store = request.getfixturevalue(store)
    start, offset, edges = some_rows(store, share)
    rng = np.random.default_rng(1)
    ranges = [(0, edges.size), (0, 1), (edges.size - 1, edges.size), (5, 5), *np.sort(rng.integers(0, edges.size, (5, 2)))]
    with source_of(store, kind, resident_share, stream_direct=stream) as source:
        gather = RowGatherer(gatherer, source, start, offset, gap_pages=1, stream=stream)
        for e0, e1 in ranges:
            out = np.empty(e1 - e0, edges.dtype)
            num_bytes = gather(int(e0), int(e1), out)
            np.testing.assert_array_equal(out, edges[e0:e1])
            if kind == "memory" or e0 == e1:
                assert num_bytes == 0
        assert kind == "memory" or gather(0, edges.size, np.empty_like(edges)) > 0


def test_all_threads_share_a_piece(plain_store, gatherer):
    """Parts are of about equal work: every edge once, rows cut where that is needed."""
    start, offset, edges = some_rows(plain_store, 1.0)
    with source_of(plain_store, "files", 0) as source:
        gather = RowGatherer(gatherer, source, start, offset, gap_pages=1, stream=False)
        parts = gather._parts(3, edges.size, 4)
        assert len(parts) == 12
        assert [part[1] for part in parts] == [3, *[part[3] for part in parts[:-1]]]
        assert parts[-1][3] == edges.size
        work = [(end - begin) + 1024 * (last - row) for row, begin, last, end in parts]
        assert max(work) <= 1.1 * np.mean(work) + 1024
        assert len(gather._parts(3, 40, 4)) == 1


@pytest.mark.parametrize("num_buffers", [2, 3])
@pytest.mark.parametrize(("store", "kind"), CASES)
def test_rows_come_to_a_device(store, kind, num_buffers, gatherer, request):
    """A piece is smaller than the longest row."""
    store = request.getfixturevalue(store)
    start, offset, edges = some_rows(store, 0.4)
    device = CpuDevice(seed=5, deferred=True)
    compute, arrived, back = device.stream(), device.empty(edges.size, edges.dtype), device.pinned(edges.nbytes)
    assert np.diff(offset).max() > 40
    stager = Stager(device, buffer_bytes=160, num_buffers=num_buffers, dtype=edges.dtype, compute_stream=compute)
    with source_of(store, kind, 0.2) as source:
        gather = RowGatherer(gatherer, source, start, offset, gap_pages=1, stream=False)
        figures = stager.run(edges.size, gather, lambda buffer, e0, e1: device.copy(buffer[: e1 - e0], arrived[e0:e1], compute))
    device.copy(arrived, back.view(edges.dtype), compute)
    device.synchronize(compute)
    np.testing.assert_array_equal(back.view(edges.dtype), edges)
    assert (figures.bytes_read > 0) == (kind != "memory")
    stager.close()


@pytest.mark.parametrize("damage", ["flipped", "truncated"])
def test_damaged_page_is_named_while_the_device_works(damage, tmp_path, plain_store, gatherer):
    """The store's path, the place and the remedy; pieces before it were processed, and nothing runs on."""
    store = rewrite(plain_store.url, tmp_path / "g")
    path = tmp_path / "g" / NAME / "c" / "0"
    start, offset, edges = some_rows(store, 1.0)
    device = CpuDevice(seed=6, deferred=True)
    compute = device.stream()
    stager = Stager(device, buffer_bytes=4096, num_buffers=2, dtype=edges.dtype, compute_stream=compute)
    consumed = []
    with source_of(store, "files", 0) as source:
        whole = path.read_bytes()
        path.write_bytes(whole[:-4] if damage == "truncated" else whole[: 9 * 4096] + b"\xff" + whole[9 * 4096 + 1 :])
        gather = RowGatherer(gatherer, source, start, offset, gap_pages=1, stream=False)
        message = "page at byte 36864 of out/indices differs" if damage == "flipped" else "cannot be read to its end"
        with pytest.raises(CorruptStoreError, match=message):
            stager.run(edges.size, gather, lambda buffer, e0, e1: consumed.append(e0))
    last = 9 if damage == "flipped" else edges.nbytes // 4096
    assert consumed == list(range(0, edges.size, 1024))[:last]
    stager.close()


def test_missing_chunk_is_named_while_the_device_works(tmp_path, plain_store, gatherer):
    """Through Zarr's interface."""
    store = rewrite(plain_store.url, tmp_path / "g")
    start, offset, edges = some_rows(store, 1.0)
    with source_of(store, "windows", 0) as source:
        (tmp_path / "g" / NAME / "c" / "0").unlink()
        gather = RowGatherer(gatherer, source, start, offset, gap_pages=1, stream=False)
        with pytest.raises(CorruptStoreError, match="missing"):
            gather(0, edges.size, np.empty_like(edges))
