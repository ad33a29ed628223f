"""Keeps results on disk until they are validated, so that neither validation nor old results disturb the searches.

In: the parent and level of a search. Out: the same, later. What is written leaves the page cache at once, so that it does
not push out the graph's pages.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.results.bfs import BFSResult
from oocgraph.store.outputs import output_error
from oocgraph.types import Array

_PIECE_BYTES = 8 << 20


class ResultSpool:
    """Results of one graph in a folder.

    Raises
    ------
    OutputError
        The folder's disk is full, or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._results: list[BFSResult] = []

    def __len__(self) -> int:
        return len(self._results)

    def put(self, result: BFSResult) -> None:
        """Write parent and level; keep the figures."""
        number, search = len(self._results), result.search
        try:
            _write(self._folder / f"parent-{number}", search.parent)
            _write(self._folder / f"level-{number}", search.level)
        except OSError as error:
            raise output_error(error, self._folder) from error
        self._results.append(replace(result, search=replace(search, parent=search.parent[:0].copy(), level=search.level[:0].copy())))

    def figures(self, number: int) -> BFSResult:
        """Return a result without its parents and levels."""
        return self._results[number]

    def take(self, number: int) -> BFSResult:
        """Read a result back and remove its files."""
        result = self._results[number]
        parent = _read(self._folder / f"parent-{number}", result.search.parent.dtype)
        level = _read(self._folder / f"level-{number}", result.search.level.dtype)
        return replace(result, search=replace(result.search, parent=parent, level=level))


def leave_page_cache(folder: Path) -> None:
    """Write what is in a folder to the disk, and let its pages go."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                _leave(descriptor)
            finally:
                os.close(descriptor)


def _leave(descriptor: int) -> None:
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _read(path: Path, dtype: np.dtype[Any]) -> Array:
    values = np.fromfile(path, dtype)
    path.unlink()
    return values


def _write(path: Path, values: Array) -> None:
    raw = np.ascontiguousarray(values).view(np.uint8)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        start = 0
        while start < raw.size:
            start += os.write(descriptor, raw[start : start + _PIECE_BYTES].data)
            _leave(descriptor)
    finally:
        os.close(descriptor)
