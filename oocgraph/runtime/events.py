"""What happens on a cluster, as a stream: events of searches, workers that leave, tasks that fail.

In: a Dask client. Out: a `Watch`, a queue that a driver reads. Dask lets a client have one handler for a topic, so all
watches of a client share the handler of the topic on which the scheduler tells of workers.
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


class Watch:
    """Events of a topic, and of all workers; use it in a ``with`` statement.

    Attributes
    ----------
    queue
        ``("event", message)`` of the topic, ``("workers", message)``, or what `put` was given.
    """

    def __init__(self, client: Any, topic: str) -> None:
        self._client, self._topic = client, topic
        self.queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def put(self, kind: str, message: Any) -> None:
        """Add something to the queue."""
        self.queue.put((kind, message))

    def __enter__(self) -> Self:
        _hub(self._client).add(self)
        self._client.subscribe_topic(self._topic, lambda event: self.put("event", event[1]))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _hub(self._client).remove(self)
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._topic)
        # the handler stays: an event may be on its way


class _Hub:
    """The one handler of a client for the events of workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._before: Callable[[Any], Any] | None = None

    def add(self, watch: Watch) -> None:
        with self._lock:
            if not self._watches:
                client = watch._client
                before = client._event_handlers.get(ALL)  # the user's, if any: Dask has no public way to ask
                self._before = before if before != self._handle else self._before
                client.subscribe_topic(ALL, self._handle)
            self._watches.add(watch)

    def remove(self, watch: Watch) -> None:
        with self._lock:
            self._watches.discard(watch)
            client = watch._client
            if not self._watches and client.status == "running":
                if self._before is None:
                    client.unsubscribe_topic(ALL)  # or the scheduler would tell a client that leaves of its leaving
                else:
                    client.subscribe_topic(ALL, self._before)

    def _handle(self, event: tuple[float, Any]) -> Any:
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("remove-worker", "add-worker"):
            with self._lock:
                for watch in self._watches:
                    watch.put("workers", message)
        return self._before(event) if self._before is not None else None


_hubs: weakref.WeakKeyDictionary[Any, _Hub] = weakref.WeakKeyDictionary()
_hubs_lock = threading.Lock()


def _hub(client: Any) -> _Hub:
    with _hubs_lock:
        if client not in _hubs:
            _hubs[client] = _Hub()
        return _hubs[client]
