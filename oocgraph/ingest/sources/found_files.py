"""Which files a folder or a pattern stands for: whatever is left out of them is what their names show not to be data.

In: a path. Out: files in the order of their names, or an InputError that names what cannot be looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import NoReturn

from oocgraph.errors import InputError, InputNotFoundError
from oocgraph.ingest.sources.source import is_hidden, reading

_MAGIC = "*?["
"""Signs of which a pattern has one."""

_STORES = ("zarr.json", ".zgroup")
"""Files of which a folder has one that is a graph store, or another Zarr group."""

_BESIDE_DATA = (".md", ".rst", ".pdf", ".html", ".crc", ".md5", ".sha256", ".log")
"""Extensions of what lies beside data and is none."""

_NAMES_BESIDE_DATA = ("readme", "license", "licence", "copying", "citation", "changelog", "makefile")
"""Names of such files, by themselves or as ``.txt``."""


def is_pattern(text: str) -> bool:
    """Whether a path has signs of a pattern."""
    return any(sign in text for sign in _MAGIC)


def is_store(folder: Path) -> bool:
    """Whether a folder is a Zarr group."""
    return any((folder / name).exists() for name in _STORES)


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and of those in it; graph stores and hidden files and folders left out.

    Links to folders are among them, as files: nobody knows where they end.

    Raises
    ------
    InputError
        A folder cannot be listed.
    """
    return sorted(file for files in _walk(folder) for file in files)


def is_beside_data(file: Path) -> bool:
    """Whether a file's name shows that it has no edges."""
    name = file.name.lower()
    return name.endswith(_BESIDE_DATA) or name.removesuffix(".txt") in _NAMES_BESIDE_DATA


def files_matching(pattern: str) -> list[Path]:
    """Return what matches a pattern; what is hidden only if nothing else does, and of ``**`` no folders, as their files match, too.

    Raises
    ------
    InputError
        A folder cannot be listed.
    InputNotFoundError
        Nothing matches.
    """
    found = sorted(Path(name) for name in glob(pattern, recursive=True))
    parts = Path(pattern).parts
    above = Path(*parts[: next(i for i, part in enumerate(parts) if is_pattern(part))])
    if "**" in parts:
        for _ in _walk(above) if above.is_dir() else ():  # glob says nothing of what it cannot list
            pass
        found = [one for one in found if not one.is_dir()]
    if not found:
        raise InputNotFoundError(f"{pattern}: no file matches; check the pattern")
    return [file for file in found if not any(map(is_hidden, file.relative_to(above).parts))] or found


def _walk(folder: Path) -> Iterator[list[Path]]:
    """Yield the files of each folder from one on."""
    for path, folders, files in os.walk(folder, onerror=_refuse):
        here = Path(path)
        inner = [name for name in folders if not is_hidden(name) and not is_store(here / name)]
        links = [name for name in inner if (here / name).is_symlink()]
        folders[:] = [name for name in inner if name not in links]
        yield [here / name for name in (*files, *links) if not is_hidden(name)]


def _refuse(error: OSError) -> NoReturn:
    with reading(Path(error.filename)):
        raise error
    raise InputError(str(error))  # not reached: the operating system's errors are turned into ours
