"""Peak memory of a cluster's workers and the bytes that they send, sampled by the workers themselves while they are measured.

In: a client. Out: for each worker the peak of its host bytes, sampled in its process every 10 ms, and the bytes that Dask has sent from it
to other workers, each result as large as it is in memory.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from oocgraph.memory import PeakSampler


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """One worker, from the start of its sampler to the end.

    Attributes
    ----------
    peak_host_bytes
        Peak of RssAnon + RssShmem of its process, interpreter and imports included.
    transferred_bytes
        Bytes of the results that others asked it for.
    """

    peak_host_bytes: int
    transferred_bytes: int


class WorkerSamplers:
    """Samplers in all workers of a client, from entering the context to leaving it.

    Attributes
    ----------
    workers
        `WorkerSample` by address; of those workers that were there all the time.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._name = client, uuid.uuid4().hex
        self.workers: dict[str, WorkerSample] = {}

    def __enter__(self) -> Self:
        self._client.run(start, self._name, on_error="ignore")  # the benchmark itself reports workers that cannot be used
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client.status == "running":
            samples = self._client.run(stop, self._name, on_error="ignore")
            self.workers = {address: WorkerSample(*sample) for address, sample in sorted(samples.items()) if sample is not None}


_running: dict[str, tuple[PeakSampler, int]] = {}


def start(name: str, dask_worker: Any = None) -> None:
    """Start the sampler `name` in a worker."""
    _running[name] = PeakSampler().__enter__(), dask_worker.transfer_outgoing_bytes_total


def stop(name: str, dask_worker: Any = None) -> tuple[int, int] | None:
    """Return the fields of `WorkerSample`; None when this worker has been restarted."""
    if name not in _running:
        return None
    sampler, before = _running.pop(name)
    sampler.__exit__(None, None, None)
    return sampler.peak_bytes, dask_worker.transfer_outgoing_bytes_total - before
