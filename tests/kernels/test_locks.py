"""Locks between processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time

from oocgraph import locks

LOCK_SCRIPT = """
import sys, time
from oocgraph.locks import locked
with locked("compiling"):
    print("began", flush=True)
    time.sleep(float(sys.argv[1]))
    print("ended", flush=True)
"""

AGAIN_SCRIPT = """
import time
from oocgraph.locks import locked
while True:
    with locked("compiling"):
        print("began", flush=True)
        time.sleep(0.05)
"""

FORK_SCRIPT = """
import os, time
from oocgraph.locks import locked
with locked("compiling"):
    child = os.fork()
    if not child:
        time.sleep(300)
print(child, flush=True)
"""


def process(folder, monkeypatch, script):
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True)


def test_a_process_that_takes_a_lock_again_and_again_lets_others_have_it(tmp_path, monkeypatch):
    """It does so within microseconds, others ask 50 times a second."""
    with process(tmp_path, monkeypatch, AGAIN_SCRIPT) as taking:
        try:
            for _ in range(3):
                assert taking.stdout.readline() == "began\n"
                began = time.monotonic()
                with locks.locked("compiling"):
                    assert time.monotonic() - began < 10
        finally:
            taking.kill()


def test_a_lock_ends_with_its_context_in_forked_processes_too(tmp_path, monkeypatch):
    with process(tmp_path, monkeypatch, FORK_SCRIPT) as forking:
        child = int(forking.stdout.readline())
        try:
            began = time.monotonic()
            with locks.locked("compiling"):
                assert time.monotonic() - began < 10
        finally:
            os.kill(child, signal.SIGKILL)


def test_one_process_has_a_lock_at_a_time_and_one_that_hangs_is_not_waited_for(tmp_path, monkeypatch, caplog):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", LOCK_SCRIPT]
    with subprocess.Popen([*command, "0.5"], stdout=subprocess.PIPE, env=environment, text=True) as first:
        assert first.stdout.readline() == "began\n"
        with locks.locked("compiling"):
            assert first.stdout.readline() == "ended\n"
    with subprocess.Popen([*command, "300"], stdout=subprocess.PIPE, env=environment, text=True) as hanging:
        try:
            assert hanging.stdout.readline() == "began\n"
            monkeypatch.setattr(locks, "MOST_SECONDS", 0.1)
            with locks.locked("compiling"):
                assert hanging.poll() is None
            assert "another process has had the lock 'compiling' for 0.1 s" in caplog.text
        finally:
            hanging.kill()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with locks.locked("compiling"):
        pass


def test_who_holds_a_folder_for_too_long_is_not_waited_for(tmp_path, monkeypatch, caplog):
    """As where a process was stopped in the middle: the next one says so, and goes on."""
    monkeypatch.setattr(locks, "MOST_SECONDS_OF_TURN", 0.1)
    with locks.turn_in(tmp_path), locks.turn_in(tmp_path):
        assert "has had the lock" in caplog.text
    caplog.clear()
    with locks.turn_in(tmp_path):
        assert not caplog.text
