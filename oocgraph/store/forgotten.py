"""Removes large files without waiting until the disk has freed their blocks, which can take a second for every 3 GB.

In: paths. Out: the names are gone when `forget` returns. The kernel frees the blocks of a file when its last descriptor is closed, and a
thread does that in the background. A process that ends meanwhile leaves nothing behind, however it ends.

There is no lock, since an interrupt could leave it held. Popping a descriptor from a list is atomic, and each is popped before it is
closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress

from oocgraph.pool import start

LARGE_BYTES = 16 << 20
"""Files that take less are gone in a millisecond or two."""

MOST_OPEN = 128
"""Descriptors that one call keeps open, of the thousand that a process may usually have. For the blocks of further files it waits."""

_kept: dict[int, list[int]] = {}
"""Lists of descriptors that are still open, by id: a child process has to close its copies."""


def forget(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Remove files; their blocks are freed a little later. Files that cannot be removed are left."""
    held: list[int] = []
    _kept[id(held)] = held
    try:
        for path in paths:
            with suppress(OSError):
                _remove(path, held)
        if held:
            start(threading.Thread(target=_close, args=(held,), name="oocgraph-closing", daemon=True))
        else:
            _close(held)
    except BaseException:
        _close(held)
        raise


def _remove(path: str | os.PathLike[str], held: list[int]) -> None:
    """Remove a file, and add a descriptor of it to `held` if it has become nameless and large."""
    if len(held) < MOST_OPEN and os.lstat(path).st_blocks * 512 >= LARGE_BYTES:
        with suppress(OSError):  # this user may not read it, or too many are open: it is removed all the same
            held.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
            os.unlink(path)
            if os.fstat(held[-1]).st_nlink:  # it has another name, or one that a network file system gives a file that is open
                os.close(held.pop())
            return
    os.unlink(path)


def _close(held: list[int]) -> None:
    while held:
        with suppress(IndexError):
            os.close(held.pop())
    _kept.pop(id(held), None)


def _close_copies() -> None:
    """Close, in a child process, what it has inherited: else it would keep the room."""
    for held in list(_kept.values()):
        _close(held)


os.register_at_fork(after_in_child=_close_copies)
