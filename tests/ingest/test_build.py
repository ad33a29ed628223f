"""The external build equals the build of one page (`tests.reference_build`), byte for byte."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph import sorting
from oocgraph.errors import CorruptStoreError, DuplicateEdgeError, InputError
from oocgraph.ingest import build_job
from oocgraph.ingest.build import build_csr, build_with_report
from oocgraph.ingest.build_job import BuildOptions
from oocgraph.store import layout
from oocgraph.store.check import check_store
from oocgraph.store.graph import open_graph
from tests import every_knob
from tests.ingest.helpers_build import ArraySource, assert_same_store
from tests.reference_build import reference_build

MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


NO_ROOM = 1 << 40
"""Bytes of a record where bins stay small although vertex arrays leave some of their share."""


@pytest.fixture
def tiny_sizes(monkeypatch):
    """Blocks of a few edges, bins of a few records, and no room for vertex arrays: every external path is taken."""

    def shrink(capacity=7, block_rows=5, resident_ids=0):
        def plan(budget, threads, payload_bytes, **_):
            return build_job.Sizes(threads, block_rows, capacity, resident_ids, 40, NO_ROOM)

        monkeypatch.setattr("oocgraph.ingest.build.plan_sizes", plan)

    return shrink


graphs = st.integers(1, 40).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=120))
)


@MANY
@given(
    graph=graphs,
    directed=st.booleans(),
    keep=st.booleans(),
    order=st.sampled_from(["degree", "original"]),
    duplicates=st.sampled_from(["drop", "keep"]),
    declared=st.booleans(),
    resident=st.sampled_from([0, 1 << 20]),
    threads=st.integers(1, 3),
    sparse=st.booleans(),
)
def test_store_equals_reference(tmp_path, tiny_sizes, graph, directed, keep, order, duplicates, declared, resident, threads, sparse):
    """Any small graph, through many bins and with vertex arrays in memory or not, gives the reference's bytes."""
    n, pairs = graph
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    if sparse and not declared:
        labels = np.random.default_rng(n).choice(2**63 - 1, n, replace=False)
        src, dst = labels[src], labels[dst]
    options = {"directed": directed, "keep_self_loops": keep, "vertex_order": order}
    reference_build(src, dst, tmp_path / "a", **options, duplicates=duplicates, implied=(0, n + 3) if declared else None)
    tiny_sizes(resident_ids=resident)
    source = ArraySource(src, dst, num_vertices=n + 3 if declared else None)
    every_knob.build(source, tmp_path / "b", **options, duplicates=duplicates, threads=threads, overwrite=True)
    assert_same_store(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("directed", [False, True])
def test_blocks_whose_rows_span_many_slices_of_vertices(tmp_path, tiny_sizes, directed):
    """Of few edges among many ids: each slice is renamed in its place, before the next one of the block is looked for."""
    src, dst = np.random.default_rng(7).integers(0, 20_000, (2, 900))
    reference_build(src, dst, tmp_path / "a", directed=directed)
    tiny_sizes(capacity=3000, block_rows=1000)
    every_knob.build(ArraySource(src, dst, num_rows=900), tmp_path / "b", directed=directed)
    assert_same_store(tmp_path / "a", tmp_path / "b")


def words_of(n, seed=0):
    """Distinct strings, some of them empty, prefixes of others, or not ASCII."""
    pool = ["", "a", "aa", "a\0b", "é", "z" * 300, "http://example.org/very/long/common/prefix/"]
    return [pool[i] if i < len(pool) else f"http://example.org/very/long/common/prefix/{(i * 7919 + seed) % 100003}" for i in range(n)]


@MANY
@given(
    graph=graphs,
    directed=st.booleans(),
    keep=st.booleans(),
    text_bytes=st.sampled_from([1, 200, 1 << 20]),
    resident=st.sampled_from([0, 99]),
)
def test_string_ids_number_as_sorted_positions_do(tmp_path, monkeypatch, graph, directed, keep, text_bytes, resident):
    """A graph over strings has the arrays of the same graph over their positions in bytewise order."""
    n, pairs = graph
    names = sorted(words_of(n), key=str.encode)
    src, dst = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    used = np.unique(np.concatenate([src, dst]))
    options = {"directed": directed, "keep_self_loops": keep}
    reference_build(src, dst, tmp_path / "a", **options)
    monkeypatch.setattr("oocgraph.ingest.build.plan_sizes", lambda *_, **__: build_job.Sizes(2, 1 << 7, 50, resident, text_bytes, NO_ROOM))
    text = [pa.array([names[i] for i in side], pa.large_string()) for side in (src, dst)]
    graph = every_knob.build(ArraySource(*text, id_kind="string"), tmp_path / "b", **options, overwrite=True)
    plain = open_graph(tmp_path / "a")
    for name in plain.array_names():
        if name in (layout.VERTEX_ID, layout.SORTED_ID, layout.ISOLATED_ID):
            data, offsets = (graph.read(part) for part in layout.string_arrays(name))
            stored = [bytes(data[a:b]).decode() for a, b in pairwise(offsets)]
            assert stored == [names[i] for i in plain.read(name)], name
        else:
            np.testing.assert_array_equal(graph.read(name), plain.read(name), err_msg=name)
    assert graph.attributes.id_kind == "string"
    assert graph.attributes.num_input_vertices == used.size


def stored_edges(graph, group="out", columns=("weight",)):
    """Edges of a group under the user's ids, each with its columns, in the store's order."""
    ids, indptr, indices = graph.read(layout.VERTEX_ID), graph.read(f"{group}/indptr"), graph.read(f"{group}/indices")
    rows = np.repeat(np.arange(graph.num_rows), np.diff(indptr))
    values = [graph.read(f"{group}/{name}").tolist() for name in columns]
    return list(zip(ids[rows].tolist(), ids[indices].tolist(), *values, strict=True))


weights = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, 2.0])
weighted_edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), weights), max_size=60)


@MANY
@given(edges=weighted_edges, duplicates=st.sampled_from(["min", "max", "sum", "first", "keep"]), directed=st.booleans(), keep=st.booleans())
def test_duplicate_weights_are_reduced_as_a_dictionary_would(tmp_path, tiny_sizes, edges, duplicates, directed, keep):
    """The weight of each edge is the minimum, maximum, sum, first or all of its weights, and both directions carry it."""
    tiny_sizes()
    found: dict = {}
    for u, v, w in edges:
        if keep or u != v:
            found.setdefault((u, v) if directed else (min(u, v), max(u, v)), []).append(np.float32(w))
    reduce = {
        "min": lambda w: [np.fmin.reduce(w)],
        "first": lambda w: w[:1],
        "keep": list,
        "sum": lambda w: [np.float32(np.sum(np.float64(w)))],
    }
    reduce["max"] = lambda w: [np.float32(np.nan) if np.isnan(w).any() else np.max(w)]
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = [(*pair, float(w)) for pair, ws in found.items() for w in reduce[duplicates](ws)]
    src, dst = (np.array([edge[i] for edge in edges], np.int64) for i in range(2))
    source = ArraySource(src, dst, {"cost": np.array([edge[2] for edge in edges], np.float32)}, weight="cost")
    graph = build_csr(source, tmp_path / "g", directed=directed, duplicates=duplicates, keep_self_loops=keep, overwrite=True)
    mirrored = [] if directed else [(v, u, w) for u, v, w in wanted if u != v]
    order = lambda edge: (edge[0], edge[1], np.isnan(edge[2]), edge[2] if not np.isnan(edge[2]) else 0)  # noqa: E731
    for group, edges_of in [("out", wanted + mirrored), ("in", [(v, u, w) for u, v, w in wanted])][: 2 if directed else 1]:
        stored = sorted(stored_edges(graph, group), key=order)
        expected = sorted(edges_of, key=order)
        assert [edge[:2] for edge in stored] == [edge[:2] for edge in expected]
        np.testing.assert_allclose([edge[2] for edge in stored], [edge[2] for edge in expected], rtol=1e-6, equal_nan=True)
    assert graph.attributes.weighted
    assert graph.attributes.columns == {"weight": "float32"}
    assert graph.attributes.duplicates == duplicates


def test_extra_columns_keep_parallel_edges_apart(tmp_path, tiny_sizes):
    """Edges that differ in a column are two edges; equal ones are one; strings come back through their sorted categories."""
    tiny_sizes()
    src, dst = np.array([1, 1, 1, 2, 1, 3]), np.array([2, 2, 2, 1, 2, 1])
    kind = pa.array(["b", "a", "b", "a", "é", "b"], pa.large_string())
    size = np.array([1, 1, 1, 1, 1, 5], np.int16)
    graph = build_csr(ArraySource(src, dst, {"kind": kind, "size": size}), tmp_path / "g", directed=True)
    data, offsets = graph.read("columns/kind/bytes"), graph.read("columns/kind/offsets")
    words = [bytes(data[a:b]).decode() for a, b in pairwise(offsets.tolist())]
    assert words == ["a", "b", "é"]
    stored = [(u, v, words[code], size) for u, v, code, size in stored_edges(graph, columns=("kind", "size"))]
    wanted = [(1, 2, "a", 1), (1, 2, "b", 1), (1, 2, "é", 1), (2, 1, "a", 1), (3, 1, "b", 5)]
    assert sorted(stored) == wanted
    backward = [(v, u, words[code], size) for u, v, code, size in stored_edges(graph, "in", columns=("kind", "size"))]
    assert sorted(backward) == wanted
    assert graph.attributes.columns == {"kind": "string", "size": "int16"}
    assert graph.num_edges == 5
    assert graph.is_multigraph()


@pytest.mark.parametrize("duplicates", ["drop", "keep"])
def test_columns_and_kept_duplicates_make_no_multigraph_of_a_simple_graph(tmp_path, tiny_sizes, duplicates):
    """The build says that no two edges have the same ends, `check_store` compares that, and a store that does not say it may have some."""
    tiny_sizes()
    edges = ArraySource(np.array([1, 2, 3]), np.array([2, 3, 1]), {"size": np.array([7, 7, 8], np.int16)})
    graph = build_csr(edges, tmp_path / "g", duplicates=duplicates)
    assert not graph.is_multigraph()
    check_store(graph)
    attributes = json.loads((tmp_path / "g" / "zarr.json").read_text())
    del attributes["attributes"]["oocgraph"]["parallel_edges"]
    (tmp_path / "g" / "zarr.json").write_text(json.dumps(attributes))
    assert open_graph(tmp_path / "g").is_multigraph()
    twice = ArraySource(np.array([1, 2, 1]), np.array([2, 3, 2]), {"size": np.array([7, 7, 8], np.int16)})
    false = build_csr(twice, tmp_path / "f", duplicates=duplicates)
    assert false.is_multigraph()
    text = (tmp_path / "f" / "zarr.json").read_text()
    (tmp_path / "f" / "zarr.json").write_text(text.replace('"parallel_edges": true', '"parallel_edges": false'))
    with pytest.raises(CorruptStoreError, match="not strictly ascending"):
        check_store(open_graph(tmp_path / "f"))


def test_duplicate_is_named_with_its_rows(tmp_path, tiny_sizes):
    """duplicates="error" says which edge it is, under the user's ids, and in which rows."""
    tiny_sizes()
    src = pa.array(["x", "y", "z", "y"], pa.large_string())
    dst = pa.array(["y", "z", "x", "x"], pa.large_string())
    with pytest.raises(DuplicateEdgeError, match=r"'[xy]' - '[xy]' occurs in row 1 and again in row 4"):
        build_csr(ArraySource(src, dst, id_kind="string"), tmp_path / "g", duplicates="error")
    assert list(tmp_path.iterdir()) == []
    build_csr(ArraySource(src, dst, id_kind="string"), tmp_path / "g", duplicates="error", directed=True)


def test_weight_without_a_choice_is_the_minimum_with_a_note(tmp_path, caplog):
    """A weighted graph with duplicates and no choice gets the smallest weight, and the log says so."""
    source = ArraySource(np.array([0, 1]), np.array([1, 0]), {"w": np.array([5, -3])}, weight="w")
    with caplog.at_level("INFO", "oocgraph"):
        graph = build_csr(source, tmp_path / "g")
    assert graph.read("out/weight").tolist() == [-3, -3]
    assert graph.attributes.duplicates == "min"
    assert "means 'min'" in caplog.text


def test_sum_that_overflows_its_dtype_is_refused(tmp_path):
    """Two weights whose sum does not fit int8 are an input error, not a wrong number."""
    source = ArraySource(np.array([0, 0]), np.array([1, 1]), {"w": np.array([100, 100], np.int8)}, weight="w")
    with pytest.raises(InputError, match="int8"):
        build_csr(source, tmp_path / "g", duplicates="sum")


@pytest.mark.parametrize(("dtype", "weights"), [("float32", [3e38, 3e38]), ("float64", [1e308, 1e308]), ("float64", [np.inf, 1.0])])
def test_a_sum_of_floats_is_infinite_only_if_a_weight_is(tmp_path, dtype, weights):
    source = ArraySource(np.array([0, 0, 1]), np.array([1, 1, 2]), {"w": np.array([*weights, 1.0], dtype)}, weight="w")
    if np.isinf(weights).any():
        graph = build_csr(source, tmp_path / "g", duplicates="sum", directed=True)
        assert sorted(graph.read("out/weight").tolist()) == [1.0, np.inf]
        return
    with pytest.raises(InputError, match=f"the weights of duplicate edges sum to more than {dtype} can hold"):
        build_csr(source, tmp_path / "g", duplicates="sum")


@pytest.mark.parametrize("kind", ["range", "sparse", "string"])
def test_extra_vertices_are_isolated_unless_they_have_edges(tmp_path, tiny_sizes, kind):
    """Vertices that a source lists besides its edges are part of the graph."""
    tiny_sizes()
    ids = np.array([3, 5, 9, 11]) * (10**15 if kind == "sparse" else 1)
    make = (lambda values: pa.array([f"v{v:03}" for v in values], pa.large_string())) if kind == "string" else np.asarray
    source = ArraySource(
        make(ids[[1]]), make(ids[[2]]), id_kind="string" if kind == "string" else "int64", extra_vertices=make(ids[[3, 0, 1]])
    )
    graph = build_csr(source, tmp_path / "g")
    assert (graph.attributes.num_input_vertices, graph.attributes.num_isolated) == (4, 2)
    if kind != "string":
        assert graph.read(layout.ISOLATED_ID).tolist() == ids[[0, 3]].tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ids", ["range", "sparse", "string"])
def test_store_does_not_depend_on_budget_threads_or_order(tmp_path, monkeypatch, ids, weighted):
    """Every way to run gives the same bytes."""
    rng = np.random.default_rng(4)
    src, dst = rng.integers(0, 300, (2, 4000)) ** 2 // 300
    values = {"w": rng.integers(0, 3, src.size).astype(np.float32)} if weighted else {}
    labels = np.sort(rng.choice(2**62, 300, replace=False)) if ids == "sparse" else np.arange(300)

    def make(values):
        return pa.array([f"id {v}" for v in values.tolist()], pa.large_string()) if ids == "string" else labels[values]

    runs = [(1 << 20, 1 << 20, 1 << 20, 1), (100, 30, 0, 3), (999, 400, 1 << 20, 2), (30, 11, 10, 2)]
    for number, (capacity, block_rows, resident_ids, threads) in enumerate(runs):
        order = rng.permutation(src.size) if number else np.arange(src.size)
        sizes = build_job.Sizes(threads, block_rows, capacity, resident_ids, 10 * capacity, NO_ROOM)
        monkeypatch.setattr("oocgraph.ingest.build.plan_sizes", lambda *_, sizes=sizes, **__: sizes)
        side = {name: column[order] for name, column in values.items()}
        kind = "string" if ids == "string" else "int64"
        source = ArraySource(
            make(src[order]), make(dst[order]), side, id_kind=kind, weight="w" if weighted else None, num_streams=number + 1
        )
        every_knob.build(source, tmp_path / str(number), threads=threads, duplicates="sum" if weighted else "drop", directed=bool(weighted))
        assert_same_store(tmp_path / "0", tmp_path / str(number), ignore=())


@pytest.mark.parametrize("directed", [False, True])
def test_store_does_not_depend_on_how_keys_are_sorted(tmp_path, monkeypatch, directed):
    """By NumPy, by digits in one thread, or by several threads that share one bin."""
    src, dst = np.random.default_rng(5).integers(0, 30_000, (2, 200_000)) ** 2 // 30_000
    shared = []

    @contextmanager
    def team_of(threads):
        shared.append(threads)
        with sorting_team_of(threads) as team:
            yield team

    sorting_team_of = sorting.team_of
    monkeypatch.setattr(sorting, "team_of", team_of)
    for name, pays, threads in (("numpy", False, 2), ("one", True, 1), ("several", True, 4)):
        monkeypatch.setattr(sorting, "digits_pay", lambda pays=pays: pays)
        every_knob.build(ArraySource(src, dst), tmp_path / name, threads=threads, directed=directed)
        assert_same_store(tmp_path / "numpy", tmp_path / name, ignore=())
    assert set(shared) == {4}


@pytest.mark.parametrize("edges", [[], [(0, 0)], [(7, 7), (3, 3)], [(0, 1)]])
@pytest.mark.parametrize("directed", [False, True])
def test_tiny_graphs(tmp_path, edges, directed):
    """No edges, one vertex, only self-loops, one edge."""
    src, dst = (np.array([edge[i] for edge in edges], np.int64) for i in range(2))
    reference_build(src, dst, tmp_path / "a", directed=directed)
    build_csr(ArraySource(src, dst, num_streams=1), tmp_path / "b", directed=directed)
    assert_same_store(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("duplicates", ["drop", "keep"])
def test_one_edge_repeated_beyond_a_bin(tmp_path, tiny_sizes, duplicates):
    """An edge that occurs more often than a bin holds is one edge, or all of them when kept."""
    tiny_sizes(capacity=20, block_rows=16)
    src, dst = np.array([5] * 300 + [1, 2]), np.array([6] * 300 + [2, 3])
    reference_build(src, dst, tmp_path / "a", duplicates=duplicates)
    build_csr(ArraySource(src, dst), tmp_path / "b", duplicates=duplicates)
    assert_same_store(tmp_path / "a", tmp_path / "b")


@pytest.mark.one_in(6)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("duplicates", ["drop", "min", "max", "sum", "first", "keep"])
@pytest.mark.parametrize("columns", ["weight", "time and weight", "text and weight", "text and time"])
def test_an_edge_with_columns_repeated_beyond_a_bin(tmp_path, tiny_sizes, columns, duplicates, directed):
    """However few records fit in memory at once, those of one edge are treated as if all did: sums of floats to the last bit, too."""
    rng = np.random.default_rng(7)
    src, dst = np.array([5] * 700 + [1, 2, 2] + [9] * 300), np.array([6] * 700 + [2, 3, 3] + [9] * 300)
    weights = rng.choice(rng.random(40) * 10.0 ** rng.integers(-3, 9, 40), src.size).astype(np.float32)
    values = {
        "text": pa.array([f"t{'x' * v}" for v in rng.integers(0, 3, src.size).tolist()], pa.large_string()),
        "time": rng.integers(-2, 2, src.size),
        "weight": np.where(rng.random(src.size) < 0.3, weights[0], weights),
    }
    source = ArraySource(
        src, dst, {name: values[name] for name in columns.split(" and ")}, weight="weight" if "weight" in columns else None
    )
    options = {"duplicates": duplicates, "directed": directed, "keep_self_loops": True}
    expected = every_knob.build(source, tmp_path / "expected", **options)
    for capacity in (16, 40, 130):
        tiny_sizes(capacity=capacity, block_rows=16)
        check_store(every_knob.build(source, tmp_path / str(capacity), **options))
        assert_same_store(expected.url, tmp_path / str(capacity), ignore=())


def test_an_edge_that_is_refused_when_repeated_is_named_beyond_a_bin(tmp_path, tiny_sizes):
    """The first two of its rows, as if all fitted in memory."""
    rows = np.random.default_rng(1).permutation(300)
    source = ArraySource(np.where(rows < 200, 5, rows), np.where(rows < 200, 6, rows + 1), {"w": rows * 1.0}, weight="w")
    first = np.flatnonzero(rows < 200) + 1
    for _ in range(2):
        with pytest.raises(DuplicateEdgeError, match=f"the edge 5 - 6 occurs in row {first[0]} and again in row {first[1]}"):
            build_csr(source, tmp_path / "g", duplicates="error", directed=True)
        tiny_sizes(capacity=20, block_rows=16)


@pytest.mark.parametrize(("dtype", "number"), [("float32", 1e37), ("int16", 300), ("uint64", 2**57)])
def test_a_sum_beyond_a_bin_that_its_dtype_cannot_hold_is_refused(tmp_path, tiny_sizes, dtype, number):
    tiny_sizes(capacity=20, block_rows=16)
    source = ArraySource(np.full(300, 5), np.full(300, 6), {"w": np.full(300, number, dtype)}, weight="w")
    with pytest.raises(InputError, match=f"the weights of duplicate edges sum to more than {dtype} can hold"):
        build_csr(source, tmp_path / "g", duplicates="sum")


@pytest.mark.parametrize(
    ("dtype", "weights", "expected"),
    [
        ("int64", [-(2**62)] * 100 + [2**62] * 100 + [7], 7),
        ("int64", [2**60 + 300, -(2**60)] + [0] * 100, 300),
        ("uint64", [2**64 - 9] + [0] * 100, 2**64 - 9),
        ("float64", [1e308] * 100 + [np.inf], np.inf),
        ("float64", [-1e308] * 100 + [np.inf], np.nan),  # they are added in order: -inf, and then inf
        ("float32", [3e38] * 100 + [np.nan], np.nan),
        ("int8", [-128] * 100 + [127] * 100 + [100], 0),
    ],
)
def test_a_sum_beyond_a_bin_is_what_it_is_within_one(tmp_path, tiny_sizes, dtype, weights, expected):
    """Of parts that would not fit, too; of integers it is exact, and there is one NaN."""
    weights = np.random.default_rng(1).permutation(np.array(weights, dtype))
    source = ArraySource(np.full(weights.size, 5), np.full(weights.size, 6), {"w": weights}, weight="w")
    expected = np.array([expected], dtype)
    for _ in range(2):
        store = build_csr(source, tmp_path / "g", duplicates="sum", directed=True, overwrite=True)
        assert store.read("out/weight").tobytes() == expected.tobytes()
        tiny_sizes(capacity=20, block_rows=16)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("duplicates", ["keep", "min", "max", "first"])
@pytest.mark.parametrize("weights", [[2**63 - 1], [-(2**63), 2**63 - 1], [2**63 - 1, 0, 1, 2, 3]])
def test_largest_weights_repeated_beyond_a_bin(tmp_path, tiny_sizes, weights, duplicates):
    """A bin of keys up to 2**64 is cut where they are: a build ended with an OverflowError."""
    values = np.array(weights)[np.random.default_rng(0).integers(0, len(weights), 400)]
    source = ArraySource(np.full(400, 5), np.full(400, 6), {"w": values}, weight="w")
    expected = build_csr(source, tmp_path / "expected", duplicates=duplicates, directed=True)
    for capacity in (16, 40, 130):
        tiny_sizes(capacity=capacity, block_rows=16)
        assert_same_store(expected.url, build_csr(source, tmp_path / f"{capacity}", duplicates=duplicates, directed=True).url, ignore=())


def test_star_and_path_equal_reference(tmp_path, tiny_sizes):
    """A row longer than any bin, and a hundred thousand rows of two."""
    tiny_sizes(capacity=5000, block_rows=3000, resident_ids=0)
    leaves = np.arange(1, 50_000)
    for name, src, dst in [("star", np.zeros_like(leaves), leaves), ("path", leaves - 1, leaves)]:
        reference_build(src, dst, tmp_path / f"{name}-a")
        build_csr(ArraySource(src, dst), tmp_path / f"{name}-b")
        assert_same_store(tmp_path / f"{name}-a", tmp_path / f"{name}-b")
    size = sum(file.stat().st_size for file in (tmp_path / "star-b").rglob("*"))
    assert size < 8 * 2**20


def test_id_outside_the_declared_range_is_refused(tmp_path):
    """The message names the row and the declared range; nothing is left behind."""
    with pytest.raises(InputError, match=r"row 2 is an edge from 1 to 9, outside the ids 0 to 4"):
        build_csr(ArraySource(np.array([0, 1]), np.array([1, 9]), num_vertices=5), tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_compressed_store_holds_the_same_arrays(tmp_path, codec):
    """Compression changes bytes on disk, not arrays."""
    src, dst = np.random.default_rng(0).integers(0, 500, (2, 3000))
    plain = build_csr(ArraySource(src, dst), tmp_path / "a")
    packed = every_knob.build(ArraySource(src, dst), tmp_path / "b", codec=codec)
    for name in plain.array_names():
        np.testing.assert_array_equal(plain.read(name), packed.read(name), err_msg=name)


def test_report_counts_what_was_done(tmp_path):
    """Seconds, bytes and rows are positive and the phases are named."""
    src, dst = np.random.default_rng(0).integers(0, 500, (2, 3000))
    _, report = build_with_report(ArraySource(src, dst), tmp_path / "g", BuildOptions(memory_budget="2G", threads=2))
    assert report.num_rows == 3000
    assert min(report.seconds, report.cpu_seconds, report.peak_host_bytes, report.vertex_bytes, report.written_bytes) > 0
    assert list(report.phases) == ["read edges", "sort edges", "number vertices", "relabel", "write out", "sync"]


def test_phases_add_up_to_the_whole(tmp_path):
    """Bytes and processor time of the steps are those of the process, but for what comes before the first of them."""
    src, dst = np.random.default_rng(0).integers(0, 50_000, (2, 500_000))
    graph, report = build_with_report(ArraySource(src, dst), tmp_path / "g", BuildOptions(memory_budget="2G", threads=2))
    phases = report.phases.values()
    assert graph.edge_bytes < sum(phase.bytes_written for phase in phases) <= report.written_bytes
    assert sum(phase.bytes_written for phase in phases) > 0.99 * report.written_bytes
    assert 4 * src.size < sum(phase.bytes_read for phase in phases) <= report.read_bytes
    assert 0 < sum(phase.cpu_seconds for phase in phases) <= report.cpu_seconds
