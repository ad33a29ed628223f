"""What has to be closed: a `with` statement does it at its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Something with a `close`, which may be called again; a ``with`` statement calls it."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held."""

    def check(self) -> None:  # noqa: B027 - most may be opened once only, and are when they are made
        """Refuse to be used again once it is closed."""

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
