"""Opens arrays of a store by their metadata, which are compared with what the array must be before anything is allocated for it.

In: what an array must be (`oocgraph.store.schema.ArraySpec`), and its ``zarr.json``. Out: its shape, or a reader.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.store.arrays import PlainArray
from oocgraph.store.metadata import ArrayShape, parse_array, read_json
from oocgraph.store.schema import ArraySpec
from oocgraph.types import Codec

MetadataStamp = tuple[int, int, int]
"""Which file of metadata was read: its number, when it was written, and its length. Another build writes another one."""


def metadata_stamp(folder: Path, name: str) -> MetadataStamp | None:
    """Return which file holds the metadata of an array now; None: none, which `read_shape` refuses."""
    try:
        found = os.stat(f"{folder}/{name}/zarr.json")
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


REPLACED = "open it again, and find again what results of the graph before are asked for"
"""What to do about a store that was replaced."""


class RootStamp:
    """When the root metadata of a local graph store were written: another time once it is replaced, and nothing of both may be mixed.

    Numbers of files do not count: in some file systems they change by themselves.

    Parameters
    ----------
    folder
        The store.

    Attributes
    ----------
    found : tuple of int
        When they were written, and their length.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.found = folder, self._stamp(folder)

    @staticmethod
    def _stamp(folder: Path) -> tuple[int, ...]:
        return (metadata_stamp(folder, ".") or (0,))[1:]

    def is_current(self) -> bool:
        """Whether the store is still the same."""
        return self._stamp(self._folder) == self.found

    def confirm(self) -> None:
        """Refuse a store that was replaced since.

        Raises
        ------
        StoreError
            It was, or it is gone.
        """
        if not self.is_current():
            raise StoreError(
                f"{self._folder} was replaced since it was opened, by another build or by edges that were added, or it was removed; "
                + REPLACED
            )


def read_shape(folder: Path, name: str, codec: Codec, advice: str) -> ArrayShape:
    """Read the metadata of an array in a local folder.

    Raises
    ------
    CorruptStoreError
        They are missing or damaged; the message ends with `advice`.
    """
    try:
        return parse_array(read_json(folder / name / "zarr.json"), codec)
    except (OSError, ValueError) as error:
        raise CorruptStoreError(f"{folder}: array {name} is missing or its zarr.json is damaged ({error}); {advice}") from error


def check_shape(shape: ArrayShape, spec: ArraySpec, where: Any, name: str, advice: str) -> None:
    """Refuse an array that is not what it must be.

    Raises
    ------
    CorruptStoreError
        Its dtype or length is another.
    """
    if shape.dtype.name not in spec.dtypes:
        wanted = " or ".join(dict.fromkeys(spec.dtypes))
        raise CorruptStoreError(f"{where}: {name} is of dtype {shape.dtype.name}, but must be {wanted}; {advice}")
    if spec.length is not None and shape.length != spec.length:
        raise CorruptStoreError(f"{where}: {name} has {shape.length} elements, but the attributes make it {spec.length}; {advice}")


def open_plain(folder: Path, name: str, spec: ArraySpec, advice: str) -> PlainArray:
    """Return a reader of an uncompressed array in a local folder.

    Raises
    ------
    CorruptStoreError
        Its metadata are missing, damaged, or not those of what it must be.
    """
    shape = read_shape(folder, name, "none", advice)
    check_shape(shape, spec, folder, name, advice)
    return PlainArray(folder, name, *shape, rule=spec.rule)
