"""Split bins that do not fit in memory: a hub's row, or a range that the sample got wrong.

In: bin files. Out: pieces in ascending order of keys, each of which fits, except where one single key occurs too often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import KeyBins, balanced_bins, cell_starts, dropped_bits
from oocgraph.external_sort.workers import Scratch, Workers
from oocgraph.kernels.build import count_cells

MAX_SPLIT = 64
"""Parts that a bin is cut into at once; several bins may be cut at the same time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One bin of some files: the keys ``low .. high - 1``."""

    files: BinFiles
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


def pieces(files: BinFiles, capacity: int, workers: Workers) -> list[Piece]:
    """Every bin of `files`, ascending; those with more than `capacity` records are split first.

    A piece that still has more holds one key only.
    """
    whole = [Piece(files, index) for index in range(files.bins.num_bins)]
    parts = workers.ordered(lambda piece: _split(piece, capacity, workers.scratch), whole)
    return [part for group in parts for part in group]


def _split(piece: Piece, capacity: int, scratch: Scratch) -> list[Piece]:
    if piece.count <= capacity or piece.high - piece.low == 1:
        return [piece]
    bins = _exact_bins(piece, capacity)
    parts = BinFiles(piece.files.folder.child(f"split-{piece.index}"), bins, piece.files.columns)
    for records in piece.files.blocks(piece.index, capacity // 4):
        parts.append(records, scratch)
    parts.close()
    piece.files.remove(piece.index)
    return [final for index in range(bins.num_bins) for final in _split(Piece(parts, index), capacity, scratch)]


def _exact_bins(piece: Piece, capacity: int) -> KeyBins:
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
    return balanced_bins(low, high, min(MAX_SPLIT, 2 * -(-piece.count // capacity)), lambda _: below)
