"""Core numbers are NetworkX's, whatever is in memory, and the check of them finds what is wrong."""

from __future__ import annotations

from dataclasses import fields

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, OocGraphError, Resources, ValidationError, core_numbers, verify_cores
from oocgraph.engine import blocks
from tests.algorithms.test_sssp import few_slots, random_table, small_blocks  # noqa: F401 - fixtures
from tests.stores import rewrite


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("order", ["degree", "original"])
def test_core_numbers_are_those_of_networkx(tmp_path, small_blocks, few_slots, schedule, order):  # noqa: F811
    with oocgraph.config.setting("vertex-order", order):
        store = oocgraph.build_csr(random_table(6), tmp_path / "g", weight="weight", duplicates="drop")
    result = core_numbers(store, schedule=schedule, resources=Resources(threads=3))
    matrix = store.to_scipy()
    expected = nx.core_number(nx.from_scipy_sparse_array(matrix))
    assert result.core_number.tolist() == [expected[v] for v in range(matrix.shape[0])]
    assert result.degeneracy == max(expected.values())
    assert result.core_number_of([11, 18]).tolist() == [result.core_number_of(11), result.core_number_of(18)]
    verify_cores(store, result)


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("duplicates", ["drop", "keep"])
@pytest.mark.parametrize("order", ["degree", "original"])
def test_edges_of_a_directed_graph_count_in_both_directions(tmp_path, small_blocks, few_slots, schedule, duplicates, order):  # noqa: F811
    with oocgraph.config.setting("vertex-order", order):
        store = oocgraph.build_csr(random_table(7), tmp_path / "g", weight="weight", directed=True, duplicates=duplicates)
    result = core_numbers(store, schedule=schedule, resources=Resources(threads=3))
    verify_cores(store, result)
    if duplicates == "drop":
        expected = nx.core_number(nx.from_scipy_sparse_array(store.to_scipy(), create_using=nx.DiGraph))
        assert result.core_number.tolist() == [expected[v] for v in range(len(expected))]


def test_an_opened_graph_keeps_blocks_and_gives_them_back(tmp_path):
    store = oocgraph.generate_kronecker(12, tmp_path / "g", weights=(1, 9))
    source = int(store.read("vertices/id")[0])
    alone = core_numbers(store)
    with oocgraph.open_runtime(store, memory_budget="900M") as runtime:
        first, again = core_numbers(store, runtime=runtime), core_numbers(store, runtime=runtime)
        assert (first.num_blocks_read, again.num_blocks_read) == (first.num_blocks, 0)
        np.testing.assert_array_equal(again.core_number, alone.core_number)
        paths = [oocgraph.sssp(store, source, runtime=runtime) for _ in range(2)]
        assert paths[0].num_blocks_read > paths[1].num_blocks_read == 0
        np.testing.assert_array_equal(paths[0].distance, paths[1].distance)
        assert oocgraph.bfs(store, source, runtime=runtime).num_reached == paths[0].num_reached
        oocgraph.verify_cores(store, again)


def test_what_cannot_be_done_is_refused(tmp_path):
    store = oocgraph.build_csr(([1, 2, 2], [2, 3, 2]), tmp_path / "g", keep_self_loops=True)
    with pytest.raises(ArgumentError, match="has 1 self-loops, and no core number counts these; build it with keep_self_loops=False"):
        core_numbers(store)
    store = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "h")
    with pytest.raises(ArgumentError, match="schedule is 'buckets'; it must be one of auto, async, rounds"):
        core_numbers(store, schedule="buckets")
    with pytest.raises(BudgetError, match=r"set memory_budget to at least \d+M"):
        core_numbers(store, memory_budget="32M")
    with pytest.raises(OocGraphError, match=r"give what oocgraph\.core_numbers returns"):
        verify_cores(store, oocgraph.bfs(store, 1))


def test_a_damaged_row_is_refused(tmp_path):
    with oocgraph.config.setting("vertex-order", "original"):
        store = oocgraph.build_csr(([1, 2, 3], [2, 3, 4]), tmp_path / "g")
    indptr = store.read("out/indptr").copy()
    indptr[1], indptr[2] = indptr[2], indptr[1] - 1
    with pytest.raises(oocgraph.CorruptStoreError, match="out/indptr"):
        core_numbers(rewrite(tmp_path / "g", tmp_path / "h", arrays={"out/indptr": indptr}))


@pytest.mark.parametrize("change", ["larger", "smaller", "rank", "order"])
def test_what_is_wrong_is_found(tmp_path, change):
    store = oocgraph.build_csr(random_table(6), tmp_path / "g", weight="weight", duplicates="drop")
    result = core_numbers(store)
    core_number, rank = result.stored_core_number.copy(), result.stored_rank.copy()
    last, first = int(np.argmax(rank)), int(np.argmin(rank))
    if change == "larger":
        core_number[core_number == core_number.max()] += 1
    elif change == "smaller":
        core_number[:] -= 1
    elif change == "rank":
        rank[first] = rank[last]
    else:
        rank[first], rank[last] = rank[last], rank[first]
    wrong = {field.name: getattr(result, field.name) for field in fields(result)}
    with pytest.raises(ValidationError, match=r"core number|rank"):
        verify_cores(store, oocgraph.CoreResult(**{**wrong, "stored_core_number": core_number, "stored_rank": rank}))


def drawn(panel):
    """Sum of what bars or steps show."""
    return sum(one.get_height() if hasattr(one, "get_height") else sum(one.get_data().values) for one in panel.patches)


def test_results_are_drawn(tmp_path):
    store = oocgraph.generate_kronecker(8, tmp_path / "g", weights=(1, 9))
    result = core_numbers(store)
    panel = result.plot().axes[0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("core number", "vertices")
    assert drawn(panel) == store.num_vertices
    paths = oocgraph.sssp(store, int(store.ids_of(0)[0]))
    assert drawn(paths.plot().axes[0]) == paths.num_reached
    assert paths.plot().axes[0].get_xlabel() == "distance"
    components, ranks = oocgraph.connected_components(store), oocgraph.pagerank(store)
    assert drawn(components.plot().axes[0]) == components.num_components
    assert (components.plot().axes[0].get_xlabel(), ranks.plot().axes[0].get_xlabel()) == ("size", "rank")
    assert drawn(ranks.plot().axes[0]) == store.num_vertices


def test_levels_go_on_while_blocks_are_read_again(tmp_path, monkeypatch):
    """A path has one level after the other in the smallest of blocks, of which two are held."""
    monkeypatch.setattr(blocks, "SHIFT", 4)
    charge = blocks.BlockEngine._charge
    monkeypatch.setattr(blocks.BlockEngine, "_charge", lambda self, *rest: min(charge(self, *rest), 2))
    store = oocgraph.build_csr((np.arange(3000), np.arange(1, 3001)), tmp_path / "g")
    result = core_numbers(store)
    assert result.core_number.tolist() == [1] * 3001
    verify_cores(store, result)
