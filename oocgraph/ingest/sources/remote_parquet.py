"""Parquet at a URL of any file system that fsspec knows: one file, or all of a folder."""

from __future__ import annotations

from typing import Any

from oocgraph.config import settings
from oocgraph.errors import InputError, InputNotFoundError
from oocgraph.ingest.sources.arrow_stream import open_dataset
from oocgraph.ingest.sources.source import HIDDEN_PREFIXES, Request, reason
from oocgraph.ingest.sources.streamed import StreamedSource
from oocgraph.store.remote import missing_package


def open_remote_parquet(url: str, request: Request) -> StreamedSource:
    """Open Parquet at a URL, with the file system options of the setting ``oocgraph.storage-options``.

    Raises
    ------
    InputNotFoundError
        There is nothing.
    MissingDependencyError
        The package of the file system is not installed.
    InputError
        It is out of reach, or no Parquet.
    """
    try:
        dataset = _dataset(url)
    except ImportError as error:
        raise missing_package(url, error) from error
    except FileNotFoundError as error:
        raise InputNotFoundError(f"{url}: no such file or folder; check the URL") from error
    except Exception as error:  # of Arrow, a file system or a client, none of which says what it raises
        raise InputError(
            f"{url}: no Parquet, or out of reach ({type(error).__name__}: {reason(error)}); check the URL, the network and the credentials "
            "(the setting oocgraph.storage-options), or copy it here first"
        ) from error
    if not dataset.files:
        raise InputError(f"{url}: the folder holds no Parquet file; name a folder of such, or one")
    return open_dataset(dataset, request, url)


def _dataset(url: str) -> Any:
    import pyarrow.dataset as ds
    from fsspec.core import url_to_fs
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    file_system, path = url_to_fs(url, **(settings().storage_options or {}))
    arrow_file_system = PyFileSystem(FSSpecHandler(file_system))
    return ds.dataset(path, filesystem=arrow_file_system, format="parquet", ignore_prefixes=list(HIDDEN_PREFIXES))
