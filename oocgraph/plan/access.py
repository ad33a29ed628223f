"""How edges that are not in device memory are taken: numbers in, a choice and its reason out. Pure.

Two ways to take a batch of rows. *Zero-copy*: the kernel reads them where they are, in pinned host memory, by lines of 128 bytes; nothing
is prepared, but the ends of rows waste parts of lines. *Gather*: host threads bring exactly the rows to staging buffers; only what is
wanted crosses the link, but the list of rows must go to the host and each row be found there.

References
----------
Min et al., "EMOGI: Efficient Memory-access for Out-of-memory Graph-traversal in GPUs", PVLDB 14(2), 2020: reads that are merged and
aligned to lines of 128 bytes use the link nearly as fully as copies do.
Sabet, Zhao, Gupta, "Subway", EuroSys 2020: gathering. Differs from both in: the choice is made for each batch, from counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

AccessKind = Literal["resident", "zero-copy", "gather"]

ROW_BYTES = 16
"""Over the link to the host for each row that is gathered: where it begins, and where its edges go."""

LINK_BYTES_PER_SECOND = 50e9
"""Copies between pinned memory and the device: PCIe 5.0 with 16 lanes (63 GB/s less headers), rounded down. Like all below not measured."""

ZERO_COPY_SHARE = 0.9
"""Share of the link that kernels reach with aligned reads of whole lines (EMOGI: nearly all)."""

GATHER_BYTES_PER_SECOND = 10e9
"""Host threads copying rows to pinned memory."""

GATHER_ROWS_PER_SECOND = 100e6
"""Sixteen host threads finding rows: a cache miss each (about 100 ns)."""

DISK_BYTES_PER_SECOND = 2e9
"""Scattered pages read by many threads."""

LAUNCH_SECONDS = 20e-6
"""From a launch until the kernel's result is known on the host."""

STAGING_SECONDS = 200e-6
"""What staging costs whatever its size: the counts and the list of rows come to the host, threads start, the first piece is copied before
the first kernel begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFacts:
    """What is known of a batch of rows, some of whose edges are not on the device.

    Attributes
    ----------
    num_rows
        Rows in the batch.
    wanted_bytes
        Bytes of the edges that are not on the device.
    line_bytes
        Bytes of the distinct lines of 128 bytes that these lie in.
    in_host_memory
        Whether all of them are in pinned host memory.
    """

    num_rows: int
    wanted_bytes: int
    line_bytes: int
    in_host_memory: bool


class Projection(NamedTuple):
    """What a way to take a batch would move over the link, and the time it would take."""

    link_bytes: int
    seconds: float


class Access(NamedTuple):
    """The way to take a batch, and why it was chosen."""

    kind: AccessKind
    reason: str


def choose_access(facts: AccessFacts) -> Access:
    """Choose the way that is projected to take the least time; of equals the one that prepares less.

    Examples
    --------
    TinyLimits rows are read where they are; scattered ones, of which lines are mostly waste, are gathered.

    >>> choose_access(AccessFacts(num_rows=10, wanted_bytes=2560, line_bytes=3840, in_host_memory=True)).kind
    'zero-copy'
    >>> wide = AccessFacts(num_rows=10**6, wanted_bytes=4 * 10**6, line_bytes=128 * 10**8, in_host_memory=True)
    >>> choose_access(wide).kind
    'gather'
    >>> choose_access(AccessFacts(num_rows=0, wanted_bytes=0, line_bytes=0, in_host_memory=False)).kind
    'resident'
    """
    if not facts.wanted_bytes:
        return Access("resident", "nothing is wanted that is not in device memory")
    ways = projections(facts)
    kind = min(ways, key=lambda way: ways[way].seconds)
    costs = ", ".join(f"{way} moves {one.link_bytes:.3g} B over the link in {1e3 * one.seconds:.3g} ms" for way, one in ways.items())
    where = "host memory" if facts.in_host_memory else "disk"
    return Access(kind, f"{kind}: {facts.num_rows} rows want {facts.wanted_bytes:.3g} B of {where}: {costs}")


def pull_access(num_rows: int) -> Access:
    """Return how a pull takes rows whose edges are all in host memory: kernels read them there, and stop at the first hit.

    Nothing is counted beforehand, because no count would change it: a line of a row takes 3 ns of the link, finding a row to gather 10 ns;
    and a byte of a line takes a quarter of the time of a byte that is gathered.

    Examples
    --------
    >>> pull_access(7).reason
    'zero-copy: 7 rows, read in host memory line by line until a neighbour is in the frontier'
    """
    return Access("zero-copy", f"zero-copy: {num_rows} rows, read in host memory line by line until a neighbour is in the frontier")


def projections(facts: AccessFacts) -> dict[AccessKind, Projection]:
    """Return what each way that is possible would cost, the one that prepares least first.

    The stages of staging overlap, so that the slowest counts; the list of rows comes before them.

    Examples
    --------
    >>> facts = AccessFacts(num_rows=10, wanted_bytes=4000, line_bytes=5120, in_host_memory=False)
    >>> {kind: way.link_bytes for kind, way in projections(facts).items()}
    {'gather': 4160}
    """
    ways: dict[AccessKind, Projection] = {}
    if facts.in_host_memory:
        seconds = LAUNCH_SECONDS + facts.line_bytes / (ZERO_COPY_SHARE * LINK_BYTES_PER_SECOND)
        ways["zero-copy"] = Projection(facts.line_bytes, seconds)
    wanted, listed = facts.wanted_bytes, ROW_BYTES * facts.num_rows
    found = facts.num_rows / GATHER_ROWS_PER_SECOND + wanted / GATHER_BYTES_PER_SECOND
    read = 0.0 if facts.in_host_memory else wanted / DISK_BYTES_PER_SECOND
    slowest = max(found, wanted / LINK_BYTES_PER_SECOND, read)
    ways["gather"] = Projection(wanted + listed, STAGING_SECONDS + listed / LINK_BYTES_PER_SECOND + slowest)
    return ways
