"""One account of a worker's memory: what searches, parts of traversals, partitionings and products have reserved, each knowing of all.

In: what a worker may hold, and reservations. Out: a `Budget` whose baseline contains what others have reserved, touched or not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from oocgraph.errors import BudgetError
from oocgraph.memory import Budget, bytes_before, default_budget_bytes, effective_budget_bytes, format_bytes, host_bytes, mapped_bytes

MARGIN = 0.05
"""Budget of a worker below the share of its memory at which Dask begins to spill results, or ends the worker."""

SPILL_SHARE = 0.7
"""That share where Dask's configuration does not name one."""

TERMINATE_SHARE = 0.95
"""Share of its memory at which a nanny ends a worker, where the configuration does not name one."""


class WorkerLedger:
    """The memory of one worker.

    Parameters
    ----------
    worker
        Dask's.

    Attributes
    ----------
    lock
        Held while a reservation is planned, until it is reserved.
    reclaim
        Called with the bytes that are missing before a reservation is refused; see `Budget`.
    """

    reclaim: Callable[[int], int] | None = None

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self.lock = threading.RLock()
        self._accounts: dict[int, Callable[[], int]] = {}
        self._baseline = 0

    def add(self, reserved: Callable[[], int]) -> None:
        """Open an account that says itself how many bytes are reserved in it."""
        self._accounts[id(reserved)] = reserved

    @property
    def reserved_bytes(self) -> int:
        """Bytes reserved in all accounts."""
        return sum(reserved() for reserved in list(self._accounts.values()))

    @property
    def baseline_bytes(self) -> int:
        """Bytes of the process beyond all reservations.

        Never falls while anything is reserved: memory that is reserved but not yet in use would look like memory given back.
        """
        with self.lock:
            reserved = self.reserved_bytes
            here = host_bytes()
            self._baseline = max(self._baseline, here - reserved) if reserved else here
            return self._baseline

    def limit_bytes(self, requested: str | int | None) -> int:
        """Bytes that the worker may hold in all."""
        return worker_limit_bytes(self._worker, requested)

    def remedy(self) -> str:
        """Return the end of a refusal: what else helps than a larger budget, and how large one can be here."""
        limit, found = self._worker.memory_manager.memory_limit, "or use more workers, or more memory for each"
        if not limit:
            return found
        most = format_bytes(worker_limit_bytes(self._worker, None))
        return f"{found} (of the {format_bytes(limit)} that Dask gives this one, memory_limit, a budget has {most} at the most)"

    @property
    def untouched_bytes(self) -> int:
        """Bytes that are reserved and that the process does not hold yet."""
        with self.lock:
            reserved, here = self.reserved_bytes, host_bytes()
            self._baseline = self._baseline if reserved else here
            return max(0, self._baseline + reserved - here)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Add the worker's address to a BudgetError."""
        try:
            yield
        except BudgetError as error:
            raise BudgetError(f"worker {self._worker.address}: {error}; {self.remedy()}") from error

    @contextmanager
    def opening(self, requested: str | int | None) -> Iterator[Budget]:
        """Yield a budget beside all that is reserved; what is reserved with it inside stays in the books until `close`."""
        with self.lock:
            limit = self.limit_bytes(requested)
            held = bytes_before(limit)
            budget = Budget(limit, baseline_bytes=self.untouched_bytes + held, reclaim=self.reclaim)
            self.note(budget)
            try:
                yield budget
            except BaseException:
                self.close(budget)
                raise

    def note(self, budget: Budget) -> None:
        """Keep in the books what is reserved with a budget, until `close`."""
        self._accounts[id(budget)] = lambda: budget.reserved_bytes

    def close(self, budget: Budget) -> None:
        """Give back what was reserved with a budget."""
        self._accounts.pop(id(budget), None)


def worker_limit_bytes(worker: Any, requested: str | int | None) -> int:
    """Bytes that a worker may hold in all: what was asked for, below the share of its memory at which Dask begins to spill results.

    A nanny counts the pages of libraries that the worker has mapped, too (95 MiB with Python 3.11, 145 with 3.13): beside them the budget
    stays below the share at which it ends the worker.
    """
    import dask.config

    limit = worker.memory_manager.memory_limit
    if not limit:
        return effective_budget_bytes(requested) if requested is not None else default_budget_bytes()
    spill = dask.config.get("distributed.worker.memory.spill", SPILL_SHARE)
    share = (spill if spill else SPILL_SHARE) - MARGIN
    most = int(share * limit)
    terminate = dask.config.get("distributed.worker.memory.terminate", TERMINATE_SHARE)
    if terminate and getattr(worker, "nanny", None):
        most = max(0, min(most, int((terminate - MARGIN) * limit) - mapped_bytes()))
    return most if requested is None else min(most, effective_budget_bytes(requested))
