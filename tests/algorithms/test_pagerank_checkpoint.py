"""A run of PageRank goes on from its checkpoint, to the last bit; other runs' and damaged ones are refused."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oocgraph import ConvergenceError, CorruptStoreError, OutputError, open_graph
from oocgraph.store import rank_checkpoint
from oocgraph.store.rank_checkpoint import RankCheckpoint
from tests.every_knob import rank as pagerank
from tests.reference_build import reference_build
from tests.stores import random_edges

ROOT = Path(__file__).parents[2]
END = {"tol": 1e-9, "max_iter": 500}


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def store(tmp_path):
    src, dst = random_edges(8)
    reference_build(src, dst, tmp_path / "g", directed=True, implied=(0, 230))
    return open_graph(tmp_path / "g")


def killed_after(iterations):
    """Return a progress that ends the run once it has done so many iterations."""

    def progress(_phase, done, _total):
        if done == iterations:
            raise KilledError

    return progress


def begun(store, folder, *, iterations=12, **options):
    """Leave the checkpoint of a run that ended too early."""
    with pytest.raises(KilledError):
        pagerank(store, checkpoint=folder, progress=killed_after(iterations), **END, **options)


@pytest.mark.parametrize("personalization", [None, {3: 1.0, 229: 2.0}])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_run_goes_on_with_the_same_ranks(store, tmp_path, personalization, precision):
    options = {"personalization": personalization, "precision": precision, "tol": 1e-7, "max_iter": 500}
    whole = pagerank(store, **options)
    with pytest.raises(KilledError):
        pagerank(store, checkpoint=tmp_path / "c", progress=killed_after(12), **options)
    resumed = pagerank(store, checkpoint=tmp_path / "c", **options)
    assert resumed.steps[0].iteration == 11, "it was written after 10"
    assert (resumed.iterations, resumed.change) == (whole.iterations, whole.change)
    np.testing.assert_array_equal(resumed.rank, whole.rank)


def test_finished_run_has_nothing_to_do(store, tmp_path):
    whole = pagerank(store, checkpoint=tmp_path / "c", **END)
    again = pagerank(store, checkpoint=tmp_path / "c", **END)
    assert again.steps == ()
    assert again.converged
    assert again.iterations == whole.iterations
    np.testing.assert_array_equal(again.rank, whole.rank)
    assert [file.name for file in (tmp_path / "c").iterdir()] == ["pagerank.state"]


def test_run_that_did_not_converge_may_be_given_more_iterations(store, tmp_path):
    with pytest.raises(ConvergenceError, match="the checkpoint goes on from here"):
        pagerank(store, checkpoint=tmp_path / "c", tol=1e-9, max_iter=7)
    with pytest.raises(ConvergenceError, match="after 7 iterations"):
        pagerank(store, checkpoint=tmp_path / "c", tol=1e-9, max_iter=7)
    np.testing.assert_array_equal(pagerank(store, checkpoint=tmp_path / "c", **END).rank, pagerank(store, **END).rank)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"damping": 0.9}, "its damping is 0.85, not 0.9"),
        ({"precision": "double"}, "its precision is 'auto', not 'double'"),
        ({"personalization": {1: 1.0}}, "its checksum of the personalization is None, not"),
    ],
)
def test_checkpoint_of_another_run_is_refused(store, tmp_path, options, words):
    begun(store, tmp_path / "c")
    with pytest.raises(OutputError, match=f"of another run: {words}.*remove .* or name another folder"):
        pagerank(store, checkpoint=tmp_path / "c", **END, **options)


def test_checkpoint_of_another_graph_is_refused(store, tmp_path):
    begun(store, tmp_path / "c")
    src, dst = random_edges(9)
    reference_build(src, dst, tmp_path / "h", directed=True, implied=(0, 230))
    with pytest.raises(OutputError, match="of another run: its graph is"):
        pagerank(tmp_path / "h", checkpoint=tmp_path / "c")


@pytest.mark.parametrize("at", [0, 9, 30, -30, -2])
def test_damaged_checkpoint_is_refused(store, tmp_path, at):
    """One bit anywhere: magic, length, header, ranks, checksum."""
    begun(store, tmp_path / "c")
    file = tmp_path / "c" / "pagerank.state"
    raw = bytearray(file.read_bytes())
    raw[at] ^= 4
    file.write_bytes(raw)
    with pytest.raises(CorruptStoreError, match=r"pagerank.state: this checkpoint is damaged.*remove .*/c to start over"):
        pagerank(store, checkpoint=tmp_path / "c")


@pytest.mark.parametrize("length", [0, 5, 20, 600, -1])
def test_torn_checkpoint_is_refused(store, tmp_path, length):
    begun(store, tmp_path / "c")
    file = tmp_path / "c" / "pagerank.state"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(CorruptStoreError, match="is damaged"):
        pagerank(store, checkpoint=tmp_path / "c")


@pytest.mark.usefixtures("forced_to_disk")
def test_disk_that_is_full_leaves_the_state_before(store, tmp_path, monkeypatch):
    begun(store, tmp_path / "c")
    before = (tmp_path / "c" / "pagerank.state").read_bytes()

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="the disk is full"):
        pagerank(store, checkpoint=tmp_path / "c", **END)
    assert [file.name for file in (tmp_path / "c").iterdir()] == ["pagerank.state"]
    assert (tmp_path / "c" / "pagerank.state").read_bytes() == before


def test_folder_that_is_a_file_is_refused(store, tmp_path):
    (tmp_path / "c").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        pagerank(store, checkpoint=tmp_path / "c")


def test_process_that_is_killed_while_it_writes(store, tmp_path):
    """It ends between the write and the rename; the state before is whole, and the next run removes nothing that it needs."""
    code = f"""
import os, signal
import oocgraph
from oocgraph.store import atomic_output
put, written = atomic_output.put, []
def fatal(output, *place, **options):
    written.append(output)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(output, *place, **options)
atomic_output.put = fatal
oocgraph.pagerank({str(store.url)!r}, checkpoint={str(tmp_path / "c")!r}, tol=1e-9, max_iter=500)
"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    resumed = pagerank(store, checkpoint=tmp_path / "c", **END)
    assert resumed.steps[0].iteration == 11, "the states of 5 and 10 were written, that of 15 was not"
    np.testing.assert_array_equal(resumed.rank, pagerank(store, **END).rank)
    assert [file.name for file in (tmp_path / "c").iterdir()] == ["pagerank.state"]


def test_ranks_are_given_back_to_the_bit(tmp_path):
    ranks = np.random.default_rng(0).random(1_000_001)
    kept = RankCheckpoint(tmp_path / "c", {"damping": 0.1})
    assert kept.read(ranks.size) is None
    kept.write({"iteration": 3}, ranks)
    scalars, read = kept.read(ranks.size)
    assert scalars == {"iteration": 3}
    np.testing.assert_array_equal(read, ranks)
    with pytest.raises(CorruptStoreError, match="it has 1,000,001 ranks, the graph 5 vertices"):
        kept.read(5)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_that_was_made_is_removed_when_nothing_can_be_written(store, tmp_path, monkeypatch, is_there):
    """One that was there stays, and so does one with a state."""
    if is_there:
        (tmp_path / "c").mkdir()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(rank_checkpoint, "_crc_bytes", full)
        with pytest.raises(OutputError, match="the disk is full"):
            pagerank(store, checkpoint=tmp_path / "c", **END)
    assert (tmp_path / "c").exists() == is_there
    written = RankCheckpoint(tmp_path / "d", {})
    written.write({}, np.ones(3))
    with monkeypatch.context() as patched:
        patched.setattr(rank_checkpoint, "_crc_bytes", full)
        with pytest.raises(OutputError, match="the disk is full"):
            written.write({}, np.zeros(3))
    assert written.read(3)[1].tolist() == [1, 1, 1]
