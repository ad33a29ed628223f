"""Blocks of edges: kernels that read plain files themselves, what is damaged, stores that they cannot read, and rows in blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import CorruptStoreError, Resources, sssp, verify_sssp
from oocgraph.engine import blocks
from oocgraph.engine.blocks import BlockEngine
from oocgraph.kernels import blocks as kernels
from oocgraph.memory import Budget
from tests.stores import rewrite


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Make a weighted graph of about 30 blocks of 2**12 entries."""
    path = tmp_path_factory.mktemp("blocks") / "g.zarr"
    return oocgraph.generate_kronecker(12, path, weights=(1, 255))


@pytest.fixture
def pages(monkeypatch):
    """Blocks of a few pages, which kernels read, and few of them held."""
    monkeypatch.setattr(blocks, "SHIFT", 12)
    charge = BlockEngine._charge

    def least(self, budget, beside, sharers):
        charge(self, budget, beside, sharers)
        return min(self.num_blocks, 5)

    monkeypatch.setattr(BlockEngine, "_charge", least)


def source_of(store):
    return int(store.read("vertices/id")[3])


def test_kernels_read_what_python_reads(graph, pages, monkeypatch):
    """The same distances and parents, whether kernels read files or Python does, in every schedule."""
    whole = sssp(graph, source_of(graph))
    for schedule in ("async", "buckets", "rounds"):
        found = sssp(graph, source_of(graph), schedule=schedule, resources=Resources(threads=3))
        np.testing.assert_array_equal(found.distance, whole.distance)
        np.testing.assert_array_equal(found.parent, whole.parent)
        assert found.num_blocks_read > found.num_blocks
        assert 0 < found.bytes_requested <= found.num_blocks_read << 15
    monkeypatch.setattr(blocks, "PAGE_BYTES", 3000)  # no block is whole pages: kernels do not read
    read = []
    one = BlockEngine._read
    monkeypatch.setattr(BlockEngine, "_read", lambda self, *place: read.append(place) or one(self, *place))
    found = sssp(graph, source_of(graph))
    np.testing.assert_array_equal(found.distance, whole.distance)
    assert len(read) == found.num_blocks_read


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("order", ["degree", "original"])
def test_stores_of_every_kind(tmp_path, pages, codec, order):
    rng = np.random.default_rng(3)
    table = {"source": rng.integers(0, 900, 20000), "target": rng.integers(0, 900, 20000), "w": rng.random(20000)}
    with oocgraph.config.setting("codec", codec), oocgraph.config.setting("vertex-order", order):
        store = oocgraph.build_csr(pa.table(table), tmp_path / "g", weight="w", duplicates="min")
    found = sssp(store, 5)
    verify_sssp(store, found)
    assert found.num_reached > 800


@pytest.mark.parametrize("damage", ["number", "page", "short"])
def test_what_is_damaged_is_named(graph, pages, tmp_path, damage):
    """A neighbour that is no vertex, a page that its checksum does not know, and a file that ends early."""
    name = "out/indices" if damage == "number" else "out/weight"
    values = graph.read(name).copy()
    if damage == "number":
        values[values.size // 2] = 2**30
    store = rewrite(graph.url, tmp_path / "g", arrays={name: values})
    if damage != "number":
        chunk = sorted((tmp_path / "g" / name / "c").iterdir())[0]
        data = bytearray(chunk.read_bytes())
        data[5000] ^= 1
        chunk.write_bytes(data if damage == "page" else data[: len(data) // 2])
        store = oocgraph.open_graph(tmp_path / "g", check_pages=damage == "page")
    for _ in range(50):  # a block that is refused is followed by nobody: one in forty searches did
        with pytest.raises(CorruptStoreError, match=name):
            sssp(store, source_of(graph))


def test_rows_are_where_they_are_in_the_store(graph, pages):
    """The range of every row is that of indptr, in stores of either order."""
    with BlockEngine(graph, "weight", Budget(1 << 30), threads=1, beside={}) as engine:
        indptr = graph.read("out/indptr").astype(np.int64)
        found = np.array([kernels.row_range(engine.rows, v) for v in range(graph.num_rows)])
        np.testing.assert_array_equal(found[:, 0], indptr[:-1])
        np.testing.assert_array_equal(found[:, 1], indptr[1:])
