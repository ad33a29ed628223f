"""Results on disk until they are validated, so that neither validation nor earlier results disturb the searches.

In: the parent and level of a search. Out: the same later, or the rule that they break. What is written leaves the page cache at once,
so that it does not push out the graph's pages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.bench.disk import drop_pages
from oocgraph.errors import ValidationError
from oocgraph.results.bfs import BFSResult
from oocgraph.store.graph import CSRStore
from oocgraph.store.outputs import output_error
from oocgraph.types import Array, Progress
from oocgraph.verify import verify_bfs

_PIECE_BYTES = 8 << 20


class ResultsOnDisk:
    """Results of one graph in a folder, which is made. Iterating yields them in order, without their parents and levels.

    Raises
    ------
    OutputError
        The folder's disk is full, or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._results: list[BFSResult] = []

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[BFSResult]:
        return iter(self._results)

    def __getitem__(self, number: int) -> BFSResult:
        return self._results[number]

    def put(self, result: BFSResult) -> None:
        """Write parent and level; keep the rest."""
        number, search = len(self._results), result.search
        try:
            _write(self._folder / f"parent-{number}", search.parent)
            _write(self._folder / f"level-{number}", search.level)
        except OSError as error:
            raise output_error(error, self._folder) from error
        self._results.append(replace(result, search=replace(search, parent=search.parent[:0].copy(), level=search.level[:0].copy())))

    def take(self, number: int) -> BFSResult:
        """Read a result back and remove its files."""
        result = self._results[number]
        parent = _read(self._folder / f"parent-{number}", result.search.parent.dtype)
        level = _read(self._folder / f"level-{number}", result.search.level.dtype)
        return replace(result, search=replace(result.search, parent=parent, level=level))

    def validate(
        self, store: CSRStore, progress: Progress, *, phase: str = "validating", memory_budget: str | int | None = None
    ) -> list[str | None]:
        """Take every result; return the rule that it breaks, or None. One of them is in memory at a time."""
        rules = []
        for number in range(len(self)):
            rules.append(first_violation(store, self.take(number), memory_budget=memory_budget))
            progress(phase, number + 1, len(self))
        return rules


def first_violation(
    store: CSRStore, result: Any, *, memory_budget: str | int | None = None, verify: Callable[..., Any] | None = None
) -> str | None:  # fmt: skip
    """Return the rule that `result` breaks, by default of a search, with the vertices; None when it is valid."""
    try:
        (verify or verify_bfs)(store, result, memory_budget=memory_budget)
    except ValidationError as error:
        return str(error)
    return None


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
            drop_pages(descriptor)
    finally:
        os.close(descriptor)
