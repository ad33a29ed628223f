"""What the members of a partitioned traversal will send, from counts of a sample: expected bytes and messages of each iteration. Pure.

In: `Counted`, how many vertices each pair of members would exchange at each level, as far as vertices were looked at. Out: `Traffic`.

Vertices of one stratum were all looked at: their counts stand. Those of the other are a sample, each stands for ``weight``, so a
count of few says little about its pair. It is drawn towards what the pair's list leads one to expect, ``mu``: the count of the level
and sender, times the list, by all lists of the sender. A gamma distribution about mu with shape a gives the mean
``(Y + a) * mu / (mu + a)`` when Y were counted. A pair of which none were counted has a message with probability ``1 - exp(-expected)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocgraph.partition.message_size import HEADER_BYTES, POSITION_BYTES, bitmap_bytes
from oocgraph.types import Array

SHAPE = 8.0
"""a: pairs of one level differ from each other by about 1 / sqrt(a) = 35 % where members have dealt vertices."""

MAX_CELLS = 1 << 23
"""Levels times pairs that are counted; of more pairs a sample is, each of which stands for several."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Counted:
    """What was counted of the messages of one kind.

    Attributes
    ----------
    sure, sampled : (num_levels, num_slots) int64
        Vertices that pairs of members exchange when the frontier is that level: of the stratum that was looked at as a whole, and
        of the sample.
    weight : float
        Vertices that one of the sample stands for.
    lengths : (num_slots,) float64
        Memoised list of each pair, estimated.
    sender : (num_slots,) int64
        Of each pair.
    pair_weight : float
        Pairs that one which was counted stands for.
    """

    sure: Array
    sampled: Array
    weight: float
    lengths: Array
    sender: Array
    pair_weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Messages of one kind.

    Attributes
    ----------
    num_vertices, num_bytes, num_messages : (num_levels,) float64
        Vertices named, bytes, messages when the frontier is that level, of all members.
    """

    num_vertices: Array
    num_bytes: Array
    num_messages: Array


def expected_traffic(counted: Counted, *, parent_bytes: int) -> Traffic:
    """Return what is to be expected.

    Parameters
    ----------
    parent_bytes
        Of each parent, as in `oocgraph.partition.message_size.message_bytes`.

    Examples
    --------
    Two pairs, of which one says 3 vertices of 640, the other nothing:

    >>> one = Counted(sure=np.array([[3, 0]]), sampled=np.zeros((1, 2)), weight=1.0, lengths=np.array([640.0, 9.0]),
    ...               sender=np.array([0, 1]), pair_weight=1.0)
    >>> found = expected_traffic(one, parent_bytes=4)
    >>> found.num_vertices.tolist(), found.num_bytes.tolist(), found.num_messages.tolist()
    ([3.0], [32.0], [1.0])
    """
    rows = [_level(counted, level, parent_bytes) for level in range(counted.sure.shape[0])]
    vertices, num_bytes, messages = counted.pair_weight * np.array(rows, np.float64).reshape(-1, 3).T
    return Traffic(vertices, num_bytes, messages)


def _level(counted: Counted, level: int, parent_bytes: int) -> tuple[float, float, float]:
    sure, sampled = counted.sure[level], counted.sampled[level]
    if sampled.any():
        expected = counted.weight * _drawn_to_mean(sampled, counted.lengths, counted.sender)
        some = np.where((sure > 0) | (sampled > 0), 1.0, -np.expm1(-expected))
        count, length = sure + expected, counted.lengths
    else:
        told = np.flatnonzero(sure)
        count, length, some = sure[told], counted.lengths[told], np.ones(told.size)
    vertices, messages = float(count.sum()), float(some.sum())
    positions = float(np.minimum(POSITION_BYTES * count, bitmap_bytes_of(length)).sum())
    return vertices, HEADER_BYTES * messages + positions + parent_bytes * vertices, messages


def bitmap_bytes_of(lengths: Array) -> Array:
    """Bytes of bitmaps over lists: `bitmap_bytes` of each."""
    return np.asarray(bitmap_bytes(lengths))  # type: ignore[arg-type]  # it is arithmetic


def _drawn_to_mean(sampled: Array, lengths: Array, sender: Array) -> Array:
    """Return the expected count of each pair, given what was counted."""
    counts, lists = np.bincount(sender, weights=sampled), np.bincount(sender, weights=lengths)
    mu = (counts / np.maximum(lists, 1.0))[sender] * lengths
    return np.asarray((sampled + SHAPE) * mu / (mu + SHAPE))


def kept_pairs(num_pairs: int, num_levels: int) -> int:
    """Return of how many pairs one is counted, so that counts stay below `MAX_CELLS`.

    Examples
    --------
    >>> kept_pairs(992, 8), kept_pairs(1 << 20, 8), kept_pairs(1 << 20, 8000)
    (1, 1, 1000)
    """
    return max(1, -(-num_pairs * num_levels // MAX_CELLS))
