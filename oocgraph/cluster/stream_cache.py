"""Edges that products and ranks keep on a worker from one call to the next, under the lease of the runtime that they were called with.

In: what an `EdgeStream` takes, and a lease. Out: the stream, as the call before has left it, or a new one. What it holds is in the books of
the worker for as long as it is here, and is given back when the lease is released, or earlier: when another computation finds no room.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.memory import Budget
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.store.graph import CSRStore


@dataclass(slots=True)
class KeptStream:
    """A stream, what it holds, and whether a computation is using it.

    Attributes
    ----------
    num_bytes
        In the books.
    """

    stream: EdgeStream
    num_bytes: int
    in_use: bool = True
    has_left: bool = False


class StreamCache:
    """The streams that are kept on one worker. All it does is done under the lock of the ledger."""

    def __init__(self, ledger: WorkerLedger) -> None:
        self._ledger = ledger
        self._kept: dict[tuple[str, Any], KeptStream] = {}
        ledger.add(self.reserved_bytes)
        ledger.reclaim = self.give_back

    def reserved_bytes(self) -> int:
        """Bytes of all streams."""
        return sum(one.num_bytes for one in list(self._kept.values()))

    def leases(self) -> set[str]:
        """Those that streams are kept for."""
        return {lease for lease, _ in list(self._kept)}

    def inventory(self) -> list[tuple[str, int, int]]:
        """Of each stream its lease, the bytes that it holds, and what it has requested so far; for tests and messages."""
        return [(lease, one.num_bytes, one.stream.bytes_requested) for (lease, _), one in list(self._kept.items())]

    def take(self, lease: str | None, store: CSRStore, budget: Budget, **options: Any) -> EdgeStream:
        """Return a stream for one computation, until it is put back; without a lease it is one that nothing else uses.

        Parameters
        ----------
        budget
            Opened by the ledger (`WorkerLedger.opening`), which is being held. It is charged where the stream is not kept.
        **options
            As for `EdgeStream`; `keep_edges` is true of what is kept.

        Raises
        ------
        BudgetError
            The pieces in work do not fit.
        """
        key = (lease or "", _key(options))
        if lease is None or (key in self._kept and self._kept[key].in_use):
            return EdgeStream(store, budget, **options)
        if key not in self._kept:
            before = dict(budget.reservations)
            stream = EdgeStream(store, budget, **{**options, "keep_edges": True})
            num_bytes = budget.reserved_bytes - sum(before.values())
            budget.reservations = before
            budget.baseline_bytes += num_bytes
            self._kept[key] = KeptStream(stream, num_bytes)
        self._kept[key].in_use = True
        return self._kept[key].stream

    def put_back(self, stream: EdgeStream) -> None:
        """Keep a stream for the next computation, if it was taken under a lease that has not left."""
        with self._ledger.lock:
            for key, one in list(self._kept.items()):
                if one.stream is stream:
                    del self._kept[key]
                    if not one.has_left:
                        one.in_use = False
                        self._kept[key] = one  # as the last that was used

    @contextmanager
    def putting_back(self) -> Iterator[list[EdgeStream]]:
        """Put back the streams that are in the list when the context ends by an error."""
        taken: list[EdgeStream] = []
        try:
            yield taken
        except BaseException:
            for stream in taken:
                self.put_back(stream)
            raise

    def release(self, lease: str) -> None:
        """Drop the streams of a lease; one that is in use, when it is put back."""
        with self._ledger.lock:
            for key, one in list(self._kept.items()):
                if key[0] == lease:
                    one.has_left = True
                    if not one.in_use:
                        del self._kept[key]

    def give_back(self, num_bytes: int) -> int:
        """Drop streams that are not in use, the least recently used first, until so many bytes are free; returns how many."""
        freed = 0
        with self._ledger.lock:
            for key, one in list(self._kept.items()):
                if freed < num_bytes and not one.in_use:
                    del self._kept[key]
                    freed += one.num_bytes
        return freed


def _key(options: dict[str, Any]) -> tuple[Any, ...]:
    return *(options[name] for name in ("transpose", "column", "threads", "entries")), options.get("whole_rows", False)
