"""A file system that needs an option, as an object store needs credentials."""

from __future__ import annotations

import fsspec
from fsspec.implementations.local import LocalFileSystem


class MissingKeyError(Exception):
    """What a client raises that knows nothing of OSError, such as botocore's."""


class KeyedFileSystem(LocalFileSystem):
    """Local files, for those who know the key."""

    protocol = "keyed"
    right_key = "secret"

    def __init__(self, *, key=None, **options):
        super().__init__(**options)
        self.key = key

    def cat_file(self, path, start=None, end=None, **options):
        if self.key != KeyedFileSystem.right_key:
            raise MissingKeyError("unable to locate credentials")
        return super().cat_file(path, start, end, **options)

    def _open(self, path, mode="rb", **options):
        if self.key != KeyedFileSystem.right_key:
            raise MissingKeyError("unable to locate credentials")
        return super()._open(path, mode, **options)

    @classmethod
    def _strip_protocol(cls, path):
        return LocalFileSystem._strip_protocol(path.removeprefix("keyed://") if isinstance(path, str) else path)


def register():
    """Make ``keyed://`` a URL of this process."""
    fsspec.register_implementation("keyed", KeyedFileSystem, clobber=True)
