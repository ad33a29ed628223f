"""Threads whose results a thread may wait for while a signal interrupts it: no lock is left held, so nothing waits for ever afterwards.

`concurrent.futures` guards each future by a condition that is Python code. An exception that a signal raises in it (Ctrl-C, SIGTERM) may
leave its lock taken; then the thread that has the result waits for it, and the end of the pool for that thread. With thousands of short
calls one interrupt in some hundreds does so. Here both sides meet in queues, each step of which is one call of C.
"""

from __future__ import annotations

import atexit
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from oocgraph.closing import Closing

_S = TypeVar("_S")
_T = TypeVar("_T")


LONGEST_WAIT = 0.1
"""Seconds after which who waits looks again: an interrupt may come when the word of an end has been taken and nothing been done with it."""

INTERRUPTED_START = 1e-3
"""Seconds after which a thread is asked again whether it has started."""

_BEGUN, _CANCELLED = "begun", "cancelled"


class Call(Generic[_T]):
    """A call that a thread makes some time."""

    def __init__(self, function: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
        self._call: tuple[Callable[..., _T], tuple[Any, ...]] | None = function, arguments
        self._fate: dict[str, str] = {}  # whichever comes first, in one step: begun, or cancelled
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._outcome: tuple[Any, BaseException | None] | None = None

    def make(self) -> None:
        """Make the call, unless it was cancelled."""
        call, self._call = self._call, None
        if call is None or self._fate.setdefault("", _BEGUN) is not _BEGUN:
            return
        ended = self._ended
        try:
            self._outcome = call[0](*call[1]), None
        except BaseException as error:  # raised where the result is asked for
            self._outcome = None, error
        del call, self  # the traceback of an error holds this frame
        ended.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, so long at most, and return whether it came; who was interrupted may wait again."""
        until = None if seconds is None else time.monotonic() + seconds
        while self._outcome is None and self._fate.get("") is not _CANCELLED:
            left = LONGEST_WAIT if until is None else min(LONGEST_WAIT, until - time.monotonic())
            if left <= 0:
                return False
            with suppress(Empty):
                self._ended.get(timeout=left)
        return True

    def result(self) -> _T:
        """Wait for what the call returns, or raise what it raises."""
        self.wait()
        value: Any = None
        error: BaseException | None = CancelledError()
        if self._outcome is not None:
            value, error = self._outcome
        if error is None:
            return value  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del error, self  # its traceback holds this frame

    def cancel(self) -> None:
        """Leave the call out, if it has not begun; who asks for its result gets a `CancelledError`."""
        if self._fate.setdefault("", _CANCELLED) is _CANCELLED:
            self._call = None
            self._ended.put(None)


def wait_for(calls: Iterable[Call[Any]]) -> None:
    """Wait until all have ended, whether they return or raise."""
    for call in calls:
        call.wait()


_pools: WeakSet[Pool] = WeakSet()
"""Pools whose threads end before the interpreter does: one that it stops in a library's code takes the process with it."""


@atexit.register
def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


def start(thread: threading.Thread) -> None:
    """Start a thread; what a signal's handler raises meanwhile is raised, where `threading` may make it an error of a lock."""
    try:
        thread.start()
    except RuntimeError as error:
        if error.__context__ is not None:
            raise error.__context__ from None
        raise


def _join(thread: threading.Thread) -> None:
    """Wait for the end of a thread, of one whose start was interrupted if it has begun: `join` refuses until it has said so."""
    while thread.ident is not None:
        try:
            return thread.join()
        except RuntimeError:
            if thread is threading.current_thread():
                raise
            time.sleep(INTERRUPTED_START)


class Pool(Closing):
    """Threads that make calls in the order in which they are submitted.

    Parameters
    ----------
    num_threads
        Threads, each of which begins with a call.
    name
        What the threads are called, with a number each.
    begin, end
        What each thread does first, and last.
    """

    def __init__(self, num_threads: int, name: str, begin: Callable[[], None] | None = None, end: Callable[[], None] | None = None) -> None:
        self._num_threads, self._name, self._around, self._numbers = num_threads, name, (begin, end), itertools.count()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        _pools.add(self)

    def submit(self, function: Callable[..., _T], *arguments: Any) -> Call[_T]:
        """Have a thread call a function.

        Raises
        ------
        RuntimeError
            The pool is closed.
        """
        if self._is_closed:
            raise RuntimeError(f"the threads {self._name} have ended")
        call = Call(function, arguments)
        self._calls.put(call)
        if len(self._threads) < self._num_threads and (number := next(self._numbers)) < self._num_threads:
            thread = threading.Thread(target=_work, args=(self._calls, *self._around), name=f"{self._name}_{number}", daemon=True)
            self._threads.append(thread)
            start(thread)
        return call

    def map(self, function: Callable[[_S], _T], items: Iterable[_S], ahead: int | None = None) -> Iterator[_T]:
        """Iterate over what a function returns of each item, in order; what has not begun when one raises is left out.

        Beside the item whose result is next, `ahead` at most are taken from `items`; all of them where none is given.
        """
        waiting: deque[Call[_T]] = deque()
        try:
            for item in items:
                waiting.append(self.submit(function, item))
                if ahead is not None and len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for call in waiting:
                call.cancel()

    def close(self) -> None:
        """Leave out calls that have not begun, and wait for the others."""
        self._is_closed = True
        with suppress(Empty):
            while True:
                if (call := self._calls.get_nowait()) is not None:
                    call.cancel()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            _join(thread)

    def __del__(self) -> None:
        """Let the threads end; there are none where a signal has interrupted `__init__`."""
        for _ in self.__dict__.get("_threads", ()):
            self._calls.put(None)


def _work(calls: SimpleQueue[Call[Any] | None], begin: Callable[[], None] | None, end: Callable[[], None] | None) -> None:
    if begin is not None:
        begin()
    while (call := calls.get()) is not None:
        call.make()
        del call
    if end is not None:
        end()
