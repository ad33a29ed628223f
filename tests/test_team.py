"""Work that threads share is done once, whoever steals what; errors and interrupts leave a team that works."""

from __future__ import annotations

import itertools
import os
import threading
import time

import numba as nb
import numpy as np
import pytest

from oocgraph import team as teams
from oocgraph.compiled import deques
from oocgraph.config import setting
from oocgraph.team import LITTLE, Team, borrow, give_back, team_of

LONG = 10 * LITTLE


@pytest.fixture(params=[1, 2, 4, 8])
def team(request):
    with Team(request.param) as made:
        yield made


@pytest.mark.parametrize("num_pieces", [0, 1, 2, 3, 17, 1000])
def test_every_piece_once(team, num_pieces):
    """What comes back is in the order of the pieces."""
    done = np.zeros(num_pieces, np.int64)

    def call(i):
        done[i] += 1
        return 3 * i

    assert team.run(call, range(num_pieces), LONG) == [3 * i for i in range(num_pieces)]
    assert (done == 1).all()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_pieces_are_taken_once_by_compiled_threads(threads):
    """Of 20,000 runs of pieces that take no time, in which threads steal all the time, none loses or doubles a piece."""
    words, groups = deques.new_deques(threads), np.arange(threads) // 2
    counts, seen = deques.new_counts(threads), np.zeros(4096, np.int64)
    size = 64
    barrier = threading.Barrier(threads + 1)
    rounds = 1000

    def work(t):
        for _ in range(rounds):
            barrier.wait()
            while (i := deques.next_piece(words, t, groups, True, counts[t])) >= 0:
                seen[i] += 1  # each by one thread: no two may have the same
            barrier.wait()

    members = [threading.Thread(target=work, args=(t,)) for t in range(threads)]
    for one in members:
        one.start()
    for k in range(rounds):
        shares = (
            [0, *([size] * threads)] if k % 2 else [size * t // threads for t in range(threads + 1)]
        )  # all on one deque, or a share each
        deques.fill(words, shares)
        barrier.wait()
        barrier.wait()
    for one in members:
        one.join()
    assert (seen[:size] == rounds).all()
    assert not seen[size:].any()
    assert counts[:, deques.STOLEN].sum() > 0


@nb.njit(nogil=True)
def count_pieces(member, grain, size, seen):
    """Count each index of the pieces that a thread gets; return how many pieces those are."""
    pieces = 0
    while True:
        i = deques.next_piece(member.words, member.number, member.groups, member.steals, member.counts)
        if i < 0:
            return pieces
        for index in range(i * grain, min(size, (i + 1) * grain)):
            seen[index] += 1
        pieces += 1


@pytest.mark.parametrize("asked", ["auto", "static", "dynamic"])
@pytest.mark.parametrize(("size", "grain"), [(0, 1), (1, 1), (1000, 1), (1000, 64), (1001, 7), (5, 64)])
def test_compiled_pieces_once(team, asked, size, grain):
    """Each thread makes one call, which gets pieces of the grain; little work is one piece of one call."""
    team.asked = asked
    for seconds in (LONG, None, LITTLE / 2):
        seen, before = np.zeros(size, np.int64), team.counts
        pieces = team.run_pieces(lambda member, grain, seen=seen: count_pieces(member, grain, size, seen), size, grain, seconds)
        assert (seen == 1).all()
        num_pieces = -(-size // grain)
        alone = team.threads == 1 or num_pieces < 2 or seconds == LITTLE / 2
        assert sum(pieces) == (min(1, size) if alone else num_pieces)
        assert len(pieces) == (1 if alone else team.threads)
        assert (team.counts.pieces - before.pieces).sum() == (0 if alone else num_pieces)
        if asked == "static" and not alone:
            assert pieces == [num_pieces * (t + 1) // team.threads - num_pieces * t // team.threads for t in range(team.threads)]


@pytest.mark.parametrize("method", ["run_pieces", "fork_join"])
def test_an_error_in_one_compiled_call_ends_the_others(method):
    """The first is raised, and the team works afterwards."""
    with Team(3) as team:

        def call(member, *_):
            if member.number == 1:
                raise ValueError("one")
            while not member.words[deques.STOP]:
                time.sleep(0.001)

        with pytest.raises(ValueError, match="one"):
            team.run_pieces(call, 300, 1, LONG) if method == "run_pieces" else team.fork_join(call, LONG)
        assert team.is_sound
        assert team.run(abs, range(100), LONG) == list(range(100))


def test_the_oldest_range_is_the_largest():
    """A thief takes half of what its victim had begun with; the victim goes on with the first pieces."""
    words, groups, counts = deques.new_deques(2), np.zeros(2, np.int64), deques.new_counts(2)
    deques.fill(words, [0, 64, 64])
    assert deques.next_piece(words, 0, groups, True, counts[0]) == 0
    assert deques.next_piece(words, 1, groups, True, counts[1]) == 32
    assert deques.next_piece(words, 0, groups, True, counts[0]) == 1
    assert counts[1, deques.STOLEN] == 1
    assert not counts[0, : deques.DONE].any()
    assert deques.steal(words, 0) == 16 << 32 | 32


def test_own_group_first():
    """The first two attempts are at threads of the own group of cores; then at any."""
    words, groups, counts = deques.new_deques(4), np.array([0, 0, 1, 1]), deques.new_counts(4)
    deques.fill(words, [0, 64, 64, 128, 128])
    for t in (1, 3):
        deques.next_piece(words, t, groups, True, counts[t])
    assert counts[:, deques.STOLEN].tolist() == [0, 1, 0, 1]
    assert not counts[:, deques.STOLEN_FAR].any()
    deques.fill(words, [0, 0, 0, 64, 64])
    deques.next_piece(words, 0, groups, True, counts[0])
    assert counts[0, deques.STOLEN_FAR] == 1


def test_a_thread_that_is_held_up_is_relieved():
    """While one thread is at its first piece, the other does all that is left; without stealing it does its own share."""
    for asked, others in (("dynamic", 63), ("static", 32)):
        with setting("distribution", asked), team_of(2) as team:
            before = team.counts.pieces
            done, all_others = [], threading.Event()

            def call(i, done=done, all_others=all_others, others=others):
                if i == 0:
                    all_others.wait(5)
                else:
                    done.append(i)
                    if len(done) >= others:
                        all_others.set()

            team.run(call, range(64), LONG)
            assert all_others.is_set()
            assert asked == "dynamic" or (team.counts.pieces - before).tolist() == [32, 32]


def test_little_work_wakes_nobody():
    with Team(4) as team:
        assert team.distribution(8, LITTLE / 2) == "alone"
        who = team.run(lambda _: threading.get_ident(), range(8), LITTLE / 2)
        assert set(who) == {threading.get_ident()}
        assert team.cut(1000, LITTLE / 2) == [(0, 1000)]
        assert team.distribution(4, LONG) == "static"
        assert team.distribution(5, LONG) == "dynamic"


@pytest.mark.parametrize("seconds", [LITTLE, 8 * LITTLE, 1.0])
def test_cuts_cover_the_range(team, seconds):
    for size in (0, 1, 2, 1000):
        pieces = team.cut(size, seconds)
        assert pieces[0][0] == 0
        assert pieces[-1][1] == size
        assert all(a[1] == b[0] for a, b in itertools.pairwise(pieces))
        assert len(pieces) <= teams.PIECES_PER_THREAD * team.threads


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_all(team, error):
    """The others end at their next piece; the team works afterwards."""

    def call(i):
        if i == 5:
            raise error("five")
        time.sleep(0.0005)

    with pytest.raises(error):
        team.run(call, range(2000), LONG)
    assert team.is_sound
    assert team.run(abs, range(100), LONG) == list(range(100))


def test_work_within_work():
    """A piece that has work for a team itself does it alone: nobody waits for those who wait."""
    with Team(3) as team:
        assert team.run(lambda i: sum(team.run(lambda j: i * j, range(10), LONG)), range(20), LONG) == [45 * i for i in range(20)]


def test_calls_take_turns():
    with Team(2) as team, Team(4) as callers:
        assert callers.run(lambda k: team.run(lambda i: i + k, range(50), LONG), range(12), LONG) == [
            [i + k for i in range(50)] for k in range(12)
        ]


def test_teams_are_lent_again():
    """One that was left in the middle of work is not."""
    one = borrow(3)
    give_back(one)
    other = borrow(3)
    assert other is one
    other.is_sound = False
    give_back(other)
    with team_of(3) as new:
        assert new is not one
    one.close()


def test_a_child_process_makes_its_own():
    with team_of(2) as team:
        team.run(abs, range(10), LONG)
    child = os.fork()
    if not child:
        with team_of(2) as team:
            os._exit(0 if team.run(abs, range(10), LONG) == list(range(10)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_counts():
    """Busy and idle seconds of each thread make up the time of the call."""
    with Team(2) as team:
        began = time.perf_counter()
        team.run(lambda i: time.sleep(0.02 if i else 0.1), range(2), LONG)
        seconds, counts = time.perf_counter() - began, team.counts
    assert counts.pieces.tolist() == [1, 1]
    assert not counts.stolen.any()
    assert 0.1 <= counts.busy_seconds[0] <= seconds
    assert 0.02 <= counts.busy_seconds[1] < 0.1
    assert 0.05 <= counts.idle_seconds[1] <= seconds
