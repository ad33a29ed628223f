"""The result store of a search: what a resumed search may rely on, and what readers see."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil

import numpy as np
import pytest
import zarr

from oocgraph.errors import CorruptStoreError, OutputError, StoreError
from oocgraph.store import search_store
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import open_graph
from oocgraph.store.search_log import LogWriter
from oocgraph.store.search_record import Bounds, Record
from oocgraph.store.search_store import SearchStore
from tests.processes import open_files
from tests.reference_build import reference_build
from tests.stores import rewrite, string_store

BOUNDS = [Bounds(num_owned=3, num_vertices=10_000)] * 2
NONE = np.empty(0, np.uint32)


@pytest.fixture
def store(tmp_path):
    return SearchStore.create(tmp_path / "r.zarr", {"graph": "/graphs/g.zarr", "num_partitions": 2, "sources": np.array([3, 4])})


def record(step, epoch=0):
    """Make a record whose parents tell step and epoch."""
    found = np.arange(3, dtype=np.uint32)
    return Record(step, step + 1, NONE, NONE, np.empty(0, np.int32), False, found, np.full(3, 100 * epoch + step, np.uint32))


def write_log(store, partition, epoch, steps):
    with LogWriter(store.log_path(partition, epoch)) as log:
        for step in steps:
            log.append(record(step, epoch))
    return store.log_path(partition, epoch)


def write_parts(store, value=0):
    for p in range(store.num_partitions):
        store.write_part(p, [(np.full(5, value, np.uint8), np.full(5, value, np.uint32))])


def told(records):
    """Return (step, epoch) of each record."""
    return [(one.step, int(one.parent[0]) // 100) for one in records]


def fail_with(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


def test_fields_are_read_back_as_they_were_written(store):
    """NumPy's numbers become plain ones; a pickled store needs no file."""
    store.update(epoch=np.int64(2), progress=(1, 2))
    again = SearchStore.open(store.path)
    assert again.fields == store.fields
    assert again.fields["sources"] == [3, 4]
    assert (again.fields["epoch"], again.fields["progress"], again.complete) == (2, [1, 2], False)
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.path, copy.fields) == (store.path, store.fields)


def test_last_step_is_the_last_that_every_partition_has(store):
    assert store.last_step(BOUNDS) == -1
    write_log(store, 0, 0, [0, 1, 2])
    assert store.last_step(BOUNDS) == -1
    write_log(store, 1, 0, [0, 1])
    assert store.last_step(BOUNDS) == 1
    write_log(store, 1, 1, [2, 3])
    assert store.last_step(BOUNDS) == 2


def test_step_that_is_missing_in_between_ends_the_count(store):
    write_log(store, 0, 0, [0, 1, 3])
    write_log(store, 1, 0, [0, 1, 2, 3])
    assert store.last_step(BOUNDS) == 1


def test_newest_epoch_is_preferred_and_older_ones_fill_in(store):
    """The old writer, thought lost, has gone on with steps that the new one has too."""
    write_log(store, 0, 0, [0, 1, 2, 3, 4, 6])
    write_log(store, 0, 2, [2, 3])
    write_log(store, 0, 10, [3, 5])
    assert store.epochs(0) == [0, 2, 10]
    assert told(store.records(0, 6, BOUNDS[0])) == [(0, 0), (1, 0), (2, 2), (3, 10), (4, 0), (5, 10), (6, 0)]
    assert told(store.records(0, 1, BOUNDS[0])) == [(0, 0), (1, 0)]
    assert told(store.records(0, -1, BOUNDS[0])) == []


def test_torn_record_of_the_newest_epoch_is_taken_from_an_older_one(store):
    write_log(store, 1, 0, [0, 1, 2])
    write_log(store, 0, 0, [0, 1, 2])
    newest = write_log(store, 0, 1, [1, 2])
    os.truncate(newest, newest.stat().st_size - 1)
    assert told(store.records(0, 2, BOUNDS[0])) == [(0, 0), (1, 1), (2, 0)]
    assert store.last_step(BOUNDS) == 2


def test_torn_last_record_is_not_counted(store):
    for p in range(2):
        path = write_log(store, p, 0, [0, 1])
    os.truncate(path, path.stat().st_size - 1)
    assert store.last_step(BOUNDS) == 0
    with pytest.raises(CorruptStoreError, match="whole record of step 1; remove the result store"):
        list(store.records(1, 1, BOUNDS[1]))


def test_wrong_parents_are_found_when_asked_for(store):
    """A crashed machine may lose bytes anywhere: the quick count does not look at parents, the thorough one does."""
    for p in range(2):
        path = write_log(store, p, 0, [0, 1])
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert (store.last_step(BOUNDS), store.last_step(BOUNDS, parents=True)) == (1, 0)
    assert [one.step for one in store.records(1, 1, BOUNDS[1], parents=False)] == [0, 1]


def test_records_leave_no_file_open(store):
    """Neither at the end, nor when the reader stops early."""
    write_log(store, 0, 0, range(10))
    write_log(store, 0, 1, range(5))
    records = store.records(0, 9, BOUNDS[0])
    next(records)
    assert open_files(store.path)
    records.close()
    list(store.records(0, 9, BOUNDS[0]))
    assert open_files(store.path) == []


def test_strange_names_are_no_epochs(store):
    write_log(store, 0, 3, [0])
    for name in ("x.log", "4.txt", ".5.log", "-1.log", "06.log", "\u0663.log", "1" * 200 + ".log"):
        (store.path / "log" / "0" / name).touch()
    assert store.epochs(0) == [3]


@pytest.mark.parametrize(("level", "parent"), [(np.uint8, np.uint32), (np.int32, np.int64)])
@pytest.mark.parametrize("length", [0, 5])
def test_parts_are_arrays_that_any_zarr_reader_opens(store, level, parent, length):
    store.write_part(0, [(np.arange(length, dtype=level), np.arange(length, dtype=parent))])
    store.write_part(1, [(np.arange(1, dtype=level), np.arange(1, dtype=parent))])
    store.finish(depth=3)
    group = zarr.open_group(str(store.path), mode="r")
    assert group.attrs["oocgraph_search"]["depth"] == 3
    assert sorted(group["parts"].group_keys()) == ["0", "1"]
    for name, dtype in (("level", level), ("parent", parent)):
        assert group[f"parts/0/{name}"].dtype == dtype
        np.testing.assert_array_equal(group[f"parts/0/{name}"][:], np.arange(length))
        np.testing.assert_array_equal(store.part(0, name).read(0, length), np.arange(length))


def test_finished_store_has_no_logs_left(store):
    write_log(store, 0, 0, [0])
    write_parts(store)
    store.finish()
    assert {path.name for path in store.path.iterdir()} == {"zarr.json", "parts"}
    SearchStore.open(store.path).require_complete()


def test_search_is_not_finished_before_each_part_is_there(store):
    store.write_part(0, [(np.zeros(1, np.uint8), np.zeros(1, np.uint32))])
    with pytest.raises(StoreError, match="partition 1 has no level and parent yet"):
        store.finish()
    with pytest.raises(StoreError, match=rf"not finished; go on with `oocgraph bfs /graphs/g.zarr --resume {store.path}`"):
        store.require_complete()
    with pytest.raises(CorruptStoreError, match="parts/1: array level is missing"):
        store.part(1, "level")


def test_part_is_replaced_while_the_search_runs_and_not_after(store):
    """A writer that comes late, with fields from before, finds the store complete."""
    stale = pickle.loads(pickle.dumps(store))
    write_parts(store, 1)
    write_parts(store, 2)
    assert store.part(0, "level").read(0, 5).tolist() == [2] * 5
    store.finish()
    write_parts(stale, 3)
    assert store.part(0, "level").read(0, 5).tolist() == [2] * 5


def test_parts_that_do_not_agree_are_refused(store):
    for level, parent in [(np.zeros(2, np.uint8), np.zeros(3, np.uint32)), (np.zeros(2, np.int64), np.zeros(2, np.uint32))]:
        with pytest.raises(ValueError, match="level is"):
            store.write_part(0, [(level, parent)])


def test_full_disk_leaves_the_old_part_and_the_old_fields(store, monkeypatch):
    write_parts(store, 1)
    fields = dict(store.fields)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail_with(errno.ENOSPC))
        with pytest.raises(OutputError, match=r"parts/0: the disk is full.*resume="):
            write_parts(store, 2)
    assert store.part(0, "parent").read(0, 5).tolist() == [1] * 5
    assert not list((store.path / "unfinished").iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_with(errno.ENOSPC))
        with pytest.raises(OutputError, match=r"zarr\.json: the disk is full"):
            store.update(depth=9)
    assert store.fields == fields == SearchStore.open(store.path).fields
    assert {path.name for path in store.path.iterdir()} == {"zarr.json", "parts", "unfinished"}


def test_path_that_cannot_be_made_is_told_with_the_remedy(store, tmp_path, monkeypatch):
    fields = {"num_partitions": 1}
    with pytest.raises(OutputError, match=r"exists already; go on with its search with resume="):
        SearchStore.create(store.path, fields)
    with pytest.raises(OutputError, match=r"there is no folder .*/no; make it first"):
        SearchStore.create(tmp_path / "no" / "r.zarr", fields)
    with pytest.raises(OutputError, match="local file systems only; give a path"):
        SearchStore.create("s3://bucket/r.zarr", fields)
    monkeypatch.setattr(search_store.Path, "mkdir", fail_with(errno.EACCES))
    with pytest.raises(OutputError, match=r"new\.zarr: no permission to write .*choose another"):
        SearchStore.create(tmp_path / "new.zarr", fields)
    assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]


def test_relative_path_is_made_absolute(tmp_path, monkeypatch):
    """Workers have other working folders."""
    monkeypatch.chdir(tmp_path)
    assert SearchStore.create("r.zarr", {"num_partitions": 1}).path == tmp_path / "r.zarr"
    assert SearchStore.open("r.zarr").path == tmp_path / "r.zarr"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 3}, "format 3 is newer than format 2.*upgrade"),
        ({"format": "x"}, "damaged"),
        ({"num_partitions": 0}, "damaged"),
        ({"complete": None}, "damaged"),
        ({"num_partitions": 10**9}, r"damaged \(num_partitions\)"),
        ({"num_partitions": True}, "damaged"),
        ({"epoch": "3"}, r"damaged \(epoch\)"),
        ({"epoch": -2}, "damaged"),
        ({"few": [1]}, r"damaged \(few\)"),
        ({"few": [-1, 5]}, "damaged"),
        ({"shares": [0, 1]}, r"damaged \(shares\)"),
        ({"shares": [1, 1 << 40]}, r"damaged \(shares\)"),
        ({"depth": 1.5}, "damaged"),
        ({"seconds": float("inf")}, "damaged"),
        ({"isolated_sources": "all"}, "damaged"),
    ],
)
def test_store_that_is_newer_or_damaged_does_not_open(store, changes, message):
    metadata = json.loads((store.path / "zarr.json").read_text())
    metadata["attributes"]["oocgraph_search"].update(changes)
    (store.path / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(StoreError, match=message):
        SearchStore.open(store.path)


def test_unequal_shares_are_recorded_and_refused_by_older_readers(store):
    """A store without them, as of older versions, has equal ones; format 2 stands for unequal ones."""
    assert (store.shares, SearchStore.open(store.path).field("format")) == (None, 1)
    store.record_shares((24, 8))
    assert (SearchStore.open(store.path).shares, SearchStore.open(store.path).field("format")) == ((24, 8), 2)
    store.record_shares(None)
    assert (SearchStore.open(store.path).shares, SearchStore.open(store.path).field("format")) == (None, 1)
    store.record_shares((24, 8, 1))
    with pytest.raises(StoreError, match=r"damaged \(shares\)"):
        SearchStore.open(store.path).shares  # noqa: B018 - checked where it is asked for


def test_what_is_no_result_store_does_not_open(tmp_path):
    reference_build([0, 1], [1, 2], tmp_path / "g.zarr")
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name in ("g.zarr", "file", "folder"):
        with pytest.raises(StoreError, match=f"{name}: not the result store of a search"):
            SearchStore.open(tmp_path / name)
    with pytest.raises(StoreError, match=r"no such folder; a search is started there with `oocgraph bfs"):
        SearchStore.open(tmp_path / "none")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"attributes": {"oocgraph_search": 3}}', '{"attributes": {"oocgraph_search": {}}}', '{"attributes": []}', "\udcff"],
    ids=["nested", "number", "empty", "list", "no text"],
)
def test_damaged_metadata_is_told(store, text):
    (store.path / "zarr.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StoreError, match=r"r\.zarr: not the result store of a search"):
        SearchStore.open(store.path)


def test_metadata_that_is_no_file_or_has_no_end_is_not_read(store):
    path = store.path / "zarr.json"
    os.truncate(path, 2**40)
    with pytest.raises(StoreError, match="not the result store"):
        SearchStore.open(store.path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="not the result store"):
        SearchStore.open(store.path)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": []}, {"shape": [-1]}, {"shape": ["5"]}, {"shape": [2**60]}, {"data_type": "float64"}, {"data_type": ["uint8"]},
        {"chunk_grid": {"configuration": {"chunk_shape": [0]}}}, {"chunk_grid": None},
    ],
)  # fmt: skip
def test_damaged_metadata_of_a_part_is_told(store, changes):
    write_parts(store)
    path = store.path / "parts" / "1" / "level" / "zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(CorruptStoreError, match=r"parts/1: array level is missing or its zarr.json is damaged .*search again"):
        store.part(1, "level")


def test_a_part_that_comes_late_does_not_bring_a_removed_store_back(store):
    shutil.rmtree(store.path)
    with pytest.raises(OutputError):
        write_parts(store)
    assert not store.path.exists()


def test_fingerprint_tells_graphs_apart_and_copies_not(tmp_path):
    """The same edges built elsewhere, in another order, are the same graph; another edge, order or direction is not."""
    edges = np.array([0, 1, 2, 3, 4]), np.array([1, 2, 3, 4, 0])
    reference_build(*edges, tmp_path / "a", source="here")
    reference_build(edges[1], edges[0], tmp_path / "b", source="there")
    reference_build([0, 1, 2, 3, 4], [1, 2, 3, 4, 1], tmp_path / "other")
    reference_build(*edges, tmp_path / "directed", directed=True)
    reference_build(*edges, tmp_path / "original", vertex_order="original")
    reference_build([], [], tmp_path / "empty")
    string_store(tmp_path / "strings", ["a", "b"], ["b", "c"])
    rewrite(tmp_path / "a", tmp_path / "packed", codec="zstd")
    names = ("a", "b", "other", "directed", "original", "empty", "strings", "packed")
    prints = {name: graph_fingerprint(open_graph(tmp_path / name)) for name in names}
    assert prints["a"] == prints["b"]
    assert len(set(prints.values())) == len(prints) - 1
