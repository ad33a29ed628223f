"""An output file or folder that appears at its place when it is whole, and not before.

It is written under the same kind of temporary folder as a graph store, beside its destination, so that what a
killed process leaves is removed by whoever writes there next.
"""

from __future__ import annotations

import os
import shutil
import socket
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from oocgraph.errors import OutputError
from oocgraph.store.writer import _TEMPORARY, _remove_remains, output_error


class Staging:
    """Context manager: write to `path`, then `publish`; leaving it without that removes what was written.

    Parameters
    ----------
    destination
        Where the output will be.
    overwrite
        Replace an existing file (a folder is never replaced).

    Raises
    ------
    OutputError
        The destination exists, or cannot be written; also for any operating-system error within the context.
    """

    def __init__(self, destination: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.destination = Path(destination)
        self._overwrite = overwrite
        self._refuse_existing()
        try:
            self.destination.parent.mkdir(parents=True, exist_ok=True)
            _remove_remains(self.destination.parent)
            self.folder = self.destination.parent / f"{_TEMPORARY}-{uuid.uuid4().hex[:12]}"
            self.folder.mkdir()
            (self.folder / "owner").write_text(f"{socket.gethostname()} {os.getpid()}")
        except OSError as error:
            raise output_error(error, self.destination) from error
        self.path = self.folder / f"output{self.destination.suffix}"

    def _refuse_existing(self) -> None:
        if not self.destination.exists():
            return
        if not self.destination.is_file():
            raise OutputError(
                f"{self.destination}: exists already; choose another name, or remove it yourself (only a file is ever overwritten here)"
            )
        if not self._overwrite:
            raise OutputError(f"{self.destination}: exists already; choose another name or pass --overwrite (overwrite=True)")

    def publish(self) -> None:
        """Move the output to its place."""
        self._refuse_existing()
        self.path.rename(self.destination)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise output_error(error, self.destination) from error
