"""`oocgraph.bfs(partition=...)` against the search of one partition: every policy, every kind of graph, in process and on a cluster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms.partitioned_bfs import open_partitioned
from oocgraph.errors import BudgetError, OocGraphError, StoreError
from oocgraph.partition.policies import POLICY_NAMES, named_policy
from oocgraph.partition.policy import Policy
from oocgraph.store.graph import open_graph
from oocgraph.verify import verify_bfs
from tests import every_knob
from tests.algorithms.test_bfs import graphs
from tests.reference_build import reference_build
from tests.stores import string_store


def check(store, source, **options):
    """Search over partitions and without, compare, and judge by Graph500's rules."""
    depth = {"depth_limit": options["depth_limit"]} if "depth_limit" in options else {}
    found, expected = oocgraph.bfs(store, source, **options), oocgraph.bfs(store, source, resources=Resources(device="cpu"), **depth)
    np.testing.assert_array_equal(found.level, expected.level)
    verify_bfs(store, found)
    for name in ("depth", "num_reached", "num_reached_edges"):
        assert getattr(found, name) == getattr(expected, name), name
    return found


def modulo(prop, v):
    return v % min(2, prop.num_partitions)


def anywhere(prop, src, dst, src_master, dst_master):
    return (7 * src + 3 * dst) % prop.num_partitions


SCATTERED = Policy("scattered", modulo, anywhere, compiled=False)
"""Masters in two partitions at most, edges anywhere: empty parts, parts without masters, masters without edges."""


@given(graphs(), st.sampled_from(["1d", "2d", "EEC", "CVC", "scattered"]), st.integers(1, 9), st.sampled_from([None, 0, 2]))
@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
def test_levels_are_those_of_a_search_without_partitions(tmp_path_factory, case, name, num_parts, depth_limit):
    """Directed or not, any order, isolated sources, multi-edges and self-loops, a depth limit."""
    n, src, dst, options, rng = case
    folder = tmp_path_factory.mktemp("g")
    reference_build(src, dst, folder / "graph.zarr", implied=(0, n), **options)
    store = open_graph(folder / "graph.zarr")
    num_parts = min(num_parts, max(1, store.num_rows))
    source = rng.integers(n, size=2).tolist()
    if name in ("1d", "2d") or not store.num_rows:
        found = check(store, source, partition="1d", resources=Resources(num_partitions=num_parts), depth_limit=depth_limit)
    else:
        policy = SCATTERED if name == "scattered" else name
        partitions = every_knob.partition(store, num_parts, policy, folder / "parts")
        found = check(store, source, partition=partitions, depth_limit=depth_limit)
        assert (found.partition, found.num_partitions) == (name, num_parts)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("num_parts", [1, 2, 3, 4, 6, 8, 9, 16])
def test_one_and_two_dimensions(tmp_path, num_parts):
    """Of P = 1 to 16 on a directed graph with string ids; 2D says less than 1D where the grid is wide."""
    rng = np.random.default_rng(3)
    src, dst = ([f"v{i}" for i in (rng.random(3000) ** 2 * 300).astype(int)] for _ in range(2))
    store = string_store(tmp_path / "g", src, dst, directed=True, others=("alone",))
    one = check(store, src[0], partition="1d", resources=Resources(num_partitions=num_parts))
    two = check(store, [src[0], "alone"], partition="2d", resources=Resources(num_partitions=num_parts))
    assert one.summary()["partition"] == "1d"
    if num_parts in (9, 16):
        assert two.num_messages < one.num_messages
    if num_parts in (1, 2, 3):
        kinds = {kind.kind for found in (one, two) for iteration in found.iterations for kind in iteration.exchanged}
        assert kinds == {"all-to-all"}


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_every_policy_read_either_way(tmp_path, policy):
    """An undirected graph's in-lists do as well; a directed one's are refused unless the out-lists are there too."""
    rng = np.random.default_rng(8)
    src, dst = (rng.random(2000) ** 2 * 200).astype(int), rng.integers(0, 200, 2000)
    reference_build(src, dst, tmp_path / "u")
    store = open_graph(tmp_path / "u")
    check(store, 3, partition=every_knob.partition(store, 3, policy, tmp_path / "up", read="in"))
    if policy in ("EEC", "CVC"):
        reference_build(src, dst, tmp_path / "d", directed=True)
        store = open_graph(tmp_path / "d")
        check(store, 3, partition=every_knob.partition(store, 3, policy, tmp_path / "dt", read="in", transpose=True).url)
        with pytest.raises(OocGraphError, match="follows the out-edges"):
            oocgraph.bfs(store, 3, partition=every_knob.partition(store, 3, policy, tmp_path / "di", read="in"))


def test_what_does_not_belong_together_is_refused(tmp_path):
    """Partitions of another graph, options that mean nothing here, too many partitions; nothing is left behind."""
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "g")
    reference_build(np.arange(8), np.arange(1, 9), tmp_path / "h")
    parts = every_knob.partition(tmp_path / "h", 2, "EEC", tmp_path / "parts")
    with pytest.raises(StoreError, match=r"another graph .*, or of one that was built again since"):
        oocgraph.bfs(tmp_path / "g", 0, partition=parts)
    with pytest.raises(OocGraphError, match="has 2 partitions, not 3"):
        oocgraph.bfs(tmp_path / "h", 0, partition=parts, resources=Resources(num_partitions=3))
    with pytest.raises(OocGraphError, match="direction is 'pull', but a partition holds the edges that leave"):
        oocgraph.bfs(tmp_path / "g", 0, partition="1d", direction="pull")
    with pytest.raises(OocGraphError, match="whole number from 1 to 10"):
        oocgraph.bfs(tmp_path / "g", 0, partition="2d", resources=Resources(num_partitions=11))
    with pytest.raises(StoreError, match="no such file or folder"):
        oocgraph.bfs(tmp_path / "g", 0, partition="3d")
    with pytest.raises(BudgetError, match="memory_budget"):
        oocgraph.bfs(tmp_path / "h", 0, partition=parts, memory_budget="1M")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "h", "parts"]


def test_one_opening_serves_many_searches(tmp_path):
    rng = np.random.default_rng(8)
    reference_build(rng.integers(0, 100, 500), rng.integers(0, 100, 500), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    with open_partitioned(store, "2d", Resources(num_partitions=4)) as opened:
        assert (opened.name, opened.num_partitions) == ("2d", 4)
        first, second = (opened.search(np.array([source])) for source in (0, 50))
        assert first.level[0] == second.level[50] == 0
    assert named_policy("2d", vertex_order="original").get_master.__name__ == "ranged_2d"
