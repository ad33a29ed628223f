"""How evenly shares are dealt; imports nothing, so that plans and the command line may ask."""

from __future__ import annotations

from collections.abc import Sequence


def imbalance(shares: Sequence[float]) -> float:
    """Return the largest of some shares, as a multiple of their mean: 1 when all are equal, or there are none.

    Examples
    --------
    >>> imbalance([1.0, 3.0]), imbalance([]), imbalance([0.0, 0.0])
    (1.5, 1.0, 1.0)
    """
    total = sum(shares)
    return max(shares) * len(shares) / total if total > 0 else 1.0
