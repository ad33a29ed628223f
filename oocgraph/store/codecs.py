"""Compresses chunks as Zarr does, and decodes them: they may hold anything, and decoders allocate what a chunk itself names.

Zarr's own pipeline has threads for that, which keep 53 MiB of buffers where one thread keeps 1.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from oocgraph.allocator import map_buffers_of_codecs
from oocgraph.types import PAGE_BYTES, Array, Codec

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

ZSTD_LEVEL, BLOSC_LEVEL, BLOSC_COMPRESSOR = 3, 5, "lz4"
"""Parameters of both codecs, as the metadata of arrays name them; Blosc shuffles bits."""

HEADER_BYTES = 18
"""Bytes of a chunk that `decoded_bytes` looks at: the longest header of a zstd frame."""


def max_stored_bytes(chunk_bytes: int) -> int:
    """Return how many bytes a chunk of `chunk_bytes` may take when it is compressed: those of what cannot be compressed, with headers."""
    return chunk_bytes + chunk_bytes // 16 + PAGE_BYTES


def decoded_bytes(codec: Codec, header: bytes) -> int | None:
    """Return how many bytes a chunk decodes to, by its own header; None if the header does not say.

    Parameters
    ----------
    codec
        ``blosc`` or ``zstd``.
    header
        First `HEADER_BYTES` of the chunk, or all of a shorter one.

    Notes
    -----
    A header of Blosc 1 has the size in bytes 4 to 7; of a zstd frame (RFC 8878, 3.1.1) the size stands behind the window descriptor and the
    dictionary's id, in as many bytes as the first two bits of the descriptor say.
    """
    if codec == "blosc":
        return int.from_bytes(header[4:8], "little") if len(header) >= 16 else None
    if len(header) < 6 or header[:4] != _ZSTD_MAGIC:
        return None
    descriptor = header[4]
    is_single, flag = descriptor >> 5 & 1, descriptor >> 6
    num_bytes = (is_single, 2, 4, 8)[flag]
    at = 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3]
    field = header[at : at + num_bytes]
    if not num_bytes or len(field) < num_bytes:
        return None
    return int.from_bytes(field, "little") + (256 if flag == 1 else 0)


@cache
def load_codecs() -> dict[str, Any]:
    """Import what compresses arrays, whose buffers are given back at once from then on; returns the module of each codec."""
    from numcodecs import blosc, zstd

    blosc.use_threads = False  # as Zarr does, too, when it is imported: they store the blocks of a chunk in any order
    map_buffers_of_codecs()
    return {"blosc": blosc, "zstd": zstd}


def encode(codec: Codec, values: Array) -> bytes:
    """Compress a chunk: bytes that Zarr would store, the same each time."""
    module = load_codecs()[codec]
    if codec == "zstd":
        return bytes(module.compress(values, ZSTD_LEVEL))
    return bytes(module.compress(values, BLOSC_COMPRESSOR.encode(), BLOSC_LEVEL, module.BITSHUFFLE))


def decode(codec: Codec, raw: bytes, out: Array) -> None:
    """Decode a chunk into `out`, (num_bytes,) uint8, contiguous.

    Raises
    ------
    ValueError, RuntimeError
        It names another size, is not whole, or cannot be decoded.
    """
    found = decoded_bytes(codec, raw[:HEADER_BYTES])
    if found != out.size:
        size = "an unknown size" if found is None else f"{found} bytes"
        raise ValueError(f"it decodes to {size} instead of {out.size} bytes")
    if codec == "blosc" and (whole := int.from_bytes(raw[12:16], "little")) != len(raw):
        raise ValueError(f"it has {len(raw)} bytes instead of {whole}")  # Blosc reads as far as its header says
    load_codecs()[codec].decompress(raw, out)
