"""Outputs at URLs: made in a local folder for temporary files, uploaded when they are whole.

In: a URL, the kind of output, and later the output. Out: the output at the URL. What makes a folder an output, its ``zarr.json``, is
uploaded last, so that an upload that breaks leaves nothing that opens; where an older output is replaced, its ``zarr.json`` goes first. An
object store exchanges no folders: unlike on a disk, the older output is lost if the upload of the new one breaks.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from oocgraph.errors import OocGraphError, OutputError, OutputExistsError
from oocgraph.store.metadata import MAX_METADATA_BYTES, parse_json
from oocgraph.store.remote import Location, missing_package

PART_BYTES, PARTS = 8 << 20, 2
"""Bytes of a part of a large file, and parts that are under way at once."""

FEW_BYTES, FEW_FILES = 1 << 20, 16
"""Files up to so many bytes are uploaded by so many at once, a larger one by itself."""

Made = TypeVar("Made")


class Upload:
    """An output at a URL.

    Parameters
    ----------
    location
        Where it will be.
    key
        Attribute that the root group has of what may be replaced; None: it is a file.

    Attributes
    ----------
    location
        As given.

    Raises
    ------
    OutputError
        It is out of reach: no such bucket, no credentials.
    MissingDependencyError
        The package of its file system is not installed.
    """

    def __init__(self, location: Location, key: str | None) -> None:
        import fsspec

        from oocgraph.store.ranges import client_options

        self.location, self._key = location, key
        options = client_options(str(location), location.storage_options) or {}
        try:
            self._fs, path = self._try("opened", lambda: fsspec.core.url_to_fs(str(location), **options))
        except ImportError as error:
            raise missing_package(location, error) from error
        self._path = str(path).rstrip("/")

    def check(self, *, overwrite: bool) -> None:
        """Refuse what cannot be written, before any work.

        Raises
        ------
        OutputError
            Something is there, and `overwrite` is false or it is of another kind; or it is out of reach.
        """
        there = self._try("listed", self._exists)
        if not there:
            return
        if not overwrite:
            raise OutputExistsError(f"{self.location}: exists already; choose another name or pass overwrite=True")
        if not self._try("read", self._is_replaceable):
            raise OutputError(f"{self.location}: exists and is another kind of output, so it is not overwritten; remove it yourself")

    def send(self, output: Path) -> None:
        """Upload a file, or a folder with its root's ``zarr.json`` last.

        Raises
        ------
        OutputError
            The upload broke; what had come of it is removed, where that can be done.
        """
        if output.is_file():
            self._try("uploaded", lambda: self._put([(output, self._path)]))
            return
        root = output / "zarr.json"
        files = [(file, f"{self._path}/{file.relative_to(output).as_posix()}") for file in sorted(output.rglob("*")) if file.is_file()]
        old = self._try("listed", lambda: self._fs.find(self._path))
        marker = f"{self._path}/zarr.json"
        try:
            if marker in old:
                self._try("replaced", lambda: self._fs.rm_file(marker))
            self._try("uploaded", lambda: self._put([one for one in files if one[0] != root]))
            if left := sorted({*old} - {to for _, to in files}):
                self._try("replaced", lambda: self._fs.rm(left))
            self._try("uploaded", lambda: self._put([(root, marker)]))
        except BaseException:
            with suppress(Exception):
                self._fs.rm(self._path, recursive=True)
            raise

    def _put(self, files: list[tuple[Path, str]]) -> None:
        few = [one for one in files if one[0].stat().st_size <= FEW_BYTES]
        if few:
            self._fs.put([str(file) for file, _ in few], [to for _, to in few], batch_size=FEW_FILES)
        parts = {"chunksize": PART_BYTES, "max_concurrency": PARTS} if "s3" in self._fs.protocol else {}
        for file, to in files:
            if file.stat().st_size > FEW_BYTES:
                self._fs.put_file(str(file), to, **parts)

    def _exists(self) -> bool:
        self._fs.invalidate_cache()
        if "s3" in self._fs.protocol:  # of which a missing bucket is as empty as a missing folder
            self._fs.ls(self._path.split("/")[0])
        return bool(self._fs.exists(self._path))

    def _is_replaceable(self) -> bool:
        if self._key is None:
            return bool(self._fs.isfile(self._path))
        try:
            root = parse_json(self._fs.cat_file(f"{self._path}/zarr.json", start=0, end=MAX_METADATA_BYTES + 1))
            return self._key in root["attributes"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False

    def _try(self, done: str, call: Callable[[], Made]) -> Made:
        try:
            return call()
        except (ImportError, OocGraphError):
            raise
        except Exception as error:  # of a file system or its client, none of which says what it raises
            reason = self.location.reason(error)
            raise OutputError(
                f"{self.location}: cannot be {done} ({reason}); check the URL, bucket, network and credentials (the setting "
                "oocgraph.storage-options)"
            ) from error


def scratch_place(location: Location) -> Path:
    """Return where an output is made before it is uploaded: a free name in the folder for temporary files (``TMPDIR``)."""
    return Path(tempfile.gettempdir()) / f"oocgraph-upload-{uuid.uuid4().hex[:12]}{Path(str(location)).suffix}"
