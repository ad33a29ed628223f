"""Outputs appear whole or not at all, replace what stood there in one step, and clean up after processes that were killed."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from oocgraph.errors import OocGraphError, OutputError
from oocgraph.store import forgotten, publish, remains
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.graph import open_graph
from oocgraph.store.outputs import output_place
from tests.every_line import ROOT, stop_at_every_line
from tests.processes import open_files, own_threads
from tests.reference_build import reference_build
from tests.store.replacing_folders import whole, write


@pytest.fixture(params=["exchange", "in turn"])
def folders(request, monkeypatch):
    """Whether the file system can exchange two folders."""
    if request.param == "in turn":
        monkeypatch.setattr(publish, "_renameat2", lambda: None)
    return request.param


def temporary(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".oocgraph-building-")]


def replace(place, text="new"):
    with AtomicOutput(place, kind="result", overwrite=True) as staged:
        write(staged.path, text)
        staged.publish()


def write_file(place, text="x", **options):
    with AtomicOutput(place, **options) as staged:
        staged.path.write_text(text)
        staged.publish()


class TestEveryMoment:
    """A process may end at any line of what publishes."""

    @pytest.fixture
    def memory(self, tmp_path):
        """Return a folder where forcing to disk takes no time."""
        shared = Path("/dev/shm") / f"oocgraph-test-{os.getpid()}-{tmp_path.name}"
        yield shared if os.access("/dev/shm", os.W_OK) else tmp_path
        shutil.rmtree(shared, ignore_errors=True)

    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("how", ["kill", "interrupt"])
    @pytest.mark.parametrize("exchange", ["yes", "no"])
    def test_old_or_new_folder_stands_whole(self, memory, monkeypatch, exchange, how):
        """At once where folders can be exchanged, and after an interrupt; else as soon as somebody opens it or writes beside it."""
        monkeypatch.setenv("OOCGRAPH_TEST_EXCHANGE", exchange)
        wrong, count = stop_at_every_line(ROOT / "tests/store/replacing_folders.py", how, memory)
        assert wrong == []
        assert count > 100

    @pytest.mark.parametrize("how", ["kill", "interrupt"])
    def test_old_or_new_file_stands_whole(self, memory, how):
        wrong, count = stop_at_every_line(ROOT / "tests/store/replacing_files.py", how, memory)
        assert wrong == []
        assert count > 80


class TestReplacing:
    def test_folder_is_replaced_and_nothing_else_is_left(self, tmp_path, folders):
        write(tmp_path / "r.zarr", "old")
        replace(tmp_path / "r.zarr")
        assert whole(tmp_path / "r.zarr") == "new"
        assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]

    def test_nobody_waits_for_the_room_of_large_files(self, tmp_path, monkeypatch, folders):
        monkeypatch.setattr(forgotten, "LARGE_BYTES", 1)
        close, may_go = forgotten._close, threading.Event()

        def closed(held):
            if threading.current_thread() is not threading.main_thread():
                may_go.wait(30)
            close(held)

        write(tmp_path / "r.zarr", "old")
        monkeypatch.setattr(forgotten, "_close", closed)
        replace(tmp_path / "r.zarr")
        assert whole(tmp_path / "r.zarr") == "new"
        assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]
        assert len(open_files(tmp_path)) == 5
        may_go.set()
        while own_threads():
            time.sleep(0.01)
        assert open_files(tmp_path) == []

    def test_failure_between_the_renames_puts_the_old_folder_back(self, tmp_path, monkeypatch):
        monkeypatch.setattr(publish, "_renameat2", lambda: None)
        write(tmp_path / "r.zarr", "old")
        rename = os.rename

        def fail(old, new):
            if Path(old).name == "output.zarr":
                raise OSError(errno.EIO, "Input/output error")
            rename(old, new)

        monkeypatch.setattr(os, "rename", fail)
        with pytest.raises(OutputError, match=r"r\.zarr: cannot write \(Input/output error\)"):
            replace(tmp_path / "r.zarr")
        assert whole(tmp_path / "r.zarr") == "old"
        assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]

    def test_old_folder_that_a_reader_puts_back_meanwhile_is_moved_aside_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(publish, "_renameat2", lambda: None)
        write(tmp_path / "r.zarr", "old")
        rename, raced = os.rename, []

        def race(old, new):
            if Path(old).name == "output.zarr" and not raced:
                raced.append(True)
                rename(Path(old).parent / "old", new)
            rename(old, new)

        monkeypatch.setattr(os, "rename", race)
        replace(tmp_path / "r.zarr")
        assert raced
        assert whole(tmp_path / "r.zarr") == "new"
        assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]

    @pytest.mark.parametrize("name", ["r.zarr", "r.csv"])
    def test_target_of_a_symbolic_link_is_replaced(self, tmp_path, folders, name):
        """The link stays one, and temporary files are beside its target, which may be on another disk."""
        (tmp_path / "disk").mkdir()
        (tmp_path / "here").mkdir()
        target, link = tmp_path / "disk" / name, tmp_path / "here" / name
        link.symlink_to(target)
        for text in ("old", "new"):  # the first makes what the link dangles at
            if name == "r.zarr":
                replace(link, text)
                assert whole(target) == text
            else:
                write_file(link, text, overwrite=True)
                assert target.read_text() == text
            assert link.is_symlink()
        assert [path.name for path in (tmp_path / "disk").iterdir()] == [name]

    def test_link_to_itself_is_refused(self, tmp_path):
        (tmp_path / "a").symlink_to(tmp_path / "a")
        with pytest.raises(OutputError, match="a symbolic link that leads back to itself"):
            AtomicOutput(tmp_path / "a", overwrite=True)

    @pytest.mark.parametrize("there", ["file", "folder", "graph store", "partitions", "result"])
    @pytest.mark.parametrize("kind", ["file", "graph store", "partitions", "result"])
    def test_only_the_same_kind_is_replaced(self, tmp_path, kind, there):
        place, keys = tmp_path / "x", {"graph store": "oocgraph", "partitions": "oocgraph_partitions", "result": "oocgraph_result"}
        if there == "file":
            place.write_text("mine")
        else:
            place.mkdir()
            if there in keys:
                (place / "zarr.json").write_text(json.dumps({"attributes": {keys[there]: {}}}))
        with pytest.raises(OutputError, match="exists already; choose another name or pass overwrite=True"):
            output_place(place, kind=kind, overwrite=False)
        if kind == there:
            assert output_place(place, kind=kind, overwrite=True) == place
        else:
            with pytest.raises(OutputError, match=r"exists and is not .*, so it is not overwritten"):
                output_place(place, kind=kind, overwrite=True)

    @pytest.mark.parametrize("renames", ["with flags", "plain"])
    def test_what_somebody_else_made_meanwhile_stays(self, tmp_path, monkeypatch, renames):
        """Also when it appears after the last look."""
        if renames == "plain":
            monkeypatch.setattr(publish, "_renameat2", lambda: None)
        with AtomicOutput(tmp_path / "r.csv") as staged:
            staged.path.write_text("mine")
            (tmp_path / "r.csv").write_text("theirs")
            with pytest.raises(OutputError, match="exists already"):
                staged.publish()
            monkeypatch.setattr("oocgraph.store.atomic_output.output_place", lambda place, **_: place)
            with pytest.raises(OutputError, match="it was made meanwhile"):
                staged.publish()
        assert (tmp_path / "r.csv").read_text() == "theirs"

    @pytest.mark.usefixtures("forced_to_disk")
    def test_all_is_on_disk_before_it_is_published(self, tmp_path, monkeypatch):
        """Every file and folder, then the renames, then the folder that holds it."""
        steps = []
        fsync = os.fsync

        def sync(fd):
            steps.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
            fsync(fd)

        monkeypatch.setattr(os, "fsync", sync)
        moved = publish._rename
        monkeypatch.setattr(publish, "_rename", lambda *names: steps.append("rename") or moved(*names))
        write(tmp_path / "r.zarr", "old")
        replace(tmp_path / "r.zarr")
        assert sorted(steps[:6]) == ["a", "b", "c", "d", "output.zarr", "zarr.json"]
        assert steps[6:] == ["rename", tmp_path.name]


class TestPlaces:
    @pytest.mark.parametrize("url", ["http://host/r.csv", "https://host/r.csv", "file:///tmp/r.csv", Path("s3://bucket/r.csv")])
    def test_urls_are_refused(self, tmp_path, monkeypatch, url):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(OutputError, match="local file systems only; give a path, and copy the output to the URL afterwards"):
            AtomicOutput(url)
        assert list(tmp_path.iterdir()) == []

    def test_folders_are_made_and_go_again_when_nothing_comes_of_it(self, tmp_path):
        write_file(tmp_path / "a/b/r.csv")
        assert (tmp_path / "a/b/r.csv").read_text() == "x"
        with pytest.raises(ZeroDivisionError), AtomicOutput(tmp_path / "c/d/r.csv"):
            raise ZeroDivisionError
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_parent_that_is_a_file(self, tmp_path):
        (tmp_path / "f").write_text("")
        for place in (tmp_path / "f/r.csv", tmp_path / "f/g/r.csv"):
            with pytest.raises(OutputError, match=r"cannot write \(Not a directory"):
                AtomicOutput(place)


class TestErrors:
    def test_input_is_blamed_for_its_own_errors(self, tmp_path):
        """An error that names a file elsewhere is no error of the output."""
        with (
            pytest.raises(OocGraphError, match=r"input\.csv: cannot be read or written \(No such file") as failed,
            AtomicOutput(tmp_path / "r.csv"),
        ):
            (tmp_path / "input.csv").read_text()
        assert not isinstance(failed.value, OutputError)
        with pytest.raises(OutputError, match=r"r\.csv: cannot write"), AtomicOutput(tmp_path / "r.csv") as staged:
            staged.path.read_text()
        with pytest.raises(OutputError, match=r"r\.csv: the disk is full .*nothing was left behind"), AtomicOutput(tmp_path / "r.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")

    @pytest.mark.parametrize("at", ["mkdir", "write"])
    def test_disk_that_is_full_from_the_beginning_leaves_nothing(self, tmp_path, monkeypatch, at):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, at, full)
        with pytest.raises(OutputError, match=r"the disk is full .*nothing was left behind"):
            AtomicOutput(tmp_path / "r.csv")
        monkeypatch.undo()
        assert list(tmp_path.iterdir()) == []

    def test_what_cannot_be_removed_is_named(self, tmp_path, monkeypatch):
        staged = AtomicOutput(tmp_path / "r.csv")
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(OutputError, match=r"the disk is full .*building-\w+ could not be removed: remove it yourself"), staged:
            raise OSError(errno.ENOSPC, "No space left on device")


HOLDER = """
import sys
from oocgraph.store.atomic_output import AtomicOutput
with AtomicOutput(sys.argv[1]) as staged:
    staged.path.write_text("x")
    print(staged.folder, flush=True)
    sys.stdin.read()
    staged.publish()
"""


@contextmanager
def holder(place, *before):
    """Run another process that makes an output; yield it and its temporary folder."""
    command = [*before, sys.executable, "-c", HOLDER, str(place)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        line = child.stdout.readline().strip()
        if not line and before:
            pytest.skip(f"needs root and {before[0]} to make a namespace of processes")
        yield child, Path(line)


def killed(place):
    """Return the folder of a process that was killed while it made an output, or what looks like it: nobody holds its lock."""
    left = remains.Remains.make(place)
    (left.folder / f"output{place.suffix}").write_text("x")
    left.release()
    return left.folder


class TestOwners:
    def test_folder_of_a_living_process_stays_and_that_of_a_killed_one_goes(self, tmp_path):
        with holder(tmp_path / "theirs") as (child, folder):
            write_file(tmp_path / "mine")
            assert folder.is_dir()
            child.kill()
            child.wait()
            write_file(tmp_path / "again")
            assert not folder.exists()

    @pytest.mark.namespaces
    def test_living_process_of_another_namespace_keeps_its_folder(self, tmp_path):
        """The same host name, but its number means nothing here."""
        with holder(tmp_path / "theirs", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child") as (child, folder):
            assert json.loads((folder / "owner").read_text())["pid"] < 10
            write_file(tmp_path / "mine")
            assert folder.is_dir()
            child.communicate("")
            assert child.returncode == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "theirs"]

    @pytest.fixture
    def left(self, tmp_path):
        """Return the folder of a process that was killed."""
        return killed(tmp_path / "theirs")

    @pytest.mark.parametrize(
        ("change", "hours", "stays", "warns"),
        [
            ({}, 0, False, False),
            ({"host": "elsewhere"}, 0, False, False),  # another container of this machine
            ({"boot": "before"}, 0, False, False),  # this machine, started again
            ({"host": "elsewhere", "boot": "other"}, 0, True, False),
            ({"host": "elsewhere", "boot": "other"}, 5, True, True),
            ({"host": "elsewhere", "boot": "other"}, 24 * 8, False, False),
            ({"locked": False}, 0, True, False),
            ({"locked": False}, 5, True, True),
            ({"locked": False}, 24 * 8, False, False),
        ],
    )
    def test_where_no_lock_decides_age_does(self, tmp_path, left, caplog, change, hours, stays, warns):
        owner = {**json.loads((left / "owner").read_text()), **change}
        (left / "owner").write_text(json.dumps(owner))
        then = time.time() - 3600 * hours
        for path in (*left.rglob("*"), left):
            os.utime(path, (then, then))
        with caplog.at_level(logging.WARNING):
            write_file(tmp_path / "mine")
        assert left.exists() == stays
        assert [f"process {owner['pid']} of host {owner['host']}" in text for text in caplog.messages] == [True] * warns

    def test_file_system_without_locks(self, tmp_path, monkeypatch):
        """Outputs are made all the same, and nobody's folder is taken before it is old."""

        def none(*_):
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(fcntl, "flock", none)
        with AtomicOutput(tmp_path / "theirs") as staged:
            assert json.loads((staged.folder / "owner").read_text())["locked"] is False
            write_file(tmp_path / "mine")
            staged.path.write_text("x")
            staged.publish()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "theirs"]

    @pytest.mark.parametrize("text", [None, "", "not JSON", '{"host": 1}', json.dumps(["a"]), "host 12"])
    def test_folder_without_a_readable_owner_goes_when_it_is_not_just_being_made(self, tmp_path, text):
        folder = tmp_path / ".oocgraph-building-0123"
        folder.mkdir()
        if text is not None:
            (folder / "owner").write_text(text)
        write_file(tmp_path / "mine")
        assert folder.is_dir()
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (0, 0))
        write_file(tmp_path / "again")
        assert not folder.exists()

    def test_owner_cannot_name_a_place_outside_its_folder(self, tmp_path, left):
        """A file is data: nothing is put anywhere else."""
        owner = {**json.loads((left / "owner").read_text()), "destination": "../elsewhere"}
        (left / "owner").write_text(json.dumps(owner))
        (left / "old").mkdir()
        for path in (*left.rglob("*"), left):
            os.utime(path, (0, 0))
        write_file(tmp_path / "mine")
        assert not (tmp_path.parent / "elsewhere").exists()


class TestMovedAside:
    """A process was killed between the two renames of a file system that cannot exchange folders."""

    @pytest.fixture
    def place(self, tmp_path):
        place = tmp_path / "g.zarr"
        reference_build([1, 2], [2, 3], place, implied=(0, 5))
        place.rename(killed(place) / "old")
        return place

    def test_opening_puts_it_back(self, place):
        assert open_graph(place).num_edges == 2

    def test_opening_through_a_link_puts_it_back(self, place, tmp_path):
        (tmp_path / "link").symlink_to(place)
        assert open_graph(tmp_path / "link").num_edges == 2

    def test_next_output_beside_it_puts_it_back(self, place, tmp_path):
        write_file(tmp_path / "other")
        assert open_graph(place).num_edges == 2
        assert temporary(tmp_path) == []

    def test_next_build_there_finds_it(self, place):
        with pytest.raises(OutputError, match="exists already"):
            reference_build_without_overwrite(place)
        assert open_graph(place).num_edges == 2

    def test_it_is_kept_when_something_else_stands_there(self, place, tmp_path, caplog):
        place.write_text("mine")
        write_file(tmp_path / "other")
        (left,) = temporary(tmp_path)
        assert open_graph(left / "old").num_edges == 2
        assert f"what stood there before is kept in {left / 'old'}" in caplog.text

    def test_it_goes_when_its_successor_was_published(self, place, tmp_path):
        (left,) = temporary(tmp_path)
        next(left.glob("output*")).unlink()
        write_file(tmp_path / "other")
        assert temporary(tmp_path) == []

    def test_living_owner_is_not_disturbed(self, tmp_path):
        """It is about to publish."""
        with AtomicOutput(tmp_path / "r.zarr", kind="result") as staged:
            write(staged.folder / "old", "old")
            assert not remains.restore(tmp_path / "r.zarr")


def reference_build_without_overwrite(place):
    from oocgraph.ingest.build import build_csr
    from tests.ingest.helpers_build import ArraySource

    build_csr(ArraySource([1], [2]), place)
