"""The folder in which compiled kernels are kept from one process to the next: the same one for all processes of a user.

Both kinds of them are here: what numba makes for the processor, and what NVRTC makes for GPUs (`oocgraph.arrays.cubins`).
It is ``NUMBA_CACHE_DIR`` if that is set, else ``__pycache__`` beside the kernels, else the user's cache folder, as numba has it. Where
neither can be written (a service user, a read-only container) it is a folder of the temporary directory that only this user can use.
What is in it is executed, so it must be the user's own, closed to others, and no link; where it is not, this process has a new one.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)

VARIABLE = "NUMBA_CACHE_DIR"


def ensure_cache_folder() -> None:
    """Name a folder to numba, and to the processes that this one starts, where it would find none."""
    if os.environ.get(VARIABLE) or any(_can_write(folder) for folder in (_beside_the_source(), _of_the_user())):
        return
    os.environ[VARIABLE] = str(_shared_folder() or _own_folder())
    if "numba" in sys.modules:  # it has read its variables
        sys.modules["numba"].config.reload_config()


def cache_folder() -> Path:
    """Return the folder in use."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return next(folder for folder in (_beside_the_source(), _of_the_user()) if _can_write(folder))


def _beside_the_source() -> Path:
    return Path(__file__).parent / "kernels" / "__pycache__"


def _of_the_user() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "numba")


def _can_write(folder: Path) -> bool:
    """Whether a file can be made there, tried out: permissions do not tell of file systems that are mounted read-only, or of quotas."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _shared_folder() -> Path | None:
    """Return the folder of this user in the temporary directory; None, and a warning, where it cannot be trusted or made."""
    parent = Path(tempfile.gettempdir())
    folder = parent / f"oocgraph-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found, above = folder.lstat(), parent.stat()
    except OSError as error:
        reason = str(error)
    else:
        reason = why_unsafe(found, above)
    if not reason:
        return folder
    logger.warning(
        "compiled kernels cannot be kept in %s (%s), so that each process compiles its own; set %s to a folder that only you can write to",
        folder, reason, VARIABLE,
    )  # fmt: skip
    return None


def why_unsafe(found: os.stat_result, above: os.stat_result, *, trust_group: bool = False) -> str:
    """Say why others could put something into a folder, or put another in its place; an empty text if they cannot.

    With `trust_group` the group of the folder that it is in may write there: numba's files in that are no safer.
    """
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    if found.st_uid != os.getuid():
        return f"it belongs to user {found.st_uid}"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return "others have access to it"
    writers = stat.S_IWOTH if trust_group else stat.S_IWGRP | stat.S_IWOTH
    if above.st_mode & writers and not above.st_mode & stat.S_ISVTX:
        return "others can replace it: the folder that it is in can be written by all and has no sticky bit"
    return ""


def _own_folder() -> Path:
    """Make a folder for this process and those that it starts, removed at the end."""
    folder, owner = Path(tempfile.mkdtemp(prefix="oocgraph-kernels-")), os.getpid()
    atexit.register(_remove, folder, owner)
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not a process that was forked
        shutil.rmtree(folder, ignore_errors=True)
