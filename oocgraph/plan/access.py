"""How edges that are not in device memory are taken: numbers in, a choice and its reason out. Pure.

Three ways to take a batch of rows. *Zero-copy*: the kernel reads them where they are, in pinned host memory, by lines of 128 bytes; nothing
is prepared, but the ends of rows waste parts of lines. *Gather*: host threads bring exactly the rows to staging buffers; only what is
wanted crosses the link, but the list of rows must go to the host and each row be found there. *Stream*: whole ranges are
copied as they lie; nothing is found, but all between the rows comes along.

References
----------
Min et al., "EMOGI: Efficient Memory-access for Out-of-memory Graph-traversal in GPUs", PVLDB 14(2), 2020: reads that are merged and
aligned to lines of 128 bytes use the link nearly as fully as copies do.
Sabet, Zhao, Gupta, "Subway", EuroSys 2020: gathering. Differs from both in: the choice is made for each batch, from counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

AccessKind = Literal["resident", "zero-copy", "gather", "stream"]

ROW_BYTES = 16
"""Over the link to the host for each row that is gathered: where it begins, and where its edges go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast each tier is. The defaults are of an H200's host, rounded down, and not measured; others may be given.

    Attributes
    ----------
    link_bytes_per_second
        Copies between pinned memory and the device (PCIe 5.0, 16 lanes: 63 GB/s less headers).
    zero_copy_share
        Of that, what kernels reach with aligned reads of whole lines (EMOGI: nearly all).
    gather_bytes_per_second
        Host threads copying rows to pinned memory.
    gather_rows_per_second
        Host threads finding rows: a cache miss each (about 100 ns), sixteen threads.
    disk_bytes_per_second, disk_stream_bytes_per_second
        Scattered pages read by many threads, and whole ranges.
    launch_seconds
        A launch, until the kernel's result is known on the host.
    staging_seconds
        What staging costs whatever its size: the counts and the list of rows come to the host, threads start, the first piece is
        copied before the first kernel begins.
    """

    link_bytes_per_second: float = 50e9
    zero_copy_share: float = 0.9
    gather_bytes_per_second: float = 10e9
    gather_rows_per_second: float = 100e6
    disk_bytes_per_second: float = 2e9
    disk_stream_bytes_per_second: float = 5e9
    launch_seconds: float = 20e-6
    staging_seconds: float = 200e-6


DEFAULT_RATES = Rates()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFacts:
    """What is known of a batch of rows, of which the edges are wanted that the device has not.

    Attributes
    ----------
    num_rows
        In the batch.
    wanted_bytes
        Of their edges.
    line_bytes
        Of the distinct lines of 128 bytes that these lie in.
    in_host_memory
        Whether all of them are in pinned host memory.
    disk_bytes
        What gathering them would read from disk, whole pages; None: as much as is wanted. Not looked at where they are in host memory.
    range_bytes
        From the first of them to the last, with all between; None where ranges cannot be streamed.
    """

    num_rows: int
    wanted_bytes: int
    line_bytes: int
    in_host_memory: bool
    disk_bytes: int | None = None
    range_bytes: int | None = None


class Projection(NamedTuple):
    """What a way to take a batch would move and take."""

    link_bytes: int
    disk_bytes: int
    seconds: float


class Access(NamedTuple):
    """The way to take a batch, what it is projected to move, and why it was chosen."""

    kind: AccessKind
    reason: str
    projection: Projection


def choose_access(facts: AccessFacts, rates: Rates = DEFAULT_RATES) -> Access:
    """Choose the way that is projected to take the least time; of equals the one that prepares less.

    Examples
    --------
    Few rows are read where they are; scattered ones, of which lines are mostly waste, are gathered.

    >>> choose_access(AccessFacts(num_rows=10, wanted_bytes=2560, line_bytes=3840, in_host_memory=True)).kind
    'zero-copy'
    >>> wide = AccessFacts(num_rows=10**6, wanted_bytes=4 * 10**6, line_bytes=128 * 10**8, in_host_memory=True)
    >>> choose_access(wide).kind
    'gather'
    >>> choose_access(AccessFacts(num_rows=0, wanted_bytes=0, line_bytes=0, in_host_memory=False)).kind
    'resident'
    """
    if not facts.wanted_bytes:
        return Access("resident", "nothing is wanted that is not in device memory", Projection(0, 0, 0.0))
    ways = projections(facts, rates)
    kind = min(ways, key=lambda way: ways[way].seconds)
    told = ", ".join(f"{way} {_told(ways[way])}" for way in ways)
    where = "host memory" if facts.in_host_memory else "disk"
    return Access(kind, f"{kind}: {facts.num_rows} rows want {facts.wanted_bytes:.3g} B of {where}: {told}", ways[kind])


def projections(facts: AccessFacts, rates: Rates = DEFAULT_RATES) -> dict[AccessKind, Projection]:
    """Return what each way that is possible would cost, the one that prepares least first.

    The stages of staging overlap, so that the slowest counts; the list of rows comes before them.

    Examples
    --------
    >>> facts = AccessFacts(num_rows=10, wanted_bytes=4000, line_bytes=5120, in_host_memory=False, disk_bytes=40960)
    >>> {kind: (way.link_bytes, way.disk_bytes) for kind, way in projections(facts).items()}
    {'gather': (4160, 40960)}
    """
    link, wanted = rates.link_bytes_per_second, facts.wanted_bytes
    ways: dict[AccessKind, Projection] = {}
    if facts.in_host_memory:
        seconds = rates.launch_seconds + facts.line_bytes / (rates.zero_copy_share * link)
        ways["zero-copy"] = Projection(facts.line_bytes, 0, seconds)
    if facts.range_bytes is not None:
        disk = 0 if facts.in_host_memory else facts.range_bytes
        slowest = max(facts.range_bytes / link, disk / rates.disk_stream_bytes_per_second)
        ways["stream"] = Projection(facts.range_bytes, disk, rates.staging_seconds + slowest)
    disk = 0 if facts.in_host_memory else wanted if facts.disk_bytes is None else facts.disk_bytes
    found = facts.num_rows / rates.gather_rows_per_second + wanted / rates.gather_bytes_per_second
    slowest = max(found, wanted / link, disk / rates.disk_bytes_per_second)
    listed = ROW_BYTES * facts.num_rows
    ways["gather"] = Projection(wanted + listed, disk, rates.staging_seconds + listed / link + slowest)
    return ways


def _told(way: Projection) -> str:
    disk = f" and {way.disk_bytes:.3g} B from disk" if way.disk_bytes else ""
    return f"moves {way.link_bytes:.3g} B over the link{disk} in {1e3 * way.seconds:.3g} ms"
