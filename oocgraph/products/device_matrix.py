"""A matrix on the GPUs of this machine, open for many products: a part for each, which its own thread cuts, loads and feeds.

In: devices, a matrix (`oocgraph.sparse.partial`), in memory or in a store, and bytes of each device that may be held. Out: a
`DeviceMatrix`. Between products nothing is allocated: ``x`` goes to the devices and ``y`` comes back through pinned vectors that it
has, and of the matrix only what does not fit is brought to them again (`oocgraph.products.device_product`).

**Parts** have as many nonzeros each. Devices of one NUMA node have neighbouring parts; their threads stay on its processors, and so
does the pinned memory that these allocate.

**Results.** Rows are copied once, to their place in ``y``; of a row that two devices share the host adds both sums. Vectors of columns are
added as a tree: a device receives that of another, from its memory where it reaches that, else by way of the host, and adds both.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, sections 3.3 and 4. Differs from the paper in:
each thread finds its own bounds, by bisection in O(log m), so that no thread has to represent a node and cut for the others; column
partials are added as a tree, by any of the devices, not gathered by one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from oocgraph.arrays import Device
from oocgraph.closing import Closing
from oocgraph.kernels.semirings import Semiring
from oocgraph.memory import Budget
from oocgraph.pool import Call, Pool, wait_for
from oocgraph.products.device_product import DeviceShare, Read
from oocgraph.products.product import is_by_row
from oocgraph.sparse.balanced import balanced_partition, cut
from oocgraph.sparse.partial import PartialCOO
from oocgraph.sparse.placement import cores_near, machine_topology, topology_of_devices
from oocgraph.types import Array

logger = logging.getLogger(__name__)

THROUGH_BYTES = 1 << 20
"""Pinned memory through which vectors pass from a device to one that does not reach it."""


class DeviceMatrix(Closing):
    """A matrix on devices. Constructed, it is planned; `open` allocates and loads. Use it in a ``with`` statement.

    Parameters
    ----------
    devices
        Where it is multiplied.
    matrix
        As for `oocgraph.balanced_partition`, or a part.
    dtype
        Of elements: float32 or float64.
    semiring
        Which values are needed; see `DeviceShare`.
    device_limits
        Bytes of each device's memory that may be held.
    device_held
        Bytes of each device's budget that are already held; by default none.
    read, keep, width, host_indices, first_indices
        As for `DeviceShare`; the last of the first device.
    whole_rows
        Cut between rows: each device has all of what it computes.
    cores
        Processors near to each device, by its number; by default as the machine says.
    bounds
        First nonzero of each part, and the one behind the last; by default as many nonzeros each.

    Attributes
    ----------
    merge_seconds : float
        Time that putting the parts of the last result together took, beside copying rows to their place.
    shares : list of DeviceShare
        In the order of the matrix; devices of a node follow each other.
    x, y : (num_columns, width), (num_rows, width)
        Pinned, once it is open: what the next product multiplies, and what the last one has made.

    Raises
    ------
    BudgetError
        A device has too little memory for the vectors and the smallest pieces.
    """

    x: Array
    y: Array

    is_allocated = True
    """Whether the device memory that it holds is allocated, once it is open: `oocgraph.engine.on_devices.OnDevices`."""

    def __init__(
        self, devices: Sequence[Device], matrix: Any, dtype: np.dtype[Any], semiring: Semiring, *, device_limits: Sequence[int],
        device_held: Sequence[int] | None = None, read: Read | None = None, keep: bool = False, width: int = 1,
        first_indices: Array | None = None, host_indices: Array | None = None, whole_rows: bool = False,
        cores: Mapping[int, Sequence[int]] | None = None, bounds: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        (whole,) = balanced_partition(matrix, 1)
        nodes = topology_of_devices([device.bus_id for device in devices])
        near = cores_near(nodes, machine_topology()) if cores is None else cores
        self._whole, self.dtype, self.width = whole, np.dtype(dtype), width
        self.merge_seconds = 0.0
        self.by_row, order = is_by_row(whole), [worker for node in nodes for worker in node.workers]
        reduces = 0 if self.by_row or len(devices) == 1 else whole.shape[0] * self.dtype.itemsize

        def planned(g: int) -> DeviceShare:
            device, own = order[g], _part_of(whole, g, len(order), whole_rows=whole_rows, bounds=bounds)
            return DeviceShare(
                devices[device], own, dtype, semiring, device_limit=device_limits[device],
                device_held=0 if device_held is None else device_held[device], read=read, keep=keep, width=width, beside_bytes=reduces,
                first_indices=first_indices if device == 0 else None, host_indices=host_indices, cores=near.get(device),
            )  # fmt: skip

        with Pool(len(order), "oocgraph-cut") as pool:
            self.shares = list(pool.map(planned, range(len(order))))
        self._order = order
        self._received: dict[int, Array] = {}
        self._through: dict[int, Array] = {}

    @property
    def num_columns(self) -> int:
        """Length of `x`."""
        return int(self._whole.shape[1])

    @property
    def num_rows(self) -> int:
        """Length of `y`."""
        return int(self._whole.shape[0])

    @property
    def host_vector_bytes(self) -> int:
        """Pinned memory of each vector, of its result, and of rows that are cut."""
        return (self.num_columns + self.num_rows + len(self.shares)) * self.dtype.itemsize

    @property
    def host_bytes(self) -> int:
        """Host memory that it holds: pinned vectors, pieces in work and reading them, what passes between devices."""
        through = 0 if self.by_row else len(self.shares) // 2 * THROUGH_BYTES
        return self.width * self.host_vector_bytes + sum(share.host_bytes for share in self.shares) + through

    @property
    def device_bytes(self) -> dict[int, int]:
        """Memory that it holds on each device, by its number."""
        return dict(zip(self._order, (share.device_bytes for share in self.shares), strict=True))

    @property
    def bytes_requested(self) -> int:
        """Bytes of the matrix brought to devices so far."""
        return sum(share.bytes_requested for share in self.shares)

    @property
    def edge_bytes(self) -> int:
        """Bytes of its nonzeros."""
        return int(self._whole.entry_bytes)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the nonzeros that stay on devices."""
        return sum(share.kept_bytes for share in self.shares)

    @property
    def most_width(self) -> int:
        """Vectors that its devices have room for at once; one where it is not a matrix of rows with pointers."""
        dense = self.by_row and not isinstance(self._whole, PartialCOO)
        return min(share.most_width for share in self.shares) if dense else 1

    def charge(self, budget: Budget, *, hold: bool = False) -> None:
        """Reserve what it holds of the host's memory; `hold`: pieces that are not on a device stay there, in half of what is left."""
        budget.reserve("pinned vectors and pieces", self.host_bytes)
        if hold:
            room = max(0, budget.available_bytes) // (2 * len(self.shares))
            budget.reserve("pinned edges of the matrix", sum(share.hold(room) for share in self.shares))

    def open(self) -> None:
        """Allocate, and load what stays."""
        try:
            self._allocate()
            self.on_each(DeviceShare.open)
            for g in range(0, len(self.shares) - 1, 2) if not self.by_row else ():  # that receive, in the first round of the tree
                share = self.shares[g]
                self._received[g] = share.device.empty(share.num_y, self.dtype)
                self._through[g] = share.device.pinned(THROUGH_BYTES).view(self.dtype)
        except BaseException:
            self.close()
            raise
        logger.info(
            "a matrix of %d nonzeros is on %s: %d of %d pieces stay, %d in host memory", self._whole.num_entries,
            ", ".join(share.device.name for share in self.shares), sum(share.num_resident for share in self.shares),
            sum(len(share.pieces) for share in self.shares), sum(share.num_held for share in self.shares),
        )  # fmt: skip

    def close(self) -> None:
        """Give everything back; closing again does nothing."""
        for share in self.shares:
            share.close()
        self._received.clear()
        self._through.clear()
        for name in ("x", "y", "_carry"):
            self.__dict__.pop(name, None)

    def set_width(self, width: int) -> None:
        """Make room for this many vectors at once, at most `most_width`."""
        if width != self.width:
            self.width = width
            self._allocate()
            for share in self.shares:
                share.set_width(width)

    def multiply(self, semiring: Semiring) -> Array:
        """Return the product of the matrix and `x`: `y`, which the next product overwrites.

        Booleans are numbers above 0; see `oocgraph.kernels.gpu_spmv`.
        """
        self.on_each(partial(self._multiply_share, semiring))
        began, plus = perf_counter(), np.add if semiring.is_boolean else semiring.plus
        if self.by_row:
            with np.errstate(invalid="ignore", over="ignore"):
                for g, share in enumerate(self.shares):
                    if share.part.first_line_partial:
                        row = self.y[share.part.first_line]
                        plus(row, self._carry[g], out=row)
        else:
            self._add_columns(semiring)
        self.merge_seconds = perf_counter() - began
        return self.y

    def on_each(self, work: Callable[[DeviceShare], Any]) -> list[Any]:
        """Call a function with each share, in its thread; the first failure is raised when all have ended."""
        calls: list[Call[Any]] = [share.submit(partial(work, share)) for share in self.shares]
        wait_for(calls)
        return [one.result() for one in calls]

    def _allocate(self) -> None:
        device = self.shares[0].device
        for name in ("x", "y", "_carry"):
            self.__dict__.pop(name, None)
        self.x, self.y, self._carry = (
            device.pinned(length * self.width * self.dtype.itemsize).view(self.dtype).reshape(length, self.width)
            for length in (self.num_columns, self.num_rows, len(self.shares))
        )

    def _multiply_share(self, semiring: Semiring, share: DeviceShare) -> None:
        device, stream, part = share.device, share.kernels.stream, share.part
        device.copy(self.x[share.first_x : share.first_x + share.num_x].reshape(-1), share.x, stream)
        share.product(semiring)
        if self.by_row:
            cut_row = int(part.first_line_partial) * self.width
            device.copy(share.y[cut_row:], self.y[part.first_line + int(part.first_line_partial) : part.stop_line].reshape(-1), stream)
            if cut_row:
                device.copy(share.y[:cut_row], self._carry[self.shares.index(share)], stream)
        device.synchronize(stream)

    def _add_columns(self, semiring: Semiring) -> None:
        """Add the vectors of all devices on the first, and bring that to the host."""
        distance, first, count = 1, self.shares[0], len(self.shares)
        while distance < count:
            rounds = range(0, count - distance, 2 * distance)
            received = [self.shares[g].submit(partial(self._receive, semiring, g, g + distance)) for g in rounds]
            wait_for(received)
            for one in received:
                one.result()
            distance *= 2
        first.device.copy(first.y, self.y.reshape(-1), first.kernels.stream)
        first.device.synchronize(first.kernels.stream)

    def _receive(self, semiring: Semiring, g: int, other: int) -> None:
        """Add the vector of another device to that of share `g`; both have nothing else to do."""
        own, source, target = self.shares[g], self.shares[other], self._received[g]
        direct = own.device.reaches(source.device)
        logger.debug("%s: a sum of columns comes from %s %s", own.device.name, source.device.name, "directly" if direct else "by the host")
        if direct:
            own.device.copy(source.y, target, own.kernels.stream)
        else:
            through = self._through[g]
            for a in range(0, target.size, through.size):
                piece = through[: target.size - a]
                source.device.copy(source.y[a : a + piece.size], piece, source.kernels.stream)
                source.device.synchronize(source.kernels.stream)
                own.device.copy(piece, target[a : a + piece.size], own.kernels.stream)
                own.device.synchronize(own.kernels.stream)
        own.kernels.add_values(semiring, own.y, target)
        own.device.synchronize(own.kernels.stream)


def _part_of(whole: Any, g: int, count: int, *, whole_rows: bool = False, bounds: Sequence[int] | None = None) -> Any:
    """Return one of `count` parts of a matrix, as many nonzeros each; `whole_rows`: that begin where the row of their first one begins."""
    total = whole.stop - whole.start
    ends = [whole.start + total * at // count for at in (g, g + 1)] if bounds is None else list(bounds[g : g + 2])
    if whole_rows:
        ends = [_row_begin(whole, e) if whole.start < e < whole.stop else e for e in ends]
    return cut(whole, [whole.start, *(ends if g < count - 1 else ends[:1]), whole.stop])[1]


def _row_begin(whole: Any, entry: int) -> int:
    """First nonzero of the line that a nonzero is in."""
    _, own = cut(whole, [whole.start, entry, whole.stop])
    return int(whole.pointers[own.first_line - whole.first_line]) if own.first_line_partial else entry
