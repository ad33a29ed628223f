"""Graphs, devices and small residencies on which searches on a device are tested."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from oocgraph.engine import device_load


def residency_of(original, seed):
    """Turn plans into random small ones: some planes, some edges on the device, some or all in pinned memory, small batches and buffers."""
    rng = np.random.default_rng(seed)

    def plan(sizes, **options):
        host = rng.choice(["none", "some", "all"])
        resident = tuple(int(rng.integers(0, m + 1)) for m in sizes.num_edges)
        most = [0 if host == "none" else m if host == "all" else int(rng.integers(0, m + 1)) for m in sizes.num_edges]
        return dataclasses.replace(
            original(sizes, **options),
            num_planes=int(rng.integers(0, len(sizes.plane_edges))),
            num_resident=resident,
            num_host=tuple(h if h > r else 0 for h, r in zip(most, resident, strict=True)),
            row_capacity=int(rng.choice([1, 7, 100, 1000])),
            buffer_bytes=int(rng.choice([4096, 8192, 1 << 20])),
        )

    return plan


@pytest.fixture
def cramped(monkeypatch):
    """Make every plan a random small one."""
    original = device_load.plan_device_residency

    def use(seed):
        monkeypatch.setattr(device_load, "plan_device_residency", residency_of(original, seed))

    yield use
    monkeypatch.undo()
