"""Sweeps give every row to a kernel once, whole, whatever the pieces; those without work are not read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numba as nb
import numpy as np
import pytest

import oocgraph
from oocgraph.config import setting
from oocgraph.engine.opened import Unopened
from oocgraph.engine.sweeps import Needs, Way, least_bytes, load_sweep_kernels, open_sweeps, stream_edges
from oocgraph.errors import BudgetError
from oocgraph.memory import Budget, host_bytes
from oocgraph.sparse import edge_stream
from tests.graphs import hubs


@nb.njit(nogil=True, cache=True)
def sum_rows(first, pointers, start, indices, values, x, sums, counts):
    """Of each row the sum of x over its neighbours; how often it was given."""
    for r in range(sums.size):
        for e in range(pointers[r] - start, pointers[r + 1] - start):
            sums[r] += x[indices[e]]
        counts[r] += 1
    return first


NUMBERS = np.empty(0, np.int64)

NEEDS = Needs(vectors={"sums": 0}, result_bytes=0, lists=("in", "out"), kernels=[(sum_rows, NUMBERS, NUMBERS, NUMBERS)])


@pytest.fixture
def graph(tmp_path):
    return oocgraph.build_csr(hubs(4, 700, 6000), tmp_path / "g.zarr", directed=True)


def sweeping(graph, needs, budget, threads):
    """Open sweeps in this process."""
    open_edges = partial(stream_edges, opened=Unopened(0), threads=threads)
    return open_sweeps(graph, needs, budget, open_edges, threads=threads, pieces=least_bytes(graph, needs, threads))


def dense(graph, lists):
    """Return the matrix of a graph in store order."""
    matrix = np.zeros((graph.num_rows, graph.num_rows), np.int64)
    pointers, indices = graph.read(f"{lists}/indptr"), graph.read(f"{lists}/indices")
    matrix[np.repeat(np.arange(graph.num_rows), np.diff(pointers)), indices] = 1
    return matrix


@pytest.mark.parametrize("piece", [4, 100, 1 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_is_given_once_and_whole(graph, monkeypatch, piece, threads):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    load_sweep_kernels(graph, NEEDS)
    x, n = np.arange(graph.num_rows) ** 2, graph.num_rows
    budget = Budget(host_bytes() + (100 << 20))
    with sweeping(graph, NEEDS, budget, threads) as sweeps:
        for lists in ("in", "out"):
            for _ in range(2):
                sums, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
                firsts = sweeps.pull(sum_rows, [x], [sums, counts], lists=lists)
                assert firsts == sorted(firsts)
                np.testing.assert_array_equal(counts, 1)
                np.testing.assert_array_equal(sums, dense(graph, lists) @ x)
        assert (len(firsts) > 1) == (piece < 1 << 20)
        assert sweeps.edges.bytes_read >= sweeps.edges.bytes_requested > 0


def test_pieces_that_are_read_around_the_page_cache(graph, monkeypatch):
    """They begin and end inside of pages."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 13)
    load_sweep_kernels(graph, NEEDS)
    n, x = graph.num_rows, np.arange(graph.num_rows) ** 2
    before = host_bytes()
    budget = Budget(before + least_bytes(graph, NEEDS, 2) + 4096, before)
    with stream_edges(graph, NEEDS, budget, opened=Unopened(0), threads=2) as edges:
        for stream, _ in edges.streams.values():
            assert stream.num_kept < len(stream.parts)
            stream.read_directly(0)
        for lists in ("in", "out"):
            sums, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
            edges.pull(sum_rows, [x], [sums, counts], [], Way(lists))
            np.testing.assert_array_equal(counts, 1)
            np.testing.assert_array_equal(sums, dense(graph, lists) @ x)


def test_pieces_without_work_are_not_read(graph, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 256)
    load_sweep_kernels(graph, NEEDS)
    n, x = graph.num_rows, np.ones(graph.num_rows, np.int64)
    with sweeping(graph, NEEDS, Budget(host_bytes() + (100 << 20)), 2) as sweeps:
        sums, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
        assert sweeps.pull(sum_rows, [x], [sums, counts], only=lambda first, stop: False) == []
        assert sweeps.edges.bytes_requested == 0
        sweeps.pull(sum_rows, [x], [sums, counts], only=lambda first, stop: first <= 300 < stop)
        assert counts[300] == 1
        assert 0 < counts.sum() < n
        assert sweeps.edges.bytes_requested < 4096


def test_what_does_not_fit_is_refused_with_all_of_it(graph):
    needs = Needs(vectors={"sums": 1 << 30}, result_bytes=1 << 20)
    found = pytest.raises(BudgetError, match=r"sums 1.0 GiB, pieces of edges .* set memory_budget to at least")
    with found, sweeping(graph, needs, Budget(1 << 29), 2):
        raise AssertionError


def test_pieces_alternate_between_both_ends(graph, monkeypatch):
    """What calls return is in the order of the rows all the same."""
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 256)
    load_sweep_kernels(graph, NEEDS)
    monkeypatch.setattr(edge_stream, "READ_AHEAD", 0)
    visited, visit = [], edge_stream.EdgeStream._visit
    monkeypatch.setattr(edge_stream.EdgeStream, "_visit", lambda stream, i, *given: visited.append(i) or visit(stream, i, *given))
    x, sums, counts = (np.zeros(graph.num_rows, np.int64) for _ in range(3))
    with sweeping(graph, NEEDS, Budget(host_bytes() + (100 << 20)), 1) as sweeps:
        firsts = [sweeps.pull(sum_rows, [x], [sums, counts], alternates=True) for _ in range(3)]
    assert firsts[0] == firsts[1] == firsts[2] == sorted(firsts[0])
    count = len(firsts[0])
    assert count > 2
    assert visited[0] < visited[count - 1]
    assert visited[count] > visited[2 * count - 1]


@pytest.mark.parametrize("order", ["degree", "original"])
def test_degrees_are_those_of_the_lists(tmp_path, monkeypatch, order):
    monkeypatch.setattr("oocgraph.engine.sweeps.RANGE_VERTICES", 100)
    with setting("vertex-order", order):
        graph = oocgraph.build_csr(hubs(4, 700, 6000), tmp_path / "g.zarr", directed=True)
    load_sweep_kernels(graph, NEEDS)
    with sweeping(graph, NEEDS, Budget(host_bytes() + (100 << 20)), 1) as sweeps:
        for lists in ("in", "out"):
            firsts, degrees = zip(*sweeps.degrees(lists), strict=True)
            np.testing.assert_array_equal(np.concatenate(degrees), np.diff(graph.read(f"{lists}/indptr")))
            assert firsts == tuple(range(0, graph.num_rows, 100))
        assert sweeps.bytes_requested == 2 * 8 * graph.num_rows


@pytest.mark.parametrize(("wanted", "given"), [(1 << 20, 1 << 20), (1 << 40, None)])
def test_room_is_what_is_wanted_or_a_share_of_what_there_is(graph, wanted, given):
    needs = replace(NEEDS, room_bytes=(0, wanted), room_share=0.5)
    load_sweep_kernels(graph, needs)
    budget = Budget(host_bytes() + (100 << 20))
    with sweeping(graph, needs, budget, 1) as sweeps:
        assert budget.reservations["room of its own"] == sweeps.room_bytes
        assert sweeps.room_bytes == given if given else 30 << 20 < sweeps.room_bytes < 45 << 20
