"""Workers that stay silent while their connections stay open: stopped, swapped out, or on a host that nothing reaches any more.

In: a Dask client, how long a worker may be silent. Out: the scheduler has removed a worker that was silent for longer, which
looks to those that wait for it as if it had been killed. Dask's own limit (``distributed.scheduler.worker-ttl``, five minutes)
compares times of day, which jump when a clock is set; here a heartbeat is new when the scheduler's note of it has changed, and
the time between two looks is counted for no more than it should be: a client that was itself stopped blames no worker.
"""

from __future__ import annotations

import logging
import time
import uuid
from types import TracebackType
from typing import Any, Self

logger = logging.getLogger(__name__)

LOOKS = 8
"""Looks within the time that a worker may be silent."""

MAX_INTERVAL_SECONDS = 2.0
"""Between two looks."""

RESTART_SECONDS = 10.0
"""How long the scheduler waits for a nanny to end a silent worker, before it removes the worker itself."""


class SilenceWatch:
    """Removes silent workers from a client's cluster as long as its ``with`` statement lasts.

    Parameters
    ----------
    client
        A `distributed.Client`; the looks are taken on its event loop.
    seconds
        How long a worker may be silent.
    """

    def __init__(self, client: Any, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._interval = min(MAX_INTERVAL_SECONDS, seconds / LOOKS)
        self._looked = time.monotonic()
        self._heard: dict[str, tuple[float, float]] = {}
        self._closed = False

    def __enter__(self) -> Self:
        self._looked = time.monotonic()
        self._client.loop.add_callback(self._wait)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closed = True

    def _wait(self) -> None:
        self._client.loop.call_later(self._interval, self._look)

    async def _look(self) -> None:
        """Look once, and arrange for the next look; only an open client has one."""
        if self._closed or self._client.status in ("closing", "closed"):
            return
        try:
            if self._client.status == "running":
                identity = await self._client.scheduler.identity(n_workers=-1)
                await self._remove(self.silent({address: info["last_seen"] for address, info in identity["workers"].items()}))
        except OSError as error:  # the scheduler has gone, which others tell
            logger.info("workers could not be watched: %s", error)
        self._wait()

    def silent(self, last_seen: dict[str, float]) -> list[str]:
        """Return the workers that have been silent for too long.

        Parameters
        ----------
        last_seen
            By address, the scheduler's time of the last heartbeat.
        """
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, 2 * self._interval), now
        heard = {}
        for address, seen in last_seen.items():
            before, silence = self._heard.get(address, (seen, 0.0))
            heard[address] = (seen, silence + passed if seen == before else 0.0)
        self._heard = heard
        return sorted(address for address, (_, silence) in heard.items() if silence > self._seconds)

    async def _remove(self, addresses: list[str]) -> None:
        """Have nannies end these workers and start others, and the scheduler remove those that have none."""
        if not addresses:
            return
        logger.warning(
            "no heartbeat of %s for %g s (oocgraph.silent-worker-timeout): removed from the cluster", ", ".join(addresses), self._seconds
        )
        await self._client.scheduler.restart_workers(
            workers=addresses, timeout=RESTART_SECONDS, wait_for_workers=False, on_error="return", stimulus_id=f"silent-{uuid.uuid4().hex}"
        )
