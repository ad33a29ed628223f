"""What happens on a cluster, as a stream: events of searches, workers that leave, tasks that fail.

In: a Dask client. Out: a `Watch`, a queue that a driver reads. Dask lets a client have one handler for a topic, so all
watches of a client share theirs.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Self

STEPS = "oocgraph"
"""Topic of the events of all steps: the scheduler keeps the last events of every topic that there ever was, so it gets one."""

SHARES = "oocgraph-shares"
"""Topic of the events that shares of an opened graph were dealt again."""


class Watch:
    """Events of a search, and of the workers that it follows; use it in a ``with`` statement.

    Attributes
    ----------
    search
        Whose events.
    queue
        ``("event", message)`` of the search, ``("lost", address)`` of a worker, or what `put` was given.
    """

    def __init__(self, client: Any, search: str) -> None:
        self._client, self.search = client, search
        self.queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.followed: frozenset[str] = frozenset()

    def put(self, kind: str, message: Any) -> None:
        """Add something to the queue."""
        self.queue.put((kind, message))

    def follow(self, addresses: Iterable[str]) -> None:
        """Hear of these workers when they leave.

        Dask tells of all workers in one topic, too; but there it also logs what cannot be sent, when anybody replicates data, and a client
        that has subscribed to it loses its connection then.
        """
        if new := frozenset(addresses) - self.followed:
            self.followed |= new
            _hub(self._client).subscribe(self._client, new)

    def __enter__(self) -> Self:
        _hub(self._client).add(self, self._client)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _hub(self._client).remove(self, self._client)


class _Hub:
    """The one handler of a client for each topic, `STEPS` and addresses of workers; a handler that the user had there goes on hearing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._handlers: dict[str, Callable[[Any], Any]] = {}
        self._before: dict[str, Callable[[Any], Any] | None] = {}
        self._subscribed: set[str] = set()

    def add(self, watch: Watch, client: Any) -> None:
        with self._lock:
            self._watches.add(watch)
        self.subscribe(client, [STEPS])

    def subscribe(self, client: Any, topics: Iterable[str]) -> None:
        with self._lock:
            for topic in set(topics) - self._subscribed:
                own = self._handlers.setdefault(topic, partial(self._on_step if topic == STEPS else self._on_worker, topic))
                before = client._event_handlers.get(topic)  # Dask has no public way to ask
                self._before[topic] = before if before is not own else self._before.get(topic)
                client.subscribe_topic(topic, own)
                self._subscribed.add(topic)

    def remove(self, watch: Watch, client: Any) -> None:
        with self._lock:
            self._watches.discard(watch)
            if self._watches:
                return
            subscribed, self._subscribed = self._subscribed, set()  # a client that connects again has none
            if client.status != "running":
                return
            for topic in subscribed:
                before = self._before[topic]
                if before is None:
                    client.unsubscribe_topic(topic)  # or the scheduler would tell a client that leaves of its leaving
                else:
                    client.subscribe_topic(topic, before)

    def _on_worker(self, address: str, event: tuple[float, Any]) -> Any:
        message = event[1]
        if isinstance(message, dict) and message.get("action") == "remove-worker":
            self._tell("lost", address, lambda watch: address in watch.followed)
        return self._pass_on(address, event)

    def _on_step(self, topic: str, event: tuple[float, Any]) -> Any:
        message = event[1]
        if isinstance(message, dict):
            self._tell("event", message, lambda watch: watch.search == message.get("search"))
        return self._pass_on(topic, event)

    def _tell(self, kind: str, message: Any, concerns: Callable[[Watch], bool]) -> None:
        with self._lock:
            for watch in self._watches:
                if concerns(watch):
                    watch.put(kind, message)

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
