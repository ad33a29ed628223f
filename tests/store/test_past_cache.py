"""Large arrays are written past the page cache where that is possible, and come out as those that go through it."""

from __future__ import annotations

import errno
import fcntl
import os
from itertools import pairwise

import numpy as np
import pytest

from oocgraph import append_edges, build_csr, open_graph
from oocgraph.errors import OutputError
from oocgraph.external_sort.workers import Spare
from oocgraph.store import files, writer
from oocgraph.store.files import PastCache
from oocgraph.store.writer import ArrayWriter, PlacedWriter
from oocgraph.types import PAGE_BYTES

pytestmark = pytest.mark.disk

PAGE_NUMBERS = PAGE_BYTES // 4


@pytest.fixture(autouse=True)
def small_writes(monkeypatch):
    """Chunks of four pages, of which each page is written past the cache, two at a time."""
    monkeypatch.setattr(writer, "CHUNK_BYTES", 4 * PAGE_BYTES)
    monkeypatch.setattr(files, "LEAST_DIRECT_BYTES", PAGE_BYTES)
    monkeypatch.setattr(files, "DIRECT_BYTES", 2 * PAGE_BYTES)


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """Files of arrays that are opened to be written: their names, and whether past the page cache; the test needs it to be possible."""
    if not os.major(tmp_path.stat().st_dev):
        pytest.skip("temporary files are on no block device")
    (tmp_path / "tried").write_bytes(b"")
    try:
        os.close(os.open(tmp_path / "tried", os.O_WRONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"this file system has no O_DIRECT ({error})")
    (tmp_path / "tried").unlink()
    real, found = os.open, []

    def noted(path, flags, *more, **named):
        if flags & os.O_WRONLY and os.path.basename(os.path.dirname(path)) == "c":
            found.append((os.path.basename(path), bool(flags & os.O_DIRECT)))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", noted)
    return found


def is_direct(fd):
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT)


def numbers(start, stop, *, in_pages):
    """Numbers that lie in pages of memory as they do in those of a file, or do not."""
    block = Spare(np.dtype(np.uint32)).get(stop - start, start if in_pages else start + 1)
    block[:] = np.arange(start, stop)
    return block


def appended(folder, sizes, past_cache, *, in_pages=False):
    """Write numbers in blocks; return the bytes of the files, and checksums."""
    array, next_number = ArrayWriter(folder, "values", np.uint32, "none", past_cache=past_cache), 0
    for size in sizes:
        array.append(numbers(next_number, next_number + size, in_pages=in_pages))
        next_number += size
    array.close()
    return _bytes(folder), array.checksums().tolist()


def placed(folder, cuts, past_cache, *, in_pages=False):
    """Write the blocks between some cuts, the last one first."""
    array = PlacedWriter(folder, "values", np.uint32, cuts[-1], past_cache=past_cache)
    for start, stop in reversed(list(pairwise(cuts))):
        array.write(start, numbers(start, stop, in_pages=in_pages))
    array.close()
    return _bytes(folder), array.checksums().tolist()


def _bytes(folder):
    return {path.name: path.read_bytes() for path in (folder / "values" / "c").iterdir()}


SIZES = (1, 5 * PAGE_NUMBERS, 3, 9 * PAGE_NUMBERS - 7, 2 * PAGE_NUMBERS, 11)


@pytest.mark.parametrize("in_pages", [False, True])
def test_blocks_of_any_size_give_the_same_files(tmp_path, monkeypatch, opened, in_pages):
    """Copied to where a page of memory begins, or written from where they are."""
    expected = appended(tmp_path / "through", SIZES, None)
    assert not any(is_direct for _, is_direct in opened)
    opened.clear()
    real, sizes = os.pwrite, []

    def noted(fd, data, offset):
        if is_direct(fd) and isinstance(data.obj, np.ndarray):
            sizes.append(len(data))
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", noted)
    assert appended(tmp_path / "past", SIZES, PastCache(), in_pages=in_pages) == expected
    assert (sum(sizes) > 8 * PAGE_BYTES) == in_pages
    assert ("0", True) not in opened  # small arrays stay in the cache
    assert {("1", True), ("2", True), ("3", True)} <= set(opened)


@pytest.mark.parametrize("in_pages", [False, True])
def test_places_in_any_order_give_the_same_files(tmp_path, opened, in_pages):
    cuts = (0, 9, 5 * PAGE_NUMBERS + 1, 8 * PAGE_NUMBERS, 8 * PAGE_NUMBERS + 5, 13 * PAGE_NUMBERS + 3)
    expected = placed(tmp_path / "through", cuts, None)
    opened.clear()
    assert placed(tmp_path / "past", cuts, PastCache(), in_pages=in_pages) == expected
    assert {("1", True), ("2", True)} <= set(opened)


@pytest.mark.parametrize("fails", ["open", "pwrite"])
def test_without_direct_writes_the_cache_takes_all(tmp_path, monkeypatch, opened, fails):
    """The file system says so when a file is opened, or when it is written."""
    expected, real, asked = appended(tmp_path / "through", SIZES, None), getattr(os, fails), []

    def refusing(*arguments, **named):
        if arguments[1] & os.O_DIRECT if fails == "open" else is_direct(arguments[0]):
            asked.append(arguments)
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(*arguments, **named)

    monkeypatch.setattr(os, fails, refusing)
    assert appended(tmp_path / "past", SIZES, PastCache()) == expected
    assert len(asked) == 1


def test_without_a_block_device_the_cache_takes_all(tmp_path, monkeypatch, opened):
    monkeypatch.setattr(os, "major", lambda device: 0)
    expected = appended(tmp_path / "through", SIZES, None)
    assert appended(tmp_path / "past", SIZES, PastCache()) == expected
    assert not any(is_direct for _, is_direct in opened)


@pytest.mark.parametrize("in_pages", [False, True])
@pytest.mark.parametrize("taken", [0, PAGE_BYTES // 2, PAGE_BYTES + 512])
def test_what_the_system_does_not_take_goes_through_the_cache(tmp_path, monkeypatch, opened, taken, in_pages):
    """A disk that is nearly full takes less than it is given, and tells why at the next write."""
    expected, real = appended(tmp_path / "through", SIZES, None), os.pwrite

    def short(fd, data, offset):
        if not is_direct(fd):
            return real(fd, data, offset)
        return real(fd, data[: taken // PAGE_BYTES * PAGE_BYTES], offset) and taken

    monkeypatch.setattr(os, "pwrite", short)
    assert appended(tmp_path / "past", SIZES, PastCache(), in_pages=in_pages) == expected


def test_a_full_disk_ends_a_build(tmp_path, monkeypatch, opened):
    """With its message and without remains, wherever writes past the cache meet with it."""
    edges, real, left = np.random.default_rng(1).integers(0, 2000, (2, 40_000)), os.pwrite, [0]

    def full(fd, data, offset):
        if is_direct(fd):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    for left[0] in (0, 3, 9):
        with pytest.raises(OutputError, match="disk is full"):
            build_csr(tuple(edges), tmp_path / "g")
        assert list(tmp_path.iterdir()) == []
    left[0] = 1 << 20
    build_csr(tuple(edges), tmp_path / "g")
    assert left[0] < 1 << 20
    assert open_graph(tmp_path / "g").num_vertices == 2000


@pytest.mark.parametrize("directed", [False, True])
def test_rows_are_written_from_where_they_are(tmp_path, monkeypatch, opened, directed):
    """By builds, and by appends those of lists sorted by degree: the others may turn out to be shorter."""
    real, direct = os.pwrite, {"in": [0, 0], "out": [0, 0]}

    def noted(fd, data, offset):
        array = os.readlink(f"/proc/self/fd/{fd}").split("/")[-4:-2]
        if array[1] == "indices" and array[0] in direct and is_direct(fd):
            direct[array[0]][isinstance(data.obj, np.ndarray)] += len(data)
        return real(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", noted)
    edges = np.random.default_rng(1).integers(0, 3000, (2, 100_000))
    build_csr(tuple(edges[:, 1000:]), tmp_path / "g", directed=directed)
    for copied, written in [direct["out"], *([direct["in"]] if directed else [])]:
        assert written > 20 * copied
    direct |= {"in": [0, 0], "out": [0, 0]}
    append_edges(tmp_path / "g", tuple(edges[:, :1000]))
    copied, written = direct["in" if directed else "out"]
    assert written > 20 * copied
