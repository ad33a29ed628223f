"""Split bins that do not fit in memory: a hub's row, or a range that the sample got wrong.

In: bin files. Out: pieces in ascending order of keys, each of which fits, except where one single key occurs too often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import KeyBins, bins_of_cells, cell_starts, dropped_bits, one_bin
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Scratch, Workers
from oocgraph.kernels.build import count_cells
from oocgraph.store.records import Records, order_bits
from oocgraph.types import Array

MAX_SPLIT = 64
"""Parts that a bin is cut into at once; several bins may be cut at the same time."""


class Ranges(Protocol):
    """Consecutive ranges of keys: the first key of each, and the end of the last."""

    @property
    def starts(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def num_bins(self) -> int: ...  # noqa: D102


class RangedFiles(Protocol):
    """Temporary files of records by range of keys, as `oocgraph.external_sort.bins.BinFiles`, that are read."""

    folder: Folder
    counts: Array

    @property
    def bins(self) -> Ranges: ...  # noqa: D102
    @property
    def columns(self) -> tuple[Any, ...]: ...  # noqa: D102

    def read(self, index: int, scratch: Scratch) -> Records:
        """Return all records of a bin, in arrays of this thread's scratch."""
        ...

    def blocks(self, index: int, block_length: int) -> Iterator[Records]:
        """Iterate over a bin's records."""
        ...

    def remove(self, index: int) -> None:
        """Delete a file."""
        ...


Files_co = TypeVar("Files_co", bound=RangedFiles, covariant=True)


@dataclass(frozen=True, slots=True)
class Piece(Generic[Files_co]):
    """One bin of some files: the keys ``low .. high - 1``."""

    files: Files_co
    index: int

    @property
    def low(self) -> int:
        """First key of the range."""
        return self.files.bins.starts[self.index]

    @property
    def high(self) -> int:
        """End of the range."""
        return self.files.bins.starts[self.index + 1]

    @property
    def count(self) -> int:
        """Number of records."""
        return int(self.files.counts[self.index])


_Given = TypeVar("_Given", bound=RangedFiles)


def pieces(files: _Given, capacity: int, workers: Workers) -> list[Piece[_Given | BinFiles]]:
    """Every bin of `files`, ascending; those with more than `capacity` records are split first.

    A piece that still has more holds one key only.
    """
    whole = [Piece(files, index) for index in range(files.bins.num_bins)]
    parts = workers.ordered(lambda piece: split(piece, capacity, workers.scratch), whole)
    return [part for group in parts for part in group]


def split(piece: Piece[_Given], capacity: int, scratch: Scratch) -> list[Piece[_Given | BinFiles]]:
    """Return the parts of a bin, ascending, as of `pieces`."""
    if piece.count <= capacity or piece.high - piece.low == 1:
        return [piece]
    bins = _exact_bins(piece, capacity)
    parts = BinFiles(piece.files.folder.child(f"split-{piece.index}"), bins, piece.files.columns)
    for records in piece.files.blocks(piece.index, capacity // 4):
        parts.append(records, scratch)
    parts.close()
    parts.end_dealing()
    piece.files.remove(piece.index)
    return [final for index in range(bins.num_bins) for final in split(Piece(parts, index), capacity, scratch)]


def column_pieces(
    piece: Piece[_Given], capacity: int, scratch: Scratch, *, codes: Mapping[int, Array] | None = None, at: int = 0
) -> list[Piece[BinFiles]]:
    """Split a piece of one key by its columns from `at` on: `codes` are as of `oocgraph.ingest.dedupe.clean_edges`.

    Returns
    -------
    list
        Pieces in the order of these columns, whose keys are bits of a column. One that has more than `capacity` records has the same ones.
    """
    codes = codes or {}
    dealt = BinFiles(piece.files.folder.child(f"column-{at}-{piece.index}"), one_bin(1 << 64), piece.files.columns)
    for _, *stored in piece.files.blocks(piece.index, capacity // 4):
        columns = [codes[i][values] if i in codes else values for i, values in enumerate(stored)]
        dealt.append((order_bits(columns[at]).astype(np.uint64), *columns), scratch)
    dealt.close()
    piece.files.remove(piece.index)
    found = []
    for part in split(Piece(dealt, 0), capacity, scratch):
        is_last = part.count <= capacity or at + 1 == len(dealt.columns)
        found += [part] if is_last else column_pieces(part, capacity, scratch, at=at + 1)
    return found


def same_key(records: Records, key: int) -> Records:
    """Return records of `column_pieces` with the key that all of them have."""
    return (np.full(records[0].size, key, np.uint64), *records[1:])


def _exact_bins(piece: Piece[RangedFiles], capacity: int) -> KeyBins:
    """Ranges balanced by counting, narrowed until they divide the keys."""
    low, high = piece.low, piece.high
    while True:
        starts = cell_starts(low, high)
        counts = np.zeros(len(starts) - 1, np.int64)
        for keys, *_ in piece.files.blocks(piece.index, capacity // 4):
            inside = keys[(keys >= np.uint64(low)) & (keys <= np.uint64(high - 1))]
            count_cells(inside, np.uint64(low), np.uint64(dropped_bits(low, high)), counts)
        fullest = int(counts.argmax())
        if counts[fullest] < piece.count or high - low == 1:
            break
        low, high = starts[fullest], starts[fullest + 1]
    below = np.append(0, np.cumsum(counts, dtype=np.float64))
    return bins_of_cells(low, high, min(MAX_SPLIT, 2 * -(-piece.count // capacity)), starts, below)
