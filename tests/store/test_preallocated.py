"""Arrays that are written in any order hold the bytes, metadata and checksums that a writer in order gives them."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.store import preallocated, writer
from oocgraph.store.arrays import PlainArray
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.writer import ArrayWriter
from tests.partition.cusp_cases import assert_same_bytes
from tests.processes import open_files


def make(folder, values, cuts=(), order=None):
    """Write values in pieces, in an order."""
    array = PreallocatedArray(folder, "out/values", values.dtype, values.size)
    array.create()
    pieces = np.split(np.arange(values.size), sorted(cuts))
    for k in order if order is not None else range(len(pieces)):
        if pieces[k].size:
            array.write(int(pieces[k][0]), values[pieces[k]])
    return array


@given(
    st.integers(0, 6000), st.lists(st.integers(0, 6000), max_size=6), st.randoms(use_true_random=False),
    st.sampled_from(["<i8", "<u4", "<i2", "u1", "<f8"]), st.sampled_from([1 << 12, 1 << 13, 1 << 20]),
)  # fmt: skip
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_same_files_as_a_writer_in_order(tmp_path_factory, monkeypatch, size, cuts, random, dtype, chunk_bytes):
    for module in (preallocated, writer):
        monkeypatch.setattr(module, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(preallocated, "SEAL_BYTES", 1 << 12)
    folder = tmp_path_factory.mktemp("arrays")
    values = np.random.default_rng(size).integers(0, 100, size).astype(dtype)
    cuts = [cut for cut in cuts if cut <= size]
    order = random.sample(range(len(cuts) + 1), len(cuts) + 1)
    make(folder / "any", values, cuts, order).seal()
    whole = ArrayWriter(folder / "one", "out/values", dtype, "none")
    whole.append(values)
    whole.close()
    sums = ArrayWriter(folder / "one", "checksums/out/values", np.uint32, "none")
    sums.append(whole.checksums())
    sums.close()
    assert_same_bytes(folder / "one", folder / "any")


def test_values_are_converted_to_the_dtype_of_the_array(tmp_path):
    array = PreallocatedArray(tmp_path, "a", np.uint32, 3)
    array.create()
    array.write(0, np.array([1, 2, 3], np.int64))
    assert PlainArray(tmp_path, "a", array.dtype, 3, array.chunk_length).read(0, 3).tolist() == [1, 2, 3]


@pytest.mark.parametrize(("start", "size"), [(-1, 1), (0, 5), (4, 1), (3, 2)])
def test_outside_of_the_array(tmp_path, start, size):
    array = make(tmp_path, np.arange(4))
    with pytest.raises(IndexError, match=r"out/values: elements -?\d+ to \d are not within its 4"):
        array.write(start, np.zeros(size, np.int64))
    array.write(4, np.zeros(0, np.int64))


def test_creating_again_keeps_what_is_written(tmp_path):
    """A worker that was given up, and its work done by another, may still come to it."""
    array = make(tmp_path, np.arange(9))
    array.create()
    assert PlainArray(tmp_path, array.name, array.dtype, 9, array.chunk_length).read(0, 9).tolist() == list(range(9))


def test_short_writes_go_on(tmp_path, monkeypatch):
    """The kernel may write less than it was told."""
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:7], offset))
    array = make(tmp_path, np.arange(100))
    assert PlainArray(tmp_path, array.name, array.dtype, 100, array.chunk_length).read(0, 100).tolist() == list(range(100))


def test_full_disk_is_told_and_no_file_stays_open(tmp_path, monkeypatch):
    array = make(tmp_path, np.arange(4))

    def full(fd, data, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        array.write(0, np.arange(4))
    assert open_files(tmp_path) == []
