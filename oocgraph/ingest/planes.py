"""The planes of a group while its rows are written: each grows in its place in the store, which degrees tell.

A compressed array is written from its beginning, so there planes grow in temporary files, one for each, and are copied behind one another.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from oocgraph.external_sort.temporary import NumberedFiles, read_into
from oocgraph.ingest.build_job import Job
from oocgraph.store.arrays import aligned
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
    """Planes that grow in the store, each by `WRITE_BYTES` at a time or up to the next page: what is held lies in pages as in the file."""

    def __init__(self, name: str, dtype: Any, offsets: Array, job: Job) -> None:
        self._array, self._next = job.writer.place(name, dtype, int(offsets[-1])), offsets[:-1].tolist()
        kind = np.dtype(dtype)
        self._page, length = PAGE_BYTES // kind.itemsize, WRITE_BYTES // kind.itemsize
        self._held = aligned(len(self._next) * length, kind).reshape(-1, length)
        self._begins = [first % self._page for first in self._next]
        self._ends = self._begins.copy()

    def append(self, planes: Array, offsets: Array) -> None:
        """Add what a block has."""
        bounds = offsets.tolist()
        for k in range(len(self._next)):
            self._add(k, planes[bounds[k] : bounds[k + 1]])

    def _add(self, k: int, part: Array) -> None:
        held, end = self._held[k], self._ends[k]
        room = held.size - end
        if end > self._begins[k] and part.size >= room:
            held[end:] = part[:room]
            self._put(k, held[self._begins[k] :])
            part, end = part[room:], self._ends[k]
        if part.size >= held.size - end:
            self._put(k, part)
        else:
            held[end : end + part.size] = part
            self._ends[k] = end + part.size

    def _put(self, k: int, part: Array) -> None:
        """Write what comes next, after which nothing is held."""
        if part.size:
            self._array.write(self._next[k], part)
            self._next[k] += part.size
        self._begins[k] = self._ends[k] = self._next[k] % self._page

    def finish(self) -> None:
        """Write what is held."""
        for k in range(len(self._next)):
            self._put(k, self._held[k, self._begins[k] : self._ends[k]])


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
