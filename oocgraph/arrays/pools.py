"""The pool from which CuPy takes device memory: what it holds that the driver no longer counts as free.

In: CuPy, the ordinal of a device. Out: a `Pool`, or None where memory comes from the driver or from an allocator that does not tell.
A budget of a device counts the pool's free bytes beside the driver's: of a card of which RMM has taken 80 % at the start (dask-cuda's
``--rmm-pool-size 0.8``) the driver calls 20 % free.

RMM says how large a pool is, not how much of it is in use; that its adaptors count. Where there is none, one that counts is put in front
of the pool when a device is opened, as `rmm.statistics.enable_statistics` does. What was taken before, it does not see.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)


class Pool(NamedTuple):
    """A pool of device memory.

    Attributes
    ----------
    name
        For messages.
    size_bytes, free_bytes
        What it has taken from the driver, and what of that is not in use.
    left_bytes
        What may still be taken of it in all, grown or not; None: no limit but the device's.
    remedy
        What makes it larger, for messages.
    """

    name: str
    size_bytes: int
    free_bytes: int
    left_bytes: int | None = None
    remedy: str = ""

    def room(self, driver_bytes: int) -> int:
        """Return the bytes that can be had where the driver has `driver_bytes` left: a pool that is used up grows by those."""
        room = driver_bytes + self.free_bytes
        return room if self.left_bytes is None else min(room, self.left_bytes)


def pool_of(cupy: Any, ordinal: int) -> Pool | None:
    """Return the pool in use on a device, which must be current."""
    allocator = cupy.cuda.get_allocator()
    if _is_of_rmm(allocator):
        return _rmm_pool(ordinal)
    pool: Any = getattr(allocator, "__self__", None)
    if not hasattr(pool, "free_bytes"):
        return None
    limit, used = int(pool.get_limit()), int(pool.used_bytes())
    return Pool("CuPy's pool", int(pool.total_bytes()), int(pool.free_bytes()), max(0, limit - used) if limit else None)


def give_back(cupy: Any) -> None:
    """Return what CuPy's own pool holds unused to the driver; a pool that the user has chosen keeps what it has."""
    pool = cupy.get_default_memory_pool()
    if cupy.cuda.get_allocator() == pool.malloc:
        pool.free_all_blocks()


def count(cupy: Any, ordinal: int) -> None:
    """Let RMM count what is taken of its pool from now on, where it has one that nothing counts."""
    if not _is_of_rmm(cupy.cuda.get_allocator()):
        return
    rmm = sys.modules["rmm"]
    resource = rmm.mr.get_per_device_resource(ordinal)
    chain = list(_chain(resource))
    if hasattr(chain[-1], "pool_size") and _used_bytes(chain) is None:
        rmm.mr.set_per_device_resource(ordinal, rmm.mr.StatisticsResourceAdaptor(resource))
        logger.info("CUDA device %d: RMM counts what is taken of its pool from now on", ordinal)


def _is_of_rmm(allocator: Any) -> bool:
    return str(getattr(allocator, "__module__", "")).partition(".")[0] == "rmm" and "rmm" in sys.modules


def _rmm_pool(ordinal: int) -> Pool | None:
    chain = list(_chain(sys.modules["rmm"].mr.get_per_device_resource(ordinal)))
    if not hasattr(chain[-1], "pool_size"):
        return None
    size = int(chain[-1].pool_size())
    free = max(0, size - (_used_bytes(chain) or 0))
    limits = [int(one.get_allocation_limit() - one.get_allocated_bytes()) for one in chain if hasattr(one, "get_allocation_limit")]
    left = max(0, min(limits)) if limits else None
    return Pool("RMM's pool", size, free, left, remedy="give workers a larger --rmm-pool-size (or --rmm-maximum-pool-size)")


def _chain(resource: Any) -> Iterator[Any]:
    """Iterate over a memory resource of RMM and those that it takes from, down to the first pool."""
    while resource is not None:
        yield resource
        resource = None if hasattr(resource, "pool_size") else getattr(resource, "upstream_mr", None)


def _used_bytes(chain: list[Any]) -> int | None:
    """Return what the first adaptor that counts has given out; None where none counts."""
    for one in chain:
        if hasattr(one, "get_allocated_bytes"):  # TrackingResourceAdaptor, LimitingResourceAdaptor
            return int(one.get_allocated_bytes())
        if hasattr(one, "allocation_counts"):  # StatisticsResourceAdaptor
            counts = one.allocation_counts
            return int(counts["current_bytes"] if isinstance(counts, dict) else counts.current_bytes)
    return None
