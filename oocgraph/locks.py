"""Locks that processes on this machine share: who compiles, who writes to the cache of compiled kernels, who replaces a store."""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

MOST_SECONDS = 120.0
"""Time to wait for another process that compiles: it takes 20 s; one that was stopped must not stop others."""

MOST_SECONDS_OF_TURN = 10.0
"""Time to wait for another process that replaces something, which takes milliseconds."""

RETRY_SECONDS = 0.02
"""Interval between two attempts to take a lock."""


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock `name`, where that can be had.

    Of those that wait one is next, so a process that takes the lock again and again does not keep others from it.
    """
    give_up = time.monotonic() + MOST_SECONDS
    with _held(name, give_up, after=f"{name}-next"):
        yield


@contextmanager
def _held(name: str, give_up: float, *, after: str = "") -> Iterator[None]:
    """Hold a lock; another one is held, `after` which it is waited for."""
    try:
        lock = os.open(Path(tempfile.gettempdir(), f"oocgraph-{name}-{os.getuid()}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        is_ours = os.fstat(lock).st_uid == os.getuid()  # another user could hold the lock of a file of theirs for ever
        with _held(after, give_up) if after else nullcontext():
            if is_ours:
                _wait(lock, give_up, name, MOST_SECONDS)
        yield
    finally:
        _release(lock)


@contextmanager
def turn_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, in which something is compared and replaced at once, where that can be had."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        _wait(lock, time.monotonic() + MOST_SECONDS_OF_TURN, str(folder), MOST_SECONDS_OF_TURN)
        yield
    finally:
        _release(lock)


def _wait(lock: int, give_up: float, name: str, seconds: float) -> None:
    """Lock a file, or say that another process has had it for so many seconds."""
    while not _is_locked(lock):
        if time.monotonic() > give_up:
            logger.warning("another process has had the lock %r for %g s; going on without it", name, seconds)
            return
        time.sleep(RETRY_SECONDS)


def _release(lock: int) -> None:
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_UN)  # a process that was forked meanwhile has the file open, too
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
