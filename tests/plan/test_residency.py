"""What stays in memory: never more than there is, and all of it where it fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oocgraph.errors import BudgetError
from oocgraph.plan.residency import GraphSizes, Residency, plan_residency

OPTIONS = {"io_threads": 32, "buffer_bytes": 256 << 10, "max_planes": None}
KRON = GraphSizes(
    num_vertices=9_000_000, itemsize=4, num_edges=(500_000_000,), indptr_bytes=0, plane_edges=(0, 9_000_000, 17_000_000, 24_000_000),
    skew=40.0, checksum_bytes=0,
)  # fmt: skip


def plan(sizes, available):
    return plan_residency(sizes, available_bytes=available, limit_bytes=available + (80 << 20), **OPTIONS)


def total(r: Residency) -> int:
    return r.vertex_bytes + r.plane_bytes + r.resident_bytes + r.staging_bytes + r.cache_bytes


def test_everything_is_resident_where_it_fits():
    r = plan(KRON, 4 << 30)
    assert (r.num_planes, r.num_resident, r.cache_slots) == (3, (500_000_000,), 0)


def test_a_view_that_fits_has_no_planes():
    view = replace(KRON, is_view=True)
    assert (plan(view, 4 << 30).num_planes, plan(view, 4 << 30).num_resident) == (0, (500_000_000,))
    assert plan(view, 400 << 20).num_planes == 3


def test_planes_come_first_where_degrees_differ_and_rows_where_they_do_not():
    flat = GraphSizes(**{name: getattr(KRON, name) for name in KRON.__slots__} | {"skew": 0.03})
    skewed, even = plan(KRON, 400 << 20), plan(flat, 400 << 20)
    assert skewed.num_planes == 3
    assert (even.num_planes, even.num_resident[0] > skewed.num_resident[0]) == (0, True)


@given(
    n=st.integers(1, 10**7), degree=st.integers(0, 100), directed=st.booleans(), available=st.integers(0, 10**9), skew=st.floats(0, 50),
    planes=st.integers(0, 8),
)  # fmt: skip
def test_plan_never_exceeds_what_is_available_or_names_a_budget_that_works(n, degree, directed, available, skew, planes):
    edges = (n * degree,) * (2 if directed else 1)
    sizes = GraphSizes(
        num_vertices=n, itemsize=4, num_edges=edges, indptr_bytes=8 * n if directed else 0,
        plane_edges=tuple(k * n for k in range(min(planes, degree) + 1)), skew=skew, checksum_bytes=0,
    )  # fmt: skip
    try:
        r = plan(sizes, available)
    except BudgetError as error:
        megabytes = int(str(error).rsplit("at least ", 1)[1].rstrip("M"))
        assume(megabytes << 20 > available)
        r, available = plan(sizes, (megabytes << 20) - (80 << 20)), (megabytes << 20) - (80 << 20)
    assert total(r) <= available
    assert all(0 <= kept <= m for kept, m in zip(r.num_resident, edges, strict=True))
    assert all(r.num_resident) or r.cache_slots > 0 or not degree


def test_message_lists_what_is_needed():
    with pytest.raises(BudgetError, match=r"state of 9,000,000 vertices takes .* MiB.*at least \d+M"):
        plan(KRON, 50 << 20)
