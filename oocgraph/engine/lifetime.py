"""Whether a runtime may be used: in the process that opened it, until it is closed.

A forked process has the memory of its parent and none of its threads: what it asks of a pool of threads is never done, and a lock
that a thread held is never released. So the question comes before the first of either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from oocgraph.errors import ArgumentError


class Lifetime:
    """From the opening of a runtime to its end.

    Parameters
    ----------
    url
        The graph that it has loaded; named in errors.
    """

    def __init__(self, url: str) -> None:
        self._url, self._process, self._is_over = url, os.getpid(), False
        self.searching = Lock()

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened it."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Refuse to do anything after the end, or in a fork.

        Raises
        ------
        ArgumentError
            It is closed, or was opened by another process.
        """
        if not self.is_here:
            raise ArgumentError(
                f"the runtime of {self._url} was opened by another process ({self._process}), and a fork has none of its threads; "
                "open one in this process (open_runtime)"
            )
        if self._is_over:
            raise ArgumentError(f"the runtime of {self._url} is closed; open another one (open_runtime)")

    @contextmanager
    def ending(self) -> Iterator[bool]:
        """End it, after a search in another thread has ended; yields whether it was open until now."""
        if not self.is_here:  # what it holds is the parent's
            yield False
            return
        with self.searching:
            was_open, self._is_over = not self._is_over, True
            yield was_open
