"""Values of vertices by id and by store number: by positions the same as by streamed ids; positions are kept, charged and given back."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph import Resources, build_csr, open_runtime, spmv
from oocgraph.engine import opened
from oocgraph.engine import vertex_order as module
from oocgraph.engine.vertex_order import POSITION_BYTES, VertexOrder
from oocgraph.memory import Budget
from oocgraph.store.input_order import input_positions
from tests.ingest.helpers_build import ArraySource
from tests.stores import random_edges, string_store


@pytest.fixture(scope="module", params=["isolated", "far apart", "strings", "empty"])
def store(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    if request.param == "isolated":
        return oocgraph.generate_kronecker(9, folder / "g.zarr", seed=1)
    if request.param == "strings":
        return string_store(folder / "g.zarr", ["b", "zz", "é"], ["a", "b", "a"], others=["c", "y"])
    src, dst = random_edges(3) if request.param == "far apart" else (np.empty(0, np.int64),) * 2
    return build_csr(ArraySource(17 * src + 5, 17 * dst + 5), folder / "g.zarr", directed=True)


@pytest.fixture
def streams(monkeypatch):
    """Note each time that ids are streamed."""
    noted = []

    def note(holder, name):
        original = getattr(holder, name)
        monkeypatch.setattr(holder, name, lambda *arguments: (noted.append(name), original(*arguments))[1])

    note(module, "to_store_order")
    note(module, "to_input_order")
    note(opened, "input_positions")
    return noted


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.bool_, np.int64])
@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_positions_and_streams_make_the_same(store, dtype, width, threads):
    rng, num_ids = np.random.default_rng(1), store.attributes.num_input_vertices
    shape = () if width is None else (width,)
    by_id = rng.integers(0, 2, (num_ids, *shape)).astype(dtype)
    inner = np.uint8 if dtype is np.bool_ else dtype
    found = []
    for order in (VertexOrder(store), VertexOrder(store, input_positions(store), threads)):
        out, back = np.empty((store.num_rows, *shape), inner), np.full((num_ids, *shape), 7, inner)
        order.to_store(by_id, out)
        order.to_input(out, back)
        found.append((out, back))
    for streamed, moved in zip(*found, strict=True):
        np.testing.assert_array_equal(moved, streamed)
    assert np.count_nonzero((found[0][1] == 7).reshape(num_ids, int(np.prod(shape))).all(axis=1)) == store.attributes.num_isolated


def test_arrays_of_other_forms_are_streamed(store, streams):
    """Of another dtype, or with gaps."""
    if not store.num_rows:
        pytest.skip("arrays without elements have no gaps")
    order = VertexOrder(store, input_positions(store))
    by_id = np.arange(2.0 * store.attributes.num_input_vertices).reshape(-1, 2)
    expected, out = np.empty((store.num_rows, 2)), np.empty((store.num_rows, 2))
    order.to_store(by_id, expected)
    assert streams == []
    for i in range(2):
        order.to_store(by_id[:, i], out[:, i])
    order.to_store(by_id.astype(np.int64), out2 := np.empty_like(out))
    assert streams == ["to_store_order"] * 3
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(out2, expected)


def test_an_open_graph_reads_ids_once(streams, tmp_path):
    graph = oocgraph.generate_kronecker(9, tmp_path / "g.zarr", seed=1)
    x = np.random.default_rng(0).random(graph.attributes.num_input_vertices)
    expected = spmv(graph, x, resources=Resources(device="cpu"))
    streams.clear()
    with open_runtime(graph, resources=Resources(device="cpu")) as runtime:
        for _ in range(3):
            np.testing.assert_array_equal(spmv(graph, x, runtime=runtime), expected)
        assert streams == ["input_positions"]
        kept = runtime._budget().baseline_bytes
        runtime._give_back()
        assert kept - runtime._budget().baseline_bytes >= 4 * graph.num_rows
        np.testing.assert_array_equal(spmv(graph, x, runtime=runtime), expected)
        assert streams == ["input_positions"] * 2


@pytest.mark.one_in(2)
def test_without_room_ids_are_streamed(store):
    with open_runtime(store, resources=Resources(device="cpu")) as runtime:
        for room in (POSITION_BYTES * store.num_rows - 1, POSITION_BYTES * store.num_rows):
            order = runtime.vertex_order(store, budget := Budget(room, baseline_bytes=0))
            assert (order._position is None) == (room < POSITION_BYTES * store.num_rows)
            assert budget.reserved_bytes == (0 if order._position is None else room)
