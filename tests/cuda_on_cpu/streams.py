"""Streams whose work is done later, in an order that CUDA allows.

Copies, launches, records and waits are queued. They run when the host synchronises, or at any time before, one after the other; within a
stream in its order, between streams in any order that the waits allow. So a wait that is missing, or a pinned buffer that is filled again
too early, gives wrong results under some seed:

- 0: as late as possible, and only what the host waits for;
- 1: as early as possible: what is queued has run when the call returns;
- others: at random. Some streams run far ahead, others stay behind.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

LATE, EARLY = 0, 1
WEIGHTS = (1, 10, 1000)
"""How often a stream is chosen, relative to others."""
EAGERNESS = (0.0, 0.2, 0.8)
"""Share of calls after which the device does something."""


class Mark:
    """A place in a stream that an event stands for."""

    def __init__(self, stream: CpuStream) -> None:
        self.stream = stream
        self.seconds: float | None = None

    @property
    def is_done(self) -> bool:
        """Whether the stream has come here."""
        return self.seconds is not None

    def reach(self) -> None:
        """Note the time."""
        self.seconds = time.perf_counter()


class CpuEvent:
    """The place where it was recorded last."""

    def __init__(self, blocking: bool = False) -> None:
        self.mark: Mark | None = None
        self.blocking = blocking


class Operation(NamedTuple):
    """What a stream does; it may have to wait for a place in another one."""

    run: Callable[[], None]
    after: Mark | None = None

    @property
    def may_run(self) -> bool:
        """Whether what it waits for is done."""
        return self.after is None or self.after.is_done


class CpuStream:
    """A queue."""

    def __init__(self) -> None:
        self.queue: deque[Operation] = deque()

    def step(self) -> None:
        """Do the first operation."""
        self.queue.popleft().run()


class Immediate:
    """Every operation runs in the thread that asks for it, before the call returns."""

    def submit(self, stream: CpuStream, operation: Operation) -> None:
        """Run it."""
        operation.run()

    def finish(self, what: CpuStream | Mark) -> None:
        """Everything is done."""


class Deferred:
    """Every operation runs when the seed has it run, one at a time."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._streams: list[CpuStream] = []  # with work
        self._lock = threading.RLock()
        self._draw()

    def submit(self, stream: CpuStream, operation: Operation) -> None:
        """Queue it; others, or it, may run."""
        with self._lock:
            if not stream.queue:
                self._streams.append(stream)
            stream.queue.append(operation)
            if self._seed == EARLY:
                self.finish(stream)
            elif self._seed != LATE and self._random.random() < self._eagerness:
                for _ in range(self._random.randint(1, 8)):
                    self._step_any()

    def finish(self, what: CpuStream | Mark) -> None:
        """Run what must be done for a stream to be through, or a place to be reached, and what else the seed has run."""
        with self._lock:
            self._draw()
            while not (what.is_done if isinstance(what, Mark) else not what.queue):
                if self._seed in (LATE, EARLY):
                    self._step_needed(what)
                else:
                    self._step_any()

    def _draw(self) -> None:
        """Change the pace of all streams."""
        self._eagerness = self._random.choice(EAGERNESS)
        self._weight: dict[CpuStream, int] = {}

    def _step_needed(self, what: CpuStream | Mark) -> None:
        stream = what.stream if isinstance(what, Mark) else what
        while (after := stream.queue[0].after) is not None and not after.is_done:
            stream = after.stream
        self._step(stream)

    def _step_any(self) -> None:
        ready = [stream for stream in self._streams if stream.queue[0].may_run]
        if not ready:
            return
        weights = [self._weight.setdefault(stream, self._random.choice(WEIGHTS)) for stream in ready]
        self._step(self._random.choices(ready, weights)[0])

    def _step(self, stream: CpuStream) -> None:
        try:
            stream.step()
        finally:
            if not stream.queue:
                self._streams.remove(stream)
