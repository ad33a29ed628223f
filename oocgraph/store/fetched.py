"""Stored arrays whose bytes are fetched by name: uncompressed ones in an object store, and compressed ones anywhere.

In: a function that gets bytes of a file of the store. Out: see `oocgraph.store.arrays.StoredArray`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.store.arrays import REMEDY, StoredArray
from oocgraph.store.codecs import decode, max_stored_bytes
from oocgraph.store.metadata import ArrayShape
from oocgraph.store.values import Rule
from oocgraph.types import Array, Codec

Get = Callable[[str, int, int | None], bytes | None]
"""``get(key, start, stop)`` returns bytes of a file of the store, to its end where `stop` is None; None where there is no such file."""


class FetchedArray(StoredArray):
    """An array whose bytes are fetched; `RangeArray` or `ZarrArray`."""

    def __init__(
        self,
        get: Get,
        name: str,
        shape: ArrayShape,
        *,
        codec: Codec = "none",
        rule: Rule | None = None,
        checksums: StoredArray | None = None,
    ) -> None:
        super().__init__(name, *shape, rule=rule, checksums=checksums)
        self._get, self.codec = get, codec

    def stored(self, chunk: int, start: int, stop: int) -> bytes:
        """Return bytes ``start .. stop - 1`` of a chunk as it is stored, or fewer where it ends before.

        Raises
        ------
        CorruptStoreError
            The chunk is missing or cannot be read.
        """
        key = f"{self.name}/c/{chunk}"
        try:
            raw = self._get(key, start, stop)
        except (OSError, RuntimeError, ValueError) as error:
            raise CorruptStoreError(f"{key}: this chunk of {self.name} cannot be read ({error}); {REMEDY}") from error
        if raw is None:
            raise CorruptStoreError(f"{key}: this chunk of {self.name} is missing; restore the store or build it again")
        return raw


class RangeArray(FetchedArray):
    """An uncompressed array in an object store, read by byte ranges of its chunks.

    (Indexing a Zarr array would fetch whole chunks of 64 MiB.)
    """

    def _fetch(self, start: int, stop: int) -> Array:
        if self.checksums is None:
            return self._read(start, stop)
        first, last = self._pages_around(start, stop)
        pages = self._read(first, last)
        self._check_bytes(first * self.dtype.itemsize, pages.view(np.uint8))
        return pages[start - first : stop - first]

    def _read(self, start: int, stop: int) -> Array:
        return np.concatenate([self._read_chunk(*piece) for piece in self.chunk_ranges(start, stop)])

    def _read_chunk(self, chunk: int, start: int, stop: int) -> Array:
        first, last = ((element - chunk * self.chunk_length) * self.dtype.itemsize for element in (start, stop))
        raw = self.stored(chunk, first, last)
        if len(raw) != last - first:
            raise CorruptStoreError(f"{self.place_of(start)}: this chunk of {self.name} ends before byte {last}; {REMEDY}")
        return np.frombuffer(raw, self.dtype)


class ZarrArray(FetchedArray):
    """A compressed array, here or in an object store, whose chunks are decoded as a whole."""

    def _fetch(self, start: int, stop: int) -> Array:
        out = np.empty(stop - start, self.dtype)
        for chunk, low, high in self.chunk_ranges(start, stop):
            first = chunk * self.chunk_length
            out[low - start : high - start] = self._decode(chunk)[low - first : high - first]
        return out

    def _decode(self, chunk: int) -> Array:
        key, chunk_bytes = f"{self.name}/c/{chunk}", self.chunk_length * self.dtype.itemsize
        most = max_stored_bytes(chunk_bytes)
        raw = self.stored(chunk, 0, most + 1)
        try:
            if len(raw) > most:
                raise ValueError(f"it has more than {most} bytes")
            if self.checksums is not None:
                from oocgraph.kernels.crc32c import page_checksums

                found = page_checksums(np.frombuffer(raw, np.uint8), max(1, len(raw)))
                if not found.size or found[0] != self.checksums.read(chunk, chunk + 1)[0]:
                    raise CorruptStoreError(f"{key}: this chunk of {self.name} differs from its checksum; {REMEDY}")
            return np.frombuffer(decode(self.codec, raw, chunk_bytes), self.dtype)
        except (OSError, RuntimeError, ValueError) as error:
            raise CorruptStoreError(f"{key}: this chunk of {self.name} cannot be read or decoded ({error}); {REMEDY}") from error
