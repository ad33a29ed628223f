"""What is counted before anything is partitioned is what a real traversal of real partitions sends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.errors import CorruptStoreError
from oocgraph.memory import Budget
from oocgraph.partition.policies import grid_columns
from oocgraph.plan import traffic
from oocgraph.plan.traffic import expected_traffic
from oocgraph.runtime.meetings import MeetingCounter
from oocgraph.runtime.partitioned import PartitionedRuntime
from oocgraph.runtime.sampled_rows import RowReader
from oocgraph.store.graph import open_graph
from tests.algorithms.test_bfs import graphs
from tests.parts_in_memory import cut_in_memory, edges_of
from tests.reference_build import reference_build


def cut(store, counter, num_rows, columns):
    """Cut a graph as the grid does, with the sets that the counter has."""
    src, dst = edges_of(store)
    sets = counter.sets(num_rows).astype(np.int64)
    return cut_in_memory(num_rows * columns, src, dst, sets * columns + sets % columns, sets[src] * columns + sets[dst] % columns)


def searched(store, parts, sources):
    """Search for real: the levels, and bytes and messages of each kind in each iteration."""
    with PartitionedRuntime(
        parts, num_vertices=store.num_vertices, dtype=store.index_dtype, directed=store.attributes.directed,
        budget=Budget(1 << 40, baseline_bytes=0), threads=2, io_threads=2,
    ) as runtime:  # fmt: skip
        found = runtime.search(sources)
    return found, [[(one.num_bytes, one.num_messages) for one in iteration.exchanged] for iteration in found.iterations]


def forecast(counter, num_rows, columns, itemsize):
    """Forecast the same."""
    met = counter.count(num_rows, [columns] if columns > 1 else [])
    kinds = [expected_traffic(met.candidates, parent_bytes=itemsize)]
    kinds += [expected_traffic(met.casts[columns], parent_bytes=0)] if columns > 1 else []
    return met, [
        list(zip((k.num_bytes[i] for k in kinds), (k.num_messages[i] for k in kinds), strict=True)) for i in range(counter.num_levels)
    ]


@given(graphs(), st.sampled_from([1, 2, 3, 4, 6, 8, 9, 16]), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_a_forecast_that_looks_at_all_vertices_is_exact(tmp_path_factory, case, num_parts, seed):
    """Directed or not, in any order: every byte and message of every iteration, 1D and 2D; lists, edges and vertices of members."""
    n, src, dst, options, _ = case
    path = tmp_path_factory.mktemp("g") / "graph.zarr"
    reference_build(src, dst, path, implied=(0, n), **options)
    store = open_graph(path)
    if not store.num_vertices:
        return
    sources = np.unique(np.random.default_rng(seed).choice(store.num_vertices, 2))
    for columns in {1, grid_columns(num_parts)}:
        num_rows = num_parts // columns
        with MeetingCounter(store, np.full(store.num_vertices, -1, np.int32), 1, max_edges=1, io_threads=1) as counter:
            parts = cut(store, counter, num_rows, columns)
        found, exchanged = searched(store, parts, sources)
        with MeetingCounter(store, found.level, found.depth + 1, max_edges=1 << 20, io_threads=1) as counter:
            met, expected = forecast(counter, num_rows, columns, store.index_dtype.itemsize)
        nothing = [(0, 0)] * (columns > 1)
        assert [one + nothing[: (columns > 1) + 1 - len(one)] for one in exchanged] == [one[: 1 + (columns > 1)] for one in expected]
        assert met.edges[columns].ravel().tolist() == [part.num_edges for part in parts]
        owned = [part.num_masters + part.num_isolated for part in parts]
        assert met.set_vertices.tolist() == [owned[k * columns + k % columns] for k in range(num_rows)]


def kron(tmp_path):
    """Build a Kronecker graph of scale 14."""
    rng = np.random.default_rng(1)
    bits = rng.choice(4, (14, 16 << 14), p=[0.57, 0.19, 0.19, 0.05])
    places = 1 << np.arange(14)[:, None]
    reference_build(((bits >> 1) * places).sum(0), ((bits & 1) * places).sum(0), tmp_path / "g")
    return open_graph(tmp_path / "g")


@pytest.mark.parametrize("grid", [(4, 1), (2, 2), (9, 1), (3, 3), (4, 4)])
def test_a_sample_is_within_5_percent(tmp_path, grid):
    """One vertex in 4 of a Kronecker graph: bytes and messages in all, and bytes of iterations that have a thousand candidates."""
    store = kron(tmp_path)
    with MeetingCounter(store, np.zeros(store.num_vertices, np.int32), 1, max_edges=1, io_threads=1) as counter:
        parts = cut(store, counter, *grid)
    found, exchanged = searched(store, parts, np.array([100]))
    max_edges = store.attributes.num_stored_edges // 4 + 1
    with MeetingCounter(store, found.level, found.depth + 1, max_edges=max_edges, io_threads=1) as counter:
        assert counter.choice.one_in == 4
        _, expected = forecast(counter, *grid, 4)
    real = np.array([np.sum(one, axis=0) for one in exchanged], float)
    told = np.array([np.sum(one, axis=0) for one in expected])
    assert told[:, 0].sum() == pytest.approx(real[:, 0].sum(), rel=0.05)
    assert told[:, 1].sum() == pytest.approx(real[:, 1].sum(), rel=0.05, abs=1.5)  # a 2 x 2 grid has 16
    large = real[:, 0] > 8 * 1000
    assert large.any()
    assert told[large, 0] == pytest.approx(real[large, 0], rel=0.05)


def test_pairs_are_sampled_where_levels_and_pairs_are_many(tmp_path, monkeypatch):
    """A path of 500 levels in 16 sets, with room for an eighth of the counts: on average the same, from pairs that have a list."""
    monkeypatch.setattr(traffic, "MAX_CELLS", 500 * 60)
    order = np.random.default_rng(0).permutation(500)
    reference_build(order[:-1], order[1:], tmp_path / "g")
    store = open_graph(tmp_path / "g")
    level = np.argsort(order)[store.read("vertices/id")].astype(np.int32)
    with MeetingCounter(store, level, 500, max_edges=1, io_threads=1) as counter:
        some = expected_traffic(counter.count(16).candidates, parent_bytes=4)
        monkeypatch.setattr(traffic, "MAX_CELLS", 1 << 23)
        every = expected_traffic(counter.count(16).candidates, parent_bytes=4)
    assert 0 < np.count_nonzero(some.num_messages) < np.count_nonzero(every.num_messages)
    assert some.num_bytes.sum() == pytest.approx(every.num_bytes.sum(), rel=0.25)


def test_a_neighbour_that_is_no_vertex_is_refused(tmp_path, monkeypatch):
    """Kernels would read beyond their arrays."""
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    monkeypatch.setattr(type(store), "num_vertices", 9)
    with RowReader(store, "out", io_threads=1) as reader, pytest.raises(CorruptStoreError, match="a neighbour in out/indices is 9"):
        list(reader.pieces(None))
