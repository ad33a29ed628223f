"""The planes of a group while its rows are written: each grows in its place in the store, which degrees tell.

A compressed array is written from its beginning, so there they grow in a temporary file, which is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.external_sort.vertex_file import VertexFile
from oocgraph.ingest.build_job import Job
from oocgraph.store.arrays import aligned
from oocgraph.store.files import LEAST_DIRECT_BYTES
from oocgraph.store.writer import PlacedWriter
from oocgraph.types import PAGE_BYTES, Array

WRITE_BYTES = LEAST_DIRECT_BYTES + 2 * PAGE_BYTES
"""Bytes of a plane that are written at once, or more; its first and last page may be incomplete. They are held where readers of edges held
theirs (`READER_BYTES`): 64 planes take 16 MiB."""

COPY_LENGTH = 1 << 18
"""Elements that are copied at once."""


class Planes:
    """Planes that grow in their places, each by `WRITE_BYTES` at a time or up to the next page: what is held lies in pages as in the file.

    Parameters
    ----------
    name, dtype
        The array of all planes.
    offsets : (num_planes + 1,) int64
        Plane k is ``offsets[k] .. offsets[k + 1] - 1`` of it.
    job
        Of whose store it is.
    """

    def __init__(self, name: str, dtype: Any, offsets: Array, job: Job) -> None:
        self._name, self._writer, self._next = name, job.writer, offsets[:-1].tolist()
        length, kind = int(offsets[-1]), np.dtype(dtype)
        self._array: PlacedWriter | VertexFile
        if job.options.codec == "none":
            self._array = job.writer.place(name, kind, length)
        else:
            self._array = VertexFile(job.folder("planes"), length, kind, in_memory=False)
        self._page, held_length = PAGE_BYTES // kind.itemsize, WRITE_BYTES // kind.itemsize
        self._held = aligned(len(self._next) * held_length, kind).reshape(-1, held_length)
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
        """Write what is held; of a compressed array, copy all from the temporary file."""
        for k in range(len(self._next)):
            self._put(k, self._held[k, self._begins[k] : self._ends[k]])
        if isinstance(self._array, VertexFile):
            length, out = self._array.length, self._writer.create(self._name, self._array.dtype)
            for start in range(0, length, COPY_LENGTH):
                out.append(self._array.read(start, min(length, start + COPY_LENGTH)))
            self._array.close()
