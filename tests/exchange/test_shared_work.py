"""Pieces of work that others may take over: each is had once, the others get no more than they may, and nothing of a job that is over."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.exchange.shared_work import Board
from oocgraph.kernels.shared_work import BOUNDS, FACTS, MOST_PIECES, WORDS


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
        elif (found := board.take(7)) is not None:
            assert found[0][:3] == [0, 1, 2]
            assert found[1][1] == found[1][0] + 10
            others.append(found[1][0] // 10)
    own = [piece for piece in own if piece >= 0]
    assert own == list(range(len(own)))
    assert others == list(range(num_pieces))[::-1][: len(others)]
    assert len(own) + len(others) == num_pieces
    assert board.num_claimed(num_pieces) == len(others)
    assert not others or min(others) >= least


@pytest.mark.parametrize("helpers", [1, 3])
def test_threads_have_every_piece_once(helpers):
    """Of many jobs, one after the other, while the others try all the time."""
    board, jobs = new_board(), 300
    had, over = np.zeros((jobs, MOST_PIECES), np.int64), threading.Event()
    lock = threading.Lock()

    def help_out():
        while not over.is_set():
            for number in (int(now[0]), int(now[0]) + 1):
                if (found := board.take(number)) is not None:
                    with lock:
                        had[number, found[1][0] // 10] += 1
                    board.report(1, 2)

    now = np.zeros(1, np.int64)
    threads = [threading.Thread(target=help_out) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    taken = 0
    for number in range(jobs):
        now[0] = number
        job = board.post(number, np.zeros(1, np.int64), bounds(MOST_PIECES), 0)
        while (piece := board.claim(job)) >= 0:
            with lock:
                had[number, piece] += 1
        claimed = board.num_claimed(MOST_PIECES)
        while board.results[0] < claimed:
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
    assert board.facts_of(0) is None
    assert board.take(0) is None
    job = board.post(5, np.array([9]), bounds(2), 0)
    assert board.facts_of(5)[0] == 9
    assert len(board.facts_of(5)) == BOUNDS - FACTS
    assert board.facts_of(4) is None
    assert board.take(6) is None
    assert board.post(6, np.array([9]), bounds(2), 2) != job
    assert board.claim(job) == -1
    assert board.take(6) is None
