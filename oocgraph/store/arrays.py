"""One stored array, read by ranges: plain chunk files by ``preadv``, anything else through Zarr.

In: a range of elements. Out: a NumPy array. `PlainArray` knows where each element's bytes are, so that compiled
readers may read them too (`chunk_path`, `chunk_length`); `ZarrArray` serves compressed and remote stores.
No memory mapping: its read-ahead read 140 times what was touched (DESIGN.md section 4).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.types import PAGE_BYTES, Array


class StoredArray(Protocol):
    """A one-dimensional array of a store."""

    name: str
    dtype: np.dtype[Any]
    length: int
    chunk_length: int

    def read(self, start: int, stop: int) -> Array:
        """Return elements ``start .. stop - 1``: a new array, in host memory."""
        ...


class PlainArray:
    """An uncompressed array on a local file system: chunk ``i`` is the file ``c/i``.

    Raises
    ------
    CorruptStoreError
        When reading: a chunk is missing or shorter than it must be.
    """

    def __init__(self, folder: Path, name: str, dtype: np.dtype[Any], length: int, chunk_length: int) -> None:
        self.folder, self.name, self.dtype, self.length, self.chunk_length = folder, name, dtype, length, chunk_length

    @property
    def num_chunks(self) -> int:
        """Number of chunk files."""
        return -(-self.length // self.chunk_length)

    def chunk_path(self, chunk: int) -> Path:
        """Return the file of a chunk."""
        return self.folder / self.name / "c" / str(chunk)

    def open_chunk(self, chunk: int, flags: int = 0) -> int:
        """Open a chunk for scattered reads, with more flags of ``os.open`` if given; check that it is whole.

        Raises
        ------
        CorruptStoreError
            The file is missing or has the wrong size.
        """
        path = self.chunk_path(chunk)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
        except FileNotFoundError as error:
            raise CorruptStoreError(f"{path}: this chunk of {self.name} is missing; restore the store or build it again") from error
        size, wanted = os.fstat(fd).st_size, self.chunk_length * self.dtype.itemsize
        if size != wanted:
            os.close(fd)
            raise CorruptStoreError(
                f"{path}: this chunk of {self.name} has {size} bytes instead of {wanted}; restore the store or build it again"
            )
        return fd

    def read(self, start: int, stop: int) -> Array:
        """Return elements ``start .. stop - 1``."""
        out = np.empty(max(0, stop - start), self.dtype)
        self.read_into(start, out)
        return out

    def read_into(self, start: int, out: Array, *, direct: bool = False) -> None:
        """Fill `out` with elements ``start .. start + out.size - 1``.

        `direct` leaves them out of the page cache, where that can be done: if `out` is of `aligned`, pages are whole and in one chunk, and
        the file system can. What is read once in a long cycle only drives other pages out, and costs a copy.
        """
        if direct and self._read_directly(start, out):
            return
        position, stop, itemsize = start, start + out.size, self.dtype.itemsize
        raw = out.view(np.uint8).data
        while position < stop:
            chunk = position // self.chunk_length
            end = min(stop, (chunk + 1) * self.chunk_length)
            fd = self.open_chunk(chunk)
            try:
                want = raw[(position - start) * itemsize : (end - start) * itemsize]
                offset = (position - chunk * self.chunk_length) * itemsize
                while want:
                    done = os.preadv(fd, [want], offset)
                    if done <= 0:
                        raise CorruptStoreError(f"{self.chunk_path(chunk)}: ends at byte {offset}; restore the store or build it again")
                    want, offset = want[done:], offset + done
            finally:
                os.close(fd)
            position = end

    def _read_directly(self, start: int, out: Array) -> bool:
        """Read whole pages of one chunk without the page cache; return whether that could be done."""
        chunk, first = divmod(start, self.chunk_length)
        offset, chunk_bytes = first * self.dtype.itemsize, self.chunk_length * self.dtype.itemsize
        if any(n % PAGE_BYTES for n in (out.ctypes.data, offset, out.nbytes)) or offset + out.nbytes > chunk_bytes:
            return False
        try:
            fd = self.open_chunk(chunk, os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False  # a file system without it, such as one in memory
        try:
            want = out.view(np.uint8).data
            while want:
                done = os.preadv(fd, [want], offset)
                if done <= 0 or done % PAGE_BYTES:
                    return False
                want, offset = want[done:], offset + done
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False  # a disk whose sectors are larger than a page
        finally:
            os.close(fd)
        return True


def aligned(length: int, dtype: np.dtype[Any]) -> Array:
    """Return an array that begins at a page, of one page more than it shows."""
    raw = np.empty(length * dtype.itemsize + PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % PAGE_BYTES
    return raw[start : start + length * dtype.itemsize].view(dtype)


class RangeArray:
    """An uncompressed array in an object store, read by byte ranges of its chunks through Zarr's store interface.

    (Indexing a Zarr array would fetch whole chunks of 64 MiB.)
    """

    def __init__(self, array: Any, name: str) -> None:
        self._store, self._path, self.name = array.store, array.path, name
        self.dtype = np.dtype(array.dtype).newbyteorder("<")
        self.length, self.chunk_length = int(array.shape[0]), int(array.chunks[0])

    def read(self, start: int, stop: int) -> Array:
        """Return elements ``start .. stop - 1``; one request per chunk concerned."""
        parts = [np.empty(0, self.dtype)]
        while start < stop:
            chunk = start // self.chunk_length
            end = min(stop, (chunk + 1) * self.chunk_length)
            parts.append(self._read_chunk(chunk, start - chunk * self.chunk_length, end - chunk * self.chunk_length))
            start = end
        return np.concatenate(parts)

    def _read_chunk(self, chunk: int, start: int, stop: int) -> Array:
        from zarr.abc.store import RangeByteRequest
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        key, itemsize = f"{self._path}/c/{chunk}", self.dtype.itemsize
        wanted = RangeByteRequest(start * itemsize, stop * itemsize)
        try:
            found = sync(self._store.get(key, prototype=default_buffer_prototype(), byte_range=wanted))
        except (OSError, RuntimeError, ValueError) as error:
            raise CorruptStoreError(f"{key}: bytes {wanted.start} to {wanted.end} of {self.name} cannot be read ({error})") from error
        if found is None:
            raise CorruptStoreError(f"{key}: this chunk of {self.name} is missing; restore the store or build it again")
        raw = found.to_bytes()
        if len(raw) != wanted.end - wanted.start:
            raise CorruptStoreError(f"{key}: this chunk of {self.name} ends before byte {wanted.end}; restore the store or build it again")
        return np.frombuffer(raw, self.dtype)


class ZarrArray:
    """Any array that Zarr can read: compressed, or in an object store."""

    def __init__(self, array: Any, name: str) -> None:
        self._array, self.name = array, name
        self.dtype, self.length, self.chunk_length = np.dtype(array.dtype), int(array.shape[0]), int(array.chunks[0])

    def read(self, start: int, stop: int) -> Array:
        """Return elements ``start .. stop - 1``; Zarr reads the chunks (or byte ranges) that hold them.

        Raises
        ------
        CorruptStoreError
            A chunk is missing, or cannot be read or decoded.
        """
        try:
            values = np.ascontiguousarray(self._array[start:stop])
            for chunk in range(start // self.chunk_length, -(-stop // self.chunk_length)):
                self._check_zeros(chunk, values[max(0, chunk * self.chunk_length - start) : (chunk + 1) * self.chunk_length - start])
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            raise CorruptStoreError(f"{self.name}: elements {start} to {stop} cannot be read or decoded ({error})") from error
        return values

    def _check_zeros(self, chunk: int, values: Array) -> None:
        """Refuse zeros that Zarr makes up for a chunk that is missing."""
        from zarr.core.sync import sync

        if values.size and not values.any():
            key = f"{self._array.path}/{self._array.metadata.encode_chunk_key((chunk,))}"
            if not sync(self._array.store.exists(key)):
                raise CorruptStoreError(f"{key}: this chunk of {self.name} is missing; restore the store or build it again")
