"""Histograms count every value once, in few round bins."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oocgraph
from oocgraph.errors import ArgumentError
from oocgraph.results import histogram
from oocgraph.results.histogram import make_histogram, sizes_of_groups, with_others
from tests.reference_build import reference_build
from tests.results.test_bfs import result_of


def made(values, max_bins=20, **options):
    parts = np.array_split(np.asarray(values), 3)
    return make_histogram(lambda: iter(parts), name="x", things="vertices", max_bins=max_bins, **options)


WHOLE, FRACTIONS = (st.lists(kind, min_size=1, max_size=30) for kind in (st.integers(-(2**63), 2**63 - 2), st.floats(-1e9, 1e9)))


@example([0.95], 10)  # 95 * 0.01 is above it
@example([2**62 + 1] * 3, 2)
@example([-1, 4_223_372_036_854_775_808], 2)
@example([5e-324], 2)
@example([0.2, np.nextafter(0.2, 1)], 10)
@given(WHOLE | FRACTIONS, st.integers(2, 50))
def test_every_value_is_counted_once_in_its_bin(values, max_bins):
    found = made(values, max_bins)
    assert found.counts.sum() == len(values)
    assert 1 <= found.counts.size <= max_bins
    assert np.all(found.edges[1:] > found.edges[:-1])
    for low, high, count in zip(found.edges[:-1], found.edges[1:], found.counts, strict=True):
        inside = sum(low <= value < high for value in values)
        assert count in (inside, inside + values.count(high))  # the last bin has its upper edge
    assert len(found.labels()) == found.counts.size


@given(st.integers(0, 5), st.integers(1, 10**6), st.integers(2, 50))
def test_heavy_tails_have_bins_that_grow(low, high, max_bins):
    """Powers of two, or of ten; zero alone."""
    values = [low] * 1000 + [low + 1, 1000 + high]
    found = made(values, max_bins)
    assert found.is_log
    assert found.counts.sum() == len(values)
    assert found.counts[0] >= 1000
    assert found.edges[0] <= low
    assert found.counts.size <= max(max_bins, 8)
    assert set(found.edges[:-1].tolist()) <= {0} | {2**i for i in range(24)} | {10**i for i in range(8)}


def test_bins_are_round():
    assert made([0, 1, 2, 5]).labels() == ["0", "1", "2", "3", "4", "5"]
    assert made(range(596)).labels()[:2] == ["0 - 49", "50 - 99"]
    assert made(range(596)).labels()[-1] == "550 - 595"
    assert made([0.1, 0.12, 0.98], 10).labels()[0] == "0.1 - 0.2"
    assert made([7, 7]).labels() == ["7"]
    assert made([1] * 99 + [5000]).labels()[:3] == ["1", "2 - 3", "4 - 7"]
    assert made([0] * 99 + [5000], 5).labels() == ["0", "1 - 9", "10 - 99", "100 - 999", "1,000 - 5,000"]
    assert not made([0] * 99 + [5000], may_grow=False).is_log


def test_nothing_has_no_bins():
    assert made([]).counts.size == 0
    assert made([]).labels() == []


def test_others_and_groups_are_counted_in_parts(monkeypatch):
    monkeypatch.setattr(histogram, "PART_VALUES", 2)
    assert np.concatenate(list(with_others(np.array([4, 5, 6]), 9, 8)())).tolist() == [4, 5, 6, 9, 9, 9, 9, 9]
    sizes = np.concatenate(list(sizes_of_groups(np.array([3, 1, 1, 3, 3]), 3)()))
    assert sorted(sizes.tolist()) == [1, 1, 1, 2, 3]


@pytest.fixture
def path(tmp_path):
    """Return the path 1-2-3-4; 0 and 5 are isolated."""
    reference_build([1, 2, 3], [2, 3, 4], tmp_path / "g.zarr", implied=(0, 6))
    return oocgraph.open_graph(tmp_path / "g.zarr")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_levels_are_those_of_reached_vertices(path, dtype):
    """Isolated sources among them."""
    assert result_of(path, 2, dtype=dtype).vertices_per_level().tolist() == [1, 2, 1]
    assert result_of(path, [1, 5], dtype=dtype).vertices_per_level().tolist() == [2, 1, 1, 1]
    assert result_of(path, 0, dtype=dtype).vertices_per_level().tolist() == [1]
    found = result_of(path, 2).histogram()
    assert (found.name, found.things, found.labels()) == ("level", "vertices", ["0", "1", "2"])


def test_results_count_isolated_vertices(path):
    """What a user counts: all vertices, or all groups."""
    components, cores, ranks = oocgraph.connected_components(path), oocgraph.core_numbers(path), oocgraph.pagerank(path)
    assert (components.histogram().things, components.histogram().labels()) == ("components", ["1", "2", "3", "4"])
    assert components.histogram().counts.tolist() == [2, 0, 0, 1]
    assert dict(zip(cores.histogram().labels(), cores.histogram().counts.tolist(), strict=True)) == {"0": 2, "1": 4}
    assert ranks.histogram().counts.sum() == 6
    assert oocgraph.pagerank(path, personalization={0: 1.0, 2: 1.0}).histogram().counts.sum() == 6
    assert oocgraph.label_propagation(path).histogram().things == "communities"
    assert oocgraph.triangles(path).histogram().counts.tolist() == [6]
    assert oocgraph.closeness_centrality(path, [2]).histogram().counts.sum() == 3  # its own, and those without edges: 0
    assert oocgraph.multi_source_bfs(path, [1, 2]).histogram().counts.tolist() == [1, 1]
    assert oocgraph.minimum_spanning_forest(path).histogram().counts.sum() == 4


@pytest.mark.parametrize("max_bins", [1, 0, -3, 2.5, True, "9"])
def test_too_few_bins_are_refused(path, max_bins):
    with pytest.raises(ArgumentError, match=r"max_bins is .*whole number, 2 or more"):
        result_of(path, 2).histogram(max_bins)


def test_a_histogram_holds_a_part_at_a_time():
    values = np.arange(1 << 23, dtype=np.float64)
    tracemalloc.start()
    try:
        found = make_histogram(lambda: histogram.in_parts(values), name="x", things="vertices", max_bins=200)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.counts.sum() == values.size
    assert peak < 16 << 20
