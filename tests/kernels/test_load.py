"""Kernels are brought into memory once, whichever threads ask for them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

from oocgraph import build_csr
from oocgraph.locks import MOST_SECONDS, locked
from tests.capped import run_capped

ASKS = """
import sys, threading
import numpy as np
from oocgraph.compiled.load import load_kernel
from oocgraph.compiled.sound import read_sound
from oocgraph.compiled.crc32c import _pages, _readonly
barrier, failed = threading.Barrier(8), []

def ask(i):
    barrier.wait()
    try:
        if i % 2:
            load_kernel(read_sound, (1, 1, np.empty(0, np.uint8), np.empty(0, np.uint32), np.uint64(1), 4))
        else:
            load_kernel(_pages, (_readonly(np.empty(0, np.uint8)), 1, np.empty(0, np.uint32)))
    except BaseException as error:
        failed.append(repr(error))

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed, len(read_sound.overloads), len(_pages.overloads))
"""


def test_threads_that_ask_for_kernels_at_once_get_them():
    """The first question of a process fills numba's registries, which fails where two threads do it."""
    done = subprocess.run([sys.executable, "-c", ASKS], check=True, capture_output=True, text=True)
    assert done.stdout == "[] 1 1\n"


IS_READY = """
import sys
import numba, numpy as np
from oocgraph.compiled.crc32c import page_checksums
from oocgraph.kernels.rows import find_class
from oocgraph.kernels import warm

print(page_checksums(np.frombuffer(b"123456789", np.uint8), 4096).tolist())
warm.load_search_kernels("uint32")
print("numba.np.arraymath" in sys.modules)

@numba.njit
def total(first, v):
    return find_class(first, v) + first.sum()

print(total(np.arange(5), 3))
"""


def test_cached_kernels_are_loaded_before_numba_is_ready_to_compile():
    """In a process that finds all of them numba imports nothing that only a compiler needs; what is compiled after that may call them."""
    expected = [str([0xE3069283]), "False", "13"]
    for _ in range(2):  # the first one may compile
        done = subprocess.run([sys.executable, "-c", IS_READY], check=True, capture_output=True, text=True)
        if done.stdout.splitlines() == expected:
            break
    assert done.stdout.splitlines() == expected


IS_COLD = """
import sys
import numpy as np
from oocgraph.kernels.components import begin
from oocgraph.compiled import load
load.USUAL = ()
load.load_kernels([(begin, (np.empty(0, np.int32), 0, 0))])
print(len(begin.overloads), "numba.np.arraymath" in sys.modules)
"""


def test_a_process_whose_kernels_others_compile_does_not_get_ready_to_compile(tmp_path):
    """So that it holds what the next one will: a budget that it names works there, too."""
    done = subprocess.run(
        [sys.executable, "-c", IS_COLD], check=True, capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "1 False\n"
    assert "compiling" in done.stderr


TURN = """
from oocgraph.compiled import load
print(load._turn(), end="")
"""


def test_those_that_compile_into_other_caches_are_not_waited_for(tmp_path):
    """Of those that share a cache, one compiles at a time."""

    def ask(code, cache):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment).stdout

    caches = [tmp_path / str(i) for i in range(64)]
    turn = ask(TURN, caches[0])
    other = next(cache for cache in caches if ask(TURN, cache) != turn)
    assert ask(TURN, caches[0]) == turn
    with locked(turn):
        began = time.monotonic()
        assert ask(IS_COLD, other) == "1 False\n"
        assert time.monotonic() - began < MOST_SECONDS


@pytest.mark.capped
def test_kernels_are_not_compiled_where_that_would_take_for_ever(tmp_path):
    """The compiler's libraries would be read again and again; with what has been compiled elsewhere it goes on."""
    command, environment = [sys.executable, "-c", IS_COLD], {"NUMBA_CACHE_DIR": str(tmp_path)}
    refused = run_capped(150 << 20, command, env=environment, timeout=60)
    assert "kernels have yet to be compiled, once, which takes 110 MiB beside the" in refused.stderr
    assert "MiB of this process, and the control group's limit is 150 MiB: make the same call once where" in refused.stderr
    assert run_capped(200 << 20, command, env=environment).stdout == "1 False\n"
    assert run_capped(150 << 20, command, env=environment).stdout == "1 False\n"


FULL = """
import signal, subprocess
from oocgraph.compiled import load
from oocgraph.compiled.deques import team_calls
from oocgraph.errors import BudgetError
started, start = [], subprocess.Popen
subprocess.Popen = lambda *a, **o: started.append(start(*a, **o)) or started[-1]
load.USUAL = load.USUAL[:1]
load.cgroup_limit_bytes = lambda: load.LEAST_BYTES
load.PAGES_BYTES = load.LEAST_BYTES
load.load_kernels(team_calls())
print(len(started), len({one.returncode for one in started}), all(kernel.overloads for kernel, _ in load._usual_calls()))
from oocgraph.kernels.components import begin
import numpy as np
load._Compiler.compile = lambda self, *_: self._process.kill()
try:
    load.load_kernel(begin, (np.empty(0, np.int32), 0, 0))
except BudgetError as error:
    print(error)
"""


def test_a_process_that_compiles_ends_before_it_has_no_room(tmp_path):
    """Another goes on; where one is killed under a limit, this process does not go on itself, which would take more."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FULL], check=True, capture_output=True, text=True, env=environment)
    counted, said = done.stdout.splitlines()
    assert counted == "3 1 True"
    assert said == (
        "kernels have yet to be compiled, once, and the process that did so was killed: the control group's limit is 160 MiB; make the "
        "same call once where there is more memory"
    )


@pytest.mark.slow
@pytest.mark.capped
@pytest.mark.parametrize("command", ["bfs --source 0 --memory 140M", "components --memory 140M", "core --memory 175M"])
def test_a_first_call_compiles_under_a_small_limit(tmp_path, command):
    """What the compiler leaves behind, and what is compiled when the graph is in memory already, took 50 MB more."""
    name, *options = command.split()
    edges = np.random.default_rng(1).integers(0, 500_000, (2, 2_000_000))
    build_csr(tuple(edges), tmp_path / "g")
    budget = int(options[-1].removesuffix("M")) << 20
    ran = run_capped(
        int(budget / 0.85),
        [sys.executable, "-m", "oocgraph", name, tmp_path / "g", *options],
        env={"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert ran.returncode == 0, ran.stderr[-1000:]


DAMAGED = """
import logging, sys
from pathlib import Path
import numpy as np
logging.basicConfig(stream=sys.stdout, format="%(message).40s")
from oocgraph.compiled import load
from oocgraph.compiled.deques import end, new_deques, team_calls
load.USUAL = ()
load.load_kernels(team_calls())
end(new_deques(1))
print("loaded")
"""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("suffix", [".nbc", ".nbi"])
@pytest.mark.parametrize("length", [0, 40])
def test_a_damaged_kernel_is_compiled_again(tmp_path, suffix, length):
    """Its file was cut off, as by a full disk."""

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", DAMAGED], check=True, capture_output=True, text=True, env=environment
        ).stdout.splitlines()

    assert run()[-1] == "loaded"
    assert run() == ["loaded"]
    for file in tmp_path.rglob(f"deques.end*{suffix}"):
        file.write_bytes(file.read_bytes()[:length])
    damaged, *_, last = run()
    assert damaged == f"a compiled kernel in {tmp_path}"[:40]
    assert last == "loaded"
    assert run() == ["loaded"]


STALE = """
import logging, sys
import numba
import numpy as np
logging.basicConfig(stream=sys.stdout, format="%(message).24s")
from oocgraph.kernels.rows import find_class

@numba.njit
def outer(first, v):
    return find_class(first, v)

print(outer(np.arange(5), 3))
"""


def test_a_kernel_of_another_version_is_compiled_again_where_another_calls_it(tmp_path):
    """Its index names a type that is not there any more: numba would raise, as it reads it before it looks whose it is."""

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", STALE], check=True, capture_output=True, text=True, env=environment
        ).stdout.splitlines()

    assert run()[-1] == "3"
    (index,) = tmp_path.rglob("rows.find_class*.nbi")
    index.write_bytes(pickle.dumps(numba.__version__) + b"coocgraph.gone\nThing\n.")
    assert run() == ["a compiled kernel in " + str(tmp_path)[:3], "3"]
    assert run() == ["3"]


def test_versions_of_numba_keep_kernels_of_their_own(tmp_path):
    """Two environments used one folder at a time: each compiled again what the other had written, or read it as its own and failed."""

    def run(version):
        code = f"import numba\nnumba.__version__ = {version!r}\n{STALE}"
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        assert ran.stdout.splitlines()[-1] == "3"
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rows.find_class*.nb?")}

    first = run("0.1")
    second = run("0.2")
    assert len(second) == 2 * len(first) > 0
    assert first.items() < second.items()
    assert run("0.1") == second


KEPT = """
import logging, os, subprocess
import numpy as np
from oocgraph.compiled import load
from oocgraph.compiled.sound import read_sound
from oocgraph.kernels.warm import search_calls
sound = read_sound, (1, 1, np.empty(0, np.uint8), np.empty(0, np.uint32), np.uint64(1), 4)
logging.basicConfig()
started, start = [], subprocess.Popen
subprocess.Popen = lambda *a, **o: started.append(start(*a, **o)) or started[-1]
with load.keep_compilers():
    load.load_kernel(*sound)
    load.load_kernels(search_calls("uint32")[-1:])
    print(len(started), started[0].poll())
    os.environ["OOCGRAPH_THREADS"] = "1"
    load.load_kernels(search_calls("uint32")[1:2])
    print(len(started), started[0].poll(), started[1].poll())
    started[1].kill()
    load.load_kernels(search_calls("uint32")[:1])
    print(len(started))
print([one.poll() for one in started])
load.load_kernels(search_calls("uint32", parts=True)[-1:])
print(len(started), started[2].poll())
"""


@pytest.mark.slow
def test_a_process_that_compiles_is_kept_as_long_as_it_is_sound(tmp_path):
    """Until the environment changes, it is killed, or the context ends; one that was killed has this process compile the kernel."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KEPT], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == ["1 None", "2 0 None", "2", "[0, -9]", "3 0"]
    assert "compiling in this process instead of one of its own (which failed: exit code -9)" in done.stderr


INTERRUPTED = """
import os, signal, threading
import numpy as np
from llvmlite.binding.ffi import register_lock_callback
from oocgraph.compiled.load import load_kernel
from oocgraph.compiled.sound import read_sound
from oocgraph.compiled.crc32c import _pages, _readonly

class Stop(BaseException):
    pass

def stop(*_):
    raise Stop

signals = [signal.SIGALRM]

def taken():
    if signals:
        os.kill(os.getpid(), signals.pop())

signal.signal(signal.SIGALRM, stop)
register_lock_callback(taken, lambda: None)
try:
    load_kernel(read_sound, (1, 1, np.empty(0, np.uint8), np.empty(0, np.uint32), np.uint64(1), 4))
except Stop:
    print("stopped", flush=True)
other = threading.Thread(target=load_kernel, args=(_pages, (_readonly(np.empty(0, np.uint8)), 1, np.empty(0, np.uint32))), daemon=True)
other.start()
other.join(30)
print(len(_pages.overloads), flush=True)
os._exit(0)
"""


def test_a_signal_leaves_no_lock_of_a_compiler_taken():
    """One that comes when llvmlite has just taken its lock: other threads would wait for it for ever."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, capture_output=True, text=True)
    assert done.stdout == "stopped\n1\n"
