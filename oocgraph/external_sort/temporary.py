"""Temporary files: numbered ones in a folder, and folders that know what is open, so that a failed build closes it all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from oocgraph.closing import Closing
from oocgraph.compiled.intrinsics import SPARE_BYTES
from oocgraph.store import files
from oocgraph.types import Array

AHEAD = 3
"""Files between the one that is read and the one that is asked for: the disk works while bins are sorted, and few MiB wait in memory."""


class Closable(Protocol):
    """Something that holds files."""

    def close(self) -> None:
        """Close them; closing twice is allowed."""
        ...


@dataclass(frozen=True, slots=True)
class Folder(Closing):
    """A folder, and everything that was opened in it or below it.

    Leaving its context closes all of that; the store's writer removes the files.
    """

    path: Path
    opened: list[Closable] = field(default_factory=list)

    def child(self, name: str) -> Folder:
        """Return the folder `name` in this one."""
        return Folder(self.path / name, self.opened)

    def close(self) -> None:
        """Close what was opened, and forget it."""
        for one in self.opened:
            one.close()
        self.opened.clear()  # what was opened holds its folder, too, and arrays of all vertices


def read_into(fd: int, arrays: Sequence[Array], offset: int) -> int:
    """Fill arrays from a temporary file at `offset`; return the offset after them."""
    end = files.read_into(fd, arrays, offset)
    if end < offset + sum(array.nbytes for array in arrays):
        raise OSError(f"temporary file ends at byte {end}")
    return end


class NumberedFiles:
    """Temporary files ``0 .. num_files - 1`` of a folder, which threads append to without a lock; each is opened when it is needed.

    Parameters
    ----------
    folder
        Made if it does not exist; one per instance.
    num_files
        Number of files.
    """

    def __init__(self, folder: Folder, num_files: int) -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.opened.append(self)
        self.folder = folder
        self._lock = threading.Lock()
        self._files = [-1] * num_files

    def fd(self, index: int) -> int:
        """Return the descriptor of a file."""
        if self._files[index] < 0:
            with self._lock:
                if self._files[index] < 0:
                    self._files[index] = os.open(self.folder.path / str(index), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return self._files[index]

    def size(self, index: int) -> int:
        """Return the bytes of a file, which is going to be read, and let the disk read the one `AHEAD` of it meanwhile."""
        with suppress(FileNotFoundError):
            ahead = os.open(self.folder.path / str(index + AHEAD), os.O_RDONLY | os.O_CLOEXEC)
            os.posix_fadvise(ahead, 0, 0, os.POSIX_FADV_WILLNEED)
            os.close(ahead)
        return os.fstat(self.fd(index)).st_size

    def windows(self, index: int, num_bytes: int, whole: Callable[[Array, int], tuple[int, int]]) -> Iterator[tuple[Array, int, int]]:
        """Iterate over a file of slices, about `num_bytes` at a time.

        ``whole(data, size)`` returns the bytes of the first slices that are whole in ``data[:size]``, and how much room their records need.
        Yields the data, with `SPARE_BYTES` behind it, and these two.
        """
        place, end = 0, os.fstat(self.fd(index)).st_size
        while place < end:
            size, taken, room = min(num_bytes, end - place), 0, 0
            while not taken:
                data = np.empty(size + SPARE_BYTES, np.uint8)
                read_into(self.fd(index), [data[:size]], place)
                taken, room = whole(data, size)
                if not taken and size == end - place:
                    raise OSError(f"temporary file ends within a slice, at byte {end}")
                size = min(2 * size, end - place)  # for a slice that is larger
            yield data, taken, room
            place += taken

    def close_bin(self, index: int) -> None:
        """Close one file; it is opened again when needed."""
        if self._files[index] >= 0:
            os.close(self._files[index])
            self._files[index] = -1

    def remove(self, index: int) -> None:
        """Delete a file that is not needed any more; its page cache goes with it."""
        self.close_bin(index)
        (self.folder.path / str(index)).unlink(missing_ok=True)

    def close(self) -> None:
        """Close all files; what is left is removed with the writer's scratch folder."""
        for index in range(len(self._files)):
            self.close_bin(index)
