"""Threads that share work: each begins with a share of it, and who is done takes from those that are not (`oocgraph.compiled.deques`).

In: a function and pieces, and about how long all take. Out: what the function made of each. The thread that calls works too, so that little
work costs no handing over, and of two threads one has to be woken. Nothing is left waiting: teams are lent, and go back for the next call.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from oocgraph.closing import Closing
from oocgraph.compiled import deques
from oocgraph.compiled.deques import Member
from oocgraph.compiled.load import load_kernels
from oocgraph.config import settings
from oocgraph.pool import Call, Pool

_T = TypeVar("_T")

LITTLE = 1e-4
"""Seconds of work below which one thread does it: to wake another one takes half of that."""

PIECES_PER_THREAD = 16
"""Pieces of a thread at the most; of about `LITTLE` each."""


class Counts(NamedTuple):
    """What a team has done so far, of each of its threads: (num_threads,).

    Attributes
    ----------
    busy_seconds, idle_seconds
        At work; with nothing to do until all were done.
    pieces, stolen, stolen_far, missed
        Pieces done; ranges of these that were taken from threads of the same group of cores, and of others; attempts in vain.
    """

    busy_seconds: Any
    idle_seconds: Any
    pieces: Any
    stolen: Any
    stolen_far: Any
    missed: Any


class Team(Closing):
    """Threads, the one that calls among them. Calls from several threads take turns.

    Parameters
    ----------
    threads
        How many.
    groups
        Group of cores of each; by default all of one.

    Attributes
    ----------
    asked : str
        The setting ``oocgraph.distribution`` as the team was lent.
    is_sound : bool
        Whether none of its threads still works for a call that has ended: who was interrupted twice did not wait.
    """

    def __init__(self, threads: int, groups: Sequence[int] | None = None) -> None:
        self.threads, self.asked, self.is_sound = max(1, threads), "auto", True
        self._groups = np.array(groups or [0] * self.threads, np.int64)
        self._words, self._done = deques.new_deques(self.threads), deques.new_counts(self.threads)
        self._busy, self._idle = np.zeros(self.threads), np.zeros(self.threads)
        self._running, self._members = threading.Lock(), threading.local()
        self._helpers: Pool | None = None
        load_kernels(deques.team_calls())
        if self.threads > 1:
            self._helpers = Pool(self.threads - 1, "oocgraph-team")

    def close(self) -> None:
        """End the threads; closing again does nothing."""
        if self._helpers is not None:
            self._helpers.close()

    @property
    def counts(self) -> Counts:
        """What it has done."""
        order = [deques.DONE, deques.STOLEN, deques.STOLEN_FAR, deques.MISSED]
        return Counts(self._busy.copy(), self._idle.copy(), *self._done[:, order].T.copy())

    def distribution(self, num_pieces: int, seconds: float | None = None) -> str:
        """Choose how so many pieces are distributed, which take so long together; None: that is not known.

        Returns
        -------
        str
            ``alone``: the thread that calls does it; ``static``: each thread its share; ``dynamic``: who is done takes from others.
        """
        if self.threads == 1 or num_pieces < 2 or (seconds is not None and seconds < LITTLE):
            return "alone"
        if self.asked != "auto":
            return self.asked
        return "static" if num_pieces <= self.threads else "dynamic"  # a thread may be held up, or its share take longer

    def cut(self, size: int, seconds: float) -> list[tuple[int, int]]:
        """Cut ``0 .. size - 1``, work for so long, into pieces: one if it is little."""
        if self.threads == 1 or seconds < LITTLE or size < 2:
            return [(0, size)]
        num_pieces = min(size, self.threads * min(PIECES_PER_THREAD, max(1, int(seconds / LITTLE / self.threads))))
        cuts = [size * i // num_pieces for i in range(num_pieces + 1)]
        return list(itertools.pairwise(cuts))

    def run_range(self, call: Callable[[int, int], _T], size: int, seconds: float) -> list[_T]:
        """Return what ``call(start, stop)`` makes of parts of ``0 .. size - 1``, in order."""
        return self.run(lambda piece: call(*piece), self.cut(size, seconds), seconds)

    def run(self, call: Callable[[Any], _T], pieces: Sequence[Any], seconds: float | None = None) -> list[_T]:
        """Return what `call` makes of each piece, in their order.

        Parameters
        ----------
        call
            Called in several threads at once. What it raises, the first time, is raised here when all threads have come to an end.
        seconds
            About how long all take in one thread, if that is known.
        """
        kind = self.distribution(len(pieces), seconds)
        if kind == "alone" or getattr(self._members, "works", False):
            return [call(piece) for piece in pieces]
        with self._running:
            return self._run(call, pieces, steals=kind == "dynamic")

    def run_pieces(self, call: Callable[[Member, int], _T], size: int, grain: int, seconds: float | None = None) -> list[_T]:
        """Have each thread make one compiled call, which takes pieces of ``0 .. size - 1``; return what the calls return.

        Little work is done by one call, in the thread that asks, as one piece.

        Parameters
        ----------
        call
            Takes a member and the size of a piece; gets numbers of pieces with `oocgraph.compiled.deques.next_piece` until there are none.
        grain
            Size of a piece: small enough to be stolen, and large enough to be worth 0.1 us.
        seconds
            As for `run`.
        """
        num_pieces = -(-size // grain)
        kind = self.distribution(num_pieces, seconds)
        if kind == "alone" or getattr(self._members, "works", False):
            return [call(self._alone(min(1, size)), max(1, size))]
        with self._running:
            return self._run_compiled(lambda member: call(member, grain), num_pieces, steals=kind == "dynamic")

    def fork_join(self, call: Callable[[Member], _T], seconds: float | None = None) -> list[_T]:
        """Have each thread make one compiled call, which takes part in a fork-join; return what the calls return.

        Little work is done by one call, in the thread that asks.

        Parameters
        ----------
        call
            Handles the events of `oocgraph.compiled.fork_join.next_event` until the computation has ended. Member 0 has the first frame.
        seconds
            As for `run`.
        """
        is_little = seconds is not None and seconds < LITTLE
        if self.threads == 1 or is_little or getattr(self._members, "works", False):
            return [call(self._alone(0))]
        with self._running:
            return self._run_compiled(call, 0, steals=True)

    @staticmethod
    def _alone(num_pieces: int) -> Member:
        """Return the single member of a team of one thread, with all pieces on its deque."""
        words = deques.new_deques(1)
        deques.fill(words, [0, num_pieces])
        return Member(words, 0, np.zeros(1, np.int64), steals=False, counts=deques.new_counts(1)[0])

    def _run_compiled(self, call: Callable[[Member], _T], num_pieces: int, *, steals: bool) -> list[_T]:
        results: list[Any] = [None] * self.threads
        self._fill(num_pieces)

        def work(t: int) -> float:
            began, slept = time.perf_counter(), int(self._done[t, deques.SLEPT])
            results[t] = call(Member(self._words, t, self._groups, steals, self._done[t]))
            return time.perf_counter() - began - 1e-6 * (int(self._done[t, deques.SLEPT]) - slept)

        self._together(work)
        return results

    def _run(self, call: Callable[[Any], _T], pieces: Sequence[Any], *, steals: bool) -> list[_T]:
        results: list[Any] = [None] * len(pieces)
        self._fill(len(pieces))

        def work(t: int) -> float:
            busy = 0.0
            while (i := int(deques.next_piece(self._words, t, self._groups, steals, self._done[t]))) >= 0:
                at = time.perf_counter()
                results[i] = call(pieces[i])
                busy += time.perf_counter() - at
            return busy

        self._together(work)
        return results

    def _fill(self, num_pieces: int) -> None:
        """Give each thread a share of the pieces."""
        deques.fill(self._words, [num_pieces * t // self.threads for t in range(self.threads + 1)])

    def _together(self, work: Callable[[int], float]) -> None:
        """Call `work` in each thread; it returns the seconds for which that was busy."""
        assert self._helpers is not None
        ended = np.zeros(self.threads)

        def member(t: int) -> None:
            self._members.works = True
            began, busy = time.perf_counter(), 0.0
            try:
                busy = work(t)
            except BaseException:
                deques.end(self._words)
                raise
            finally:
                self._members.works = False
                ended[t] = time.perf_counter()
                self._busy[t] += busy
                self._idle[t] += ended[t] - began - busy

        others: list[Call[None]] = []
        self.is_sound = False
        try:
            for t in range(1, self.threads):
                others.append(self._helpers.submit(member, t))
            member(0)
            for call in others:
                call.wait()
        finally:
            deques.end(self._words)
            for call in others:
                call.wait()
            self.is_sound = len(others) == self.threads - 1  # else one may have been called that nothing here knows of
        for call in others:
            call.result()
        self._idle += ended.max() - ended


_idle_teams: dict[int, list[Team]] = {}
"""Teams that nobody uses now, by their threads."""

_lending = threading.Lock()


@contextmanager
def team_of(threads: int) -> Iterator[Team]:
    """Lend a team of so many threads; it is kept for the next one who asks."""
    team = borrow(threads)
    try:
        yield team
    finally:
        give_back(team)


def borrow(threads: int) -> Team:
    """Lend a team of so many threads, which `give_back` takes."""
    with _lending:
        idle = _idle_teams.get(max(1, threads))
        team = idle.pop() if idle else None
    team = Team(threads) if team is None else team
    team.asked = settings().distribution
    return team


def give_back(team: Team) -> None:
    """Keep a team for the next one who asks."""
    if team.is_sound:
        with _lending:
            _idle_teams.setdefault(team.threads, []).append(team)


def _forget() -> None:
    """Begin anew in a child process: threads stay in the parent."""
    global _lending  # noqa: PLW0603 - whoever held it is not here
    _lending = threading.Lock()
    _idle_teams.clear()


os.register_at_fork(after_in_child=_forget)
