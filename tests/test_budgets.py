"""The smallest budget that a refusal names works, whatever the graph, the command and its options: none is killed, none holds more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from oocgraph import generate_uniform
from oocgraph.errors import BudgetError
from oocgraph.memory import Budget
from tests.budget_draws import Draws, judge
from tests.processes import searched_again

NUM_DRAWS = int(os.environ.get("OOCGRAPH_BUDGET_DRAWS", "4"))
"""Draws; 200 before a release (`python -m tests.budget_draws 200` tells of each as it goes)."""


@pytest.fixture(scope="module")
def draws(disk_path_factory):
    return Draws(disk_path_factory.mktemp("draws"), num_edges=1 << 16, seed=7)


@pytest.mark.capped
@pytest.mark.timeout(max(1800, 90 * NUM_DRAWS))
def test_the_smallest_budget_that_is_named_works_and_is_kept(draws):
    """In the next process under a hard cap, in the same process, and without any budget under that cap."""
    wrong = [f"{found.draw}: {found.wrong}" for found in (judge(draws.draw()) for _ in range(NUM_DRAWS)) if found.wrong]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_not_too_much():
    """What is charged next is refused by its name."""
    budget = Budget(20 << 20, baseline_bytes=30 << 20)
    budget.reserve_all({})
    with pytest.raises(BudgetError, match=r"^planes 1\.0 MiB needs 1\.0 MiB but only 0 B of the memory budget 20\.0 MiB are left"):
        budget.reserve_all({"planes": 1 << 20})


FREED = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from oocgraph.errors import BudgetError
from oocgraph.memory import Budget

def between():
    pairs = [(bytes(60_000), bytes(1000)) for _ in range(1000)]
    return [small for _, small in pairs]

def at_the_end():  # two that are mapped and freed, so that the C library keeps what is as large from then on
    for _ in range(2):
        np.ones(30 << 20, np.uint8)
    arrays = [np.ones(20 << 20, np.uint8) for _ in range(2)]

def grown(free):
    before, kept = Budget(1 << 30).baseline_bytes, free()
    first = Budget(1 << 30).baseline_bytes - before >> 20
    try:
        Budget(1000).reserve("planes", 1000)
    except BudgetError:
        return first, Budget(1 << 30).baseline_bytes - before >> 20

with ThreadPoolExecutor(1) as pool:
    print(*pool.submit(grown, globals()[sys.argv[1]]).result() if sys.argv[2] == "thread" else grown(globals()[sys.argv[1]]))
"""
"""Prints by how many MiB the process has grown that a budget finds, before and after another one was refused."""


@pytest.mark.parametrize(("free", "where"), [("between", "main"), ("at_the_end", "main"), ("at_the_end", "thread")])
def test_what_a_refused_run_has_left_is_given_back_before_the_next(free, where):
    command = [sys.executable, "-c", FREED, free, where]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # which Dask sets where it starts workers
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=own).stdout
    kept, given_back = map(int, found.split())
    assert kept >= 20
    assert given_back <= 12


def test_a_budget_that_was_enough_is_enough_again(disk_path_factory):
    """What the first search has freed is not held against the next."""
    graph = generate_uniform(16, disk_path_factory.mktemp("again") / "g.zarr", edge_factor=64)
    assert set(searched_again(graph.url, None)) == {str(graph.num_vertices)}


@pytest.mark.parametrize("num_bytes", [256 << 20, 300 << 20])
def test_what_the_user_holds_is_told_from_the_program(num_bytes):
    """A table of 5 GiB is no import, and may be dropped."""
    messages = []
    for refused in (lambda budget: budget.reserve("planes", 1 << 30), lambda budget: budget.check_alternatives()):
        budget = Budget(400 << 20, num_bytes)
        budget.alternatively("the result, when it is written,", 1 << 30)
        with pytest.raises(BudgetError) as error:
            refused(budget)
        messages.append(str(error.value))
    held = "interpreter and imports 256.0 MiB" if num_bytes == 256 << 20 else "memory in use already 300.0 MiB"
    assert all(held in message for message in messages)
    remedy = "; " if num_bytes == 256 << 20 else "; drop tables, results and runtimes that are not needed any more, or "
    assert all(f"{remedy}set memory_budget to at least" in message for message in messages)
