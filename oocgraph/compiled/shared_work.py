"""Pieces of work that processes claim from either end: see `oocgraph.exchange.shared_work`.

The words are int64 in memory that they share.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import atomic_add, compare_and_swap, load_acquire, store_release

CLAIM, LEAST, DONE, LEFT, BYTES, ROUND, FACTS, BOUNDS = 0, 8, 16, 17, 18, 24, 32, 64
"""Words: what can be claimed; the first piece that others may have; pieces that others have done, vertices that these leave undecided,
bytes read for them; the round of the job; facts; first and stop of each piece."""

MOST_PIECES = 64
"""Pieces of a job: of 1.6 % each, and a call from Python for each."""

WORDS = BOUNDS + 2 * MOST_PIECES
"""Words of a board."""

FRONT_BITS, JOB_SHIFT = 20, 40
ENDS = (1 << FRONT_BITS) - 1


@nb.njit(nogil=True, cache=True)
def claim_piece(words: Any, job: Any, at_front: Any) -> Any:
    """Claim a piece of a job, from the front or the back; -1: there is none, or the job is another."""
    while True:
        found = load_acquire(words, CLAIM)
        front, back = (found >> FRONT_BITS) & ENDS, found & ENDS
        if found >> JOB_SHIFT != job or front >= back or (not at_front and back <= words[LEAST]):
            return np.int64(-1)
        taken = front if at_front else back - 1
        left = (job << JOB_SHIFT) | ((front + 1) << FRONT_BITS | back if at_front else front << FRONT_BITS | (back - 1))
        if compare_and_swap(words, CLAIM, found, left) == found:
            return taken


@nb.njit(nogil=True, cache=True)
def job_of(words: Any) -> Any:
    """Return the number of the job."""
    return load_acquire(words, CLAIM) >> JOB_SHIFT


@nb.njit(nogil=True, cache=True)
def open_job(words: Any) -> Any:
    """Return the number of the job, if others can claim a piece of it, so that all of it is written; else -1."""
    found = load_acquire(words, CLAIM)
    front, back = (found >> FRONT_BITS) & ENDS, found & ENDS
    return found >> JOB_SHIFT if front < back and back > words[LEAST] else np.int64(-1)


@nb.njit(nogil=True, cache=True)
def back_of(words: Any) -> Any:
    """Return the piece behind the last one that was not claimed from the back."""
    return load_acquire(words, CLAIM) & ENDS


@nb.njit(nogil=True, cache=True)
def post_pieces(words: Any, job: Any, num_pieces: Any) -> None:
    """Begin a job of so many pieces, behind all that was written before."""
    store_release(words, CLAIM, (job << JOB_SHIFT) | num_pieces)


@nb.njit(nogil=True, cache=True)
def report_piece(words: Any, left: Any, num_bytes: Any) -> None:
    """Count a piece as done, behind all that was written for it."""
    atomic_add(words, LEFT, left)
    atomic_add(words, BYTES, num_bytes)
    atomic_add(words, DONE, 1)
