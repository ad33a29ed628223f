"""Files that a folder or a pattern stands for; only hidden files, graph stores and documents are left out.

In: a path. Out: files in the order of their names, or an InputError that names the folder that cannot be listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from oocgraph.errors import InputNotFoundError
from oocgraph.ingest.sources.source import is_hidden, reading

_MAGIC = "*?["
"""Characters that make a path a pattern."""

_STORES = ("zarr.json", ".zgroup")
"""Files that mark a folder as a Zarr group, such as a graph store."""

_DOCUMENTS = (".md", ".rst", ".pdf", ".html", ".crc", ".md5", ".sha256", ".log")
"""Extensions of documents and checksums, which lie beside data."""

_NAMES_OF_DOCUMENTS = ("readme", "license", "licence", "copying", "citation", "changelog", "makefile")
"""Names of documents, without extension or with ``.txt``."""


def is_pattern(text: str) -> bool:
    """Whether a path is a pattern."""
    return any(sign in text for sign in _MAGIC)


def is_store(folder: Path) -> bool:
    """Whether a folder is a Zarr group."""
    return any((folder / name).exists() for name in _STORES)


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders, without graph stores, documents, and what is hidden.

    A link to a folder counts as a file and is not followed: it may lead back to a folder above it.

    Raises
    ------
    InputError
        A folder cannot be listed.
    """
    return sorted(file for files in _walk(folder) for file in files if not _is_document(file))


def files_matching(pattern: str) -> list[Path]:
    """Return the files that match a pattern: hidden ones only if no other does, and folders only without ``**``, which matches their files.

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
        for _ in _walk(above) if above.is_dir() else ():  # refuses folders that cannot be listed, which glob passes over
            pass
        found = [one for one in found if not one.is_dir()]
    if not found:
        raise InputNotFoundError(f"{pattern}: no file matches; check the pattern")
    return [file for file in found if not any(map(is_hidden, file.relative_to(above).parts))] or found


def _walk(folder: Path) -> Iterator[list[Path]]:
    """Yield the files of a folder, then those of each subfolder."""
    for path, folders, files in os.walk(folder, onerror=_refuse):
        here = Path(path)
        inner = [name for name in folders if not is_hidden(name) and not is_store(here / name)]
        links = [name for name in inner if (here / name).is_symlink()]
        folders[:] = [name for name in inner if name not in links]
        yield [here / name for name in (*files, *links) if not is_hidden(name)]


def _is_document(file: Path) -> bool:
    """Whether a file is a document or a checksum, by its name."""
    name = file.name.lower()
    return name.endswith(_DOCUMENTS) or name.removesuffix(".txt") in _NAMES_OF_DOCUMENTS


def _refuse(error: OSError) -> None:
    with reading(Path(error.filename)):
        raise error
