"""Shares that a computation keeps on a worker: loaded together, in turn, and never an older set than was asked for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.specs import LeftError, StateLostError
from oocgraph.cluster.worker import OocGraphPlugin, Resident
from oocgraph.cluster.worker_state import WorkerState
from oocgraph.errors import BudgetError
from tests.processes import PATIENCE_SECONDS

SPEC = SimpleNamespace(num_partitions=4)


class Kept(Resident):
    """Shares that remember what they took over, and whether they are closed."""

    def __init__(self, numbers):
        self.shares, self.taken, self.closed = dict.fromkeys(numbers), None, False

    def take_over(self, before):
        assert before.closed
        self.taken = before

    def close(self):
        self.closed = True


@pytest.fixture
def plugin():
    """Return a worker's plugin without a worker."""
    made = OocGraphPlugin()
    made.worker = SimpleNamespace(address="tcp://worker:1", nanny=None, memory_manager=SimpleNamespace(memory_limit=400 << 20))
    made.ledger, made.resident = WorkerLedger(made.worker), {}
    made.worker_state = WorkerState(made.worker, made.ledger, made.at)
    return made


def test_what_is_missing_is_loaded_with_what_is_there(plugin):
    """Once: what is there already is not loaded again."""
    one = plugin.keep_shares("lease", SPEC, [0], Kept)
    assert plugin.keep_shares("lease", SPEC, [0], Kept) is one
    both = plugin.keep_shares("lease", SPEC, [2], Kept)
    assert (sorted(both.shares), both.taken, one.closed) == ([0, 2], one, True)
    assert plugin.shares_of("lease", 2) is both
    with pytest.raises(StateLostError, match="does not hold part 3"):
        plugin.shares_of("lease", 3)


def test_a_load_that_was_given_up_ends_before_the_next_begins(plugin):
    """Its client has lost another worker meanwhile, and asks for that one's share, too."""
    began, go_on = threading.Event(), threading.Event()

    def slowly(numbers):
        began.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return Kept(numbers)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(plugin.keep_shares, "lease", SPEC, [0], slowly)
        assert began.wait(PATIENCE_SECONDS)
        second = pool.submit(plugin.keep_shares, "lease", SPEC, [2], Kept)
        assert not second.done()
        go_on.set()
        assert sorted(second.result(timeout=PATIENCE_SECONDS).shares) == [0, 2]
        assert first.result(timeout=PATIENCE_SECONDS).closed


def test_a_refusal_names_the_worker_and_a_lease_that_has_left_gets_nothing(plugin):
    def refuse(numbers):
        raise BudgetError("too small")

    said = r"worker tcp://worker:1 cannot take 2 of 4 parts: too small; or use more workers, .*of the 400\.0 MiB .* a budget has \d+"
    with pytest.raises(BudgetError, match=said):
        plugin.keep_shares("lease", SPEC, [0, 1], refuse)
    plugin.worker_state.leave("lease")
    for ask in (lambda: plugin.keep_shares("lease", SPEC, [0], Kept), lambda: plugin.shares_of("lease", 0)):
        with pytest.raises(LeftError):
            ask()
