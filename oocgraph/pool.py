"""Threads whose results a thread may wait for while a signal interrupts it: no lock is left held, so nothing waits for ever afterwards.

`concurrent.futures` guards each future by a condition that is Python code. An exception that a signal raises in it (Ctrl-C, SIGTERM) may
leave its lock taken; then the thread that has the result waits for it, and the end of the pool for that thread. With thousands of short
calls one interrupt in some hundreds does so. Here both sides meet in queues, each step of which is one call of C.
"""

from __future__ import annotations

import atexit
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

_T = TypeVar("_T")


LONGEST_WAIT = 0.1
"""Seconds after which who waits looks again: an interrupt may come when the word of an end has been taken and nothing been done with it."""


class Call(Generic[_T]):
    """A call that a thread makes some time."""

    def __init__(self, function: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
        self._call: tuple[Callable[..., _T], tuple[Any, ...]] | None = function, arguments
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._outcome: tuple[Any, BaseException | None] | None = None

    def make(self) -> None:
        """Make the call, unless it was cancelled."""
        if (call := self._call) is None:
            return
        self._call = None
        try:
            self._outcome = call[0](*call[1]), None
        except BaseException as error:  # raised where the result is asked for
            self._outcome = None, error
        self._ended.put(None)

    def wait(self) -> None:
        """Wait for its end; who was interrupted may wait again."""
        while self._outcome is None:
            with suppress(Empty):
                self._ended.get(timeout=LONGEST_WAIT)

    def result(self) -> _T:
        """Wait for what the call returns, or raise what it raises."""
        self.wait()
        assert self._outcome is not None
        value, error = self._outcome
        if error is None:
            return value  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del error, self  # its traceback holds this frame

    def cancel(self) -> None:
        """Leave the call out, if it has not begun; who asks for its result gets a `CancelledError`."""
        if self._call is not None:
            self._call, self._outcome = None, (None, CancelledError())
            self._ended.put(None)


_pools: WeakSet[Pool] = WeakSet()
"""Pools whose threads end before the interpreter does: one that it stops in a library's code takes the process with it."""


@atexit.register
def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


class Pool:
    """Threads that make calls in the order in which they are submitted.

    Parameters
    ----------
    num_threads
        Threads, each of which begins with a call.
    name
        What the threads are called, with a number each.
    """

    def __init__(self, num_threads: int, name: str) -> None:
        self._num_threads, self._name, self._numbers = num_threads, name, itertools.count()
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        _pools.add(self)

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Call[_T]:
        """Have a thread call a function."""
        call = Call(function, arguments)
        self._calls.put(call)
        if len(self._threads) < self._num_threads and (number := next(self._numbers)) < self._num_threads:
            thread = threading.Thread(target=_work, args=(self._calls,), name=f"{self._name}_{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return call

    def close(self) -> None:
        """Leave out calls that have not begun, and wait for the others."""
        with suppress(Empty):
            while True:
                if (call := self._calls.get_nowait()) is not None:
                    call.cancel()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            if thread.ident is not None:  # not one whose start was interrupted
                thread.join()

    def __del__(self) -> None:
        """Let the threads end."""
        for _ in self._threads:
            self._calls.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _work(calls: SimpleQueue[Call[Any] | None]) -> None:
    while (call := calls.get()) is not None:
        call.make()
        del call
