"""Files that are removed without waiting for their room: names are gone at once, descriptors in the end, in child processes too."""

from __future__ import annotations

import os
import threading
import time

import pytest

from oocgraph.store import forgotten
from oocgraph.store.forgotten import forget
from tests.processes import open_files, own_threads


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch):
    monkeypatch.setattr(forgotten, "LARGE_BYTES", 1)


@pytest.fixture
def slow(monkeypatch):
    """Let the thread wait before it closes anything."""
    close, may_go = forgotten._close, threading.Event()

    def closed(held):
        if threading.current_thread() is not threading.main_thread():
            may_go.wait(30)
        close(held)

    monkeypatch.setattr(forgotten, "_close", closed)
    yield may_go
    may_go.set()
    wait_until_closed()


def wait_until_closed():
    while own_threads():
        time.sleep(0.01)


def made(folder, count):
    paths = [folder / str(i) for i in range(count)]
    for path in paths:
        path.write_text("text")
    return paths


def test_all_are_closed_in_the_end(tmp_path):
    for _ in range(50):
        forget(made(tmp_path, 3))
    assert list(tmp_path.iterdir()) == []
    wait_until_closed()
    assert open_files(tmp_path) == []


def test_a_file_with_another_name_is_closed_at_once(tmp_path, slow):
    """As one that a network file system has renamed, because it is open."""
    (path,) = made(tmp_path, 1)
    os.link(path, tmp_path / "other")
    forget([path])
    assert open_files(tmp_path) == []
    assert (tmp_path / "other").read_text() == "text"


def test_no_more_than_some_are_open(tmp_path, slow, monkeypatch):
    monkeypatch.setattr(forgotten, "MOST_OPEN", 4)
    forget(made(tmp_path, 20))
    assert list(tmp_path.iterdir()) == []
    assert len(open_files(tmp_path)) == 4


def test_a_file_that_cannot_be_opened_is_removed(tmp_path, monkeypatch):
    (path,) = made(tmp_path, 1)

    def refuse(*_):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        forget([path])
    assert not path.exists()


def test_what_cannot_be_removed_is_left(tmp_path):
    """No file, or none that is there; the others go."""
    (tmp_path / "folder").mkdir()
    forget([tmp_path / "none", tmp_path / "folder", *made(tmp_path, 1)])
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    wait_until_closed()
    assert open_files(tmp_path) == []


def test_an_interrupt_leaves_nothing_open(tmp_path, slow):
    def paths():
        yield from made(tmp_path, 3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forget(paths())
    assert open_files(tmp_path) == []
    assert forgotten._kept == {}


def test_a_symbolic_link_goes_and_not_what_it_points_to(tmp_path):
    (path,) = made(tmp_path, 1)
    (tmp_path / "link").symlink_to(path)
    forget([tmp_path / "link"])
    assert path.read_text() == "text"
    assert not os.path.lexists(tmp_path / "link")


def test_a_child_process_keeps_nothing_open(tmp_path, slow):
    forget(made(tmp_path, 3))
    pid = os.fork()
    if not pid:
        os._exit(len(open_files(tmp_path)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(open_files(tmp_path)) == 3
