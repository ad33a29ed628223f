"""Ctrl-C and SIGTERM while a cluster starts or searches: one line, the documented exit code, no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

SCRIPT = """
import sys, threading
import distributed
import oocgraph.algorithms.bfs
from oocgraph.cli import main

where, LocalCluster = sys.argv.pop(1), distributed.LocalCluster

def starting(**options):
    print("here", flush=True)
    return LocalCluster(**options)

def wait():
    threading.Event().wait()

def searching(*_, client, **__):
    futures = [client.submit(wait, pure=False) for _ in range(4)]
    while sum(map(len, client.processing().values())) < 4:
        pass
    print("here", flush=True)
    client.gather(futures)

if where == "start":
    distributed.LocalCluster = starting
else:
    oocgraph.algorithms.bfs.bfs = searching
main()
"""


@pytest.mark.parametrize("where", ["start", "search"])
@pytest.mark.parametrize(
    ("send", "code", "message"),
    [("terminal", 130, "interrupted; nothing was left behind\n"), ("SIGTERM", 143, "")],
)
def test_signal_ends_everything_quietly(kron, where, send, code, message):
    """A terminal sends Ctrl-C to every process of the group; a batch system sends SIGTERM to the first, or to all."""
    command = [sys.executable, "-c", SCRIPT, where, "bfs", str(kron), "--source", "3", "--cluster", "local", "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "here\n", process.stderr.read()
        children = psutil.Process(process.pid).children(recursive=True)
        if send == "terminal":
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (code, "", message)
    assert (len(children) >= 2) == (where == "search")
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
