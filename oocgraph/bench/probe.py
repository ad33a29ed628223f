"""What the workers of a cluster hold and send while they are measured, told by the workers themselves.

In: a client. Out: for each worker the peak of its host bytes, sampled in its process every 10 ms, and what Dask has sent from it to other
workers, each result as large as it is in memory.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from oocgraph.memory import PeakSampler


@dataclass(frozen=True, slots=True)
class WorkerProbe:
    """What a worker has told.

    Attributes
    ----------
    peak_host_bytes
        Peak of RssAnon + RssShmem of its process, interpreter and imports included.
    num_messages, transferred_bytes
        Answers to others that asked for results, and the bytes of those results.
    """

    peak_host_bytes: int
    num_messages: int
    transferred_bytes: int


class Probes:
    """Probes in all workers of a client, from entering the context to leaving it.

    Attributes
    ----------
    workers
        By address; of those that were there all the time.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._name = client, uuid.uuid4().hex
        self.workers: dict[str, WorkerProbe] = {}

    def __enter__(self) -> Self:
        self._client.run(start, self._name, on_error="ignore")  # whether workers can be used at all is told when they are
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client.status != "running":
            return
        told = self._client.run(stop, self._name, on_error="ignore")
        self.workers = {address: WorkerProbe(*figures) for address, figures in sorted(told.items()) if figures is not None}


_running: dict[str, tuple[PeakSampler, int, int]] = {}


def start(name: str, dask_worker: Any = None) -> None:
    """Begin to measure, in a worker."""
    _running[name] = PeakSampler().__enter__(), dask_worker.transfer_outgoing_count_total, dask_worker.transfer_outgoing_bytes_total


def stop(name: str, dask_worker: Any = None) -> tuple[int, int, int] | None:
    """Return the fields of `WorkerProbe`; None when this worker has been started again."""
    if name not in _running:
        return None
    sampler, num_messages, num_bytes = _running.pop(name)
    sampler.__exit__(None, None, None)
    return (
        sampler.peak_bytes,
        dask_worker.transfer_outgoing_count_total - num_messages,
        dask_worker.transfer_outgoing_bytes_total - num_bytes,
    )
