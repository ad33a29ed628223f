"""The planes of a group while its rows are written: each grows in its place in the store, which degrees tell.

A compressed array is written from its beginning, so there planes grow in temporary files, one for each, and are copied behind one another.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from oocgraph.external_sort.temporary import NumberedFiles, read_into
from oocgraph.ingest.build_job import Job
from oocgraph.store.files import LEAST_DIRECT_BYTES, write_all
from oocgraph.types import PAGE_BYTES, Array

WRITE_BYTES = LEAST_DIRECT_BYTES + 2 * PAGE_BYTES
"""Bytes of a plane that are written at once, or more; its first and last page may be incomplete. They are held where readers of edges held
theirs (`READER_BYTES`): 64 planes take 16 MiB."""


class Planes(Protocol):
    """What receives the planes of each block, in order."""

    def append(self, planes: Array, offsets: Array) -> None:
        """Add what a block has: plane k is ``planes[offsets[k]:offsets[k + 1]]``."""
        ...

    def finish(self) -> None:
        """End after the last block."""
        ...


def new_planes(name: str, dtype: Any, offsets: Array, job: Job) -> Planes:
    """Begin the array of all planes, of which plane k is ``offsets[k] .. offsets[k + 1] - 1``."""
    return (PlacedPlanes if job.options.codec == "none" else PlaneFiles)(name, dtype, offsets, job)


class PlacedPlanes:
    """Planes that grow in the store, each by `WRITE_BYTES` at a time."""

    def __init__(self, name: str, dtype: Any, offsets: Array, job: Job) -> None:
        self._array, self._next = job.writer.place(name, dtype, int(offsets[-1])), offsets[:-1].tolist()
        self._held = np.empty((len(self._next), WRITE_BYTES // np.dtype(dtype).itemsize), dtype)
        self._sizes = [0] * len(self._next)

    def append(self, planes: Array, offsets: Array) -> None:
        """Add what a block has."""
        bounds = offsets.tolist()
        for k in range(len(self._sizes)):
            self._add(k, planes[bounds[k] : bounds[k + 1]])

    def _add(self, k: int, part: Array) -> None:
        held, size = self._held[k], self._sizes[k]
        if size and size + part.size >= held.size:
            held[size:] = part[: held.size - size]
            self._sizes[k] = held.size
            self._write(k)
            part, size = part[held.size - size :], 0
        if part.size >= held.size:
            self._put(k, part)
        else:
            held[size : size + part.size] = part
            self._sizes[k] = size + part.size

    def _write(self, k: int) -> None:
        self._put(k, self._held[k, : self._sizes[k]])
        self._sizes[k] = 0

    def _put(self, k: int, part: Array) -> None:
        if part.size:
            self._array.write(self._next[k], part)
            self._next[k] += part.size

    def finish(self) -> None:
        """Write what is held."""
        for k in range(len(self._sizes)):
            self._write(k)


class PlaneFiles(NumberedFiles):
    """Planes that grow in temporary files."""

    def __init__(self, name: str, dtype: Any, offsets: Array, job: Job) -> None:
        super().__init__(job.folder("planes"), offsets.size - 1)
        self._out, self._dtype, self._lengths = job.writer.create(name, dtype), dtype, np.diff(offsets).tolist()

    def append(self, planes: Array, offsets: Array) -> None:
        """Add what a block has."""
        for k in range(len(self._lengths)):
            part = planes[offsets[k] : offsets[k + 1]]
            if part.size:
                write_all(self.fd(k), [part])

    def finish(self) -> None:
        """Copy the planes into the store."""
        buffer = np.empty(1 << 20, self._dtype)
        for k, length in enumerate(self._lengths):
            for start in range(0, length, buffer.size):
                part = buffer[: min(buffer.size, length - start)]
                read_into(self.fd(k), [part], start * part.itemsize)
                self._out.append(part)
        self.close()
