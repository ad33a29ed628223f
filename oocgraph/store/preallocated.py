"""An array of known length that is written in any order, by any process that sees its folder, and sealed at the end.

In: the length, then blocks with the position of each. Out: an uncompressed array of a store (as `oocgraph.store.writer.ArrayWriter` writes
one), with its metadata and its checksums. The files have their full size from the beginning, so blocks never meet: a block that is written
twice, because a worker was lost, is the same twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.compiled.crc32c import page_checksums
from oocgraph.store.layout import CHECKSUMS, CHUNK_BYTES
from oocgraph.store.metadata import array_metadata, write_metadata
from oocgraph.store.writer import ArrayWriter, write_chunks
from oocgraph.types import PAGE_BYTES, Array

SEAL_BYTES = 4 << 20
"""Bytes read back at once for their checksums; a multiple of a page and a divisor of a chunk."""


class PreallocatedArray:
    """An array of a store that is being written. Opening one costs nothing: files are made by `create`.

    Parameters
    ----------
    root
        Folder of the unfinished group.
    name
        Path of the array within it, such as ``out/indices``.
    dtype
        Stored little-endian.
    length
        Elements.
    """

    def __init__(self, root: Path, name: str, dtype: Any, length: int) -> None:
        self.root, self.name, self.length = root, name, length
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self._folder = root / name / "c"
        self.chunk_length = min(CHUNK_BYTES // self.dtype.itemsize, max(1, length))

    def create(self) -> None:
        """Make the chunk files, of zeros; those that are there stay as they are: a worker that was given up may come late."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for chunk in range(-(-self.length // self.chunk_length)):
            with open(self._folder / str(chunk), "ab") as file:
                file.truncate(self.chunk_length * self.dtype.itemsize)

    def write(self, start: int, values: Array) -> None:
        """Write elements ``start ..``; they must lie within the array."""
        if not 0 <= start <= start + values.size <= self.length:
            raise IndexError(f"{self.name}: elements {start} to {start + values.size} are not within its {self.length}")
        data = np.ascontiguousarray(values, self.dtype)
        write_chunks(self._folder, self.chunk_length * self.dtype.itemsize, start * self.dtype.itemsize, data.view(np.uint8))

    def close(self) -> None:
        """Write the metadata."""
        write_metadata(self.root / self.name, array_metadata(self.length, self.chunk_length, self.dtype, "none"))

    def seal(self) -> None:
        """Write the metadata, and the checksums of what is in the files."""
        self.close()
        checksums = ArrayWriter(self.root, f"{CHECKSUMS}/{self.name}", np.uint32, "none")
        num_bytes = self.length * self.dtype.itemsize
        chunk_bytes = self.chunk_length * self.dtype.itemsize
        for first in range(0, num_bytes, chunk_bytes):
            with open(self._folder / str(first // chunk_bytes), "rb", buffering=0) as file:
                stop = min(chunk_bytes, num_bytes - first)
                for at in range(0, stop, SEAL_BYTES):
                    data = np.fromfile(file, np.uint8, min(SEAL_BYTES, stop - at))
                    checksums.append(page_checksums(data, PAGE_BYTES))
        checksums.close()
