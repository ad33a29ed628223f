"""Processes in tests: programs that end with the test, also one that fails; a terminal for them; what this process has open."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress

PATIENCE_SECONDS = 300
"""After which something hangs, however busy the machine is."""


@contextmanager
def program(command, **options):
    """Start a program in a session of its own; all processes of the session are killed at the end."""
    with subprocess.Popen([*map(str, command)], start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def on_terminal(command, *, env):
    """Run a program whose stderr is a terminal; return the CompletedProcess, whose `stderr` is what was drawn there."""
    terminal, other_end = os.openpty()
    drawn = []

    def read():  # meanwhile: a terminal holds a few KiB, and a slow program draws more often
        with suppress(OSError):  # it is closed
            while piece := os.read(terminal, 1 << 16):
                drawn.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=other_end, env=env, check=True, timeout=PATIENCE_SECONDS)
    finally:
        os.close(other_end)
        reader.join()
        os.close(terminal)
    done.stderr = b"".join(drawn)
    return done


def open_files(*folders):
    """Paths of the files in some folders that this process has open; other descriptors come and go with threads of other tests."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    within = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)
    return [path for path in found if path.startswith(within)]


def own_threads():
    """Names of oocgraph's threads, sorted; those of other libraries come and go."""
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("oocgraph"))
