"""The log of a partition's steps: what is torn, wrong or late is never taken for a record."""

from __future__ import annotations

import dataclasses
import errno
import logging
import os

import numpy as np
import pytest

from oocgraph.errors import CorruptStoreError, OutputError
from oocgraph.store import search_record
from oocgraph.store.search_log import LogWriter, read_records
from oocgraph.store.search_record import Bounds, Record

BOUNDS = Bounds(num_owned=128, num_vertices=1000)
ARRAYS = ("early_vertex", "early_parent", "early_level", "found", "parent")


def record(step, *, num_found=3, num_early=2, dense=False, dtype=np.uint32):
    """Make a record whose arrays tell its step."""
    found = np.arange(num_found, dtype=dtype) + dtype(step)
    return Record(
        step=step,
        level=step + 5,
        early_vertex=np.arange(num_early, dtype=dtype),
        early_parent=np.full(num_early, 7 + step, dtype),
        early_level=np.arange(num_early, dtype=np.int32),
        dense=dense,
        found=np.full(2, 2**63 + step, np.uint64) if dense else found,
        parent=found * dtype(2),
    )


RECORDS = [record(0, num_found=0, num_early=0), record(1), record(2, dense=True), record(4, num_found=1, num_early=0)]


def write(path, records=RECORDS):
    """Write a log; returns where each record ends."""
    with LogWriter(path) as log:
        return np.cumsum([log.append(one) for one in records]).tolist()


def assert_same(read, written, *, parents=True):
    assert len(read) == len(written)
    for a, b in zip(read, written, strict=True):
        assert (a.step, a.level, a.dense) == (b.step, b.level, b.dense)
        for name in ARRAYS if parents else ("early_vertex", "early_level", "found"):
            assert getattr(a, name).dtype == getattr(b, name).dtype
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_records_are_read_as_they_were_written(tmp_path, dtype):
    records = [record(0, dtype=dtype), record(1, dtype=dtype, dense=True, num_early=3), record(2, dtype=dtype, num_found=100)]
    ends = write(tmp_path / "a" / "b" / "0.log", records)
    assert_same(list(read_records(tmp_path / "a" / "b" / "0.log", BOUNDS)), records)
    assert (tmp_path / "a" / "b" / "0.log").stat().st_size == ends[-1]


def test_parents_are_skipped_when_not_asked_for(tmp_path):
    """Then a record's parents are empty, and their bytes are not even looked at."""
    ends = write(tmp_path / "0.log")
    raw = bytearray((tmp_path / "0.log").read_bytes())
    raw[ends[1] - 1] ^= 1  # the last parent of the second record
    (tmp_path / "0.log").write_bytes(raw)
    read = list(read_records(tmp_path / "0.log", BOUNDS, parents=False))
    assert_same(read, RECORDS, parents=False)
    assert all(not one.parent.size and not one.early_parent.size for one in read)
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), RECORDS[:1])


def test_empty_log_has_no_records(tmp_path, caplog):
    LogWriter(tmp_path / "0.log").close()
    assert list(read_records(tmp_path / "0.log", BOUNDS)) == []
    assert not caplog.records


@pytest.mark.parametrize("parents", [True, False])
def test_log_cut_anywhere_gives_the_records_before_the_cut(tmp_path, caplog, parents):
    """A record whose parents are torn is torn, whether they are asked for or not; the warning names file and byte."""
    ends = write(tmp_path / "0.log")
    raw, cut = (tmp_path / "0.log").read_bytes(), tmp_path / "cut.log"
    for length in range(len(raw)):
        cut.write_bytes(raw[:length])
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            read = list(read_records(cut, BOUNDS, parents=parents))
        whole = sum(end <= length for end in ends)
        assert_same(read, RECORDS[:whole], parents=parents)
        told = [] if length in [0, *ends] else [[0, *ends][whole]]
        assert len(caplog.messages) == len(told)
        assert all(f"{cut}: the record at byte {byte} " in caplog.messages[0] for byte in told)


@pytest.mark.parametrize("parents", [True, False])
def test_any_wrong_byte_ends_the_log_before_its_record(tmp_path, parents):
    """Each byte is flipped in turn; without parents only a flip among the parents goes unnoticed, and does nothing."""
    ends = write(tmp_path / "0.log")
    raw = (tmp_path / "0.log").read_bytes()
    unread = set()
    for one, end in zip(RECORDS, ends, strict=True):
        unread |= set(range(end - one.parent.nbytes - one.early_parent.nbytes, end)) if not parents else set()
    for at in range(len(raw)):
        wrong = bytearray(raw)
        wrong[at] ^= 0x5A
        (tmp_path / "wrong.log").write_bytes(wrong)
        whole = len(RECORDS) if at in unread else sum(end <= at for end in ends)
        assert_same(list(read_records(tmp_path / "wrong.log", BOUNDS, parents=parents)), RECORDS[:whole], parents=parents)


def test_zeros_and_garbage_after_the_last_record_are_no_record(tmp_path):
    """A machine crash may leave a file of the right length with zeros at its end."""
    for tail in (bytes(4096), b"\xff" * 4096, os.urandom(4096)):
        path = tmp_path / f"{tail[:4].hex()}.log"
        write(path)
        with path.open("ab") as file:
            file.write(tail)
        assert_same(list(read_records(path, BOUNDS)), RECORDS)


def test_impossible_sizes_under_a_right_checksum_are_refused(tmp_path):
    """A header of another version, or one that asks for more than the file has, allocates nothing."""
    for version, itemsize, counts in [(2, 4, (0, 0, 0)), (1, 3, (0, 0, 0)), (1, 4, (-1, 0, 0)), (1, 4, (2**40, 2**40, 2**40))]:
        raw = np.zeros(64, np.uint8)
        search_record._HEADER.pack_into(raw.data, 0, b"OOCL", version, 0, itemsize, 0, 0, *counts, 0, 0, 0)
        raw[-4:].view("<u4")[0] = search_record._crc32c(raw[:-4])
        (tmp_path / "0.log").write_bytes(raw.tobytes())
        assert list(read_records(tmp_path / "0.log", BOUNDS)) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"found": np.array([0, 1, 128], np.uint32)}, "a vertex that is none of the partition's 128"),
        ({"found": np.array([0, 1, -1], np.int64)}, "a vertex that is none"),
        ({"early_vertex": np.array([0, 2**32 - 1], np.uint32)}, "a vertex that is none"),
        ({"parent": np.array([0, 1, 1000], np.uint32)}, "a parent that is none of 1,000"),
        ({"early_parent": np.array([0, 1000], np.uint32)}, "a parent that is none"),
        ({"early_level": np.array([0, -1], np.int32)}, "at a level beyond its own, 6"),
        ({"early_level": np.array([0, 7], np.int32)}, "at a level beyond its own, 6"),
        ({"level": 1001}, "has level 1001"),
        ({"level": -1}, "has level -1"),
        ({"found": np.arange(129, dtype=np.uint32), "parent": np.zeros(129, np.uint32)}, "too many"),
        ({"dense": True, "found": np.zeros(3, np.uint64)}, "a vertex that is none"),
        ({"dense": True, "found": np.zeros(1, np.uint64)}, "a vertex that is none"),
    ],
)
def test_a_record_that_names_what_is_not_there_is_wrong(tmp_path, caplog, changes, reason):
    """All of its checksums are right: they would be, if somebody wished to have a search write outside its arrays."""
    dtype = changes.get("found", np.empty(0, np.uint32)).dtype if not changes.get("dense") else np.dtype(np.uint32)
    write(tmp_path / "0.log", [dataclasses.replace(record(1, dtype=dtype.type), **changes)])
    with caplog.at_level(logging.WARNING):
        assert list(read_records(tmp_path / "0.log", BOUNDS)) == []
    assert reason in caplog.text


def test_bits_beyond_the_last_vertex_are_wrong(tmp_path):
    for num_owned, records in ((127, 0), (128, 1)):
        write(tmp_path / f"{num_owned}.log", [record(1, dense=True)])
        assert len(list(read_records(tmp_path / f"{num_owned}.log", Bounds(num_owned, 1000)))) == records


def test_a_sparse_file_is_not_read_as_a_record(tmp_path):
    """It may claim to be as long as the header likes: what bounds an array is the partition."""
    raw = np.zeros(64, np.uint8)
    search_record._HEADER.pack_into(raw.data, 0, b"OOCL", 1, 0, 4, 0, 0, 0, 2**38, 2**38, 0, 0, 0)
    raw[-4:].view("<u4")[0] = search_record._crc32c(raw[:-4])
    (tmp_path / "0.log").write_bytes(raw.tobytes())
    os.truncate(tmp_path / "0.log", 2**42)
    assert list(read_records(tmp_path / "0.log", BOUNDS)) == []


def test_a_pipe_in_place_of_a_log_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "0.log")
    assert list(read_records(tmp_path / "0.log", BOUNDS)) == []


def test_log_is_made_once(tmp_path):
    """A writer that comes late cannot append to a log that exists."""
    write(tmp_path / "0.log")
    with pytest.raises(OutputError, match=r"exists already.*new epoch"):
        LogWriter(tmp_path / "0.log")
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), RECORDS)


def test_short_writes_are_continued(tmp_path, monkeypatch):
    writev = os.writev
    for most in (1, 7, 64, 100):
        monkeypatch.setattr(os, "writev", lambda fd, pieces, most=most: writev(fd, [pieces[0][:most]]))
        write(tmp_path / f"{most}.log")
        assert_same(list(read_records(tmp_path / f"{most}.log", BOUNDS)), RECORDS)


def full_disk(monkeypatch, *, after):
    """Make the disk full after so many bytes."""
    writev, left = os.writev, [after]

    def limited(fd, pieces):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = writev(fd, [b"".join(pieces)[: left[0]]])
        left[0] -= done
        return done

    monkeypatch.setattr(os, "writev", limited)


def test_full_disk_leaves_the_records_before_and_the_writer_may_try_again(tmp_path, monkeypatch):
    log = LogWriter(tmp_path / "0.log")
    for one in RECORDS[:2]:
        log.append(one)
    with monkeypatch.context() as patch:
        full_disk(patch, after=70)
        with pytest.raises(OutputError, match=r"0\.log: the disk is full.*free some space.*resume="):
            log.append(RECORDS[2])
    assert (tmp_path / "0.log").stat().st_size == log.num_bytes
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), RECORDS[:2])
    for one in RECORDS[2:]:
        log.append(one)
    log.close()
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), RECORDS)


def test_writer_that_cannot_take_back_half_a_record_is_closed(tmp_path, monkeypatch):
    """Otherwise the next record would stand behind torn bytes, where nobody finds it."""
    log = LogWriter(tmp_path / "0.log")
    log.append(RECORDS[0])

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    full_disk(monkeypatch, after=70)
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(OutputError, match="disk is full"):
        log.append(RECORDS[1])
    with pytest.raises(OutputError, match=r"0\.log: this log is closed"):
        log.append(RECORDS[1])
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), RECORDS[:1])
    log.close()


def test_interrupted_append_leaves_no_half_record(tmp_path, monkeypatch):
    log, writev = LogWriter(tmp_path / "0.log"), os.writev

    def interrupted(fd, pieces):
        writev(fd, pieces[:1])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append(RECORDS[1])
    log.append(RECORDS[1])
    log.close()
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), RECORDS[1:2])


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.EACCES, "result_store"), (errno.EROFS, "result_store"), (errno.EDQUOT, "free some space"), (errno.EIO, "mend that")],
)
def test_log_that_cannot_be_made_names_the_remedy(tmp_path, monkeypatch, number, remedy):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(OutputError, match=remedy) as caught:
        LogWriter(tmp_path / "0.log")
    assert str(tmp_path / "0.log") in str(caught.value)


def test_missing_log_is_told(tmp_path):
    with pytest.raises(CorruptStoreError, match=r"0\.log: this log cannot be read"):
        list(read_records(tmp_path / "0.log", BOUNDS))


def test_steps_ascend(tmp_path):
    log = LogWriter(tmp_path / "0.log")
    log.append(record(3))
    for step in (3, 2):
        with pytest.raises(ValueError, match=f"step {step} cannot follow step 3"):
            log.append(record(step))
    log.close()
    with pytest.raises(OutputError, match="closed"):
        log.append(record(4))


@pytest.mark.parametrize(
    "changes",
    [
        {"parent": np.zeros(3, np.float64)},
        {"parent": np.zeros(2, np.uint32)},
        {"early_parent": np.zeros(1, np.uint32)},
        {"early_level": np.zeros(2, np.int64)},
        {"found": np.zeros(3, np.int64)},
        {"found": np.zeros((3, 1), np.uint32)},
        {"dense": True},
    ],
)
def test_arrays_that_do_not_agree_are_refused_before_anything_is_written(tmp_path, changes):
    with LogWriter(tmp_path / "0.log") as log, pytest.raises(ValueError, match=r"\w"):
        log.append(dataclasses.replace(record(1), **changes))
    assert (tmp_path / "0.log").stat().st_size == 0


def test_strided_arrays_are_written_as_they_read(tmp_path):
    one = dataclasses.replace(record(1), found=np.arange(6, dtype=np.uint32)[::2], parent=np.arange(6, dtype=np.uint32)[::-2])
    write(tmp_path / "0.log", [one])
    assert_same(list(read_records(tmp_path / "0.log", BOUNDS)), [one])
