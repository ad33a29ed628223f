"""The Zarr metadata of a store: written here, and read back as input that may hold anything.

In: a ``zarr.json``. Out: what it says, if that is what oocgraph writes: where it differs, another Zarr reader would see something else.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oocgraph.store.attributes import DTYPES
from oocgraph.store.codecs import BLOSC_COMPRESSOR, BLOSC_LEVEL, ZSTD_LEVEL
from oocgraph.store.layout import CHUNK_BYTES
from oocgraph.types import PAGE_BYTES, Codec

MAX_METADATA_BYTES = 16 << 20
"""A ``zarr.json`` that is larger is none: oocgraph writes a few hundred bytes, and a line for each edge column."""


class ArrayShape(NamedTuple):
    """Dtype (little-endian), elements, and elements of a chunk."""

    dtype: np.dtype[Any]
    length: int
    chunk_length: int


def open_file(path: Path) -> BufferedReader:
    """Open a file for reading; a pipe in its place is not waited for, and a device not read without end.

    Raises
    ------
    OSError
        It cannot be opened, or is no file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no file", os.fspath(path))
    return os.fdopen(fd, "rb")


def read_json(path: Path, max_bytes: int = MAX_METADATA_BYTES) -> dict[str, Any]:
    """Return the object in a file.

    Raises
    ------
    OSError
        It cannot be read, or is no file.
    ValueError
        It is too large, no JSON, nested too deeply, or no object.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size  # a buffer of max_bytes for a few hundred bytes would be most of what a lookup holds
        return parse_json(file.read(min(size, max_bytes) + 1), max_bytes)


def group_has(folder: Path, key: str) -> bool:
    """Whether a folder is a Zarr group whose attributes have a key."""
    try:
        return key in read_json(folder / "zarr.json")["attributes"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def parse_json(text: bytes, max_bytes: int = MAX_METADATA_BYTES) -> dict[str, Any]:
    """Return the object that a text is.

    Raises
    ------
    ValueError
        It is too large, no JSON, nested too deeply, or no object.
    """
    if len(text) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes} bytes")
    try:
        stored = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(stored, dict):
        raise ValueError("it is no JSON object")
    return stored


def array_metadata(length: int, chunk_length: int, dtype: np.dtype[Any], codec: Codec) -> dict[str, Any]:
    """Zarr v3 metadata of a one-dimensional array (all that any reader needs)."""
    codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}} if dtype.itemsize > 1 else {"name": "bytes"}]
    if codec == "zstd":
        codecs.append({"name": "zstd", "configuration": {"level": ZSTD_LEVEL, "checksum": False}})
    elif codec == "blosc":
        shuffle = {"cname": BLOSC_COMPRESSOR, "clevel": BLOSC_LEVEL, "shuffle": "bitshuffle", "typesize": dtype.itemsize, "blocksize": 0}
        codecs.append({"name": "blosc", "configuration": shuffle})
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [length],
        "data_type": np.dtype(dtype).name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk_length]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
        "attributes": {},
    }


def group_metadata(attributes: dict[str, Any]) -> dict[str, Any]:
    """Zarr v3 metadata of a group."""
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def consolidated_metadata(below: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a group's metadata say of the metadata of all arrays and groups below it, by path."""
    return {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": dict(below)}}


def parse_consolidated(root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the metadata of all arrays and groups below a group, by path, if its own have them."""
    found = root.get("consolidated_metadata")
    below = found.get("metadata") if isinstance(found, dict) else None
    return below if isinstance(below, dict) else None


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return metadata as a ``zarr.json`` holds them."""
    return json.dumps(metadata, indent=1)


def write_metadata(folder: Path, metadata: Mapping[str, Any]) -> None:
    """Write the ``zarr.json`` of an array or a group."""
    (folder / "zarr.json").write_text(metadata_text(metadata))


def plain_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as they will be read back: lists for tuples and arrays, Python's numbers for NumPy's, text for anything else."""
    text = json.dumps(dict(fields), default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))
    plain: dict[str, Any] = json.loads(text)
    return plain


def parse_array(stored: dict[str, Any], codec: Codec) -> ArrayShape:
    """Read the metadata of an array of a store that is compressed by `codec`.

    Raises
    ------
    ValueError
        They are not what `array_metadata` writes; the message says where.
    """
    length, chunk_length = (_one_number(stored, *keys) for keys in (("shape",), ("chunk_grid", "configuration", "chunk_shape")))
    name = stored.get("data_type")
    if not isinstance(name, str) or name not in DTYPES:
        raise ValueError(f"data_type is {name!r:.80}")
    dtype = np.dtype(name).newbyteorder("<")
    for key, wanted in array_metadata(length, chunk_length, dtype, codec).items():
        if key != "attributes" and stored.get(key) != wanted:
            raise ValueError(f"{key} is {stored.get(key)!r:.120} instead of {wanted!r}")
    if stored.get("storage_transformers"):
        raise ValueError("it has storage transformers")
    check_chunks(length, chunk_length, dtype)
    return ArrayShape(dtype, length, chunk_length)


def check_chunks(length: int, chunk_length: int, dtype: np.dtype[Any]) -> None:
    """Refuse chunks that no store has.

    Raises
    ------
    ValueError
        They are empty, larger than 64 MiB, or several that are no whole pages.
    """
    chunk_bytes = chunk_length * dtype.itemsize
    if length < 0 or length * dtype.itemsize > np.iinfo(np.int64).max:
        raise ValueError(f"shape is {length}")
    if not 0 < chunk_bytes <= max(CHUNK_BYTES, PAGE_BYTES):
        raise ValueError(f"chunk_shape is {chunk_length} elements of {dtype.itemsize} bytes")
    if length > chunk_length and chunk_bytes % PAGE_BYTES:
        raise ValueError(f"chunk_shape is {chunk_length} elements of {dtype.itemsize} bytes, which are not whole pages")


def _one_number(stored: dict[str, Any], *keys: str) -> int:
    found: Any = stored
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if not (isinstance(found, list) and len(found) == 1 and type(found[0]) is int):
        raise ValueError(f"{keys[-1]} is {found!r:.80}")
    number: int = found[0]
    return number
