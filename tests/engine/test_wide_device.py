"""Graphs whose neighbours are int64, as those of more than 2**32 - 2 vertices are, on a device: searches, parts of them, products."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph.algorithms import devices as devices_module
from oocgraph.engine.device import DeviceRuntime
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.device_graphs import cramped  # noqa: F401
from tests.engine.device_parts import open_device_parts
from tests.engine.parts import run_parts
from tests.engine.test_part import judge
from tests.stores import wide_indices

pytestmark = needs_shim

NUM_IDS = 600


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def graph(request, tmp_path_factory):
    rng = np.random.default_rng(1)
    ends = [(NUM_IDS * rng.random(5000) ** 2).astype(np.int64) for _ in range(2)]
    path = tmp_path_factory.mktemp("wide") / "g.zarr"
    with wide_indices():
        table = pa.table({"source": ends[0], "target": ends[1], "weight": rng.random(5000).astype(np.float32)})
        found = oocgraph.build_csr(table, path, directed=request.param, weight="weight")
    assert found.index_dtype == np.int64
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_search(graph, direction, seed, cramped):  # noqa: F811
    """With all edges on the device; and with some there, some in pinned memory, some on disk."""
    if seed is not None:
        cramped(seed)
    device = CpuDevice(seed or 0, deferred=True)
    with DeviceRuntime.open(graph, device=device) as runtime:
        result = oocgraph.bfs(graph, int(graph.ids_of([0])[0]), direction=direction, runtime=runtime)
    oocgraph.verify_bfs(graph, result)
    assert result.device == device.name
    assert result.search.parent.dtype == np.int64


def test_partitions(graph):
    parts = open_device_parts(graph, 3, CpuDevice(seed=1), cramp=5)
    states, _ = run_parts(parts, [1, 5])
    judge(graph, parts, states, [1, 5], None)
    while parts:
        parts.pop().close()


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "or_and"])
@pytest.mark.parametrize("transpose", [False, True])
def test_a_product(graph, semiring, transpose, monkeypatch):
    x = np.random.default_rng(2).random(graph.num_vertices)
    x = x > 0.5 if semiring == "or_and" else x
    expected = oocgraph.spmv(graph, x, semiring=semiring, transpose=transpose, resources=oocgraph.Resources(device="cpu"))
    monkeypatch.setattr(devices_module, "devices_choice", lambda _kind, **_: ((CpuDevice(), CpuDevice()), "shims"))
    found = oocgraph.spmv(graph, x, semiring=semiring, transpose=transpose)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
