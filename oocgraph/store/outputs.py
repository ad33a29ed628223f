"""Where outputs may go, what they may replace, and the messages for what goes wrong there.

In: what a user gave as an output, and the kind of output. Out: the place where it will stand, or one message before any work is done. Every
writer asks here: stores, results, partitions, exports, edge lists.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Literal

from oocgraph.errors import OutputError, OutputExistsError
from oocgraph.store.layout import ATTRIBUTES_KEY, PARTITIONS_KEY, RESULT_KEY
from oocgraph.store.metadata import group_has
from oocgraph.store.remains import behind_links, restore
from oocgraph.store.remote import Location, location_of
from oocgraph.store.upload import Upload, scratch_place

Kind = Literal["file", "graph store", "partitions", "result"]
"""Kinds of outputs; each replaces only its own kind."""

_KEYS: dict[Kind, str] = {"graph store": ATTRIBUTES_KEY, "partitions": PARTITIONS_KEY, "result": RESULT_KEY}
_ARTICLES: dict[Kind, str] = {"file": "a file", "graph store": "a graph store", "partitions": "partitions of a graph", "result": "a result"}

_UPLOADED: tuple[Kind, ...] = ("file", "graph store", "result")
"""Kinds that are uploaded to URLs; workers write the partitions of a graph, all in one folder."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
"""Beginning of a URL, also of one that went through `pathlib.Path`, which leaves one of two slashes."""


def output_error(error: OSError, where: Path | str, *, left: Path | None = None) -> OutputError:
    """Return the message for an operating-system error while writing to `where`; `left` is what could not be removed."""
    remains = "nothing was left behind" if left is None else f"{left} could not be removed: remove it yourself"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{where}: the disk is full ({error.strerror}); free some space there or write elsewhere; {remains}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"{where}: no permission to write ({error.strerror}); choose another output folder")
    return OutputError(f"{where}: cannot write ({error.strerror or error})" + ("" if left is None else f"; {remains}"))


def tilde_hint(path: str | os.PathLike[str]) -> str:
    """Return what to say of a path whose ``~`` no shell has replaced; nothing of another."""
    text = os.fspath(path)
    return f"; only shells know ~: give {os.path.expanduser(text)}" if text == "~" or text.startswith("~/") else ""


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return an output's path.

    Raises
    ------
    OutputError
        It is a URL, or empty.
    """
    text = os.fspath(path)
    if not text:  # which would be the current folder
        raise OutputError("the path of the output is empty; name a file or a folder")
    if _URL.match(text):
        raise OutputError(f"{text}: outputs are written to local file systems only; give a path, and copy the output to the URL afterwards")
    if (hint := tilde_hint(text)) and not os.path.lexists(text.partition("/")[0]):
        raise OutputError(f"{text}: there is no folder ~ here{hint}")
    return Path(text)


def upload_to(path: str | os.PathLike[str], kind: Kind) -> Upload | None:
    """Return the upload of an output to a URL; None of one that goes to a local file system.

    Raises
    ------
    OutputError
        The URL is out of reach.
    MissingDependencyError
        The package of its file system is not installed.
    """
    is_page = os.fspath(path).startswith(("http://", "https://"))  # which nothing can be written to
    location = location_of(path, None) if kind in _UPLOADED and not is_page else None
    return Upload(location, _KEYS.get(kind)) if isinstance(location, Location) else None


def output_place(path: str | os.PathLike[str], *, kind: Kind, overwrite: bool) -> Path:
    """Return where an output will stand: absolute, and behind any symbolic links; of one at a URL, where it is made.

    Parameters
    ----------
    path
        As the user gave it.
    kind
        What will stand there.
    overwrite
        Whether something of that kind may be replaced.

    Raises
    ------
    OutputError
        `path` is a URL, of partitions or out of reach; or something stands there, and `overwrite` is false or it is of another kind.

    Notes
    -----
    An output that a killed process had moved aside, to replace it, is put back first.
    """
    if (upload := upload_to(path, kind)) is not None:
        upload.check(overwrite=overwrite)
        return scratch_place(upload.location)
    named = local_path(path)
    place = behind_links(named)
    if place.is_symlink():
        raise OutputError(f"{named}: a symbolic link that leads back to itself; remove it or choose another name")
    if not os.path.lexists(place) and not restore(place):
        return place
    if not overwrite:
        raise OutputExistsError(f"{named}: exists already; choose another name or pass overwrite=True")
    if not (place.is_file() if kind == "file" else group_has(place, _KEYS[kind])):
        raise OutputError(
            f"{named}: exists and is not {_ARTICLES[kind]}, so it is not overwritten; remove it yourself or choose another name"
        )
    return place
