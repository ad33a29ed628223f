"""The log of one partition of a search: what each step has found, appended record by record; also its checkpoint.

In: a `Record` per step (`oocgraph.store.search_record`). Out: the same records, up to the first that is torn or wrong. One writer writes
one file, once: a writer that comes late (its worker was thought lost) has a file of its own and can do no harm.

Nothing is synced: a killed process loses nothing, since the kernel holds what was written; a machine that crashes may lose the last
records, which the checksums find. google-crc32c (Zarr's own dependency) runs at 17 GB/s, so that
an append costs what the kernel's copy costs (18 MB: 9 ms when the machine is quiet).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

from oocgraph.closing import Closing
from oocgraph.errors import CorruptStoreError, OutputError
from oocgraph.store.files import write_all
from oocgraph.store.search_errors import search_write_error
from oocgraph.store.search_record import Bounds, Record, WrongRecordError, encode, read_record

logger = logging.getLogger(__name__)


class LogWriter(Closing):
    """Appends records to a new file; may be used as a context manager.

    Parameters
    ----------
    path
        The file. Its folders are made; the file must not exist.

    Raises
    ------
    OutputError
        The file exists, or cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.num_bytes = 0
        self._last_step = -1
        self._fd: int | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except FileExistsError as error:
            raise OutputError(f"{self.path}: this log exists already, and a log is written once; begin a new epoch") from error
        except OSError as error:
            raise search_write_error(error, self.path) from error

    def append(self, record: Record) -> int:
        """Append a record, with one system call unless the kernel takes less; returns the bytes written.

        Raises
        ------
        OutputError
            The bytes cannot be written. The file is cut back to the records before, and the writer may try again;
            if even that fails, the writer is closed.
        ValueError
            Arrays of the record do not agree, or its step does not come after the last one.
        """
        if self._fd is None:
            raise OutputError(f"{self.path}: this log is closed; begin a new epoch")
        if record.step <= self._last_step:
            raise ValueError(f"step {record.step} cannot follow step {self._last_step} in {self.path}")
        pieces = encode(record)
        num_bytes = sum(piece.nbytes for piece in pieces)
        try:
            write_all(self._fd, pieces)
        except BaseException as error:  # an interrupt too must not leave half a record before the next one
            self._cut_back(self._fd)
            if isinstance(error, OSError):
                raise search_write_error(error, self.path) from error
            raise
        self._last_step = record.step
        self.num_bytes += num_bytes
        return num_bytes

    def _cut_back(self, fd: int) -> None:
        try:
            os.ftruncate(fd, self.num_bytes)
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file; closing twice is no error."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)


def read_records(path: str | os.PathLike[str], bounds: Bounds, *, parents: bool = True) -> Generator[Record, None, None]:
    """Iterate over the records of a log, one in memory at a time; stop before the first that is torn or wrong.

    Parameters
    ----------
    path
        The file.
    bounds
        What its records can name; they say how large an array can be before it is made.
    parents
        Read the parents and check them; otherwise seek over them, and a record's parents are empty.

    Yields
    ------
    Record
        Its arrays are views of memory of its own, and may be changed.

    Raises
    ------
    CorruptStoreError
        The file cannot be opened or read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe has no writer to wait for
        try:
            num_bytes, offset = os.fstat(fd).st_size, 0
            while offset < num_bytes:
                try:
                    record, offset = read_record(fd, offset, num_bytes, bounds, parents=parents)
                except WrongRecordError as reason:
                    logger.warning("%s: the record at byte %d %s; it and what follows are not used", os.fspath(path), offset, reason)
                    return
                yield record
        finally:
            os.close(fd)
    except OSError as error:
        raise CorruptStoreError(f"{os.fspath(path)}: this log cannot be read ({error.strerror}); restore it or search again") from error
