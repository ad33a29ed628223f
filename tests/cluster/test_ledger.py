"""One account of a worker's memory: each computation sees what the others have reserved, even before they use it."""

from __future__ import annotations

from types import SimpleNamespace

import dask
import numpy as np
import pytest

from oocgraph.cluster import ledger as ledger_module
from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.errors import BudgetError
from oocgraph.memory import host_bytes

MEGABYTE = 1 << 20


@pytest.fixture
def held(monkeypatch):
    """Bytes of the process, as the ledger sees them: 100 MiB at first."""
    process = SimpleNamespace(num_bytes=100 * MEGABYTE)
    monkeypatch.setattr(ledger_module, "host_bytes", lambda: process.num_bytes)
    monkeypatch.setattr(ledger_module, "bytes_before", lambda _limit: process.num_bytes)
    return process


def ledger(limit=0):
    """Return the ledger of a worker without a limit of its own."""
    return WorkerLedger(SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=limit)))


@pytest.mark.parametrize(("limit", "nanny", "terminate", "expected"), [
    (256, None, 0.95, 0.65 * 256),
    (256, "tcp://nanny:1", 0.95, 0.9 * 256 - 100),
    (256, "tcp://nanny:1", False, 0.65 * 256),
    (1024, "tcp://nanny:1", 0.95, 0.65 * 1024),
    (1024, "tcp://nanny:1", 0.6, 0.55 * 1024 - 100),
    (100, "tcp://nanny:1", 0.95, 0),
])  # fmt: skip
def test_libraries_that_are_mapped_count_where_a_nanny_ends_workers(monkeypatch, limit, nanny, terminate, expected):
    """100 MiB of them; it counts whatever is resident."""
    monkeypatch.setattr(ledger_module, "mapped_bytes", lambda: 100 * MEGABYTE)
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=limit * MEGABYTE), nanny=nanny)
    with dask.config.set({"distributed.worker.memory.spill": 0.7, "distributed.worker.memory.terminate": terminate}):
        found = ledger_module.worker_limit_bytes(worker, None)
    assert found == pytest.approx(expected * MEGABYTE, abs=2)


def test_what_one_has_reserved_and_not_touched_another_cannot_have(held):
    """Two products on one worker: the second is refused although the process holds nothing yet of the first."""
    books = ledger()
    with books.opening(200 * MEGABYTE) as first:
        first.reserve("the vector", 60 * MEGABYTE)
    with pytest.raises(BudgetError, match=r"only 40\.0 MiB"), books.opening(200 * MEGABYTE) as second:
        second.reserve("the vector", 60 * MEGABYTE)
    books.close(first)
    with books.opening(200 * MEGABYTE) as second:
        second.reserve("the vector", 60 * MEGABYTE)
    assert books.reserved_bytes == 60 * MEGABYTE


def test_what_is_touched_counts_once(held):
    """As a part of the process or of what is reserved, not of both."""
    books = ledger()
    with books.opening(200 * MEGABYTE) as first:
        first.reserve("the vector", 60 * MEGABYTE)
    for touched in (0, 20, 60):
        held.num_bytes = (100 + touched) * MEGABYTE
        assert books.untouched_bytes == (60 - touched) * MEGABYTE
        with books.opening(200 * MEGABYTE) as second:
            second.reserve("the vector", 40 * MEGABYTE)
        books.close(second)


def test_a_refusal_leaves_nothing_in_the_books(held):
    """Neither does any other error while somebody reserves."""
    books = ledger()

    def interrupted():
        with books.opening(200 * MEGABYTE) as budget:
            budget.reserve("the vector", 60 * MEGABYTE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert books.reserved_bytes == 0


def test_an_account_says_itself_what_is_reserved(held):
    """As that of the partitions that a worker holds, whose planes come and go."""
    books, sizes = ledger(), [10 * MEGABYTE]
    books.add(lambda: sum(sizes))
    assert books.baseline_bytes == 90 * MEGABYTE
    sizes.append(50 * MEGABYTE)
    assert books.baseline_bytes == 90 * MEGABYTE
    with books.opening(200 * MEGABYTE) as budget:
        assert budget.available_bytes == 50 * MEGABYTE


def test_the_process_is_what_it_is():
    """Without a stand-in for its size: a budget never promises less than is held."""
    ballast = np.ones(8 * MEGABYTE, np.uint8)
    with ledger().opening(1 << 40) as budget:
        assert budget.promised_bytes >= min(host_bytes(), budget.baseline_bytes)
        assert budget.baseline_bytes >= ballast.nbytes
