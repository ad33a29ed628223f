"""How long a message takes from one worker to another: the exchange of partitioned traversals, with nothing else to do.

In: a client with two workers. Out: seconds of a message, and of each of its bytes.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

import numpy as np

from oocgraph.clients import workers_of
from oocgraph.cluster.worker import OocGraphPlugin, with_plugin

NUM_MESSAGES = 20
"""Small messages, one after the other."""

LARGE_BYTES = 8 << 20
"""A message whose bytes are what takes time; the shortest of `NUM_LARGE` counts."""

NUM_LARGE = 3


def measure_exchange(client: Any) -> tuple[float, float]:
    """Return seconds of a message and of a byte."""
    client.register_plugin(OocGraphPlugin())
    sender, receiver = sorted(workers_of(client))[:2]
    name = f"probe-{uuid.uuid4().hex}"

    def call(address: str, function: Any, *arguments: Any) -> Any:
        return client.submit(with_plugin, function, *arguments, workers=[address], pure=False).result()

    call(sender, leave, name, NUM_MESSAGES + NUM_LARGE)
    seconds = call(receiver, take, name, NUM_MESSAGES + NUM_LARGE, sender)
    small = float(np.median(seconds[:NUM_MESSAGES]))
    return small, max(0.0, min(seconds[NUM_MESSAGES:]) - small) / LARGE_BYTES


def leave(plugin: Any, name: str, count: int) -> None:
    """Leave messages for another worker: a task."""
    for i in range(count):
        plugin.exchange.put(name, i, 0, {1: np.zeros(8 if i < NUM_MESSAGES else LARGE_BYTES, np.uint8)})


def take(plugin: Any, name: str, count: int, sender: str) -> list[float]:
    """Ask for them, one by one: a task that returns the seconds of each."""
    seconds = []
    for i in range(count):
        began = time.perf_counter()
        plugin.exchange.get(name, i, 1, {sender: [0]})
        seconds.append(time.perf_counter() - began)
    return seconds
