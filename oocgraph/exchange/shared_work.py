"""Work of one member of a group that others may take over: its owner claims pieces from the front, others from the back.

In: a row of pieces, and the first one that others may claim. Out: each piece, claimed exactly once. The words are in the owner's window
(`oocgraph.exchange.windows`). ``claim`` holds the number of the job and the first and last piece that are still free: one compare-and-swap
takes a piece from either end, and fails once the job has changed. The owner describes the pieces in ``facts`` and ``bounds``. Others read
``facts`` first; they are valid if a piece of the same job can be claimed afterwards. Both stay unchanged until the owner has seen that all
claimed pieces are done.

Pu Pang et al., "SHMEMGraph", CLUSTER 2018: active vertices are got from a member that has not sent yet, at most a tenth of its vertices.
Differs in: who takes over works in the owner's own memory, which all map, so that nothing has to be sent.
"""

from __future__ import annotations

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.compiled.shared_work import (
    BOUNDS,
    BYTES,
    DONE,
    FACTS,
    LEAST,
    LEFT,
    MOST_PIECES,
    ROUND,
    WORDS,
    back_of,
    claim_piece,
    job_of,
    open_job,
    post_pieces,
    report_piece,
)
from oocgraph.errors import ClusterError
from oocgraph.types import Array


class Board:
    """A job of the owner of a window; the words are (`WORDS`,) int64 of shared memory."""

    def __init__(self, words: Array) -> None:
        self._words = words

    @property
    def done(self) -> int:
        """Address of the number of pieces that others have done."""
        return int(self._words.ctypes.data) + DONE * 8

    # The owner's part.

    def post(self, round_number: int, facts: Array, bounds: Array, least: int) -> int:
        """Offer pieces, of which others may have those from `least` on; returns the number of the job.

        Parameters
        ----------
        round_number
            By which others know that what they hold fits the job.
        facts : (n,) int64
            At most `BOUNDS` - `FACTS`.
        bounds : (num_pieces, 2) int64
            First and stop of each; at most `MOST_PIECES`.
        """
        words, job = self._words, self.withdraw()  # no piece can be claimed while the job is written
        words[LEAST], words[ROUND] = least, round_number
        words[DONE : BYTES + 1] = 0
        words[FACTS : FACTS + facts.size] = facts
        words[BOUNDS : BOUNDS + bounds.size] = bounds.ravel()
        post_pieces(words, job, len(bounds))
        return job

    def withdraw(self) -> int:
        """Have others find nothing to claim any more; returns the number of the next job."""
        job = (int(job_of(self._words)) + 1) & ((1 << 22) - 1)
        post_pieces(self._words, job, 0)
        return job

    def claim(self, job: int) -> int:
        """Claim the next piece; -1: there is none."""
        return int(claim_piece(self._words, job, True))

    def num_claimed(self, num_pieces: int) -> int:
        """Pieces that others have, once none is left: the next to be claimed from the back is behind all of the owner's."""
        return num_pieces - int(back_of(self._words))

    @property
    def results(self) -> tuple[int, int]:
        """Vertices left undecided, and bytes read, of all pieces that others have done."""
        return int(self._words[LEFT]), int(self._words[BYTES])

    # The others' part.

    def job_of(self, round_number: int) -> tuple[int, list[int]] | None:
        """Return the number and the facts of the job of a round, if others may have a piece of it; else None."""
        words, job = self._words, int(open_job(self._words))
        if job < 0 or words[ROUND] != round_number:
            return None
        facts: list[int] = words[FACTS:BOUNDS].tolist()
        return (job, facts) if open_job(words) == job else None

    def take(self, job: int) -> tuple[int, int] | None:
        """Claim a piece from the back of a job, if there is one; returns its bounds.

        Raises
        ------
        ClusterError
            The words are not those of a job.
        """
        words = self._words
        piece = int(claim_piece(words, job, False))
        if piece < 0:
            return None
        if piece >= MOST_PIECES:
            raise ClusterError(f"a member of the group offers piece {piece} of a job; there are {MOST_PIECES} at most")
        first, stop = words[BOUNDS + 2 * piece : BOUNDS + 2 * piece + 2].tolist()
        return first, stop

    def report(self, left: int, num_bytes: int) -> None:
        """Say that a piece is done, behind all that was written for it."""
        report_piece(self._words, left, num_bytes)


def load_board_kernels() -> None:
    """Bring compiled code into memory, before that is counted."""
    words = np.zeros(WORDS, np.int64)
    load_kernels(
        [
            (claim_piece, (words, 0, True)),
            (job_of, (words,)),
            (open_job, (words,)),
            (back_of, (words,)),
            (post_pieces, (words, 0, 0)),
            (report_piece, (words, 0, 0)),
        ]
    )
