"""An output that appears at its place when it is whole and on disk, and not before: the one way in which anything is written.

It is made in a temporary folder beside its place. Publishing it forces it to disk and moves it; what stood there is replaced in one
step, and removed after that. So at any moment either what stood there before or the new output stands there, whole. What a killed
process leaves is removed, and what it had moved aside is put back, by the next process that writes there (`oocgraph.store.remains`).
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from oocgraph.errors import OocGraphError, OutputExistsError
from oocgraph.store.outputs import Kind, output_error, output_place, upload_to
from oocgraph.store.publish import put
from oocgraph.store.remains import OUTPUT, Remains, clear


class AtomicOutput:
    """Context manager: write to `path`, then `publish`; leaving it without that removes what was written.

    Parameters
    ----------
    destination
        Where the output will be. Of a symbolic link, what it points to is replaced. What goes to a URL is made in the folder for temporary
        files, and uploaded by `publish`.
    kind
        What it is; only an output of the same kind is ever replaced.
    overwrite
        Replace an output that exists.
    durable
        Force the output to disk before it is published; not needed by what goes with the process.

    Attributes
    ----------
    folder : Path
        The temporary folder, for whatever else is needed.
    path : Path
        Where to write the output: a file or a folder, with the extension of its destination.
    sync_seconds : float
        Time that it took to force the output to disk and to move it to its place.

    Raises
    ------
    OutputError
        The destination exists or cannot be written; also for any operating-system error within the context.
    """

    def __init__(
        self,
        destination: str | os.PathLike[str],
        *,
        kind: Kind = "file",
        overwrite: bool = False,
        durable: bool = True,
    ) -> None:
        self.destination = Path(destination)
        self._upload = upload_to(destination, kind)
        self.sync_seconds = 0.0
        self._kind: Kind = kind
        self._overwrite, self._durable = overwrite, durable
        self._place = output_place(destination, kind=kind, overwrite=overwrite)
        self._made: list[Path] = []
        try:
            self._make_parents()
            clear(self._place.parent)
            self._remains = Remains.make(self._place)
            self._guard = weakref.finalize(self, _discard, self._remains, os.getpid())
            self.folder = self._remains.folder
            self.path = self.folder / f"{OUTPUT}{self.destination.suffix}"
        except BaseException as error:
            if hasattr(self, "_remains"):
                self._remains.discard()
            self._remove_parents()
            if isinstance(error, OSError):
                raise output_error(error, self.destination) from error
            raise

    def publish(self, check: Callable[[], None] | None = None) -> None:
        """Force the output to disk and move it to its place; `check` is as of `oocgraph.store.publish.put`, of what is on a local disk.

        Raises
        ------
        OutputError
            Something has come to stand there meanwhile.
        """
        began = time.perf_counter()
        if self._upload is not None:
            self._upload.check(overwrite=self._overwrite)
            self._upload.send(self.path)
            self.sync_seconds = time.perf_counter() - began
            return
        place = output_place(self._place, kind=self._kind, overwrite=self._overwrite)
        try:
            replace = self._overwrite and os.path.lexists(place)
            put(self.path, place, replace=replace, durable=self._durable, aside=self._remains.aside, check=check)
        except FileExistsError as error:
            raise OutputExistsError(f"{self.destination}: exists already: it was made meanwhile; choose another name") from error
        self.sync_seconds = time.perf_counter() - began
        self._made.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            gone = self._remains.discard()
        except (KeyboardInterrupt, SystemExit):  # once more, with what is left of it
            self._remains.discard()
            self._remove_parents()
            raise
        self._guard.detach()
        self._remove_parents()
        if isinstance(error, OSError) and not isinstance(error, OocGraphError):  # some are both, and say what is wrong
            raise self._attributed(error, left=None if gone else self.folder) from error

    def _attributed(self, error: OSError, *, left: Path | None) -> OocGraphError:
        """Return the message for an error: of the output, unless it names a file elsewhere."""
        if isinstance(error.filename, str | bytes):
            name = Path(os.fsdecode(error.filename)).absolute()
            if not (name.is_relative_to(self.folder) or self._place.is_relative_to(name)):
                return OocGraphError(f"{os.fsdecode(error.filename)}: cannot be read or written ({error.strerror})")
        return output_error(error, self.destination, left=left)

    def _make_parents(self) -> None:
        missing = []
        parent = self._place.parent
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)

    def _remove_parents(self) -> None:
        """Remove the folders that were made for an output that was not published."""
        for folder in reversed(self._made):
            try:
                folder.rmdir()
            except OSError:  # in use by now
                return


def _discard(remains: Remains, pid: int) -> None:
    """Remove the folder of an output that was interrupted before its context was entered or left; not that of a parent process."""
    if os.getpid() == pid:
        remains.discard()
