"""Brings kernels into memory before memory is counted; processes of their own compile those that are not in the disk cache.

A compiler in the process would leave 100 MB behind in it, which the memory budget would have to carry. ``python -m oocgraph.compiled.load``
is such a process, which receives on its stdin what to compile.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from oocgraph.cache_folder import cache_folder
from oocgraph.compiled.announce import announce
from oocgraph.config import num_cores
from oocgraph.errors import BudgetError
from oocgraph.locks import locked
from oocgraph.machine import available_bytes, cgroup_limit_bytes, kernel_text, kib_of
from oocgraph.pool import Pool
from oocgraph.types import Progress, ignore_progress

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

Call = tuple[Any, tuple[Any, ...]]
"""A kernel, with arguments of the types that it will be called with."""

PHASE = "compiling kernels"

MOST_COMPILERS, COMPILER_BYTES = 4, 400 << 20
"""Processes that compile at once, and what each may take: it holds 250 MiB after 20 kernels, more with `GARBAGE`."""

LEAST_BYTES = 160 << 20
"""Least limit of a control group with which kernels are compiled: those of a search take 16 s, and 9 s with twice as much. With 150 MiB it
took more than five minutes, in which libraries were read again and again."""

BESIDE_BYTES = 110 << 20
"""Of that, what is beside this process: a compiler of few kernels, and pages of its libraries."""

PAGES_BYTES = 48 << 20
"""What pages of libraries need of a control group's limit, beside what processes hold."""

USUAL = (("deques", "team_calls"), ("crc32c", "checksum_calls"), ("sound", "sound_calls"))
"""Modules of this package, and what returns the kernels of each that most computations call."""

FEW_KERNELS = 6
"""Kernels that one process compiles alone: another takes 0.8 s to begin."""

NUM_TURNS = 16
"""Locks of those that compile; which one is theirs depends on the cache."""

MOST_KERNELS = 200
"""Kernels after which a process is followed by another."""

GARBAGE = 50_000
"""Objects between two collections of garbage in a compiler: a tenth of its time is saved."""


def load_kernel(kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Bring one kernel into memory for arguments of these types; a process of its own compiles it where that is not cached."""
    load_kernels([(kernel, arguments)])


def load_kernels(calls: Iterable[Call], progress: Progress = ignore_progress) -> None:
    """Bring kernels into memory, each for arguments of these types; other processes compile all that are not cached, in this order.

    Threads do so in turn: numba's registries are generators that two may not read at once. Each call of a function asks, so what was
    brought before is found by a key, which takes a tenth of the time that numba takes to type the arguments (0.5 to 1 ms).
    """
    new = {key: call for call in calls if (key := (call[0], _key(call[1]))) not in _loaded}
    if not new:
        return
    if cold := _beyond_signals(_load, new.values()):
        cold = list(dict.fromkeys(cold + _beyond_signals(_signatures, _usual_calls())))
        _compile_elsewhere(cold, progress)
        _beyond_signals(_load_or_compile, cold)
    _loaded.update(new)


def _usual_calls() -> list[Call]:
    """Return what most computations call sooner or later: were it compiled then, they would hold their memory meanwhile."""
    return [call for name, calls in USUAL for call in getattr(importlib.import_module(f"{__package__}.{name}"), calls)()]


def _beyond_signals(function: Callable[[Any], _T], argument: Any) -> _T:
    """Call a function in a thread that no signal interrupts: what one raises in numba or llvmlite may leave their locks taken.

    Then the next thread that loads a kernel would wait for ever, and the end of a pool for that thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(argument)
    with Pool(1, "oocgraph-kernels") as pool:
        return pool.submit(function, argument).result()


def _load(calls: Iterable[Call]) -> list[tuple[Any, Any]]:
    """Load what is in the disk cache, and return what is not."""
    with global_compiler_lock:
        return [one for one in _signatures(calls) if not _load_cached(*one)]


def _load_or_compile(cold: list[tuple[Any, Any]]) -> None:
    """Load what has been compiled, and compile what others have failed at."""
    with global_compiler_lock:
        for kernel, signature in cold:
            if not _load_cached(kernel, signature):
                kernel.compile(signature)


_loaded: set[Any] = set()
"""Kernels that are in memory, with the keys of their arguments."""


def _key(argument: Any) -> Any:
    """Return what arguments of the same types have in common."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return argument.dtype, argument.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable
    if isinstance(argument, tuple):
        return type(argument), tuple(map(_key, argument))
    return argument if isinstance(argument, Dispatcher) else type(argument)


def load_if_kept(calls: list[Call]) -> None:
    """Bring kernels into memory if all of them are compiled; otherwise the first call of each compiles or loads it."""
    if not are_cold(calls):
        load_kernels(calls)


def are_cold(calls: Iterable[Call]) -> bool:
    """Whether some kernel has yet to be compiled."""
    new = [call for call in calls if (call[0], _key(call[1])) not in _loaded]
    return bool(new and _beyond_signals(_cold, _beyond_signals(_signatures, new)))


def is_kept(kernel: Any) -> bool:
    """Whether a kernel has a disk cache."""
    return kernel._cache.cache_path is not None


def _cold(kernels: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the kernels that are in no cache."""
    with global_compiler_lock:
        return [one for one in kernels if _is_cold(*one)]


def _signatures(calls: Iterable[Call]) -> list[tuple[Any, Any]]:
    """Return each kernel that is not in memory with the types of its arguments."""
    wanted = ((kernel, tuple(numba.typeof(argument) for argument in arguments)) for kernel, arguments in calls)
    return list(dict.fromkeys((kernel, signature) for kernel, signature in wanted if signature not in kernel.overloads))


def _load_cached(kernel: Any, signature: Any) -> bool:
    """Bring a kernel into memory if it is in the disk cache, or has none; return whether it is loaded.

    numba does the same after it has made itself ready to compile, which takes 0.3 s (it imports SciPy's linear algebra) where the kernels
    of a search take 0.1 s. What is compiled already needs only numba's runtime, which counts references to arrays.
    """
    if not is_kept(kernel):
        kernel.compile(signature)
        return True
    cache = kernel._cache
    rtsys.initialize(kernel.targetctx)
    found = cache._load_overload(signature, kernel.targetctx)
    if found is None:
        return False
    kernel._cache_hits[signature] += 1
    kernel.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
    kernel.add_overload(found)
    return True


def _is_cold(kernel: Any, signature: Any) -> bool:
    """Whether a kernel has a cache, and that has no entry for a signature.

    numba's public way to ask is to compile; its cache's own way reads the kernel, too.
    """
    cache = kernel._cache
    return is_kept(kernel) and cache._index_key(signature, kernel.targetctx.codegen()) not in cache._cache_file._load_index()


def _compile_elsewhere(cold: list[tuple[Any, Any]], progress: Progress) -> None:
    """Have processes compile what is cold; what they fail at is left to this one.

    One call at a time for a cache: of many workers that begin with a cold one the first compiles, and the others find it there.

    Raises
    ------
    BudgetError
        The control group's limit is too small.
    """
    limit, held = cgroup_limit_bytes(), own_bytes()
    if limit is not None and limit < max(LEAST_BYTES, held + BESIDE_BYTES):
        raise BudgetError(
            f"kernels have yet to be compiled, once, which takes {BESIDE_BYTES >> 20} MiB beside the {held >> 20} MiB of this process, and "
            f"the control group's limit is {limit >> 20} MiB: make the same call once where there is more memory"
        )
    announce()
    progress(PHASE, 0, len(cold))
    with locked(_turn()):
        waiting = deque(_beyond_signals(_cold, cold))  # another may have compiled it meanwhile
        others = num_compilers(len(waiting)) - 1
        with Pool(max(1, others), "oocgraph-compile") as pool:
            asked = [pool.submit(_feed, waiting) for _ in range(others)]
            try:
                failures = [_feed(waiting, lambda: progress(PHASE, len(cold) - len(waiting), len(cold)))] if waiting else []
                failures += [one.result() for one in asked]
            finally:
                waiting.clear()  # of an interrupt the others wait for the kernels they are at, not for all
    progress(PHASE, len(cold), len(cold))
    for failure in filter(None, failures):
        logger.warning("compiling in this process instead of one of its own (which failed: %s)", failure)


def _turn() -> str:
    """Return the name of the lock of those that compile into the cache of this process."""
    return f"compiling-{zlib.crc32(os.fsencode(cache_folder())) % NUM_TURNS}"


def own_bytes() -> int:
    """Return what this process holds; 0 where /proc does not tell."""
    with suppress(OSError):
        return kib_of(kernel_text("/proc/self/status"), "RssAnon")
    return 0


def has_room() -> bool:
    """Whether kernels can be compiled beside what this process holds."""
    limit = cgroup_limit_bytes()
    return limit is None or own_bytes() + BESIDE_BYTES <= limit


def num_compilers(num_kernels: int) -> int:
    """Return how many processes compile so many kernels."""
    limit, free = cgroup_limit_bytes(), available_bytes()
    room = free if limit is None else min(free, limit)
    return min(-(-num_kernels // FEW_KERNELS), num_cores(), MOST_COMPILERS, max(1, room // (2 * COMPILER_BYTES)))


class _Compiler:
    """A process that compiles one kernel after the other."""

    def __init__(self) -> None:
        self.environment = _environment()
        self.num_kernels = self.num_bytes = 0
        self.is_sound = True
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=self.environment
        )

    def compile(self, kernel: Any, signature: Any) -> bool:
        """Have it compile a kernel into the disk cache; returns False if the process has ended before it had done so."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.num_kernels, self.is_sound = self.num_kernels + 1, False
        with suppress(BrokenPipeError):
            pickle.dump((kernel.py_func.__module__, kernel.py_func.__name__, signature), self._process.stdin)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            self.num_bytes, self.is_sound = int(answer or 0), bool(answer)
        return self.is_sound

    def is_full(self) -> bool:
        """Whether it should compile no more kernels: each leaves 1 to 2 MB behind."""
        limit = cgroup_limit_bytes()
        return self.num_kernels >= MOST_KERNELS or (limit is not None and own_bytes() + self.num_bytes > limit - PAGES_BYTES)

    def close(self) -> str:
        """End the process; returns its last words if it has failed.

        Raises
        ------
        BudgetError
            It was killed, where a control group has a small limit: to compile in this process would take more.
        """
        with self._said, self._process:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            code, limit = self._process.wait(), cgroup_limit_bytes()
            if not code:
                return ""
            if code == -signal.SIGKILL and limit is not None and limit < 2 * COMPILER_BYTES:
                raise BudgetError(
                    f"kernels have yet to be compiled, once, and the process that did so was killed: the control group's limit is "
                    f"{limit >> 20} MiB; make the same call once where there is more memory"
                )
            self._said.seek(0)
            return self._said.read().decode(errors="replace").strip()[-500:] or f"exit code {self._process.returncode}"


def _environment() -> dict[str, str]:
    """Return the environment variables of a process that compiles; pytest changes one from test to test."""
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return own | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [own.get("PYTHONPATH")])])}


class _Waiting:
    """Processes that wait for more to compile."""

    def __init__(self) -> None:
        self.most = 0
        self._compilers: list[_Compiler] = []

    def take(self) -> _Compiler:
        """Return one that would begin in the same way now, or another."""
        while self._compilers:
            compiler = self._compilers.pop()
            if compiler.environment == _environment():
                return compiler
            compiler.close()
        return _Compiler()

    def put(self, compiler: _Compiler) -> str:
        """Have a process wait, or end it; returns its last words if it has failed."""
        if not compiler.is_sound or compiler.is_full() or len(self._compilers) >= self.most:
            return compiler.close()
        self._compilers.append(compiler)
        return ""

    def close(self) -> None:
        """End them."""
        while self._compilers:
            self._compilers.pop().close()


_waiting = _Waiting()


@contextmanager
def keep_compilers(most: int = MOST_COMPILERS) -> Iterator[None]:
    """Have processes that compile, so many of them, wait for more until the end of this context: each takes 0.8 s to begin."""
    before, _waiting.most = _waiting.most, most
    try:
        yield
    finally:
        _waiting.most = before
        if not before:
            _waiting.close()


def _feed(kernels: deque[tuple[Any, Any]], report: Callable[[], None] = lambda: None) -> str:
    """Have a process compile one kernel after the other, as long as there are any; returns the last words of one that has failed."""
    failure = ""
    while kernels and not failure:
        compiler = _waiting.take()
        try:
            with suppress(IndexError):
                while compiler.compile(*kernels.popleft()):
                    report()
                    if compiler.is_full():
                        break
        finally:
            failure = _waiting.put(compiler)
    return failure


def _compile() -> None:
    """Compile what comes in, and answer each with the bytes that this process holds."""
    gc.set_threshold(GARBAGE)
    with suppress(EOFError):
        while True:
            name, kernel, signature = pickle.load(sys.stdin.buffer)
            getattr(importlib.import_module(name), kernel).compile(signature)
            print(own_bytes(), flush=True)


if __name__ == "__main__":
    _compile()
