"""What is on the device and what in pinned host memory: never more than there is, and all of it where it fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocgraph.errors import BudgetError
from oocgraph.plan.device_residency import (
    MAX_BUFFER_BYTES,
    MAX_ROWS,
    MIN_BUFFER_BYTES,
    PLANE_ALIGNMENT,
    aligned_plane_edges,
    host_least_bytes,
    least_bytes,
    plan_device_residency,
)
from oocgraph.plan.residency import GraphSizes

GIB = 1 << 30

KRON = GraphSizes(
    num_vertices=9_000_000, itemsize=4, num_edges=(500_000_000,), lookup_bytes=216_000, skew=40.0,
    plane_edges=(0, 9_000_000, 17_000_000, 24_000_000),
)  # fmt: skip


def plan(sizes, available, *, host=64 * GIB, in_use=0, **options):
    return plan_device_residency(
        sizes,
        available_bytes=available,
        limit_bytes=available + in_use,
        host_available_bytes=host,
        host_limit_bytes=host + in_use,
        **options,
    )


def test_everything_is_on_the_device_where_it_fits():
    r = plan(KRON, 8 * GIB)
    assert (r.num_planes, r.num_resident, r.num_host) == (3, (500_000_000,), (0,))
    assert r.buffer_bytes == MIN_BUFFER_BYTES
    assert r.row_capacity == 9_000_000


def test_planes_come_first_where_degrees_differ_and_rows_where_they_do_not():
    skewed, even = plan(KRON, GIB // 2), plan(replace(KRON, skew=0.03), GIB // 2)
    assert skewed.num_planes == 3
    assert (even.num_planes, even.num_resident[0] > skewed.num_resident[0]) == (0, True)


def test_number_of_planes_adapts_to_the_budget_and_to_the_wish():
    numbers = [plan(KRON, available << 20).num_planes for available in range(95, 240, 5)]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (0, 3)
    assert plan(KRON, 8 * GIB, max_planes=1).num_planes == 1
    assert plan(replace(KRON, skew=0.03), GIB // 2, max_planes=2).num_planes == 2


def test_host_memory_holds_all_edges_where_it_can_else_the_first_or_none():
    assert plan(KRON, GIB // 2).num_host == (500_000_000,)
    some = plan(KRON, GIB // 2, host=GIB)
    assert some.num_resident[0] < some.num_host[0] < 500_000_000
    assert plan(KRON, GIB, host=GIB // 4).num_host == (0,), "what the device holds anyway"


def test_directed_graphs_share_by_edges():
    r = plan(replace(KRON, num_edges=(300_000_000, 300_000_000)), GIB, host=2 * GIB)
    assert r.num_resident[0] == r.num_resident[1] > 0
    assert r.num_host[0] == r.num_host[1] > r.num_resident[0]


def test_batches_and_buffers_grow_with_the_device():
    small, large = plan(KRON, GIB // 4), plan(replace(KRON, num_vertices=10**9, num_edges=(10**11,)), 100 * GIB)
    assert small.row_capacity < large.row_capacity <= MAX_ROWS
    assert MIN_BUFFER_BYTES < small.buffer_bytes < large.buffer_bytes == MAX_BUFFER_BYTES


def test_partition_is_charged_for_what_it_owns_and_for_bitmaps_over_all():
    whole, part = plan(KRON, 8 * GIB), plan(replace(KRON, num_owned=1_000_000), 8 * GIB)
    bitmap, own = 9_000_000 // 8, 1_000_000 // 8
    assert whole.state_bytes - part.state_bytes == 8_000_000 * 8 + 5 * bitmap - 4 * bitmap - 4 * own - (bitmap // 8) * 4


def test_roads_are_known_by_their_degrees():
    assert plan(replace(KRON, skew=0.1, num_edges=(36_000_000,)), GIB).road
    assert not plan(KRON, GIB).road


sizes_of_graphs = st.builds(
    lambda n, degree, groups, item, owned, planes, skew: GraphSizes(
        num_vertices=n, itemsize=item, num_edges=(n * degree,) * groups, lookup_bytes=8 * (n + 1), skew=skew,
        plane_edges=tuple(k * n for k in range(min(planes, degree) + 1)), num_owned=None if owned is None else min(n, owned),
    ),
    st.integers(0, 10**9), st.integers(0, 100), st.integers(1, 2), st.sampled_from([4, 8]), st.none() | st.integers(0, 10**8),
    st.integers(0, 8), st.floats(0, 50),
)  # fmt: skip


@given(sizes=sizes_of_graphs, more=st.integers(0, 10**12), host_more=st.integers(0, 10**12))
def test_parts_never_exceed_the_budgets(sizes, more, host_more):
    available, host = least_bytes(sizes) + more, host_least_bytes(sizes) + host_more
    r = plan(sizes, available, host=host)
    assert r.device_bytes <= available
    assert r.host_bytes <= host
    parts = (r.state_bytes, r.lookup_bytes, r.subgraph_bytes, r.staging_bytes, r.plane_bytes, r.resident_bytes, r.host_staging_bytes)
    assert all(part >= 0 for part in parts)
    for edges, on_device, on_host in zip(sizes.num_edges, r.num_resident, r.num_host, strict=True):
        assert 0 <= on_device <= edges
        assert on_host == 0 or on_device < on_host <= edges
    assert MIN_BUFFER_BYTES <= r.buffer_bytes <= MAX_BUFFER_BYTES
    assert 1 <= r.row_capacity <= max(1, sizes.num_vertices)


@given(sizes=sizes_of_graphs, more=st.integers(0, 10**12), host_more=st.integers(0, 10**12))
def test_edges_are_held_in_whole_pages(sizes, more, host_more):
    """Each page held is compared with its checksum; a part of one could not be."""
    r = plan(sizes, least_bytes(sizes) + more, host=host_least_bytes(sizes) + host_more)
    for counts in (r.num_resident, r.num_host):
        assert all(count == edges or count * sizes.itemsize % 4096 == 0 for count, edges in zip(counts, sizes.num_edges, strict=True))


@given(sizes=sizes_of_graphs, share=st.floats(0, 0.999), in_use=st.integers(0, 10**9))
def test_refusal_names_the_smallest_budget_that_works(sizes, share, in_use):
    """One MiB less is refused again."""
    available = int(least_bytes(sizes) * share)
    with pytest.raises(BudgetError, match=r"set device_memory_budget to at least \d+M") as caught:
        plan(sizes, available, in_use=in_use)
    named = int(str(caught.value).rsplit("at least ", 1)[1].rstrip("M")) << 20
    plan(sizes, named - in_use, in_use=in_use)
    with pytest.raises(BudgetError):
        plan(sizes, named - in_use - (1 << 20), in_use=in_use)


@given(sizes=sizes_of_graphs, share=st.floats(0, 0.999))
def test_refusal_for_host_memory_names_its_setting(sizes, share):
    with pytest.raises(BudgetError, match=r"set memory_budget to at least \d+M") as caught:
        plan(sizes, least_bytes(sizes), host=int(host_least_bytes(sizes) * share))
    named = int(str(caught.value).rsplit("at least ", 1)[1].rstrip("M")) << 20
    plan(sizes, least_bytes(sizes), host=named)


def test_message_lists_what_is_needed():
    words = (
        r"state of 9,000,000 vertices takes 7\d.\d MiB, the row lookup .* batch of 65,536 rows .* staging 3.0 MiB, and 8.0 MiB are in use"
    )
    with pytest.raises(BudgetError, match=words):
        plan(KRON, 50 << 20, in_use=8 << 20)


@given(st.lists(st.integers(0, 10**6), max_size=64))
def test_planes_are_charged_with_their_alignment(lengths):
    sums = [0]
    for length in sorted(lengths, reverse=True):
        sums.append(sums[-1] + length)
    aligned = aligned_plane_edges(tuple(sums))
    assert all(edges % PLANE_ALIGNMENT == 0 for edges in aligned)
    assert all(0 <= a - s < PLANE_ALIGNMENT * max(1, k) for k, (a, s) in enumerate(zip(aligned, sums, strict=True)))


def test_empty_graph_has_a_plan():
    r = plan(GraphSizes(num_vertices=0, itemsize=4, num_edges=(0,), lookup_bytes=0, plane_edges=(0,), skew=0.0), GIB)
    assert (r.row_capacity, r.num_resident, r.num_host) == (1, (0,), (0,))
