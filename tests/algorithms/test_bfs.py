"""Breadth-first search against SciPy and Graph500's rules: every direction, residency, store and shape of graph."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import breadth_first_order

from oocgraph import build_csr
from oocgraph.algorithms.bfs import bfs
from oocgraph.engine import shard_plan
from oocgraph.engine.levels import search
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import BudgetError, CorruptStoreError, OocGraphError, VertexNotFoundError
from oocgraph.store.graph import open_graph
from oocgraph.verify import verify_bfs
from tests.processes import open_files
from tests.reference_build import reference_build
from tests.stores import rewrite, string_store

DIRECTIONS = ["auto", "push", "pull", "half", "alpha-beta", "gemini"]


def scipy_levels(store, source):
    """Levels from SciPy's tree, in store order."""
    n = store.num_rows
    indptr, indices = store.read("out/indptr"), store.read("out/indices").astype(np.int64)
    graph = sp.csr_array((np.ones(indices.size, np.int8), indices, indptr), shape=(n, n))
    order, parent = breadth_first_order(graph, source, directed=True)
    level = np.full(n, -1)
    level[source] = 0
    for v in order[1:]:
        level[v] = level[parent[v]] + 1
    return level


def in_store_order(found):
    """Levels as int64 with -1 for unreached."""
    level = found.level.astype(np.int64)
    level[level == 255] = -1 if found.level.dtype == np.uint8 else 255
    return level


@pytest.fixture
def cramped(monkeypatch):
    """Make every residency plan a random small one: some planes, some edges, a few cached pages, a few kept tails."""
    original = shard_plan.plan_residency

    def use(seed):
        rng = np.random.default_rng(seed)

        def plan(sizes, **options):
            return dataclasses.replace(
                original(sizes, **options),
                num_planes=int(rng.integers(0, len(sizes.plane_edges))),
                num_resident=tuple(int(rng.integers(0, m)) if m else 0 for m in sizes.num_edges),
                cache_slots=int(rng.integers(1, 20)),
                num_kept=int(rng.integers(0, 2000)),
            )

        monkeypatch.setattr(shard_plan, "plan_residency", plan)
        monkeypatch.setattr(shard_plan, "page_cache_bytes", lambda budget_bytes: 0 if seed % 2 else 1 << 40)  # streams by O_DIRECT, or not

    yield use
    monkeypatch.undo()


@st.composite
def graphs(draw):
    """Edges with self-loops, multi-edges, isolated vertices and several components; skewed or not."""
    n = draw(st.integers(1, 600))
    m = draw(st.integers(0, 12 * n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    power = draw(st.sampled_from([1, 2, 4]))
    src, dst = ((rng.random(m) ** p * n).astype(np.int64) for p in (power, 1))
    options = {
        "directed": draw(st.booleans()),
        "vertex_order": draw(st.sampled_from(["degree", "original"])),
        "keep_self_loops": draw(st.booleans()),
        "duplicates": draw(st.sampled_from(["drop", "keep"])),
    }
    return n, src, dst, options, rng


@given(case=graphs(), direction=st.sampled_from(DIRECTIONS), on_disk=st.booleans(), plain=st.booleans(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_levels_equal_scipy_and_the_tree_is_valid(case, direction, on_disk, plain, seed, tmp_path_factory, cramped):
    n, src, dst, options, rng = case
    path = tmp_path_factory.mktemp("g") / "graph.zarr"
    reference_build(src, dst, path, implied=(0, n), **options)
    store = open_graph(path)
    if on_disk:
        cramped(seed)
    with LocalRuntime.open(store, io_threads=4, threads=2, check_pages=bool(rng.integers(2))) as runtime:
        if on_disk and not plain:  # as for a compressed or remote store
            for adjacency in runtime.graph.adjacencies:
                if adjacency.files is not None:
                    adjacency.files.close()
                    adjacency.files = None
        for _ in range(2):
            source = int(rng.integers(n))
            result = bfs(store, source, runtime=runtime, direction=direction)
            number = int(result.ids.vertices_of([source])[0])
            if number < 0:
                assert (result.num_reached, result.depth, result.level_of([source])[0]) == (1, 0, 0)
                continue
            expected = scipy_levels(store, number)
            np.testing.assert_array_equal(in_store_order(result.search), expected)
            assert result.num_reached == np.count_nonzero(expected >= 0)
            assert result.depth == expected.max()
            assert sum(i.bytes_read for i in result.iterations) == result.bytes_requested
            verify_bfs(store, result)


def test_teps_counts_edges_of_the_reached_component_once(tmp_path):
    """A triangle with a kept self-loop and a doubled edge, apart from another component."""
    edges = [(0, 1), (1, 2), (2, 0), (0, 0), (0, 1), (5, 6)]
    src, dst = np.array(edges).T
    reference_build(src, dst, tmp_path / "g", keep_self_loops=True, duplicates="keep")
    assert bfs(tmp_path / "g", 0).num_reached_edges == 5
    reference_build(src, dst, tmp_path / "d", directed=True)
    assert bfs(tmp_path / "d", 0).num_reached_edges == 3


@pytest.mark.parametrize("names", ["numbers", "text"])
def test_the_origin_of_a_vertex_is_the_source_it_is_reached_from(tmp_path, names):
    """Also of a vertex in a graph of more values than NumPy joins, and of sources without edges."""
    edges = np.arange(100_000)[:, None] + [0, 1]
    edges[60_000:] += 100
    given = [50_000, 10, 80_000, 60_050]
    if names == "text":
        edges, given = edges.astype(str), [str(one) for one in given]
    graph = build_csr((*edges.T,), tmp_path / "g", directed=True, num_vertices=200_000 if names == "numbers" else None)
    found = bfs(graph, given[: 4 if names == "numbers" else 3])
    expected = {
        "9": -1,
        "10": 10,
        "49999": 10,
        "50000": 50_000,
        "60000": 50_000,
        "60050": 60_050,
        "70000": -1,
        "80000": 80_000,
        "100099": 80_000,
    }
    for vertex, origin in expected.items():
        if names == "text":
            wanted = None if origin == -1 else str(origin)
            assert vertex == "60050" or found.origin_of(vertex) == wanted
        else:
            assert found.origin_of(int(vertex)) == found.origin[int(vertex)] == origin
    assert found.origin.size == graph.num_vertices


def test_several_sources_are_one_traversal(tmp_path):
    reference_build(np.arange(99), np.arange(1, 100), tmp_path / "g")
    result = bfs(tmp_path / "g", [0, 99, 50])
    ids = np.arange(100)
    np.testing.assert_array_equal(result.level, np.minimum.reduce([abs(ids - s) for s in (0, 99, 50)]))
    assert set(result.parent[[0, 50, 99]]) == {0, 50, 99}


def test_depth_limit_stops_and_reports_the_level_reached(tmp_path):
    reference_build(np.arange(999), np.arange(1, 1000), tmp_path / "g")
    for limit in (0, 1, 7, 400, 2000):
        result = bfs(tmp_path / "g", 0, depth_limit=limit)
        assert (result.depth, result.num_reached) == (min(limit, 999), min(limit, 999) + 1)
        verify_bfs(tmp_path / "g", result)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("direction", ["auto", "half"])
def test_path_of_hundred_thousand(tmp_path, cramped, on_disk, direction):
    """Levels beyond 254 leave the one-byte form; there is no Python per level where the rule is the cost."""
    n = 100_000 if direction == "auto" else 700
    reference_build(np.arange(n - 1), np.arange(1, n), tmp_path / "g", implied=(0, n))
    if on_disk:
        cramped(3)
    result = bfs(tmp_path / "g", 0, direction=direction)
    assert (result.depth, result.num_reached) == (n - 1, n)
    np.testing.assert_array_equal(result.level, np.arange(n))
    assert sum(one.frontier for one in result.iterations) == n
    assert result.iterations[-1].level == n  # the last one finds that nothing is left


def test_star_is_searched_from_hub_and_leaf(tmp_path):
    n = 1_000_000
    reference_build(np.zeros(n, np.int64), np.arange(1, n + 1), tmp_path / "g", implied=(0, n + 1))
    for source, depth in ((0, 1), (77, 2)):
        result = bfs(tmp_path / "g", source)
        assert (result.depth, result.num_reached) == (depth, n + 1)
        verify_bfs(tmp_path / "g", result)


@pytest.mark.parametrize("outward", [True, False])
def test_directed_star_has_more_vertices_than_edges_in_its_last_frontier(tmp_path, outward):
    """Leaves without out-edges: a frontier larger than the queue of the kernel for few edges."""
    n = 200_000
    hub, leaves = np.zeros(n, np.int64), np.arange(1, n + 1)
    reference_build(*((hub, leaves) if outward else (leaves, hub)), tmp_path / "g", directed=True)
    result = bfs(tmp_path / "g", 0 if outward else list(range(1, n + 1)))
    assert (result.num_reached, result.depth) == (n + 1, 1)
    verify_bfs(tmp_path / "g", result)


def test_string_ids(tmp_path):
    store = string_store(tmp_path / "g", ["b", "a", "ä"], ["a", "c", "é"], others=["alone"])
    result = bfs(store, "b")
    assert dict(zip(result.vertices, result.level, strict=True)) == {"a": 1, "alone": -1, "b": 0, "c": 2, "ä": -1, "é": -1}
    assert result.parent.tolist() == ["b", None, "b", "a", None, None]
    assert bfs(store, "alone").num_reached == 1


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_compressed_store_gives_the_same_levels(tmp_path, codec, cramped):
    rng = np.random.default_rng(5)
    reference_build(rng.integers(0, 3000, 40_000), (rng.random(40_000) ** 3 * 3000).astype(int), tmp_path / "g")
    plain = open_graph(tmp_path / "g")
    expected = bfs(plain, 7)
    packed = rewrite(plain.url, tmp_path / "z", codec=codec)
    cramped(1)
    result = bfs(packed, 7)
    np.testing.assert_array_equal(result.level, expected.level)
    assert result.bytes_read > 0


def test_bytes_read_is_positive_on_disk_and_zero_when_all_is_resident(tmp_path, cramped):
    rng = np.random.default_rng(5)
    reference_build(rng.integers(0, 9000, 90_000), rng.integers(0, 9000, 90_000), tmp_path / "g")
    assert bfs(tmp_path / "g", 7).bytes_requested == 0
    cramped(2)
    result = bfs(tmp_path / "g", 7)
    assert 0 < result.bytes_requested <= result.bytes_read
    assert result.read_fraction == result.bytes_read / result.edge_bytes


def test_flipped_byte_is_found_by_a_checked_traversal(tmp_path, cramped):
    rng = np.random.default_rng(6)
    reference_build(rng.integers(0, 4000, 60_000), rng.integers(0, 4000, 60_000), tmp_path / "g")
    chunk = tmp_path / "g/out/indices/c/0"
    raw = bytearray(chunk.read_bytes())
    raw[len(raw) - 5] ^= 1
    chunk.write_bytes(raw)
    cramped(4)
    with pytest.raises(CorruptStoreError, match=r"c/0: page at byte \d+ of out/indices differs"):
        [bfs(open_graph(tmp_path / "g", check_pages=True), source, direction="push") for source in range(40)]


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_damaged_chunk_is_refused_at_once(tmp_path, damage):
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "g")
    chunk = tmp_path / "g/out/indices/c/0"
    chunk.unlink() if damage == "missing" else chunk.write_bytes(chunk.read_bytes()[:-4])
    with pytest.raises(CorruptStoreError, match=r"out/indices/c/0.*(missing|bytes instead of)"):
        bfs(tmp_path / "g", 0)


def test_read_that_fails_later_is_an_error_not_a_wrong_answer(tmp_path, cramped):
    rng = np.random.default_rng(6)
    reference_build(rng.integers(0, 4000, 60_000), rng.integers(0, 4000, 60_000), tmp_path / "g")
    cramped(4)
    with LocalRuntime.open(tmp_path / "g") as runtime:
        chunk = tmp_path / "g/out/indices/c/0"
        chunk.write_bytes(b"")
        with pytest.raises(CorruptStoreError, match="cannot be read to its end"):
            [search(runtime, np.array([source]), direction="push") for source in range(40)]


def test_wrong_sources_are_refused(tmp_path):
    reference_build([0, 1], [1, 2], tmp_path / "g")
    with pytest.raises(VertexNotFoundError, match="99"):
        bfs(tmp_path / "g", 99)
    with pytest.raises(OocGraphError, match="no source"):
        bfs(tmp_path / "g", [])
    with pytest.raises(OocGraphError, match="depth_limit"):
        bfs(tmp_path / "g", 0, depth_limit=-1)


@pytest.mark.usefixtures("steady_memory")
def test_small_budget_is_refused_with_one_that_works(tmp_path):
    reference_build(np.arange(99_999), np.arange(1, 100_000), tmp_path / "g")
    with pytest.raises(BudgetError, match=r"at least (\d+)M") as caught:
        bfs(tmp_path / "g", 0, memory_budget="20M")
    smallest = str(caught.value).rsplit("at least ", 1)[1]
    assert bfs(tmp_path / "g", 0, memory_budget=smallest).num_reached == 100_000


def test_graph_without_edges(tmp_path):
    reference_build(np.array([3]), np.array([3]), tmp_path / "g")
    result = bfs(tmp_path / "g", 3)
    assert (result.num_reached, result.depth, result.bytes_read, result.vertices.tolist()) == (1, 0, 0, [3])


LOADED = ["out/indices", "out/degrees/value", "out/planes/indices"]


@pytest.mark.parametrize(
    ("name", "asked"),
    [*((name, asked) for name in LOADED for asked in (False, True)), ("vertices/order", True), ("vertices/sorted_id", True)],
)
def test_flipped_byte_in_what_is_loaded_is_found_and_in_all_that_is_read_when_asked(tmp_path, name, asked):
    rng = np.random.default_rng(6)
    reference_build(rng.integers(0, 4000, 60_000), rng.integers(0, 4000, 60_000), tmp_path / "g")
    chunk = tmp_path / "g" / name / "c/0"
    raw = bytearray(chunk.read_bytes())
    raw[len(raw) // 2] ^= 64
    chunk.write_bytes(raw)
    with pytest.raises(CorruptStoreError, match=rf"{name}.*checksum"):
        bfs(open_graph(tmp_path / "g", check_pages=asked), 7).level.sum()


def test_searches_of_one_runtime_in_several_threads_are_right(tmp_path, cramped):
    from concurrent.futures import ThreadPoolExecutor

    side = 120
    grid = np.arange(side * side).reshape(side, side)
    ends = (np.concatenate([grid[:-1].ravel(), grid[:, :-1].ravel()]), np.concatenate([grid[1:].ravel(), grid[:, 1:].ravel()]))
    reference_build(*ends, tmp_path / "g")
    cramped(5)
    with LocalRuntime.open(tmp_path / "g") as runtime, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda source: bfs(tmp_path / "g", source, runtime=runtime).depth, [0, side - 1, 5, 7000]))
    assert found == [bfs(tmp_path / "g", source).depth for source in (0, side - 1, 5, 7000)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "Push"}, "direction is 'Push'; it must be one of auto, push"),
        ({"depth_limit": 1.5}, "depth_limit is 1.5"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, options, message):
    reference_build([0, 1], [1, 2], tmp_path / "g")
    with pytest.raises(OocGraphError, match=message):
        bfs(tmp_path / "g", 0, **options)


def test_a_runtime_of_another_graph_is_refused(tmp_path):
    reference_build([0, 1], [1, 2], tmp_path / "g")
    reference_build([0, 1], [1, 2], tmp_path / "h")
    with LocalRuntime.open(tmp_path / "g") as runtime, pytest.raises(OocGraphError, match="open another runtime"):
        bfs(tmp_path / "h", 0, runtime=runtime)


@pytest.mark.parametrize("collect", [list, tuple, set, np.array, pd.Series, pd.Index])
def test_any_collection_of_sources(tmp_path, collect):
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "g")
    assert bfs(tmp_path / "g", collect([0, 9])).depth == 4
    assert bfs(tmp_path / "g", np.array(9)).depth == 9


def test_a_load_that_fails_leaves_no_file_open(tmp_path, cramped):
    rng = np.random.default_rng(6)
    reference_build(rng.integers(0, 4000, 60_000), rng.integers(0, 4000, 60_000), tmp_path / "g", directed=True)
    (tmp_path / "g/in/indices/c/0").unlink()
    cramped(4)
    for _ in range(3):
        with pytest.raises(CorruptStoreError, match="missing"):
            LocalRuntime.open(tmp_path / "g")
    assert open_files(tmp_path) == []
