"""Programs that begin as copies of a process that has imported what they need: a worker takes 2 seconds of a processor to import it.

In: a module, its arguments, folder, output. Out: a `Fork`, a process in a session of its own, which the test kills as any other. What it
runs, and all that it is asked later, is what ``python -m`` would run; only the imports are shared.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

IMPORTED = (
    "distributed.cli.dask_scheduler",
    "distributed.cli.dask_worker",
    "oocgraph.cluster.worker",
    "oocgraph.cluster.worker_forest",
    "oocgraph.cluster.worker_parts",
    "oocgraph.cluster.worker_product",
    "oocgraph.cluster.worker_ranks",
    "oocgraph.partition.phases",
)
"""Modules that copies find imported."""


class Fork:
    """A program that runs.

    Attributes
    ----------
    pid
        Of its process, which leads a session.
    """

    def __init__(self, pid):
        self.pid = pid

    def wait(self):
        """Wait until it has ended."""
        while Path(f"/proc/{self.pid}").exists():
            time.sleep(0.005)


class Origin:
    """The process that is copied; it ends with this one.

    Parameters
    ----------
    env
        Environment variables of the programs.
    """

    def __init__(self, env):
        command = [sys.executable, "-m", "tests.forks"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._asking = threading.Lock()

    def start(self, module, arguments, *, folder, log):
        """Start a module as a program; its output goes to the file `log`."""
        wanted = {"module": module, "arguments": [*map(str, arguments)], "folder": str(folder), "log": str(log)}
        with self._asking:
            self._process.stdin.write(json.dumps(wanted) + "\n")
            self._process.stdin.flush()
            return Fork(int(self._process.stdout.readline()))

    def close(self):
        """End it."""
        self._process.communicate()


origins: dict[frozenset[tuple[str, str]], Origin] = {}


def start(module, arguments, *, folder, log, env):
    """Start a module as a program, as a copy of a process with this environment; what comes first in that takes its time."""
    key = frozenset(item for item in env.items() if item[0] != "PYTEST_CURRENT_TEST")
    if key not in origins:
        origins[key] = Origin(env)
        atexit.register(origins[key].close)
    return origins[key].start(module, arguments, folder=folder, log=log)


def _become(wanted):
    """Be the program that is wanted."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(wanted["folder"])
    log, nothing = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((nothing, log, log)):
        os.dup2(source, target)
    sys.argv = [wanted["module"], *wanted["arguments"]]
    sys.modules.pop(wanted["module"], None)
    runpy.run_module(wanted["module"], run_name="__main__", alter_sys=True)


def _run(wanted):
    """Be the program that is wanted, to its end."""
    status = 1
    try:
        _become(wanted)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _serve():
    """Start what is asked for on stdin, line by line, until its end."""
    for name in IMPORTED:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # programs that have ended are gone at once
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(json.loads(line))
        sys.__stdout__.write(f"{pid}\n")
        sys.__stdout__.flush()


if __name__ == "__main__":
    _serve()
