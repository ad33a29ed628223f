import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oocgraph import Resources
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.store import check_pages, check_structure, layout
from oocgraph.store.check import check_store
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import PAGE_BYTES
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store, strings


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Rows, planes and ids are cut by blocks even in small graphs."""
    monkeypatch.setattr(check_structure, "BLOCK_ENTRIES", 257)
    monkeypatch.setattr(check_structure, "BLOCK_ROWS", 67)
    monkeypatch.setattr(check_pages, "READ_BYTES", 2 * PAGE_BYTES)


def build(path, *, seed=1, num_ids=900, num_edges=6000, **options):
    src, dst = random_edges(seed, num_ids, num_edges)
    reference_build(src, dst, path, **options)
    return open_graph(path)


@pytest.fixture
def store(tmp_path):
    return build(tmp_path / "g.zarr", implied=(-5, 950))


VARIANTS = [
    {},
    {"implied": (0, 1000)},
    {"directed": True},
    {"keep_self_loops": True},
    {"keep_self_loops": True, "duplicates": "keep"},
    {"directed": True, "duplicates": "keep", "keep_self_loops": True},
    {"vertex_order": "original"},
    {"directed": True, "vertex_order": "original"},
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("codec", ["none", "blosc", "zstd"])
def test_sound_stores_pass(tmp_path, options, codec):
    """Every kind of graph, stored plainly and compressed."""
    store = rewrite(build(tmp_path / "g.zarr", **options).url, tmp_path / "c.zarr", codec=codec)
    seen = []
    report = check_store(store, resources=Resources(threads=2), progress=lambda *one: seen.append(one))
    assert report.num_arrays == len(store.array_names())
    assert report.num_entries == store.attributes.num_stored_edges * (2 if store.attributes.directed else 1)
    assert report.checked_bytes > 0
    assert {phase for phase, _, _ in seen} == {"checksums", "structure"}
    assert all(done <= total for _, done, total in seen)


def test_string_stores_pass(tmp_path):
    src, dst = ([f"v{i:x}" for i in side] for side in random_edges(3))
    check_store(string_store(tmp_path / "s.zarr", src, dst, others=["a", "zzz"]))


@pytest.mark.parametrize("implied", [(0, 0), (0, 3)])
def test_stores_without_edges_pass(tmp_path, implied):
    reference_build([], [], tmp_path / "g.zarr", implied=implied)
    check_store(open_graph(tmp_path / "g.zarr"))


def flip(file, at):
    raw = bytearray(file.read_bytes())
    raw[at] ^= 0x10
    file.write_bytes(raw)


@pytest.mark.parametrize("at", [0, 4095, 4096, 20000])
def test_a_flipped_byte_is_named_with_its_page(store, at):
    """The message has the file, the page, and where it starts."""
    file = Path(store.url) / "out/indices/c/0"
    flip(file, at)
    with pytest.raises(CorruptStoreError) as caught:
        check_store(store)
    page = at // PAGE_BYTES
    assert f"{file}: page {page} of out/indices, at byte {page * PAGE_BYTES} of this file" in str(caught.value)
    assert "restore the store or build it again" in str(caught.value)


def test_every_array_is_watched(tmp_path):
    """A flip in any array of the store is found, whatever the array is for."""
    store = build(tmp_path / "g.zarr", directed=True, keep_self_loops=True)
    for name in store.array_names():
        file = Path(store.url) / name / "c/0"
        if store.array(name).length:
            flip(file, 3)
            with pytest.raises(CorruptStoreError, match=rf"page 0 of {name},"):
                check_store(store)
            flip(file, 3)
    check_store(store)


def test_pages_of_later_chunks_are_counted_within_their_file(tmp_path, monkeypatch):
    """The page counts through the array, the byte through the file."""
    monkeypatch.setattr("oocgraph.store.writer.CHUNK_BYTES", 2 * PAGE_BYTES)
    store = build(tmp_path / "g.zarr")
    file = Path(store.url) / "out/indices/c/2"
    flip(file, PAGE_BYTES + 7)
    with pytest.raises(CorruptStoreError, match=rf"c/2: page 5 of out/indices, at byte {PAGE_BYTES} of this file"):
        check_store(store)
    file.unlink()
    with pytest.raises(CorruptStoreError, match="c/2: this chunk of out/indices is missing"):
        check_store(store)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_missing_chunks_are_named(store, tmp_path, codec):
    """Zarr itself would read zeros."""
    packed = rewrite(store.url, tmp_path / "p.zarr", codec=codec)
    (tmp_path / "p.zarr/vertices/order/c/0").unlink()
    with pytest.raises(CorruptStoreError, match=r"vertices/order/c/0: this chunk of vertices/order is missing"):
        check_store(packed)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_missing_chunks_are_no_zeros(store, tmp_path, codec):
    """A search would find nothing in them, and say so."""
    packed = rewrite(store.url, tmp_path / "p.zarr", codec=codec)
    (tmp_path / "p.zarr/out/indices/c/0").unlink()
    with pytest.raises(CorruptStoreError, match=r"out/indices/c/0: this chunk of out/indices is missing"):
        packed.read("out/indices")
    arrays = {"out/weight": np.zeros(store.attributes.num_stored_edges)}
    zeros = rewrite(store.url, tmp_path / "z.zarr", codec=codec, arrays=arrays, columns={"weight": "float64"}, weighted=True)
    assert not zeros.read("out/weight").any()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_truncated_chunks_are_named(store, tmp_path, codec):
    packed = rewrite(store.url, tmp_path / "p.zarr", codec=codec)
    file = tmp_path / "p.zarr/out/indptr/c/0"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(CorruptStoreError, match=r"out/indptr/c/0: .*chunk.* of out/indptr"):
        check_store(packed)


def test_compressed_flips_are_named_by_chunk(store, tmp_path):
    packed = rewrite(store.url, tmp_path / "p.zarr", codec="blosc")
    flip(tmp_path / "p.zarr/out/indices/c/0", 100)
    with pytest.raises(CorruptStoreError, match=r"out/indices/c/0: chunk 0 of out/indices .* differs from its checksum"):
        check_store(packed)


def test_missing_and_short_checksums_are_named(store):
    """Without all checksums an array cannot be called sound."""
    metadata = Path(store.url) / "checksums/out/indices/zarr.json"
    text = metadata.read_text()
    metadata.write_text(json.dumps({**json.loads(text), "shape": [1]}))
    with pytest.raises(CorruptStoreError, match="checksums/out/indices has 1 elements, but the attributes make it"):
        check_store(store)
    metadata.unlink()
    with pytest.raises(CorruptStoreError, match="array checksums/out/indices is missing"):
        check_store(store)


def test_damaged_metadata_is_named(store):
    (Path(store.url) / "out/indices/zarr.json").write_text("{")
    with pytest.raises(CorruptStoreError, match=r"zarr\.json is damaged"):
        check_store(store)


def test_many_problems_make_one_message(store):
    """Up to twenty, then no more."""
    file = Path(store.url) / "out/indices/c/0"
    raw = np.frombuffer(file.read_bytes(), np.uint8).copy()
    raw[::PAGE_BYTES] ^= 1
    file.write_bytes(raw.tobytes())
    for name in ("vertices/id", "vertices/order", "out/indptr"):
        flip(Path(store.url) / name / "c/0", 5)
    with pytest.raises(CorruptStoreError) as caught:
        check_store(store)
    lines = str(caught.value).splitlines()
    assert len(lines) > 10
    assert "page 3 of out/indices" in str(caught.value)
    assert "vertices/order" in str(caught.value)


def changed(store, name, at, by):
    values = store.read(name).copy()
    values[at] = by(values) if callable(by) else by
    return {name: values}


def swapped(values, i, j):
    out = values.copy()
    out[[i, j]] = out[[j, i]]
    return out


BROKEN = {
    "element 700 of out/indices is 5000, but must be at least 0 and below 900": lambda s: changed(s, "out/indices", 700, 5000),
    "so the row is not strictly ascending": lambda s: {"out/indices": swapped(s.read("out/indices"), 300, 301)},
    "element 81 of out/indptr is .*, but must not be below the element before it": lambda s: changed(s, "out/indptr", 80, 10**8),
    "element 0 of out/indptr is 3, but must be 0": lambda s: changed(s, "out/indptr", 0, 3),
    "element 900 of out/indptr is .*, but must be .*, the length of what it divides": lambda s: changed(
        s, "out/indptr", -1, lambda v: v[-1] - 1
    ),
    "entries in out/indptr, but": lambda s: changed(s, "out/indptr", 100, lambda v: v[100] - 1),
    "out/degrees/first_vertex must have descending": lambda s: changed(s, "out/degrees/value", 0, 1),
    r"plane 1 of out/planes/indices differs from out/indices at vertex 70": lambda s: changed(
        s, "out/planes/indices", int(s.read("out/planes/offsets")[1]) + 70, 0
    ),
    "out/planes/offsets must be": lambda s: changed(s, "out/planes/offsets", 1, 2),
    "vertices/order must be a permutation": lambda s: changed(s, layout.ORDER, 5, lambda v: v[6]),
    "element 70 of vertices/order is 77777, but must be at least 0 and below 900": lambda s: changed(s, layout.ORDER, 70, 77777),
    "element 66 of vertices/sorted_id is -1000000, but must be above": lambda s: changed(s, layout.SORTED_ID, 66, -(10**6)),
    "element 899 of vertices/sorted_id is 1000000, but must be below 950": lambda s: changed(s, layout.SORTED_ID, -1, 10**6),
    "does not give each vertex the id": lambda s: {layout.ORDER: swapped(s.read(layout.ORDER), 3, 4)},
    "of equal degree must ascend by id": lambda s: {layout.VERTEX_ID: swapped(s.read(layout.VERTEX_ID), -1, -2)},
    "out/indices has .* elements, but the attributes": lambda s: {"out/indices": s.read("out/indices")[:-1]},
}


@pytest.mark.parametrize("message", BROKEN)
def test_wrong_structure_is_named_although_checksums_agree(store, tmp_path, message):
    """A defect of a build, not of a disk."""
    bad = rewrite(store.url, tmp_path / "bad.zarr", arrays=BROKEN[message](store))
    with pytest.raises(CorruptStoreError, match=message):
        check_store(bad)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_isolated": 7}, "isolated"),
        ({"implied_ids": (0, 3)}, "implied ids"),
        ({"num_edges": 7}, "do not make"),
        ({"num_self_loops": 2}, "self-loops"),
    ],
)
def test_wrong_attributes_are_named(store, tmp_path, fields, message):
    """No graph has these numbers: the store does not open."""
    with pytest.raises(StoreError, match=message):
        rewrite(store.url, tmp_path / "bad.zarr", **fields)


def test_edges_stored_one_way_only_are_found(tmp_path):
    """Undirected: within out; directed: between out and in."""
    store = build(tmp_path / "g.zarr", directed=True, vertex_order="original")
    one_way = replace(store.attributes, directed=False, num_edges=store.attributes.num_stored_edges // 2)
    bad = CSRStore(store.url, one_way, folder=Path(store.url))
    problems = [*check_structure.check_structure(bad, 1, lambda _: None)]
    assert any("stored one way only" in one for one in problems)
    indices, indptr = store.read("in/indices"), store.read("in/indptr")
    row = int(np.flatnonzero(np.diff(indptr) == 1)[0])
    indices[indptr[row]] = (indices[indptr[row]] + 1) % store.num_rows
    bad = rewrite(store.url, tmp_path / "bad.zarr", arrays={"in/indices": indices})
    with pytest.raises(CorruptStoreError, match="in/indices does not hold the edges of out/indices"):
        check_store(bad)


def test_isolated_ids_that_have_edges_are_found(tmp_path):
    reference_build([1, 2, 9, 30], [2, 3, 9, 30], tmp_path / "g.zarr")
    store = open_graph(tmp_path / "g.zarr")
    bad = rewrite(store.url, tmp_path / "bad.zarr", arrays={layout.ISOLATED_ID: np.array([3, 30])})
    with pytest.raises(CorruptStoreError, match="vertices/isolated_id does not ascend, or holds an id of"):
        check_store(bad)


def test_categories_out_of_range_are_found(tmp_path):
    store = build(tmp_path / "g.zarr")
    m = store.attributes.num_stored_edges
    arrays = {"out/kind": np.arange(m, dtype=np.int32) % 3, **strings("columns/kind", ["a", "b", "c"])}
    check_store(rewrite(store.url, tmp_path / "k.zarr", arrays=arrays, columns={"kind": "string"}))
    arrays["out/kind"] = arrays["out/kind"] + 1
    with pytest.raises(CorruptStoreError, match="element 2 of out/kind is 3, but must be at least 0 and below 3"):
        check_store(rewrite(store.url, tmp_path / "k.zarr", arrays=arrays, columns={"kind": "string"}))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_remote_stores_are_checked_alike(store, tmp_path, codec):
    """Through a store of Zarr: here one of files in memory's stead."""
    from zarr.storage import LocalStore

    from oocgraph.store.ranges import open_store
    from oocgraph.store.remote import Location
    from oocgraph.store.remote_files import RemoteFiles

    packed = rewrite(store.url, tmp_path / "p.zarr", codec=codec)
    files = RemoteFiles(Location("memory://g"), open_store(LocalStore(tmp_path / "p.zarr")))
    remote = CSRStore("memory://g", packed.attributes, folder=None, files=files)
    report = check_store(remote)
    assert report.num_checksums == check_store(packed).num_checksums
    flip(tmp_path / "p.zarr/out/indices/c/0", 4099)
    with pytest.raises(CorruptStoreError, match=r"memory://g/out/indices/c/0: (page 1|chunk 0) of out/indices"):
        check_store(remote)
    (tmp_path / "p.zarr/out/indices/c/0").unlink()
    with pytest.raises(CorruptStoreError, match="is missing"):
        check_store(remote)
