"""Byte ranges of a Zarr store that is not a folder of this machine.

In: the URL of a store, or a store. Out: a Zarr group, whose store (`RangeStore`) fetches bytes for callers that are not asynchronous.

Zarr's stores are asynchronous, and what they hold (connections above all) belongs to the event loop of Zarr's own thread. That loop, and
the kind of buffer that Zarr asks for, are not public; `RangeStore` learns both from the requests that Zarr makes when it opens the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store
from zarr.storage import FsspecStore, WrapperStore


class RangeStore(WrapperStore[Store]):  # type: ignore[misc]
    """A store of Zarr that is also read by ranges, from any thread."""

    _loop: asyncio.AbstractEventLoop
    _prototype: Any

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Get a value for Zarr."""
        self._loop, self._prototype = asyncio.get_running_loop(), prototype
        return await super().get(key, prototype, byte_range)

    def fetch(self, key: str, start: int, stop: int | None) -> bytes | None:
        """Return bytes ``start .. stop - 1`` of a value, or fewer where it ends before; None where there is no such key."""
        wanted = RangeByteRequest(start, stop) if stop is not None else OffsetByteRequest(start) if start else None
        found = asyncio.run_coroutine_threadsafe(super().get(key, self._prototype, wanted), self._loop).result()
        return None if found is None else bytes(found.to_bytes())


def open_url(url: str, storage_options: Mapping[str, Any] | None) -> Any:
    """Open the Zarr group at a URL, read only; its `store` is a `RangeStore`."""
    store = FsspecStore.from_url(url, storage_options=dict(storage_options) if storage_options else None, read_only=True)
    return open_store(store)


def open_store(store: Store, path: str = "") -> Any:
    """Open a Zarr group of a store, read only; its `store` is a `RangeStore`."""
    return zarr.open_group(RangeStore(store), path=path, mode="r")
