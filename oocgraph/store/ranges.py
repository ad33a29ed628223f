"""Byte ranges of a Zarr store that is not a folder of this machine, many requests at once.

In: the URL of a store, or a store. Out: a `RangeStore`, which fetches bytes for callers that are not asynchronous.

Zarr's stores are asynchronous, and what they hold (connections above all) belongs to the event loop of Zarr's own thread. That loop, and
the kind of buffer that Zarr asks for, are not public; `RangeStore` learns both from the requests that Zarr makes when it opens the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store
from zarr.storage import FsspecStore, WrapperStore

from oocgraph.allocator import clear_behind
from oocgraph.config import settings
from oocgraph.store.metadata import MAX_METADATA_BYTES
from oocgraph.types import Array

_S3 = ("s3://", "s3a://")


class RangeStore(WrapperStore[Store]):  # type: ignore[misc]
    """A store of Zarr that is also read by ranges, from any thread.

    Attributes
    ----------
    metadata : dict of str to bytes
        Files that Zarr has read through it, by key: the ``zarr.json`` of the group that it opened.
    """

    _loop: asyncio.AbstractEventLoop
    _prototype: Any
    _slots: asyncio.Semaphore

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.metadata: dict[str, bytes] = {}
        self._seconds = settings().storage_timeout

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Get a value for Zarr, by a range: file systems ask for the size of what they are to get as a whole, one request more."""
        self._loop, self._prototype = asyncio.get_running_loop(), prototype
        self._slots = asyncio.Semaphore(settings().io_threads)
        clear_behind(self._loop)
        found = await self._within(super().get(key, prototype, byte_range or RangeByteRequest(0, MAX_METADATA_BYTES + 1)))
        if found is not None:
            self.metadata[key] = bytes(found.to_bytes())
        return found

    def begin(self, key: str, start: int, stop: int | None) -> Future[Array | None]:
        """Ask for bytes ``start .. stop - 1`` of a value, or fewer where it ends before: (n,) uint8; None where there is no such key.

        At most as many requests as the setting ``oocgraph.io-threads`` are under way at once; the others wait.
        """
        wanted = RangeByteRequest(start, stop) if stop is not None else OffsetByteRequest(start) if start else None
        return asyncio.run_coroutine_threadsafe(self._fetch(key, wanted), self._loop)

    async def _fetch(self, key: str, wanted: Any) -> Array | None:
        async with self._slots:
            found = await self._within(super().get(key, self._prototype, wanted))
        return None if found is None else np.frombuffer(found.as_numpy_array(), np.uint8)

    async def _within(self, request: Any) -> Any:
        try:
            return await asyncio.wait_for(request, self._seconds)
        except TimeoutError as error:
            raise TimeoutError(f"no answer within {self._seconds:g} s, the setting oocgraph.storage-timeout") from error


def open_url(url: str, storage_options: Mapping[str, Any] | None) -> Any:
    """Open the Zarr group at a URL, read only; its `store` is a `RangeStore`."""
    return open_store(FsspecStore.from_url(url, storage_options=client_options(url, storage_options), read_only=True))


def client_options(url: str, storage_options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the options of a file system: of S3's client as many connections (it has 10) and as much patience as the settings say.

    The file system repeats a request that its client gives up, up to five times.
    """
    options, knobs = dict(storage_options or {}), settings()
    if url.startswith(_S3):
        patience = {"read_timeout": knobs.storage_timeout / 5, "connect_timeout": knobs.storage_timeout / 5, "retries": {"max_attempts": 0}}
        options["config_kwargs"] = {"max_pool_connections": knobs.io_threads, **patience, **options.get("config_kwargs", {})}
    return options or None


def open_store(store: Store, path: str = "") -> Any:
    """Open a Zarr group of a store, read only; its `store` is a `RangeStore`."""
    return zarr.open_group(RangeStore(store), path=path, mode="r", zarr_format=3, use_consolidated=False)
