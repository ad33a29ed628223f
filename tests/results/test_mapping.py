"""Results are mappings that hold nothing: whatever a dict of the same values does, they do."""

from __future__ import annotations

import pickle
import sys
import threading
import tracemalloc
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph import build_csr
from oocgraph.config import setting
from oocgraph.errors import ArgumentError, ArgumentTypeError, VertexNotFoundError
from oocgraph.results import base, mapping
from oocgraph.results.product import VectorResult
from oocgraph.store import vertices
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from tests.capped import run_capped
from tests.commands.conftest import ROOT
from tests.reference_build import reference_build
from tests.results.test_bfs import result_of
from tests.stores import string_store


@pytest.fixture
def numbers(tmp_path):
    """Ids 0 .. 9: a path 1-2-3-4, the edge 7-8, the rest isolated."""
    reference_build([1, 2, 3, 7], [2, 3, 4, 8], tmp_path / "g.zarr", implied=(0, 10))
    return open_graph(tmp_path / "g.zarr")


@pytest.fixture
def names(tmp_path):
    """Return strings: a path b-é, the edge x-y; alone and z are isolated."""
    return string_store(tmp_path / "s.zarr", ["b", "x"], ["é", "y"], others=["alone", "z"])


@pytest.fixture
def sparse(tmp_path):
    """Ids far apart, none of which is isolated; directed, in two parts."""
    edges = np.array([[10, 10, 5_000_000], [70, 99, 3]])
    return oocgraph.build_csr(tuple(edges), tmp_path / "d.zarr", directed=True)


LEVELS = {0: -1, 1: 1, 2: 0, 3: 1, 4: 2, 5: -1, 6: -1, 7: -1, 8: -1, 9: -1}
REACHED = {1: 1, 2: 0, 3: 1, 4: 2}


@pytest.mark.parametrize("block", [1, 3, 100])
def test_a_result_is_what_a_dict_of_its_first_column_is(numbers, monkeypatch, block):
    """In order, in any size of blocks, as Python's own integers."""
    monkeypatch.setattr(base, "BLOCK_VERTICES", block)
    monkeypatch.setattr(mapping, "PIECE_VERTICES", 2)
    result = result_of(numbers, 2)
    assert isinstance(result, Mapping)
    assert dict(result) == LEVELS
    assert (list(result), list(result.keys())) == (list(LEVELS), list(LEVELS))
    assert (list(result.values()), list(result.items())) == (list(LEVELS.values()), list(LEVELS.items()))
    assert len(result) == len(result.items()) == len(result.values()) == 10
    assert result
    assert {type(one) for pair in result.items() for one in pair} == {int}
    assert {type(result[4]), type(result.get(4))} == {int}
    assert [result[v] for v in LEVELS] == list(LEVELS.values())
    assert (2 in result.values(), 3 in result.values(), (4, 2) in result.items(), (4, 1) in result.items()) == (True, False, True, False)
    assert np.asarray(result).tolist() == list(LEVELS.values())
    assert (np.asarray(result).dtype, np.asarray(result, float).dtype) == (np.int32, float)
    assert not {"vertices", "level", "parent"} & set(vars(result))


@pytest.mark.parametrize("block", [1, 3, 100])
def test_what_was_reached_is_a_mapping_of_its_own(numbers, monkeypatch, block):
    monkeypatch.setattr(base, "BLOCK_VERTICES", block)
    result = result_of(numbers, 2)
    reached, parents = result.reached(), result.reached("parent")
    assert dict(reached) == REACHED == reached
    assert dict(parents) == {1: 2, 2: 2, 3: 2, 4: 3} == parents
    assert (len(reached), list(reached), list(reached.values())) == (4, list(REACHED), list(REACHED.values()))
    assert (4 in reached, 0 in reached, 9 in reached, 77 in reached) == (True, False, False, False)
    assert (reached[4], reached.get(7), reached.get(7, "far")) == (2, None, "far")
    with pytest.raises(VertexNotFoundError, match="7 was not reached; the result itself has -1 as its level"):
        parents[7]
    assert np.asarray(parents).tolist() == [2, 2, 2, 3]
    assert repr(reached) == "<level of 4 reached vertices, by id, of BFSResult>"
    assert repr(result.column("parent")) == "<parent of 10 vertices, by id, of BFSResult>"


def test_an_isolated_source_has_reached_itself(numbers, names):
    assert result_of(numbers, [0, 7]).reached() == {0: 0, 7: 0, 8: 1}
    assert result_of(names, ["alone"]).reached("parent") == {"alone": "alone"}


def test_string_ids_are_keys(names):
    result = result_of(names, "b")
    assert dict(result) == {"alone": -1, "b": 0, "x": -1, "y": -1, "z": -1, "é": 1} == result
    assert result.column("parent") == {"alone": None, "b": "b", "x": None, "y": None, "z": None, "é": "b"}
    assert result.reached("parent") == {"b": "b", "é": "b"}
    assert ("é" in result, "e" in result, 3 in result) == (True, False, False)
    assert np.asarray(result.reached("parent")).tolist() == ["b", "b"]


@pytest.mark.parametrize("block", [1, 4, 100])
def test_equality_is_that_of_mappings(numbers, names, monkeypatch, block):
    """With dicts, both ways round, and with other results, which may come in other blocks."""
    result, again = result_of(numbers, 2), result_of(numbers, 2)
    monkeypatch.setattr(base, "BLOCK_VERTICES", block)
    assert result == LEVELS
    assert dict.__eq__(LEVELS, result) is NotImplemented  # so that Python asks the result
    assert result == again
    assert result.reached() == again.reached() == REACHED
    assert result.reached() == {**REACHED, 4: 2.0}
    assert result.reached("parent") != result.reached()
    assert result != {**LEVELS, 4: 3}
    assert result != {**REACHED}
    assert result.reached() != {1: 1, 2: 0, 3: 1, 5: 2}
    assert result != result_of(numbers, 3)
    assert result != result_of(names, "b")
    assert result != list(LEVELS.values())
    assert result != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)


def test_blocks_that_are_cut_elsewhere_are_compared():
    def cut(*bounds):
        ids = np.arange(7)
        return ((part, -part) for part in np.split(ids, bounds))

    assert mapping._same(cut(3), cut(1, 1, 2, 5))
    assert not mapping._same(cut(3), iter([(np.arange(7), np.array([0, -1, -2, -3, -4, -5, -7]))]))
    assert not mapping._same(iter([(np.array([1, 3]), np.zeros(2))]), iter([(np.array([1, 2]), np.zeros(2))]))


def test_what_is_no_key_is_refused(numbers, names):
    """Lookups of one id; methods such as `level_of` take texts and several ids, mappings do not."""
    result = result_of(numbers, 2)
    for absent in (10, -1, 2**70, "2", 2.5, None, True, (1, 2)):
        assert absent not in result
        assert result.get(absent, "none") == "none"
        with pytest.raises(KeyError):
            result[absent]
    with pytest.raises(VertexNotFoundError, match=r"vertex 10 is not in .*ids are int64, 0 to 9"):
        result[10]
    for several in ([1, 2], np.array([1, 2]), {1}):
        with pytest.raises(ArgumentTypeError, match="is not one vertex"):
            result[several]
    with pytest.raises(VertexNotFoundError, match="ids are strings"):
        result_of(names, "b")[3]
    with pytest.raises(ArgumentError, match="BFSResult has no column 'distance'; it has level, parent"):
        result.reached("distance")
    with pytest.raises(ArgumentError, match="no column 'rank'"):
        result.column("rank")


@pytest.mark.parametrize("weights", [[2, 1, 4], [0.5, 1.0, 4.0]])
def test_distances_are_a_mapping(tmp_path, weights):
    """Without a path -1 or infinity in the result, and no key of what was reached; an isolated source has reached itself."""
    edges = pd.DataFrame({"source": [10, 10, 50], "target": [70, 99, 51], "w": weights})
    store = oocgraph.build_csr(edges, tmp_path / "g.zarr", directed=True, weight="w")
    result = oocgraph.sssp(store, 10)
    far = -1 if isinstance(weights[0], int) else np.inf
    assert dict(result) == {10: 0, 50: far, 51: far, 70: weights[0], 99: weights[1]} == result
    assert dict(result.reached()) == {10: 0, 70: weights[0], 99: weights[1]} == result.reached()
    assert result.reached("parent") == {10: 10, 70: 10, 99: 10}
    assert {type(one) for one in result.values()} == {type(weights[0])}


def test_other_results_are_mappings_too(sparse):
    components, ranks, cores = oocgraph.connected_components(sparse), oocgraph.pagerank(sparse), oocgraph.core_numbers(sparse)
    assert components == {3: 3, 10: 10, 70: 10, 99: 10, 5_000_000: 3}
    assert cores == dict.fromkeys([3, 10, 70, 99, 5_000_000], 1)
    assert list(ranks.items()) == list(zip(ranks.vertices.tolist(), ranks.rank.tolist(), strict=True))
    assert ranks[70] == ranks.rank_of(70)
    hubs = oocgraph.hits(sparse)
    assert dict(hubs.column("authority")) == dict(zip(hubs.vertices.tolist(), hubs.authority.tolist(), strict=True))
    assert oocgraph.pagerank(sparse, personalization=components.column()) is not None


def test_a_search_from_many_sources_needs_levels_to_have_values(sparse):
    with_levels = oocgraph.multi_source_bfs(sparse, [10, 3], distances=True)
    assert with_levels == {3: -1, 10: 0, 70: 1, 99: 1, 5_000_000: -1}
    without = oocgraph.multi_source_bfs(sparse, [10])
    assert (len(without), list(without)) == (5, [3, 10, 70, 99, 5_000_000])
    with pytest.raises(ArgumentError, match="no levels"):
        without[10]


@pytest.mark.parametrize("implied", [True, False])
def test_what_stands_at_positions_is_looked_up(tmp_path, implied):
    """Personalized ranks of isolated vertices, and vectors, have a value for each position among all ids."""
    if implied:
        reference_build([1, 2], [2, 4], tmp_path / "g.zarr", implied=(0, 6))
        store = open_graph(tmp_path / "g.zarr")
    else:
        store = string_store(tmp_path / "g.zarr", ["b", "d"], ["d", "f"], others=["a", "c", "z"])
    ids = next(iter(VertexIds(store).blocks()))[0].tolist()
    vector = VectorResult(ids=VertexIds(store), by_id=np.arange(len(ids)) * 1.5)
    assert [vector[one] for one in ids] == [1.5 * i for i in range(len(ids))]
    assert dict(vector) == dict(zip(ids, vector.value.tolist(), strict=True))
    ranks = oocgraph.pagerank(store, personalization={ids[0]: 1.0, ids[1]: 2.0, ids[-1]: 5.0})
    assert [ranks[one] for one in ids] == ranks.rank.tolist()
    assert ranks.rank_of(ids[::-1]).tolist() == ranks.rank[::-1].tolist()
    assert VertexIds(store).positions_of([*ids, ids[2]]).tolist() == [*range(len(ids)), 2]


def test_positions_are_found_in_streams_and_by_bisection(tmp_path, monkeypatch):
    """Few in a long column by bisection, many in blocks; those of which the input has only self-loops are isolated."""
    every = np.arange(0, 10_000, 250)
    store = oocgraph.build_csr((every, np.where(every % 500, every, (every + 1000) % 10_000)), tmp_path / "g.zarr")
    ids = VertexIds(store)
    assert store.attributes.num_isolated
    for seek in (0, 1 << 20):
        monkeypatch.setattr(vertices, "_SEEK_IDS", seek)
        monkeypatch.setattr(vertices, "BLOCK_VERTICES", 4)
        assert ids.positions_of(every).tolist() == list(range(40))


def test_no_use_of_a_mapping_holds_memory_for_each_vertex(tmp_path):
    """All uses together peak at a few blocks, whatever the graph's size: less than 8 bytes a vertex here, where a dict takes 70."""
    edges = np.arange(1 << 20)
    with setting("vertex-order", "original"):
        store = oocgraph.build_csr((edges[:-1], edges[1:]), tmp_path / "path.zarr")
    result = oocgraph.connected_components(store)
    reached = oocgraph.bfs(store, 5, depth_limit=3).reached()
    tracemalloc.start()
    try:
        assert sum(result.values()) == 0
        assert sum(vertex for vertex, _ in result.items()) == edges.sum()
        assert sum(result.keys()) == edges.sum()
        assert result == result.column("component")
        assert (result[77], 77 in result, len(result), 5 in result.values()) == (0, True, 1 << 20, False)
        assert reached == {2: 3, 3: 2, 4: 1, 5: 0, 6: 1, 7: 2, 8: 3}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert not {"vertices", "component"} & set(vars(result))


@pytest.mark.capped
def test_mappings_are_used_within_a_cap(tmp_path):
    """A dict of the same values takes 100 MB beside what the process holds, and does not fit."""
    edges = np.arange(1 << 20)
    oocgraph.build_csr((edges[:-1], edges[1:]), tmp_path / "path.zarr")
    assert oocgraph.connected_components(tmp_path / "path.zarr").num_components == 1  # kernels compiled: a compiler needs more than the cap
    program = (
        "import oocgraph\n"
        f"result = oocgraph.connected_components({str(tmp_path / 'path.zarr')!r}, memory_budget='140M')\n"
        "assert sum(result.values()) == 0 and sum(1 for _ in result.items()) == len(result) == 1 << 20\n"
        "assert result == result.column('component') and result[77] == 0 and 5 not in result.values()\n"
    )
    done = run_capped(166 << 20, [sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT)}, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("codec", ["none", "blosc"])
def test_a_dict_of_a_mapping_is_streamed(tmp_path, monkeypatch, codec):
    """It asks for all ids, and then for the value of each: these are lookups in order, which are not made one by one."""
    monkeypatch.setattr(mapping, "PIECE_VERTICES", 7)
    rng = np.random.default_rng(1)
    num_ids = 400 if codec == "none" else 60  # a lookup decodes whole chunks
    with setting("codec", codec):
        graph = build_csr(tuple(3 * rng.integers(0, num_ids, (2, 1500))), tmp_path / "g", directed=True)
    found = oocgraph.bfs(graph, next(iter(graph)))
    for one in (found, found.reached(), found.column("parent"), oocgraph.connected_components(graph)):
        expected = dict(one.items())
        keys = list(expected)
        with monkeypatch.context() as patched:
            patched.setattr(type(one), "_value_of_key", lambda self, vertex: pytest.fail(f"{vertex} is looked up alone"))
            assert dict(one) == expected
            assert {vertex: one[vertex] for vertex in one} == expected
            assert dict(one) == dict(pickle.loads(pickle.dumps(one))) == expected
        asked = list(one)[:5]  # others are looked up meanwhile, and the same ones again
        for vertex in [*asked, keys[-1], *keys[5:9], keys[2], *keys[9:], keys[0]]:
            assert one[vertex] == expected[vertex]
        list(one)
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(lambda asked=one, ids=keys[:30]: [asked[vertex] for vertex in ids]) for _ in range(4)]
            assert all(call.result() == list(expected.values())[:30] for call in running)
        with pytest.raises(VertexNotFoundError):
            one[keys[-1] + 1]


def test_threads_that_make_dicts_at_once_each_stream(tmp_path, monkeypatch):
    result = oocgraph.bfs(build_csr((np.arange(3000), np.arange(1, 3001)), tmp_path / "g.zarr"), 0)
    lookups = []
    monkeypatch.setattr(base.VertexResult, "_value_of_key", lambda self, vertex: lookups.append(vertex))
    begun = threading.Barrier(4)

    def made(_):
        begun.wait()
        return dict(result)

    with ThreadPoolExecutor(4) as pool:
        assert all(one == {v: v for v in range(3001)} for one in pool.map(made, range(4)))
    assert not lookups
