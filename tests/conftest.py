"""What all tests share: a GPU where there is one, and that skipped tests fail where they are required."""

from __future__ import annotations

import os

import pytest

from oocgraph.arrays import device_choice


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """OOCGRAPH_REQUIRE names markers, such as ``capped,slurm``: a skipped test that carries one of them is a failure."""
    report = yield
    required = set(os.environ.get("OOCGRAPH_REQUIRE", "").split(",")) & {marker.name for marker in item.iter_markers()}
    if report.skipped and required:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped although OOCGRAPH_REQUIRE names {', '.join(sorted(required))}: {reason}"
    return report


@pytest.fixture(scope="session")
def cuda_device():
    """Open a GPU; where there is none the test is skipped and says why."""
    device, reason = device_choice("auto")
    if device is None:
        pytest.skip(f"no GPU: {reason}")
    yield device
    device.close()
