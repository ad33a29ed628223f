"""Parts over NUMA nodes and their workers: in proportion, neighbours together, nobody twice as busy as another."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocgraph.errors import OocGraphError
from oocgraph.sparse.balanced import balanced_partition, merge
from oocgraph.sparse.placement import NumaNode, machine_topology, own_node, place, topology, topology_of_workers
from tests.sparse.matrices import of_rows


def test_one_part_for_each_worker():
    """Six devices on two nodes, as on Summit."""
    places = place(6, topology({0: [0, 1, 2], 1: [3, 4, 5]}))
    assert [(one.node, one.worker) for one in places] == [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]


def test_nodes_get_parts_in_proportion_to_their_workers():
    places = place(12, topology({0: 3, 2: 1}))
    assert Counter(one.node for one in places) == {0: 9, 2: 3}
    assert Counter(one.worker for one in places) == dict.fromkeys(range(4), 3)


def test_nodes_without_workers_get_nothing():
    assert {one.node for one in place(5, topology({0: 0, 1: [7]}))} == {1}


@given(st.integers(0, 60), st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
def test_shares_of_nodes_and_workers_differ_by_rounding_only(num_parts, workers):
    nodes = topology(dict(enumerate(workers)))
    places = place(num_parts, nodes)
    assert len(places) == num_parts
    by_node = Counter(one.node for one in places)
    for node in nodes:
        assert abs(by_node[node.number] - num_parts * len(node.workers) / sum(workers)) < 1
        by_worker = Counter(one.worker for one in places if one.node == node.number)
        shares = [by_worker[worker] for worker in node.workers]
        assert max(shares, default=0) - min(shares, default=0) <= 1
    assert len([node for node, _ in groupby(places, key=lambda one: one.node)]) == len(by_node), "parts of a node are neighbours"


@given(st.integers(1, 20), st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), st.lists(st.integers(0, 9), max_size=12))
def test_two_level_parts_differ_by_one_nonzero(num_parts, workers, lengths):
    matrix = of_rows(lengths)
    parts = balanced_partition(matrix, num_parts, numa=dict(enumerate(workers)))
    sizes = [part.num_entries for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [part.place for part in parts] == list(place(num_parts, topology(dict(enumerate(workers)))))
    np.testing.assert_array_equal(merge(parts).toarray(), matrix.toarray())


def test_topology_of_this_machine():
    """Every processor that this process may use is on one node."""
    workers = [worker for node in machine_topology() for worker in node.workers]
    assert workers
    assert len(workers) == len(set(workers))


def test_topology_is_read_as_linux_describes_it(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 5, 8, 99}, raising=False)
    for name, cpus in {"node0": "0-2,4\n", "node1": "5,8-9\n", "node2": "\n", "node3": "16-31\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(cpus)
    (tmp_path / "node7").mkdir()
    assert machine_topology(tmp_path) == (NumaNode(0, (0, 1, 2)), NumaNode(1, (5, 8)))


def test_node_of_a_process_is_the_one_that_has_all_its_processors(tmp_path, monkeypatch):
    for number, listed in ((0, "0-3"), (1, "4-7")):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "cpulist").write_text(listed)
    for processors, node in (({4, 6}, 1), ({0}, 0), ({3, 4}, None)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, processors=processors: processors)
        assert own_node(tmp_path) == node


def test_parts_that_are_neighbours_go_to_workers_of_one_machine_and_node():
    """As workers tell it, in the order of their addresses."""
    where = [("a", 1), ("b", None), ("a", 0), ("a", 1), ("b", None), ("a", 0)]
    parts = balanced_partition(of_rows([7] * 30), 6, numa=topology_of_workers(where))
    assert [where[part.place.worker] for part in parts] == [("a", 0), ("a", 0), ("a", 1), ("a", 1), ("b", None), ("b", None)]
    assert sorted(part.place.worker for part in parts) == list(range(6))


def test_a_machine_that_tells_nothing_is_one_node(tmp_path):
    (node,) = machine_topology(tmp_path)
    assert node.number == 0
    assert node.workers


@pytest.mark.parametrize("description", [{}, {0: 0}, {0: []}, {0: -1, 1: 2}])
def test_topology_without_workers_is_refused(description):
    with pytest.raises(OocGraphError, match="workers"):
        topology(description)


def test_negative_number_of_parts_is_refused():
    with pytest.raises(OocGraphError, match="num_parts is -1"):
        place(-1, topology({0: 1}))
