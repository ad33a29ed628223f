"""Ctrl-C, SIGTERM and SIGHUP while a cluster starts or searches: one line, the documented exit code, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.processes import PATIENCE_SECONDS, program

SCRIPT = """
import multiprocessing, os, sys, threading
import distributed
import oocgraph.algorithms.bfs
from oocgraph.cli import main

multiprocessing.current_process()._config["semprefix"] = f"/mp{os.getpid()}"  # semaphores stay until somebody removes them
where, LocalCluster = sys.argv.pop(1), distributed.LocalCluster

def starting(**options):
    print("here", flush=True)
    return LocalCluster(**options)

def wait():
    threading.Event().wait()

def searching(*_, resources, **__):
    client = resources.client
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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("where", ["start", "search"])
@pytest.mark.parametrize(
    ("send", "code", "message"),
    [
        ("Ctrl-C", 130, "interrupted; nothing was left behind\n"), ("Ctrl-C twice", 130, "interrupted; nothing was left behind\n"),
        ("SIGTERM", 143, ""), ("hangup", 129, ""),
    ],
)  # fmt: skip
def test_signal_ends_everything_quietly(kron, where, send, code, message):
    """A terminal sends its signals to every process of the group; a batch system sends SIGTERM to the first, or to all."""
    command = [sys.executable, "-c", SCRIPT, where, "bfs", str(kron), "--source", "3", "--cluster", "local", "--workers", "2"]
    with program(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n", process.stderr.read()
        children = psutil.Process(process.pid).children(recursive=True)
        if send == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            os.killpg(process.pid, signal.SIGHUP if send == "hangup" else signal.SIGINT)
        if send == "Ctrl-C twice":
            time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, stdout, stderr) == (code, "", message)
        assert where == "start" or len(children) >= 2  # while it starts there may be workers already, or not yet
        _, alive = psutil.wait_procs(children, timeout=30)
        assert not alive
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"sem.mp{process.pid}-")]


DROPPING = """
import gc, os, signal, sys, threading
import oocgraph.algorithms.bfs
from oocgraph.cli import main

how, number = sys.argv.pop(1), signal.Signals[sys.argv.pop(1)]

def receive():
    os.kill(os.getpid(), number)
    for _ in range(1000):  # the handler raises here
        pass

def collecting(phase, info):
    gc.callbacks.remove(collecting)  # a collection at the end is not to receive another
    receive()

class Dropped:
    def __del__(self):
        receive()

def searching(*_, **__):
    print("here", flush=True)
    if how == "__del__":
        Dropped()
    else:
        gc.callbacks.append(collecting)
        gc.collect()
    threading.Event().wait()

oocgraph.algorithms.bfs.bfs = searching
main()
"""


@pytest.mark.parametrize("how", ["__del__", "collection"])
@pytest.mark.parametrize(("number", "code", "message"), [("SIGINT", 130, "interrupted; nothing was left behind\n"), ("SIGTERM", 143, "")])
def test_a_signal_that_python_drops_is_not_lost(kron, how, number, code, message):
    """What a handler raises in a callback of the garbage collector, as Dask has one, or in a ``__del__`` goes no further."""
    command = [sys.executable, "-c", DROPPING, how, number, "bfs", str(kron), "--source", "3"]
    with program(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, stdout, stderr) == (code, "here\n", message)


IGNORING = """
import sys
import oocgraph.algorithms.bfs
from oocgraph.cli import main

bfs = oocgraph.algorithms.bfs.bfs

def searching(*arguments, **options):
    print("here", flush=True)
    sys.stdin.readline()
    return bfs(*arguments, **options)

oocgraph.algorithms.bfs.bfs = searching
main()
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("number", "cluster"),
    [(signal.SIGINT, []), (signal.SIGINT, ["--cluster", "local", "--workers", "2"]), (signal.SIGTERM, []), (signal.SIGHUP, [])],
)
def test_a_signal_that_the_parent_ignores_stays_ignored(kron, number, cluster):
    """As convention has it: a plain shell starts what is in the background so that Ctrl-C does not reach it."""
    shell = ["sh", "-c", f"trap '' {number.name[3:]}; exec \"$@\"", "sh"]
    command = [*shell, sys.executable, "-c", IGNORING, "bfs", kron, "--source", "3", "--json", *cluster]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with program(command, **pipes, text=True) as process:
        assert process.stdout.readline() == "here\n", process.stderr.read()
        os.killpg(process.pid, number)
        stdout, stderr = process.communicate("go on\n", timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["depth"] > 0
