"""The named policies: their formulas, their shares, and that compiled they decide as the reference does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocgraph
from oocgraph import PolicyError
from oocgraph.kernels.prop import RowLookup, make_prop
from oocgraph.partition import policies
from oocgraph.partition.policies import POLICY_NAMES, named_policy
from tests.partition.reference_cusp import PlainProp, ReferencePartitions, reference_partition
from tests.partition.test_policy import compiled_once, random_graph, run
from tests.reference_build import distinct


def symmetric(src, dst, n, *, by_degree):
    """Out-lists of an undirected graph without self-loops and duplicates, isolated vertices dropped, in either order."""
    key = distinct(np.concatenate([src * n + dst, dst * n + src])[np.tile(src != dst, 2)])
    u, v = np.divmod(key, n)
    degree = np.bincount(u, minlength=n)
    order = np.argsort(-degree, kind="stable") if by_degree else np.arange(n)
    order = order[degree[order] > 0]
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(order.size)
    u, v = np.divmod(np.sort(rank[u] * order.size + rank[v]), order.size)
    return np.searchsorted(u, np.arange(order.size + 1)).astype(np.int64), v.astype(np.uint32)


def star(n):
    """Vertex 0 with all others, each edge stored twice."""
    return np.concatenate([[0], np.arange(n - 1, 2 * n - 1)]), np.concatenate([np.arange(1, n), np.zeros(n - 1, np.int64)])


def masters_of(function, indptr, indices, num_partitions):
    prop = PlainProp((indptr, indices), (indptr, indices), num_partitions, "out")
    return np.array([function(prop, v) for v in range(len(indptr) - 1)])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_compiled_named_policy_decides_as_plain_text_does(name, monkeypatch):
    """Masters and owners equal the reference's; with thresholds that this small graph exceeds."""
    monkeypatch.setattr(policies, "DEGREE_THRESHOLD", 6)
    indptr, indices = random_graph(3)
    for order in ("degree", "original") if name in policies.EDGES else ("original",):
        policy = named_policy(name, vertex_order=order)
        expected = reference_partition(indptr, indices, 6, policy)
        masters, owners, *_ = run(policy, indptr, indices, 6, blocks=2)
        assert masters.tolist() == expected.masters.tolist()
        assert owners.tolist() == expected.owners.tolist()


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 9), st.data())
def test_ranges_are_equal_as_far_as_vertices_allow(degrees, num_partitions, data):
    """Ranges ascend; shares differ from equal ones by a vertex at most."""
    num_partitions = data.draw(st.integers(1, len(degrees)))
    indptr = np.append(0, np.cumsum(degrees))
    indices = np.zeros(indptr[-1], np.uint32)
    by_edges = masters_of(policies.contiguous_edges, indptr, indices, num_partitions)
    by_vertices = masters_of(policies.contiguous_vertices, indptr, indices, num_partitions)
    for masters in (by_edges, by_vertices):
        assert (np.diff(masters) >= 0).all()
        assert masters.min() >= 0
        assert masters.max() < num_partitions
    edges = np.bincount(by_edges, degrees, minlength=num_partitions)
    assert edges.max() <= indptr[-1] / num_partitions + max(degrees) + 1
    sizes = np.bincount(by_vertices, minlength=num_partitions)
    assert sizes.max() - sizes.min() <= 1


def chunks_of_oracle(indptr, num_partitions):
    """Gemini's chunks with NumPy: shares of all pages at once, then a walk over the pages that leaves no gap."""
    n, alpha = indptr.size - 1, 8 * (num_partitions - 1)
    size = 4096 if n >= 8 * 4096 * num_partitions else 1
    first = np.arange(0, n, size)
    weight = alpha * first + indptr[first]
    share = weight * num_partitions // (alpha * n + indptr[-1])
    chunk = np.zeros(first.size, np.int64)
    for page in range(1, first.size):
        chunk[page] = min(share[page], chunk[page - 1] + 1)
    chunk = np.maximum(chunk, num_partitions - first.size + np.arange(first.size))
    return np.repeat(chunk, size)[:n], size


def compiled_masters(name, indptr, num_partitions):
    """Masters of a named policy by the compiled loop, of a graph of which only the rows' places matter."""
    none = np.empty(0, np.int64)
    prop = make_prop(indptr.size - 1, int(indptr[-1]), num_partitions, directed=True, out_rows=RowLookup(indptr, none, none, none))
    masters = np.full(indptr.size - 1, -1, np.int16)
    loops = compiled_once(named_policy(name, vertex_order="degree"))
    assert loops.assign_masters(prop, 0, masters.size, None, masters, np.empty(3, np.int64)) == 0
    return masters


def check_chunks(masters, indptr, num_partitions):
    """Ascending, none empty, cut at pages, none above a share and the heaviest page."""
    expected, size = chunks_of_oracle(indptr, num_partitions)
    np.testing.assert_array_equal(masters, expected)
    assert np.unique(masters).tolist() == list(range(num_partitions))
    cuts = np.flatnonzero(np.diff(masters)) + 1
    assert (np.diff(masters) >= 0).all()
    assert not (cuts % size).any()
    weight = 8 * (num_partitions - 1) + np.diff(indptr)
    page = np.add.reduceat(weight, np.arange(0, weight.size, size))
    chunk = np.bincount(masters, weight, minlength=num_partitions)
    assert chunk.max() <= weight.sum() / num_partitions + page.max()
    return size, chunk


@settings(deadline=None)
@given(st.lists(st.integers(1, 9) | st.integers(1, 400), min_size=1, max_size=60), st.booleans(), st.data())
def test_chunks_of_small_graphs_are_balanced_and_none_is_empty(degrees, by_degree, data):
    """Cut at any vertex; a hub above several shares leaves none of them empty."""
    num_partitions = data.draw(st.integers(1, min(9, len(degrees))))
    indptr = np.append(0, np.cumsum(sorted(degrees, reverse=True) if by_degree else degrees))
    masters = masters_of(policies.chunked, indptr, np.zeros(indptr[-1], np.uint32), num_partitions)
    size, _ = check_chunks(masters, indptr, num_partitions)
    assert size == 1


@pytest.mark.parametrize("num_partitions", range(1, 9))
@pytest.mark.parametrize("kind", ["alike", "power law", "a hub"])
def test_chunks_of_large_graphs_are_cut_at_multiples_of_4096_vertices(kind, num_partitions):
    """At the smallest graph that is cut so, with a last page that is not full."""
    n, rng = 8 * 4096 * num_partitions + 17, np.random.default_rng(num_partitions)
    degree = rng.integers(1, 9, n)
    if kind == "power law":
        degree = np.sort(degree + 4000 // np.arange(1, n + 1))[::-1]
    elif kind == "a hub":
        degree[0] = 60 * n
    indptr = np.append(0, np.cumsum(degree))
    size, chunk = check_chunks(compiled_masters("chunk", indptr, num_partitions), indptr, num_partitions)
    assert size == 4096
    if kind != "a hub":
        assert chunk.max() / chunk.mean() < 1.15


def test_chunks_weigh_vertices_and_entries():
    """By hand: 4 partitions, alpha 24. Eight vertices of 8 entries and sixteen of 1: 8 x 32 + 16 x 25 = 656, shares of 164."""
    indptr = np.append(0, np.cumsum([8] * 8 + [1] * 16))
    masters = masters_of(policies.chunked, indptr, np.zeros(indptr[-1], np.uint32), 4)
    assert np.bincount(masters).tolist() == [6, 5, 7, 6]  # begin at 0, 192, 331, 506
    assert named_policy("chunk", vertex_order="degree").get_edge_owner is policies.to_source


def test_chunks_behind_a_hub_of_several_shares_are_filled():
    """A star: they get a leaf each, and the last one what is left."""
    indptr = np.append(0, np.cumsum([10_000, 1, 1, 1, 1, 1]))
    for num_partitions, expected in ((1, [0] * 6), (4, [0, 1, 2, 3, 3, 3]), (6, [0, 1, 2, 3, 4, 5])):
        masters = masters_of(policies.chunked, indptr, np.zeros(indptr[-1], np.uint32), num_partitions)
        assert masters.tolist() == expected


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=300), st.integers(1, 9))
def test_dealt_masters_are_partitions(degrees, num_partitions):
    """Whatever the degrees, hubs beyond any block included."""
    indptr = np.append(0, np.cumsum(sorted(degrees, reverse=True)))
    masters = masters_of(policies.block_cyclic, indptr, np.zeros(indptr[-1], np.uint32), num_partitions)
    assert masters.min() >= 0
    assert masters.max() < num_partitions


def test_hubs_are_assigned_in_boustrophedon_order():
    """TinyLimits vertices are all alone in their blocks."""
    indptr = np.arange(13) * 3
    assert masters_of(policies.block_cyclic, indptr, np.zeros(36, np.uint32), 3).tolist() == [0, 1, 2, 2, 1, 0] * 2


def test_leaves_of_a_star_are_shared_equally():
    """A hub that has half of all entries leaves the vertices alike."""
    indptr, indices = star(20_000)
    masters = masters_of(policies.block_cyclic, indptr, indices, 8)
    sizes = np.bincount(masters)
    assert sizes.max() / sizes.mean() < 1.05


@pytest.mark.one_in(2)
@pytest.mark.parametrize("order", ["degree", "original"])
def test_shares_of_a_power_law_are_equal(order):
    """Edges and vertices of EEC, edges of CVC, at most 5 % above the mean for P = 4 and 8, at a scale that a test can build."""
    from oocgraph.ingest.generators.kronecker import KroneckerEdges

    scale = 16
    edges = KroneckerEdges(scale, edge_factor=16, seed=1)
    src, dst = (np.asarray(ends, np.int64) for ends in edges.edges(0, edges.num_rows))
    indptr, indices = symmetric(src, dst, 1 << scale, by_degree=order == "degree")
    for policy in (named_policy(name, vertex_order=order) for name in ("EEC", "CVC")):
        for num_partitions in (4, 8):
            masters, owners, *_ = run(policy, indptr, indices, num_partitions)
            made = ReferencePartitions(indptr, indices, masters, owners, num_partitions)
            assert made.edge_balance <= 1.05
            assert made.vertex_balance <= 1.05 or order == "original"


def test_fennel_replicates_less_than_dealt_ranges_on_a_real_graph():
    """What Debian's packages need: FEC, GVC and SVC make fewer mirrors than EEC, with vertices spread about as evenly."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(Path(oocgraph.__file__).parent / "data" / "debian-bookworm-depends.parquet")
    names = pa.chunked_array([*table["package"].chunks, *table["needs"].chunks]).combine_chunks().dictionary_encode()
    ids = names.indices.to_numpy().astype(np.int64)
    indptr, indices = symmetric(*np.split(ids, 2), len(names.dictionary), by_degree=True)
    factor = {}
    for name in ("EEC", "FEC", "GVC", "SVC"):
        masters, owners, *_ = run(named_policy(name, vertex_order="degree"), indptr, indices, 4)
        made = ReferencePartitions(indptr, indices, masters, owners, 4)
        factor[name] = made.replication_factor
        assert made.vertex_balance < 1.1
    assert max(factor["FEC"], factor["GVC"], factor["SVC"]) < 0.8 * factor["EEC"]


def test_fennel_weighs_neighbours_against_load():
    """By hand: 6 vertices, 8 entries, two partitions: alpha = 8 sqrt(2) / 6 ** 1.5, cost of a load of one vertex and two edges 0.73."""
    prop = PlainProp((np.array([0, 2, 4, 6, 7, 8, 8]), np.array([1, 2, 0, 2, 0, 1, 0, 0])), (np.zeros(7), None), 2, "out")
    state, masters = policies.fennel_loads(prop), np.full(6, -1)
    cost = 1.5 * 8 * 2**0.5 / 6**1.5 * ((1 + 2 * 6 / 8) / 2) ** 0.5
    assert 1 < cost < 2
    masters[0] = policies.fennel(prop, 0, state, masters)
    assert masters[0] == 0  # all scores are 0: the first
    assert state.tolist() == [(1, 2), (0, 0)]
    masters[1] = policies.fennel(prop, 1, state, masters)
    assert masters[1] == 1  # one neighbour in 0 is less than the cost
    masters[2] = policies.fennel(prop, 2, state, masters)
    assert masters[2] == 0  # one neighbour in each, equal loads
    assert state.tolist() == [(2, 4), (1, 2)]


@pytest.mark.parametrize(("degree", "owner"), [(1000, 0), (1001, 1)])
def test_hybrid_sends_edges_of_high_degree_sources_to_their_destinations(degree, owner):
    """Above 1,000, not at it."""
    prop = PlainProp((np.array([0, degree]), np.zeros(degree, np.int64)), (np.array([0, degree]), None), 2, "out")
    assert policies.hybrid(prop, 0, 0, 0, 1) == owner


@pytest.mark.parametrize("num_partitions", [1, 2, 4, 6, 7, 8, 9, 16])
def test_cartesian_owner_is_in_the_sources_row_and_the_destinations_column(num_partitions):
    """Owners of one source's edges lie in one row, of one destination's in one column; a diagonal edge stays with its master."""
    prop = make_prop(0, 0, num_partitions, directed=False)
    columns = policies.grid_columns(num_partitions)
    owner = [[policies.cartesian(prop, 0, 0, s, d) for d in range(num_partitions)] for s in range(num_partitions)]
    for s in range(num_partitions):
        assert owner[s][s] == s
        assert {p // columns for p in owner[s]} == {s // columns}
        assert {owner[t][s] % columns for t in range(num_partitions)} == {s % columns}


def test_masters_follow_the_order_of_vertices():
    """Dealt in degree order, ranges else; ranges by name stay ranges."""
    assert named_policy("EEC", vertex_order="degree").get_master is policies.block_cyclic
    assert named_policy("EEC", vertex_order="original").get_master is policies.contiguous_edges
    assert named_policy("hvc", vertex_order="original").get_master is policies.contiguous_edges
    assert named_policy("GVC", vertex_order="degree").get_master is policies.fennel_or_block_cyclic
    assert named_policy("1D-edge", vertex_order="degree").get_master is policies.contiguous_edges


def test_unknown_names_are_refused():
    """The message lists the choices."""
    names = "EEC, HVC, CVC, FEC, GVC, SVC, 1D-edge, 1D-vertex, chunk, 1d, 2d"
    with pytest.raises(PolicyError, match=f"there is no policy 'EVC'; choose one of {names}"):
        named_policy("EVC", vertex_order="degree")


def test_partitions_of_the_reference_hold_every_edge_once():
    """The oracle itself: edges, masters and mirrors of all parts are the graph's."""
    indptr, indices = random_graph(5)
    src = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    for name in ("CVC", "FEC"):
        made = reference_partition(indptr, indices, 4, replace(named_policy(name, vertex_order="original"), compiled=False))
        edges, masters = [], []
        for part in made.parts:
            rows = part.global_id[np.repeat(np.arange(part.global_id.size), np.diff(part.indptr))]
            np.testing.assert_array_equal(rows, src[part.entries])
            np.testing.assert_array_equal(part.global_id[part.indices], indices[part.entries])
            np.testing.assert_array_equal(made.masters[part.mirrors], part.mirror_owner)
            assert part.index not in part.mirror_owner
            edges.append(part.entries)
            masters += [part.global_id[: part.num_masters], part.isolated_masters]
        np.testing.assert_array_equal(np.sort(np.concatenate(edges)), np.arange(len(indices)))
        np.testing.assert_array_equal(np.sort(np.concatenate(masters)), np.arange(len(indptr) - 1))


@pytest.mark.parametrize("degrees", [[2, 0, 1, 0, 0], [0, 0, 3], [5]])
def test_one_chunk_has_all_vertices_those_without_edges_too(degrees):
    indptr = np.append(0, np.cumsum(degrees))
    masters = masters_of(policies.chunked, indptr, np.zeros(indptr[-1], np.uint32), 1)
    assert masters.tolist() == [0] * len(degrees)
