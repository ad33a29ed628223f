"""What is counted before anything is partitioned is what a real traversal of real partitions sends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.errors import CorruptStoreError
from oocgraph.memory import Budget
from oocgraph.partition.policies import grid_columns
from oocgraph.parts import traffic_counts
from oocgraph.parts.partitioned import PartitionedRuntime
from oocgraph.parts.traffic_counts import TrafficCounter
from oocgraph.plan.traffic import traffic_of
from oocgraph.store.graph import open_graph
from tests import every_knob
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
        parts, num_vertices=store.num_rows, dtype=store.index_dtype, directed=store.attributes.directed,
        budget=Budget(1 << 40, baseline_bytes=0), threads=2, io_threads=2,
    ) as runtime:  # fmt: skip
        found = runtime.search(sources)
    return found, [[(one.num_bytes, one.num_messages) for one in iteration.exchanged] for iteration in found.iterations]


def forecast(counter, num_rows, columns, itemsize):
    """Forecast the same."""
    counts = counter.count(num_rows, [columns] if columns > 1 else [])
    kinds = [traffic_of(counts.candidates, parent_bytes=itemsize)]
    kinds += [traffic_of(counts.broadcasts[columns], parent_bytes=0)] if columns > 1 else []
    return counts, [
        list(zip((k.num_bytes[i] for k in kinds), (k.num_messages[i] for k in kinds), strict=True)) for i in range(counter.num_levels)
    ]


@given(graphs(), st.sampled_from([1, 2, 3, 4, 6, 8, 9, 16]), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_a_forecast_is_exact(tmp_path_factory, case, num_parts, seed):
    """Directed or not, in any order: every byte and message of every iteration, 1D and 2D; lists, edges and vertices of parts."""
    n, src, dst, options, _ = case
    path = tmp_path_factory.mktemp("g") / "graph.zarr"
    reference_build(src, dst, path, implied=(0, n), **options)
    store = open_graph(path)
    if not store.num_rows:
        return
    sources = np.unique(np.random.default_rng(seed).choice(store.num_rows, 2))
    for columns in {1, grid_columns(num_parts)}:
        num_rows = num_parts // columns
        parts = cut(store, TrafficCounter(store, np.full(store.num_rows, -1, np.int32), 1), num_rows, columns)
        found, exchanged = searched(store, parts, sources)
        counter = TrafficCounter(store, found.level, found.depth + 1)
        counts, expected = forecast(counter, num_rows, columns, store.index_dtype.itemsize)
        nothing = [(0, 0)] * (columns > 1)
        assert [one + nothing[: (columns > 1) + 1 - len(one)] for one in exchanged] == [one[: 1 + (columns > 1)] for one in expected]
        assert counts.edges[columns].ravel().tolist() == [part.num_edges for part in parts]
        owned = [part.num_masters + part.num_isolated for part in parts]
        assert counts.set_vertices.tolist() == [owned[k * columns + k % columns] for k in range(num_rows)]


def test_pieces_smaller_than_rows_count_the_same(tmp_path, monkeypatch):
    """Rows of a star and of a path, a few entries at a time; the longest is a piece alone. A compressed store is read alike."""
    rng = np.random.default_rng(0)
    src, dst = np.concatenate([[np.zeros(99, int), np.arange(1, 100)], rng.integers(0, 100, (2, 300))], axis=1)
    found = []
    for codec, piece in (("none", 1 << 20), ("none", 16), ("zstd", 16)):
        monkeypatch.setattr(traffic_counts, "PIECE_EDGES", piece)
        store = every_knob.build((src, dst), tmp_path / f"{codec}-{piece}.zarr", directed=True, codec=codec)
        level = np.where(store.read("vertices/id") == 0, 0, 1).astype(np.uint8)
        counts = TrafficCounter(store, level, 2).count(6, [2])
        kinds = [counts.candidates, counts.broadcasts[2]]
        found.append([one.tolist() for kind in kinds for one in kind] + [counts.edges[2].tolist()])
    assert found[0] == found[1] == found[2]


def test_a_neighbour_that_is_no_vertex_is_refused(tmp_path):
    """Kernels would read beyond their arrays."""
    reference_build(np.arange(9), np.arange(1, 10), tmp_path / "g")
    (chunk,) = (tmp_path / "g/out/indices/c").iterdir()
    damaged = np.fromfile(chunk, np.uint32)
    damaged[3] = 10
    damaged.tofile(chunk)
    store = open_graph(tmp_path / "g")
    counter = TrafficCounter(store, np.zeros(store.num_rows, np.int32), 1)
    with pytest.raises(CorruptStoreError, match="element 3 of out/indices is 10, but must be at least 0 and below 10"):
        counter.count(2)
