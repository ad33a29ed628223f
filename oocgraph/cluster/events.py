"""What happens on a cluster, as a stream: events of searches, workers that leave, tasks that fail.

In: a Dask client. Out: a `Watch`, a queue that a driver reads. Dask lets a client have one handler for a topic, so all
watches of a client share theirs.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

ALL = "all"
"""Topic on which the scheduler tells of workers that come and go."""

STEPS = "oocgraph"
"""Topic of the events of all steps: the scheduler keeps the last events of every topic that there ever was, so it gets one."""


class Watch:
    """Events of a search, and of all workers; use it in a ``with`` statement.

    Attributes
    ----------
    search
        Whose events.
    queue
        ``("event", message)`` of the search, ``("workers", message)``, or what `put` was given.
    """

    def __init__(self, client: Any, search: str) -> None:
        self._client, self.search = client, search
        self.queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def put(self, kind: str, message: Any) -> None:
        """Add something to the queue."""
        self.queue.put((kind, message))

    def __enter__(self) -> Self:
        _hub(self._client).add(self, self._client)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _hub(self._client).remove(self, self._client)


class _Hub:
    """The one handler of a client for each of the two topics; a handler that the user had there goes on hearing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._handlers = {ALL: self._on_workers, STEPS: self._on_search}
        self._before: dict[str, Callable[[Any], Any] | None] = {}

    def add(self, watch: Watch, client: Any) -> None:
        with self._lock:
            if not self._watches:
                for topic, handler in self._handlers.items():
                    before = client._event_handlers.get(topic)  # Dask has no public way to ask
                    self._before[topic] = before if before is not handler else self._before.get(topic)
                    client.subscribe_topic(topic, handler)
            self._watches.add(watch)

    def remove(self, watch: Watch, client: Any) -> None:
        with self._lock:
            self._watches.discard(watch)
            if self._watches or client.status != "running":
                return
            for topic, before in self._before.items():
                if before is None:
                    client.unsubscribe_topic(topic)  # or the scheduler would tell a client that leaves of its leaving
                else:
                    client.subscribe_topic(topic, before)

    def _on_workers(self, event: tuple[float, Any]) -> Any:
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("remove-worker", "add-worker"):
            with self._lock:
                for watch in self._watches:
                    watch.put("workers", message)
        return self._pass_on(ALL, event)

    def _on_search(self, event: tuple[float, Any]) -> Any:
        message = event[1]
        if isinstance(message, dict):
            with self._lock:
                for watch in self._watches:
                    if watch.search == message.get("search"):
                        watch.put("event", message)
        return self._pass_on(STEPS, event)

    def _pass_on(self, topic: str, event: tuple[float, Any]) -> Any:
        before = self._before.get(topic)
        return before(event) if before is not None else None


_hubs: weakref.WeakKeyDictionary[Any, _Hub] = weakref.WeakKeyDictionary()
_hubs_lock = threading.Lock()


def _hub(client: Any) -> _Hub:
    with _hubs_lock:
        if client not in _hubs:
            _hubs[client] = _Hub()
        return _hubs[client]
