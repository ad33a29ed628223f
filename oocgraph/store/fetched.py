"""Stored arrays whose bytes are fetched by name: uncompressed ones in an object store, and compressed ones anywhere.

In: a function that gets bytes of a file of the store. Out: see `oocgraph.store.arrays.StoredArray`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.store.arrays import REMEDY, StoredArray
from oocgraph.store.codecs import decode, max_stored_bytes
from oocgraph.store.metadata import ArrayShape
from oocgraph.store.remote_files import LOADING_BYTES, RemoteFiles, Wanted
from oocgraph.store.values import Rule
from oocgraph.types import PAGE_BYTES, Array, Codec

REQUEST_BYTES = 1 << 20
"""Bytes of a request at the most: of S3's client each takes about 1.3 ms of a core, and loopback 2."""

UNIT_BYTES = 4 << 20
"""Bytes that are read best at once: four requests, so that `LOADING_THREADS` have 16 under way."""

KEPT_BYTES = 4 << 20
"""Of a decoded chunk that is kept, at the most: ours have 1 MiB, those of a store that another program wrote may have any size."""

LOADING_THREADS = LOADING_BYTES // UNIT_BYTES
"""Threads that load what stays in memory."""

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
    """An uncompressed array in an object store, read by byte ranges of its chunks, all those of a read together.

    (Indexing a Zarr array would fetch whole chunks of 64 MiB.)
    """

    def __init__(
        self, files: RemoteFiles, name: str, shape: ArrayShape, *, rule: Rule | None = None, checksums: RangeArray | None = None
    ) -> None:  # fmt: skip
        super().__init__(files.get, name, shape, rule=rule, checksums=checksums)
        self._files, self._sums = files, checksums

    @property
    def unit(self) -> int:
        """Elements of a few requests, which are under way together."""
        return min(self.chunk_length, UNIT_BYTES // self.dtype.itemsize)

    def read_into(self, start: int, out: Array, *, direct: bool = False) -> None:
        """Fill `out`, a unit after the other."""
        for a in range(0, out.size, self.unit):
            super().read_into(start + a, out[a : a + self.unit])

    def expect(self, start: int, stop: int) -> None:
        """Ask for elements ``start .. stop - 1``, and their checksums, which will be read soon."""
        self._files.expect([one for wanted in self._wanted(start, stop) for one in wanted])

    def _fetch(self, start: int, stop: int) -> Array:
        first, last = (start, stop) if self._sums is None else self._pages_around(start, stop)
        own, sums = self._wanted(start, stop)
        found = self._files.get_all([*own, *sums])
        values = self._joined(own, found)
        if self._sums is not None:
            self._check_bytes(first * self.dtype.itemsize, values.view(np.uint8), self._sums._joined(sums, found[len(own) :]))
        return values[start - first : stop - first] if stop - start < last - first else values

    def _wanted(self, start: int, stop: int) -> tuple[list[Wanted], list[Wanted]]:
        """Return the requests that elements take, as whole pages where they are compared, and those of the checksums of these."""
        if self._sums is None or start >= stop:
            return list(self._requests(start, stop)), []
        per_page = PAGE_BYTES // self.dtype.itemsize
        sums = self._sums._requests(start // per_page, -(-stop // per_page))
        return list(self._requests(*self._pages_around(start, stop))), list(sums)

    def _requests(self, start: int, stop: int) -> Iterator[Wanted]:
        """Cut elements into requests, always at the same places of a chunk."""
        itemsize, length = self.dtype.itemsize, REQUEST_BYTES // self.dtype.itemsize
        for chunk, first, last in self.chunk_ranges(start, stop):
            chunk_start = chunk * self.chunk_length
            a, end = first - chunk_start, last - chunk_start
            while a < end:
                z = min(end, a // length * length + length)
                yield Wanted(f"{self.name}/c/{chunk}", a * itemsize, (z - a) * itemsize, self.chunk_length * itemsize)
                a = z

    def _joined(self, wanted: list[Wanted], found: list[Array | None]) -> Array:
        out, at = np.empty(sum(one.num_bytes for one in wanted), np.uint8), 0
        for one, raw in zip(wanted, found, strict=False):  # those of checksums come behind
            if raw is None:
                raise CorruptStoreError(f"{one.key}: this chunk of {self.name} is missing; restore the store or build it again")
            if raw.size != one.num_bytes:
                raise CorruptStoreError(f"{one.key}: this chunk of {self.name} ends before byte {one.start + one.num_bytes}; {REMEDY}")
            out[at : at + raw.size] = raw
            at += raw.size
        return out.view(self.dtype)


class ZarrArray(FetchedArray):
    """A compressed array, here or in an object store, whose chunks are decoded as a whole.

    The last one of which a part was asked for is kept: a stream of short reads comes back to it.
    """

    _kept: tuple[int, Array] | None = None

    def read_into(self, start: int, out: Array, *, direct: bool = False) -> None:
        """Fill `out`, where whole chunks are decoded to; `direct` has no meaning here."""
        if not out.size or out.dtype != self.dtype or not out.flags.c_contiguous or self._follows_unread(start):
            super().read_into(start, out, direct=direct)
            return
        self._decode_into(start, out)
        self._check_values(start, out)
        if self.mask is not None:
            self.mask.applied(start, out)

    def _fetch(self, start: int, stop: int) -> Array:
        out = np.empty(stop - start, self.dtype)
        self._decode_into(start, out)
        return out

    def _decode_into(self, start: int, out: Array) -> None:
        for chunk, low, high in self.chunk_ranges(start, start + out.size):
            wanted, first = out[low - start : high - start], chunk * self.chunk_length
            if wanted.size == self.chunk_length:
                self._decode(chunk, wanted)
                continue
            kept = self._kept  # which another thread may replace, and nobody changes
            if kept is None or kept[0] != chunk:
                kept = chunk, np.empty(self.chunk_length, self.dtype)
                self._decode(*kept)
                if kept[1].nbytes <= KEPT_BYTES:
                    self._kept = kept
            wanted[:] = kept[1][low - first : high - first]

    def _decode(self, chunk: int, out: Array) -> None:
        key = f"{self.name}/c/{chunk}"
        most = max_stored_bytes(out.nbytes)
        raw = self.stored(chunk, 0, most + 1)
        try:
            if len(raw) > most:
                raise ValueError(f"it has more than {most} bytes")
            if self.checksums is not None:
                from oocgraph.compiled.crc32c import page_checksums

                found = page_checksums(np.frombuffer(raw, np.uint8), max(1, len(raw)))
                if not found.size or found[0] != self.checksums.read(chunk, chunk + 1)[0]:
                    raise CorruptStoreError(f"{key}: this chunk of {self.name} differs from its checksum; {REMEDY}")
            decode(self.codec, raw, out.view(np.uint8))
        except (OSError, RuntimeError, ValueError) as error:
            raise CorruptStoreError(f"{key}: this chunk of {self.name} cannot be read or decoded ({error}); {REMEDY}") from error
