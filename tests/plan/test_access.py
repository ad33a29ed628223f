"""How edges from outside of the device are taken, on numbers alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from oocgraph.plan.access import AccessFacts, choose_access, projections

FACTS = AccessFacts(num_rows=1_000_000, wanted_bytes=64_000_000, line_bytes=256_000_000, in_host_memory=True)

facts = st.builds(
    lambda rows, wanted, lines, in_host: AccessFacts(
        num_rows=rows, wanted_bytes=wanted, line_bytes=wanted + lines, in_host_memory=in_host
    ),
    st.integers(1, 10**8), st.integers(1, 10**11), st.integers(0, 10**11), st.booleans(),
)  # fmt: skip


def test_nothing_wanted_is_resident():
    assert choose_access(replace(FACTS, num_rows=0, wanted_bytes=0, line_bytes=0)).kind == "resident"


def test_few_rows_are_read_where_they_are_and_waste_is_gathered():
    assert choose_access(FACTS).kind == "zero-copy"
    assert choose_access(replace(FACTS, line_bytes=1_000_000_000)).kind == "gather"


def test_staging_is_not_started_for_few_bytes():
    """Below the fixed cost of staging, waste of any share of a line does not matter."""
    assert choose_access(AccessFacts(num_rows=1000, wanted_bytes=4000, line_bytes=128_000, in_host_memory=True)).kind == "zero-copy"


def test_what_is_on_disk_is_gathered():
    assert choose_access(replace(FACTS, in_host_memory=False)).kind == "gather"


def test_reason_has_the_numbers_of_each_way():
    reason = choose_access(FACTS).reason
    assert reason.startswith("zero-copy: 1000000 rows want 6.4e+07 B of host memory: zero-copy moves 2.56e+08 B over the link in 5.71 ms")
    assert "gather moves 8e+07 B" in reason


@given(facts)
def test_choice_is_the_quickest_way_that_is_possible(given_facts):
    ways, choice = projections(given_facts), choose_access(given_facts)
    assert ways[choice.kind].seconds == min(way.seconds for way in ways.values())
    assert ("zero-copy" in ways) == given_facts.in_host_memory


@given(facts, st.sampled_from(["num_rows", "wanted_bytes", "line_bytes"]), st.integers(1, 10**11))
def test_more_of_anything_is_never_projected_to_take_less(given_facts, name, more):
    larger = projections(replace(given_facts, **{name: getattr(given_facts, name) + more}))
    assert all(larger[kind].seconds >= way.seconds for kind, way in projections(given_facts).items())


@given(facts, st.lists(st.integers(0, 10**11), min_size=2))
def test_more_waste_in_lines_turns_away_from_zero_copy_once(given_facts, waste):
    kinds = [
        choose_access(replace(given_facts, in_host_memory=True, line_bytes=given_facts.wanted_bytes + one)).kind for one in sorted(waste)
    ]
    first_other = next((i for i, kind in enumerate(kinds) if kind != "zero-copy"), len(kinds))
    assert "zero-copy" not in kinds[first_other:]


@given(facts)
def test_what_is_in_host_memory_never_takes_longer_to_gather_than_from_disk(given_facts):
    in_memory, on_disk = (projections(replace(given_facts, in_host_memory=where))["gather"] for where in (True, False))
    assert in_memory.seconds <= on_disk.seconds
    assert in_memory.link_bytes == on_disk.link_bytes
