"""One number for each provisional vertex, in memory when the budget has room for it, in a file otherwise.

A provisional id (pid) is a vertex's position in ascending order of the user's ids. Degrees and ranks are kept by pid.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from oocgraph.external_sort.temporary import Folder, read_into
from oocgraph.store.files import write_at
from oocgraph.types import Array


class VertexFile:
    """An array of `length` values, zero at first.

    Parameters
    ----------
    folder
        Where the temporary file is, when it is not in memory.
    length, dtype
        Its shape.
    in_memory
        Whether to hold it.

    Attributes
    ----------
    resident : (length,) or None
        The array itself, when it is in memory.
    """

    def __init__(self, folder: Folder, length: int, dtype: Any, *, in_memory: bool) -> None:
        self.length, self.dtype = length, np.dtype(dtype)
        self.resident: Array | None = np.zeros(length, dtype) if in_memory else None
        self._path = folder.path.with_suffix(".vertices")
        folder.opened.append(self)
        self._fd = -1
        if not in_memory:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._fd, length * self.dtype.itemsize)

    def read(self, start: int, stop: int) -> Array:
        """Return values ``start .. stop - 1``: a view when resident."""
        if self.resident is not None:
            return self.resident[start:stop]
        out = np.empty(max(0, stop - start), self.dtype)
        if out.size:
            read_into(self._fd, [out], start * self.dtype.itemsize)
        return out

    def write(self, start: int, values: Array) -> None:
        """Replace the values from `start` on."""
        if self.resident is not None:
            self.resident[start : start + values.size] = values
            return
        write_at(self._fd, np.ascontiguousarray(values, self.dtype), start * self.dtype.itemsize)

    def close(self) -> None:
        """Free the memory, or the file."""
        self.resident = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._path.unlink(missing_ok=True)
