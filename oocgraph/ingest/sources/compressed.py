"""Compressed text, by what the name of a file ends in: decompressed as it is read, with memory that is known before.

gzip and bzip2 take little. An xz file or a zstd frame says how much of what came before it refers to, which is held meanwhile.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.sources.source import COMPRESSIONS, MAX_INFLATION, open_file

INFLATION = dict(zip(COMPRESSIONS, (MAX_INFLATION, 1 << 21, 1 << 14, 1 << 16), strict=True))
"""Bytes that one may become, at the most: of bzip2 a block of 46 MB of one byte takes 40."""

XZ_LIMITS = [size << 20 for size in (9, 17, 33, 65, 129)]
"""Memory that a file is decompressed with: the least that is enough for its beginning. ``xz`` takes 9 MiB, ``xz -9`` 65."""

ZSTD_MAGIC, ZSTD_SKIPPED, LEAST_WINDOW, MOST_WINDOW = 0xFD2FB528, 0x184D2A50, 8 << 20, 128 << 20
"""First word of a frame, and of one without data, whose last four bits are anything; how far back a frame may refer without being the
first, and how far back Arrow refers at the most."""

CHUNK_BYTES = 1 << 16

NAMES = dict(zip(COMPRESSIONS, ("gzip", "bzip2", "xz", "zstd"), strict=True))


def compression_of(path: Path) -> str | None:
    """Return what the name ends in, if that says that the file is compressed."""
    suffix = path.suffix.lower()
    return suffix if suffix in INFLATION else None


def plain_name(path: Path) -> str:
    """Return the name in lower case, without that."""
    return path.name.lower().removesuffix(compression_of(path) or "")


def most_bytes(path: Path, num_bytes: int) -> int:
    """Return the bytes that so many of a file are at the most when they are decompressed."""
    return num_bytes * INFLATION.get(compression_of(path) or "", 1)


def held_bytes(path: Path) -> int:
    """Return what the decompressor holds, if that is much."""
    match compression_of(path):
        case ".xz":
            return _xz_limit(path)
        case ".zst":
            return _window_bytes(path)
    return 0


def open_text(path: Path) -> IO[bytes]:
    """Open a text file, compressed or not."""
    if (suffix := compression_of(path)) is None:
        return open_file(path)
    open_file(path).close()  # says what is wrong with the path
    match suffix:
        case ".gz":
            return gzip.open(path, "rb")  # type: ignore[return-value]
        case ".bz2":
            return _StreamsFile(path, bz2.BZ2Decompressor)  # type: ignore[return-value]
        case ".xz":
            return _StreamsFile(path, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _xz_limit(path)))  # type: ignore[return-value]
    return _ZstdFile(path)  # type: ignore[return-value]


def read_text(file: IO[bytes], path: Path, out: memoryview) -> int:
    """Fill a buffer from what `open_text` opened; return how many bytes there were: fewer than it holds at the end of the file alone.

    Raises
    ------
    InputError
        The file is truncated, damaged, or not compressed as its name says.
    """
    name, filled = NAMES.get(compression_of(path) or ""), 0
    try:
        while filled < len(out) and (read := file.readinto(out[filled:])):  # type: ignore[attr-defined]
            filled += read
        return filled
    except EOFError as error:
        raise InputError(f"{path} is truncated: the {name} stream has no end; copy or write it again") from error
    except (OSError, zlib.error, lzma.LZMAError) as error:
        if name is None or getattr(error, "errno", None) is not None:
            raise
        if "runcated" in str(error):
            raise InputError(f"{path} is truncated: the {name} stream has no end; copy or write it again") from error
        if "emory" in str(error):
            raise _too_large(path, held_bytes(path)) from error
        raise InputError(f"{path} is not a {name} file, or it is damaged ({error}); copy or write it again") from error


class _StreamsFile(io.RawIOBase):
    """Streams of bzip2 or xz, one after the other; `bz2.open` stops at a damaged one, and `lzma.open` has no limit of memory."""

    def __init__(self, path: Path, new: Callable[[], Any]) -> None:
        self._new, self._rest, self._decompressor = new, b"", new()
        self._file = open_file(path)

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, or a part of it; return how many bytes that are, 0 at the end."""
        while True:
            if self._decompressor.eof:
                self._rest = self._decompressor.unused_data.lstrip(b"\0")
                while not self._rest:
                    if not (read := self._file.read(CHUNK_BYTES)):
                        return 0
                    self._rest = read.lstrip(b"\0")  # streams of xz may be padded
                self._decompressor = self._new()
            given, self._rest = self._rest, b""
            if self._decompressor.needs_input and not given and not (given := self._file.read(CHUNK_BYTES)):
                raise EOFError
            if found := self._decompressor.decompress(given, len(out)):
                out[: len(found)] = found
                return len(found)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _xz_limit(path: Path) -> int:
    with open_file(path) as file:
        beginning = file.read(CHUNK_BYTES)
    for limit in XZ_LIMITS:
        try:
            lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limit).decompress(beginning, 1)
        except lzma.LZMAError as error:
            if "emory" in str(error):
                continue
        return limit  # what is damaged is refused when it is read
    raise _too_large(path, MOST_WINDOW)


class _ZstdFile(io.RawIOBase):
    """Frames of zstd, one after the other, by Arrow; none refers back to more than the first one, or `LEAST_WINDOW`."""

    def __init__(self, path: Path) -> None:
        self._frames = _Frames(path, _window_bytes(path))
        self._file = open_file(path)
        self._stream = pa.CompressedInputStream(pa.PythonFile(_Watched(self._file, self._frames), "r"), "zstd")

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, or a part of it; return how many bytes that are, 0 at the end."""
        try:
            return int(self._stream.readinto(out))
        finally:
            if self._frames.is_refused:
                raise _too_large(self._frames.path, self._frames.limit)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class _Watched(io.RawIOBase):
    """A file whose frames are looked at as it is read; behind one that is refused it ends."""

    def __init__(self, file: IO[bytes], frames: _Frames) -> None:
        self._file, self._frames = file, frames

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read some bytes."""
        data = self._file.read(size)
        self._frames.look(data)
        return b"" if self._frames.is_refused else data


class _Frames:
    """What frames of zstd refer back to, found as bytes come along.

    Parameters
    ----------
    path
        The file.
    limit
        What is refused that is larger.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit, self.window, self.is_refused = path, limit, -1, False
        self._headers = self._read()
        self._wanted, self._seen = next(self._headers), b""

    def look(self, data: bytes) -> None:
        """Look at the next bytes."""
        at = 0
        while at < len(data) and self._wanted:
            if self._wanted < 0:
                step = min(-self._wanted, len(data) - at)
                at, self._wanted = at + step, self._wanted + step
                if self._wanted == 0:
                    self._wanted = self._headers.send(b"")
                continue
            step = min(self._wanted - len(self._seen), len(data) - at)
            self._seen, at = self._seen + data[at : at + step], at + step
            if len(self._seen) == self._wanted:
                seen, self._seen = self._seen, b""
                self._wanted = self._headers.send(seen)

    def _read(self) -> Generator[int, bytes, None]:
        """Yield how many bytes are looked at next, or left out, as a number below 0; or 0, if this is no zstd file."""
        while True:
            magic = int.from_bytes((yield 4), "little")
            if magic & ~15 == ZSTD_SKIPPED:
                size = int.from_bytes((yield 4), "little")
                if size:
                    yield -size
                continue
            if magic != ZSTD_MAGIC:
                break
            (descriptor,) = yield 1
            window = 0
            if not descriptor & 32:
                (size,) = yield 1
                window = (1 << 10 + (size >> 3)) * (8 + (size & 7)) // 8
            if width := (0, 1, 2, 4)[descriptor & 3]:
                yield -width
            if width := (1 if descriptor & 32 else 0, 2, 4, 8)[descriptor >> 6]:
                size = int.from_bytes((yield width), "little") + 256 * (width == 2)
                window = size if descriptor & 32 else window  # of one segment
            self.window = max(self.window, window)
            self.is_refused = self.window > self.limit
            is_last = 0
            while not is_last:
                block = int.from_bytes((yield 3), "little")
                is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
                if size := 1 if kind == 1 else size:
                    yield -size
            if descriptor & 4:
                yield -4
        while True:
            yield 0


def _window_bytes(path: Path) -> int:
    """Return what the first frame of zstd with data refers back to, or `LEAST_WINDOW`."""
    frames = _Frames(path, MOST_WINDOW)
    with open_file(path) as file:
        while frames.window < 0 and (data := file.read(CHUNK_BYTES)):
            frames.look(data)
            if frames.is_refused:
                raise _too_large(path, MOST_WINDOW)
    return max(frames.window, LEAST_WINDOW)


def _too_large(path: Path, limit: int) -> InputError:
    if limit < MOST_WINDOW:
        return InputError(
            f"{path}: to decompress a later part takes more memory than the first, {limit >> 20} MiB; decompress the file, or compress it "
            "in one part"
        )
    return InputError(f"{path}: to decompress it takes more than {MOST_WINDOW >> 20} MiB of memory; compress it with a lower level")
