"""How many vertices have which value: what a plot draws, and what a command shows before anything else.

In: values, in parts, so that nothing is made of all vertices at once. Out: a `Histogram` of at most so many bins. Two passes: the first
finds the least, the largest and the mean value, from which bins follow; the second counts. Bins are of equal width, a round number; where
values are heavy-tailed, each is as wide as all below it together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np

from oocgraph.text import format_number
from oocgraph.types import Array

PART_VALUES = 1 << 18
"""Values looked at together."""

HEAVY_TAIL = 30
"""Values are heavy-tailed whose largest is more than so many times the mean: of a million exponential ones it is 14 times."""

LOG_BINS = 40
"""Bins of heavy-tailed fractions."""

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""Ends of what edges of whole numbers may be."""

LEAST_SPAN, TINY = 1e-9, 1e-290
"""Span of the bins of fractions, at least: so much of the largest, and so much."""

Parts = Callable[[], Iterator[Array]]
"""Makes the values, in parts; they are asked for twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts of values in bins.

    Attributes
    ----------
    name
        What is counted by, such as ``level``.
    things
        What is counted, such as ``vertices``.
    edges : (num_bins + 1,) int64 or float64
        A bin has values from its edge up to the next one, without that.
    counts : (num_bins,) int64
    is_log
        Whether bins grow, because values are heavy-tailed.
    """

    name: str
    things: str
    edges: Array
    counts: Array
    is_log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether values are integers."""
        return self.edges.dtype.kind == "i"

    def labels(self) -> list[str]:
        """Return the values of each bin as text.

        Examples
        --------
        >>> Histogram("level", "vertices", np.array([0, 1, 2, 4]), np.array([1, 9, 3])).labels()
        ['0', '1', '2 - 3']
        """
        if self.is_whole:
            ends = zip(self.edges[:-1].tolist(), (self.edges[1:] - 1).tolist(), strict=True)
            return [f"{low:,}" if low == high else f"{low:,} - {high:,}" for low, high in ends]
        texts = [format_number(edge, 3) for edge in self.edges.tolist()]
        return [f"{low} - {high}" for low, high in pairwise(texts)]


def make_histogram(parts: Parts, *, name: str, things: str, max_bins: int, may_grow: bool = True) -> Histogram:
    """Count finite values in at most `max_bins` bins, two or more, which grow only if they may; of no values there are none."""
    size, total, low, high, is_whole = 0, 0.0, np.inf, -np.inf, True
    for part in parts():
        if part.size:
            size, total = size + part.size, total + float(part.sum(dtype=np.float64))
            low, high, is_whole = min(low, part.min().item()), max(high, part.max().item()), part.dtype.kind in "iu"
    if not size:
        return Histogram(name, things, np.zeros(1, np.int64), np.zeros(0, np.int64))
    is_log = bool(may_grow and low >= 0 and high > HEAVY_TAIL * total / size and high - low >= (max_bins if is_whole else TINY))
    edges = (_growing_edges if is_log else _even_edges)(low, high, max_bins, is_whole=is_whole)
    if is_whole:
        edges[-1] = min(high + 1, LARGEST)
    counts, first = np.zeros(edges.size - 1, np.int64), int(edges[0])
    is_even = is_whole and not is_log and first > SMALLEST and high - first <= LARGEST
    for part in parts():
        counts += np.bincount(_bins_of(part, edges, is_even=is_even), minlength=counts.size)
    return Histogram(name, things, edges, counts, is_log)


def _bins_of(values: Array, edges: Array, *, is_even: bool) -> Array:
    """Return the bin of each value; the last one has its upper edge, too."""
    if is_even:
        return np.asarray((values.astype(np.int64) - edges[0]) // (edges[1] - edges[0]))
    return np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)


def sizes_bytes(num_rows: int) -> int:
    """Return what `sizes_of_groups` and `group_sizes` hold: 4 bytes for each vertex, or 8 where sizes may be larger."""
    return num_rows * (4 if num_rows < 2**32 else 8)


def sizes_of_groups(member_of: Array, num_alone: int) -> Parts:
    """Return the sizes of groups, given the one that each vertex is in; `num_alone` more are of one vertex.

    Notes
    -----
    Holds `sizes_bytes`.
    """
    every = with_others(group_sizes(member_of), 1, member_of.size + num_alone)
    return lambda: (part[part > 0] for part in every())


def group_sizes(member_of: Array) -> Array:
    """Return how many vertices are in the group that is named after each vertex: (num_vertices,) uint32, or int64 of 2**32 and more."""
    sizes = np.zeros(member_of.size, np.uint32 if member_of.size < 2**32 else np.int64)
    for part in in_parts(member_of):
        np.add.at(sizes, part, 1)
    return sizes


def with_others(values: Array, value: float, size: int) -> Parts:
    """Return values and as many times another one as there must be to have `size`: that of vertices without edges."""

    def parts() -> Iterator[Array]:
        yield from in_parts(values)
        for start in range(values.size, size, PART_VALUES):
            yield np.full(min(PART_VALUES, size - start), value, values.dtype)

    return parts


def in_parts(values: Array) -> Iterator[Array]:
    """Cut an array, or what is indexed like one, into parts."""
    for start in range(0, values.size, PART_VALUES):
        yield values[start : start + PART_VALUES]


def finite(values: Array) -> Array:
    """Return those of some values that are finite; of bools 0 and 1."""
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    return np.asarray(values[np.isfinite(values)]) if values.dtype.kind == "f" else values


def _even_edges(low: float, high: float, max_bins: int, *, is_whole: bool) -> Array:
    """Return edges whose distance is 1, 2 or 5 times a power of ten, and the first a multiple of it."""
    differ = LEAST_SPAN * max(-low, high), TINY  # spans of which multiples of a fraction differ
    span = high - low + 1 if is_whole else max(high - low or abs(high) or 1.0, *differ)
    power = 10.0 ** np.floor(np.log10(max(1.0, span / max_bins) if is_whole else span / max_bins))
    widths = (factor * power * 10**more for more in count() for factor in (1, 2, 5))
    if is_whole:  # in whole numbers: fractions have 53 bits
        least, most = int(low), int(high)
        step = next(int(width) for width in widths if most // int(width) - least // int(width) < max_bins)
        ends = (step * multiple for multiple in range(least // step, most // step + 2))
        return np.array([min(max(end, SMALLEST), LARGEST) for end in ends], np.int64)
    width = next(width for width in widths if np.floor(high / width) - np.floor(low / width) < max_bins)
    edges = np.asarray(width * np.arange(np.floor(low / width), np.floor(high / width) + 2))
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)  # a multiple may be rounded to the other side of them
    return edges


def _growing_edges(low: float, high: float, max_bins: int, *, is_whole: bool) -> Array:
    """Return edges that are powers of two, or of ten if these are too many, zero alone; of fractions, at equal ratios."""
    if not is_whole:
        edges = np.geomspace(low or high * 1e-9, high, min(LOG_BINS, max_bins) + 1)
        edges[0], edges[-1] = low, np.nextafter(high, np.inf)
        return edges
    base = 2 if np.log2(high) + 2 <= max_bins else 10
    last = 1
    powers = [0] * (low < 1) + [1]
    while last <= high:
        last *= base
        powers.append(min(last, LARGEST))
    edges = np.array(powers, np.int64)
    first = int(np.searchsorted(edges, low, side="right")) - 1
    return np.array(edges[first:])
