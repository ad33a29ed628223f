"""Compressed text, by what the name of a file ends in: decompressed as it is read, with memory that is known before.

gzip and bzip2 take little. An xz file or a zstd frame says how much of what came before it refers to, which is held meanwhile.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO

import pyarrow as pa

from oocgraph.errors import InputError
from oocgraph.ingest.sources.source import COMPRESSIONS, MAX_INFLATION, open_file

INFLATION = dict(zip(COMPRESSIONS, (MAX_INFLATION, 1 << 21, 1 << 14, 1 << 16), strict=True))
"""Bytes that one may become, at the most: of bzip2 a block of 46 MB of one byte takes 40."""

XZ_LIMITS = [size << 20 for size in (1, 2, 5, 9, 17, 33, 65, 129)]
"""Memory that a file is decompressed with: the least that is enough for its beginning. ``xz -9`` takes 65 MiB."""

ZSTD_MAGIC, ZSTD_SKIPPED, MOST_WINDOW = 0xFD2FB528, 0x184D2A50, 128 << 20
"""First word of a frame, and of one without data, whose last four bits are anything; and how far back Arrow refers at the most."""

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
            return bz2.open(path, "rb")
        case ".xz":
            return _XzFile(path)  # type: ignore[return-value]
    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")  # type: ignore[no-any-return]


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
            raise _too_large(path) from error
        raise InputError(f"{path} is not a {name} file, or it is damaged ({error}); copy or write it again") from error


class _XzFile(io.RawIOBase):
    """Streams of xz, one after the other, with no more memory than the first one's beginning takes; `lzma.open` has no limit."""

    def __init__(self, path: Path) -> None:
        self._limit, self._file, self._rest = _xz_limit(path), open_file(path), b""
        self._decompressor: lzma.LZMADecompressor | None = self._new()

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, or a part of it; return how many bytes that are, 0 at the end."""
        while self._decompressor is not None:
            if self._decompressor.eof:
                self._rest = (self._decompressor.unused_data or self._rest).lstrip(b"\0") or self._file.read(CHUNK_BYTES).lstrip(b"\0")
                self._decompressor = self._new() if self._rest else None
                continue
            if self._decompressor.needs_input and not self._rest:
                self._rest = self._file.read(CHUNK_BYTES)
                if not self._rest:
                    raise EOFError
            given, self._rest = self._rest, b""
            if found := self._decompressor.decompress(given, len(out)):
                out[: len(found)] = found
                return len(found)
        return 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=self._limit)


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
    raise _too_large(path)


def _window_bytes(path: Path) -> int:
    """Return what the first frame of zstd with data refers back to."""
    with open_file(path) as file:
        while len(head := file.read(8)) == 8:
            magic = int.from_bytes(head[:4], "little")
            if magic & ~15 == ZSTD_SKIPPED:
                file.seek(int.from_bytes(head[4:], "little"), io.SEEK_CUR)
                continue
            if magic != ZSTD_MAGIC:
                break
            descriptor, mantissa = head[4], head[5] & 7
            if not descriptor & 32:
                window = (1 << 10 + (head[5] >> 3)) * (8 + mantissa) // 8
            else:  # it is the content, whose size stands behind an identifier of a dictionary
                file.seek((0, 1, 2, 4)[descriptor & 3] - 3, io.SEEK_CUR)
                width = (1, 2, 4, 8)[descriptor >> 6]
                window = int.from_bytes(file.read(width), "little") + 256 * (width == 2)
            if window > MOST_WINDOW:
                raise _too_large(path)
            return window
    return 0  # what is no zstd file is refused when it is read


def _too_large(path: Path) -> InputError:
    return InputError(f"{path}: to decompress it takes more than {MOST_WINDOW >> 20} MiB of memory; compress it with a lower level")
