"""Temporary folders of outputs: who works in one, and what becomes of it when that process has gone.

An output is made in a folder ``.oocgraph-building-*`` beside its place, whose file ``owner`` says who makes it and where it will stand. The
owner holds an exclusive lock (flock) on that file for as long as it lives: the kernel releases it with the process, however that
ends, whatever its number and in whatever container it ran. The next process that makes an output in the same folder removes what has no
owner any more.

The lock decides where it can: on a file system that has locks, for a process of this host, or of this kernel. Anything else
(no locks, another host, whose locks a network file system need not pass on) is left alone until nothing has changed in it for a week.

A folder may hold what stood at the output's place: a file system that cannot exchange folders has it moved aside first
(`oocgraph.store.publish`). It is put back if its successor is still beside it; otherwise the successor has been published::

    .oocgraph-building-4f0c.../owner    {"host", "boot", "pid", "destination", "locked"}
                               output*  the output, until it is published; then, after an exchange, what it has replaced
                               old      what stood at its place, moved aside
                               ...      whatever else is needed to make it
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from oocgraph.store.forgotten import forget
from oocgraph.store.owners import OWNER, lock, own, read_owner

logger = logging.getLogger(__name__)

TEMPORARY = ".oocgraph-building"

YOUNG_SECONDS = 60
"""A folder without a readable owner may be one that is just being made."""

ABANDONED_SECONDS = 7 * 86400
"""Where no lock decides: a folder in which nothing has changed for so long has no owner."""

SUSPICIOUS_SECONDS = 3600
"""Where no lock decides: a folder in which nothing has changed for so long is worth a warning."""

OUTPUT, _OLD = "output", "old"
_MAX_LINKS = 40


@dataclass(slots=True)
class Remains:
    """A temporary folder whose lock this process holds: to make an output in it, or because its owner has gone.

    Attributes
    ----------
    folder
        The folder.
    place
        Where the output will stand; None: the owner was killed before it could say.
    """

    folder: Path
    place: Path | None
    _fd: int = field(repr=False)

    @classmethod
    def make(cls, place: Path) -> Remains:
        """Make a temporary folder for an output.

        Raises
        ------
        OSError
            The folder cannot be made, or not written; nothing is left of it.
        """
        folder = place.parent / f"{TEMPORARY}-{uuid.uuid4().hex[:12]}"
        try:
            folder.mkdir()
            return cls(folder, place, own(folder / OWNER, place.name))
        except BaseException:  # an interrupt too must leave nothing behind
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @property
    def aside(self) -> Path:
        """Where a folder that stood at the output's place is kept until the output stands there."""
        return self.folder / _OLD

    def put_back(self) -> bool:
        """Put back what was moved aside and not replaced; returns whether nothing is left that must be kept."""
        if self.place is None or not os.path.lexists(self.aside) or not any(self.folder.glob(f"{OUTPUT}*")):
            return True
        if os.path.lexists(self.place):
            return False
        os.rename(self.aside, self.place)
        return True

    def release(self) -> None:
        """Give up the lock; again is no error."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def discard(self) -> bool:
        """Put back what was moved aside, unless its successor is published, and remove the folder; returns whether it is gone."""
        try:
            if not self.put_back():
                logger.warning(
                    "%s: left by a process that ended while it replaced %s; something else stands there by now, so what stood there before "
                    "is kept in %s; move it elsewhere or remove it yourself", self.folder, self.place, self.aside,
                )  # fmt: skip
                return False
            for entry in sorted(self.folder.glob("*")):
                if entry.is_dir() and not entry.is_symlink():
                    forget(os.path.join(root, name) for root, _, names in os.walk(entry) for name in names)
                    shutil.rmtree(entry, ignore_errors=True)
                elif entry.name != OWNER:  # it goes last: until then others see whose folder this is
                    entry.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s: could not be removed (%s); remove it yourself", self.folder, error.strerror)
            return False
        finally:
            self.release()  # before the file goes: NFS keeps a file that is open, and with it the folder
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.folder.exists():
            return True
        logger.warning("%s: could not be removed; remove it yourself", self.folder)
        return False


def clear(parent: Path) -> None:
    """Remove the temporary folders of a folder that have no owner any more, and put back what they had moved aside."""
    for folder in parent.glob(f"{TEMPORARY}-*"):
        if (found := _take(folder)) is not None:
            found.discard()


def behind_links(path: Path) -> Path:
    """Return an absolute path that is no symbolic link; its folder stays as it was named, because other hosts may know that name only."""
    place = path.absolute()
    for _ in range(_MAX_LINKS):
        if not place.is_symlink():
            break
        place = place.parent / os.readlink(place)
    return place


def restore(path: Path) -> bool:
    """Put back what stood at a path, if a process that has ended moved it aside; returns whether it did."""
    place = behind_links(path)
    for old in place.parent.glob(f"{TEMPORARY}-*/{_OLD}"):
        found = _take(old.parent, put_back=True)
        if found is None:
            continue
        try:
            if found.place == place and found.put_back() and os.path.lexists(place):
                return True
        except OSError as error:
            logger.warning("%s: stood at %s, and cannot be put back (%s); move it there yourself", old, place, error.strerror)
        finally:
            found.release()
    return False


def _take(folder: Path, *, put_back: bool = False) -> Remains | None:
    """Take a folder that has no owner any more; None of one that has, or may have.

    To put something back, which loses nothing, it is enough that no process holds the lock.
    """
    try:
        fd = os.open(folder / OWNER, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # its maker was killed before it could say who it was, or is about to
        return Remains(folder, None, -1) if _quiet_seconds(folder) > YOUNG_SECONDS else None
    except OSError:
        return None  # another user's
    try:
        lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner, quiet = read_owner(fd), _quiet_seconds(folder)
        if put_back or (quiet > YOUNG_SECONDS if owner is None else owner.is_near or quiet > ABANDONED_SECONDS):
            found, fd = Remains(folder, None if owner is None else folder.parent / owner.destination, fd), -1
            return found
    except OSError:  # another process holds the lock
        return None
    finally:
        if fd >= 0:
            os.close(fd)
    if owner is not None and quiet > SUSPICIOUS_SECONDS:
        logger.warning(
            "%s: left alone; process %d of host %s may be at work in it, and no lock here tells; once nothing has changed in it for "
            "%d days it is removed; if that process has ended, remove it yourself",
            folder, owner.pid, owner.host, ABANDONED_SECONDS // 86400,
        )  # fmt: skip
    return None


def _quiet_seconds(folder: Path) -> float:
    """Seconds since something last changed in a folder."""
    newest = 0.0
    for where, _, files in os.walk(folder):
        for path in (where, *(os.path.join(where, name) for name in files)):
            with suppress(OSError):
                newest = max(newest, os.lstat(path).st_mtime)
    return time.time() - newest
