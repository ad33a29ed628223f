"""Locks between processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from oocgraph import locks

LOCK_SCRIPT = """
import sys, time
from oocgraph.locks import locked
with locked("compiling"):
    print("began", flush=True)
    time.sleep(float(sys.argv[1]))
    print("ended", flush=True)
"""


def test_one_process_has_a_lock_at_a_time_and_one_that_hangs_is_not_waited_for(tmp_path, monkeypatch):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
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
        finally:
            hanging.kill()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with locks.locked("compiling"):
        pass
