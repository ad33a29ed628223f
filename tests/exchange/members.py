"""One member of a group whose windows are in processes: ``python -m tests.exchange.members FOLDER NUMBER GROUP ROUNDS [options]``.

It checks every message that it takes, and leaves a line of JSON in its folder: what it has done, or why it has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path

import numpy as np

from oocgraph.errors import ClusterError
from oocgraph.exchange.shared_memory import MemoryAddress
from oocgraph.exchange.windows import Channel, Counters, Window, stamp_of


def sizes(seed, number, sender, receiver, largest):
    """Bytes of a message: as often none or few as many."""
    rng = random.Random(f"{seed} {number} {sender} {receiver}")
    return rng.choice([0, 1, 8, rng.randrange(4096), rng.randrange(largest)])


def message_of(seed, number, sender, receiver, largest):
    """Return a message, another for each number, sender and receiver."""
    size = sizes(seed, number, sender, receiver, largest)
    return np.arange(size, dtype=np.uint32).view(np.uint8)[:size] + np.uint8((7 * number + 3 * sender + receiver) % 251)


def leave(folder, name, found):
    """Write a file at once."""
    path = Path(folder) / name
    path.with_suffix(".new").write_text(json.dumps(found))
    path.with_suffix(".new").rename(path)


def others(folder, group):
    """Wait for the addresses of all."""
    found = []
    for q in range(group):
        path = Path(folder) / f"address-{q}"
        while not path.exists():
            time.sleep(0.002)
        found.append(MemoryAddress(*json.loads(path.read_text())))
    return found


def main():
    """Take part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name in ("number", "group", "rounds"):
        parser.add_argument(name, type=int)
    for name, default in {"largest": 100, "seed": 0, "hops": 1, "die": -1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("--delays", "--common", "--slow-puts"):
        parser.add_argument(name, type=float, default=0.0)
    parser.add_argument("--wait", type=float, default=30.0)
    asked = parser.parse_args()
    me, group, rng = asked.number, asked.group, random.Random(f"{asked.seed} {asked.number}")
    mine = Window.create(group)
    leave(asked.folder, f"address-{me}", mine.address)
    windows = [mine if q == me else Window.open(address, group) for q, address in enumerate(others(asked.folder, group))]
    leave(asked.folder, f"ready-{me}", os.getpid())
    done, together, counters, number = 0, [], Counters(), 0
    if asked.slow_puts:
        put_slowly(asked.slow_puts, rng)
    try:
        for hop in range(asked.hops):
            channel = Channel(me, windows, stamp_of(1, hop))
            mine.reset()
            together.append(channel.start(asked.wait))
            for _ in range(asked.rounds if together[-1] else 0):
                if rng.random() < asked.delays:
                    time.sleep(rng.random() * 0.003)
                if number == asked.die:
                    stop_within_a_put(channel, asked.folder)
                out = {q: message_of(asked.seed, number, me, q, asked.largest) for q in range(group) if q != me}
                is_common = asked.common > random.Random(f"{asked.seed} {number}").random()
                taken = channel.exchange([message_of(asked.seed, number, me, 0, asked.largest)]) if is_common else channel.exchange([], out)
                for s, got in enumerate(taken):
                    if s != me:
                        expected = message_of(asked.seed, number, s, 0 if is_common else me, asked.largest)
                        np.testing.assert_array_equal(got, expected)
                        done += 1
                number += 1
            counters = counters.plus(channel.counters)
        leave(asked.folder, f"found-{me}", {"messages": done, "together": together, **counters._asdict()})
    except ClusterError as error:
        leave(asked.folder, f"found-{me}", {"error": f"{type(error).__name__}: {error}", "messages": done, "ended": time.monotonic()})


def put_slowly(share, rng):
    """Hold up some of the puts of this process before they begin, so that others get messages meanwhile."""
    send = Channel._send

    def slow(channel, q, out):
        if rng.random() < share:
            time.sleep(rng.random() * 0.003)
        return send(channel, q, out)

    Channel._send = slow


def stop_within_a_put(channel, folder):
    """Lock a slot of the next member, write half of a piece, say so, and hang."""
    from oocgraph.compiled.windows import claim_word

    q = (channel.member - 1) % len(channel.windows)
    window = channel.windows[q]
    claim_word(window.length(channel.member, channel._sent[q] & 1), 0, 100)
    window.slot(channel.member, channel._sent[q] & 1)[:50] = 1
    leave(folder, f"hangs-{channel.member}", {})
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
