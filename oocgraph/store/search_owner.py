"""The one search that writes to a result store: its process owns the store's file ``owner`` (`oocgraph.store.owners`).

In: the folder of a result store. Out: a `SearchOwner`, or one error that names the search that writes there. A search that has ended in
order removes the file. One that was killed leaves it without its lock, and the next search takes its place at once.

A lock decides between processes of one host, and between hosts whose file system shares locks. On one that does not (NFS mounted with
``nolock``, Lustre without ``flock``), nothing shows whether a search on another host is still running or was killed. The new search then
takes over, because a job that was requeued has to go on. The old one, if it is alive, finds the new owner's file before it next writes
the attributes, and ends. Until then it does no harm: its logs belong to an epoch of their own, and its parts are just as valid.
"""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from pathlib import Path

from oocgraph.closing import Closing
from oocgraph.errors import OutputError
from oocgraph.store.metadata import open_file
from oocgraph.store.owners import MAX_OWNER_BYTES, OWNER, Owner, lock, own, read_owner
from oocgraph.store.search_errors import search_write_error

logger = logging.getLogger(__name__)

_REMEDY = "wait for it, or give another result_store"


class SearchOwner(Closing):
    """Owns a result store until it is closed.

    Parameters
    ----------
    folder
        The result store.
    place
        Where it will stand, if it is made elsewhere.

    Raises
    ------
    OutputError
        Another search writes there, or the file cannot be made.
    """

    def __init__(self, folder: Path, *, place: Path | None = None) -> None:
        self._folder, self._file, self._pid = folder, folder / OWNER, os.getpid()
        try:
            self._fd = self._take(name=(place or folder).name)
        except OSError as error:
            raise search_write_error(error, self._file) from error
        if place is not None:
            self._folder, self._file = place, place / OWNER

    def confirm(self) -> None:
        """Refuse to write once another search has taken the place of this one.

        Raises
        ------
        OutputError
            It has.
        """
        if _is_at(self._file, self._fd) or not self._folder.is_dir():  # a folder that is gone has its own message
            return
        if not self._file.exists():
            raise OutputError(f"{self._file} was removed, so that another search may write there, and this one ends: {_REMEDY}")
        raise OutputError(f"another search{_who_is_at(self._file)} has taken over {self._folder}, so this one ends: {_REMEDY}")

    def close(self) -> None:
        """Let others write there; again is no error."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if os.getpid() == self._pid:  # a process that was forked meanwhile has the file open, too, but owns nothing
            with suppress(OSError):
                if _is_at(self._file, fd):
                    self._file.unlink()
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def _take(self, *, name: str) -> int:
        """Make the file, in place of one without an owner; returns the descriptor that holds the lock."""
        while True:
            with suppress(FileNotFoundError):
                self._remove_left()
            try:
                fd = own(self._file, name)
            except FileExistsError:  # another search was quicker
                continue
            if _is_at(self._file, fd):
                return fd
            os.close(fd)  # another search has taken the file for one that was left, because it was not locked yet

    def _remove_left(self) -> None:
        """Remove the file of a search that was killed; refuse to if its owner lives."""
        fd = _open(self._file)
        try:
            owner = _owner_of(fd)
            try:
                lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                crashed = "" if owner is None or owner.is_here else f"; if that host has crashed, remove {self._file}"
                raise OutputError(f"another search{_who(owner)} writes to {self._folder}: {_REMEDY}{crashed}") from error
            except OSError as error:  # NFS, of another user's file, which can only be read
                logger.info("%s: cannot be locked (%s)", self._file, error.strerror)
            if not _is_at(self._file, fd):
                return
            if owner is not None and not owner.is_near:
                logger.warning(
                    "%s: no lock here tells whether another search%s still writes to it; this one goes on, and that one ends if it does",
                    self._folder, _who(owner),
                )  # fmt: skip
            self._file.unlink(missing_ok=True)
        finally:
            os.close(fd)


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:  # another user's, in a folder that both may write to
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC)


def _is_at(file: Path, fd: int) -> bool:
    """Whether the file that is open is the one at a place: compared by content, which NFS asks the server for."""
    try:
        with open_file(file) as there:
            return there.read(MAX_OWNER_BYTES) == os.pread(fd, MAX_OWNER_BYTES, 0)
    except FileNotFoundError:
        return False
    except OSError:  # a file system whose locks keep others from reading; or it is no file
        return os.path.samestat(file.stat(), os.fstat(fd))


def _owner_of(fd: int) -> Owner | None:
    try:
        return read_owner(fd)
    except OSError:
        return None


def _who_is_at(file: Path) -> str:
    try:
        fd = _open(file)
    except OSError:
        return ""
    try:
        return _who(_owner_of(fd))
    finally:
        os.close(fd)


def _who(owner: Owner | None) -> str:
    return "" if owner is None else f" (process {owner.pid} of host {owner.host})"
