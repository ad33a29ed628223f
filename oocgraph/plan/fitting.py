"""Does a partition fit the workers' memory, and if not, what to do. Pure: bytes in, verdict and reason out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from oocgraph.memory import format_bytes

Fits = Literal["yes", "edges on disk", "no"]
"""All is held; all but edges, which are read in each search; not even that."""


class Verdict(NamedTuple):
    """Whether it fits, and what to do."""

    fits: Fits
    advice: str


def check_fit(memory_bytes: int, resident_bytes: int, least_bytes: int, others: Mapping[int, tuple[int, int]]) -> Verdict:
    """Compare what a worker needs with what it may hold.

    Parameters
    ----------
    memory_bytes
        Of each worker.
    resident_bytes, least_bytes
        That it needs with all its edges in memory, and with none.
    others
        The same by numbers of workers that were looked at.

    Examples
    --------
    >>> check_fit(4 << 30, 2 << 30, 1 << 30, {}).fits
    'yes'
    >>> check_fit(1 << 30, 2 << 30, 1 << 29, {4: (2 << 30, 1 << 29), 16: (1 << 29, 1 << 28)}).advice
    'edges are read from disk in each search; 16 workers hold all, or memory_budget 2048M'
    """
    if resident_bytes <= memory_bytes:
        return Verdict("yes", f"all is held, {format_bytes(memory_bytes - resident_bytes)} of a worker's memory are left")
    if least_bytes <= memory_bytes:
        enough = min((number for number, (needed, _) in others.items() if needed <= memory_bytes), default=None)
        more = "" if enough is None else f"{enough:,} workers hold all, or "
        return Verdict("edges on disk", f"edges are read from disk in each search; {more}memory_budget {_megabytes(resident_bytes)}")
    enough = min((number for number, (_, least) in others.items() if least <= memory_bytes), default=None)
    more = "more workers may do" if enough is None else f"{enough:,} workers would do"
    return Verdict("no", f"it needs memory_budget {_megabytes(least_bytes)} at the least, {_megabytes(resident_bytes)} to hold all; {more}")


def _megabytes(num_bytes: int) -> str:
    return f"{-(-num_bytes >> 20)}M"
