"""What has to be closed: a `with` statement does it at its end."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType


class Closing(AbstractContextManager):  # type: ignore[type-arg]  # of itself, whose type is not known here
    """Something with a `close`, which may be called again; a ``with`` statement calls it."""

    def close(self) -> None:
        """Give back what is held."""
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
