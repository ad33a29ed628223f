"""Pieces of work that others may take over: each is had once, the others get no more than they may, and nothing of a job that is over."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.compiled.shared_work import BOUNDS, CLAIM, DONE, FACTS, MOST_PIECES, WORDS
from oocgraph.errors import ClusterError
from oocgraph.exchange.shared_work import Board


def new_board():
    return Board(np.zeros(WORDS, np.int64))


def bounds(num_pieces):
    return np.array([(10 * i, 10 * i + 10) for i in range(num_pieces)], np.int64).reshape(-1, 2)


@settings(max_examples=50, deadline=None)
@given(num_pieces=st.integers(1, MOST_PIECES), least=st.integers(0, MOST_PIECES), turns=st.lists(st.booleans(), max_size=200))
def test_pieces_are_claimed_from_both_ends(num_pieces, least, turns):
    """In any order of turns: the owner's ascend, the others' descend and are not below what they may have."""
    board, own, others = new_board(), [], []
    job = board.post(7, np.arange(3), bounds(num_pieces), least)
    for is_owner in [*turns, *([True] * num_pieces)]:
        if is_owner:
            own.append(board.claim(job))
        elif (found := board.job_of(7)) is not None:
            assert found[0] == job
            assert found[1][:3] == [0, 1, 2]
            first, stop = board.take(job)
            assert stop == first + 10
            others.append(first // 10)
    own = [piece for piece in own if piece >= 0]
    assert own == list(range(len(own)))
    assert others == list(range(num_pieces))[::-1][: len(others)]
    assert len(own) + len(others) == num_pieces
    assert board.num_claimed(num_pieces) == len(others)
    assert not others or min(others) >= least


@pytest.mark.parametrize("helpers", [1, 3])
def test_threads_have_every_piece_once(helpers):
    """Of many jobs, one after the other, while the others try all the time."""
    words = np.zeros(WORDS, np.int64)
    board, jobs = Board(words), 300
    had, over = np.zeros((jobs, MOST_PIECES), np.int64), threading.Event()
    lock = threading.Lock()

    def help_out():
        while not over.is_set():
            for number in (int(now[0]), int(now[0]) + 1):
                if (found := board.job_of(number)) is not None and (piece := board.take(found[0])) is not None:
                    with lock:
                        had[found[1][0], piece[0] // 10] += 1
                        had[number, 0] += found[1][0] != number
                    board.report(1, 2)

    now = np.zeros(1, np.int64)
    threads = [threading.Thread(target=help_out) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    taken = 0
    for number in range(jobs):
        now[0] = number
        job = board.post(number, np.array([number]), bounds(MOST_PIECES), 0)
        while (piece := board.claim(job)) >= 0:
            with lock:
                had[number, piece] += 1
        claimed = board.num_claimed(MOST_PIECES)
        while words[DONE] < claimed:  # counted behind the results
            pass
        assert board.results == (claimed, 2 * claimed)
        taken += claimed
    over.set()
    for thread in threads:
        thread.join()
    assert (had == 1).all()
    assert taken > 0


def test_nothing_is_had_of_another_round():
    """Not before a job of it, and not after."""
    board = new_board()
    assert board.job_of(0) is None
    job = board.post(5, np.array([9]), bounds(2), 0)
    number, facts = board.job_of(5)
    assert (number, facts[0]) == (job, 9)
    assert len(facts) == BOUNDS - FACTS
    assert board.job_of(4) is None
    assert board.job_of(6) is None
    assert board.post(6, np.array([9]), bounds(2), 2) != job
    assert board.claim(job) == -1
    assert board.take(job) is None
    assert board.job_of(6) is None


def test_a_job_that_is_being_written_is_none_of_the_round_before():
    """Who looked for one of the round before would have a piece of the next round's, once that is written."""
    board = new_board()
    board.post(5, np.array([9]), bounds(2), 0)
    board.withdraw()  # `post` has begun
    assert board.job_of(5) is None


def test_facts_of_one_job_give_no_piece_of_another():
    """Of the same round: a pull of what is in memory, then of what is on disk."""
    board = new_board()
    board.post(5, np.array([9]), bounds(2), 0)
    job, _ = board.job_of(5)
    board.post(5, np.array([8]), bounds(2), 0)
    assert board.take(job) is None


def test_pieces_that_there_cannot_be_are_refused():
    """Words that another process has written wrongly."""
    words = np.zeros(WORDS, np.int64)
    words[CLAIM] = 1000
    with pytest.raises(ClusterError, match="piece 999"):
        Board(words).take(0)
