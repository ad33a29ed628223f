"""How many bins a step writes, and what threads may sort: bins that fit, as long as a process may open their files."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.external_sort import oversize
from oocgraph.ingest import build_job
from oocgraph.ingest.build_job import BIN_RECORDS, MAX_BINS, MOST_BINS, VERTEX_BYTES, Sizes, plan_sizes
from oocgraph.memory import Budget


def sizes(capacity, resident_ids=0):
    return Sizes(threads=3, block_rows=1 << 20, capacity=capacity, resident_ids=resident_ids, text_bytes=1 << 20)


@pytest.mark.parametrize(
    ("num_records", "capacity", "expected"),
    [
        (0, 1 << 22, 1),
        (5 * BIN_RECORDS, 1 << 22, 5),
        (10_000, 300, 100),  # of a third of what a thread can sort
        (1 << 29, 1 << 22, MAX_BINS),  # which can sort two
        (1 << 29, 1 << 20, MOST_BINS),  # and cannot
        (1 << 29, 3 << 19, 683),
    ],
)
def test_bins_fit_as_far_as_files_can_be_opened(num_records, capacity, expected):
    assert sizes(capacity).num_bins(num_records) == expected


def test_kinds_that_are_written_at_once_share_the_files():
    assert sizes(1 << 20).num_bins(1 << 29, shares=2) == MOST_BINS // 2
    assert sizes(1 << 24).num_bins(1 << 29, shares=2) == MAX_BINS // 2


def test_what_vertex_arrays_leave_is_for_sorting():
    """And no more than that: with what they hold and what threads sort, the promise is kept."""
    planned = plan_sizes(Budget(1 << 30, baseline_bytes=100 << 20), 3, 0)
    vertex_bytes = VERTEX_BYTES * planned.resident_ids // 4
    more = planned.beside(vertex_bytes)
    assert more.capacity > 1.5 * planned.capacity
    assert (more.capacity - planned.capacity) * more.threads * more.record_bytes <= VERTEX_BYTES * planned.resident_ids - vertex_bytes
    assert planned.beside(VERTEX_BYTES * planned.resident_ids).capacity == planned.capacity


def test_no_bin_is_split_where_more_files_hold_them_all(tmp_path, monkeypatch):
    """Of a graph with hubs and of a uniform one; the store is the same."""
    monkeypatch.setattr(build_job, "MAX_BINS", 8)
    monkeypatch.setattr(
        "oocgraph.ingest.build.plan_sizes", lambda *_, **__: Sizes(2, 1 << 12, 1600, 1 << 16, 1 << 20, record_bytes=1 << 40)
    )
    split = []
    monkeypatch.setattr(oversize, "_exact_bins", lambda piece, capacity: split.append(piece.count))  # would fail
    rng = np.random.default_rng(1)
    for name, (source, target) in {
        "uniform": rng.integers(0, 3000, (2, 30_000)),
        "hubs": rng.integers(0, 3000, (2, 30_000)) ** 2 // 3000,
    }.items():
        oocgraph.build_csr((source, target), tmp_path / name, directed=False)
    assert not split
