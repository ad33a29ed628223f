"""Samples of neighbours and random walks: uniform, reproducible, and read by the pages of what was drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, pairwise

import dask
import numpy as np
import pytest
from scipy.stats import chisquare

from oocgraph import build_csr, open_graph
from oocgraph.errors import ArgumentError, ArgumentTypeError, BudgetError, CorruptStoreError, VertexNotFoundError
from oocgraph.kernels import sampling as kernels
from oocgraph.memory import host_bytes
from oocgraph.store.scattered import RangeReader
from oocgraph.types import PAGE_BYTES
from tests.store.asked_graphs import undirected
from tests.store.reading import note_reads
from tests.stores import rewrite

LEAST_P = 0.01


def by_vertex(edges, direction="out"):
    """Neighbours drawn of each vertex."""
    found = defaultdict(list)
    ends = (edges.source, edges.target) if direction == "out" else (edges.target, edges.source)
    for v, u in zip(*(end.tolist() for end in ends), strict=True):
        found[v].append(u)
    return found


@pytest.mark.parametrize("direction", ["out", "in"])
def test_as_many_neighbours_are_drawn_as_there_are_up_to_the_fanout(asked, direction):
    lists, ids = asked.lists(direction), asked.vertices[::7]
    drawn = by_vertex(asked.graph.sample_neighbors(ids, 4, seed=1, direction=direction), direction)
    assert set(drawn) == {v for v in ids if lists[v]}
    for v, found in drawn.items():
        assert len(found) == min(4, len(lists[v]))
        assert not Counter(found) - Counter(lists[v])  # none more often than there are edges to it


def test_all_neighbours_are_drawn_where_the_fanout_allows(asked):
    lists = asked.lists()
    drawn = by_vertex(asked.graph.sample_neighbors(asked.vertices, 10**6))
    assert {v: Counter(one) for v, one in drawn.items()} == {v: Counter(one) for v, one in lists.items() if one}


def test_with_replacement_the_fanout_is_drawn_of_each(asked):
    lists, ids = asked.lists(), asked.vertices[::5]
    drawn = by_vertex(asked.graph.sample_neighbors(ids, 9, seed=2, replace=True))
    assert {v: len(one) for v, one in drawn.items()} == {v: 9 for v in ids if lists[v]}
    assert all(set(one) <= set(lists[v]) for v, one in drawn.items())


def test_hops_draw_from_what_was_drawn_and_from_each_vertex_once(asked):
    lists, ids = asked.lists(), asked.vertices[::50]
    edges = asked.graph.sample_neighbors(ids, [3, 2, 2], seed=3)
    seen, frontier = set(ids), set(ids)
    for hop, fanout in enumerate([3, 2, 2]):
        here = edges.hop == hop
        drawn = by_vertex(type(edges)(edges.source[here], edges.target[here], edges.hop[here]))
        assert set(drawn) == {v for v in frontier if lists[v]}
        assert all(len(found) == min(fanout, len(lists[v])) for v, found in drawn.items())
        frontier = {u for found in drawn.values() for u in found} - seen
        seen |= frontier
    assert (np.diff(edges.hop) >= 0).all()


def test_a_vertex_gets_the_same_sample_in_any_company(asked):
    """For any order of ids, any others beside it, any threads and any budget."""
    ids = asked.vertices[::3]
    with dask.config.set({"oocgraph.io-threads": 1, "oocgraph.threads": 1}):
        expected = asked.graph.sample_neighbors(ids, [5, 3], seed=4)
    again = asked.graph.sample_neighbors(ids[::-1] + ids[:4], [5, 3], seed=4, memory_budget=host_bytes() + (100 << 20))
    assert all(np.array_equal(a, b) for a, b in zip(expected, again, strict=True))
    alone = asked.graph.sample_neighbors(ids[:9], 5, seed=4)
    assert all(found == by_vertex(expected)[v] for v, found in by_vertex(alone).items() if v in ids[:9])


def test_other_seeds_draw_others(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    first, second = (graph.sample_neighbors(range(100), 5, seed=seed).target.tolist() for seed in (1, -1))
    assert first != second


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("length", "size"), [(20, 5), (1000, 40), (1500, 600)])
def test_positions_are_equally_likely(length, size, replace):
    """In short rows and in long ones, for few draws and for many (for which a pass over the row is made)."""
    num_rows = 400_000 // size
    begin, lengths = np.arange(num_rows) * length, np.full(num_rows, length)
    offset, out = np.arange(num_rows + 1) * size, np.empty(num_rows * size, np.int64)
    kernels.draw_positions(np.uint64(7), np.arange(num_rows), begin, lengths, offset, replace, out)
    drawn = out.reshape(num_rows, size) - begin[:, None]
    assert (np.diff(drawn, axis=1) >= (0 if replace else 1)).all()
    assert chisquare(np.bincount(drawn.ravel(), minlength=length)).pvalue > LEAST_P


def test_sets_of_positions_are_equally_likely():
    num_rows = 50_000
    begin, lengths, out = np.zeros(num_rows, np.int64), np.full(num_rows, 6), np.empty(3 * num_rows, np.int64)
    kernels.draw_positions(np.uint64(8), np.arange(num_rows), begin, lengths, np.arange(num_rows + 1) * 3, False, out)
    counts = Counter(map(tuple, out.reshape(-1, 3).tolist()))
    assert set(counts) == set(combinations(range(6), 3))
    assert chisquare(list(counts.values())).pvalue > LEAST_P


def test_neighbours_of_a_hub_are_equally_likely(tmp_path):
    """Over seeds: planes hold hubs first, and would not be."""
    rng = np.random.default_rng(5)
    edges = (
        np.concatenate([np.zeros(300, np.int64), rng.integers(1, 301, 2000)]),
        np.concatenate([np.arange(1, 301), rng.integers(1, 301, 2000)]),
    )
    graph = build_csr(edges, tmp_path / "g.zarr")
    counts = Counter()
    for seed in range(300):
        counts.update(graph.sample_neighbors([0], 20, seed=seed).target.tolist())
    assert chisquare([counts[v] for v in range(1, 301)]).pvalue > LEAST_P


@pytest.fixture(scope="module")
def star(tmp_path_factory):
    """One vertex with 300,000 edges."""
    return build_csr((np.zeros(300_000, np.int64), np.arange(1, 300_001)), tmp_path_factory.mktemp("star") / "g.zarr", directed=True)


def test_of_a_hub_only_drawn_pages_are_read(star, monkeypatch):
    readers, leave = [], RangeReader.__exit__
    monkeypatch.setattr(RangeReader, "__exit__", lambda self, *error: readers.append(self) or leave(self, *error))
    assert star.sample_neighbors([0], 25).hop.size == 25
    assert 0 < readers[-1].bytes_read["out/indices"] <= 25 * PAGE_BYTES
    star.random_walk([0] * 30, 1)
    assert 0 < readers[-1].bytes_read["out/indices"] <= 30 * PAGE_BYTES


@pytest.mark.parametrize("direction", ["out", "in"])
def test_walks_follow_edges_and_stay_where_there_is_none(asked, direction):
    lists, starts = asked.lists(direction), asked.vertices[::11] * 2
    walks = asked.graph.random_walk(starts, 6, seed=1, direction=direction)
    assert walks.shape == (len(starts), 7)
    assert walks[:, 0].tolist() == starts
    for walk in walks.tolist():
        assert all(b in lists[a] or (a == b and not lists[a]) for a, b in pairwise(walk))


def test_walks_are_the_same_for_any_threads_and_budget(asked):
    starts = asked.vertices[::5]
    with dask.config.set({"oocgraph.io-threads": 1, "oocgraph.threads": 1}):
        expected = asked.graph.random_walk(starts, 4, seed=2)
    again = asked.graph.random_walk(starts, 4, seed=2, memory_budget=host_bytes() + (100 << 20))
    np.testing.assert_array_equal(again, expected)
    np.testing.assert_array_equal(asked.graph.random_walk(starts[:5], 4, seed=2), expected[:5])


def test_steps_are_equally_likely(tmp_path):
    """Also of walks that start together."""
    graph = build_csr(([0] * 40, range(1, 41)), tmp_path / "g.zarr", directed=True)
    walks = graph.random_walk([0] * 8000, 1, seed=3)
    assert chisquare(np.bincount(walks[:, 1], minlength=41)[1:]).pvalue > LEAST_P


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda g: g.sample_neighbors([0], -1), ArgumentError, "fanout is -1; it must be a whole number of neighbours, 0 or more"),
        (lambda g: g.sample_neighbors([0], [15, -10]), ArgumentError, r"fanout is \[15, -10\]; it must be"),
        (lambda g: g.sample_neighbors([0], 1.5), ArgumentError, r"fanout is 1\.5; it must be"),
        (lambda g: g.sample_neighbors([0], True), ArgumentError, "fanout is True"),
        (lambda g: g.sample_neighbors([0], []), ArgumentError, "fanout is empty"),
        (lambda g: g.sample_neighbors([900], 1), VertexNotFoundError, "vertex 900 is not in"),
        (lambda g: g.sample_neighbors([0], 1, seed="a"), ArgumentTypeError, "seed is 'a'"),
        (lambda g: g.sample_neighbors([0], 1, direction="both"), ArgumentError, "direction is 'both'"),
        (lambda g: g.random_walk([0], -1), ArgumentError, "length is -1; it must be a whole number of steps"),
        (lambda g: g.random_walk([0, 900], 1), VertexNotFoundError, "vertex 900 is not in"),
        (lambda g: g.random_walk([0], 10**12, memory_budget="1G"), BudgetError, "walks .* set memory_budget to at least"),
    ],
)
def test_bad_questions_are_refused(tmp_path, ask, error, message):
    with pytest.raises(error, match=message):
        ask(undirected(tmp_path / "g.zarr").graph)


def test_a_sample_that_does_not_fit_is_refused_before_edges_are_read(star, monkeypatch):
    star.sample_neighbors([0], 1)
    note_reads(monkeypatch, fail=True)
    with pytest.raises(BudgetError, match=r"drawn edges needs .*set memory_budget to at least"):
        star.sample_neighbors([0], 300_000, memory_budget=host_bytes() + (10 << 20))


def test_damaged_neighbours_are_told(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    indices = graph.read("out/indices").copy()
    indices[:] = graph.num_rows
    path = rewrite(tmp_path / "g.zarr", tmp_path / "bad.zarr", arrays={"out/indices": indices}).url
    for ask in (lambda g: g.sample_neighbors(range(100), 2), lambda g: g.random_walk(range(100), 2)):
        with pytest.raises(CorruptStoreError, match="out/indices"):
            ask(open_graph(path))
