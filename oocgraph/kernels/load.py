"""Brings kernels into memory before memory is counted; a process of its own compiles those that are not in the disk cache.

A compiler in the process would leave 100 MB behind in it, which the memory budget would have to carry. ``python -m oocgraph.kernels.load``
is that process, which receives on its stdin what to compile.
"""

from __future__ import annotations

import fcntl
import importlib
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

logger = logging.getLogger(__name__)

MOST_SECONDS = 120.0
"""Time to wait for another process that compiles: it takes 20 s; one that was stopped must not stop others."""


def load_kernel(kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Bring one kernel into memory for arguments of these types; a process of its own compiles it where that is not cached."""
    load_kernels([(kernel, arguments)])


def load_kernels(calls: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
    """Bring kernels into memory, each for arguments of these types; one process compiles all that are not cached.

    Threads do so in turn: numba's registries are generators that two may not read at once. Each call of a function asks, so what was
    brought before is found by a key, which takes a tenth of the time that numba takes to type the arguments (0.5 to 1 ms).
    """
    new = {key: call for call in calls if (key := (call[0], _key(call[1]))) not in _loaded}
    if not new:
        return
    with global_compiler_lock:
        _load_kernels(new.values())
    _loaded.update(new)


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


def _load_kernels(calls: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
    wanted = [(kernel, tuple(numba.typeof(argument) for argument in arguments)) for kernel, arguments in calls]
    wanted = [(kernel, signature) for kernel, signature in wanted if signature not in kernel.overloads]
    # numba tells by this alone whether a signature is cached: its public way to ask is to compile; without a cache that is all there is
    kept = [(kernel, signature) for kernel, signature in wanted if kernel._cache.cache_path is not None]
    cold = [(kernel.py_func, signature) for kernel, signature in kept if kernel._cache.load_overload(signature, kernel.targetctx) is None]
    if cold:
        question = pickle.dumps([(one.__module__, one.__name__, signature) for one, signature in cold])
        compile_elsewhere("oocgraph.kernels.load", question=question)
    for kernel, signature in wanted:
        kernel.compile(signature)


def compile_elsewhere(module: str, *arguments: str, question: bytes | None = None) -> None:
    """Run a module that compiles, in a process of its own.

    One at a time on a machine: of many workers that begin with a cold cache the first compiles, and what the others run finds it there.
    """
    with _one_at_a_time():
        _compile_elsewhere(module, arguments, question)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock that the processes of a user on this machine share, where that can be had."""
    try:
        lock = os.open(Path(tempfile.gettempdir(), f"oocgraph-compiling-{os.getuid()}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        give_up = time.monotonic() + MOST_SECONDS
        is_ours = os.fstat(lock).st_uid == os.getuid()  # another user could hold the lock of a file of theirs for ever
        while is_ours and not _is_locked(lock) and time.monotonic() < give_up:
            time.sleep(0.05)
        yield
    finally:
        os.close(lock)


def _is_locked(file: int) -> bool:
    """Lock a file, unless another process has; where files cannot be locked there is no wait."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _compile_elsewhere(module: str, arguments: tuple[str, ...], question: bytes | None) -> None:
    package = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, input=question, env=environment)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip()[-500:]
        logger.warning("compiling in this process instead of one of its own (which failed: %s)", last)


if __name__ == "__main__":
    for name, kernel_name, types in pickle.loads(sys.stdin.buffer.read()):
        getattr(importlib.import_module(name), kernel_name).compile(types)
