"""The windows of one worker: memory into which workers of the same host put messages for its partitions.

In: a lease, and the partitions that the worker holds for it. Out: addresses, which the client passes to all members, and a `Channel` for
each hop of a partition. See `oocgraph.exchange.windows`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import GraphSpec, StateLostError
from oocgraph.compiled.windows import publish_word, read_word
from oocgraph.exchange.shared_memory import MemberLostError, MemoryAddress, began_at
from oocgraph.exchange.windows import (
    LOOK_SECONDS,
    Channel,
    Window,
    WindowClosedError,
    load_window_kernels,
    stamp_of,
    window_bytes,
)


class Group(NamedTuple):
    """The members of a placement, as every one of them is told.

    Attributes
    ----------
    generation
        How often partitions have been placed; windows are made anew each time.
    run
        Number of the program, or of its epoch, among all of the placement.
    members
        Windows, by partition.
    """

    generation: int
    run: int
    members: tuple[MemoryAddress, ...]


class MadeWindow(NamedTuple):
    """The window of a partition; None where the worker has no memory for it, and why; and threads of the worker."""

    address: MemoryAddress | None
    why: str
    num_threads: int


@dataclass(slots=True)
class _Held:
    """The windows of one lease."""

    generation: int
    own: dict[int, Window]
    num_members: int
    others: dict[MemoryAddress, Window] = field(default_factory=dict)
    user: str = ""
    checked: float = 0.0

    @property
    def num_bytes(self) -> int:
        return len(self.own) * window_bytes(self.num_members)


class WorkerWindows:
    """All windows of one worker, and their account in its ledger."""

    def __init__(self, ledger: WorkerLedger) -> None:
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        ledger.add(self.reserved_bytes)

    def reserved_bytes(self) -> int:
        """Bytes of the windows that are here, and of slots in those of others."""
        return sum(one.num_bytes for one in list(self._held.values()))

    def make(self, lease: str, generation: int, partitions: Iterable[int], num_members: int) -> dict[int, MemoryAddress]:
        """Make windows for some partitions, in place of those of an earlier generation.

        Raises
        ------
        OSError
            There is no memory for them.
        """
        load_window_kernels()
        with self._lock:
            there = self._held.get(lease)
            if there is None or there.generation != generation:
                self._drop(lease)
                there = self._held[lease] = _Held(generation, {}, num_members)
            for p in partitions:
                if p not in there.own:
                    there.own[p] = Window.create(num_members)
            return {p: there.own[p].address for p in partitions}

    def channel(self, lease: str, name: str, group: Group, partition: int, hop: int) -> Channel:
        """Return the channel of a partition in a hop of the program with a name.

        Raises
        ------
        StateLostError
            The windows are not here, or a member's process is gone.
        """
        with self._lock:
            there = self._held.get(lease)
            if there is None or there.generation != group.generation or partition not in there.own:
                raise StateLostError(f"the windows of partition {partition} are not here any more")
            there.user = name
            windows = [there.own.get(p) or self._open(there, address) for p, address in enumerate(group.members)]
        return Channel(partition, windows, stamp_of(group.run, hop))

    def _open(self, there: _Held, address: MemoryAddress) -> Window:
        if address not in there.others:
            try:
                there.others[address] = Window.open(address, there.num_members)
            except MemberLostError as error:
                raise StateLostError(str(error)) from error
            except OSError as error:
                raise StateLostError(f"the memory of process {address.pid} cannot be mapped ({error.strerror})") from error
        return there.others[address]

    def abort(self, name: str) -> None:
        """End the waiting of the hops of a program; those of the next one may wait again."""
        with self._lock:
            for there in self._held.values():
                if there.user == name:
                    _abort(there)

    def check(self, lease: str) -> None:
        """See whether all others of a lease are alive, for who does not wait in a channel.

        Raises
        ------
        WindowClosedError
            The program has been told to end.
        MemberLostError
            A member's process is gone.
        """
        there = self._held.get(lease)
        if there is None or any(read_word(window.abort) for window in there.own.values()):
            raise WindowClosedError("the program has been told to end")
        if time.monotonic() >= there.checked + LOOK_SECONDS:
            there.checked = time.monotonic()
            for address in there.others:
                if began_at(address.pid) != address.began:
                    raise MemberLostError(f"process {address.pid} is gone")

    def release(self, lease: str) -> None:
        """Give back the windows of a lease; what still waits ends."""
        with self._lock:
            self._drop(lease)

    def _drop(self, lease: str) -> None:
        there = self._held.pop(lease, None)
        if there is not None:
            _abort(there)
            for window in there.own.values():
                window.close()

    def leases(self) -> list[str]:
        """Names of the leases that have windows here."""
        return sorted(self._held)


def load_parts(
    plugin: Any, load: Callable[..., list[dict[str, Any]]], lease: str, spec: GraphSpec, partitions: Sequence[int], generation: int
) -> tuple[list[dict[str, Any]], list[MadeWindow]]:  # fmt: skip
    """Load partitions on this worker, and make windows for them; see `oocgraph.cluster.placement.Placement`."""
    num_threads, made, why = int(plugin.worker.state.nthreads), dict[int, MemoryAddress](), ""
    plugin.check_lease(lease)
    if spec.settings.exchange != "messages":
        try:
            made = plugin.windows.make(lease, generation, partitions, spec.num_partitions)
        except OSError as error:
            why = f"{window_bytes(spec.num_partitions) / 2**20:.0f} MiB: {error.strerror}"
    try:
        metrics = load(plugin, lease, spec, partitions)
    except BaseException:
        plugin.windows.release(lease)
        raise
    return metrics, [MadeWindow(made.get(p), why, num_threads) for p in partitions]


def _abort(there: _Held) -> None:
    for window in there.own.values():
        publish_word(window.abort, 1)
