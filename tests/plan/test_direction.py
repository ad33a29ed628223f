"""The direction rules on numbers alone."""

from __future__ import annotations

from dataclasses import replace

from oocgraph.plan.direction import Facts, choose_alpha_beta, choose_by_cost, choose_finish, choose_gemini, choose_half

FACTS = Facts(
    frontier=1000, frontier_edges=50_000, frontier_pages=0, unvisited=900_000, unvisited_edges=29_000_000, num_vertices=1_000_000,
    num_edges=30_000_000, sampled=16_000, sampled_probes=16_000 * 20, sampled_found=100, sampled_undecided=0, disk_pages=0, pulled=False,
)  # fmt: skip


def by_cost(facts):
    return choose_by_cost(facts, disk_byte_cost=25, page_bytes=4096)


def test_few_frontier_edges_are_pushed_and_many_pulled():
    assert by_cost(FACTS).direction == "push"
    assert by_cost(replace(FACTS, frontier_edges=25_000_000, sampled_probes=20_000, sampled_found=15_000)).direction == "pull"


def test_disk_pages_turn_a_push_into_a_pull():
    cheap_in_memory = replace(FACTS, disk_pages=100_000, frontier_pages=20_000)
    assert by_cost(cheap_in_memory).direction == "pull"
    assert by_cost(replace(cheap_in_memory, frontier_pages=20)).direction == "push"


def test_hopeless_pull_is_not_started():
    """Where all sampled vertices stay undecided a pull could only be finished as the push that was cheaper from the start."""
    assert by_cost(replace(FACTS, disk_pages=100_000, frontier_pages=20_000, sampled_undecided=16_000)).direction == "push"


def test_reason_tells_the_bytes_compared():
    reason = by_cost(FACTS).reason
    assert "push moves 1.32e+06 B in memory and 0 B from disk" in reason
    assert "pull" in reason


def test_finish_goes_to_fewer_pages_and_ties_to_the_pull():
    assert choose_finish(undecided=9, pull_pages=100, push_pages=50).direction == "push"
    assert choose_finish(undecided=9, pull_pages=100, push_pages=95).direction == "pull"
    assert choose_finish(undecided=9, pull_pages=100, push_pages=500).direction == "pull"


def test_half_rule_counts_vertices():
    assert choose_half(FACTS).direction == "push"
    assert choose_half(replace(FACTS, frontier=500_000)).direction == "pull"


def test_alpha_beta_rule_has_two_thresholds():
    rule = {"alpha": 15, "beta": 18}
    assert choose_alpha_beta(FACTS, **rule).direction == "push"
    assert choose_alpha_beta(replace(FACTS, frontier_edges=2_000_000), **rule).direction == "pull"
    assert choose_alpha_beta(replace(FACTS, frontier=60_000, pulled=True), **rule).direction == "pull"
    assert choose_alpha_beta(replace(FACTS, frontier=50_000, pulled=True), **rule).direction == "push"


def test_gemini_rule_compares_active_edges_with_a_twentieth_of_all():
    """Dense from |E| / 20 on, whatever has been visited and whichever direction was last."""
    assert choose_gemini(FACTS).direction == "push"
    for facts in (FACTS, replace(FACTS, pulled=True, unvisited=1, unvisited_edges=1)):
        assert choose_gemini(replace(facts, frontier_edges=1_499_999)).direction == "push"
        assert choose_gemini(replace(facts, frontier_edges=1_500_000)).direction == "pull"
    assert choose_gemini(FACTS).reason == "gemini: frontier edges 50000, |E| / 20 = 1500000"


def test_nothing_unvisited_or_sampled_is_no_division_by_zero():
    assert by_cost(replace(FACTS, unvisited=0, unvisited_edges=0, sampled=0, sampled_probes=0, sampled_found=0)).direction == "pull"
