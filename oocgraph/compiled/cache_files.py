"""Files of numba's cache on disk: written by one process at a time, and made again where they cannot be read.

A file may have been cut off, or name a type of another version of this package: numba reads an index before it looks for the version.
It does so wherever a kernel that it compiles calls another, so numba's own class is mended, for folders with the names of those here.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.caching import IndexDataCacheFile

from oocgraph.locks import locked

logger = logging.getLogger(__name__)

FOLDERS = ("compiled", "kernels")
"""Folders of the package with functions that are compiled."""

DAMAGED = (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, AttributeError, ImportError)
"""What reading a file raises that was cut off or changed, or names what is not there any more."""


class LockedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """numba's cache of a kernel, written by one process at a time.

    Two that add to an index at once may choose the same name for different signatures: the kernel of one is then loaded for the other.
    """

    def save(self, key: Any, data: Any) -> None:
        """Add an entry."""
        with locked("saving"):
            super().save(key, data)


def sources() -> list[Path]:
    """Return the files with functions that are compiled."""
    return [path for folder in FOLDERS for path in sorted((Path(__file__).parents[1] / folder).glob("*.py"))]


def _is_ours(folder: Path) -> bool:
    """Whether numba may keep kernels of this package in a folder: beside their sources, or in one with the name of theirs and a key."""
    home = folder.parent if folder.name == "__pycache__" else folder
    return home.name.partition("_")[0] in FOLDERS


def _or_nothing(read: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    """Have what cannot be read taken for what is not there."""

    def load(file: Any, *name: str) -> Any:
        try:
            return read(file, *name)
        except DAMAGED as error:
            if not _is_ours(Path(file._cache_path)):
                raise
            logger.warning(
                "a compiled kernel in %s is damaged, or of another version (%s: %s): it is compiled again",
                file._cache_path, type(error).__name__, error,
            )  # fmt: skip
            with suppress(OSError):
                file.flush()
            return nothing()

    return load


def _named_by_version(make: Callable[..., None]) -> Callable[..., None]:
    """Have each version of numba keep files of its own: environments that share a folder would overwrite each other's all the time."""

    def init(file: Any, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        own = f"{filename_base}.numba-{nb.__version__}"
        make(file, cache_path, own if _is_ours(Path(cache_path)) else filename_base, source_stamp)

    return init


IndexDataCacheFile.__init__ = _named_by_version(IndexDataCacheFile.__init__)
IndexDataCacheFile._load_index = _or_nothing(IndexDataCacheFile._load_index, dict)
IndexDataCacheFile._load_data = _or_nothing(IndexDataCacheFile._load_data, lambda: None)
