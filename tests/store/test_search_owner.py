"""A result store has one writer at a time; one that was killed holds up nobody."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from oocgraph.errors import OutputError, OutputExistsError
from oocgraph.store import atomic_output, owners, search_owner
from oocgraph.store.search_owner import SearchOwner
from oocgraph.store.search_store import SearchStore
from tests.every_line import ROOT
from tests.processes import open_files, program

HOLDING = """
import sys, threading
from oocgraph.store.search_owner import SearchOwner
from pathlib import Path

with SearchOwner(Path(sys.argv[1])):
    print("here", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def store(tmp_path):
    return SearchStore.create(tmp_path / "r.zarr", {"num_partitions": 1, "epoch": -1})


def again(store):
    """Open the store as another search does."""
    return SearchStore.open(store.path)


def end(store):
    """Complete the search."""
    store.write_part(0, [(np.zeros(3, np.uint8), np.zeros(3, np.uint32))])
    store.finish()


def own_in_a_process(store):
    """Start a program that owns the store."""
    return program([sys.executable, "-c", HOLDING, store.path], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def without_locks(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def elsewhere(store):
    """Have the owner say that it runs on another host."""
    owner = {**json.loads((store.path / "owner").read_text()), "host": "elsewhere", "boot": "another"}
    (store.path / "owner").write_text(json.dumps(owner))
    return owner["pid"]


def test_second_search_is_refused(store):
    """It learns who writes there, and what to do; the first goes on."""
    with store.owned():
        who = rf"\(process {os.getpid()} of host .+\)"
        with pytest.raises(OutputError, match=rf"^another search {who} writes to {store.path}: wait for it, or give another result_store$"):
            again(store).owned().__enter__()
        store.update(epoch=0)
        end(store)
    assert sorted(path.name for path in store.path.iterdir()) == ["parts", "zarr.json"]


def test_store_has_its_owner_before_others_see_it(tmp_path, monkeypatch):
    """Between its appearance and the first step there is no moment at which another search could begin there."""
    place, put = tmp_path / "r.zarr", atomic_output.put
    seen = []

    def look(*arguments, **options):
        put(*arguments, **options)
        with pytest.raises(OutputError, match=f"another search .* writes to {place}"):
            SearchStore.open(place).owned().__enter__()
        seen.append(json.loads((place / "owner").read_text())["destination"])

    monkeypatch.setattr(atomic_output, "put", look)
    store = SearchStore.create(place, {"num_partitions": 1}, is_owned=True)
    monkeypatch.undo()
    with store.owned():
        store.update(epoch=1)
    assert seen == ["r.zarr"]
    with store.owned():
        store.update(epoch=2)
    assert open_files(tmp_path) == []


def test_store_that_cannot_be_published_is_not_owned(tmp_path, monkeypatch):
    """Another one stands there by then, which anybody may own."""
    place, put = tmp_path / "r.zarr", atomic_output.put

    def late(*_, **__):
        monkeypatch.setattr(atomic_output, "put", put)
        SearchStore.create(place, {"num_partitions": 1})
        raise FileExistsError

    monkeypatch.setattr(atomic_output, "put", late)
    with pytest.raises(OutputExistsError):
        SearchStore.create(place, {"num_partitions": 1}, is_owned=True)
    for thread in threading.enumerate():
        if thread.name == "oocgraph-closing":  # of what was removed
            thread.join()
    assert open_files(tmp_path) == []
    with SearchStore.open(place).owned():
        assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]


def test_search_of_another_process_is_in_the_way_until_it_is_killed(store, caplog):
    """However it ends: the lock goes with it, and nothing needs to be waited for or removed."""
    with own_in_a_process(store) as process:
        assert process.stdout.readline() == "here\n"
        with pytest.raises(OutputError, match=rf"another search \(process {process.pid} of"):
            again(store).owned().__enter__()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (store.path / "owner").exists()
    with store.owned():
        end(store)
    assert caplog.messages == []


def test_search_that_ended_meanwhile_is_not_begun_again(store):
    """It was opened before the other one ended: its fields are read again, and nothing is written."""
    late = again(store)
    with store.owned():
        end(store)
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*")}
    with late.owned(), late.owned():
        assert late.complete
    assert {path: path.stat().st_mtime_ns for path in store.path.rglob("*")} == before


def test_search_that_has_ended_needs_no_owner(store, monkeypatch):
    """What is complete is not written to: it may lie where this user cannot write."""
    end(store)
    monkeypatch.setattr(SearchOwner, "__init__", None)
    with again(store).owned(), again(store).owned():
        pass


def test_failed_search_leaves_no_owner(store):
    with pytest.raises(ZeroDivisionError), store.owned():
        raise ZeroDivisionError
    assert not (store.path / "owner").exists()
    assert open_files(store.path) == []
    with again(store).owned():
        pass


def test_copy_owns_nothing(store):
    """Workers receive copies."""
    with store.owned():
        copy = pickle.loads(pickle.dumps(store))
        with pytest.raises(OutputError, match="another search"):
            copy.owned().__enter__()


@pytest.mark.parametrize("text", ["", "not JSON", '{"host": 1}', "[]"])
def test_unreadable_owner_that_holds_no_lock_is_none(store, text):
    """A process may be killed before it can say who it is."""
    (store.path / "owner").write_text(text)
    with store.owned():
        store.update(epoch=1)


def test_owner_of_another_host_without_a_lock_is_superseded(store, caplog):
    """A job that goes back to the queue starts on another host, and not all file systems pass locks on: it must not wait for ever."""
    killed = SearchOwner(store.path)
    os.close(killed._fd)  # with which its lock goes
    pid = elsewhere(store)
    with caplog.at_level(logging.WARNING), store.owned():
        end(store)
    assert f"no lock here tells whether another search (process {pid} of host elsewhere) still writes to it" in caplog.text


def test_owner_of_another_host_with_a_lock_can_be_removed(store):
    """NFS 3 keeps the lock of a host that has crashed: the message names the file."""
    with store.owned():
        elsewhere(store)
        with pytest.raises(OutputError, match=rf"of host elsewhere\) writes to .*; if that host has crashed, remove ({store.path}/owner)$"):
            again(store).owned().__enter__()
        (store.path / "owner").unlink()
        with again(store).owned(), pytest.raises(OutputError, match=rf"another search .* has taken over {store.path}, so this one ends"):
            store.update(epoch=5)
        with pytest.raises(OutputError, match="owner was removed, so that another search may write there, and this one ends"):
            store.update(epoch=5)
    assert again(store).fields["epoch"] == -1


def test_file_system_without_locks(store, monkeypatch, caplog):
    """The last one owns the store; the one before ends where it would write, and harms neither the store nor its owner."""
    monkeypatch.setattr(fcntl, "flock", without_locks)
    later = again(store)
    with store.owned():
        store.update(epoch=0)
        with later.owned():
            later.update(epoch=1)
            with pytest.raises(OutputError, match=r"another search .* has taken over"):
                store.update(epoch=1)
            later.update(epoch=2)
    assert "no lock here tells" in caplog.text
    assert again(store).fields["epoch"] == 2
    assert not (store.path / "owner").exists()


def test_owner_that_was_superseded_leaves_the_file_of_the_next(store, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", without_locks)
    first = SearchOwner(store.path)
    with SearchOwner(store.path) as second:
        first.close()
        first.close()
        second.confirm()


def test_file_of_another_user_that_has_ended(store, monkeypatch):
    """It may be read only, and NFS locks what may be written: the lock decides where it can."""
    os_open, flock = os.open, fcntl.flock

    def forbidden(path, flags, *rest):
        if flags & os.O_RDWR and not flags & os.O_CREAT and os.fspath(path).endswith("owner"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return os_open(path, flags, *rest)

    def not_open_for_writing(fd, kind):
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(fd, kind)

    (store.path / "owner").touch()
    monkeypatch.setattr(os, "open", forbidden)
    monkeypatch.setattr(fcntl, "flock", not_open_for_writing)
    with store.owned():
        store.update(epoch=1)


def test_file_that_cannot_be_read_while_it_is_locked(store, monkeypatch):
    """As on some network file systems: the file is then recognised by its inode."""

    def unreadable(path):
        path.stat()  # raises an error if it is missing
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(search_owner, "open_file", unreadable)
    with store.owned():
        store.update(epoch=1)
        with pytest.raises(OutputError, match="another search"):
            again(store).owned().__enter__()
    assert not (store.path / "owner").exists()


def test_disk_that_is_full_names_the_store_to_go_on_with(store, monkeypatch):
    """What is left of the file then is no owner."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(owners.os, "write", full)
        with pytest.raises(OutputError, match=rf"owner: the disk is full .*; free some space there and go on with resume={store.path},"):
            store.owned().__enter__()
    with store.owned():
        pass


def test_store_that_is_gone_is_no_store_that_was_taken_over(store):
    with store.owned():
        store.path.rename(store.path.with_name("moved"))
        with pytest.raises(OutputError, match=r"cannot write here \(No such file or directory\)"):
            store.update(epoch=1)


@pytest.mark.parametrize("has_locks", [True, False])
def test_many_at_once(store, monkeypatch, has_locks):
    """Nobody waits for ever; where there are locks there is one owner at any time."""
    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", without_locks)
    inside, wrong, won = [], [], []

    def attempt():
        for _ in range(100):
            try:
                with SearchOwner(store.path):
                    inside.append(1)
                    won.append(1)
                    if len(inside) > 1 and has_locks:
                        wrong.append("two owners")
                    inside.pop()
            except OutputError as error:
                if not re.match("another search", str(error)):
                    wrong.append(str(error))

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert won
    assert open_files(store.path) == []


def test_a_process_that_was_forked_lets_go_of_nothing(store):
    """It ends what its parent has begun, as it leaves the ``with`` statements that it was forked in."""
    with store.owned():
        if not (child := os.fork()):
            store._owner.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.update(epoch=3)
        with pytest.raises(OutputError, match=r"another search .* writes to"), again(store).owned():
            pass


def test_an_owner_whose_file_was_removed_ends(store):
    with store.owned():
        (store.path / "owner").unlink()
        with pytest.raises(OutputError, match="owner was removed, so that another search may write there, and this one ends"):
            store.update(epoch=3)


@pytest.mark.timeout(60)
def test_a_pipe_in_place_of_an_owner_is_not_waited_for(store):
    """In a result store that somebody else has written."""
    os.mkfifo(store.path / "owner")
    with store.owned():
        store.update(epoch=3)
    assert again(store).fields["epoch"] == 3
    with store.owned():
        (store.path / "owner").unlink()
        os.mkfifo(store.path / "owner")
        with pytest.raises(OutputError, match="this one ends"):
            store.update(epoch=4)
