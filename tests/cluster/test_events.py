"""What happens on a cluster reaches who watches, and nobody else; handlers of the user go on hearing."""

from __future__ import annotations

import queue

import pytest
from distributed import get_worker

from oocgraph.clients import workers_of
from oocgraph.cluster.events import STEPS, Watch
from tests.processes import PATIENCE_SECONDS


class FakeClient:
    """Knows handlers and subscriptions by topic, as Dask's does; `tell` brings an event."""

    def __init__(self):
        self.status, self._event_handlers, self.subscribed = "running", {}, set()

    def subscribe_topic(self, topic, handler):
        self._event_handlers[topic] = handler
        self.subscribed.add(topic)

    def unsubscribe_topic(self, topic):
        self.subscribed.remove(topic)

    def tell(self, topic, message):
        if topic in self.subscribed:
            self._event_handlers[topic]((0.0, message))


def drain(watch):
    found = []
    while True:
        try:
            found.append(watch.queue.get_nowait())
        except queue.Empty:
            return found


WORKER = "tcp://127.0.0.1:1"


def test_each_watch_hears_of_its_search_and_of_the_workers_it_follows():
    """Two searches of one client at once."""
    client = FakeClient()
    with Watch(client, "a") as one, Watch(client, "b") as other:
        one.follow([WORKER])
        one.follow([WORKER, "tcp://127.0.0.1:2"])
        other.follow(["tcp://127.0.0.1:2"])
        for search in "aabc":
            client.tell(STEPS, {"search": search})
        client.tell(WORKER, {"action": "remove-worker"})
        client.tell(WORKER, {"action": "something-else"})
        client.tell(WORKER, "a text")
        client.tell(STEPS, "a text")
        one.put("done", 1)
        gone = ("lost", WORKER)
        assert drain(one) == [("event", {"search": "a"}), ("event", {"search": "a"}), gone, ("done", 1)]
        assert drain(other) == [("event", {"search": "b"})]


@pytest.mark.parametrize("topic", [WORKER, STEPS])
def test_a_handler_of_the_user_goes_on_hearing(topic):
    """Before, while and after others watch; it is not called twice."""
    client, heard = FakeClient(), []
    client.subscribe_topic(topic, lambda event: heard.append(event[1]))
    for _ in range(2):
        client.tell(topic, "before")
        with Watch(client, "a") as one, Watch(client, "b") as other:
            one.follow([WORKER])
            other.follow([WORKER])
            client.tell(topic, "while")
    client.tell(topic, "after")
    assert heard == ["before", "while"] * 2 + ["after"]
    assert client.subscribed == {topic}


def test_nothing_stays_subscribed():
    """The last watch leaves; an event on its way then is heard by nobody."""
    client = FakeClient()
    with Watch(client, "a") as outer:
        with Watch(client, "b") as inner:
            inner.follow([WORKER])
            assert client.subscribed == {WORKER, STEPS}
        assert client.subscribed == {WORKER, STEPS}
    assert client.subscribed == set()
    client._event_handlers[STEPS]((0.0, {"search": "a"}))
    client._event_handlers[WORKER]((0.0, {"action": "remove-worker"}))
    assert drain(outer) == []
    client.status = "closed"
    with Watch(client, "c"):
        pass
    assert client.subscribed == {STEPS}  # a closed client can no longer unsubscribe


def test_data_that_is_replicated_meanwhile_ends_no_connection(client):
    """By anybody: what Dask logs then for all who listen to all workers cannot be sent."""
    with Watch(client, "a") as watch:
        watch.follow(workers_of(client))
        client.scatter([1], broadcast=True)
        assert client.submit(int, 3).result(timeout=PATIENCE_SECONDS) == 3
        assert client.status == "running"
    assert drain(watch) == []


def test_a_real_client(client):
    """Events that a task logs come in its order, from the first: the subscription is sent before the task."""

    def log():
        for i in range(50):
            get_worker().log_event(STEPS, {"search": "here", "i": i})

    with Watch(client, "here") as watch:
        task = client.submit(log, pure=False)
        assert [watch.queue.get(timeout=PATIENCE_SECONDS)[1]["i"] for _ in range(50)] == list(range(50))
        task.result(timeout=PATIENCE_SECONDS)
