"""`oocgraph.plan_bfs` against real searches over real partitions; what it refuses."""

from __future__ import annotations

import re

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import plan_bfs as module
from oocgraph.errors import BudgetError, OocGraphError, StoreError, VertexNotFoundError
from oocgraph.exchange.addresses import count_mirrors
from oocgraph.memory import host_bytes
from oocgraph.parts.part_sizes import mirror_counts, sized_parts
from oocgraph.parts.traffic_counts import TrafficCounter
from oocgraph.store.partitions import open_partitions
from tests import every_knob
from tests.reference_build import reference_build


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    """Kronecker graph of scale 12."""
    return oocgraph.generate_kronecker(12, tmp_path_factory.mktemp("g") / "kron.zarr")


def test_bytes_and_messages_of_real_searches(kron):
    """P = 4, 9 and 16, 1D and 2D: exact in every iteration."""
    plan = oocgraph.plan_bfs(kron, [4, 9, 16], source=7)
    assert [(case.dimension, case.num_workers) for case in plan.cases] == [(one, p) for p in (4, 9, 16) for one in ("1d", "2d")]
    for case in plan.cases:
        found = oocgraph.bfs(kron, 7, partition=case.dimension, resources=Resources(num_partitions=case.num_workers)).iterations
        assert len(case.iterations) == len(found)
        real = np.array([[sum(one.num_bytes for one in each.exchanged), sum(one.num_messages for one in each.exchanged)] for each in found])
        told = np.array([[one.num_bytes, one.num_messages] for one in case.iterations])
        assert [one.frontier for one in case.iterations] == [one.frontier for one in found]
        assert (case.num_bytes, case.num_messages) == tuple(told.sum(axis=0))
        np.testing.assert_array_equal(told, real)


@pytest.mark.parametrize(("dimension", "number"), [("1d", 4), ("2d", 4), ("2d", 6)])
def test_memory_is_what_real_members_are_charged_with(kron, tmp_path, dimension, number):
    """Lengths of lists, edges and rows of every part; and the worker's bytes are above those that a real part reserves, a little."""
    parts = list(every_knob.partition(kron, number, dimension, tmp_path / "parts"))
    rows, columns = module._grid(number, dimension)
    counts = TrafficCounter(kron, np.zeros(kron.num_rows, np.int32), 1).count(rows, [columns] if columns > 1 else [])
    mirrors, real = mirror_counts(counts, columns), count_mirrors(parts, "out")
    np.testing.assert_array_equal(mirrors.mirrors, real.mirrors)
    np.testing.assert_array_equal(mirrors.broadcasts, real.broadcasts)
    for sized, part in zip(sized_parts(counts, columns, mirrors), parts, strict=True):
        assert (sized.num_edges, sized.num_mirrors) == (part.num_edges, part.num_mirrors)
        assert sized.num_masters == part.num_masters + part.num_isolated
    assert open_partitions(tmp_path / "parts").num_partitions == number


def test_memory_is_compared(kron):
    """All fits, edges are read, or nothing fits; each with what to do."""
    (one,) = [case for case in oocgraph.plan_bfs(kron, 4, memory_budget="1G").cases if case.dimension == "1d"]
    assert one.fits == "yes"
    (none,) = [case for case in oocgraph.plan_bfs(kron, 4, memory_budget="1M").cases if case.dimension == "1d"]
    assert none.fits == "no"
    assert f"memory_budget {-(-none.least_worker_bytes >> 20)}M" in none.advice


def test_more_workers_need_less_memory_and_2d_sends_less(kron):
    """What a plan is made for."""
    cases = {(case.dimension, case.num_workers): case for case in oocgraph.plan_bfs(kron, [4, 16, 64]).cases}
    for small, large in ((4, 16), (16, 64)):
        assert cases["1d", large].worker_bytes <= cases["1d", small].worker_bytes
        assert cases["2d", large].num_bytes < cases["1d", large].num_bytes
    assert all(case.seconds > sum(one.seconds for one in case.iterations) for case in cases.values())


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Grid of 300 x 3 vertices: 302 levels from a corner."""
    side = np.arange(300 * 3).reshape(300, 3)
    edges = [(side[:-1], side[1:]), (side[:, :-1], side[:, 1:])]
    path = tmp_path_factory.mktemp("g") / "grid.zarr"
    reference_build(*(np.concatenate([pair[k].ravel() for pair in edges]) for k in (0, 1)), path, vertex_order="original")
    return path


def test_a_grid_of_hundreds_of_levels(grid):
    """Every level has its line, and no Python is paid for its vertices."""
    plan = oocgraph.plan_bfs(grid, [2, 256], source=0)
    assert plan.depth == 301
    found = oocgraph.bfs(grid, 0, partition="1d", resources=Resources(num_partitions=2)).iterations
    assert plan.cases[0].num_messages == sum(one.num_messages for each in found for one in each.exchanged)
    assert len(plan.cases[-1].iterations) == len(found) == 302


@pytest.mark.parametrize(
    ("workers", "options", "words"),
    [
        (0, {}, "a number of workers is 0"),
        ([], {}, "no number of workers"),
        (["four"], {}, "a number of workers is 'four'"),
        (2.5, {}, "2.5"),
        (True, {}, "a number of workers is True"),
        (10**6, {}, "3,3"),
        (4, {"memory_budget": "a lot"}, "not a size"),
    ],
)
def test_what_cannot_be_meant_is_refused(kron, workers, options, words):
    """Before anything is searched."""
    with pytest.raises(OocGraphError, match=words):
        oocgraph.plan_bfs(kron, workers, **options)


def test_graphs_and_sources_that_are_not_there(kron, tmp_path):
    """A path, an id, an isolated source, a graph without edges."""
    with pytest.raises(StoreError, match="no such file"):
        oocgraph.plan_bfs(tmp_path / "nothing", 4)
    with pytest.raises(VertexNotFoundError):
        oocgraph.plan_bfs(kron, 4, source=10**9)
    reference_build(np.empty(0, int), np.empty(0, int), tmp_path / "empty", implied=(0, 5))
    with pytest.raises(OocGraphError, match="has no edges"):
        oocgraph.plan_bfs(tmp_path / "empty", 1)
    reference_build(np.array([0]), np.array([1]), tmp_path / "one", implied=(0, 5))
    with pytest.raises(OocGraphError, match="source 3 has no edge"):
        oocgraph.plan_bfs(tmp_path / "one", 1, source=3)
    assert oocgraph.plan_bfs(tmp_path / "one", [1, 2]).cases[0].num_bytes == 0


@pytest.mark.usefixtures("steady_memory")
def test_counts_that_do_not_fit_are_refused(grid, monkeypatch):
    """Before anything is counted, with the number of workers that fits, and the budget that does."""
    with dask.config.set({"oocgraph.memory-budget": host_bytes() + (100 << 20)}):
        oocgraph.plan_bfs(grid, [2, 16], source=0)
        with monkeypatch.context() as patched:
            patched.setattr(TrafficCounter, "count", None)
            with pytest.raises(BudgetError, match="counts of 302 levels and 65,536 pairs of workers need 151") as refused:
                oocgraph.plan_bfs(grid, [2, 16, 256], source=0)
    assert "plan for at most 16 workers, or set memory_budget" in str(refused.value)
    enough = re.search(r"to at least (\d+)M", str(refused.value))[1]
    with dask.config.set({"oocgraph.memory-budget": f"{enough}M"}):
        assert len(oocgraph.plan_bfs(grid, [2, 16, 256], source=0).cases) == 6


@pytest.mark.usefixtures("steady_memory")
def test_lists_that_do_not_fit_are_refused(kron):
    """Whatever the number of levels: lengths are held of every pair of workers."""
    with dask.config.set({"oocgraph.memory-budget": host_bytes() + (100 << 20)}), pytest.raises(BudgetError, match="lengths of lists 384"):
        oocgraph.plan_bfs(kron, 2048)
