"""Shortest paths: distances are SciPy's, whatever is in memory, and parents are the same whatever the schedule."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

import oocgraph
from oocgraph import (
    ArgumentError,
    BudgetError,
    CorruptStoreError,
    OocGraphError,
    Resources,
    ValidationError,
    VertexNotFoundError,
    sssp,
    verify_sssp,
)
from oocgraph.config import setting
from oocgraph.engine import blocks
from tests.stores import rewrite

SCHEDULES = ["async", "buckets", "rounds"]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 16 entries, so that rows lie in many of them."""
    monkeypatch.setattr(blocks, "SHIFT", 4)


@pytest.fixture
def few_slots(monkeypatch):
    """Only as many blocks are held as there must be."""
    charge = blocks.BlockEngine._charge

    def least(self, budget, beside, sharers):
        charge(self, budget, beside, sharers)
        return min(self.num_blocks, 3)

    monkeypatch.setattr(blocks.BlockEngine, "_charge", least)


def random_table(seed, num_ids=200, num_edges=1500, weights=(1, 255), dtype=np.int64):
    rng = np.random.default_rng(seed)
    hubs = rng.integers(0, num_ids, num_edges) ** 2 // num_ids  # some vertices have many edges, and some none
    return pd.DataFrame({
        "source": hubs * 7 + 4, "target": rng.integers(0, num_ids - 20, num_edges) * 7 + 4,
        "weight": rng.integers(*weights, num_edges, endpoint=True).astype(dtype) if dtype != np.float64 else rng.random(num_edges),
    })  # fmt: skip


def expected_of(store, source):
    """Distances by SciPy: of each input id, infinity where there is no path. To it a weight of 0 is no edge, so these are made tiny."""
    matrix = store.to_scipy().astype(np.float64)
    tiny = 1e-9 / max(1, matrix.shape[0])
    matrix.data[matrix.data == 0] = tiny
    ids = np.concatenate([ids for ids, _ in oocgraph.store.vertices.VertexIds(store).blocks(1 << 20)])
    found = dijkstra(sp.csr_matrix(matrix), indices=int(np.flatnonzero(ids == source)[0]))
    return np.where(found < 1e-9, 0, found)


def as_float(result):
    return np.where(result.distance < 0, np.inf, result.distance)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("kind", ["int", "float", "zeros"])
def test_distances_are_those_of_scipy(tmp_path, small_blocks, few_slots, schedule, directed, order, kind):
    """Of integer, floating-point and zero weights; from vertices with many edges, with few, and with none."""
    table = random_table(5, weights=(0, 3) if kind == "zeros" else (1, 255), dtype=np.float64 if kind == "float" else np.int64)
    with oocgraph.config.setting("vertex-order", order):
        store = oocgraph.build_csr(table, tmp_path / "g", weight="weight", directed=directed, duplicates="min")
    for source in (table.source.mode()[0], table.target.iloc[7], table.source.iloc[0]):
        result = sssp(store, source, schedule=schedule, resources=Resources(threads=3))
        np.testing.assert_allclose(as_float(result), expected_of(store, source), rtol=1e-12, atol=1e-6 if kind == "zeros" else 0)
        verify_sssp(store, result)
        assert result.distance_of(int(source)) == 0
        assert result.parent_of(int(source)) == source


def test_the_result_does_not_depend_on_schedule_memory_threads_or_delta(tmp_path, small_blocks, monkeypatch):
    store = oocgraph.build_csr(random_table(8, num_edges=4000), tmp_path / "g", weight="weight", duplicates="min")
    first = sssp(store, 11, resources=Resources(threads=1))
    charge = blocks.BlockEngine._charge
    for slots in (2, 7, 10**6):
        monkeypatch.setattr(blocks.BlockEngine, "_charge", lambda self, *rest, slots=slots: min(charge(self, *rest), slots))
        for options in ({"schedule": one} for one in SCHEDULES):
            for delta in (0.5, 7, 1e9):
                other = sssp(store, 11, delta=delta, resources=Resources(threads=4), **options)
                np.testing.assert_array_equal(other.distance, first.distance)
                np.testing.assert_array_equal(other.parent, first.parent)
                assert other.delta == delta


def test_a_block_is_read_once_where_all_fit(tmp_path, small_blocks):
    store = oocgraph.build_csr(random_table(3), tmp_path / "g", weight="weight")
    result = sssp(store, 11)
    assert 0 < result.num_blocks_read <= result.num_blocks
    assert result.num_relaxed >= result.num_again
    assert result.bytes_requested <= 16 * result.num_blocks * 12
    assert sssp(store, 11, schedule="buckets", delta=1).num_again == 0  # weights are 1 or more: as Dijkstra's


def test_a_path_is_as_long_as_its_distance(tmp_path):
    table = random_table(1)
    store = oocgraph.build_csr(table, tmp_path / "g", weight="weight", directed=True, duplicates="min")
    result = sssp(store, 11)
    weights = table.groupby(["source", "target"]).weight.min()
    for vertex in result.vertices[result.distance >= 0][:50]:
        path = result.path(vertex).tolist()
        assert (path[0], path[-1]) == (11, vertex)
        assert sum(weights[u, v] for u, v in pairwise(path)) == result.distance_of(int(vertex))
    unreached = result.vertices[result.distance < 0]
    assert unreached.size
    with pytest.raises(ArgumentError, match="there is no path to"):
        result.path(int(unreached[0]))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_limit_and_a_target_leave_out_what_is_farther(tmp_path, small_blocks, schedule):
    store = oocgraph.build_csr(random_table(2), tmp_path / "g", weight="weight", duplicates="min")
    whole = sssp(store, 11)
    for limit in (0, 40, 40.7):
        near = sssp(store, 11, distance_limit=limit, schedule=schedule)
        np.testing.assert_array_equal(near.distance, np.where(whole.distance <= limit, whole.distance, -1))
        verify_sssp(store, near)
    reached = whole.vertices[whole.distance > 0]
    for target in (*reached[:: reached.size // 5], 11):
        near = sssp(store, 11, target=int(target), schedule=schedule)
        np.testing.assert_array_equal(near.distance, np.where(whole.distance <= whole.distance_of(int(target)), whole.distance, -1))
        np.testing.assert_array_equal(near.path(int(target)), whole.path(int(target)))
        verify_sssp(store, near)


def test_a_target_saves_reading(tmp_path, small_blocks):
    store = oocgraph.generate_grid((60, 60), tmp_path / "g", weights=(1, 9))
    assert 3 * sssp(store, 0, target=61).num_blocks_read < sssp(store, 0).num_blocks_read


def test_distances_beyond_31_bits_are_found_in_64(tmp_path, small_blocks):
    n = 50
    table = pd.DataFrame({"source": range(n), "target": range(1, n + 1), "weight": np.full(n, 2**30)})
    store = oocgraph.build_csr(table, tmp_path / "g", weight="weight")
    result = sssp(store, 0)
    assert result.distance.tolist() == [i * 2**30 for i in range(n + 1)]
    verify_sssp(store, result)


@pytest.mark.parametrize(("weight", "edge"), [(2**60, "from 4 to 5"), (2**62, "from 1 to 2"), (2**63 - 1, "from 0 to 1")])
def test_distances_beyond_62_bits_are_refused(tmp_path, weight, edge):
    """Also where the sum of two numbers would be negative."""
    table = pd.DataFrame({"source": range(9), "target": range(1, 10), "weight": np.full(9, weight)})
    store = oocgraph.build_csr(table, tmp_path / "g", weight="weight")
    with pytest.raises(ArgumentError, match=f"distances do not fit into 62 bits.*{edge}"):
        sssp(store, 0)


@pytest.mark.parametrize("schedule", ["auto", "async", "buckets"])
@pytest.mark.parametrize("limit", [2**62, 1e30, float("inf")])
def test_a_limit_beyond_62_bits_leaves_nothing_out(tmp_path, schedule, limit):
    table = pd.DataFrame({"source": [0, 1, 0], "target": [1, 2, 3], "weight": np.array([2**62, 5, 7])})
    store = oocgraph.build_csr(table, tmp_path / "g", weight="weight", directed=True)
    with pytest.raises(ArgumentError, match=r"distances do not fit into 62 bits.*from 1 to 2"):
        sssp(store, 0, distance_limit=limit, schedule=schedule)
    assert dict(sssp(store, 0, distance_limit=2**62 - 1, schedule=schedule).reached()) == {0: 0, 3: 7}


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_an_edge_too_long_for_a_distance_is_judged_as_such(tmp_path, schedule, dtype):
    """No shorter path goes through it."""
    table = pd.DataFrame({"source": [0, 0, 1], "target": [1, 2, 2], "weight": np.array([1, 1, np.iinfo(dtype).max], dtype)})
    store = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="weight", directed=True)
    found = sssp(store, 0, schedule=schedule)
    assert dict(found.reached()) == {0: 0, 1: 1, 2: 1}
    verify_sssp(store, found)


@pytest.mark.parametrize("spread", ["lognormal", "powers", "equal", "zeros"])
def test_weights_of_all_magnitudes_are_followed_few_times(spread):
    """Of a grid: one heavy edge does not make a bucket that holds all paths."""
    n, rng = 200, np.random.default_rng(3)
    place = np.arange(n * n).reshape(n, n)
    ends = [np.concatenate([one.ravel(), other.ravel()]) for one, other in ((place[:, :-1], place[:-1]), (place[:, 1:], place[1:]))]
    many = ends[0].size
    weights = {
        "lognormal": rng.lognormal(0, 2, many),
        "powers": 10 ** rng.uniform(0, 6, many),
        "equal": np.full(many, 7.0),
        "zeros": np.zeros(many),
    }[spread]
    graph = oocgraph.build_csr(pd.DataFrame({"source": ends[0], "target": ends[1], "weight": weights}), weight="weight")
    found = sssp(graph, n * n // 2, schedule="async")
    assert found.num_relaxed <= 5 * 2 * many
    verify_sssp(graph, found)


def test_isolated_and_unknown_sources(tmp_path):
    store = oocgraph.build_csr(pd.DataFrame({"source": [1], "target": [2], "weight": [3]}), tmp_path / "g", weight="weight", num_vertices=5)
    alone = sssp(store, 4)
    assert (alone.distance.tolist(), alone.parent.tolist(), alone.num_reached) == ([-1, -1, -1, -1, 0], [-1, -1, -1, -1, 4], 1)
    assert alone.path(4).tolist() == [4]
    verify_sssp(store, alone)
    for one in ({"source": 9}, {"source": 1, "target": 9}, {"source": "x"}):
        with pytest.raises(VertexNotFoundError):
            sssp(store, **one)


def test_strings_and_floats(tmp_path):
    table = pd.DataFrame({"source": ["a", "a", "b", "x"], "target": ["b", "c", "c", "y"], "km": [1.5, 4.0, 0.25, 1.0]})
    store = oocgraph.build_csr(table, tmp_path / "g", weight="km", directed=True)
    result = sssp(store, "a")
    frame = result.to_pandas()
    assert frame.columns.tolist() == ["vertex", "distance", "parent"]
    assert frame.distance.tolist() == [0, 1.5, 1.75, math.inf, math.inf]
    assert frame.parent.fillna("-").tolist() == ["a", "a", "b", "-", "-"]
    assert result.parent.tolist() == ["a", "a", "b", None, None]
    assert result.path("c").tolist() == ["a", "b", "c"]
    result.write(tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), frame, check_dtype=False)


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_compressed_stores(tmp_path, small_blocks, few_slots, codec):
    plain = oocgraph.build_csr(random_table(4), tmp_path / "p", weight="weight")
    with oocgraph.config.setting("codec", codec):
        packed = oocgraph.build_csr(random_table(4), tmp_path / "c", weight="weight")
    np.testing.assert_array_equal(sssp(packed, 11).distance, sssp(plain, 11).distance)


def test_an_opened_graph_of_strings_or_numbers_serves_many_searches(tmp_path):
    store = oocgraph.build_csr(random_table(6), tmp_path / "g", weight="weight")
    with oocgraph.open_runtime(store) as runtime:
        np.testing.assert_array_equal(sssp(store, 11, runtime=runtime).distance, sssp(store, 11).distance)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "fast"}, "schedule is 'fast'; it must be one of auto, async, buckets, rounds"),
        ({"delta": 0}, "delta is 0; it must be a number, above 0"),
        ({"delta": True}, "delta is True"),
        ({"delta": math.nan}, "delta is nan"),
        ({"distance_limit": -1}, "distance_limit is -1; it must be a number, 0 or more"),
        ({"distance_limit": "far"}, "distance_limit is 'far'"),
        ({"weight": "length"}, "'length' is no numeric edge column; give weight=, one of weight"),
        ({"target": []}, "target is an empty list; name at least one vertex id, or leave it out"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, options, message):
    store = oocgraph.build_csr(random_table(4), tmp_path / "g", weight="weight")
    with pytest.raises(ArgumentError, match=message):
        sssp(store, 11, **options)


@pytest.mark.parametrize("values", [[3, -1, 2], [3.0, math.nan, 2.0], [3.0, -0.5, 1.0]])
def test_negative_weights_and_nan_are_refused_by_name(tmp_path, values):
    whole = pa.table({"source": [1, 2, 3], "target": [2, 3, 4], "cost": np.abs(np.nan_to_num(values))})
    with oocgraph.config.setting("vertex-order", "original"):
        oocgraph.build_csr(whole, tmp_path / "whole", weight="cost", directed=True)
    store = rewrite(tmp_path / "whole", tmp_path / "g", arrays={"out/weight": np.array(values)})  # a table with NaN is not built
    with pytest.raises(ArgumentError, match="of the edge from 2 to 3 is negative or no number; shortest paths need 0 or more"):
        sssp(store, 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", [*SCHEDULES, "auto"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["int", "float", "zeros"])
def test_paths_from_the_nearest_of_several(tmp_path, schedule, directed, kind):
    """Distances are the least of those from each, also to a target; paths begin at the source that is named as their origin."""
    table = random_table(6, weights=(0, 3) if kind == "zeros" else (1, 255), dtype=np.float64 if kind == "float" else np.int64)
    graph = oocgraph.build_csr(table, tmp_path / "g", weight="weight", directed=directed, duplicates="min", num_vertices=2000)
    alone = int(np.setdiff1d(np.arange(2000), table[["source", "target"]].to_numpy())[3])
    given = [int(table.source[0]), int(table.target[7]), alone, int(table.source[0])]
    result = sssp(graph, given, schedule=schedule)
    verify_sssp(graph, result)
    each = np.min([as_float(sssp(graph, one, schedule=schedule)) for one in given], axis=0)
    np.testing.assert_array_equal(as_float(result), each)
    reached = as_float(result) < np.inf
    assert set(result.origin[reached].tolist()) == set(given)
    assert (result.origin[~reached] == -1).all()
    for vertex in result.vertices[reached][::7].tolist():
        assert result.path(vertex)[0] == result.origin_of(vertex)
        assert sssp(graph, result.origin_of(vertex)).distance_of(vertex) == pytest.approx(result.distance_of(vertex))
    far = int(result.vertices[reached][np.argmax(as_float(result)[reached])])
    bounded = sssp(graph, given, target=far, schedule=schedule)
    assert bounded.distance_of(far) == result.distance_of(far)
    verify_sssp(graph, bounded)
    assert sssp(graph, given, target=given[:2], schedule=schedule).eccentricity == 0
    assert "from [" in repr(result)
    assert "from 5 sources" in repr(sssp(graph, table.source[:5]))


def test_paths_from_several_of_whom_one_is_wrong_are_refused(tmp_path):
    graph = oocgraph.build_csr(random_table(4), tmp_path / "g", weight="weight")
    found = sssp(graph, [11, 4])
    with pytest.raises(ArgumentError, match="no source was given"):
        sssp(graph, [])
    with pytest.raises(VertexNotFoundError, match="1000"):
        sssp(graph, [4, 1000])
    with pytest.raises(ValidationError, match=r"vertex 4 "):
        verify_sssp(graph, replace(found, source=[11]))
    with pytest.raises(ValidationError, match="is a source, and not its own parent at distance 0"):
        verify_sssp(graph, replace(found, source=[11, 4, int(found.vertices[found.distance > 0][0])]))
    with pytest.raises(ValidationError, match="isolated sources"):
        verify_sssp(graph, replace(found, isolated={4: 0}))


def test_sources_may_be_names(tmp_path):
    """Also those without edges, and of a graph in the other direction."""
    edges = pd.DataFrame({"source": ["a", "b", "c", "d"], "target": ["b", "c", "d", "e"], "weight": [1.5, 2, 4, 1]})
    graph = oocgraph.build_csr(edges, tmp_path / "g", weight="weight", directed=True, keep_self_loops=False)
    graph = oocgraph.append_edges(graph, pd.DataFrame({"source": ["z"], "target": ["z"], "weight": [1.0]}), weight="weight")
    found = sssp(graph, {"d", "a", "z"})
    verify_sssp(graph, found)
    named = dict(zip(found.vertices.tolist(), found.origin.tolist(), strict=True))
    assert named == {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d", "z": "z"}
    back = sssp(graph, ["c", "e"], reverse=True)
    verify_sssp(graph, back)
    assert [back.origin_of(one) for one in "abcdez"] == ["c", "c", "c", "e", "e", None]


def test_a_graph_without_weights_is_refused(tmp_path):
    store = oocgraph.build_csr(([1], [2]), tmp_path / "g")
    with pytest.raises(ArgumentError, match=r"has no weights; give weight, the name of an edge column, or count edges by oocgraph\.bfs"):
        sssp(store, 1)


def test_a_damaged_store_is_refused(tmp_path, small_blocks):
    store = oocgraph.build_csr(random_table(4), tmp_path / "g", weight="weight")
    wrong = rewrite(tmp_path / "g", tmp_path / "wrong", arrays={"out/indices": np.full_like(store.read("out/indices"), 2**31)})
    with pytest.raises(CorruptStoreError, match=r"out/indices"):
        sssp(wrong, 11)


def test_too_small_a_budget_is_refused_with_one_that_works(tmp_path):
    store = oocgraph.build_csr(random_table(4), tmp_path / "g", weight="weight")
    with pytest.raises(BudgetError, match=r"set memory_budget to at least \d+M"):
        sssp(store, 11, memory_budget="32M")


def test_what_progress_raises_ends_it(tmp_path):
    store = oocgraph.generate_kronecker(10, tmp_path / "g", weights=(1, 255))

    def stop(*_):
        raise KeyboardInterrupt

    source = int(store.read("vertices/id")[0])
    with pytest.raises(KeyboardInterrupt):
        sssp(store, source, progress=stop)
    sssp(store, source)


class TestVerification:
    """Every rule is broken once, and named."""

    @pytest.fixture
    def case(self, tmp_path):
        store = oocgraph.build_csr(random_table(4), tmp_path / "g", weight="weight", duplicates="min")
        return store, sssp(store, 11)

    @pytest.mark.parametrize("change", ["longer", "shorter", "parent", "unreached", "source", "circle"])
    def test_what_is_wrong_is_found(self, case, change):
        store, result = case
        distance, parent = result.stored_value.copy(), result.stored_parent.copy()
        far = int(np.argmax(np.where(distance < 2**31 - 1, distance, -1)))
        source = int(np.flatnonzero(distance == 0)[0])
        if change == "longer":
            distance[far] += 1
        elif change == "shorter":
            distance[far] -= 1
        elif change == "parent":
            parent[far] = far
        elif change == "unreached":
            distance[far], parent[far] = 2**31 - 1, np.iinfo(parent.dtype).max
        elif change == "source":
            distance[source] = 1
        else:
            distance[:] = 0
            parent[source] = far
        wrong = oocgraph.SSSPResult(**{**vars_of(result), "stored_value": distance, "stored_parent": parent})
        with pytest.raises(oocgraph.ValidationError):
            verify_sssp(store, wrong)

    def test_another_kind_of_result_is_refused(self, case):
        with pytest.raises(OocGraphError, match=r"give what oocgraph\.sssp returns"):
            verify_sssp(case[0], oocgraph.bfs(case[0], 11))


def vars_of(result):
    return {field.name: getattr(result, field.name) for field in fields(result)}


@pytest.mark.parametrize("schedule", ["auto", "async", "buckets", "rounds"])
@pytest.mark.parametrize("weights", [[math.inf, 1.0, 2.0], [1.7e308, 1.7e308, 2.0]])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_infinite_distances_lead_to_is_not_reached(tmp_path, where, schedule, weights):
    edges = pa.table({"source": [1, 2, 1], "target": [2, 3, 4], "weight": weights})
    graph = oocgraph.build_csr(edges, tmp_path / "g.zarr" if where == "disk" else None, weight="weight", directed=True)
    result = sssp(graph, 1, schedule=schedule)
    last = 2 if weights[0] == math.inf else 3
    assert result.distance.tolist() == [0.0, *(weights[0] if v < last else math.inf for v in (2, 3)), 2.0]
    assert result.parent.tolist() == [1, *(1 if v < last else -1 for v in (2, 3)), 1]
    assert result.num_reached == last
    verify_sssp(graph, result)


def test_what_is_beyond_a_target_has_no_parent():
    """A small graph in memory is searched by a kernel of its own, which has seen more on the way."""
    graph = oocgraph.build_csr(pa.table({"source": [1, 2, 1, 3], "target": [2, 3, 4, 4], "weight": [1, 2, 0, 5]}), weight="weight")
    result = sssp(graph, 1, target=2)
    assert result.distance.tolist() == [0, 1, -1, 0]
    assert result.parent.tolist() == [1, 1, -1, 1]
    verify_sssp(graph, result)


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 2e-308])
@pytest.mark.parametrize("num_edges", [3, 120])
def test_the_smallest_numbers_are_weights(tmp_path, weight, num_edges):
    """A bucket of a part of them would have no width."""
    ends = np.array([[0, 1], [1, 2], [2, 3]] * (num_edges // 3))
    edges = pd.DataFrame({"source": ends[:, 0], "target": ends[:, 1], "weight": weight})
    graph = oocgraph.build_csr(edges, tmp_path / "g.zarr", weight="weight", duplicates="keep")
    for schedule in ("auto", "async", "buckets", "rounds"):
        assert sssp(graph, 0, schedule=schedule).distance.tolist() == [0, weight, 2 * weight, 3 * weight]


@pytest.mark.parametrize("names", ["numbers", "text"])
def test_values_of_many_vertices_without_edges(names):
    """Each has its own; the others of the graph that have none have none."""
    ids = np.arange(3000)
    given = ids if names == "numbers" else ids.astype(str).astype(object)
    graph = oocgraph.build_csr(([given[0]], [given[1]]), num_vertices=3000) if names == "numbers" else oocgraph.build_csr(
        (given, given), keep_self_loops=False
    )  # fmt: skip
    widest = oocgraph.Operator("widest", lambda value, weight, old: min(value, weight), order="max")
    some = ids[2::3]
    found = oocgraph.run(graph, widest, (given[some], some * 7), weight=False)
    at = (
        np.searchsorted(found.vertices.astype(np.int64), some) if names == "numbers" else [*map(found.vertices.tolist().index, given[some])]
    )
    np.testing.assert_array_equal(found.value[at], some * 7)
    np.testing.assert_array_equal(found.value_of(given[some[::-1]]), some[::-1] * 7)
    assert found.origin_of(given[2]) == given[2]
    assert found.value_of(given[4]) < 0
    assert found.num_reached == some.size


def test_a_first_row_of_several_blocks_that_are_loaded_meanwhile(tmp_path, monkeypatch):
    """Its first piece was worked on before all blocks were read: the others go to the work list then, or are worked on later."""
    monkeypatch.setattr(blocks, "SHIFT", 4)
    leaves = np.arange(1, 1001)
    with setting("vertex-order", "original"):
        store = oocgraph.build_csr((np.zeros(1000, np.int64), leaves, leaves), tmp_path / "g.zarr", weight="weight")
    for threads in (1, 2):
        for source in (5, 700):
            found = oocgraph.sssp(store, source, weight="weight", schedule="async", resources=Resources(threads=threads, client=False))
            assert found.num_reached == 1001
            oocgraph.verify_sssp(store, found)


@pytest.mark.parametrize("most", [2, 3, 16])
def test_more_buckets_than_a_work_list_has_bags(tmp_path, monkeypatch, most):
    """What is earlier than every bag is not taken for what has been worked on."""
    monkeypatch.setattr(blocks, "SHIFT", 4)
    monkeypatch.setattr(blocks, "MAX_BAGS", most)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        source, target = (np.append(end, rng.integers(1, 300, 900)) for end in (0, 1))
        weight = np.append(1, rng.integers(1, 200, 900))
        with setting("vertex-order", "original"):
            store = oocgraph.build_csr((source, target, weight), tmp_path / f"{seed}.zarr", weight="weight", duplicates="min")
        options = {"weight": "weight", "resources": Resources(threads=2, client=False)}
        found = oocgraph.sssp(store, int(source[5]), schedule="async", delta=1.0, **options)
        expected = oocgraph.sssp(store, int(source[5]), schedule="rounds", **options)
        np.testing.assert_array_equal(found.distance, expected.distance)
