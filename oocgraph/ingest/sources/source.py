"""What every module of this package returns, and what a caller may ask of it.

A format module opens its input, reads only what describes it (a footer, a header) and returns a `Source`: the facts of
`EdgeSource` and a function that makes the streams. Each stream opens the input again, so it may be read any number of times.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from oocgraph.errors import ArgumentError, InputError, InputNotFoundError
from oocgraph.ingest.edges import EdgeBlock, EdgeSource, EdgeStream
from oocgraph.ingest.sources.ids import MAX_ID, numpy_column_dtype
from oocgraph.types import Array, IdKind

MAX_INFLATION = 1100
"""Deflate makes 1,032 bytes of one at most: what claims more is damaged, or meant to exhaust memory."""

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
"""What names of compressed text end in."""

MAX_REASON = 200
"""Characters of another library's message within one of ours."""

MAX_DIGITS = 40
"""Digits of a number that a header may have: one of more is damaged, and Python refuses to convert one of thousands."""

HIDDEN_PREFIXES = ("_", ".")
"""Beginnings of the names of what is not read of a folder: ``_SUCCESS``, ``_temporary``, ``.ipynb_checkpoints``."""

StreamMaker = Callable[[int], Sequence[EdgeStream]]
"""Makes the streams of a source, for a number of rows that a block may have."""

MAX_STREAMS = 16
"""Into how many parts a source that can be read from anywhere is cut: enough for its readers to finish together."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user said about the input; None and () mean "not given".

    Attributes
    ----------
    client
        Dask client whose workers compute the partitions of a Dask collection; without one this process does.
    id_kind
        What ids are read as, where a format does not say: those of text files.
    directed
        Whether the graph is asked to be directed: an undirected source then gives its edges in both directions.
    dtypes
        What edge columns are to be, by name: a NumPy dtype of numbers, or ``"string"``. Others are what the source has.

    Raises
    ------
    InputError
        `edge_columns` is one name.
    ArgumentError
        `dtypes` names something else.
    """

    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    edge_columns: Sequence[str] = ()
    num_vertices: int | None = None
    client: Any = None
    id_kind: IdKind | None = None
    directed: bool | None = None
    dtypes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.edge_columns, str):
            raise InputError(f"edge_columns is {self.edge_columns!r}; give a list of names: [{self.edge_columns!r}]")
        object.__setattr__(self, "edge_columns", tuple(self.edge_columns or ()))
        object.__setattr__(self, "dtypes", _checked_dtypes(self.dtypes))

    @property
    def named(self) -> tuple[str, ...]:
        """Every column that the user named."""
        return tuple(dict.fromkeys(name for name in (self.source_column, self.target_column, *self.beside) if name is not None))

    @property
    def beside(self) -> tuple[str, ...]:
        """Edge columns that the user named: the weight first, none twice."""
        return tuple(dict.fromkeys(name for name in (self.weight_column, *self.edge_columns) if name is not None))


def _checked_dtypes(dtypes: Any) -> dict[str, str]:
    """Return dtypes of columns by the names of what is stored."""
    if not isinstance(dtypes, Mapping):
        raise ArgumentError(f"dtypes is {dtypes!r}; give a dict of column names and dtypes, such as {{'time': 'int64', 'kind': 'string'}}")
    found = {}
    for name, kind in dtypes.items():
        try:
            is_text = kind is str or (isinstance(kind, str) and kind in {"string", "str"})
            found[name] = "string" if is_text else numpy_column_dtype(np.dtype(kind)).name
            is_number = is_text or (np.dtype(kind).kind in "biuf" and np.dtype(kind).itemsize <= 8)
        except TypeError:
            is_number = False
        if not is_number:
            raise ArgumentError(f"dtypes has {kind!r} for {name!r}; it must be a NumPy dtype of numbers of up to 64 bits, or 'string'")
    return found


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as it was when it was opened; another program may write to it while it is read, and again when it is read once more.

    Attributes
    ----------
    state
        Device, inode, bytes, and nanoseconds of the last change.
    """

    path: Path
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: Path) -> InputFile:
        """Look at a file."""
        with reading(path):
            found = os.stat(path)
        return cls(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))

    def check(self) -> None:
        """Refuse a file that has changed.

        Raises
        ------
        InputError
            It was written to, replaced or removed.
        """
        if not self.path.exists() or InputFile.of(self.path) != self:
            raise InputError(
                f"{self.path} was changed while it was read, so the edges may be of neither version; wait until its writer has "
                "finished, or copy it first"
            )


@dataclass(slots=True)
class Source:
    """The one implementation of `oocgraph.ingest.edges.EdgeSource`; attributes as there.

    Attributes
    ----------
    files
        What is read; every stream ends with an error if one has changed since it was opened.
    readers
        How many streams there are at the most, and what each holds beside its blocks, where that is known.
    ends
        Names of the columns of sources and targets, where a table has been asked for them.
    """

    description: str
    id_kind: IdKind
    make_streams: StreamMaker
    num_rows: int | None = None
    num_vertices: int | None = None
    id_bounds: tuple[int, int] | None = None
    directed: bool | None = None
    weight: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    extra_vertices: Array | None = None
    likely_rows: int | None = None
    files: tuple[InputFile, ...] = ()
    readers: tuple[int, int] = (0, 0)
    ends: tuple[str, str] | None = None

    @classmethod
    def like(cls, edges: EdgeSource, make_streams: StreamMaker, **facts: Any) -> Source:
        """Return a source with the description, vertices and columns of another, and what else is known of its edges."""
        return cls(
            edges.description, edges.id_kind, make_streams, num_vertices=edges.num_vertices,
            weight=edges.weight, columns=edges.columns, **facts,
        )  # fmt: skip

    def __post_init__(self) -> None:
        if self.num_vertices is not None and self.id_kind != "int64":
            raise InputError(f"{self.description}: num_vertices = {self.num_vertices} needs integer ids, these are strings; leave it out")

    def streams(self, block_rows: int) -> Sequence[EdgeStream]:
        """Return the parts of the source, in order; no block has more than `block_rows` edges."""
        if block_rows < 1:
            raise ValueError(f"block_rows is {block_rows}; it must be at least 1")
        return [partial(self._checked, stream) for stream in self.make_streams(block_rows)]

    def _checked(self, stream: EdgeStream) -> Iterator[EdgeBlock]:
        """Read a stream, and refuse what was changed meanwhile: whatever else is wrong then may come of that."""
        try:
            yield from stream()
        except Exception as error:
            try:
                self._check_files()
            except InputError as changed:
                raise changed from error
            raise
        self._check_files()

    def _check_files(self) -> None:
        for file in self.files:
            file.check()


def range_streams(
    num_rows: int, read: Callable[[int, int], EdgeBlock], *, most_rows: int | None = None, max_streams: int = MAX_STREAMS
) -> StreamMaker:
    """Return what makes the streams of a source whose rows can be read from anywhere: `read` returns those of a range.

    A block has at most `most_rows` rows, where given.
    """

    def stream(start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        for low, high in blocks_of(start, stop, min(block_rows, most_rows or block_rows)):
            yield read(low, high)

    return lambda block_rows: [partial(stream, low, high, block_rows) for low, high in split_rows(num_rows, block_rows, max_streams)]


def single_stream(stream: Callable[[int], Iterator[EdgeBlock]]) -> StreamMaker:
    """Return what makes the one stream of a source that is read from its beginning; `stream` takes the rows of a block."""
    return lambda block_rows: [partial(stream, block_rows)]


def split_rows(num_rows: int, block_rows: int, max_streams: int = MAX_STREAMS) -> list[tuple[int, int]]:
    """Cut ``0 .. num_rows`` into at most `max_streams` ranges of at least one block each."""
    per_stream = max(block_rows, -(-num_rows // max_streams))
    return [(start, min(start + per_stream, num_rows)) for start in range(0, num_rows, per_stream)]


def blocks_of(start: int, stop: int, block_rows: int) -> Iterator[tuple[int, int]]:
    """Cut the range ``start .. stop`` into blocks."""
    for low in range(start, stop, block_rows):
        yield low, min(low + block_rows, stop)


def agreed_num_vertices(description: str, declared: int | None, request: Request) -> int | None:
    """Return the number of vertices that the source declares or the user gives; the two must not differ."""
    for given, whose in ((declared, "its header declares"), (request.num_vertices, "num_vertices is")):
        if isinstance(given, int) and given > MAX_ID:
            size = f"2**{given.bit_length() - 1} or more"
            raise InputError(f"{description}: {whose} {size}, but ids are below 2**63 - 1; give the number of vertices that there are")
    if request.num_vertices is None:
        return declared
    if request.num_vertices < 0:
        raise InputError(f"{description}: num_vertices = {request.num_vertices} is negative; give the number of vertices, or leave it out")
    if declared is not None and declared != request.num_vertices:
        raise InputError(f"{description} declares {declared} vertices but num_vertices = {request.num_vertices} was given; leave it out")
    return request.num_vertices


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into an InputError."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputNotFoundError(f"{path}: no such file; check the path") from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it; change its mode or run as its owner") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder where a file is needed; name the file") from error
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise InputError(f"{path}: cannot be opened: this process has too many files open; raise the limit (ulimit -n)") from error
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); mend that, or copy the input elsewhere") from error


def read_elements(path: Path, offset: int, dtype: np.dtype[Any], count: int) -> Array:
    """Read elements of a binary file, from a byte on: (count,) of `dtype`."""
    array = np.empty(count, dtype)
    with open_file(path) as file:
        file.seek(offset)
        if file.readinto(array.view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
            raise InputError(f"{path} ended at byte {file.tell()} while it was read; was it changed? Write it again")
    return array


def open_file(path: Path) -> IO[bytes]:
    """Open `path` for reading."""
    with reading(path):
        return path.open("rb")


def reason(error: BaseException) -> str:
    """Text of another library's error, on one line, without the bytes that it may quote."""
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]} ..."


def file_bytes(path: Path) -> int:
    """Return the size of a file that must not be empty."""
    with reading(path):
        found = os.stat(path)
    refuse_stream(path, found.st_mode)
    if found.st_size == 0:
        raise InputError(f"{path} is empty (0 bytes); write the edge list again, or name another file")
    return found.st_size


def is_hidden(name: str) -> bool:
    """Whether a file or folder within a folder is none of its data: hidden, temporary, or a mark of the program that wrote it."""
    return name.startswith(HIDDEN_PREFIXES)


def refuse_stream(path: Path, mode: int) -> None:
    """Refuse pipes, sockets and devices, which can be read only once and have no size."""
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        raise InputError(f"{path} is a {kind}, not a file: an edge list is read more than once; write it to a file first")
