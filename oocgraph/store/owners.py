"""Who works in a folder: the owner of its file ``owner`` holds a lock (flock) on it, for as long as it lives.

In: the file. Out: a descriptor that holds the lock, or who holds it. The kernel releases a lock with its process, however that
ends, whatever its number and in whatever container it ran. `oocgraph.store.remains` asks who makes an output here, and
`oocgraph.store.search_owner` who writes to a result store.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

OWNER = "owner"
"""Name of the file."""

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of a file system without locks."""

MAX_OWNER_BYTES = 1 << 16
"""Of the file: oocgraph writes a few hundred."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who works in a folder.

    Attributes
    ----------
    host, boot, pid
        Name of the host, the kernel's text for its present boot, number of the process.
    destination
        Name of what it makes, in the folder that holds this one.
    locked
        Whether the file system has locks.
    token
        Text that tells two owners of one process apart.
    """

    host: str
    boot: str
    pid: int
    destination: str
    locked: bool
    token: str = ""

    @property
    def is_here(self) -> bool:
        """Whether its process runs, or ran, on this host or under this kernel."""
        return self.host == socket.gethostname() or self.boot == _boot() != ""

    @property
    def is_near(self) -> bool:
        """Whether a lock that it held would be seen here for certain."""
        return self.locked and self.is_here


def own(file: Path, destination: str) -> int:
    """Make the file of a folder, with this process as its owner; returns the descriptor that holds the lock.

    Raises
    ------
    FileExistsError
        The folder has an owner, or had one.
    OSError
        The file cannot be made.
    """
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        locked = lock(fd, fcntl.LOCK_EX)
        owner = Owner(socket.gethostname(), _boot(), os.getpid(), destination, locked, uuid.uuid4().hex)
        os.write(fd, json.dumps(asdict(owner)).encode())
    except BaseException:
        os.close(fd)
        raise
    return fd


def lock(fd: int, kind: int) -> bool:
    """Lock a file; return whether its file system has locks.

    Raises
    ------
    BlockingIOError
        Another process holds the lock, and `kind` has ``LOCK_NB``.
    """
    try:
        fcntl.flock(fd, kind)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def read_owner(fd: int) -> Owner | None:
    """Return what the file says; None where it says nothing that can be used."""
    try:
        owner = Owner(**json.loads(os.pread(fd, MAX_OWNER_BYTES, 0)))
    except (ValueError, TypeError):
        return None
    return owner if os.path.basename(owner.destination) == owner.destination else None


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
