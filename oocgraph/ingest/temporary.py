"""Folders of temporary files that know which files are open, so that a failed build closes them all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self


class Closable(Protocol):
    """Something that holds files."""

    def close(self) -> None:
        """Close them; closing twice is allowed."""
        ...


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, and everything that was opened in it or below it.

    Leaving its context closes all of that; the store's writer removes the files.
    """

    path: Path
    opened: list[Closable] = field(default_factory=list)

    def child(self, name: str) -> Folder:
        """Return the folder `name` in this one."""
        return Folder(self.path / name, self.opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for files in self.opened:
            files.close()
