"""Pieces of one partition's step that another worker of its host takes, in the memory of both.

In: on the side of the owner a `CommonPart` (planes and state in memory that others map) and a `Channel`, whose board has the pieces; on the
other side `Mapped`, which maps them. Out: what the kernels write, where the owner expects it. Nothing is sent: the other worker has the
same frontier and, as far as they fit, the same first edges, and reads what lies behind these itself, from the store.

A job offers its pieces while they are worked on: its owner takes the next from the front, others from the back, at most `take_over` of its
vertices, of those that are active: in a pull those not visited, in a push the frontier's. What an interrupted job has left
unfinished may still be written to, so its state's memory is not used again.

Pu Pang et al., "SHMEMGraph", CLUSTER 2018, section IV.C. Differs in the bound, which is V/10 there, since vertices and edges cross a
network: here none do. Measured (`oocgraph bench imbalance`, Kronecker 22, two workers, the core of one shared with a busy process), time by
that without take-over, for bounds of 0.1, 0.5 and 1: 0.97, 0.93, 0.75 of searches that push, 1.0, 1.0, 0.83 of those that pull.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from oocgraph.compiled.shared_work import MOST_PIECES
from oocgraph.errors import ClusterError
from oocgraph.exchange.shared_memory import MemoryAddress, SharedMemory, carve, carved_bytes
from oocgraph.exchange.windows import Channel, Counters
from oocgraph.types import Array

logger = logging.getLogger(__name__)

PULL_HEADS, PULL_TAILS, PUSH = range(3)
"""Kinds of jobs."""

LEAST_SECONDS = 2e-3
"""Work of a job below which it is not offered: a piece costs its owner 12 us, calls from Python."""

SECONDS_PER_PIECE, LEAST_PIECES = 2.5e-4, 8
"""Of a piece about, where that gives fewer than `MOST_PIECES`; pieces at least."""

Result = tuple[int, int, int]
"""Of a piece of work: vertices found, or left; bytes read; 0, or what `read_pages` returned."""


class Facts(NamedTuple):
    """What others must know of a job: numbers.

    Attributes
    ----------
    kind
        See `PULL_HEADS`.
    level
        That is looked for.
    wide
        Whether levels are int32.
    num_pieces
        Into which the job is cut.
    num_planes, num_pulled, num_pushed
        Planes in the owner's memory; first edges that it holds, of both adjacencies.
    is_dense, gap
        How pages are read: see `oocgraph.engine.cpu_engine.Engine.push`.
    planes, state
        The file, its token and its bytes: `MemoryAddress`.
    """

    kind: int
    level: int
    wide: int
    num_pieces: int
    num_planes: int
    num_pulled: int
    num_pushed: int
    is_dense: int
    gap: int
    planes_fd: int
    planes_token: int
    planes_bytes: int
    state_fd: int
    state_token: int
    state_bytes: int

    @property
    def touched_bytes(self) -> int:
        """Bytes of planes that a piece touches at most: twice the mean, for the first vertices have more planes than the last."""
        return 0 if self.kind != PULL_HEADS else 2 * self.planes_bytes // max(1, self.num_pieces)

    @classmethod
    def of(cls, words: Sequence[int]) -> Facts:
        """Return the facts that a board has, which has room for more."""
        return cls(*words[: len(cls._fields)])


class StateArrays(NamedTuple):
    """What a partition notes of a search, and which vertices it owns: in memory that others map."""

    visited: Array
    undecided: Array
    closed: Array
    owned: Array
    rank: Array
    parent: Array
    levels: Array

    @property
    def level8(self) -> Array:
        """Levels of one byte each."""
        return self.levels[: self.parent.size]

    @property
    def level32(self) -> Array:
        """Levels as int32."""
        return self.levels.view(np.int32)


@dataclass(frozen=True, slots=True)
class StateLayout:
    """Sizes of `StateArrays`."""

    num_owned: int
    num_vertices: int
    dtype: np.dtype[Any]
    rank_dtype: np.dtype[Any]

    @property
    def num_bytes(self) -> int:
        """Bytes of the memory."""
        return carved_bytes(self._sizes())

    def arrays(self, memory: SharedMemory) -> StateArrays:
        """Cut the memory."""
        return StateArrays(*carve(memory.data, self._sizes()))

    def _sizes(self) -> list[tuple[int, np.dtype[Any]]]:
        own, words = (max(1, -(-n // 64)) for n in (self.num_owned, self.num_vertices))
        bits = np.dtype(np.uint64)
        return [
            (own, bits), (own, bits), (words, bits), (words, bits), (words, self.rank_dtype),
            (self.num_owned, self.dtype), (4 * self.num_owned, np.dtype(np.uint8)),
        ]  # fmt: skip


def planes_bytes(num_edges: int, dtype: np.dtype[Any]) -> int:
    """Bytes of memory that others may map, with so many entries of planes."""
    return carved_bytes([(num_edges, dtype)])


def new_planes(num_edges: int, dtype: np.dtype[Any]) -> tuple[Array, SharedMemory | None]:
    """Return an array for planes in memory that others may map; in its own where there is none."""
    try:
        memory = SharedMemory.create(planes_bytes(num_edges, dtype))
    except OSError:
        return np.empty(num_edges, dtype), None
    return planes_in(memory, num_edges, dtype), memory


def planes_in(memory: SharedMemory, num_edges: int, dtype: np.dtype[Any]) -> Array:
    """Return the planes that are in some memory."""
    return carve(memory.data, [(num_edges, dtype)])[0]


@dataclass(slots=True)
class CommonPart:
    """A partition whose planes, and the state of one search at a time, are in memory that others map.

    Attributes
    ----------
    planes : SharedMemory
    layout : StateLayout
    owned, rank
        Copied into the state.
    """

    planes: SharedMemory
    layout: StateLayout
    owned: Array
    rank: Array
    _state: SharedMemory | None = None
    _is_lent: bool = False

    def lend(self, borrower: Any) -> StateArrays | None:
        """Return the state's arrays, which `borrower` has as long as it lives; None: another one has them, or there is no memory."""
        if self._is_lent:
            return None
        if self._state is None:
            try:
                self._state = SharedMemory.create(self.layout.num_bytes)
            except OSError:
                return None
        arrays = self.layout.arrays(self._state)
        arrays.owned[:], arrays.rank[:] = self.owned, self.rank
        for bitmap in (arrays.visited, arrays.undecided, arrays.closed):
            bitmap[:] = 0
        self._is_lent = True
        weakref.finalize(borrower, self._give_back).atexit = False
        return arrays

    def _give_back(self) -> None:
        self._is_lent = False

    @property
    def state(self) -> MemoryAddress | None:
        """Where the state is."""
        return None if self._state is None else self._state.address

    def forsake(self) -> None:
        """Do not use the state's memory again: others may still write to it."""
        if self._state is not None:
            self._state.close()
            self._state = None

    def close(self) -> None:
        """Give back the memory."""
        self.forsake()
        self.planes.close()


@dataclass(slots=True)
class Offer:
    """Offers the jobs of a step to others.

    Attributes
    ----------
    part
        Of the owner.
    channel
        Of the hop.
    most
        Active vertices of a job that others may take.
    """

    part: CommonPart
    channel: Channel
    most: int

    def run(
        self, facts: Facts, pieces: Sequence[tuple[int, int]], weights: Array, run: Callable[[Callable[[Array], Result]], Sequence[Result]],
        call: Callable[[tuple[int, int], Array], Result],
    ) -> list[Result]:  # fmt: skip
        """Run pieces with others; returns the results of those that this worker had, and one for all that others had.

        Parameters
        ----------
        weights : (num_pieces,) int64
            Active vertices of each.
        run
            Calls what it is given for each piece, in threads.
        call
            Works on a piece.
        """
        board = self.channel.windows[self.channel.member].board
        from_back = np.cumsum(weights[::-1])
        least = len(pieces) - int(np.searchsorted(from_back, self.most, side="right"))
        job = board.post(self.channel.round + 1, np.array(facts, np.int64), np.array(pieces, np.int64), least)
        try:
            results = [*run(lambda buffer: call(pieces[i], buffer) if (i := board.claim(job)) >= 0 else (0, 0, 0))]
            num_claimed = board.num_claimed(len(pieces))
            self.channel.await_others(num_claimed)
        except BaseException:
            board.withdraw()
            self.part.forsake()
            raise
        left, num_bytes = board.results
        if num_claimed:
            taken = Counters(taken=int(weights[-num_claimed:].sum()), taken_pieces=num_claimed)
            self.channel.counters = self.channel.counters.plus(taken)
        return [*results, (left, num_bytes, 0)]


class TakenFrom(NamedTuple):
    """What is mapped of another partition."""

    planes: SharedMemory
    state: SharedMemory


@dataclass(slots=True)
class Mapped:
    """The memory of other partitions, as this worker has mapped it in a hop: of each the last."""

    _found: dict[int, tuple[tuple[int, ...], TakenFrom | None]] = field(default_factory=dict)

    def of(self, partition: int, at: MemoryAddress, facts: Facts) -> TakenFrom | None:
        """Map the memory of a partition, whose window is `at`; None: it cannot be mapped, or its process has given it back."""
        key = (at.pid, at.began, *facts[-6:])
        there = self._found.get(partition)
        if there is None or there[0] != key:
            there = self._found[partition] = key, _opened(at, facts)
        return there[1]

    def clear(self) -> None:
        """Give back what is mapped: it stays as long as it is mapped anywhere, even if its process is gone."""
        self._found.clear()


def _opened(at: MemoryAddress, facts: Facts) -> TakenFrom | None:
    try:
        return TakenFrom(
            SharedMemory.open(at._replace(fd=facts.planes_fd, token=facts.planes_token, num_bytes=facts.planes_bytes)),
            SharedMemory.open(at._replace(fd=facts.state_fd, token=facts.state_token, num_bytes=facts.state_bytes)),
        )
    except (OSError, ClusterError) as error:
        logger.info("work of process %d is not taken over: %s", at.pid, error)
        return None


def joined(pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbours, so that there are at most `MOST_PIECES`; what lies between them is no work.

    Examples
    --------
    >>> len(joined([(i, i + 1) for i in range(0, 200, 2)])), joined([(0, 1), (4, 5)])
    (50, [(0, 1), (4, 5)])
    """
    step = -(-len(pieces) // MOST_PIECES)
    return [(pieces[i][0], pieces[min(i + step, len(pieces)) - 1][1]) for i in range(0, len(pieces), max(1, step))]


def num_pieces_of(seconds: float) -> int:
    """Return into how many pieces work is cut that is offered.

    Examples
    --------
    >>> num_pieces_of(0.001), num_pieces_of(1.0)
    (8, 64)
    """
    return min(MOST_PIECES, max(LEAST_PIECES, int(seconds / SECONDS_PER_PIECE)))
