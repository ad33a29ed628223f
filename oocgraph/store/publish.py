"""Puts a finished output on disk and in its place, so that at every moment either what was there or the new one stands, whole.

In: an output under a temporary name, on the file system of its place. Out: the output in its place; what it replaced stands where the
output was. A file takes the place of a file by a plain rename. A folder cannot: Linux exchanges two of them in one step
(``renameat2`` with ``RENAME_EXCHANGE``: ext4, XFS, Btrfs, tmpfs), and where a file system cannot do that either (NFS, some FUSE), the old
folder is moved aside first. A process that is killed between those two renames leaves it there, and the next one puts
it back (`oocgraph.store.remains`).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from oocgraph.locks import turn_in
from oocgraph.pool import Call, Pool

_AT_FDCWD, _NOREPLACE, _EXCHANGE = -100, 1, 2

_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
"""No such call, or a file system without it. EPERM: a sandbox that refuses unknown calls; a forbidden rename fails again, plainly."""

_SYNC_THREADS = 8
"""Files that are forced to disk at once: a journal commits them together."""


def sync_tree(path: Path) -> None:
    """Force a file, or a folder with all that is in it, to disk."""
    if not path.is_dir():
        _sync(path)
        return
    folders = [Path(folder) for folder, _, _ in os.walk(path)]
    pool = Pool(_SYNC_THREADS, "oocgraph-sync")
    try:
        for _ in pool.map(_sync, _files(folders)):
            pass
        for _ in pool.map(sync_folder, folders):
            pass
    finally:
        pool.close()


class EarlySync:
    """Forces files to disk in a thread of its own while others are written, so that `sync_tree` finds little left to do.

    The system tells of a failed write once: `finish` raises what a file met with.
    """

    def __init__(self) -> None:
        self._pool = Pool(1, "oocgraph-sync")
        self._started: list[Call[None]] = []

    def start(self, path: Path) -> None:
        """Begin with a file that is whole, or will be before the others are."""
        self._started.append(self._pool.submit(_sync, path))

    def finish(self) -> None:
        """Wait for all files.

        Raises
        ------
        OSError
            One of them could not be written.
        """
        for call in self._started:
            call.result()
        self.close()

    def close(self) -> None:
        """Leave out what has not begun, and wait for the rest."""
        self._pool.close()


def _files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False))


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk, where its file system can do that."""
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def put(
    output: Path, place: Path, *, replace: bool, durable: bool, aside: Path | None = None, check: Callable[[], None] | None = None
) -> None:
    """Force an output to disk and move it to its place.

    Parameters
    ----------
    output
        File or folder, in a temporary folder beside `place`.
    place
        Where it will stand.
    replace
        Whether something stands there; if it is a folder, it goes to where `output` is, or to `aside`.
    durable
        Force it to disk, and then its name: a machine that crashes loses neither what stood there nor the output.
    aside
        A free name on the same file system; a file needs none.
    check
        Raises if what stands there is not what is meant to be replaced; no other process with such a check replaces it meanwhile.

    Raises
    ------
    FileExistsError
        Something stands there, and `replace` is false.
    OSError
        The output cannot be moved. What stood at its place stands there.
    """
    if durable:
        sync_tree(output)
    with nullcontext() if check is None else turn_in(place.parent):
        if check is not None:
            check()
        if not replace:
            _put_new(output, place)
        elif aside is None or output.is_file():
            os.replace(output, place)
        elif not _rename(output, place, _EXCHANGE):
            _put_in_turn(output, place, aside)
    if durable:
        sync_folder(place.parent)


def _put_new(output: Path, place: Path) -> None:
    if _rename(output, place, _NOREPLACE):
        return
    if os.path.lexists(place):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    os.rename(output, place)


def _put_in_turn(output: Path, place: Path, aside: Path) -> None:
    """Replace a folder by two renames; a process that opens the place meanwhile may put the old one back."""
    while True:
        os.rename(place, aside)
        sync_folder(aside.parent)
        sync_folder(place.parent)
        try:
            os.rename(output, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or os.path.lexists(aside):
                raise
        else:
            return


def _rename(old: Path, new: Path, flags: int) -> bool:
    """Rename with flags; return whether the file system can do that."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(old), None, str(new))


@cache
def _renameat2() -> Any:
    """Return the C library's function, or None."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without it
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call
