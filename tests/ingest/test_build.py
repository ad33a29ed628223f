"""The external build equals the build of one page (`tests.reference_build`), byte for byte."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.ingest import build_plan
from oocgraph.ingest.build import build_csr
from oocgraph.store import layout
from oocgraph.store.graph import open_graph
from tests.ingest.helpers_build import ArraySource, assert_same_store
from tests.reference_build import reference_build

MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def tiny_sizes(monkeypatch):
    """Blocks of a few edges, bins of a few records, and no room for vertex arrays: every external path is taken."""

    def shrink(capacity=7, block_rows=5, resident_ids=0):
        def plan(budget, threads, payload_bytes):
            return build_plan.Sizes(threads, block_rows, capacity, resident_ids, 40)

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
    build_csr(source, tmp_path / "b", **options, duplicates=duplicates, threads=threads, overwrite=True)
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
    monkeypatch.setattr("oocgraph.ingest.build.plan_sizes", lambda *_: build_plan.Sizes(2, 1 << 7, 50, resident, text_bytes))
    text = [pa.array([names[i] for i in side], pa.large_string()) for side in (src, dst)]
    graph = build_csr(ArraySource(*text, id_kind="string"), tmp_path / "b", **options, overwrite=True)
    plain = open_graph(tmp_path / "a")
    for name in plain.array_names():
        if name in (layout.VERTEX_ID, layout.SORTED_ID, layout.ISOLATED_ID):
            data, offsets = (graph.read(part) for part in layout.string_arrays(name))
            stored = [bytes(data[a:b]).decode() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
            assert stored == [names[i] for i in plain.read(name)], name
        else:
            np.testing.assert_array_equal(graph.read(name), plain.read(name), err_msg=name)
    assert graph.attributes.id_kind == "string"
    assert graph.attributes.num_input_vertices == used.size


def stored_edges(graph, group="out", columns=("weight",)):
    """Edges of a group under the user's ids, each with its columns, in the store's order."""
    ids, indptr, indices = graph.read(layout.VERTEX_ID), graph.read(f"{group}/indptr"), graph.read(f"{group}/indices")
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(indptr))
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
