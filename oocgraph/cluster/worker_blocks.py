"""A worker's shares of the blocks of edges, and what is done in a step with one of them, whatever is computed.

In: a `SharesSpec`, and what all shares have found in the step before. Out: what a share has found.

- Workers of one host share the values of all vertices, and what is pending, as the threads of one process do: the first share makes the
  memory, and each works on the blocks that it has until nothing is pending anywhere, or for half a second.
- Otherwise every share knows of all vertices what was said in the steps before, so that any of them can go on for all.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, LeftError, StateLostError
from oocgraph.cluster.worker import Resident
from oocgraph.cluster.worker_steps import Hop, Steps, Taken
from oocgraph.engine.blocks import AGENDA_ARRAYS, BlockEngine, EdgeError, Work, clear
from oocgraph.exchange.shared_memory import MemberLostError, MemoryAddress, SharedMemory, carve
from oocgraph.exchange.windows import WindowClosedError
from oocgraph.kernels.blocks import Agenda, is_quiet
from oocgraph.kernels.relax import Loop, Values
from oocgraph.memory import Budget, device_bytes_read
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Array

SLICES = 4
"""What a share has found in a step, as often as a worker holds such: one is made, Dask keeps two, and one is on its way."""


class SharesSpec(GraphSpec, ABC):
    """What a worker loads: a frozen dataclass.

    Attributes
    ----------
    message : type
        Of what its shares say in a step.
    """

    __slots__ = ()
    message: ClassVar[type[Any]]

    @abstractmethod
    def load_kernels(self, store: CSRStore) -> None:
        """Bring compiled code into memory, before that is counted."""

    @abstractmethod
    def open_share(self, store: CSRStore, budget: Budget, number: int, *, threads: int, sharers: int, is_first: bool) -> BlockShare:
        """Charge the budget with a share, and open it; `is_first` of a worker. See `oocgraph.engine.blocks.BlockEngine`."""


class Found(NamedTuple):
    """What a share has found in a step.

    Attributes
    ----------
    slice
        For all shares; it has ``is_done``: whether there is nothing left to do, as far as the share knows.
    work
        None: there was nothing to do.
    """

    slice: Any
    work: Work | None


class SharedSlice(NamedTuple):
    """What a share says that has the values of all vertices in common with the others.

    Attributes
    ----------
    address
        Of the memory (`MemoryAddress`), from the first share in the first step of an epoch; else None.
    is_done
        Whether nothing is left to do.
    """

    address: Sequence[Any] | None
    is_done: bool


class BlockShare(ABC):
    """A share of the blocks, and what it knows.

    Attributes
    ----------
    engine : BlockEngine
    epoch, number : int
        Of the last step that it has taken.
    is_shared : bool
        Whether it shares memory with the others.
    loop : Loop
        That works in shared memory.
    slack : int
        See `oocgraph.kernels.blocks.Rules`.
    loads_all : bool
        See `BlockEngine.run`.
    """

    loop: Loop
    slack: int
    loads_all: bool

    def __init__(self, engine: BlockEngine) -> None:
        self.engine, self.epoch, self.number, self.lock, self.is_shared = engine, -1, -1, threading.Lock(), False
        self._memory: SharedMemory | None = None
        self._shared: tuple[Values, Agenda] | None = None

    def close(self) -> None:
        """Give back files and shared memory."""
        self.engine.close()
        self._leave()

    def _leave(self) -> None:
        """Give back shared memory."""
        if self._memory is not None:
            self._memory.close()
        self._memory = self._shared = None

    def meet(self, before: Sequence[Any]) -> Found:
        """Take the first step of an epoch in shared memory, which the first share makes; `before` as in `begin`.

        Raises
        ------
        BudgetError
            There is no memory.
        """
        self._leave()
        if self.engine.share[0]:
            return Found(SharedSlice(None, is_done=False), None)
        self._memory = SharedMemory.for_arrays(self._layout())
        values, agenda = self._map(self._memory)
        clear(agenda)
        self.engine.make_pending(agenda, *self.fill(values, before))
        return Found(SharedSlice(tuple(self._memory.address), is_done=False), None)

    def work(self, before: Sequence[SharedSlice], look: Callable[[], bool]) -> Found:
        """Take a later step in shared memory: work until nothing is pending in any share, or `look` returns True."""
        if self._shared is None:
            (address,) = (one.address for one in before if one.address is not None)
            self._memory = SharedMemory.open(MemoryAddress(*address))
            self._map(self._memory)
        assert self._shared is not None
        values, agenda = self._shared
        none = np.empty(0, np.int64), np.empty(0, np.int32)
        work = self.engine.run(
            self.loop, values, *none, schedule="async", slack=self.slack, loads_all=self.loads_all, agenda=agenda, look=look
        )
        return Found(SharedSlice(None, is_done=bool(is_quiet(agenda)) and self.is_complete(values)), work)

    def _layout(self) -> list[tuple[int, np.dtype[Any]]]:
        return [*self.engine.shared_arrays(self.engine.share[1]), *self.layout()]

    def _map(self, memory: SharedMemory) -> tuple[Values, Agenda]:
        arrays = carve(memory.data, self._layout())
        agenda = self.engine.shared_agenda(arrays[:AGENDA_ARRAYS], self.engine.share[0])
        self._shared = self.values_in(arrays[AGENDA_ARRAYS:]), agenda
        return self._shared

    @abstractmethod
    def layout(self) -> list[tuple[int, np.dtype[Any]]]:
        """Return sizes and dtypes of the arrays that all shares have in common."""

    @abstractmethod
    def values_in(self, arrays: Sequence[Array]) -> Values:
        """Return them as values to work on."""

    @abstractmethod
    def fill(self, values: Values, before: Sequence[Any]) -> tuple[Array, Array]:
        """Begin with such values; returns rows that are pending, and their buckets: (n,) int64, int32."""

    def is_complete(self, values: Values) -> bool:
        """Whether all is done when nothing is pending."""
        return True

    @abstractmethod
    def begin(self, before: Sequence[Any]) -> Found:
        """Take the first step of an epoch: `before` is what `table` of one share has returned, or nothing."""

    @property
    @abstractmethod
    def can_resume(self) -> bool:
        """Whether others could go on with `table`, if a worker were lost now."""

    @abstractmethod
    def go_on(self, before: Sequence[Any]) -> Found:
        """Take a step; `before` are the slices of all shares of the step before."""

    @abstractmethod
    def table(self) -> Any:
        """Return all that the others need to go on from the last step."""

    @abstractmethod
    def take_over(self, before: Any) -> None:
        """Take what was known before the worker's shares were loaded again."""


@dataclass(slots=True)
class HeldShares(Resident):
    """The shares of one lease on one worker."""

    shares: dict[int, BlockShare]
    budget: Budget
    ledger: WorkerLedger

    def take_over(self, before: HeldShares) -> None:
        """Take what shares have found."""
        for p, share in before.shares.items():
            if share.number >= 0:
                self.shares[p].take_over(share)
                self.shares[p].number = share.number

    def close(self) -> None:
        """Give back everything; waits for the steps that run."""
        for share in self.shares.values():
            with share.lock:
                share.close()
                share.epoch = 2**62
        self.ledger.close(self.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSteps(Steps):
    """The steps of a run.

    Attributes
    ----------
    message : type
        See `Steps`; `SharedSlice`: shares have memory in common.
    """

    message: type[Any]  # type: ignore[misc]

    def take(
        self, plugin: Any, hop: Hop, p: int, number: int, before: Sequence[Any], own: Mapping[int, Array], *, is_first: bool
    ) -> Taken:  # fmt: skip
        """Take what others have found, work on a share of the blocks, and say what that has found.

        Raises
        ------
        CorruptStoreError
            The store cannot be read.
        """
        share: BlockShare = plugin.shares_of(hop.lease, p).shares[p]
        with share.lock:
            if hop.epoch < share.epoch:
                raise LeftError(f"{hop.name} has begun again")
            plugin.at("receive", number, p)
            device, error = device_bytes_read(), None
            share.epoch = hop.epoch
            plugin.at("compute", number, p)
            try:
                share.is_shared = self.message is SharedSlice
                if share.is_shared:
                    found = share.meet(before) if is_first else self._work(plugin, hop, p, number, share, before)
                else:
                    found = share.begin(before) if is_first else share.go_on(before)
            except EdgeError as wrong:
                found, error = Found(None, None), [wrong.why, wrong.source, wrong.target]
            share.number = number
        plugin.at("transfer", number, p)
        return Taken(found.slice, {
            "error": error, "is_done": error is None and bool(found.slice.is_done),
            "work": None if found.work is None else list(found.work), "device_bytes": device_bytes_read() - device,
        })  # fmt: skip

    def _work(self, plugin: Any, hop: Hop, p: int, number: int, share: BlockShare, before: Sequence[SharedSlice]) -> Found:
        """Work in shared memory until the hop's time is over, or a worker is lost."""
        deadline, lost = time.perf_counter() + hop.seconds, list[Exception]()

        def look() -> bool:
            plugin.at("work", number, p)
            try:
                plugin.windows.check(hop.lease)
            except (WindowClosedError, MemberLostError) as error:
                lost.append(error)
            return bool(lost) or time.perf_counter() >= deadline

        found = share.work(before, look)
        if lost:
            raise lost[0]
        return found

    def is_over(self, messages: Sequence[Any]) -> bool:
        """Whether nothing is left to do, or a share has found an edge that makes no sense."""
        return any(one is None for one in messages) or all(one.is_done for one in messages)


def acquire(plugin: Any, lease: str, spec: SharesSpec, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Load shares on this worker, if they are not here already; edges are read when they are needed.

    Raises
    ------
    BudgetError
        They do not fit; the message names the worker.
    """
    there = plugin.keep_shares(lease, spec, numbers, partial(_load, plugin, spec))
    return [
        {
            "partition": p, "worker": plugin.worker.address, "memory_budget": there.budget.limit_bytes,
            "num_blocks": there.shares[p].engine.num_blocks,
        }
        for p in numbers
    ]  # fmt: skip


def _load(plugin: Any, spec: SharesSpec, numbers: Sequence[int]) -> HeldShares:
    store = open_graph(spec.url, check_pages=spec.check_pages)
    threads = spec.threads_on(plugin.worker)
    spec.load_kernels(store)
    shares: dict[int, BlockShare] = {}
    with plugin.ledger.opening(spec.requested_memory) as budget:
        try:
            for i, p in enumerate(numbers):
                shares[p] = spec.open_share(store, budget, p, threads=threads, sharers=len(numbers) - i, is_first=i == 0)
        except BaseException:
            for share in shares.values():
                share.close()
            raise
    return HeldShares(shares, budget, plugin.ledger)


def held_number(plugin: Any, lease: str) -> tuple[int, int]:
    """Return the last step that a share on this worker has taken, and the share, if others can go on from there; -1: none."""
    there: HeldShares | None = plugin.resident.get(lease)
    shares = {} if there is None else there.shares
    return max(((share.number, p) for p, share in shares.items() if share.can_resume), default=(-1, -1))


def table(plugin: Any, lease: str, p: int) -> Any:
    """Return what a share knows.

    Raises
    ------
    StateLostError
        The worker does not hold the share.
    """
    share: BlockShare = plugin.shares_of(lease, p).shares[p]
    with share.lock:
        if share.number < 0:
            raise StateLostError(f"worker {plugin.worker.address} has taken no step")
        return share.table()
