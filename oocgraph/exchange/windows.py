"""Messages between the members of a group on one host: each puts them into its receivers' memory, and nobody asks anybody.

In: buffers for every other member, round by round. Out: those of all others. A *window* is memory of one receiver that the others map
(`oocgraph.exchange.shared_memory`). In it every sender has two slots, in turn; the line of a slot has four words:

- ``length``: 0, or the bytes in the slot and 1. A sender sets it from 0 in one step: that notifies, says the size and locks the slot. If it
  is not 0 the piece before has not been taken yet: the sender goes on with the next receiver and comes back.
- ``flag``: what is in the slot is complete: run, hop and number of the piece. The receiver sets ``length`` to 0 when it has taken it.
- ``total``: bytes of the message that the piece belongs to.
- ``got``: the receiver has taken this piece from the sender's outbox itself.

A message that is longer than a slot goes in pieces. A member sends to the one before it first, and looks first for the one behind it; but
it takes whatever has come. A round ends when a message of every other member is taken, empty ones too: there is no barrier.

Two measures are for groups out of balance. They are off where they cannot pay: in a pair, where a sender has one receiver.

- *Fine pieces*: a message goes in up to 64 pieces, so that its receiver copies one while the next is written, if the one before it to the
  same receiver was larger than 1.5 times the mean of its sender's. (The number of edges behind a pair, the paper's second condition, is not
  known to a sender here: who receives a frontier decides what it does with it.)
- *Get*: a sender writes what all others receive to an outbox first. A member that has sent everything takes the message of one that has not
  sent to it from there: it locks the slot, and goes on to the next sender if that is locked, for then the message is coming.

Pu Pang et al., "SHMEMGraph: Efficient and Balanced Graph Processing Using One-sided Communication", CLUSTER 2018: put with a length
array, unordered processing, fine-grained data service, get.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.compiled.shared_work import WORDS
from oocgraph.compiled.windows import ABORTED, LATE, await_word, claim_word, publish_word, read_word
from oocgraph.errors import ClusterError
from oocgraph.exchange.shared_memory import MemberLostError, MemoryAddress, SharedMemory, began_at
from oocgraph.exchange.shared_work import Board, load_board_kernels
from oocgraph.types import Array

LINE = 8
"""Words of a cache line: no two processes write to one."""

MOST_SLOT_BYTES = 1 << 20
LEAST_SLOT_BYTES = 1 << 16
ALL_SLOTS_BYTES = 4 << 20
"""Bytes of a slot at most and at least; of one slot for each sender. With 1 MiB a copy takes 60 us, the words 1 us."""

FINE_RATIO = 1.5
"""Of the mean of a sender's messages: one that is larger goes in fine pieces."""

FINE_PIECES = 64
"""Of such a message at most; none is smaller than `LEAST_SLOT_BYTES`."""

LEAST_BALANCED = 3
"""Members of a group at least, for what is done against imbalance."""

LOCKED = -1
"""Length of a slot whose receiver gets the piece itself."""

IDLE_SECONDS = 0.001
"""Time after which a member that waits, and could take over work, looks for some again."""

LOOK_SECONDS = 0.1
"""Time after which a member that waits looks whether the others are alive."""

HOP_BITS, PIECE_BITS = 20, 22
"""Of a stamp; the rest is the number of the run."""


_NOTHING: Mapping[int, Array] = {}


class WindowClosedError(ClusterError):
    """The group has been told to end."""


def slot_bytes_of(num_members: int) -> int:
    """Bytes of a slot."""
    return min(MOST_SLOT_BYTES, max(LEAST_SLOT_BYTES, ALL_SLOTS_BYTES // num_members // mmap.PAGESIZE * mmap.PAGESIZE))


def window_bytes(num_members: int) -> int:
    """Bytes that a member of a group maps and touches: its own window, its slots in the others', and their outboxes."""
    slots = 2 * 2 * (num_members - 1) + (num_members if num_members >= LEAST_BALANCED else 0)
    return _header_bytes(num_members) + slots * slot_bytes_of(num_members)


def _header_bytes(num_members: int) -> int:
    words = _board_word(num_members) + WORDS
    return -(-words * 8 // mmap.PAGESIZE) * mmap.PAGESIZE


def _board_word(num_members: int) -> int:
    return (4 + 3 * num_members) * LINE


class Window:
    """The memory of one receiver; `create` makes it, `open` maps that of another process.

    Attributes
    ----------
    busy : Lock
        Held by the hop of its owner that uses it.
    board : Board
        Work of its owner that others may take over.
    """

    def __init__(self, memory: SharedMemory, num_members: int) -> None:
        self._memory, self._num_members, self.busy = memory, num_members, threading.Lock()
        self.slot_bytes = slot_bytes_of(num_members)
        self._first = int(memory.data.ctypes.data)
        self._words: Array = memory.data[: _header_bytes(num_members)].view(np.int64)
        board = _board_word(num_members)
        self.board = Board(self._words[board : board + WORDS])

    @property
    def address(self) -> MemoryAddress:
        """Where it is."""
        return self._memory.address

    @classmethod
    def create(cls, num_members: int) -> Window:
        """Make one; OSError: there is no memory for it."""
        slots = 2 * num_members + (num_members >= LEAST_BALANCED)
        return cls(SharedMemory.create(_header_bytes(num_members) + slots * slot_bytes_of(num_members)), num_members)

    @classmethod
    def open(cls, address: MemoryAddress, num_members: int) -> Window:
        """Map the window of another process: see `SharedMemory.open`."""
        return cls(SharedMemory.open(address), num_members)

    def close(self) -> None:
        """Give back the file; memory that is still used stays until it is not."""
        self._memory.close()

    @property
    def abort(self) -> int:
        """Address of the word that ends all waiting at this window."""
        return self._line(1)

    @property
    def decision(self) -> int:
        """Address of the word that says whether a hop is taken together."""
        return self._line(2)

    @property
    def ready(self) -> int:
        """Address of the words of the outbox: stamp of the round whose message is complete there, its bytes."""
        return self._line(3)

    def started(self, member: int) -> int:
        """Address of the word by which a member says that it has begun a hop."""
        return self._line(4 + member)

    def length(self, sender: int, slot: int) -> int:
        """Address of the words of a slot: length, flag, total, got."""
        return self._line(4 + self._num_members + 2 * sender + slot)

    @property
    def outbox(self) -> Array:
        """Memory of what its owner has for all others: (slot_bytes,) uint8; there is none in a pair."""
        begin = _header_bytes(self._num_members) + 2 * self._num_members * self.slot_bytes
        return self._memory.data[begin : begin + self.slot_bytes]

    def slot(self, sender: int, slot: int) -> Array:
        """Memory of a slot: (slot_bytes,) uint8."""
        begin = _header_bytes(self._num_members) + (2 * sender + slot) * self.slot_bytes
        return self._memory.data[begin : begin + self.slot_bytes]

    def reset(self) -> None:
        """Forget what a hop before has left: called by the owner, before it says that it has begun the next."""
        self._words[LINE : 2 * LINE] = 0
        self._words[3 * LINE : 4 * LINE] = 0
        self._words[(4 + self._num_members) * LINE :] = 0

    def _line(self, number: int) -> int:
        return self._first + number * LINE * 8


def load_window_kernels() -> None:
    """Bring compiled code into memory, before that is counted."""
    words = np.zeros(1, np.int64)
    load_kernels([(await_word, (words, words, 0, 0, 0)), (claim_word, (0, 0, 0)), (publish_word, (0, 0)), (read_word, (0,))])
    load_board_kernels()


@dataclass(slots=True)
class _Outgoing:
    """A message on its way to one receiver."""

    buffers: Sequence[Array]
    total: int
    piece_bytes: int
    sent: int = 0
    is_done: bool = False


@dataclass(slots=True)
class _Incoming:
    """A message on its way from one sender."""

    message: Array | None = None
    got: int = 0
    is_coming: bool = False
    is_done: bool = False


class Counters(NamedTuple):
    """What members have done.

    Attributes
    ----------
    puts, put_bytes
        Pieces put into windows, and their bytes.
    gets
        Messages taken from their senders' outboxes.
    fine_pieces
        Pieces of messages that went in fine pieces.
    failed_claims
        Times that a slot was not free, or its sender was quicker than a get.
    waits, wait_seconds
        Times that a member waited for others, and how long.
    taken, taken_pieces
        Active vertices of members that others have worked on, and the pieces that these were in.
    helped_seconds
        That members worked on these while they had nothing else to do.
    """

    puts: int = 0
    put_bytes: int = 0
    gets: int = 0
    fine_pieces: int = 0
    failed_claims: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    taken: int = 0
    taken_pieces: int = 0
    helped_seconds: float = 0.0

    def plus(self, other: Counters) -> Counters:
        """Return the sums."""
        return Counters._make(one + more for one, more in zip(self, other, strict=True))


@dataclass(slots=True)
class Channel:
    """What one member of a group exchanges with the others in one hop.

    Attributes
    ----------
    member : int
        Its number; its own window is that of this number.
    windows : list of Window
        Of all members.
    stamp : int
        Of the hop, from `stamp_of`; never used before in these windows.
    counters : Counters
    """

    member: int
    windows: Sequence[Window]
    stamp: int
    counters: Counters = field(default_factory=Counters)
    _sent: list[int] = field(default_factory=list)
    _taken: list[int] = field(default_factory=list)
    _totals: list[int] = field(default_factory=list)
    _round: int = 0

    def start(self, seconds: float) -> bool:
        """Say that this member has begun the hop, and wait for the others; returns whether all have begun in time: all are told the same.

        `Window.reset` of the member's own window comes before.

        Raises
        ------
        WindowClosedError
            The group has been told to end.
        MemberLostError
            A member is gone.
        """
        n = len(self.windows)
        self._sent, self._taken, self._totals, self._round = [0] * n, [0] * n, [0] * n, 0
        for q in self._others():
            publish_word(self.windows[q].started(self.member), self.stamp)
        mine, decision = self.windows[self.member], self.windows[0].decision
        deadline = time.monotonic() + seconds
        for q in self._others():
            addresses, values = [mine.started(q), decision], [self.stamp, self.stamp]  # the decision may be made: not together
            if self._await(addresses, values, deadline) != 0:
                return self._decide(self.stamp) == self.stamp + 1
        return self._decide(self.stamp + 1) == self.stamp + 1

    def _decide(self, value: int) -> int:
        """Return what is decided for this hop; if nothing is yet, what is given."""
        place = self.windows[0].decision
        while (found := read_word(place)) not in (self.stamp, self.stamp + 1):
            claim_word(place, found, value)
        return int(found)

    @property
    def round(self) -> int:
        """A number of the exchange that is going on; before it, of the one before."""
        return self.stamp + self._round

    def exchange(
        self, common: Sequence[Array], own: Mapping[int, Array] = _NOTHING, *, idle: Callable[[int], bool] | None = None
    ) -> list[Array]:  # fmt: skip
        """Put a message for each other member, and take one of each.

        Parameters
        ----------
        common
            Buffers that all others receive, (n,) uint8 each.
        own
            What follows these for some of the receivers, (n,) uint8.
        idle
            Called, when all is sent, with the number of a member whose message has not come: takes over a piece of its work, and returns
            whether there was one.

        Returns
        -------
        list of (n,) uint8
            By sender, in memory of their own; the member's own is empty.

        Raises
        ------
        WindowClosedError
            The group has been told to end.
        MemberLostError
            A member is gone.
        """
        self._round += 1
        outgoing, incoming = self._outgoing(common, own), {q: _Incoming() for q in reversed(self._others())}
        if not own:
            self._offer(common)
        idle_since: float | None = None
        while True:
            moved = [self._send(q, one) for q, one in outgoing.items() if not one.is_done]
            moved += [self._take(s, one) for s, one in incoming.items() if not one.is_done]
            if any(moved):
                idle_since = None
            else:
                to, of = [q for q, out in outgoing.items() if not out.is_done], [s for s, one in incoming.items() if not one.is_done]
                if not to and not of:
                    break
                if to or not (any([self._get(s, incoming[s]) for s in of]) or self._helps(of, idle)):
                    gets = [s for s in of if not to and not incoming[s].is_coming]
                    idle_since = self._wait(to, of, gets, seconds=None if to or idle is None else IDLE_SECONDS, since=idle_since)
                else:
                    idle_since = None
        none = np.empty(0, np.uint8)
        return [none if s == self.member else _message(incoming[s]) for s in range(len(self.windows))]

    def _outgoing(self, common: Sequence[Array], own: Mapping[int, Array]) -> dict[int, _Outgoing]:
        """Prepare the messages of a round, and note their sizes for the next one."""
        before, mean = self._totals, sum(self._totals) / max(1, len(self.windows) - 1)
        num_bytes, most = sum(one.size for one in common), self.windows[self.member].slot_bytes
        messages = {}
        self._totals = [0] * len(self.windows)
        for q in self._others():
            buffers = [*common, own[q]] if q in own else common
            total = self._totals[q] = num_bytes + (own[q].size if q in own else 0)
            is_fine = len(self.windows) >= LEAST_BALANCED and before[q] > FINE_RATIO * mean
            messages[q] = _Outgoing(buffers, total, min(most, max(LEAST_SLOT_BYTES, -(-total // FINE_PIECES))) if is_fine else most)
        return messages

    def _offer(self, common: Sequence[Array]) -> None:
        """Write what all others receive to the outbox, if it fits."""
        total, mine = sum(one.size for one in common), self.windows[self.member]
        if len(self.windows) >= LEAST_BALANCED and total <= mine.slot_bytes:
            _copy(common, 0, mine.outbox[:total])
            publish_word(mine.ready + 8, total)
            publish_word(mine.ready, self.stamp + self._round)

    def _helps(self, of: Sequence[int], idle: Callable[[int], bool] | None) -> bool:
        """Take over a piece of the work of one that has not sent; returns whether there was one."""
        if idle is None:
            return False
        for s in of:
            began = time.perf_counter()
            if idle(s):
                self.counters = self.counters.plus(Counters(helped_seconds=time.perf_counter() - began))
                return True
        return False

    def await_others(self, num_pieces: int) -> None:
        """Wait until others have done so many pieces of the job at this member's board.

        Raises
        ------
        WindowClosedError
            The group has been told to end.
        MemberLostError
            A member is gone.
        """
        self._await([self.windows[self.member].board.done], [num_pieces], None)

    def abort(self) -> None:
        """End the waiting of all other members."""
        for q in self._others():
            publish_word(self.windows[q].abort, 1)

    def _others(self) -> list[int]:
        """Return the other members: the one before this first."""
        n = len(self.windows)
        return [(self.member - k) % n for k in range(1, n)]

    def _send(self, q: int, out: _Outgoing) -> bool:
        """Put pieces for a receiver while slots are free; returns whether any was put, or taken by the receiver."""
        window, moved = self.windows[q], 0
        while not out.is_done:
            slot, stamp = self._sent[q] & 1, self.stamp + 2 + self._sent[q]
            line, size = window.length(self.member, slot), min(out.total - out.sent, out.piece_bytes)
            if read_word(line + 24) != stamp:
                if claim_word(line, 0, size + 1):
                    self.counters = self.counters.plus(Counters(failed_claims=1))
                    break
                if read_word(line + 24) == stamp:  # it was got just before
                    publish_word(line, 0)
            if read_word(line + 24) == stamp:
                size = out.total
            else:
                _copy(out.buffers, out.sent, window.slot(self.member, slot)[:size])
                publish_word(line + 16, out.total)
                publish_word(line + 8, stamp)
                self.counters = self.counters.plus(Counters(puts=1, put_bytes=size, fine_pieces=out.piece_bytes < window.slot_bytes))
            self._sent[q] += 1
            out.sent, moved = out.sent + size, moved + 1
            out.is_done = out.sent == out.total
        return moved > 0

    def _take(self, s: int, into: _Incoming) -> bool:
        """Take what has come of a sender's message; returns whether anything had."""
        window, taken = self.windows[self.member], 0
        while not into.is_done:
            slot = self._taken[s] & 1
            line = window.length(s, slot)
            if read_word(line + 8) != self.stamp + 2 + self._taken[s]:
                break
            size, total = read_word(line) - 1, read_word(line + 16)
            if into.message is None:
                into.message = np.empty(total, np.uint8)
            if not 0 <= size <= min(window.slot_bytes, into.message.size - into.got):
                raise ClusterError(f"member {s} of the group has put a piece of {size} bytes where {total - into.got} are left")
            into.message[into.got : into.got + size] = window.slot(s, slot)[:size]
            self._taken[s] += 1
            publish_word(line, 0)
            into.got, taken = into.got + size, taken + 1
            into.is_done = into.got == into.message.size
        return taken > 0

    def _get(self, s: int, into: _Incoming) -> bool:
        """Take a sender's message from its outbox, unless it has begun to put it; returns whether it was taken."""
        mine, sender = self.windows[self.member], self.windows[s]
        line = mine.length(s, self._taken[s] & 1)
        if len(self.windows) < LEAST_BALANCED or into.is_coming or read_word(sender.ready) != self.stamp + self._round:
            return False
        if into.message is not None or claim_word(line, 0, LOCKED):
            self.counters = self.counters.plus(Counters(failed_claims=1))
            into.is_coming = True
            return False
        total = read_word(sender.ready + 8)  # the sender does not go on while the slot is locked
        if not 0 <= total <= sender.slot_bytes:
            raise ClusterError(f"member {s} of the group offers a message of {total} bytes; a slot has {sender.slot_bytes}")
        into.message = sender.outbox[:total].copy()
        into.got, into.is_done = total, True
        self._taken[s] += 1
        publish_word(line + 24, self.stamp + 1 + self._taken[s])
        publish_word(line, 0)
        self.counters = self.counters.plus(Counters(gets=1))
        return True

    def _wait(self, to: Sequence[int], of: Sequence[int], gets: Sequence[int], *, seconds: float | None, since: float | None) -> float:
        """Wait until a piece has come of one of some senders, a slot at one of some receivers is free, or one can get a message.

        After `seconds`, if they are given, it returns in any case. Returns when this member has begun to wait: `since`, if it is given, so
        that it sleeps between two looks although it looks for work meanwhile.
        """
        mine = self.windows[self.member]
        addresses = [mine.length(s, self._taken[s] & 1) + 8 for s in of]
        values = [self.stamp + 2 + self._taken[s] for s in of]
        addresses += [self.windows[q].length(self.member, self._sent[q] & 1) for q in to]
        values += [0] * len(to)
        addresses += [self.windows[s].ready for s in gets]
        values += [self.stamp + self._round] * len(gets)
        began = time.monotonic()
        self._await(addresses, values, None if seconds is None else began + seconds, since or began)
        self.counters = self.counters.plus(Counters(waits=since is None, wait_seconds=time.monotonic() - began))
        return since or began

    def _await(self, addresses: Sequence[int], values: Sequence[int], deadline: float | None, since: float | None = None) -> int:
        """Wait for a word, or until a time (monotonic; None: for ever); looks meanwhile whether the others are alive."""
        began = int(1e9 * (since or time.monotonic()))
        abort = self.windows[self.member].abort
        while True:
            until = time.monotonic() + LOOK_SECONDS if deadline is None else min(deadline, time.monotonic() + LOOK_SECONDS)
            found = int(await_word(np.array(addresses), np.array(values), abort, int(until * 1e9), began))
            if found == ABORTED:
                raise WindowClosedError("the group has been told to end")
            if found >= 0:
                return found
            self._check_alive()
            if deadline is not None and time.monotonic() >= deadline:
                return LATE

    def _check_alive(self) -> None:
        for q in self._others():
            address = self.windows[q].address
            if began_at(address.pid) != address.began:
                raise MemberLostError(f"process {address.pid} is gone, and member {q} of the group with it")


def stamp_of(run: int, hop: int) -> int:
    """Return the stamp of a hop; those of one group's windows must differ."""
    return (run << HOP_BITS | hop) << PIECE_BITS


def _copy(buffers: Sequence[Array], first: int, target: Array) -> None:
    """Fill a piece with what buffers hold from a byte on."""
    done = 0
    for one in buffers:
        if first >= one.size:
            first -= one.size
            continue
        size = min(one.size - first, target.size - done)
        target[done : done + size] = one[first : first + size]
        done, first = done + size, 0
        if done == target.size:
            return


def _message(incoming: _Incoming) -> Array:
    assert incoming.message is not None
    return incoming.message
