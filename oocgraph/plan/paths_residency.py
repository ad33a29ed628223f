"""What shortest paths on a GPU hold in device memory. Pure; decided before anything is read.

In: sizes of the graph, and what both budgets leave. Out: `PathsResidency`, or BudgetError with the smallest budget that works. Distances,
parents, row lookup and room for a batch of rows must be on the device; the first edges with their weights follow as far as there is room,
as hubs come first. The others are read from the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oocgraph.errors import BudgetError
from oocgraph.memory import format_bytes
from oocgraph.plan.device_residency import (
    FIXED_BYTES,
    HOST_FIXED_BYTES,
    HOST_ROW_BYTES,
    HOST_SHARE,
    MAX_BUFFER_BYTES,
    MAX_ROWS,
    MIN_BUFFER_BYTES,
    MIN_ROWS,
    NUM_BUFFERS,
    ROW_SHARE,
    STAGING_SHARE,
    check_host,
    in_each,
    subgraph_bytes,
)
from oocgraph.types import PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsSizes:
    """What the plan needs to know of a graph.

    Attributes
    ----------
    num_vertices, num_edges
        Vertices with edges; stored entries.
    index_bytes, weight_bytes, distance_bytes
        Bytes of a vertex number, of a weight as it is stored, and of a distance.
    lookup_bytes
        Of the row lookup.
    num_listed
        Vertices that paths begin at, and those whose distances bound the search.
    what
        What is computed, in messages.
    """

    num_vertices: int
    num_edges: int
    index_bytes: int
    weight_bytes: int
    distance_bytes: int
    lookup_bytes: int
    num_listed: int = 0
    what: str = "shortest paths"

    @property
    def edge_bytes(self) -> int:
        """Of an edge with its weight."""
        return self.index_bytes + self.weight_bytes

    @property
    def state_bytes(self) -> int:
        """Of distances, parents and three bitmaps; and what is fixed."""
        bitmap = 8 * max(1, -(-self.num_vertices // 64))
        return FIXED_BYTES + self.num_vertices * (self.distance_bytes + self.index_bytes) + 3 * bitmap + 8 * self.num_listed

    def rows_bytes(self, row_capacity: int) -> int:
        """Of a batch of rows: vertex, start, offset; and of the entries of the prefix sums that list it."""
        return subgraph_bytes(self.num_vertices, self.index_bytes, row_capacity)

    @property
    def fewest_rows(self) -> int:
        """Rows that a batch has at least."""
        return max(1, min(MIN_ROWS, self.num_vertices))

    @property
    def least_bytes(self) -> int:
        """Device bytes without which there is no search."""
        return self.state_bytes + self.lookup_bytes + self.rows_bytes(self.fewest_rows) + NUM_BUFFERS * MIN_BUFFER_BYTES

    @property
    def host_least_bytes(self) -> int:
        """Page-locked host bytes without which there is none."""
        return HOST_FIXED_BYTES + NUM_BUFFERS * MIN_BUFFER_BYTES + HOST_ROW_BYTES * self.fewest_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsResidency:
    """What is where.

    Attributes
    ----------
    num_resident
        First edges in device memory, with their weights.
    row_capacity
        Rows in a batch.
    buffer_bytes
        Of each of `NUM_BUFFERS` staging buffers, on the device and in page-locked memory.
    device_bytes, host_bytes
        All that is charged to the budget of device memory, and what is page-locked.
    """

    num_resident: int
    row_capacity: int
    buffer_bytes: int
    device_bytes: int
    host_bytes: int

    @property
    def num_buffers(self) -> int:
        """Staging buffers."""
        return NUM_BUFFERS


def plan_paths_residency(
    sizes: PathsSizes, *, available_bytes: int, limit_bytes: int, host_available_bytes: int, host_limit_bytes: int
) -> PathsResidency:  # fmt: skip
    """Divide what is available of both memories; `limit_bytes` and `host_limit_bytes` are the budgets that this is left of.

    Raises
    ------
    BudgetError
        One of the budgets is too small; the message names the smallest that works.

    Examples
    --------
    >>> sizes = PathsSizes(num_vertices=640, num_edges=9000, index_bytes=4, weight_bytes=4, distance_bytes=4, lookup_bytes=24)
    >>> plan_paths_residency(
    ...     sizes, available_bytes=1 << 24, limit_bytes=1 << 24, host_available_bytes=1 << 24, host_limit_bytes=1 << 24
    ... ).num_resident
    9000
    """
    _check_budgets(sizes, available_bytes, limit_bytes, host_available_bytes, host_limit_bytes)
    left, host_left = available_bytes - sizes.least_bytes, host_available_bytes - sizes.host_least_bytes
    rows, buffer, resident = sizes.fewest_rows, MIN_BUFFER_BYTES, sizes.num_edges
    if sizes.num_edges * sizes.edge_bytes > left:
        more = int(min(STAGING_SHARE * left, HOST_SHARE * host_left) / NUM_BUFFERS) >> 20 << 20
        buffer = min(MAX_BUFFER_BYTES, MIN_BUFFER_BYTES + more)
        wanted = rows + int(min(ROW_SHARE * left / (sizes.index_bytes + 17), HOST_SHARE * host_left / HOST_ROW_BYTES))
        rows = min(wanted, max(1, min(MAX_ROWS, sizes.num_vertices)))
        left -= NUM_BUFFERS * (buffer - MIN_BUFFER_BYTES) + sizes.rows_bytes(rows) - sizes.rows_bytes(sizes.fewest_rows)
        resident = left // sizes.edge_bytes // PAGE_BYTES * PAGE_BYTES  # whole pages of both arrays
    else:
        rows = min(MAX_ROWS, max(1, sizes.num_vertices))
        more = sizes.rows_bytes(rows) - sizes.rows_bytes(sizes.fewest_rows)
        if more > left - resident * sizes.edge_bytes or HOST_ROW_BYTES * (rows - sizes.fewest_rows) > host_left:
            rows = sizes.fewest_rows
    staging = NUM_BUFFERS * buffer
    return PathsResidency(
        num_resident=resident,
        row_capacity=rows,
        buffer_bytes=buffer,
        device_bytes=sizes.state_bytes + sizes.lookup_bytes + sizes.rows_bytes(rows) + staging + resident * sizes.edge_bytes,
        host_bytes=HOST_FIXED_BYTES + staging + HOST_ROW_BYTES * rows,
    )


def plan_equal_shares(
    sizes: Sequence[PathsSizes], *, available_bytes: int, limit_bytes: int, host_available_bytes: int, host_limit_bytes: int
) -> list[PathsResidency]:
    """Divide what is available of both memories into an equal share for each of several graphs; as `plan_paths_residency`.

    Raises
    ------
    BudgetError
        One of the budgets is too small; the message names the smallest that works for all.
    """
    shares, host_left, found = len(sizes), host_available_bytes, list[PathsResidency]()
    for most in ("least_bytes", "host_least_bytes") if sizes else ():
        largest = max(sizes, key=lambda one: getattr(one, most))
        _check_budgets(largest, available_bytes // shares, limit_bytes, host_available_bytes // shares, host_limit_bytes, shares)
    for i, one in enumerate(sizes):  # of page-locked memory the others have what one leaves of its share
        found.append(
            plan_paths_residency(
                one, available_bytes=available_bytes // shares, limit_bytes=limit_bytes,
                host_available_bytes=host_left // (shares - i), host_limit_bytes=host_limit_bytes,
            )
        )  # fmt: skip
        host_left -= found[-1].host_bytes
    return found


def _check_budgets(sizes: PathsSizes, available: int, limit: int, host_available: int, host_limit: int, shares: int = 1) -> None:
    if (missing := sizes.least_bytes - available) > 0:
        raise BudgetError(
            f"the device memory budget {format_bytes(limit)} is too small for {sizes.what} of {sizes.num_vertices:,} vertices: "
            f"{format_bytes(sizes.least_bytes)} are needed{in_each(shares)}; set device_memory_budget to at least "
            f"{-(-(limit + shares * missing) >> 20)}M"
        )
    check_host(sizes.what, sizes.host_least_bytes, host_available, host_limit, shares)
