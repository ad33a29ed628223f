"""Time of iterations from what their busiest part has to do, and fits of the constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oocgraph.plan.fitting import check_fit
from oocgraph.plan.timing import STORED, Constants, IterationLoad, Shape, busiest, fit, fit_hops, predict_seconds
from oocgraph.plan.traffic import Traffic

NOTHING = Constants(
    edge_seconds=0.0, vertex_seconds=0.0, message_seconds=0.0, byte_seconds=0.0, hop_seconds=0.0, task_seconds=0.0, pair_seconds=0.0,
    start_hops=0.0,
)  # fmt: skip


KINDS = "candidate", "broadcast"


def load(**given):
    """Return what three iterations have, zeros where nothing is given."""

    def array(name):
        return np.array(given.get(name, [0, 0, 0]), float)

    candidates, broadcasts = (Traffic(array(f"{kind}s"), array(f"{kind}_bytes"), array(f"{kind}_messages")) for kind in KINDS)
    return IterationLoad(edges=array("edges"), found=array("found"), candidates=candidates, broadcasts=broadcasts)


def shape(rows, columns):
    """Return an even grid."""
    return Shape(rows=rows, columns=columns, edge_share=1 / (rows * columns), vertex_share=1 / rows)


def test_a_step_of_one_dimension_takes_what_the_step_before_has_sent():
    """Candidates cost their sender in their own iteration and their receiver in the next; messages and bytes the receiver."""
    one = load(candidates=[8, 0, 0], candidate_bytes=[80, 0, 0], candidate_messages=[4, 0, 0])
    edges, vertices, messages, num_bytes = busiest(one, shape(4, 1), 1)
    assert (vertices.tolist(), messages.tolist(), num_bytes.tolist()) == ([2, 2, 0], [0, 1, 0], [0, 20, 0])
    assert not edges.any()


def test_in_two_dimensions_owners_gather_and_tell():
    """Candidates of all 4 parts end at 2, what is broadcast begins there."""
    one = load(edges=[8, 0, 0], candidates=[8, 0, 0], candidate_messages=[2, 0, 0], broadcasts=[4, 0, 0], broadcast_messages=[2, 0, 0])
    edges, vertices, messages, _ = busiest(one, shape(2, 2), 2)
    assert (edges[0], vertices[0], messages[0]) == (1, 8 / 4 + 8 / 2 + 4 / 4 + 4 / 2, 2)


def test_hops_are_counted():
    """One an iteration and the last in 1D, two and the first in 2D; the start once."""
    hop = replace(NOTHING, hop_seconds=1.0, start_hops=3.0)
    seconds, total = predict_seconds(load(), shape(4, 1), hop, 1)
    assert (seconds.tolist(), total) == ([4, 1, 1], 7)
    seconds, total = predict_seconds(load(), shape(2, 2), hop, 1)
    assert (seconds.tolist(), total) == ([2, 2, 2], 10)


def test_fits_give_back_what_made_the_numbers_and_nothing_below_zero():
    """Exact terms are found again; a term that would be negative is 0."""
    terms = np.random.default_rng(0).uniform(1, 9, (20, 3))
    assert fit(terms, terms @ [1.0, 0.5, 2.0]) == pytest.approx([1.0, 0.5, 2.0])
    assert min(fit(terms, terms @ [1.0, -0.2, 2.0])) == 0
    sizes = np.array([2.0, 4.0, 8.0])
    found = fit_hops(sizes, 5 - 0.1 * sizes, STORED)
    assert min(found.hop_seconds, found.task_seconds, found.pair_seconds) == 0
    assert found.edge_seconds == STORED.edge_seconds


def test_memory_is_judged_with_a_remedy():
    """All fits; edges do not; nothing does, with other numbers of workers that would do or none."""
    assert check_fit(100 << 20, 99 << 20, 10 << 20, {}).fits == "yes"
    some = check_fit(50 << 20, 99 << 20, 10 << 20, {8: (40 << 20, 9 << 20)})
    assert some.fits == "edges on disk"
    assert "8 workers hold all, or memory_budget 99M" in some.advice
    none = check_fit(5 << 20, 99 << 20, 10 << 20, {8: (40 << 20, 4 << 20)})
    assert (none.fits, "memory_budget 10M" in none.advice, "8 workers would do" in none.advice) == ("no", True, True)
    assert "more workers may do" in check_fit(5 << 20, 99 << 20, 10 << 20, {}).advice
