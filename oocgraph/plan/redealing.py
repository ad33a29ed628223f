"""Which shares of the edges the workers of an opened graph should own: numbers in, a choice and its reason out. Pure.

Workers may be unequal: other processors, a GPU beside none, other programs on the machine. Shares of the edges are equal at first, and stay
for a whole search (semi-static). What the searches since then have measured decides whether the next one begins with others: where the
busiest worker worked more than `MOST_IMBALANCE` times the mean, shares become proportional to speed, the edges that a worker owns a second
of its work. Not all work is proportional to edges owned (a push reads the rows of the whole frontier everywhere), so this is measured
again, and done again as long as it helps and pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oocgraph.partition.balance import imbalance

MOST_IMBALANCE = 1.25
"""Busiest worker over the mean above which shares are dealt again: with equal work the busiest would be done a fifth earlier.
Two equal worker processes on two cores, beside other programs: at most 1.12 (12 searches of a Kronecker graph of scale 19)."""

LEAST_BUSY_SECONDS = 0.2
"""Mean work of a worker below which nothing is concluded: a search of some milliseconds measures what else the machine does."""

SHARES_PER_PARTITION = 16
"""Parts into which the mean share is divided: a share is exact to 6 % of it, a quarter of what `MOST_IMBALANCE` allows."""

LEAST_GAIN = 0.05
"""Part of the imbalance beyond 1 by which it must have fallen, if the same worker is the busiest, for shares to be dealt yet again."""


@dataclass(frozen=True, slots=True)
class Dealing:
    """How shares came to be dealt again.

    Attributes
    ----------
    busiest
        Partition whose worker was the busiest.
    imbalance
        Busiest worker over the mean, with the shares before.
    seconds
        What loading the partitions again took.
    """

    busiest: int
    imbalance: float
    seconds: float


@dataclass(frozen=True, slots=True)
class SharesChoice:
    """Shares of partitions, as parts of their sum (None: equal ones), and why."""

    shares: tuple[int, ...] | None
    reason: str


def choose_shares(
    *, edges: Sequence[int], busy_seconds: Sequence[float], shares: tuple[int, ...] | None, last: Dealing | None
) -> SharesChoice:
    """Choose the shares of the next search; each worker has one partition.

    Parameters
    ----------
    edges, busy_seconds
        Edges that each partition owns; work of its worker in the searches since they were dealt.
    shares
        Those in use.
    last
        How they were dealt; None: at first.
    """
    found, mean = imbalance(busy_seconds), sum(busy_seconds) / len(busy_seconds)
    words = f"busiest worker {found:.2f} times the mean"
    if len(edges) < 2:
        return SharesChoice(shares, "kept: there is one worker")
    if mean < LEAST_BUSY_SECONDS:
        return SharesChoice(shares, f"kept: less than {LEAST_BUSY_SECONDS:g} s of work of each worker was measured")
    if found <= MOST_IMBALANCE:
        return SharesChoice(shares, f"kept: {words}, at most {MOST_IMBALANCE:g}")
    if last is not None and not _helps(busy_seconds, last):
        return SharesChoice(shares, f"kept: {words}, and {last.imbalance:.2f} with the shares before, so others would not help")
    if last is not None and max(busy_seconds) - mean < last.seconds:
        return SharesChoice(shares, f"kept: {words}, but dealing again takes {last.seconds:.2g} s and would not have paid yet")
    speed = [owned / max(busy, 1e-9) for owned, busy in zip(edges, busy_seconds, strict=True)]
    parts = in_parts(speed)
    wanted = parts if len(set(parts)) > 1 else None
    if wanted == shares:
        return SharesChoice(shares, f"kept: {words}, but these are the shares by measured edges a second")
    return SharesChoice(wanted, f"dealt again by measured edges a second: {words}, above {MOST_IMBALANCE:g}")


def _helps(busy_seconds: Sequence[float], last: Dealing) -> bool:
    """Whether the last dealing has helped: the worker that was the busiest then is not now, or is so by less."""
    is_same = busy_seconds[last.busiest] >= max(busy_seconds)
    return not is_same or imbalance(busy_seconds) - 1 <= (1 - LEAST_GAIN) * (last.imbalance - 1)


def in_parts(weights: Sequence[float]) -> tuple[int, ...]:
    """Return whole numbers in proportion to weights, `SHARES_PER_PARTITION` for each on average, and at least 1.

    Examples
    --------
    >>> in_parts([3.0, 1.0]), in_parts([1.0, 0.0, 1.0])
    ((24, 8), (24, 1, 24))
    """
    unit = sum(weights) / (SHARES_PER_PARTITION * len(weights))
    return tuple(max(1, round(weight / unit)) for weight in weights)
