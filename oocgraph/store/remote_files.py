"""The files of a graph that is no folder of this machine, each request as far away as its object store.

In: a group that Zarr has opened. Out: ranges of files, asked for together. Metadata are read once: the root's ``zarr.json`` has those of
all arrays; a store without them is asked for each array's, once. A file of up to `KEPT_FILE_BYTES` is fetched as a whole and kept, since a
request takes longer than its bytes, up to `KEPT_BYTES` in all. What will be read soon can be asked for ahead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from oocgraph.errors import StoreError
from oocgraph.store.metadata import MAX_METADATA_BYTES, parse_consolidated, parse_json
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.store.remote import Location

KEPT_FILE_BYTES, KEPT_BYTES = 256 << 10, 4 << 20
"""Largest file that is kept, and what is kept in all."""

AHEAD_BYTES = 4 << 20
"""Bytes that are asked for ahead, until they are read."""

LOADING_BYTES = 16 << 20
"""Bytes that are under way, or wait to be copied, while what stays in memory is loaded."""

HELD_BYTES = KEPT_BYTES + AHEAD_BYTES + LOADING_BYTES
"""What the files of a store hold at most beside what is read."""


class Wanted(NamedTuple):
    """A range of a file: where it begins, its bytes, and the bytes of the whole file."""

    key: str
    start: int
    num_bytes: int
    file_bytes: int


class RemoteFiles:
    """Files of a remote store, for any thread.

    Parameters
    ----------
    location
        Where the store is.
    group
        It, as `Location.open` returns it.
    """

    def __init__(self, location: Location, group: Any) -> None:
        self._location, self._store = location, group.store
        self._prefix = f"{group.path}/" if group.path else ""
        self._consolidated = parse_consolidated(parse_json(self._store.metadata[f"{self._prefix}zarr.json"]))
        self._metadata: dict[str, dict[str, Any] | None] = {}
        self._kept: OrderedDict[str, tuple[int, Future[Array | None]]] = OrderedDict()
        self._ahead: dict[Wanted, Future[Array | None]] = {}
        self._lock = Lock()

    def metadata(self, name: str) -> dict[str, Any] | None:
        """Return the metadata of an array; None where there is none.

        Raises
        ------
        ValueError
            They are no JSON.
        StoreError
            They are out of reach.
        """
        if self._consolidated is not None:
            found = self._consolidated.get(name)
            return found if isinstance(found, dict) else None
        if name not in self._metadata:
            text = self.get(f"{name}/zarr.json", 0, MAX_METADATA_BYTES + 1)
            self._metadata[name] = None if text is None else parse_json(text)
        return self._metadata[name]

    def get(self, key: str, start: int, stop: int | None) -> bytes | None:
        """Return bytes ``start .. stop - 1`` of a file, or fewer where it ends before; None where there is no such file.

        Raises
        ------
        StoreError
            It is out of reach.
        """
        found = self._result(self._store.begin(f"{self._prefix}{key}", start, stop))
        return None if found is None else found.tobytes()

    def get_all(self, wanted: Sequence[Wanted]) -> list[Array | None]:
        """Return ranges of files, asked for together: (n,) uint8 each, fewer bytes where a file ends before; None where there is none.

        Raises
        ------
        StoreError
            One is out of reach; the others are not waited for.
        """
        begun = [self._begin(one) for one in wanted]
        try:
            return [_part(one, self._result(future)) for one, future in zip(wanted, begun, strict=True)]
        except StoreError:
            with self._lock:
                for one, future in zip(wanted, begun, strict=True):
                    future.cancel()
                    self._kept.pop(one.key, None)
            raise

    def expect(self, wanted: Sequence[Wanted]) -> None:
        """Ask for what will be read soon, in the same ranges, as far as `AHEAD_BYTES` go."""
        with self._lock:
            room = AHEAD_BYTES - sum(one.num_bytes for one in self._ahead)
        for one in wanted:
            if one.file_bytes <= KEPT_FILE_BYTES:
                self._begin(one)
            elif one.num_bytes <= room and one not in self._ahead:
                room -= one.num_bytes
                future = self._ask(one)
                with self._lock:
                    self._ahead[one] = future

    def _begin(self, one: Wanted) -> Future[Array | None]:
        if one.file_bytes > KEPT_FILE_BYTES:
            with self._lock:
                ahead = self._ahead.pop(one, None)
            return ahead or self._ask(one)
        with self._lock:
            if one.key not in self._kept:
                self._kept[one.key] = one.file_bytes, self._store.begin(f"{self._prefix}{one.key}", 0, max(1, one.file_bytes))
                while sum(num_bytes for num_bytes, _ in self._kept.values()) > KEPT_BYTES:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(one.key)
            return self._kept[one.key][1]

    def _ask(self, one: Wanted) -> Future[Array | None]:
        begun: Future[Array | None] = self._store.begin(f"{self._prefix}{one.key}", one.start, one.start + one.num_bytes)
        return begun

    def _result(self, future: Future[Array | None]) -> Array | None:
        try:
            return future.result()
        except Exception as error:  # of a file system or its client, none of which says what it raises
            raise self._location.out_of_reach(error) from error


def _part(one: Wanted, found: Array | None) -> Array | None:
    """Return what is wanted of a file that was fetched as a whole."""
    whole = found is not None and one.file_bytes <= KEPT_FILE_BYTES
    return found[one.start : one.start + one.num_bytes] if found is not None and whole else found
