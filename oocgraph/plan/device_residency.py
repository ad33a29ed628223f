"""Which part of the graph a GPU worker holds in device memory, and which in pinned host memory. Pure; decided before anything is read.

In: sizes of the graph and the bytes that both budgets leave. Out: `DeviceResidency`, or BudgetError with the smallest budget that works.

Vertex state, row lookup and room for a batch of rows must be on the device. Of the rest the same holds as in `oocgraph.plan.residency`: all
edges and planes where they fit; planes first where degrees differ widely; the first edges (the hubs' rows) otherwise. What is not on
the device comes over the link, from pinned host memory as far as the host's budget goes, from disk behind that.

Notes
-----
Not charged: CUDA's context and the compiled kernels (a few hundred MiB), and on the host what reading threads hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from oocgraph.errors import BudgetError
from oocgraph.memory import enough_memory, format_bytes
from oocgraph.plan.residency import ROAD_DEGREE, SKEWED, GraphSizes
from oocgraph.types import PAGE_BYTES

PLANE_ALIGNMENT = 32
"""Entries at whose multiples planes begin on the device, so that a warp's reads are whole lines (as in `oocgraph.kernels.gpu`)."""

TILE_WORDS = 256
"""Words of 32 bits of a bitmap of which each prefix sum keeps one entry (as in ``kernels/cuda/subgraph.cu``)."""

MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 24
"""Rows in a batch: 65,536 fill a large GPU (132 multiprocessors with 2,048 threads) a quarter with a thread each; above 16 M nothing is
gained by fewer batches."""

ROW_SHARE, STAGING_SHARE = 1 / 16, 1 / 16
"""Shares of what the least leaves of device memory, for larger batches and larger buffers: what they take is missing for planes."""

MIN_BUFFER_BYTES, MAX_BUFFER_BYTES = 1 << 20, 64 << 20
"""One staging buffer: a copy of 1 MiB takes about as long as it takes to start it ten times over; 64 MiB are a millisecond on the link."""

NUM_BUFFERS = 3
"""One is filled by host threads, one copied, one processed."""

FIXED_BYTES = 2 << 20
"""On the device counters, queues and log of tiny levels (0.4 MiB) and what the allocator rounds up (512 bytes an array)."""

HOST_FIXED_BYTES = 5 << 20
"""Pinned memory through which counters, sources, bitmaps and results pass (4.1 MiB; `oocgraph.engine.transfers`)."""

HOST_SHARE = 1 / 4
"""The same share of host memory, for each of the two; the rest holds edges."""

HOST_ROW_BYTES = 16
"""Of a row whose edges host threads gather: where it begins, and where its edges go."""

NUM_RESULTS = 2
"""Results that stay in the page-locked memory that the device has written them to: the one that the caller has still, and the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceResidency:
    """What is where.

    Attributes
    ----------
    num_planes
        Planes on the device.
    num_resident
        First edges on the device, per group.
    num_host
        First edges in pinned host memory, per group, counted from the first as those on the device are; 0 where that would add none.
    row_capacity
        Rows in a batch.
    num_results, result_bytes
        Results that have room in pinned host memory, and the room of each; none of a partition.
    num_buffers, buffer_bytes
        Staging buffers on the device, and as many of pinned host memory.
    road
        Whether the degrees are alike and low, as in graphs of high diameter: levels are then 32 bits from the start.
    state_bytes, lookup_bytes, subgraph_bytes, staging_bytes, plane_bytes, resident_bytes
        What each takes on the device; `state_bytes` with what is fixed, `subgraph_bytes` is the batch of rows and its prefix sums.
    host_staging_bytes, host_result_bytes, host_edge_bytes
        Pinned host memory.
    """

    num_planes: int
    num_resident: tuple[int, ...]
    num_host: tuple[int, ...]
    row_capacity: int
    num_results: int
    result_bytes: int
    num_buffers: int
    buffer_bytes: int
    road: bool
    state_bytes: int
    lookup_bytes: int
    subgraph_bytes: int
    staging_bytes: int
    plane_bytes: int
    resident_bytes: int
    host_staging_bytes: int
    host_edge_bytes: int

    @property
    def host_result_bytes(self) -> int:
        """Pinned memory of results."""
        return self.num_results * self.result_bytes

    @property
    def device_bytes(self) -> int:
        """All that is charged to the budget of device memory."""
        on_device = self.state_bytes + self.lookup_bytes + self.subgraph_bytes
        return on_device + self.staging_bytes + self.plane_bytes + self.resident_bytes

    @property
    def host_bytes(self) -> int:
        """All that is charged to the host's budget."""
        return self.host_staging_bytes + self.host_result_bytes + self.host_edge_bytes


def plan_device_residency(
    sizes: GraphSizes,
    *,
    available_bytes: int,
    limit_bytes: int,
    host_available_bytes: int,
    host_limit_bytes: int,
    max_planes: int | None = None,
    max_host_edges: int | None = None,
    max_results: int | None = None,
    shares: int = 1,
) -> DeviceResidency:
    """Divide what is available of both memories.

    Parameters
    ----------
    sizes
        Of the graph.
    available_bytes, host_available_bytes
        What may still be taken of each memory.
    limit_bytes, host_limit_bytes
        The budgets that this is left of, for messages.
    max_planes
        Planes at most; by default as many as are stored, where they pay and fit.
    max_host_edges
        Edges in pinned host memory at most, over all groups; by default as many as fit.
    max_results
        Results that have pinned memory at most; by default `NUM_RESULTS`.
    shares
        Into how many equal shares the device memory is divided, of which this is one.

    Raises
    ------
    BudgetError
        Either budget is too small for what must be held; the message names the smallest that works.
    """
    _check_budgets(sizes, available_bytes, limit_bytes, host_available_bytes, host_limit_bytes, shares)
    n, item, all_edges = sizes.num_vertices, sizes.itemsize, sum(sizes.num_edges)
    left, host_left = available_bytes - least_bytes(sizes), host_available_bytes - host_least_bytes(sizes)
    road = sizes.skew < SKEWED and sizes.num_edges[-1] < ROAD_DEGREE * n
    result = n * (item + (4 if road else 1)) if sizes.num_owned is None else 0
    most = NUM_RESULTS if max_results is None else max_results
    num_results = min(most, int(HOST_SHARE * host_left / result)) if result and host_left > 0 else 0
    host_left -= num_results * result
    planes = aligned_plane_edges(sizes.plane_edges if max_planes is None else sizes.plane_edges[: max_planes + 1])
    buffer, rows, resident = MIN_BUFFER_BYTES, fewest_rows(sizes), (0,) * len(sizes.num_edges)
    if all_resident := all_edges * item <= left:
        resident = sizes.num_edges
    else:
        buffer = _buffer_within(min(STAGING_SHARE * left, HOST_SHARE * host_left))
        rows = _rows_within(sizes, ROW_SHARE * left, HOST_SHARE * host_left)
        left -= NUM_BUFFERS * (buffer - MIN_BUFFER_BYTES) + subgraph_bytes(n, item, rows) - subgraph_bytes(n, item, fewest_rows(sizes))
    left -= sum(resident) * item
    wanted = planes if all_resident or max_planes is not None or sizes.skew >= SKEWED else planes[:1]
    num_planes = max(k for k, edges in enumerate(wanted) if edges * item <= left)
    left -= planes[num_planes] * item
    if all_resident:
        rows = _rows_within(sizes, left, float("inf"))  # which none comes to the host of
    else:
        resident = tuple(whole_pages(edges * left // (all_edges * item), edges, item) for edges in sizes.num_edges)
    host_staging = HOST_FIXED_BYTES + NUM_BUFFERS * buffer + (0 if all_resident else HOST_ROW_BYTES * rows)
    host_bytes = host_available_bytes - host_staging - num_results * result
    host = _host_edges(sizes, resident, host_bytes if max_host_edges is None else min(host_bytes, max_host_edges * item))
    return DeviceResidency(
        num_planes=num_planes,
        num_resident=resident,
        num_host=host,
        row_capacity=rows,
        num_results=num_results,
        result_bytes=result,
        num_buffers=NUM_BUFFERS,
        buffer_bytes=buffer,
        road=road,
        state_bytes=state_bytes(sizes),
        lookup_bytes=sizes.lookup_bytes,
        subgraph_bytes=subgraph_bytes(n, item, rows),
        staging_bytes=NUM_BUFFERS * buffer,
        plane_bytes=planes[num_planes] * item,
        resident_bytes=sum(resident) * item,
        host_staging_bytes=host_staging,
        host_edge_bytes=sum(host) * item,
    )


def state_bytes(sizes: GraphSizes) -> int:
    """Device bytes of one search: parents, levels (room for int32), bitmaps; and what is fixed.

    Of a whole graph five bitmaps (frontier, visited, undecided, those rows are listed of, found); of a partition the last four at its own
    positions, and over all vertices the frontier, what may not be found, what has been, what is owned and how many are before.

    Examples
    --------
    >>> sizes = GraphSizes(num_vertices=640, itemsize=4, num_edges=(9,), lookup_bytes=24, plane_edges=(0,), skew=0.0)
    >>> state_bytes(sizes) - FIXED_BYTES == 640 * 8 + 5 * 80
    True
    """
    bitmap = _bitmap_bytes(sizes.num_vertices)
    if sizes.num_owned is None:
        return FIXED_BYTES + sizes.num_vertices * (sizes.itemsize + 4) + 5 * bitmap
    rank = bitmap // 8 * sizes.itemsize
    return FIXED_BYTES + sizes.num_owned * (sizes.itemsize + 4) + 4 * _bitmap_bytes(sizes.num_owned) + 4 * bitmap + rank


def subgraph_bytes(num_vertices: int, itemsize: int, row_capacity: int) -> int:
    """Device bytes of a batch of rows: vertex, start, offset; and of the entries of the prefix sums that list it."""
    num_words = _bitmap_bytes(num_vertices) // 4
    return 8 * (1 + 3 * -(-num_words // TILE_WORDS)) + row_capacity * (itemsize + 16) + 8


def aligned_plane_edges(plane_edges: tuple[int, ...]) -> tuple[int, ...]:
    """Entries that planes 0 .. k - 1 take on the device, each up to a multiple of `PLANE_ALIGNMENT`.

    Examples
    --------
    >>> aligned_plane_edges((0, 40, 43))
    (0, 64, 96)
    """
    total, out = 0, [0]
    for before, behind in pairwise(plane_edges):
        total += -(-(behind - before) // PLANE_ALIGNMENT) * PLANE_ALIGNMENT
        out.append(total)
    return tuple(out)


def fewest_rows(sizes: GraphSizes) -> int:
    """Rows that a batch has at least: all vertices of a small graph."""
    return max(1, min(MIN_ROWS, sizes.num_vertices))


def least_bytes(sizes: GraphSizes) -> int:
    """Device bytes without which no search runs."""
    batch = subgraph_bytes(sizes.num_vertices, sizes.itemsize, fewest_rows(sizes))
    return state_bytes(sizes) + sizes.lookup_bytes + batch + NUM_BUFFERS * MIN_BUFFER_BYTES


def host_least_bytes(sizes: GraphSizes) -> int:
    """Pinned host bytes without which no search runs."""
    return HOST_FIXED_BYTES + NUM_BUFFERS * MIN_BUFFER_BYTES + HOST_ROW_BYTES * fewest_rows(sizes)


def _check_budgets(sizes: GraphSizes, available: int, limit: int, host_available: int, host_limit: int, shares: int) -> None:
    least, fewest = least_bytes(sizes), fewest_rows(sizes)
    batch = subgraph_bytes(sizes.num_vertices, sizes.itemsize, fewest)
    if least > available:
        vertices = sizes.num_vertices if sizes.num_owned is None else sizes.num_owned
        each = f", in each of {shares} partitions" if shares > 1 else ""
        raise BudgetError(
            f"the device memory budget {format_bytes(limit)} is too small: the state of {vertices:,} vertices takes "
            f"{format_bytes(state_bytes(sizes))}, the row lookup {format_bytes(sizes.lookup_bytes)}, a batch of {fewest:,} rows "
            f"{format_bytes(batch)}, staging {format_bytes(NUM_BUFFERS * MIN_BUFFER_BYTES)}{each}, and "
            f"{format_bytes(limit - shares * available)} are in use already; set device_memory_budget to at least "
            f"{-(-(limit + shares * (least - available)) >> 20)}M"
        )
    check_host("a search", host_least_bytes(sizes), host_available, host_limit)


def check_host(what: str, least: int, available: int, limit: int, shares: int = 1) -> None:
    """Refuse a budget of host memory of which each of some equal shares leaves too little for page-locked staging.

    Raises
    ------
    BudgetError
        It does; the message names the smallest that works.
    """
    if least > available:
        raise BudgetError(
            f"the memory budget {format_bytes(limit)} is too small for {what} on a GPU: page-locked staging takes "
            f"{format_bytes(least)}{in_each(shares)}, and {format_bytes(max(0, shares * available))} are left; "
            f"{enough_memory(limit + shares * (least - available))}"
        )


def in_each(shares: int) -> str:
    """Say in a message that so much is needed in each of some equal shares, if there are several."""
    return f" in each of {shares} equal shares" if shares > 1 else ""


def _bitmap_bytes(num_vertices: int) -> int:
    """Return the bytes of a bitmap, whole words of 64 bits."""
    return 8 * max(1, -(-num_vertices // 64))


def _buffer_within(num_bytes: float) -> int:
    """Return the size of a buffer, in whole MiB, where all take at most `num_bytes` more than the smallest."""
    return min(MAX_BUFFER_BYTES, MIN_BUFFER_BYTES + (int(num_bytes / NUM_BUFFERS) >> 20 << 20))


def _rows_within(sizes: GraphSizes, num_bytes: float, host_bytes: float) -> int:
    """Return the rows of a batch that takes at most so many bytes more than the smallest one, on the device and on the host."""
    more = min((num_bytes - 8) / (sizes.itemsize + 16), host_bytes / HOST_ROW_BYTES)
    return min(fewest_rows(sizes) + max(0, int(more)), max(1, min(MAX_ROWS, sizes.num_vertices)))


def whole_pages(count: int, edges: int, itemsize: int) -> int:
    """Return the first edges that are held where there is room for `count`: all, or whole pages, so that their checksums tell of each."""
    per_page = PAGE_BYTES // itemsize
    return edges if count >= edges else count // per_page * per_page


def _host_edges(sizes: GraphSizes, resident: tuple[int, ...], num_bytes: int) -> tuple[int, ...]:
    """Return the first edges of each group that pinned host memory holds: all, or an equal share of each; none that add nothing."""
    missing = [group for group, edges in enumerate(sizes.num_edges) if resident[group] < edges]
    total = sum(sizes.num_edges[group] for group in missing) * sizes.itemsize
    room = min(total, max(0, num_bytes))
    shares = [edges * room // total if group in missing else 0 for group, edges in enumerate(sizes.num_edges)]
    counts = [whole_pages(count, edges, sizes.itemsize) for count, edges in zip(shares, sizes.num_edges, strict=True)]
    return tuple(count if count > on_device else 0 for count, on_device in zip(counts, resident, strict=True))
