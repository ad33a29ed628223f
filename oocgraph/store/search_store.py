"""The result store of one search: its logs while it runs, level and parent of each partition once it has ended.

In: what the steps of each partition have found, then its arrays. Out: the records to go on from, then the arrays. One Zarr v3
group, in a folder that every worker sees under the same name::

    result.zarr/    attributes["oocgraph_search"]: format, complete, library_version, num_partitions, and what the search says of itself
      log/<partition>/<epoch>.log       records of the steps (`oocgraph.store.search_log`); removed when the search is complete
      parts/<partition>/level           uint8 (255: unreached) or int32 (-1), in the partition's local order
      parts/<partition>/parent          store numbers, index dtype (its maximum: none)
      unfinished/                       parts and attributes being written
      owner                             who writes here (`oocgraph.store.search_owner`); removed when the search ends

An epoch begins whenever partitions are placed again: the search starts, is resumed, or a worker is lost. Each has logs of its own, so a
worker that was wrongly thought lost does no harm. Which vertices a step finds does not depend on who finds
them, so any whole record of a step will do; the newest epoch's is preferred.

The attributes have one writer, the process that drives the search and owns the store meanwhile. On a network file system a folder's
listing may be cached for some seconds: a worker that makes its own log of the new epoch first then sees those of the epochs before.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import oocgraph
from oocgraph.errors import CorruptStoreError, OutputError, OutputExistsError, StoreError
from oocgraph.store.arrays import PlainArray
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.metadata import group_metadata, metadata_text, plain_json, write_metadata
from oocgraph.store.opening import open_plain
from oocgraph.store.outputs import local_path
from oocgraph.store.publish import put
from oocgraph.store.schema import ArraySpec
from oocgraph.store.search_errors import search_write_error, way_on
from oocgraph.store.search_fields import EQUAL_SHARES_FORMAT, SEARCH_FORMAT, SEARCH_KEY, damaged, read_fields
from oocgraph.store.search_log import read_records
from oocgraph.store.search_owner import SearchOwner
from oocgraph.store.search_record import Bounds, Record
from oocgraph.store.writer import ArrayWriter
from oocgraph.types import Array

_LOG_NAME = re.compile(r"(0|[1-9][0-9]{0,17})\.log")
_LOG, _PARTS, _UNFINISHED = "log", "parts", "unfinished"
_DTYPES = {"level": ("uint8", "int32"), "parent": ("uint32", "int64")}


class SearchStore:
    """The result store of one search. Use `create` or `open` to get one; it may be pickled, and opens no file when unpickled.

    Attributes
    ----------
    path : Path
        Where it is, absolute.
    fields : dict
        What its root group says of the search, as of `open`, `create` or the last `update` here.
    """

    def __init__(self, path: Path, fields: dict[str, Any]) -> None:
        self.path, self.fields = path, fields
        self._owner: SearchOwner | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what this process alone has: a copy owns nothing."""
        return SearchStore, (self.path, self.fields)

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not finished"
        return f"<SearchStore {str(self.path)!r}: {self.num_partitions} partitions, {state}>"

    @classmethod
    def create(cls, path: str | os.PathLike[str], fields: Mapping[str, Any], *, is_owned: bool = False) -> SearchStore:
        """Make an empty result store; it appears at its place with its attributes, or not at all.

        Parameters
        ----------
        path
            Where. Its parent folder must exist, and every worker must see it.
        fields
            What to say of the search, as JSON can hold it (NumPy's numbers too); ``num_partitions`` is needed.
        is_owned
            Keep other searches from writing there from the beginning; `owned`, which must follow, lets go of it.

        Raises
        ------
        OutputError
            The path exists, its parent folder does not, or it cannot be written.
        """
        place = SearchStore.new_place(path)
        own = {"format": EQUAL_SHARES_FORMAT, "complete": False, "library_version": oocgraph.__version__}
        store = cls(place, plain_json({**fields, **own}))
        with AtomicOutput(place, durable=store._durable) as staged:
            staged.path.mkdir()
            (staged.path / _PARTS).mkdir()
            write_metadata(staged.path / _PARTS, group_metadata({}))
            write_metadata(staged.path, group_metadata({SEARCH_KEY: store.fields}))
            with ExitStack() as failed:
                if is_owned:
                    store._owner = failed.enter_context(SearchOwner(staged.path, place=place))
                staged.publish()
                failed.pop_all()
        return store

    @staticmethod
    def new_place(path: str | os.PathLike[str]) -> Path:
        """Return where `create` would make a store, absolute.

        Raises
        ------
        OutputError
            The path exists, or its parent folder does not.
        """
        place = Path(os.path.abspath(local_path(path)))
        if place.exists():
            raise OutputExistsError(f"{place}: exists already; go on with its search with resume={place}, or choose another name")
        if not place.parent.is_dir():
            raise OutputError(f"{place}: there is no folder {place.parent}; make it first, or choose another that every worker sees")
        return place

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SearchStore:
        """Open a result store, finished or not.

        Raises
        ------
        StoreError
            There is none, it is something else, or of a newer format.
        """
        place = Path(os.path.abspath(path))
        if not place.exists():
            raise StoreError(f"{place}: no such folder; a search is started there with `oocgraph bfs GRAPH --result-store {place}`")
        return cls(place, read_fields(place))

    @property
    def _durable(self) -> bool:
        """Whether its files are forced to disk: not those of a store that goes with its result."""
        return not self.fields.get("temporary", False)

    def field(self, name: str) -> Any:
        """Return one of `fields`.

        Raises
        ------
        StoreError
            It is missing.
        """
        if name not in self.fields:
            raise damaged(self.path, name)
        return self.fields[name]

    @property
    def num_partitions(self) -> int:
        """Partitions of the search."""
        return int(self.fields["num_partitions"])

    @property
    def shares(self) -> tuple[int, ...] | None:
        """Edges that each partition owns, as parts of their sum (`oocgraph.partition.vertex_partition`); None: equal shares.

        Raises
        ------
        StoreError
            There is not one for each partition.
        """
        shares = self.fields.get("shares")
        if shares is not None and len(shares) != self.num_partitions:
            raise damaged(self.path, "shares")
        return None if shares is None else tuple(shares)

    def record_shares(self, shares: Sequence[int] | None) -> None:
        """Note the shares with which the search begins.

        Raises
        ------
        OutputError
            They cannot be written.
        """
        if shares is None:
            self.update(shares=None, format=EQUAL_SHARES_FORMAT)
        else:
            self.update(shares=list(shares), format=SEARCH_FORMAT)

    @property
    def complete(self) -> bool:
        """Whether the search had finished when the fields were read or last changed."""
        return bool(self.fields["complete"])

    def require_complete(self) -> None:
        """Refuse a store whose search has not finished.

        Raises
        ------
        StoreError
            It has not; the message tells how to go on.
        """
        if not self.complete:
            graph = self.fields.get("graph", "GRAPH")
            raise StoreError(f"{self.path}: its search has not finished; go on with `oocgraph bfs {graph} --resume {self.path}`")

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Keep other searches from writing here; fields are read again first, and a search that has ended by then needs no owner.

        Raises
        ------
        OutputError
            Another search writes here.
        """
        if self.complete:
            yield
            return
        with self._owner or SearchOwner(self.path) as owner:
            self.fields = read_fields(self.path)
            if self.fields["complete"]:
                owner.close()
            else:
                self._owner = owner
            try:
                yield
            finally:
                self._owner = None

    @property
    def way_on(self) -> str:
        """Text that tells how to go on with the search once it has failed."""
        return way_on(self.path, self.fields)

    def update(self, **fields: Any) -> None:
        """Change some fields; a reader sees all of the old ones or all of the new ones.

        Raises
        ------
        OutputError
            They cannot be written, or another search has taken over the store; those in place stay.
        """
        changed = {**self.fields, **plain_json(fields)}
        staged = self.path / _UNFINISHED / f"zarr.json-{uuid.uuid4().hex[:12]}"
        try:
            if self._owner is not None:
                self._owner.confirm()
            staged.parent.mkdir(exist_ok=True)
            staged.write_text(metadata_text(group_metadata({SEARCH_KEY: changed})))
            put(staged, self.path / "zarr.json", replace=True, durable=self._durable)
        except OSError as error:
            raise search_write_error(error, self.path / "zarr.json") from error
        finally:
            with suppress(OSError):
                staged.unlink()
        self.fields = changed

    # While the search runs.

    def log_path(self, partition: int, epoch: int) -> Path:
        """Return the file of the log of a partition in an epoch."""
        return self.path / _LOG / str(partition) / f"{epoch}.log"

    def epochs(self, partition: int) -> list[int]:
        """Return the epochs in which a partition has a log, ascending."""
        folder = self.path / _LOG / str(partition)
        try:
            names = [Path(name) for name in os.listdir(folder)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{folder}: the logs of the search cannot be listed ({error.strerror}); mend that and try again") from error
        return sorted(int(name.stem) for name in names if _LOG_NAME.fullmatch(name.name))

    def last_step(self, bounds: Sequence[Bounds], *, parents: bool = False) -> int:
        """Return the largest step such that every partition has a whole record of it and of each step before; -1 when there is none.

        Parameters
        ----------
        bounds
            Of each partition.
        parents
            Check the parents too, which are most of the bytes. Worth it after a crash of a machine, which alone can lose bytes in the
            middle of a file; without, `records` raises where it meets such a place.
        """
        last = -1
        for partition, own in zip(range(self.num_partitions), bounds, strict=True):
            logs = [self.log_path(partition, epoch) for epoch in self.epochs(partition)]
            steps = {record.step for log in logs for record in read_records(log, own, parents=parents)}
            whole = next(step for step in count() if step not in steps) - 1
            last = whole if partition == 0 else min(last, whole)
        return last

    def records(self, partition: int, up_to_step: int, bounds: Bounds, *, parents: bool = True) -> Iterator[Record]:
        """Iterate over the records of steps ``0 .. up_to_step`` of a partition, the newest epoch's of each.

        Parameters
        ----------
        bounds
            Of the partition.
        parents
            Read the parents; otherwise they are empty, and cost nothing.

        Raises
        ------
        CorruptStoreError
            No log has a whole record of some step.

        Notes
        -----
        Peak host bytes: a record for each epoch, and one more.
        """
        with ExitStack() as stack:
            newest_first = reversed(self.epochs(partition))
            files = [read_records(self.log_path(partition, epoch), bounds, parents=parents) for epoch in newest_first]
            logs = [_Log(stack.enter_context(closing(records))) for records in files]
            for step in range(up_to_step + 1):
                record = next(filter(None, (log.at(step) for log in logs)), None)
                if record is None:
                    raise CorruptStoreError(
                        f"{self.path / _LOG / str(partition)}: no log here has a whole record of step {step}; "
                        "remove the result store and start the search again"
                    )
                yield record

    # At its end.

    def write_part(self, partition: int, pieces: Iterable[tuple[Array, Array]]) -> None:
        """Write level and parent of a partition's vertices, in local order; both appear at once, in place of those written before.

        Parameters
        ----------
        pieces
            Level and parent of consecutive vertices, one piece at least. Levels are uint8 (255 where unreached) or int32 (-1), parents are
            store numbers, uint32 or int64 (the dtype's maximum where unreached); all pieces are alike.

        Raises
        ------
        OutputError
            The arrays cannot be written; those in place stay.
        ValueError
            Arrays differ in length, or are of other dtypes.

        Notes
        -----
        A store that is complete on disk is left alone: the caller was thought lost, and others have done its work.
        """
        staged = self.path / _UNFINISHED / f"{partition}-{uuid.uuid4().hex[:12]}"
        place = self.path / _PARTS / str(partition)
        try:
            staged.parent.mkdir(exist_ok=True)  # and no more: a store that has been removed must not come back
            staged.mkdir()
            writers: list[ArrayWriter] = []
            for level, parent in pieces:
                if level.dtype.name not in _DTYPES["level"] or parent.dtype.name not in _DTYPES["parent"] or level.shape != parent.shape:
                    raise ValueError(f"level is {level.dtype} {level.shape} and parent is {parent.dtype} {parent.shape}")
                writers = writers or [ArrayWriter(staged, *of, "none") for of in (("level", level.dtype), ("parent", parent.dtype))]
                for writer, values in zip(writers, (level, parent), strict=True):
                    writer.append(values)
            for writer in writers:
                writer.close()
            write_metadata(staged, group_metadata({}))
            if not SearchStore.open(self.path).complete:
                _put_part(staged, place, durable=self._durable)
        except OSError as error:
            if error.errno is None:  # Dask's, of a connection over which pieces come
                raise
            raise search_write_error(error, place) from error
        finally:
            for folder in (staged, _aside(staged)):
                shutil.rmtree(folder, ignore_errors=True)

    def finish(self, **fields: Any) -> None:
        """Mark the search complete, with some last fields, and remove its logs.

        Raises
        ------
        StoreError
            A partition has not been written.
        OutputError
            The fields cannot be written.
        """
        for partition in range(self.num_partitions):
            if not (self.path / _PARTS / str(partition) / "zarr.json").is_file():
                raise StoreError(f"{self.path}: partition {partition} has no level and parent yet; go on with resume={self.path}")
        self.update(**fields, complete=True)
        for name in (_LOG, _UNFINISHED):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def part(self, partition: int, name: str) -> PlainArray:
        """Reader of ``level`` or ``parent`` of a partition, in local order.

        Raises
        ------
        CorruptStoreError
            It is missing or damaged.
        """
        folder = self.path / _PARTS / str(partition)
        return open_plain(folder, name, ArraySpec(_DTYPES[name]), "remove the result store and start the search again")


class _Log:
    """The records of one log, asked for by ascending step."""

    def __init__(self, records: Generator[Record, None, None]) -> None:
        self._records = records
        self._next = next(records, None)

    def at(self, step: int) -> Record | None:
        while self._next is not None and self._next.step < step:
            self._next = next(self._records, None)
        return self._next if self._next is not None and self._next.step == step else None


def _put_part(folder: Path, place: Path, *, durable: bool) -> None:
    """Put a part in its place; one that is there goes to where the new one was."""
    while True:
        try:
            return put(folder, place, replace=place.exists(), durable=durable, aside=_aside(folder))
        except OSError as error:  # another writer of the same part was quicker
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT) or not folder.exists():
                raise
            shutil.rmtree(_aside(folder), ignore_errors=True)


def _aside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-old")
