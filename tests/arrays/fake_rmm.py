"""A module in place of RMM: pools, and what stands in front of them, with the names of RMM 24 to 26 (rmm/pylibrmm/memory_resource)."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace


class CudaMemoryResource:
    """What comes from the driver."""


class Adaptor:
    """What takes from another resource."""

    def __init__(self, upstream):
        self.upstream_mr, self.used = upstream, 0

    def get_upstream(self):
        return self.upstream_mr


class PoolMemoryResource(Adaptor):
    """A pool; it does not tell what of it is in use."""

    def __init__(self, upstream, size):
        super().__init__(upstream)
        self.size = size

    def pool_size(self):
        return self.size


class TrackingResourceAdaptor(Adaptor):
    """What dask-cuda's ``--rmm-track-allocations`` puts in front."""

    def get_allocated_bytes(self):
        return self.used


class LimitingResourceAdaptor(TrackingResourceAdaptor):
    """A pool of which not all may be taken."""

    def __init__(self, upstream, limit):
        super().__init__(upstream)
        self.limit = limit

    def get_allocation_limit(self):
        return self.limit


class StatisticsResourceAdaptor(Adaptor):
    """What `rmm.statistics` puts in front."""

    @property
    def allocation_counts(self):
        return SimpleNamespace(current_bytes=self.used)


def rmm_cupy_allocator(size):
    """As `rmm.allocators.cupy.rmm_cupy_allocator`."""
    raise NotImplementedError


rmm_cupy_allocator.__module__ = "rmm.allocators.cupy"


class FakeRmm(ModuleType):
    """The module, of one device."""

    def __init__(self, resource):
        super().__init__("rmm")
        self.resource = resource
        self.mr = SimpleNamespace(
            get_per_device_resource=lambda ordinal: self.resource,
            set_per_device_resource=lambda ordinal, resource: setattr(self, "resource", resource),
            PoolMemoryResource=PoolMemoryResource,
            TrackingResourceAdaptor=TrackingResourceAdaptor,
            LimitingResourceAdaptor=LimitingResourceAdaptor,
            StatisticsResourceAdaptor=StatisticsResourceAdaptor,
        )
