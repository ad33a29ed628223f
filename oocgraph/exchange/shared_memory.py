"""Memory that processes of one host share: a file without a name, which others map through its owner's entry in ``/proc``.

In: a size. Out: a `SharedMemory`, whose address others open. When the last process that has it is gone, so is the file: nothing is left,
however processes end, and no folder has to have room for it.
"""

from __future__ import annotations

import mmap
import os
import secrets
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from oocgraph.errors import BudgetError, ClusterError
from oocgraph.types import Array

LINE_BYTES = 64
"""Of a cache line; the first one has the token."""


class MemberLostError(ClusterError):
    """Another process is gone, or what it has had in memory."""


class MemoryAddress(NamedTuple):
    """Where memory is.

    Attributes
    ----------
    space
        Which processes can map it: those that say the same of themselves (`memory_space`).
    pid, began, fd
        Process that has it, when that began, and its file there.
    token
        A number that it begins with.
    num_bytes
        Its size.
    """

    space: str
    pid: int
    began: int
    fd: int
    token: int
    num_bytes: int


def memory_space() -> str:
    """Say which processes can map each other's files: those of one user that see each other."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')} {os.geteuid()}"


class SharedMemory:
    """Memory of this process, from `create`, or of another one, from `open`.

    Attributes
    ----------
    address : MemoryAddress
    data : (num_bytes,) uint8
        All of it; the first `LINE_BYTES` are taken.
    """

    def __init__(self, fd: int, address: MemoryAddress) -> None:
        self.address, self._fd = address, -1
        self._map = mmap.mmap(fd, address.num_bytes)
        self.data: Array = np.frombuffer(self._map, np.uint8)

    @classmethod
    def create(cls, num_bytes: int) -> SharedMemory:
        """Make some; it is 0.

        Raises
        ------
        OSError
            The memory is not there, or the kernel has no files without names.
        """
        fd = os.memfd_create("oocgraph", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(fd, 0, num_bytes)
            made = cls(fd, MemoryAddress(memory_space(), os.getpid(), began_at(os.getpid()), fd, secrets.randbits(62), num_bytes))
        except BaseException:
            os.close(fd)
            raise
        made._fd = fd
        made.data[:8].view(np.int64)[0] = made.address.token
        return made

    @classmethod
    def for_arrays(cls, layout: list[tuple[int, np.dtype[np.generic]]]) -> SharedMemory:
        """Make as much as `carve` needs, for all workers of a host.

        Raises
        ------
        BudgetError
            The memory is not there.
        """
        try:
            return cls.create(carved_bytes(layout))
        except OSError as error:
            asked = f"{carved_bytes(layout) / 2**20:.0f} MiB"
            why = f"{error.strerror}; set oocgraph.exchange to messages, or leave workers more memory"
            raise BudgetError(f"workers cannot share {asked} of memory: {why}") from error

    @classmethod
    def open(cls, address: MemoryAddress) -> SharedMemory:
        """Map that of another process.

        Raises
        ------
        MemberLostError
            The process is gone, it has given its memory back, or what is there is another file.
        OSError
            The process may not be looked into.
        """
        try:
            fd = os.open(f"/proc/{address.pid}/fd/{address.fd}", os.O_RDWR | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError) as error:
            raise MemberLostError(f"process {address.pid} is gone, or has given its memory back") from error
        try:
            if os.fstat(fd).st_size == address.num_bytes:
                found = cls(fd, address)
                if found.data[:8].view(np.int64)[0] == address.token:
                    return found
        finally:
            os.close(fd)
        raise MemberLostError(f"process {address.pid} has another file in the place of its memory")

    def forget_pages(self) -> None:
        """Take the pages that this process has touched out of its memory; what they hold stays, and comes back when it is touched."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Give back the file, of who has made it; memory that is still used stays until it is not."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def began_at(pid: int) -> int:
    """Return when a process began, in clock ticks; 0: it is gone, or has ended and nobody has asked for its status."""
    with suppress(OSError, IndexError):
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return 0 if fields[0] in "ZX" else int(fields[19])
    return 0


def carve(data: Array, layout: list[tuple[int, np.dtype[np.generic]]]) -> list[Array]:
    """Cut memory into arrays, each at the beginning of a cache line, behind the first."""
    at, found = LINE_BYTES, list[Array]()
    for size, dtype in layout:
        found.append(data[at : at + size * dtype.itemsize].view(dtype))
        at += -(-size * dtype.itemsize // LINE_BYTES) * LINE_BYTES
    return found


def carved_bytes(layout: list[tuple[int, np.dtype[np.generic]]]) -> int:
    """Bytes that `carve` needs."""
    return LINE_BYTES + sum(-(-size * dtype.itemsize // LINE_BYTES) * LINE_BYTES for size, dtype in layout)
