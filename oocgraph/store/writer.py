"""Writes a store: arrays grow by appending, checksums beside them, published at the end.

In: blocks of each array, in order. Out: a Zarr v3 group. It is built under a temporary name in the
folder of its destination (so on the same disk) and moved when its attributes say ``complete``; what fails or
is killed before leaves no store that opens, and the next build there removes the remains (`oocgraph.store.atomic_output`).

Chunks are plain files: of the bytes of the values, or of those compressed (`oocgraph.store.codecs`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

import oocgraph
from oocgraph.arrow import from_strings
from oocgraph.compiled.crc32c import page_checksums
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.codecs import encode
from oocgraph.store.files import PastCache, write_at
from oocgraph.store.layout import ATTRIBUTES_KEY, CHECKSUMS, CHUNK_BYTES, COMPRESSED_CHUNK_BYTES, GraphAttributes
from oocgraph.store.metadata import array_metadata, consolidated_metadata, group_metadata, read_json, write_metadata
from oocgraph.store.publish import EarlySync
from oocgraph.store.strings import string_buffers
from oocgraph.types import PAGE_BYTES, Array, Codec


class ArrayWriter:
    """One array of a store that is being written, by appending.

    Parameters
    ----------
    root
        Folder of the unfinished group.
    name
        Path of the array within it, such as ``out/indices``.
    dtype
        Stored little-endian.
    codec
        ``none``: 64 MiB chunk files of plain bytes, a checksum per 4 KiB page.
        Otherwise 1 MiB chunks that are compressed, a checksum per chunk of what is stored.
    early
        Forces whole chunk files to disk while the next ones are written; None: that is left for later.
    past_cache
        Writes all but the first chunk; None: the page cache takes all.
    """

    def __init__(
        self, root: Path, name: str, dtype: Any, codec: Codec, *, early: EarlySync | None = None, past_cache: PastCache | None = None
    ) -> None:
        self.name = name
        self.length = 0
        self._folder, self._dtype, self._codec = root / name, np.dtype(dtype).newbyteorder("<"), codec
        self._chunk_length = (CHUNK_BYTES if codec == "none" else COMPRESSED_CHUNK_BYTES) // self._dtype.itemsize
        self._chunks = self._folder / "c"
        self._chunk_bytes = self._chunk_length * self._dtype.itemsize
        self._pending = np.empty(0, np.uint8)  # bytes after the last whole page (or whole chunk)
        self._checksums: list[Array] = []
        self._num_bytes, self._early, self._past_cache = 0, early, past_cache
        self._chunks.mkdir(parents=True)

    def append(self, block: Array) -> None:
        """Append a one-dimensional block; it is converted to the array's dtype."""
        data = np.ascontiguousarray(block, self._dtype)
        self.length += data.size
        raw = data.view(np.uint8)
        unit = PAGE_BYTES if self._codec == "none" else self._chunk_bytes
        if self._pending.size:
            missing = min(unit - self._pending.size, raw.size)
            self._pending, raw = np.concatenate([self._pending, raw[:missing]]), raw[missing:]
            if self._pending.size < unit:
                return
            self._write(self._pending)
        whole = raw.size // unit * unit
        self._write(raw[:whole])
        self._pending = raw[whole:].copy()

    def close(self) -> None:
        """Write what is pending, the last chunk's padding, and the array's metadata."""
        self._write(self._pending)
        self._pending = np.empty(0, np.uint8)
        chunk_length = self._chunk_length if self._codec != "none" else min(self._chunk_length, max(1, self.length))
        if self._codec == "none" and self.length:
            last = (self._num_bytes - 1) // self._chunk_bytes
            os.truncate(self._chunks / str(last), chunk_length * self._dtype.itemsize)
        write_metadata(self._folder, array_metadata(self.length, chunk_length, self._dtype, self._codec))

    def checksums(self) -> Array:
        """Return the checksums of all that was written: (num_pages or num_chunks,) uint32."""
        return np.concatenate([np.empty(0, np.uint32), *self._checksums])

    def _write(self, raw: Array) -> None:
        if not raw.size:
            return
        if self._codec == "none":
            self._checksums.append(page_checksums(raw, PAGE_BYTES))
            write_chunks(self._chunks, self._chunk_bytes, self._num_bytes, raw, os.O_CREAT, self._past_cache)
            first = self._num_bytes // self._chunk_bytes
            self._num_bytes += raw.size
            if self._early is not None:
                for chunk in range(first, self._num_bytes // self._chunk_bytes):
                    self._early.start(self._chunks / str(chunk))
        else:
            self._write_compressed(raw)

    def _write_compressed(self, raw: Array) -> None:
        for start in range(0, raw.size, self._chunk_bytes):
            values = raw[start : start + self._chunk_bytes]
            if values.size < self._chunk_bytes:  # the last chunk: the rest of it is the fill value
                values = np.concatenate([values, np.zeros(self._chunk_bytes - values.size, np.uint8)])
            stored = np.frombuffer(encode(self._codec, values.view(self._dtype)), np.uint8)
            (self._chunks / str(self._num_bytes // self._chunk_bytes)).write_bytes(stored.data)
            self._checksums.append(page_checksums(stored, max(1, stored.size)))
            self._num_bytes += self._chunk_bytes


class PlacedWriter(ArrayWriter):
    """An uncompressed array of known length that grows at several places, page by page; arguments as of `ArrayWriter`.

    Parameters
    ----------
    length
        Elements.
    """

    def __init__(self, root: Path, name: str, dtype: Any, length: int, *, past_cache: PastCache | None = None) -> None:
        super().__init__(root, name, dtype, "none", past_cache=past_cache)
        self.length, self._num_bytes = length, length * self._dtype.itemsize
        self._pages: dict[int, tuple[Array, int]] = {}  # those that are not complete: their bytes, and how many of them are there
        self._checksums = [np.zeros(-(-self._num_bytes // PAGE_BYTES), np.uint32)]

    def write(self, start: int, block: Array) -> None:
        """Write elements ``start ..``; each is written once."""
        raw, first = np.ascontiguousarray(block, self._dtype).view(np.uint8), start * self._dtype.itemsize
        head = min(raw.size, -first % PAGE_BYTES)
        whole = (raw.size - head) // PAGE_BYTES * PAGE_BYTES
        self._add(first, raw[:head])
        self._put(first + head, raw[head : head + whole])
        self._add(first + head + whole, raw[head + whole :])

    def _add(self, first: int, raw: Array) -> None:
        """Put bytes into their page, which is written once it is complete."""
        if not raw.size:
            return
        page, offset = divmod(first, PAGE_BYTES)
        size = min(PAGE_BYTES, self._num_bytes - page * PAGE_BYTES)
        buffer, count = self._pages.pop(page) if page in self._pages else (np.empty(size, np.uint8), 0)
        buffer[offset : offset + raw.size] = raw
        if count + raw.size < size:
            self._pages[page] = buffer, count + raw.size
        else:
            self._put(page * PAGE_BYTES, buffer)

    def _put(self, first: int, raw: Array) -> None:
        if raw.size:
            page, checksums = first // PAGE_BYTES, page_checksums(raw, PAGE_BYTES)
            self._checksums[0][page : page + checksums.size] = checksums
            write_chunks(self._chunks, self._chunk_bytes, first, raw, os.O_CREAT, self._past_cache)


class StringWriter:
    """Strings of a store that is being written: their bytes, and offsets into them, both by appending (Arrow's layout)."""

    def __init__(self, data: ArrayWriter, offsets: ArrayWriter) -> None:
        self._data, self._offsets, self._length = data, offsets, 0
        offsets.append(np.zeros(1, np.int64))

    def append(self, strings: Any) -> None:
        """Append a pyarrow.LargeStringArray or LargeBinaryArray; null as an empty string."""
        data, offsets = string_buffers(strings.fill_null(from_strings([""])[0]) if strings.null_count else strings)
        self._data.append(data)
        self._offsets.append(offsets[1:] + self._length)
        self._length += data.size

    def close(self) -> None:
        """Close both arrays."""
        self._data.close()
        self._offsets.close()


def write_chunks(folder: Path, chunk_bytes: int, first: int, raw: Array, flags: int = 0, past_cache: PastCache | None = None) -> None:
    """Write bytes of an uncompressed array, from its byte `first` on, to the files of its chunks.

    Parameters
    ----------
    folder
        Folder of the chunks.
    chunk_bytes
        Size of a chunk.
    raw : (n,) uint8
    flags
        More flags of ``os.open``.
    past_cache
        Writes what goes to other chunks than the first: small arrays are read again from the page cache.
    """
    while raw.size:
        chunk, offset = divmod(first, chunk_bytes)
        piece, path = raw[: chunk_bytes - offset], folder / str(chunk)
        done = past_cache.write(path, piece, offset, flags) if past_cache is not None and chunk else 0
        if done < piece.size:
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o666)
            try:
                write_at(fd, piece[done:], offset + done)
            finally:
                os.close(fd)
        raw, first = raw[piece.size :], first + piece.size


def write_groups(root: Path, attributes: dict[str, Any], *, consolidated: bool = False) -> None:
    """Make every folder between `root` and its arrays a Zarr group; `attributes` are those of `root`.

    `consolidated`: the ``zarr.json`` of `root` then has the metadata of all arrays and groups below it too, as Zarr consolidates them, so
    that one request to an object store gets them.
    """
    found: dict[tuple[str, ...], Any] = {}
    for where, names, files in os.walk(root):
        if "zarr.json" in files and (place := Path(where).relative_to(root).parts):
            found[place] = read_json(root.joinpath(*place, "zarr.json"))
            if found[place].get("node_type") == "array":
                names.clear()  # of its chunks
    for place in {one[:depth] for one in found for depth in range(1, len(one))} - set(found):
        found[place] = group_metadata({})
        write_metadata(root.joinpath(*place), found[place])
    own = group_metadata(attributes)
    if consolidated:
        ordered = sorted(found, key=lambda place: (*place, "zarr.json"))  # as stores have it from the first on
        own |= consolidated_metadata({"/".join(place): found[place] for place in ordered})
    write_metadata(root, own)


class StoreWriter:
    """A store being built under a temporary name; `publish` moves it to its place, leaving the context otherwise removes it.

    Parameters
    ----------
    path
        Where the store will be: a folder on a local file system.
    codec
        Compression of the arrays.
    overwrite
        Replace an existing store at `path` (only when the new one is complete).
    durable
        As of `AtomicOutput`.

    Raises
    ------
    OutputError
        `path` exists (and `overwrite` is false or it is not a graph store), or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, codec: Codec, overwrite: bool, durable: bool = True) -> None:
        self.codec: Codec = codec
        self._arrays: dict[str, ArrayWriter] = {}
        self._staging = AtomicOutput(path, kind="graph store", overwrite=overwrite, durable=durable)
        self._early = EarlySync() if durable else None
        self._past_cache = PastCache() if durable else None
        self.root, self.scratch = self._staging.path, self._staging.folder / "scratch"

    def create(self, name: str, dtype: Any) -> ArrayWriter:
        """Begin the array `name` (``out/indices``, ...)."""
        writer = ArrayWriter(self.root, name, dtype, self.codec, early=self._early, past_cache=self._past_cache)
        self._arrays[name] = writer
        return writer

    def place(self, name: str, dtype: Any, length: int) -> PlacedWriter:
        """Begin an uncompressed array of known length that grows at several places."""
        writer = PlacedWriter(self.root, name, dtype, length, past_cache=self._past_cache)
        self._arrays[name] = writer
        return writer

    def write(self, name: str, values: Array) -> None:
        """Write a whole array that is in memory."""
        writer = self.create(name, values.dtype)
        writer.append(values)

    def publish(self, attributes: GraphAttributes, check: Callable[[], None] | None = None) -> None:
        """Close every array, write checksums and the group's attributes, force all to disk and move it to its place.

        `check` is as of `oocgraph.store.publish.put`.
        """
        for name, writer in list(self._arrays.items()):
            writer.close()
            checksums = ArrayWriter(self.root, f"{CHECKSUMS}/{name}", np.uint32, "none")
            checksums.append(writer.checksums())
            checksums.close()
        fields = {**attributes.to_json(), "codec": self.codec, "complete": True, "library_version": oocgraph.__version__}
        write_groups(self.root, {ATTRIBUTES_KEY: fields}, consolidated=True)
        if self._early is not None:
            self._early.finish()
        self._staging.publish(check)

    @property
    def sync_seconds(self) -> float:
        """Time that it took to force the store to disk."""
        return self._staging.sync_seconds

    def __enter__(self) -> Self:
        try:
            self.root.mkdir()
            self.scratch.mkdir()
        except BaseException as error:  # an interrupt too must leave nothing behind
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._early is not None:
                self._early.close()
        finally:
            self._staging.__exit__(kind, error, trace)
