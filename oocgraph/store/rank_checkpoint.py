"""The checkpoint of a PageRank run: ranks and what the next iteration needs, in one file that is whole or not there.

In: a folder, and what tells this run from another. Out: `RankCheckpoint`, which writes states and reads the last one back. The file
``pagerank.state`` is replaced when the next one is on disk (`oocgraph.store.atomic_output`); a run that is killed at any moment leaves the
state before::

    8 bytes   magic "oocgPR01"
    uint64    length of the header
    header    JSON: the run and the scalars of its state (numbers as texts that give back every bit)
    uint32    crc32c of the header
    float64   ranks in store order, little-endian
    uint32    crc32c of the ranks
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import google_crc32c
import numpy as np

from oocgraph.errors import CorruptStoreError, OutputError
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.metadata import open_file
from oocgraph.store.outputs import local_path, output_error
from oocgraph.types import Array

_MAGIC = b"oocgPR01"
_NAME = "pagerank.state"
_PIECE_BYTES = 4 << 20
_MAX_HEADER_BYTES = 1 << 20


class RankCheckpoint:
    """The last state of one run.

    Parameters
    ----------
    folder
        Made for the first state if it is not there; nothing else should be in it.
    run
        What tells the run from others, by the name of the setting: JSON values. A state of another run is refused.

    Raises
    ------
    OutputError
        The folder cannot be made, or is a file.
    """

    def __init__(self, folder: str | os.PathLike[str], run: Mapping[str, Any]) -> None:
        self.folder, self._run = local_path(folder), dict(run)
        _remove(self._make_folder())  # a run that is refused later leaves none

    @property
    def path(self) -> Path:
        """Where the state is."""
        return self.folder / _NAME

    def write(self, scalars: Mapping[str, Any], rank: Array) -> None:
        """Replace the state.

        Raises
        ------
        OutputError
            It cannot be written; the state before is still there, and no folder that was made for it.
        """
        header = json.dumps({"run": self._run, "num_vertices": rank.size, "scalars": dict(scalars)}).encode()
        raw = np.ascontiguousarray(rank, "<f8").view(np.uint8)
        with AtomicOutput(self.path, overwrite=True) as staged:
            with staged.path.open("wb") as file:
                file.write(_MAGIC + len(header).to_bytes(8, "little") + header + _crc_bytes(google_crc32c.extend(0, header)))
                checksum = 0
                for a in range(0, raw.size, _PIECE_BYTES):
                    piece = raw[a : a + _PIECE_BYTES]
                    checksum = google_crc32c.extend(checksum, piece)
                    file.write(piece.data)
                file.write(_crc_bytes(checksum))
            staged.publish()

    def _make_folder(self) -> list[Path]:
        """Make the folder; returns what was made, each folder before the one that holds it."""
        missing = [one for one in (self.folder, *self.folder.parents) if not one.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _remove(missing)
            raise output_error(error, self.folder) from error
        return missing

    def read(self, num_vertices: int) -> tuple[dict[str, Any], Array] | None:
        """Return the scalars and the ranks of the last state; None when there is none.

        Raises
        ------
        CorruptStoreError
            The file is damaged.
        OutputError
            It is of another run.
        """
        try:
            file = open_file(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CorruptStoreError(f"{self.path}: this checkpoint cannot be read ({error.strerror}); {self._remedy}") from error
        with file:
            header = self._read_header(file)
            if header["num_vertices"] != num_vertices:
                raise self._damaged(f"it has {header['num_vertices']:,} ranks, the graph {num_vertices:,} vertices")
            rank = np.empty(num_vertices, "<f8")
            raw, checksum = rank.view(np.uint8), 0
            for a in range(0, raw.size, _PIECE_BYTES):
                piece = raw[a : a + _PIECE_BYTES]
                if file.readinto(piece.data) != piece.size:
                    raise self._damaged("it is torn")
                checksum = google_crc32c.extend(checksum, piece)
            if file.read(5) != _crc_bytes(checksum):
                raise self._damaged("its ranks differ from their checksum")
        return header["scalars"], rank.astype(np.float64, copy=False)

    @property
    def _remedy(self) -> str:
        return f"remove {self.folder} to start over, or name another folder with checkpoint="

    def _read_header(self, file: BinaryIO) -> dict[str, Any]:
        """Return the header of a state, which is of this run."""
        start = file.read(16)
        length = int.from_bytes(start[8:], "little")
        if start[:8] != _MAGIC or length > _MAX_HEADER_BYTES:
            raise self._damaged("it does not begin as one")
        header = file.read(length)
        if file.read(4) != _crc_bytes(google_crc32c.extend(0, header)):
            raise self._damaged("its header differs from its checksum")
        fields: dict[str, Any] = json.loads(header)
        self._require_same_run(fields["run"])
        return fields

    def _damaged(self, why: str) -> CorruptStoreError:
        return CorruptStoreError(f"{self.path}: this checkpoint is damaged ({why}); {self._remedy}")

    def _require_same_run(self, other: Mapping[str, Any]) -> None:
        for name, mine in self._run.items():
            if other.get(name) != mine:
                raise OutputError(
                    f"{self.path}: this checkpoint is of another run: its {name} is {other.get(name)!r}, not {mine!r}; {self._remedy}"
                )


def _crc_bytes(checksum: int) -> bytes:
    return checksum.to_bytes(4, "little")


def _remove(folders: Iterable[Path]) -> None:
    """Remove folders that are empty."""
    for one in folders:
        with suppress(OSError):
            one.rmdir()
