"""Graphs that are no folder of this machine: at a URL of any file system that fsspec knows, or in a store of Zarr.

In: a URL and the options of its file system, or a ``zarr.abc.store.Store``, ``StorePath`` or ``Group``. Out: a `Location` to open.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oocgraph.config import settings
from oocgraph.errors import MissingDependencyError, StoreError, StoreNotFoundError

MAX_REASON = 300
"""Characters of another library's message within one of ours."""


class Location(str):
    """A URL, with what opens it in any process: a worker that gets it as a piece of text, such as in a message, gets that too.

    Attributes
    ----------
    storage_options : mapping or None
        Options of the file system. They may be secret: neither text nor JSON shows them.
    store : zarr.storage.StorePath or None
        Opened in place of the URL, where the graph was given as a store.
    """

    storage_options: Mapping[str, Any] | None
    store: Any

    def __new__(cls, url: str, storage_options: Mapping[str, Any] | None = None, store: Any = None) -> Location:
        """Make it of its parts."""
        self = super().__new__(cls, url)
        self.storage_options, self.store = storage_options, store
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Location, (str(self), self.storage_options, self.store)

    def open(self) -> Any:
        """Open the Zarr group.

        Raises
        ------
        StoreNotFoundError
            There is nothing.
        StoreError
            It is out of reach.
        MissingDependencyError
            The package of its file system is not installed.
        """
        try:
            from oocgraph.store.ranges import open_store, open_url

            return open_url(str(self), self.storage_options) if self.store is None else open_store(self.store.store, self.store.path)
        except ImportError as error:
            raise missing_package(self, error) from error
        except FileNotFoundError as error:
            raise StoreNotFoundError(f"{self}: there is no graph store ({_reason(error)}); check the URL, bucket and path") from error
        except Exception as error:  # of Zarr, a file system or a client, none of which says what it raises
            raise self.out_of_reach(error) from error

    def reason(self, error: Exception) -> str:
        """Return what messages say of an error of a file system or its client."""
        return f"{type(error).__name__}: {_reason(error)}"

    def out_of_reach(self, error: Exception) -> StoreError:
        """Return what is raised where a file system, or its client, raises `error`."""
        return StoreError(
            f"{self}: not a graph store, or out of reach ({self.reason(error)}); check the URL, the network and the "
            "credentials: open_graph(url, storage_options=...), or the setting oocgraph.storage-options"
        )


def location_of(path: Any, storage_options: Mapping[str, Any] | None) -> Location | Path | None:
    """Return where a graph is that is given as a URL or a store of Zarr: the folder of a ``LocalStore``; None of anything else."""
    if isinstance(path, Location):
        return path
    if isinstance(path, str):
        remote = "://" in path and not path.startswith("file://")
        return Location(path, settings().storage_options if storage_options is None else storage_options) if remote else None
    if "zarr" not in sys.modules:
        return None
    import zarr

    if isinstance(path, zarr.Group):
        path = path.store_path
    if isinstance(path, zarr.abc.store.Store):
        path = zarr.storage.StorePath(path)
    if not isinstance(path, zarr.storage.StorePath):
        return None
    if isinstance(path.store, zarr.storage.LocalStore):
        return Path(path.store.root, path.path)
    text = str(path)
    return Location(text if "://" in text else f"zarr://{text}", None, path)


def missing_package(url: str, error: ImportError) -> MissingDependencyError:
    """Return what is raised where the package of a URL's file system is not installed."""
    package = "`pip install oocgraph[s3]`" if url.startswith("s3:") else "install it with pip"
    return MissingDependencyError(f"{url}: reading this URL needs another package ({error}); {package}")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]} ..."
