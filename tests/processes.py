"""Processes in tests: programs that end with the test, also one that fails; a terminal for them; what this process has open."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

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


def free_ports(count):
    """Ports that nobody listens on, outside of the range from which the system gives one to each connection that it makes."""
    first_given, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    with ExitStack() as stack:
        ports = []
        while len(ports) < count:
            port = random.SystemRandom().randrange(1024, max(first_given, 10_000))
            one = stack.enter_context(socket.socket())
            with suppress(OSError):
                one.bind(("127.0.0.1", port))
                ports.append(port)
        return ports


def open_files(*folders):
    """Paths of the files in some folders that this process has open; other descriptors come and go with threads of other tests."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    within = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)
    return [path for path in found if path.startswith(within)]


def own_threads():
    """Names of oocgraph's threads, sorted, but for those that are kept for the next computation; those of other libraries come and go."""
    names, kept = [thread.name for thread in threading.enumerate()], ("oocgraph-team", "oocgraph-peak-sampler")
    return sorted(name for name in names if name.startswith("oocgraph") and not name.startswith(kept))


AGAIN = """
import json, re, sys
import oocgraph
from oocgraph.errors import BudgetError

graph, options = sys.argv[1], json.loads(sys.argv[2])
try:
    oocgraph.bfs(oocgraph.open_graph(graph, storage_options=options), 1, memory_budget=1 << 20)
except BudgetError as error:
    budget = re.search(r"set memory_budget to at least (\\d+M)", str(error))[1]
for _ in range(4):
    print(oocgraph.bfs(oocgraph.open_graph(graph, storage_options=options), 1, memory_budget=budget).num_reached)
"""


def searched_again(url, options):
    """Search four times with the least budget that is named; returns what is printed."""
    done = subprocess.run([sys.executable, "-c", AGAIN, url, json.dumps(options)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
